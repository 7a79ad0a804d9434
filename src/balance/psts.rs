//! Positional Scan Task Scheduling, for hyper-grids of any dimension (Savvas and Kechadi 2004, section 3.2, algorithm 2).
//!
//! A grid of dimension d is a row of parallel sub-grids of dimension d - 1. The surplus of sub-grids above their share goes straight to
//! nodes of sub-grids below it; then each sub-grid does the same one dimension lower, down to single nodes.
//!
//! For each dimension from the highest down, within the grid that is left (the paper's steps in brackets):
//!
//! 1. Each sub-grid scans the loads of its nodes; its last node sends their total to the others (3 to 8).
//! 2. The sub-grids exchange their totals, and share the grid's total by position: each gets the units of its interval of
//!    normalised power (9 to 14).
//! 3. A sub-grid above its share is a sender: each of its nodes gives the same part of its load, its last tasks. What all senders
//!    give, in the order of their nodes, fills what the receivers lack, in their order. Of the P units that a receiver gets, the unit
//!    at position p goes to the node whose interval of the receiver's normalised power holds p / P (16, 17).
//!
//! ```text
//!   grid:3x6, total 4000       power  load  share
//!   row 1 (v11 .. v16)           20   1000   1600   receiver: the senders' units 0 .. 600
//!   row 2 (v21 .. v26)           10   2000    800   sender: every node gives 60 % of its load
//!   row 3 (v31 .. v36)           20   1000   1600   receiver: the senders' units 600 .. 1200
//!   e.g. unit 100 of v22's 180 is unit 220 of row 1's 600: 220/600 = 0.37 lies in v13's interval 0.35 .. 0.60
//! ```
//!
//! Cost: per dimension of side m with sub-grids of s nodes 2 ceil(log2 s) + ceil(log2 m) + 1 steps, nothing where m = 1. (The paper's scans
//! pass from neighbour to neighbour: 2 (n_1 + .. + n_d - d) steps, equation 11, so that ceil(log2 n) dimensions are best, equation 15. That is not so
//! here: where all messages take equally long, one dimension is.) The default grid is the one with the least predicted time on the network at hand
//! (`psts/grids.rs`). During the decision a node holds the totals of a dimension's m sub-grids: on a long line the same amount as `direct`.
//!
//! Guarantees: the final loads are the nested shares, exactly; nodes and sub-grids of power 0 end with nothing. Not local: a sender's node
//! gives its part even when it will get some back one dimension lower. Order is not kept.
//!
//! Departures from the paper: scans are trees of logarithmic depth; the levels follow each other, where the paper lets a sender move its
//! surplus and balance inside at the same time, so that each level plans with the loads that are really there. Hypercubes are grids of
//! sides of two, meshes and lines are grids as they are. A graph is embedded into a grid first (the paper's first phase, see
//! [`Embedding`]); virtual nodes, which have neither power nor load, take no part, and tasks go over the graph's own links, around those that
//! are slower than a way around them.
//!
//! Tasks of several units: a node's last units leave, with the tasks whose middle unit is among them, and each goes where its middle unit goes
//! (`unit=first`: the first one). So a border moves by at most half a task. To keep rounding errors of many senders from adding up on one receiver,
//! the nodes of a level agree in an all-gather how each rounds what it gives (not with `unit=first`), if they know that there are such tasks. Each
//! level plans with the actual loads: all end within one largest task per dimension.

mod grids;
mod level;

use std::ops::Range;

use level::{Bounds, Level};

use super::direct::nearer;
use super::{Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage, aim};
use crate::error::{Error, Result};
use crate::load::{Aim, Positions, Powers, Quota, Shares, TaskBatch};
use crate::node::migrate::TRANSFER_BYTES;
use crate::node::{Gathered, Group, HEADER_BYTES, Node};
use crate::topology::{Embedding, Kind, NodeId, Placement, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "psts",
    title: "Positional Scan Task Scheduling",
    source: "Savvas and Kechadi 2004, section 3.2, algorithm 2",
    options: "unit=middle (or first)",
    examples: &["psts", "psts:unit=first"],
    build,
    facts: Facts {
        kinds: &[Kind::Grid, Kind::Hypercube, Kind::Mesh, Kind::Line, Kind::Graph],
        suited: Some(grids::suited),
        refuses: |_| None,
        quota: QuotaRule::Positional,
        knows: Knowledge::Sums,
        promises: Promises { exact: true, local: false, ordered: false, optimal: false },
        cost,
    },
};

struct Psts {
    aim: Aim,
}

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Psts { aim: aim(options)? }))
}

fn cost(topology: &Topology) -> Cost {
    let rounds = |nodes: u64| u64::from(nodes.next_power_of_two().ilog2());
    let n = u64::from(topology.nodes());
    let mut cost = Cost { steps: 0, messages: 0, bytes: 0 };
    if let Topology::Graph(graph) = topology {
        let whole = 0..topology.nodes();
        let mut grids = Vec::from([whole]);
        for k in (0..graph.embedding().dimension()).rev() {
            let sizes = grids.iter().map(|grid| u64::from(grid.end - grid.start)).filter(|size| *size > 1);
            cost.steps += sizes.clone().map(|size| rounds(size) + 1).max().unwrap_or(0);
            for size in sizes {
                cost.messages += size * rounds(size) + size - 1;
                cost.bytes += size * (rounds(size) * (HEADER_BYTES + 8) + (size - 1) * 8) + (size - 1) * (TRANSFER_BYTES + 8);
            }
            grids = grids.into_iter().flat_map(|grid| halves(graph.embedding(), grid, k)).collect();
        }
        return cost;
    }
    for (_, side, stride) in levels(topology, 0) {
        let (m, s) = (u64::from(side), u64::from(stride));
        let (grids, sub_grids) = (n / (m * s), n / s);
        let scans = sub_grids * (s * rounds(s) + 1 - (1 << rounds(s)));
        let broadcasts = sub_grids * (s - 1);
        let gathers = n * rounds(m);
        // Senders' and receivers' nodes each have one interval of the units that move.
        let transfers = grids * (m * s - 1);
        cost.steps += 2 * rounds(s) + rounds(m) + 1;
        cost.messages += scans + broadcasts + gathers + transfers;
        cost.bytes +=
            (scans + broadcasts) * (HEADER_BYTES + 8) + gathers * (HEADER_BYTES + 8) + n * (m - 1) * 8 + transfers * (TRANSFER_BYTES + 8);
    }
    cost
}

/// Levels with more than one sub-grid, from the highest dimension down; for each the first node of the grid that is left around `me`, the
/// number of its sub-grids, and the number of nodes of each. Grids and sub-grids are consecutive nodes.
fn levels(topology: &Topology, me: NodeId) -> impl Iterator<Item = (NodeId, u32, u32)> + '_ {
    let sides = (0..topology.sides()).filter_map(|k| topology.side(k)).filter(|side| side.length > 1);
    sides.map(move |side| (me - me % (side.length * side.stride), side.length, side.stride))
}

/// The halves along dimension k of a grid of an embedded graph, those that have nodes; all by the nodes' order in the embedding.
fn halves(embedding: &Embedding, grid: Range<u32>, k: u32) -> Vec<Range<u32>> {
    let [first, middle, end] = embedding.halves(grid.start, k);
    [first..middle, middle..end].into_iter().filter(|half| !half.is_empty()).collect()
}

impl Balancer for Psts {
    fn quota(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        let (grid, powers) = (Grid::of(topology), shares.powers());
        Quota::from_shares(&match grid.embedding {
            None => nested_shares(topology, total, powers),
            Some(embedding) => embedded_shares(embedding, total, powers),
        })
    }

    fn is_checked(&self, shares: &Shares, _: &Placement) -> bool {
        shares.are_weighted()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(self.descend(phase))
    }
}

/// Final load of each node: the total is shared by position among the sub-grids, then each sub-grid's share among its own.
fn nested_shares(topology: &Topology, total: u64, powers: &Powers) -> Vec<u64> {
    let mut shares = vec![total];
    for (_, side, stride) in levels(topology, 0) {
        let size = side * stride;
        let mut below = Vec::with_capacity(shares.len() * side as usize);
        for (&units, first) in shares.iter().zip((0..).step_by(size as usize)) {
            let positions = Positions::new(powers, first..first + size, units);
            below.extend((0..side).map(|index| first + index * stride).map(|sub_grid| positions.between(sub_grid, sub_grid + stride)));
        }
        shares = below;
    }
    shares
}

/// The same for an embedded graph.
fn embedded_shares(embedding: &Embedding, total: u64, powers: &Powers) -> Vec<u64> {
    let powers = in_order(embedding, powers);
    let mut grids = vec![(0..powers.nodes(), total)];
    for k in (0..embedding.dimension()).rev() {
        let split = |(grid, units): (Range<u32>, u64)| {
            let positions = Positions::new(&powers, grid.clone(), units);
            let share = |half: Range<u32>| (half.clone(), positions.between(half.start, half.end));
            halves(embedding, grid, k).into_iter().map(share).collect::<Vec<_>>()
        };
        grids = grids.into_iter().flat_map(split).collect();
    }
    let mut shares = vec![0; powers.nodes() as usize];
    grids.into_iter().for_each(|(grid, units)| shares[embedding.order()[grid.start as usize] as usize] = units);
    shares
}

/// Powers in the order of an embedding.
fn in_order(embedding: &Embedding, powers: &Powers) -> Powers {
    Powers::listed(embedding.order().iter().map(|node| powers.of(*node)).collect()).unwrap_or_else(|_| powers.clone())
}

/// A grid whose nodes have indices: those of a box their own numbers, those of a graph their order in its embedding.
#[derive(Clone, Copy)]
struct Grid<'a> {
    embedding: Option<&'a Embedding>,
}

impl<'a> Grid<'a> {
    fn of(topology: &'a Topology) -> Grid<'a> {
        match topology {
            Topology::Graph(graph) => Grid { embedding: Some(graph.embedding()) },
            _ => Grid { embedding: None },
        }
    }

    fn index_of(self, node: NodeId) -> u32 {
        self.embedding.map_or(node, |embedding| embedding.index_of(node))
    }

    fn node_at(self, index: u32) -> NodeId {
        self.embedding.map_or(index, |embedding| embedding.order()[index as usize])
    }

    /// Bounds of the sub-grids around the node with this index, for each level with more than one, from the highest dimension down: the start of
    /// each sub-grid, and the end of the last one.
    fn bounds(self, topology: &Topology, me: u32) -> Vec<Bounds> {
        match self.embedding {
            None => levels(topology, me).map(|(first, sub_grids, stride)| Bounds::Even { first, sub_grids, stride }).collect(),
            Some(embedding) => {
                let halved = (0..embedding.dimension()).rev().map(|k| embedding.halves(me, k));
                halved.filter(|bounds| bounds.is_sorted_by(|a, b| a < b)).map(Bounds::Halves).collect()
            }
        }
    }

    /// The load of the nodes of the own sub-grid that come before this one, and the loads of all sub-grids.
    async fn loads(self, node: &Node, bounds: &Bounds, load: u64) -> Result<(u64, Gathered<u64>)> {
        let me = self.index_of(node.me());
        let outside = || Error::Failed(format!("psts can't run on {}", node.topology()));
        let first = bounds.start(0);
        if let Bounds::Even { sub_grids, stride, .. } = *bounds {
            let sub_grid = Group::spaced(me - (me - first) % stride, 1, stride, me).ok_or_else(outside)?;
            let before = sub_grid.sum_before(node, load).await?;
            let last = stride - 1;
            let total = sub_grid.broadcast(node, last, (sub_grid.place() == last).then_some(before + load)).await?;
            let alike = Group::spaced(first + (me - first) % stride, stride, sub_grids, me).ok_or_else(outside)?;
            return Ok((before, alike.all_gather(node, total).await?));
        }
        // Sub-grids of a graph are of different sizes; all nodes of the grid tell each other their loads.
        let loads = self.nodes_of(bounds, node).ok_or_else(outside)?.all_gather(node, load).await?;
        let of = |nodes: Range<u32>| loads[(nodes.start - first) as usize..(nodes.end - first) as usize].iter().sum::<u64>();
        let mine = bounds.nodes(bounds.sub_grid_of(me)).start;
        Ok((of(mine..me), Gathered::new((0..bounds.sub_grids()).map(|index| of(bounds.nodes(index))).collect())))
    }

    /// All nodes of a grid; `None` if this one is not among them.
    fn nodes_of(self, bounds: &Bounds, node: &Node) -> Option<Group> {
        let Range { start, end } = bounds.all();
        match self.embedding {
            None => Group::spaced(start, 1, end - start, node.me()),
            Some(_) => Group::new((start..end).map(|index| self.node_at(index)).collect::<Vec<_>>(), node.me()),
        }
    }
}

impl Psts {
    async fn descend(&self, phase: &mut Phase<'_>) -> Result<()> {
        phase.survey().await?;
        let node = phase.node;
        let grid = Grid::of(node.topology());
        let me = grid.index_of(node.me());
        let mut powers = None;
        for (index, bounds) in (0..).zip(grid.bounds(node.topology(), me)) {
            phase.enter(Stage::Information);
            phase.mover.at_step(index);
            let load = phase.mover.queue.movable();
            let (before, loads) = grid.loads(node, &bounds, load).await?;

            phase.enter(Stage::Decision);
            // The first level knows the total of all nodes.
            let powers = powers.get_or_insert_with(|| {
                let powers = phase.powers_of_movable(self, loads.iter().sum());
                grid.embedding.map_or(powers.clone(), |embedding| in_order(embedding, &powers))
            });
            node.charge(2 * loads.len() as u64);
            let level = Level::new(powers, &bounds, loads);
            let planned = level.units(me, before, load);
            let count = planned.end - planned.start;
            // The row that the parts lie in, and where in it the first task and the first part begin.
            let (leaving, begins, start, mut parts, coming);
            if phase.shares.are_weighted() && self.aim == Aim::Middle {
                let (tasks, row, total) = rounded(phase, grid, &bounds, count).await?;
                (leaving, begins, start, coming) = (tasks, row.start, row.start, level.gets(me, total));
                parts = level.owners(row);
            } else {
                // The last units leave, with the tasks that aim at them.
                leaving = if count > 0 { phase.mover.queue.take_back_from(load - count, self.aim) } else { TaskBatch::default() };
                (begins, start, coming) = (load - leaving.work(), load - count, level.gets(me, level.given()));
                parts = level.owners(planned);
            }
            drop(level);
            parts.iter_mut().for_each(|(dst, _)| *dst = grid.node_at(*dst));
            node.charge(2 * parts.len() as u64);

            phase.enter(Stage::Exchange);
            phase.deal(leaving, begins, start, &parts, self.aim).await;
            for arrival in phase.mover.receive_units(coming).await? {
                phase.mover.queue.put_behind(arrival.batch);
            }
        }
        Ok(())
    }
}

/// For tasks of several units: the last tasks of the work queue, about `planned` units, to be given away; where they lie in the row of all that the
/// senders of this grid give; and the length of this row.
///
/// Each node could give what fits into its part, or one task more, and tells both. In order of their indices all nodes choose for each the
/// one with which the sum is nearer to the plan; so no place of the row is off by more than half of the largest task.
async fn rounded(phase: &mut Phase<'_>, grid: Grid<'_>, bounds: &Bounds, planned: u64) -> Result<(TaskBatch, Range<u64>, u64)> {
    let (node, queue) = (phase.node, &mut *phase.mover.queue);
    let keeps = queue.movable() - planned;
    // Tasks that begin at this unit or behind it fit.
    let mut leaving = if planned > 0 { queue.take_back_from(keeps, Aim::First) } else { TaskBatch::default() };
    let fits = leaving.work();
    let one_more = fits + queue.last().filter(|_| fits < planned).unwrap_or(0);
    let group = grid.nodes_of(bounds, node).ok_or_else(|| Error::Failed(format!("psts can't run on {}", node.topology())))?;
    phase.enter(Stage::Information);
    let choices = group.all_gather(node, (planned, fits, one_more)).await?;
    phase.enter(Stage::Decision);
    node.charge(choices.len() as u64);
    let rows = choices.derive(Rounded::new);
    let place = group.place() as usize;
    let (row, total) = (rows.0[place]..rows.0[place + 1], rows.0[choices.len()]);
    if row.end - row.start > fits {
        leaving.prepend(phase.mover.queue.take_last());
    }
    if row.is_empty() {
        // Tasks without work stay.
        phase.mover.queue.put_behind(std::mem::take(&mut leaving));
    }
    Ok((leaving, row, total))
}

/// Start of each node's amount in the row of all amounts given, and the end of the last one.
struct Rounded(Vec<u64>);

impl Rounded {
    fn new(choices: &[(u64, u64, u64)]) -> Rounded {
        let (mut total, mut ahead, mut starts) = (0, 0, vec![0]);
        for (planned, fits, one_more) in choices {
            total += nearer((*fits, *one_more), *planned, &mut ahead);
            starts.push(total);
        }
        Rounded(starts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;
    use super::*;
    use crate::load::Transfer;

    const POWERS: [u64; 18] = [3, 4, 5, 2, 1, 5, 1, 2, 2, 1, 1, 3, 5, 1, 4, 2, 6, 2];
    const LOADS: [u64; 18] = [250, 300, 150, 100, 50, 150, 200, 300, 100, 400, 300, 700, 200, 50, 50, 200, 300, 200];

    const ROWS: &Bounds = &Bounds::Even { first: 0, sub_grids: 3, stride: 6 };

    fn rows(powers: &Powers) -> Level<'_> {
        Level::new(powers, ROWS, Gathered::new(LOADS.chunks(6).map(|row| row.iter().sum()).collect()))
    }

    fn topology(spec: &str) -> Topology {
        Topology::parse(spec, 1).unwrap()
    }

    /// The node that the paper calls v_ij.
    fn v(row: u32, column: u32) -> NodeId {
        (row - 1) * 6 + column - 1
    }

    #[test]
    fn slow_links_of_a_graph_are_avoided() {
        // Links 0-1 and 2-3 of the square are slow: they part it, and what can stay on either side does.
        let trial = Trial::of("psts", "graph:edges=0-1-0.1,1-2,2-3-0.1,0-3", &[200, 200, 0, 0]);
        let mut moves = trial.moves();
        moves.sort_unstable();
        assert_eq!(moves, [(0, 3, 100), (1, 2, 100)]);
        // The way from 0 to 2 leads around the slow link, over 1.
        let hops = |edges: &str| Trial::of("psts", &format!("graph:edges={edges}"), &[300, 0, 0]).task_hops();
        assert_eq!((hops("0-1,1-2,0-2"), hops("0-1,1-2,0-2-0.001")), (200, 300));
    }

    #[test]
    fn the_second_row_is_the_only_sender() {
        // Table 3, and the sentence below it.
        let powers = Powers::listed(POWERS.to_vec()).unwrap();
        let level = rows(&powers);
        assert_eq!(*level.loads, [1000, 2000, 1000]);
        assert_eq!([0, 1, 2].map(|row| level.surpluses.lacking(row)), [0..600, 600..600, 600..1200]);
        assert_eq!([0, 1, 2, 3].map(|row| level.surpluses.given_before(row)), [0, 0, 1200, 1200]);
    }

    #[test]
    fn each_node_of_the_sender_gives_sixty_percent() {
        // Table 4, line M.
        let powers = Powers::listed(POWERS.to_vec()).unwrap();
        let level = rows(&powers);
        let (mut before, mut given) = (0, Vec::new());
        for node in 6..12 {
            let load = LOADS[node as usize];
            given.push(level.owners(level.units(node, before, load)).iter().map(|(_, tasks)| tasks).sum::<u64>());
            before += load;
        }
        assert_eq!(given, [120, 180, 60, 240, 180, 420]);
        assert!((0..6).chain(12..18).all(|node| level.owners(level.units(node, 0, LOADS[node as usize])).is_empty()));
    }

    #[test]
    fn units_land_where_the_paper_says() {
        // Table 5: v22 gives units 120 .. 300 of row 1's 600, unit 220 lands on v13;
        // v26 gives units 180 .. 600 of row 3's, unit 380 lands on v35.
        let powers = Powers::listed(POWERS.to_vec()).unwrap();
        let level = rows(&powers);
        // v13 owns units 210 .. 360.
        assert_eq!(level.owners(level.units(v(2, 2), 200, 300)), [(v(1, 2), 90), (v(1, 3), 90)]);
        // The intervals of row 3 begin at 0 150 180 300 360 540.
        assert_eq!(level.owners(level.units(v(2, 6), 1300, 700)), [(v(3, 3), 120), (v(3, 4), 60), (v(3, 5), 180), (v(3, 6), 60)]);
        // v24 gives units 360 .. 600 of row 1's, v25 the first 180 of row 3's.
        assert_eq!(level.owners(level.units(v(2, 4), 600, 400)), [(v(1, 4), 60), (v(1, 5), 30), (v(1, 6), 150)]);
        assert_eq!(level.owners(level.units(v(2, 5), 1000, 300)), [(v(3, 1), 150), (v(3, 2), 30)]);
        let got: Vec<u64> = (0..18).map(|node| level.gets(node, level.given())).collect();
        assert_eq!(got, [90, 120, 150, 60, 30, 150, 0, 0, 0, 0, 0, 0, 150, 30, 120, 60, 180, 60]);
    }

    #[test]
    fn the_papers_example_ends_at_its_nested_shares() {
        let powers = Powers::listed(POWERS.to_vec()).unwrap();
        let shares = nested_shares(&topology("grid:3x6"), LOADS.iter().sum(), &powers);
        assert_eq!(shares, [240, 320, 400, 160, 80, 400, 80, 160, 160, 80, 80, 240, 400, 80, 320, 160, 480, 160]);
    }

    #[test]
    fn simulated_nodes_do_as_the_paper_says() {
        for seed in 0..4 {
            let trial = Trial::with("psts", "grid:3x6", &LOADS, Powers::listed(POWERS.to_vec()).unwrap(), seed);
            assert_eq!(trial.after, [240, 320, 400, 160, 80, 400, 80, 160, 160, 80, 80, 240, 400, 80, 320, 160, 480, 160]);
            assert_eq!(trial.after, trial.quota);
            let between_rows = |sent: &&Transfer| sent.step == 0;
            let given = |row: u32| trial.plan.transfers.iter().filter(between_rows).filter(move |sent| sent.src / 6 == row);
            assert_eq!([0, 1, 2].map(|row| given(row).map(|sent| sent.tasks).sum::<u64>()), [0, 1200, 0]);
            assert!(given(1).any(|sent| (sent.src, sent.dst, sent.tasks) == (v(2, 2), v(1, 3), 90)));
        }
    }

    #[test]
    fn a_grid_is_split_from_its_first_side_down() {
        assert_eq!(levels(&topology("grid:3x1x2x4"), 13).collect::<Vec<_>>(), [(0, 3, 8), (8, 2, 4), (12, 4, 1)]);
        assert_eq!(levels(&topology("hypercube:2"), 3).collect::<Vec<_>>(), [(0, 2, 2), (2, 2, 1)]);
        assert_eq!(levels(&topology("grid:1x1"), 0).count() + levels(&topology("hypercube:0"), 0).count(), 0);
    }

    #[test]
    fn sub_grids_without_power_get_nothing() {
        let powers = Powers::listed(vec![0, 0, 0, 5, 0, 0]).unwrap();
        assert_eq!(nested_shares(&topology("grid:3x2"), 7, &powers), [0, 0, 0, 7, 0, 0]);
        // All that the first and the last row hold goes to the only node with power.
        let level = Level::new(&powers, &Bounds::Even { first: 0, sub_grids: 3, stride: 2 }, Gathered::new(vec![3, 0, 4]));
        assert_eq!(level.owners(level.units(1, 1, 2)), [(3, 2)]);
        assert_eq!(level.owners(level.units(4, 0, 4)), [(3, 4)]);
        assert_eq!((2..4).map(|node| level.gets(node, level.given())).collect::<Vec<_>>(), [0, 7]);
    }
}
