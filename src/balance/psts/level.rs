//! One level of positional scan task scheduling: a grid as a row of sub-grids, with the surplus or deficit of each.

use std::ops::Range;
use std::rc::Rc;

use crate::load::{Positions, Powers};
use crate::node::Gathered;
use crate::topology::NodeId;

/// Start of each sub-grid of a grid, and the end of the last one.
#[derive(Clone, Debug)]
pub(super) enum Bounds {
    /// Sub-grids of the same size.
    Even {
        first: u32,
        sub_grids: u32,
        stride: u32,
    },
    Halves([u32; 3]),
}

impl Bounds {
    pub fn sub_grids(&self) -> u32 {
        match self {
            Bounds::Even { sub_grids, .. } => *sub_grids,
            Bounds::Halves(_) => 2,
        }
    }

    /// The first node of a sub-grid; of the one behind the last: where this ends.
    pub fn start(&self, sub_grid: u32) -> u32 {
        match self {
            Bounds::Even { first, stride, .. } => first + sub_grid * stride,
            Bounds::Halves(bounds) => bounds[sub_grid as usize],
        }
    }

    pub fn nodes(&self, sub_grid: u32) -> Range<u32> {
        self.start(sub_grid)..self.start(sub_grid + 1)
    }

    pub fn all(&self) -> Range<u32> {
        self.start(0)..self.start(self.sub_grids())
    }

    pub fn sub_grid_of(&self, node: u32) -> u32 {
        match self {
            Bounds::Even { first, stride, .. } => (node - first) / stride,
            Bounds::Halves([_, middle, _]) => u32::from(node >= *middle),
        }
    }
}

/// One level: a grid as a row of sub-grids, with their current loads.
pub(super) struct Level<'a> {
    powers: &'a Powers,
    bounds: &'a Bounds,
    /// Load of each sub-grid.
    pub loads: Gathered<u64>,
    pub surpluses: Rc<Surpluses>,
}

/// Surpluses of the sub-grids that have more than their share (senders), and deficits of those that lack some of it (receivers). The entry of a
/// sub-grid has the sums over all before it; there is one more for the end.
pub(super) struct Surpluses(Vec<Surplus>);

#[derive(Clone, Copy, Default)]
struct Surplus {
    given_before: u64,
    filled_before: u64,
}

impl Surpluses {
    pub fn new(powers: &Powers, bounds: &Bounds, loads: &[u64]) -> Surpluses {
        let positions = Positions::new(powers, bounds.all(), loads.iter().sum());
        let mut surpluses = Vec::with_capacity(loads.len() + 1);
        let mut sum = Surplus::default();
        for (sub_grid, &load) in (0..).zip(loads) {
            surpluses.push(sum);
            let share = positions.between(bounds.start(sub_grid), bounds.start(sub_grid + 1));
            sum.given_before += load.saturating_sub(share);
            sum.filled_before += share.saturating_sub(load);
        }
        surpluses.push(sum);
        Surpluses(surpluses)
    }

    /// Total surplus of all senders before a sub-grid.
    pub fn given_before(&self, sub_grid: u32) -> u64 {
        self.0[sub_grid as usize].given_before
    }

    /// Range of the units that a sub-grid lacks, among the units that all lack together.
    pub fn lacking(&self, sub_grid: u32) -> Range<u64> {
        self.0[sub_grid as usize].filled_before..self.0[sub_grid as usize + 1].filled_before
    }
}

impl<'a> Level<'a> {
    pub fn new(powers: &'a Powers, bounds: &'a Bounds, loads: Gathered<u64>) -> Level<'a> {
        let surpluses = loads.derive(|loads| Surpluses::new(powers, bounds, loads));
        Level { powers, bounds, loads, surpluses }
    }

    /// Range of node `me`'s units among the units given by all senders. `before` is the load of its sub-grid's nodes in front of it.
    pub fn units(&self, me: NodeId, before: u64, load: u64) -> Range<u64> {
        let mine = self.bounds.sub_grid_of(me);
        let earlier = self.surpluses.given_before(mine);
        let surplus = self.surpluses.given_before(mine + 1) - earlier;
        if surplus == 0 {
            return 0..0;
        }
        let all = u128::from(self.loads[mine as usize]);
        let given_before = |load: u64| earlier + (u128::from(surplus) * u128::from(load) / all) as u64;
        given_before(before)..given_before(before + load)
    }

    /// Number of units that all senders give by plan.
    pub fn given(&self) -> u64 {
        self.surpluses.given_before(self.bounds.sub_grids())
    }

    /// Nodes that receive these units, in their order, each with its number of units. The last of them also takes units given beyond the
    /// plan.
    pub fn owners(&self, units: Range<u64>) -> Vec<(NodeId, u64)> {
        let mut parts: Vec<(NodeId, u64)> = Vec::new();
        if units.is_empty() {
            return parts;
        }
        let planned = self.given();
        // Units beyond the plan go to the owner of its last unit.
        let (at, end) = (units.start.min(planned.saturating_sub(1)), units.end.min(planned));
        // The first that lacks units from here on.
        let first = self.surpluses.0[1..].partition_point(|next| next.filled_before <= at) as u32;
        for index in first..self.bounds.sub_grids() {
            let row = self.surpluses.lacking(index);
            let (from, until) = (at.max(row.start), end.min(row.end));
            if row.start >= end {
                break;
            }
            if from < until {
                let positions = Positions::new(self.powers, self.bounds.nodes(index), row.end - row.start);
                parts.extend(positions.owners(from - row.start, until - row.start));
            }
        }
        if let Some((_, last)) = parts.last_mut() {
            // Beyond the plan by that much; less the plan's last unit if it was only asked for.
            *last = *last + (units.end - end) - (units.start - at);
        }
        parts
    }

    /// Number of units that node `me` receives if `given` units are given.
    pub fn gets(&self, me: NodeId, given: u64) -> u64 {
        let (mine, planned) = (self.bounds.sub_grid_of(me), self.given());
        let row = self.surpluses.lacking(mine);
        if row.is_empty() {
            return 0;
        }
        let positions = Positions::new(self.powers, self.bounds.nodes(mine), row.end - row.start);
        let (first, end) = (row.start + positions.before(me), row.start + positions.before(me + 1));
        let beyond = if first < end && end == planned { given.saturating_sub(planned) } else { 0 };
        end.min(given) - first.min(given) + beyond
    }
}
