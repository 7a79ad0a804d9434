//! Figures of a paper beside ours, for people.

use super::table::{lines, table};
use crate::experiment::wu1997::{Point, Quantity};
use crate::experiment::{ahmad1994, hamidzadeh1995};

/// A table with a line for each point, and a sentence on the whole.
pub fn points(points: &[Point], width: u16) -> String {
    let headings = ["figure", "balancer", "topology", "quantity", "mean", "cases", "measured", "95 %", "expected", ""];
    let mut rows = table(&headings, 4, width);
    for point in points {
        let quantity = match point.quantity {
            Quantity::Balanced => "balanced",
            Quantity::Locality => "excess moved",
            Quantity::Cost => "excess hops",
        };
        rows.add_row([
            point.figure.to_string(),
            point.balancer.into(),
            point.topology.into(),
            quantity.into(),
            point.mean_load.to_string(),
            point.counted.to_string(),
            format!("{:.3}", point.measured),
            format!("{:.3}-{:.3}", point.ci95[0], point.ci95[1]),
            format!("{:.3} ± {:.3}", point.expected, point.tolerance),
            if point.agrees { "agrees" } else { "DIFFERS" }.into(),
        ]);
    }
    format!("{}\n{}\n", lines(&rows), sentence(points))
}

fn sentence(points: &[Point]) -> String {
    judged(points.len(), points.iter().filter(|point| !point.agrees).count())
}

fn judged(points: usize, off: usize) -> String {
    match off {
        0 => format!("All {points} points agree with what was to be expected."),
        off => format!("{off} of {points} points differ from what was to be expected by more than chance explains."),
    }
}

/// The same for total times of schedulers.
pub fn totals(points: &[hamidzadeh1995::Point], width: u16) -> String {
    let headings = ["figure", "quantity", "processors", "seeds", "measured", "expected", "tolerance", "paper", ""];
    let mut rows = table(&headings, 2, width);
    let shown = || points.iter().filter(|point| point.expected.is_some());
    for point in shown() {
        let quantity = match point.quantity {
            hamidzadeh1995::Quantity::Dss => "total of dss",
            hamidzadeh1995::Quantity::Sash => "total of sash",
            hamidzadeh1995::Quantity::Crossover => "crossover",
        };
        let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.0}"));
        rows.add_row([
            point.figure.to_string(),
            quantity.into(),
            point.processors.map_or(String::new(), |processors| processors.to_string()),
            point.seeds.to_string(),
            number(Some(point.measured)),
            number(point.expected),
            number(Some(point.tolerance)),
            number(point.paper),
            if point.agrees { "agrees" } else { "DIFFERS" }.into(),
        ]);
    }
    format!("{}\n{}\n", lines(&rows), judged(shown().count(), shown().filter(|point| !point.agrees).count()))
}

/// The same for response times of graphs that arrive over time.
pub fn responses(points: &[ahmad1994::Point], width: u16) -> String {
    let headings = ["figure", "scheduler", "levels", "children", "load", "rate", "graphs", "response", "95 %", "expected", ""];
    let mut rows = table(&headings, 2, width);
    for point in points {
        rows.add_row([
            if point.limit { "limit" } else { point.figure }.to_string(),
            point.scheduler.into(),
            point.levels.to_string(),
            point.children.to_string(),
            point.utilisation.to_string(),
            if point.rate == 0 { "none".into() } else { point.rate.to_string() },
            point.graphs.to_string(),
            format!("{:.3}", point.measured),
            format!("{:.3}-{:.3}", point.ci95[0], point.ci95[1]),
            format!("{:.3} ± {:.3}", point.expected, point.tolerance),
            if point.agrees { "agrees" } else { "DIFFERS" }.into(),
        ]);
    }
    format!("{}\n{}\n", lines(&rows), judged(points.len(), points.iter().filter(|point| !point.agrees).count()))
}
