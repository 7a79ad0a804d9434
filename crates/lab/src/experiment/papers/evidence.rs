//! Whether chance explains what was measured: tests of means and shares, Holm's method for several of them, and control variates.

use statrs::distribution::{ContinuousCDF, DiscreteCDF, Hypergeometric, StudentsT};

/// The probability with which all tests of a family together are wrong if nothing differs.
pub const LEVEL: f64 = 0.05;

/// Judgement of measurements on a statement. With ever more cases it becomes yes or no.
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
    /// Standard error; 0 where nothing is random, or all samples are alike.
    pub error: f64,
    /// Degrees of freedom of the standard error; infinite where nothing is random.
    pub freedom: f64,
    pub cases: u64,
}

/// Share of all cases that may differ from samples that are all alike: n samples would be alike with a probability of (1 - this)^n if this share of all
/// cases differed, and with fewer the mean lies beyond a bound only if those that differ are more than ten times as far away as the bound.
const DIFFERING: f64 = 0.1;

impl Mean {
    /// The mean of independent samples; `None` if there are none.
    pub fn of(samples: &[f64]) -> Option<Mean> {
        let n = samples.len() as f64;
        if samples.is_empty() {
            return None;
        }
        // Rounding of the sum would make a spread where there is none.
        let is_alike = samples.iter().all(|sample| *sample == samples[0]);
        let value = if is_alike { samples[0] } else { samples.iter().sum::<f64>() / n };
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
        Mean { value, error: 0.0, freedom: f64::INFINITY, cases: 1 }
    }

    /// The 95 % interval; the value itself if the error is 0 or not known.
    pub fn interval(&self) -> (f64, f64) {
        let half = match StudentsT::new(0.0, 1.0, self.freedom) {
            Ok(student) if self.error.is_finite() && self.error > 0.0 => student.inverse_cdf(1.0 - LEVEL / 2.0) * self.error,
            _ => 0.0,
        };
        (self.value - half, self.value + half)
    }

    /// This many times the mean.
    pub fn times(&self, factor: f64) -> Mean {
        Mean { value: self.value * factor, error: self.error * factor.abs(), ..*self }
    }

    /// Whether it is a number that nothing random went into.
    fn is_exact(&self) -> bool {
        self.error == 0.0 && self.freedom.is_infinite()
    }

    /// The probability of such a value or a larger one if the true mean is `bound`: Student's, but never less than what the samples' number allows.
    /// Few samples may be near each other by chance, and all alike where others would not be. So it is at least 2^-n, the least of a sign test, and
    /// 0.9^n where all n are alike; samples that are all on the bound say nothing of the mean's side. What is not random and equals the
    /// bound is not above it.
    pub fn above(&self, bound: f64) -> f64 {
        if self.is_exact() {
            return if self.value > bound { 0.0 } else { 1.0 };
        }
        let away = self.value - bound;
        let samples = self.freedom + 1.0;
        if self.error == 0.0 {
            return if away > 0.0 { (1.0 - DIFFERING).powf(samples) } else { 1.0 };
        }
        let student = StudentsT::new(0.0, 1.0, self.freedom).map_or(0.5, |student| 1.0 - student.cdf(away / self.error));
        student.max(0.5f64.powf(samples))
    }

    /// The probability of such a value or a smaller one if the true mean is `bound`. What is not random and equals the bound is no larger.
    pub fn below(&self, bound: f64) -> f64 {
        match self.is_exact() {
            true => 1.0 - self.above(bound),
            false => self.times(-1.0).above(-bound),
        }
    }
}

/// The mean of samples that depend on quantities whose true means are known: `controls` has for each sample how far each of these was from its
/// mean. What a linear regression explains by them is taken out, from the value and from its error (control variates; Lavenberg and Welch, "A
/// perspective on the use of control variables to increase the efficiency of Monte Carlo simulations", Management Science 27, 1981). Each control
/// costs a degree of freedom; where the samples are too few for that the mean is the plain one.
pub fn controlled<const N: usize>(samples: &[f64], controls: &[[f64; N]]) -> Option<Mean> {
    let plain = Mean::of(samples)?;
    let n = samples.len() as f64;
    let freedom = n - 1.0 - N as f64;
    if controls.len() != samples.len() || freedom < 1.0 {
        return Some(plain);
    }
    // The controls one after the other, each without what the earlier ones say: as deviations from its mean here, and how far that is from the true one.
    let mut apart: Vec<(Vec<f64>, f64)> = Vec::new();
    for at in 0..N {
        let mut off = controls.iter().map(|control| control[at]).sum::<f64>() / n;
        let mut column: Vec<f64> = controls.iter().map(|control| control[at] - off).collect();
        let whole = dot(&column, &column);
        for (earlier, earlier_off) in &apart {
            let part = dot(&column, earlier) / dot(earlier, earlier);
            column.iter_mut().zip(earlier).for_each(|(one, other)| *one -= part * other);
            off -= part * earlier_off;
        }
        // One that does not vary, or only with the earlier ones, explains nothing.
        if dot(&column, &column) > 1e-9 * whole {
            apart.push((column, off));
        }
    }
    let (mut value, mut spread) = (plain.value, 1.0 / n);
    let mut left: Vec<f64> = samples.iter().map(|sample| sample - plain.value).collect();
    for (column, off) in &apart {
        let square = dot(column, column);
        let slope = dot(&left, column) / square;
        left.iter_mut().zip(column).for_each(|(one, control)| *one -= slope * control);
        value -= slope * off;
        spread += off * off / square;
    }
    Some(Mean { value, error: (dot(&left, &left) / freedom * spread).sqrt(), freedom, ..plain })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `of_a * a - of_b * b`, where both were measured on the same cases: with the error that follows from that of their difference there.
pub fn paired((a, of_a): (&Mean, f64), (b, of_b): (&Mean, f64), a_less_b: &Mean) -> Mean {
    let [a_square, b_square, difference] = [a, b, a_less_b].map(|mean| mean.error.powi(2));
    let square = of_a * (of_a - of_b) * a_square + of_b * (of_b - of_a) * b_square + of_a * of_b * difference;
    Mean { value: of_a * a.value - of_b * b.value, error: square.max(0.0).sqrt(), ..*a_less_b }
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
    let freedom = match () {
        () if error == 0.0 => a.freedom.min(b.freedom),
        () if parts > 0.0 && parts.is_finite() => error.powi(4) / parts,
        () => 1.0,
    };
    Mean { value: a.value - b.value, error, freedom, cases: a.cases.min(b.cases) }
}

/// The ratio of two independent means, with the error to first order in theirs (delta method).
pub fn ratio(a: &Mean, b: &Mean) -> Mean {
    let away = difference(a, &b.times(a.value / b.value));
    Mean { value: a.value / b.value, ..away.times(1.0 / b.value) }
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
        // t = 2.132 has 5 % above it; t = 2.776 has 2.5 %, which is less than five tosses of a coin can have.
        let away = 2.131_847 * 0.5f64.sqrt();
        assert!(close(five.above(3.0 - away), 0.05) && close(five.below(3.0 + away), 0.05) && close(five.above(3.0), 0.5));
        assert!(close(five.above(low), 1.0 / 32.0) && close(five.below(high), 1.0 / 32.0));
        assert_eq!((Mean::exact(2.0).above(1.0), Mean::exact(2.0).below(1.0), Mean::exact(2.0).interval()), (0.0, 1.0, (2.0, 2.0)));
        assert_eq!(Mean::of(&[]), None);
        assert!(Mean::of(&[4.0]).unwrap().above(0.0) > 0.4);
    }

    #[test]
    fn ratios_have_the_errors_of_both_means() {
        let mean = |value, error| Mean { value, error, freedom: 20.0, cases: 21 };
        let found = ratio(&mean(6.0, 0.3), &mean(2.0, 0.2));
        // 5 % and 10 %, of the same number.
        assert!(close(found.value, 3.0) && close(found.error, 3.0 * 0.05f64.hypot(0.1)), "{found:?}");
        assert_eq!(ratio(&Mean::exact(3.0), &Mean::exact(4.0)), Mean::exact(0.75));
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
    fn samples_that_are_alike_are_no_certainty() {
        let alike = |n: usize| Mean::of(&vec![0.2; n]).unwrap();
        // Two cases that happen to be the same decide nothing, on either side and in a family; a hundred do.
        for n in [1, 2, 5, 20] {
            assert_eq!((all_above(&[(alike(n), 0.0)]), all_below(&[(alike(n), 0.0)])), (Decision::Open, Decision::Open), "{n}");
        }
        assert_eq!((all_above(&[(alike(100), 0.0)]), all_below(&[(alike(100), 0.0)])), (Decision::Yes, Decision::No));
        assert!(close(alike(29).above(0.1), 0.9f64.powi(29)) && alike(29).above(0.1) < LEVEL && alike(28).above(0.1) > LEVEL);
        // On the bound any number of them leaves open on which side the mean is; a number that is not random is decided.
        assert_eq!((all_above(&[(alike(1000), 0.2)]), all_below(&[(alike(1000), 0.2)])), (Decision::Open, Decision::Open));
        assert_eq!((all_above(&[(Mean::exact(0.2), 0.1)]), all_above(&[(Mean::exact(0.2), 0.2)])), (Decision::Yes, Decision::No));
        // Nor do two that are nearly the same, and neither do differences of such means.
        let near = Mean::of(&[0.2, 0.2 + 1e-9]).unwrap();
        assert_eq!((all_above(&[(near, 0.0)]), all_below(&[(near, 0.0)])), (Decision::Open, Decision::Open));
        assert_eq!(all_above(&[(difference(&alike(2), &Mean::of(&[0.1, 0.1]).unwrap()), 0.0)]), Decision::Open);
        assert_eq!(all_above(&[(difference(&Mean::exact(0.2), &Mean::exact(0.1)), 0.0)]), Decision::Yes);
    }

    #[test]
    fn control_variates_leave_the_mean_as_it_is_and_take_error_out() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let (mut plain, mut better, mut covered, repeats) = (Vec::new(), Vec::new(), 0, 2000);
        for _ in 0..repeats {
            let controls: Vec<[f64; 2]> = (0..20).map(|_| [0; 2].map(|_| rng.random_range(-1.0..1.0f64))).collect();
            // The mean is 3 + E(c^2) / 10 = 3 + 1 / 30: not all of the dependence is linear.
            let sample = |[a, b]: [f64; 2], noise: f64| 3.0 + 2.0 * a - b + 0.1 * a * a + noise;
            let samples: Vec<f64> = controls.iter().map(|control| sample(*control, rng.random_range(-0.5..0.5))).collect();
            let mean = controlled(&samples, &controls).unwrap();
            let (low, high) = mean.interval();
            covered += u32::from(low <= 3.0 + 1.0 / 30.0 && 3.0 + 1.0 / 30.0 <= high);
            plain.push(Mean::of(&samples).unwrap().value);
            better.push(mean.value);
            assert_eq!((mean.freedom, mean.cases), (17.0, 20));
        }
        let (plain, better) = (Mean::of(&plain).unwrap(), Mean::of(&better).unwrap());
        assert!((better.value - 3.0 - 1.0 / 30.0).abs() < 3.0 * better.error, "{better:?}");
        assert!(better.error < plain.error / 3.0, "{better:?} {plain:?}");
        assert!((0.935..0.965).contains(&(f64::from(covered) / f64::from(repeats))), "{covered}");
    }

    #[test]
    fn control_variates_need_samples_and_must_vary() {
        let samples = [1.0, 2.0, 4.0, 3.0];
        // With as many controls as samples nothing is left to estimate the error.
        assert_eq!(controlled(&samples[..3], &[[1.0, 2.0], [0.0, 1.0], [2.0, 0.0]]), Mean::of(&samples[..3]));
        // A control that is always the same, and one that repeats another.
        let flat = controlled(&samples, &[[0.5], [0.5], [0.5], [0.5]]).unwrap();
        assert!(close(flat.value, 2.5) && flat.freedom == 2.0);
        let [once, twice] = [
            controlled(&samples, &[[-1.0], [0.0], [1.0], [1.0]]).unwrap(),
            controlled(&samples, &[[-1.0, -2.0], [0.0, 0.0], [1.0, 2.0], [1.0, 2.0]]).unwrap(),
        ];
        assert!(close(once.value, twice.value) && close(once.error * once.freedom.sqrt(), twice.error * twice.freedom.sqrt()));
        // On a line the value is that at the control's true mean.
        let line = controlled(&[1.0, 2.0, 3.0, 5.0], &[[-1.0], [0.0], [1.0], [3.0]]).unwrap();
        assert!(close(line.value, 2.0) && line.error < 1e-9, "{line:?}");
    }

    #[test]
    fn what_is_measured_on_the_same_cases_is_compared_case_by_case() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let cases: Vec<[f64; 2]> = (0..30)
            .map(|_| (rng.random_range(0.0..10.0), rng.random_range(0.0..0.2)))
            .map(|(both, own): (f64, f64)| [both + 0.1, both + own])
            .collect();
        let mean = |of: fn(&[f64; 2]) -> f64| Mean::of(&cases.iter().map(of).collect::<Vec<_>>()).unwrap();
        let (a, b, less) = (mean(|case| case[0]), mean(|case| case[1]), mean(|case| case[0] - case[1]));
        let same = |one: Mean, other: Mean| close(one.value, other.value) && close(one.error, other.error);
        assert!(same(paired((&a, 1.0), (&b, 1.0), &less), less));
        assert!(same(paired((&a, 0.8), (&b, 1.0), &less), mean(|case| 0.8 * case[0] - case[1])));
        assert!(same(paired((&a, 1.0), (&b, 1.1), &less), mean(|case| case[0] - 1.1 * case[1])));
        // As independent means they could not be told apart.
        assert!(less.error < difference(&a, &b).error / 20.0);
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
