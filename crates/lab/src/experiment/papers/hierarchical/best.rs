//! Where curves have their least values, as far as their errors let it be known.

use std::fmt::{self, Display, Formatter};

use super::super::Point;
use super::super::evidence::{Decision, LEVEL, difference};

/// The place of a curve's least value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Best {
    /// Place of the least mean.
    at: f64,
    /// The first and the last place that may be it: no other is shown to lie lower.
    first: f64,
    last: f64,
}

impl Best {
    /// `level` is the probability that the true one lies outside: it is left out only if the test against one of the others is wrong.
    fn of(curve: &[&Point], level: f64) -> Option<Best> {
        let others = curve.len().saturating_sub(1).max(1) as f64;
        let is_beaten = |point: &Point| curve.iter().any(|other| difference(&point.mean, &other.mean).above(0.0) < level / others);
        let possible: Vec<f64> = curve.iter().filter(|point| !is_beaten(point)).map(|point| point.x).collect();
        let at = curve.iter().min_by(|a, b| a.value.total_cmp(&b.value))?.x;
        Some(Best { at, first: *possible.first()?, last: *possible.last()? })
    }
}

impl Display for Best {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Best { at, first, last } if first == last => write!(f, "{at}"),
            Best { at, first, last } => write!(f, "{at} ({first} to {last})"),
        }
    }
}

/// Whether each of the first curves has its least value at a smaller place than its counterpart: yes if all places at which they may have it say so, no
/// if they say the contrary of one. All curves together have the error rate. And the places of each pair in words.
pub fn is_earlier<const N: usize>(earlier: &[Vec<&Point>; N], later: &[Vec<&Point>; N]) -> Option<(Decision, Vec<String>)> {
    let best = |curve: &Vec<&Point>| Best::of(curve, LEVEL / (2 * N) as f64);
    let pairs: Vec<(Best, Best)> = earlier.iter().zip(later).map(|(a, b)| Some((best(a)?, best(b)?))).collect::<Option<_>>()?;
    let holds = match () {
        () if pairs.iter().any(|(earlier, later)| earlier.first >= later.last) => Decision::No,
        () if pairs.iter().all(|(earlier, later)| earlier.last < later.first) => Decision::Yes,
        () => Decision::Open,
    };
    Some((holds, pairs.iter().map(|(earlier, later)| format!("{earlier} against {later}")).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::super::evidence::Mean;
    use super::super::super::{Effort, Item, Job, Measuring, Paper, Points, Value, measure};
    use super::*;

    /// A curve over 2, 3, 4, .. whose means have this error.
    fn curve(values: &[f64], error: f64) -> Points {
        let job = |(at, value): (usize, &f64)| {
            let mean = Mean { value: *value, error, freedom: 40.0, cases: 41 };
            Job::new(Item::Figure(10), "one", at as f64 + 2.0, [1, 1], move |_, _| Ok(vec![Value::new("one", mean)]))
        };
        let jobs: Vec<Job> = values.iter().enumerate().map(job).collect();
        measure(Paper::Hierarchical, &jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap()
    }

    #[test]
    fn places_that_may_be_the_least_are_those_that_no_other_beats() {
        let of = |values: &[f64], error| Best::of(&curve(values, error).curve(Item::Figure(10), "one"), 0.05).unwrap();
        assert_eq!(of(&[5.0, 3.0, 1.0, 2.0], 0.01), Best { at: 4.0, first: 4.0, last: 4.0 });
        // Two that chance may have put in this order.
        let close = of(&[5.0, 3.0, 1.0, 1.01], 0.01);
        assert_eq!((close, close.to_string().as_str()), (Best { at: 4.0, first: 4.0, last: 5.0 }, "4 (4 to 5)"));
        // With large errors it may be anywhere.
        assert_eq!(of(&[5.0, 3.0, 1.0, 2.0], 10.0), Best { at: 4.0, first: 2.0, last: 5.0 });
        assert_eq!(Best::of(&[], 0.05), None);
    }

    #[test]
    fn an_order_of_places_needs_all_that_are_possible() {
        let decision = |earlier: &[f64], later: &[f64]| {
            let (earlier, later) = (curve(earlier, 0.01), curve(later, 0.01));
            let [earlier, later] = [&earlier, &later].map(|points| [points.curve(Item::Figure(10), "one")]);
            is_earlier(&earlier, &later).unwrap()
        };
        let (falls, rises, turns) = ([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [2.0, 1.0, 1.01]);
        assert_eq!(decision(&rises, &falls), (Decision::Yes, vec!["2 against 4".into()]));
        assert_eq!([decision(&falls, &rises).0, decision(&falls, &falls).0], [Decision::No, Decision::No]);
        assert_eq!([decision(&turns, &falls).0, decision(&falls, &turns).0], [Decision::Open, Decision::No]);
        assert_eq!(decision(&rises, &turns).0, Decision::Yes);
    }
}
