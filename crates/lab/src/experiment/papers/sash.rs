//! Hamidzadeh, Lilja and Atif 1995: figures 2 to 13, and the bound of section 3.
//!
//! SASH is read as `r1` (docs/independent.md). Every point of a figure has cost matrices of its own; SASH and DSS are run on the same.

mod claims;

use super::super::hamidzadeh1995::{self, FIGURES, HamidzadehFigure, LEAST, MOST, totals};
use super::evidence::Mean;
use super::{Axes, Item, Job, Reference, Study, Value, named};
use crate::bounds;
use equipoise::error::Result;
use equipoise::load::{Cost, Costs};
use equipoise::schedule::sash::phase::{Plan, Rules, schedule};

/// Cost matrices of a point: quick, full. The paper does not say how many it took.
const CASES: [u32; 2] = [12, 40];

/// The same at figure 5's crossover, where the two hardly differ.
const CASES_OF_13: [u32; 2] = [12, 400];

pub(super) fn study() -> Study {
    let mut jobs = Vec::new();
    for figure in &FIGURES {
        for processors in LEAST..=MOST {
            let cases = if (figure.number, processors) == (5, 13) { CASES_OF_13 } else { CASES };
            jobs.push(Job::new(Item::Figure(figure.number), "totals", processors.into(), cases, move |seed, cases| {
                both(figure, processors, seed, cases)
            }));
        }
    }
    // Figure 8 has the matrices on which the reading is furthest from what the section says.
    jobs.push(Job::new(Item::Section(3), "bound", 8.0, [12, 40], |seed, cases| bound(&FIGURES[6], 8, seed, cases)));
    for (reading, rules) in READINGS {
        jobs.push(Job::new(Item::Section(3), format!("phases, {reading}"), 4.0, [4, 40], move |seed, cases| {
            phases(reading, &rules, &FIGURES[6], 4, seed, cases)
        }));
    }
    Study { jobs, claims: claims::all() }
}

/// Readings whose phases are compared with the optimum: that of the figures, and the text's, which takes the head of the queue.
const READINGS: [(&str, Rules); 2] = [("r1", Rules::R1), ("literal", Rules::LITERAL)];

/// A phase with more tasks is not compared with its optimum, which would take long.
const MOST_TASKS: usize = 14;

pub(super) fn axes(item: Item) -> Axes {
    match item {
        Item::Figure(_) => Axes::linear("total time of SASH and DSS", "processors", "total time, cycles"),
        _ => Axes::linear("above the optimum", "processors", "longest tasks"),
    }
}

/// The reference mean of a point.
pub(super) fn reference(item: Item, curve: &str, processors: f64) -> Option<Reference> {
    let (Item::Figure(figure), Some(which)) = (item, CURVES.iter().position(|name| *name == curve)) else { return None };
    let (means, tolerance) = hamidzadeh1995::reference(figure, processors)?;
    Some(Reference { value: means[which], tolerance, cases: CASES[1].into() })
}

/// The curves of total times, in the order in which these are measured.
const CURVES: [&str; 2] = ["dss", "sash"];

/// Total times in cycles, and how much longer SASH takes.
fn both(figure: &HamidzadehFigure, processors: u32, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut samples: [Vec<f64>; 3] = Default::default();
    for case in 0..u64::from(cases) {
        let [dss, sash] = totals(&figure.costs(processors, seed + case));
        samples.iter_mut().zip([dss, sash, sash / dss - 1.0]).for_each(|(list, sample)| list.push(sample));
    }
    named([CURVES[0], CURVES[1], claims::LONGER], samples, Some(claims::LONGER))
}

/// How far above the optimum SASH's schedule ends, in the longest task that any worker could get: at least, by the best of three heuristics that see all
/// tasks beforehand; at most, by a lower bound of the optimum.
fn bound(figure: &HamidzadehFigure, processors: u32, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut samples: [Vec<f64>; 2] = Default::default();
    for case in 0..u64::from(cases) {
        let costs = figure.costs(processors, seed + case).on_first(processors as usize - 1);
        let (sash, _) = schedule(&costs, (0..costs.ranks()).collect(), &Rules::R1);
        let longest = costs.rows().flatten().max().copied().unwrap_or(1);
        let best = [bounds::min_min(&costs), bounds::sufferage(&costs), bounds::earliest_completion(&costs)].into_iter().min().unwrap_or(0);
        let above = |bound: Cost| (sash as f64 - bound as f64) / longest as f64;
        samples.iter_mut().zip([above(best), above(bounds::lower_bound(&costs))]).for_each(|(list, sample)| list.push(sample));
    }
    named(["above the optimum at least", "above the optimum at most"], samples, None)
}

/// The phases of schedules with two tasks or more whose cost, the latest end of any worker, is above the least that their tasks can have on these workers: the
/// number of all, per cent of them, and by how many longest tasks at most.
fn phases(reading: &str, rules: &Rules, figure: &HamidzadehFigure, processors: u32, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let (mut compared, mut above, mut furthest) = (0u64, 0u64, 0.0f64);
    for case in 0..u64::from(cases) {
        let costs = figure.costs(processors, seed + case).on_first(processors as usize - 1);
        let longest = costs.rows().flatten().max().copied().unwrap_or(1);
        let mut plan = Plan::new(&costs, (0..costs.ranks()).collect());
        let mut now = 0;
        while !plan.left.is_empty() {
            let earliest = now + plan.allotted(now);
            let base: Vec<Cost> = plan.finish.iter().map(|finish| (*finish).max(earliest)).collect();
            let phase = plan.phase(&costs, rules, now, None);
            now = phase.end;
            if !(2..=MOST_TASKS).contains(&phase.assignments.len()) {
                continue;
            }
            let mut loads = base.clone();
            phase.assignments.iter().for_each(|one| loads[one.worker] += costs.of(one.task, one.worker));
            let tasks: Vec<usize> = phase.assignments.iter().map(|one| one.task).collect();
            let cost = loads.iter().max().copied().unwrap_or(0);
            let least = optimum(&costs, &tasks, &mut base.clone(), cost);
            compared += 1;
            above += u64::from(cost > least);
            furthest = furthest.max((cost - least) as f64 / longest as f64);
        }
    }
    let of_all = |what: &str, value: f64| Value::new(format!("{what}, {reading}"), Mean { cases: compared, ..Mean::exact(value) });
    let share = 100.0 * above as f64 / compared.max(1) as f64;
    Ok(vec![of_all("phases", compared as f64), of_all(claims::PHASES_ABOVE, share), of_all(claims::FURTHEST, furthest)])
}

/// The least latest end of these tasks on workers that are busy until `loads`, if it is below `best`; by branch and bound.
fn optimum(costs: &Costs, tasks: &[usize], loads: &mut [Cost], best: Cost) -> Cost {
    let latest = loads.iter().max().copied().unwrap_or(0);
    if latest >= best {
        return best;
    }
    let Some((task, later)) = tasks.split_first() else { return latest };
    (0..loads.len()).fold(best, |best, worker| {
        let cost = costs.of(*task, worker);
        loads[worker] += cost;
        let found = optimum(costs, later, loads, best);
        loads[worker] -= cost;
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_optimum_of_a_phase_is_that_of_all_assignments() {
        let costs = Costs::new(3, vec![7, 3, 9, 4, 4, 8, 5, 6, 2, 9, 1, 7]).unwrap();
        let base = [2, 0, 3];
        let mut least = Cost::MAX;
        for code in 0..81usize {
            let mut loads = base;
            (0..4).for_each(|task| {
                let worker = code / 3usize.pow(task) % 3;
                loads[worker] += costs.of(task as usize, worker);
            });
            least = least.min(*loads.iter().max().unwrap());
        }
        assert_eq!(optimum(&costs, &[0, 1, 2, 3], &mut base.clone(), Cost::MAX), least);
        // What is known to be as good is kept.
        assert_eq!(optimum(&costs, &[0, 1, 2, 3], &mut base.clone(), least), least);
        assert_eq!(optimum(&costs, &[], &mut base.clone(), 10), 3);
    }
}
