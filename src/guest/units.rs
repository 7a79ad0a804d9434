//! Weights as whole units, and numbers near 1 whose sums are finite.

/// The sum of all units is at least this, and below twice this.
const SUM: f64 = (1u64 << 61) as f64;

/// Weights as whole units: times the one power of two that brings their sum into [2^61, 2^62), rounded to even, at least 1 if above 0.
///
/// The weights are finite and at least 0.
pub fn units(weights: &[f64]) -> Vec<u64> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return vec![0; weights.len()];
    }
    // Brought near 1 first, so that the sum is finite and exact enough.
    let near = -exponent(largest);
    let sum: f64 = weights.iter().map(|weight| scaled(*weight, near)).sum();
    let power = near + exponent(SUM) - exponent(sum);
    weights.iter().map(|weight| (scaled(*weight, power).round_ties_even() as u64).max(u64::from(*weight > 0.0))).collect()
}

/// Numbers times the one power of two that brings the largest into [1, 2), and the exponent that brings them back. Their sums are finite and
/// exact enough, whatever the unit was. A number above 0 stays above 0.
///
/// The numbers are finite and at least 0.
pub fn near_one(numbers: &[f64]) -> (Vec<f64>, i32) {
    let largest = numbers.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return (numbers.to_vec(), 0);
    }
    let power = exponent(largest);
    let near = |number: &f64| if *number > 0.0 { scaled(*number, -power).max(f64::from_bits(1)) } else { 0.0 };
    (numbers.iter().map(near).collect(), power)
}

/// The power of two that is at most this number, which is above 0.
fn exponent(number: f64) -> i32 {
    let bits = number.to_bits() >> 52;
    match bits {
        // Below the normal ones.
        0 => exponent(number * 2f64.powi(64)) - 64,
        bits => bits as i32 - 1023,
    }
}

/// A number times a power of two beyond what one factor can be.
pub(super) fn scaled(number: f64, power: i32) -> f64 {
    let half = power / 2;
    number * 2f64.powi(half) * 2f64.powi(power - half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn extremes() {
        assert_eq!(units(&[]), [0u64; 0]);
        assert_eq!(units(&[0.0, 0.0]), [0, 0]);
        assert_eq!(units(&[1.0]), [1 << 61]);
        assert_eq!(units(&[3.0, 1.0]), [3 << 59, 1 << 59]);
        assert_eq!(units(&[f64::MAX, f64::MAX]), units(&[1.0, 1.0]).iter().map(|_| ((1u128 << 61) - (1 << 8)) as u64).collect::<Vec<_>>());
        let tiny = f64::from_bits(1);
        assert_eq!(units(&[tiny]), [1 << 61]);
        // At least 1 if above 0.
        assert_eq!(units(&[1.0, 1e-300])[1], 1);
    }

    #[test]
    fn numbers_near_one_are_the_same_but_for_the_unit() {
        assert_eq!(near_one(&[3.0, 0.0, 0.75]), (vec![1.5, 0.0, 0.375], 1));
        assert_eq!(near_one(&[0.0]), (vec![0.0], 0));
        assert_eq!(near_one(&[1e308, 1e308]).0, near_one(&[1e308 / 4.0; 2]).0);
        assert_eq!(near_one(&[5e-324, 5e-324]), (vec![1.0, 1.0], -1074));
        // Next to the largest it is as good as nothing, but above 0.
        assert_eq!(near_one(&[1e308, 1e-308]).0[1], 5e-324);
    }

    proptest! {
        #[test]
        fn the_sum_is_where_it_should_be(weights in prop::collection::vec(1e-30f64..1e30, 1..50)) {
            let sum: u128 = units(&weights).iter().map(|unit| u128::from(*unit)).sum();
            let slack = weights.len() as u128 + 1024;
            prop_assert!(sum + slack >= 1 << 61 && sum <= (1 << 62) + slack, "{sum}");
        }
    }
}
