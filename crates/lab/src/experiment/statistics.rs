//! Statistics of repeated measurements, with their confidence.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The confidence that intervals are asked to have.
pub const CONFIDENCE: f64 = 0.95;

/// An estimate with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// Probability that such an interval covers the true value: at least 0.95 where the samples allow it. It is 0 for one sample, where the
    /// interval is the value.
    pub coverage: f64,
}

/// The median, with the narrowest interval between order statistics that covers the true median with 95 % or more, whatever the
/// distribution (the number of samples below it is binomial, n and 1/2). Up to five samples no such interval exists: it is then all
/// samples' range, and `coverage` is below 0.95. Nothing for no samples, or if one is not a number.
pub fn median(samples: &[f64]) -> Option<Estimate> {
    median_covered(samples, CONFIDENCE)
}

/// The median with an interval of the given confidence, between order statistics.
pub fn median_covered(samples: &[f64], confidence: f64) -> Option<Estimate> {
    let sorted = in_order(samples)?;
    let n = sorted.len();
    let value = middle(&sorted);
    // The interval from the k-th smallest to the k-th largest misses when fewer than k samples lie on one side: twice P(Bin(n, 1/2) < k).
    let mut k = 1;
    let mut below = log_half_binomial(n, 0).exp();
    loop {
        let further = below + log_half_binomial(n, k).exp();
        if 2 * (k + 1) > n || 1.0 - 2.0 * further < confidence {
            break;
        }
        (k, below) = (k + 1, further);
    }
    Some(Estimate { value, low: sorted[k - 1], high: sorted[n - k], coverage: (1.0 - 2.0 * below).max(0.0) })
}

/// The mean, with Student's t interval: exact for normal samples, nearly so for many of any kind. Nothing for no samples, or if one is not
/// a number.
pub fn mean(samples: &[f64]) -> Option<Estimate> {
    let sorted = in_order(samples)?;
    let n = sorted.len() as f64;
    let value = sorted.iter().sum::<f64>() / n;
    // A single sample has no degree of freedom, for which there is no distribution either.
    let Ok(student) = StudentsT::new(0.0, 1.0, n - 1.0) else {
        return Some(Estimate { value, low: value, high: value, coverage: 0.0 });
    };
    let variance = sorted.iter().map(|sample| (sample - value).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student.inverse_cdf((1.0 + CONFIDENCE) / 2.0) * (variance / n).sqrt();
    Some(Estimate { value, low: value - half, high: value + half, coverage: CONFIDENCE })
}

/// The value below which `percent` (0 to 100) per cent of the samples lie, linear between neighbouring samples (Hyndman and Fan 1996, type
/// 7). Nothing for no samples, or if one is not a number.
pub fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let sorted = in_order(samples)?;
    let at = (percent / 100.0).clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(if low == high { low } else { low + (high - low) * at.fract() })
}

/// The samples in ascending order, if there are any and all are numbers.
fn in_order(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.is_empty() || samples.iter().any(|sample| sample.is_nan()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

fn middle(sorted: &[f64]) -> f64 {
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    if low == high { low } else { low / 2.0 + high / 2.0 }
}

/// The logarithm of the probability of `k` heads in `n` throws.
fn log_half_binomial(n: usize, k: usize) -> f64 {
    statrs::function::factorial::ln_binomial(n as u64, k as u64) - n as f64 * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn numbered(n: u32) -> Vec<f64> {
        (1..=n).rev().map(f64::from).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn the_median_is_covered_by_known_order_statistics() {
        // n, ranks of the ends, coverage: the tables of Conover, "Practical Nonparametric Statistics", or the binomial sums themselves.
        for (n, low, high, coverage) in [
            (2, 1, 2, 0.5),
            (3, 1, 3, 0.75),
            (5, 1, 5, 0.9375),
            (6, 1, 6, 0.96875),
            (8, 1, 8, 0.9921875),
            (9, 2, 8, 0.9609375),
            (10, 2, 9, 0.978515625),
            (15, 4, 12, 0.96484375),
            (20, 6, 15, 0.958610535),
            (100, 40, 61, 0.964799800),
        ] {
            let estimate = median(&numbered(n)).unwrap();
            assert_eq!((estimate.low, estimate.high), (f64::from(low), f64::from(high)), "n = {n}");
            assert_eq!(estimate.value, f64::from(n + 1) / 2.0);
            assert!(close(estimate.coverage, coverage), "n = {n}: {}", estimate.coverage);
        }
        assert!(median(&numbered(100_000)).unwrap().coverage >= CONFIDENCE);
    }

    #[test]
    fn the_mean_has_students_interval() {
        // t(0.975) is 12.7062 with 1 degree of freedom, 2.776445 with 4, 2.262157 with 9.
        let two = mean(&[1.0, 3.0]).unwrap();
        assert!(close(two.value, 2.0) && close(two.high, 2.0 + 12.706_204_736), "{two:?}");
        let five = mean(&numbered(5)).unwrap();
        assert!(close(five.high - five.value, 2.776_445_105 * (2.5f64 / 5.0).sqrt()), "{five:?}");
        let ten = mean(&numbered(10)).unwrap();
        assert!(close(ten.value - ten.low, 2.262_157_163 * (9.166_666_667f64 / 10.0).sqrt()), "{ten:?}");
    }

    #[test]
    fn few_samples_are_defined() {
        assert_eq!((median(&[]), mean(&[]), percentile(&[], 50.0)), (None, None, None));
        assert_eq!((median(&[1.0, f64::NAN]), mean(&[f64::NAN]), percentile(&[f64::NAN], 5.0)), (None, None, None));
        let alone = Some(Estimate { value: 7.0, low: 7.0, high: 7.0, coverage: 0.0 });
        assert_eq!((median(&[7.0]), mean(&[7.0]), percentile(&[7.0], 99.0)), (alone, alone, Some(7.0)));
        assert_eq!(median(&[f64::INFINITY; 2]).unwrap().value, f64::INFINITY);
    }

    #[test]
    fn percentiles_are_linear_between_samples() {
        for (percent, value) in [(0.0, 1.0), (25.0, 1.75), (50.0, 2.5), (90.0, 3.7), (100.0, 4.0), (140.0, 4.0)] {
            assert!(close(percentile(&numbered(4), percent).unwrap(), value));
        }
    }

    #[test]
    fn intervals_cover_as_often_as_they_say() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (cases, n) = (4000, 11);
        let (mut medians, mut means, mut promised) = (0, 0, 0.0);
        for _ in 0..cases {
            let samples: Vec<f64> = (0..n).map(|_| rng.random_range(0.0..1.0)).collect();
            let (middle, average) = (median(&samples).unwrap(), mean(&samples).unwrap());
            medians += u32::from(middle.low <= 0.5 && 0.5 <= middle.high);
            means += u32::from(average.low <= 0.5 && 0.5 <= average.high);
            promised = middle.coverage;
        }
        let (medians, means) = (f64::from(medians) / f64::from(cases), f64::from(means) / f64::from(cases));
        assert!((medians - promised).abs() < 0.012 && (means - CONFIDENCE).abs() < 0.015, "{medians} of {promised}, {means}");
    }

    proptest! {
        #[test]
        fn estimates_lie_within_their_intervals(samples in prop::collection::vec(-1e6f64..1e6, 1..60)) {
            for estimate in [median(&samples).unwrap(), mean(&samples).unwrap()] {
                prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
            }
            let half = median(&samples).unwrap();
            prop_assert!((percentile(&samples, 50.0).unwrap() - half.value).abs() <= 1e-9 * half.value.abs().max(1.0));
            prop_assert_eq!(half.coverage >= CONFIDENCE, samples.len() >= 6);
        }
    }
}
