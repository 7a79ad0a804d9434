//! Figures of a paper beside ours, for people.

use super::table::{lines, table};
use crate::experiment::wu1997::{Point, Quantity};

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
    match points.iter().filter(|point| !point.agrees).count() {
        0 => format!("All {} points agree with what was to be expected.", points.len()),
        off => format!("{off} of {} points differ from what was to be expected by more than chance explains.", points.len()),
    }
}
