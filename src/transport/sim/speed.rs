//! Speed of a rank's computation.

use crate::error::{Error, Result};
use crate::transport::Ticks;

/// A positive rational number: a rank of speed 2 computes in half the time. Times are rounded up to whole ticks, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    numerator: u64,
    denominator: u64,
}

/// Decimals kept of a speed that is given as a floating-point number.
const DECIMALS: f64 = 1e6;

impl Default for Speed {
    fn default() -> Speed {
        Speed { numerator: 1, denominator: 1 }
    }
}

impl Speed {
    /// The speed `numerator / denominator`.
    ///
    /// # Errors
    /// If either is zero.
    pub fn ratio(numerator: u64, denominator: u64) -> Result<Speed> {
        match (numerator, denominator) {
            (0, _) | (_, 0) => Err(Error::usage(format!("a rank's speed must be above 0, not {numerator}/{denominator}"))),
            _ => {
                let (mut divisor, mut rest) = (numerator, denominator);
                while rest > 0 {
                    (divisor, rest) = (rest, divisor % rest);
                }
                Ok(Speed { numerator: numerator / divisor, denominator: denominator / divisor })
            }
        }
    }

    /// A speed rounded to six decimals.
    ///
    /// # Errors
    /// If it is not a number from 0.000001 to 10^12.
    pub fn new(speed: f64) -> Result<Speed> {
        let scaled = (speed * DECIMALS).round();
        if !(1.0..=1e18).contains(&scaled) {
            return Err(Error::usage(format!("a rank's speed must be from 0.000001 to 10^12, not {speed}")));
        }
        Speed::ratio(scaled as u64, DECIMALS as u64)
    }

    /// The speed as a floating-point number.
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Time for work that takes a rank of speed 1 this number of ticks.
    pub fn time(self, ticks: Ticks) -> Ticks {
        let product = u128::from(ticks) * u128::from(self.denominator);
        Ticks::try_from(product.div_ceil(u128::from(self.numerator))).unwrap_or(Ticks::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_divided_exactly_and_rounded_up() {
        assert_eq!(Speed::default().time(u64::MAX), u64::MAX);
        assert_eq!(Speed::new(2.0).unwrap().time(7), 4);
        assert_eq!(Speed::new(0.1).unwrap().time(3), 30);
        assert_eq!(Speed::ratio(1, 3).unwrap().time(1_000_000_007), 3_000_000_021);
        assert_eq!(Speed::ratio(1, 3).unwrap().time(u64::MAX), u64::MAX);
    }

    #[test]
    fn impossible_speeds_are_refused() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9, 1e13] {
            assert!(Speed::new(speed).is_err(), "{speed}");
        }
        assert_eq!(Speed::new(0.5), Speed::ratio(3, 6), "in lowest terms");
        assert!(Speed::ratio(0, 1).is_err() && Speed::ratio(1, 0).is_err());
    }
}
