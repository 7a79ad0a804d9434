//! Hamidzadeh, Lilja and Atif 1995: figures 2 to 13, and the bound of section 3.
//!
//! SASH is read as `r1` (docs/independent.md). Every point of a figure has cost matrices of its own; SASH and DSS are run on the same. The paper does
//! not say how many matrices it took.

mod claims;

use super::super::hamidzadeh1995::{FIGURES, HamidzadehFigure, LEAST, MOST, totals};
use super::evidence::Mean;
use super::{Axes, Item, Job, Study, Value};
use crate::bounds;
use equipoise::error::{Error, Result};
use equipoise::load::Cost;
use equipoise::schedule::sash::phase::{Rules, schedule};

pub(super) fn study() -> Study {
    let mut jobs = Vec::new();
    for figure in &FIGURES {
        for processors in LEAST..=MOST {
            jobs.push(Job::new(Item::Figure(figure.number), "totals", processors.into(), [12, 40], move |seed, cases| {
                both(figure, processors, seed, cases)
            }));
        }
    }
    // Figure 8 has the matrices on which the reading is furthest from what the section says.
    jobs.push(Job::new(Item::Section(3), "bound", 8.0, [12, 40], |seed, cases| bound(&FIGURES[6], 8, seed, cases)));
    Study { jobs, claims: claims::all() }
}

pub(super) fn axes(item: Item) -> Axes {
    match item {
        Item::Figure(_) => Axes::linear("total time of SASH and DSS", "processors", "total time, cycles"),
        _ => Axes::linear("above the optimum", "processors", "longest tasks"),
    }
}

/// Total times in cycles, and how much longer SASH takes.
fn both(figure: &HamidzadehFigure, processors: u32, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut samples: [Vec<f64>; 3] = Default::default();
    for case in 0..u64::from(cases) {
        let [dss, sash] = totals(&figure.costs(processors, seed + case));
        samples.iter_mut().zip([dss, sash, sash / dss - 1.0]).for_each(|(list, sample)| list.push(sample));
    }
    let values = named(["dss", "sash", claims::LONGER], samples)?;
    Ok(values.into_iter().map(|value| if value.curve == claims::LONGER { value.helper() } else { value }).collect())
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
    named(["above the optimum at least", "above the optimum at most"], samples)
}

fn named<const N: usize>(curves: [&str; N], samples: [Vec<f64>; N]) -> Result<Vec<Value>> {
    let value = |(curve, samples): (&str, Vec<f64>)| Some(Value::new(curve, Mean::of(&samples)?));
    let values: Option<Vec<Value>> = curves.into_iter().zip(samples).map(value).collect();
    values.ok_or_else(|| Error::Failed("a mean needs a case at least".into()))
}
