//! Decimal numbers, exactly.

use std::fmt;

use serde::{Serialize, Serializer};

use super::items::shortened;

/// Maximum number of decimal places.
const MOST_PLACES: usize = 9;

/// A number of at least 0 with at most nine digits after the point, exactly as it was typed: `digits / 10^places`. As JSON it is a plain
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decimal {
    digits: u64,
    /// Digits after the point, the last of them not 0.
    places: u8,
}

impl Decimal {
    /// Reads `3`, `1.5`, `.5` or `25e-1`.
    ///
    /// # Errors
    /// A clause that follows a colon if it is no number, is negative, has more than nine digits after the point or is beyond 2^64 - 1.
    pub fn parse(text: &str) -> Result<Decimal, String> {
        let shown = shortened(text);
        let number = || format!("\"{shown}\" is not a finite number");
        if text.is_empty() {
            return Err("a number is missing".into());
        }
        if let Some(rest) = text.strip_prefix('-') {
            return Err(if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') { format!("{shown} is negative") } else { number() });
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent).ok_or_else(number)?),
            None => (text, 0),
        };
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{before}{after}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(number());
        }
        let digits = all.trim_start_matches('0').trim_end_matches('0');
        if digits.is_empty() {
            return Ok(Decimal::default());
        }
        // The number is `digits * 10^power`.
        let trailing = (all.len() - all.trim_end_matches('0').len()) as i64;
        let power = exponent.saturating_add(trailing).saturating_sub(after.len() as i64);
        let beyond = || format!("{shown} is beyond 2^64 - 1");
        if power < -(MOST_PLACES as i64) {
            return Err(format!("{shown} has more than {MOST_PLACES} digits after the point"));
        }
        let digits: u64 = digits.parse().map_err(|_| beyond())?;
        if power <= 0 {
            return Ok(Decimal { digits, places: -power as u8 });
        }
        let scale = u32::try_from(power).ok().and_then(|power| 10u64.checked_pow(power));
        let digits = scale.and_then(|scale| digits.checked_mul(scale)).ok_or_else(beyond)?;
        Ok(Decimal { digits, places: 0 })
    }

    /// The nearest floating-point number. A division would round twice; reading the decimal form rounds once.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Digits after the point, the last of them not 0.
    pub(super) fn places(self) -> u8 {
        self.places
    }

    /// Returns it multiplied by a power of ten with at least its number of places; `None` beyond 2^64 - 1.
    pub(super) fn times(self, power: u64) -> Option<u64> {
        self.digits.checked_mul(power / 10u64.pow(u32::from(self.places)))
    }

    /// Returns true if it is 0.
    pub fn is_zero(self) -> bool {
        self.digits == 0
    }
}

/// An exponent; one too long for an i64 is as good as the largest.
fn exponent_of(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| sign * digits.parse::<i64>().unwrap_or(i64::MAX))
}

/// The same numbers as integers, all multiplied by the least power of ten that makes every one whole; or the index of the first that is
/// then beyond 2^64 - 1.
pub(super) fn scaled(numbers: &[Decimal]) -> Result<Vec<u64>, usize> {
    let places = numbers.iter().map(|number| number.places).max().unwrap_or(0);
    let integer = |(index, number): (usize, &Decimal)| number.digits.checked_mul(10u64.pow(u32::from(places - number.places))).ok_or(index);
    numbers.iter().enumerate().map(integer).collect()
}

impl From<u64> for Decimal {
    fn from(digits: u64) -> Decimal {
        Decimal { digits, places: 0 }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10u64.pow(u32::from(self.places));
        match self.places {
            0 => f.pad(&self.digits.to_string()),
            places => f.pad(&format!("{}.{:0width$}", self.digits / one, self.digits % one, width = usize::from(places))),
        }
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.places {
            0 => serializer.serialize_u64(self.digits),
            _ => serializer.serialize_f64(self.to_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        for (text, shown) in [
            ("3", "3"),
            ("1.5", "1.5"),
            ("1.50", "1.5"),
            ("007", "7"),
            (".5", "0.5"),
            ("2.", "2"),
            ("0.000000001", "0.000000001"),
            ("25e-1", "2.5"),
            ("1.2e3", "1200"),
            ("1e+2", "100"),
            ("0", "0"),
            ("0.0e999", "0"),
            ("100", "100"),
            ("18446744073709551615", "18446744073709551615"),
            ("1.0000000000000000000000000", "1"),
        ] {
            assert_eq!(Decimal::parse(text).map(|number| number.to_string()), Ok(shown.to_string()), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_said_so() {
        for (text, why) in [
            ("", "a number is missing"),
            ("NaN", "\"NaN\" is not a finite number"),
            ("inf", "\"inf\" is not a finite number"),
            ("-inf", "\"-inf\" is not a finite number"),
            (".", "\".\" is not a finite number"),
            ("1e", "\"1e\" is not a finite number"),
            ("1.2.3", "\"1.2.3\" is not a finite number"),
            ("-1", "-1 is negative"),
            ("1e400", "1e400 is beyond 2^64 - 1"),
            ("1e99999999999999999999999", "1e99999999999999999999999 is beyond 2^64 - 1"),
            ("1e-400", "1e-400 has more than 9 digits after the point"),
            ("1e-99999999999999999999999", "1e-99999999999999999999999 has more than 9 digits after the point"),
            ("0.1234567891", "0.1234567891 has more than 9 digits after the point"),
            ("18446744073709551616", "18446744073709551616 is beyond 2^64 - 1"),
        ] {
            assert_eq!(Decimal::parse(text), Err(why.to_string()));
        }
    }

    #[test]
    fn a_list_is_scaled_as_a_whole() {
        let numbers = |texts: &[&str]| texts.iter().map(|text| Decimal::parse(text).unwrap()).collect::<Vec<_>>();
        assert_eq!(scaled(&numbers(&["3", "1.5", "0.25", "0"])), Ok(vec![300, 150, 25, 0]));
        assert_eq!(scaled(&numbers(&["3", "5"])), Ok(vec![3, 5]));
        assert_eq!(scaled(&numbers(&["1", "0.000000001", "18446744074"])), Err(2));
        assert_eq!(serde_json::to_string(&numbers(&["3", "1.5"])).unwrap(), "[3,1.5]");
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(digits: u64, places in 0u8..=9) {
            let text = Decimal { digits, places }.to_string();
            let number = Decimal::parse(&text).unwrap();
            prop_assert_eq!(u128::from(number.digits) * 10u128.pow(u32::from(places - number.places)), u128::from(digits));
            prop_assert_eq!(Decimal::parse(&number.to_string()), Ok(number));
            prop_assert_eq!(number.to_f64(), text.parse::<f64>().unwrap());
        }
    }
}
