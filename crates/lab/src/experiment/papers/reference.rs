//! Reference values: means of independent implementations of the same readings. The papers print curves only where these are.

use super::Point;
use super::claims::short;

/// A mean to compare a point with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    pub value: f64,
    /// Allowed relative deviation of a mean of as many cases, as a fraction.
    pub tolerance: f64,
    /// Random cases from which on a point is judged: those of a full run.
    pub cases: u64,
}

impl Point {
    /// Whether it is near its reference; `None` without one, and with too few cases.
    pub fn is_as_expected(&self) -> Option<bool> {
        let reference = self.reference.filter(|reference| self.cases >= reference.cases)?;
        Some((self.value / reference.value - 1.0).abs() <= reference.tolerance)
    }
}

/// Maximum number of points that a sentence names.
const NAMED: usize = 3;

/// The points that are too far from their references, as a sentence without its full stop; `None` if there are none.
pub fn unexpected(points: &[Point]) -> Option<String> {
    let judged = points.iter().filter_map(|point| Some((point, point.reference?, point.is_as_expected()?)));
    let off: Vec<String> = judged
        .clone()
        .filter(|(.., is_as_expected)| !is_as_expected)
        .map(|(Point { paper, item, curve, x, value, .. }, Reference { value: expected, tolerance, .. }, _)| {
            let (name, ours, expected, tolerance) = (paper.name(), short(*value), short(expected), short(100.0 * tolerance));
            format!("{name}, {item}, {curve} at {x} is {ours} instead of {expected} ± {tolerance} %")
        })
        .collect();
    let (first, rest) = off.split_at(off.len().min(NAMED));
    let further = if rest.is_empty() { String::new() } else { format!("; and {} more", rest.len()) };
    let number = judged.count();
    (!off.is_empty()).then(|| format!("reference values are missed at {} of {number} points: {}{further}", off.len(), first.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Mean;
    use super::super::{Effort, Item, Job, Measuring, Paper, Value, measure};
    use super::*;

    /// Total times on four processors of figure 2, for which there are references, and of figure 3.
    fn points(dss: f64, sash: f64, cases: u64) -> Vec<Point> {
        let job = |figure, curve: &'static str, value| {
            let mean = Mean { cases, ..Mean::exact(value) };
            Job::new(Item::Figure(figure), curve, 4.0, [1, 1], move |_, _| Ok(vec![Value::new(curve, mean)]))
        };
        let jobs = [job(2, "dss", dss), job(2, "sash", sash), job(3, "sash", sash)];
        measure(Paper::Sash, &jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap().0
    }

    #[test]
    fn a_full_run_is_judged_by_the_tolerance_and_a_quick_one_is_not() {
        let of = |dss, sash, cases| points(dss, sash, cases).iter().map(Point::is_as_expected).collect::<Vec<_>>();
        // 125316 and 164668, each to half a per cent.
        assert_eq!(of(125_900.0, 165_400.0, 40), [Some(true), Some(true), None]);
        assert_eq!(of(126_000.0, 163_800.0, 40), [Some(false), Some(false), None]);
        assert_eq!(of(126_000.0, 163_800.0, 12), [None, None, None]);
    }

    #[test]
    fn what_is_off_is_said() {
        assert_eq!(unexpected(&points(125_900.0, 165_400.0, 40)), None);
        assert_eq!(unexpected(&points(1.0, 1.0, 12)), None);
        let one = unexpected(&points(125_900.0, 170_000.0, 40)).unwrap();
        assert_eq!(one, "reference values are missed at 1 of 2 points: sash, figure 2, sash at 4 is 170000 instead of 164668 ± 0.5 %");
        let many = [points(1.0, 1.0, 40), points(2.0, 2.0, 40)].concat();
        let sentence = unexpected(&many).unwrap();
        assert!(sentence.starts_with("reference values are missed at 4 of 4 points: ") && sentence.ends_with("; and 1 more"), "{sentence}");
    }
}
