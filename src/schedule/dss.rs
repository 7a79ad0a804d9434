//! Distributed self-scheduling with chunks of one task (the baseline of Hamidzadeh, Lilja and Atif 1995, section 4.1): the rank that is free
//! first takes the next task in order. `static=0.5` deals out that share of the tasks beforehand, in blocks (section 2.1).
//!
//! `affinity` departs from the paper: a free rank takes the task that is cheapest on it. That is a different, much stronger thing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use super::independent::{Entry, Facts, Scheduler, by_host};
use super::selfsched::dealer::Terms;
use super::selfsched::rules::Rule;
use super::selfsched::{self, SelfScheduling};
use crate::error::Result;
use crate::load::{Cost, Costs, NEVER};
use crate::spec::{InvalidSpec, Options};

/// Its entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "dss",
    title: "distributed self-scheduling, one task at a time",
    source: "Hamidzadeh, Lilja and Atif 1995, section 4.1",
    options: "static=0 (share of the tasks dealt out beforehand), affinity (each rank takes what is cheapest on it), outstanding=8 (requests of a rank at a time), \
              clusters=none|hosts (a coordinator per host)",
    examples: &["dss", "dss:static=0.3,affinity", "dss:clusters=hosts"],
    build,
    facts: Facts { knows_costs: false },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    let fixed = options.real("static", 0.0..=1.0)?.unwrap_or(0.0);
    let affinity = options.flag("affinity")?;
    let terms = Terms { rule: Rule::Ss, fixed, affinity };
    let (outstanding, by_host) = (selfsched::outstanding(options)?, by_host(options)?);
    selfsched::refuse_early(options, terms, by_host)?;
    Ok(Arc::new(SelfScheduling { terms, rounding: None, least: 1, weights: None, outstanding, by_host }))
}

/// The makespan when the rank that is free first takes the next task in order that it can run (the lowest number on a tie), and asking costs
/// nothing.
pub fn makespan(costs: &Costs) -> Cost {
    let mut free: BinaryHeap<Reverse<(Cost, usize)>> = (0..costs.ranks()).map(|rank| Reverse((0, rank))).collect();
    let mut last = 0;
    let mut left: VecDeque<usize> = (0..costs.tasks()).collect();
    while let Some(Reverse((at, rank))) = free.pop() {
        let Some(place) = left.iter().position(|task| costs.of(*task, rank) != NEVER) else { continue };
        let Some(task) = left.remove(place) else { continue };
        let end = at.saturating_add(costs.of(task, rank));
        last = last.max(end);
        free.push(Reverse((end, rank)));
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::CYCLE;

    /// Totals that an independent program found.
    #[test]
    fn published_totals() {
        for (text, total) in
            [(include_str!("../../tests/vectors/sash_6x3.txt"), 2900), (include_str!("../../tests/vectors/sash_12x4.txt"), 3700)]
        {
            let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            let costs: Vec<Cost> = rows.iter().flat_map(|row| row.split_whitespace()).map(|cost| cost.parse().unwrap()).collect();
            let costs = Costs::new((costs.len() / rows.len()) as u32, costs).unwrap().map(|_, cost| cost * CYCLE);
            assert_eq!(makespan(&costs), total * CYCLE);
        }
    }

    #[test]
    fn tasks_go_where_they_can_run() {
        let costs = Costs::new(2, vec![NEVER, 5, NEVER, 5, 1, NEVER]).unwrap();
        assert_eq!(makespan(&costs), 10);
    }
}
