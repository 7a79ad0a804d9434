//! Whether chance explains what was measured: tests of means and shares, and Holm's method for several of them.

use statrs::distribution::{ContinuousCDF, DiscreteCDF, Hypergeometric, StudentsT};

/// The probability with which all tests of a family together are wrong if nothing differs.
pub const LEVEL: f64 = 0.05;

/// What measurements say to a statement. With ever more cases it becomes yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Yes,
    No,
    /// Chance explains either.
    Open,
}

impl Decision {
    /// That of something that is not random.
    pub fn of(holds: bool) -> Decision {
        if holds { Decision::Yes } else { Decision::No }
    }

    /// Whether both statements hold.
    pub fn and(self, other: Decision) -> Decision {
        match (self, other) {
            (Decision::No, _) | (_, Decision::No) => Decision::No,
            (Decision::Yes, Decision::Yes) => Decision::Yes,
            _ => Decision::Open,
        }
    }
}

impl std::ops::Not for Decision {
    type Output = Decision;

    fn not(self) -> Decision {
        match self {
            Decision::Yes => Decision::No,
            Decision::No => Decision::Yes,
            Decision::Open => Decision::Open,
        }
    }
}

/// A mean with what is needed to test it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub value: f64,
    /// Standard error; 0 where nothing is random.
    pub error: f64,
    /// Degrees of freedom of the standard error.
    pub freedom: f64,
    pub cases: u64,
}

impl Mean {
    /// The mean of independent samples; `None` if there are none.
    pub fn of(samples: &[f64]) -> Option<Mean> {
        let n = samples.len() as f64;
        if samples.is_empty() {
            return None;
        }
        let value = samples.iter().sum::<f64>() / n;
        let variance = samples.iter().map(|sample| (sample - value).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        // One sample says nothing of how much the next differs.
        let error = if samples.len() == 1 { f64::INFINITY } else { (variance / n).sqrt() };
        Some(Mean { value, error, freedom: (n - 1.0).max(1.0), cases: samples.len() as u64 })
    }

    /// The mean of a long run, from the means of batches of consecutive samples.
    pub fn of_batches(batches: &[f64], cases: u64) -> Option<Mean> {
        Mean::of(batches).map(|mean| Mean { cases, ..mean })
    }

    /// A number that is no sample.
    pub fn exact(value: f64) -> Mean {
        Mean { value, error: 0.0, freedom: 1.0, cases: 1 }
    }

    /// The 95 % interval; the value itself if the error is 0 or not known.
    pub fn interval(&self) -> (f64, f64) {
        let half = match StudentsT::new(0.0, 1.0, self.freedom) {
            Ok(student) if self.error.is_finite() => student.inverse_cdf(1.0 - LEVEL / 2.0) * self.error,
            _ => 0.0,
        };
        (self.value - half, self.value + half)
    }

    /// This many times the mean.
    pub fn times(&self, factor: f64) -> Mean {
        Mean { value: self.value * factor, error: self.error * factor.abs(), ..*self }
    }

    /// The probability of such a value or a larger one if the true mean is `bound`. What is not random and equals the bound is not above it.
    pub fn above(&self, bound: f64) -> f64 {
        let t = match self.value - bound {
            0.0 if self.error == 0.0 => return 1.0,
            away if self.error == 0.0 => return if away > 0.0 { 0.0 } else { 1.0 },
            away => away / self.error,
        };
        StudentsT::new(0.0, 1.0, self.freedom).map_or(0.5, |student| 1.0 - student.cdf(t))
    }

    /// The probability of such a value or a smaller one if the true mean is `bound`.
    pub fn below(&self, bound: f64) -> f64 {
        1.0 - self.above(bound)
    }
}

/// Adjusts the probabilities of a family of tests: if those below [`LEVEL`] are rejected, a true hypothesis is among them with a probability of at
/// most that, however the tests depend on each other (Holm 1979).
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut adjusted = vec![1.0; probabilities.len()];
    let mut largest = 0.0f64;
    for (rank, at) in order.into_iter().enumerate() {
        largest = largest.max(probabilities[at] * (probabilities.len() - rank) as f64).min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

/// Fisher's exact test of two shares: the probability of a difference as large or larger if both have one cause. Each share is a count and
/// the number of cases.
pub fn shares_differ((a, of_a): (u64, u64), (b, of_b): (u64, u64)) -> f64 {
    let Ok(counts) = Hypergeometric::new(of_a + of_b, a + b, of_a) else { return 1.0 };
    let below = counts.cdf(a);
    let above = if a == 0 { 1.0 } else { 1.0 - counts.cdf(a - 1) };
    (2.0 * below.min(above)).min(1.0)
}

/// Whether all means lie above their bounds. Yes if each is shown to (an intersection-union test, which needs no adjustment); no if one is shown not to,
/// by Holm's method. Either is wrong with a probability of at most [`LEVEL`].
pub fn all_above(means: &[(Mean, f64)]) -> Decision {
    let against = holm(&means.iter().map(|(mean, bound)| mean.below(*bound)).collect::<Vec<_>>());
    match () {
        () if against.iter().any(|p| *p < LEVEL) => Decision::No,
        () if !means.is_empty() && means.iter().all(|(mean, bound)| mean.above(*bound) < LEVEL) => Decision::Yes,
        () => Decision::Open,
    }
}

/// The same for below.
pub fn all_below(means: &[(Mean, f64)]) -> Decision {
    all_above(&means.iter().map(|(mean, bound)| (mean.times(-1.0), -bound)).collect::<Vec<_>>())
}

/// Whether one of the means at least lies above its bound.
pub fn any_above(means: &[(Mean, f64)]) -> Decision {
    !all_below(means)
}

/// The difference of two independent means.
pub fn difference(a: &Mean, b: &Mean) -> Mean {
    let error = (a.error.powi(2) + b.error.powi(2)).sqrt();
    // Welch and Satterthwaite's degrees of freedom.
    let parts = a.error.powi(4) / a.freedom + b.error.powi(4) / b.freedom;
    let freedom = if parts > 0.0 && parts.is_finite() { error.powi(4) / parts } else { 1.0 };
    Mean { value: a.value - b.value, error, freedom, cases: a.cases.min(b.cases) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn holms_method_steps_down() {
        // 4 x 0.01, 3 x 0.02, 2 x 0.03 = 0.06 and never less than before, 0.5.
        let adjusted = holm(&[0.03, 0.01, 0.5, 0.02]);
        assert!(adjusted.iter().zip([0.06, 0.04, 0.5, 0.06]).all(|(a, b)| close(*a, b)), "{adjusted:?}");
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.9, 0.9]), [1.0, 1.0]);
    }

    #[test]
    fn shares_are_tested_exactly() {
        // Fisher's tea: 3 of 4 against 1 of 4 has a one-sided probability of 17/70.
        assert!(close(shares_differ((3, 4), (1, 4)), 2.0 * 17.0 / 70.0));
        assert!(close(shares_differ((0, 1000), (0, 1000)), 1.0));
        assert!(shares_differ((743, 1000), (600, 1000)) < 1e-9);
        assert!(shares_differ((743, 1000), (758, 1000)) > 0.4);
        // Fewer cases prove less.
        assert!(shares_differ((7, 10), (758, 1000)) > shares_differ((700, 1000), (758, 1000)));
    }

    #[test]
    fn means_are_tested_by_student() {
        let five = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let (low, high) = five.interval();
        assert!(close(high, 3.0 + 2.776_445 * 0.5f64.sqrt()) && close(low, 6.0 - high));
        // t = 2.776 has 2.5 % above it.
        assert!(close(five.above(low), 0.025) && close(five.below(high), 0.025) && close(five.above(3.0), 0.5));
        assert_eq!((Mean::exact(2.0).above(1.0), Mean::exact(2.0).below(1.0), Mean::exact(2.0).interval()), (0.0, 1.0, (2.0, 2.0)));
        assert_eq!(Mean::of(&[]), None);
        assert!(Mean::of(&[4.0]).unwrap().above(0.0) > 0.4);
    }

    #[test]
    fn few_cases_decide_nothing() {
        let two = Mean::of(&[0.0, 1.0]).unwrap();
        for decision in [all_above(&[(two, 0.4)]), all_below(&[(two, 0.4)]), any_above(&[(two, 0.4), (two, 0.6)]), all_above(&[])] {
            assert_eq!(decision, Decision::Open);
        }
        // What is shown of one and open of another is open; what is shown false of one is false.
        assert_eq!(all_above(&[(two, 0.4), (Mean::exact(1.0), 0.0)]), Decision::Open);
        assert_eq!(all_above(&[(two, 0.4), (Mean::exact(0.0), 1.0)]), Decision::No);
        // An equal number that is not random is neither above nor below.
        assert_eq!((all_above(&[(Mean::exact(1.0), 1.0)]), all_below(&[(Mean::exact(1.0), 1.0)])), (Decision::No, Decision::No));
        assert_eq!(
            (Decision::Yes.and(Decision::Open), Decision::Open.and(Decision::No), !Decision::No),
            (Decision::Open, Decision::No, Decision::Yes)
        );
    }

    #[test]
    fn a_family_is_wrong_as_seldom_as_it_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut sample =
            |mean: f64| -> Mean { Mean::of(&(0..30).map(|_| mean + rng.random_range(-1.0..1.0)).collect::<Vec<_>>()).unwrap() };
        let rejected =
            (0..1000).filter(|_| holm(&(0..10).map(|_| sample(0.0).below(0.0)).collect::<Vec<_>>()).iter().any(|p| *p < LEVEL)).count();
        assert!((20..80).contains(&rejected), "{rejected} of 1000");
        assert_eq!(all_above(&[(sample(1.0), 0.0), (sample(1.0), 0.0)]), Decision::Yes);
        assert_eq!(all_above(&[(sample(1.0), 0.0), (sample(-1.0), 0.0)]), Decision::No);
        assert_eq!((all_below(&[(sample(-1.0), 0.0)]), all_below(&[(sample(0.0), -1.0)])), (Decision::Yes, Decision::No));
        assert_eq!(
            (any_above(&[(sample(1.0), 0.0), (sample(-1.0), 0.0)]), any_above(&[(sample(-1.0), 0.0)])),
            (Decision::Yes, Decision::No)
        );
        let away = difference(&sample(2.0), &sample(1.0));
        assert!(away.above(0.0) < 1e-3 && (40.0..60.0).contains(&away.freedom), "{away:?}");
    }
}
