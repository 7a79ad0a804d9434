//! Numbers of bytes and times, as every option, directive and file takes them: `4096`, `500M`, `8e9`, `2GiB`; `20us`, `1.5ms`, `1e-3s`. They are
//! read as decimal numbers, so that no digit is lost.
//!
//! An option whose times are in seconds takes a number without a unit, too, and hours and minutes ([`seconds`]).

/// Number of bytes that the letters k, M, G and T mean. Each option has kept the meaning that it always had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefixes {
    /// Powers of 1000. With `iB`, as in `2GiB`, they are powers of 1024.
    Decimal,
    /// Powers of 1024, as in Slurm's requests for memory.
    Binary,
}

/// Description of what [`bytes()`] takes, for sentences.
pub const BYTES: &str = "a whole number of bytes below 2^64, such as 4096, 500M, 8e9 or 2GiB";

/// Description of a time with its unit, for sentences.
pub const TIME: &str = "a time such as 200ms, 1.5us or 0s";

/// Description of what [`seconds`] takes, for sentences.
pub const SECONDS: &str = "a number of seconds, 0 or more, such as 0.5, 500ms or 1:30:00";

/// Description of what [`seconds`] takes where 0 makes no sense.
pub const SECONDS_ABOVE_0: &str = "a number of seconds above 0, such as 0.5, 500ms or 1:30:00";

/// Units of time, the longest first, with their powers of ten of a second.
pub const UNITS: [(&str, i32); 5] = [("s", 0), ("ms", -3), ("us", -6), ("ns", -9), ("ps", -12)];

/// Number of bytes: a whole number, also as in `8e9`, with k, M, G or T (of either case) after it if need be, and B or iB after that. `None` if the
/// text is none, or does not fit.
pub fn bytes(text: &str, prefixes: Prefixes) -> Option<u64> {
    let (text, prefixes) = match text.strip_suffix("iB") {
        Some(number) => (number, Prefixes::Binary),
        None => (text.strip_suffix('B').unwrap_or(text), prefixes),
    };
    let thousand: u64 = match prefixes {
        Prefixes::Decimal => 1000,
        Prefixes::Binary => 1024,
    };
    let powers = [(['k', 'K'], 1), (['m', 'M'], 2), (['g', 'G'], 3), (['t', 'T'], 4)];
    let with_letter = powers.iter().find_map(|(letters, power)| Some((text.strip_suffix(letters)?, *power)));
    let (number, power) = with_letter.unwrap_or((text, 0));
    u64::try_from(Decimal::parse(number)?.whole(0)?).ok()?.checked_mul(thousand.pow(power))
}

/// Picoseconds of a time with its unit. `None` if the text is none, is no whole number of picoseconds, or does not fit.
pub fn picoseconds(text: &str) -> Option<u64> {
    u64::try_from(time(text)?.whole(12)?).ok()
}

/// Nanoseconds of a time with its unit, rounded. `None` if the text is none, or is longer than some months, beyond which sums of times might not fit.
pub fn nanoseconds(text: &str) -> Option<u64> {
    const LONGEST: f64 = 1e16;
    let nanoseconds = time(text)?.nearest(9)?.round();
    (nanoseconds <= LONGEST).then_some(nanoseconds as u64)
}

/// Seconds of a time with its unit. `None` if the text is none, or does not fit.
pub fn seconds_with_unit(text: &str) -> Option<f64> {
    time(text)?.nearest(0)
}

/// Seconds of a time where a number without a unit is one of seconds: `90`, `1e-3`, `500ms`, `1:30` (minutes and seconds), `1:30:00`, `2-0:00:01`
/// (with days). `None` if the text is none, or does not fit.
pub fn seconds(text: &str) -> Option<f64> {
    match Decimal::parse(text).or_else(|| time(text)) {
        Some(seconds) => seconds.nearest(0),
        None => clock(text),
    }
}

fn time(text: &str) -> Option<Decimal> {
    // Each unit ends with that of seconds, which therefore comes last.
    let (unit, power) = UNITS.iter().rev().find(|(unit, _)| text.ends_with(unit))?;
    Decimal::parse(&text[..text.len() - unit.len()])?.shifted(*power)
}

fn clock(text: &str) -> Option<f64> {
    let part = |text: &str| Decimal::parse(text).filter(|_| !text.starts_with('+'))?.nearest(0);
    let (days, clock) = text.split_once('-').map_or((None, text), |(days, clock)| (Some(days), clock));
    let mut sum = 0.0;
    for text in clock.split(':') {
        sum = sum * 60.0 + part(text)?;
    }
    let days = days.map_or(Some(0.0), part)?;
    Some(days * 86400.0 + sum).filter(|seconds| seconds.is_finite())
}

/// A decimal number that is not negative: its digits, and the power of ten of the last one.
struct Decimal {
    digits: String,
    power: i32,
}

impl Decimal {
    /// Reads `12`, `+12`, `1.2`, `.5`, `5.` or one of these with an exponent.
    fn parse(text: &str) -> Option<Decimal> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then_some(Decimal { digits, power: exponent })?.shifted(i32::try_from(fraction.len()).ok()?.checked_neg()?)
    }

    /// This number times a power of ten.
    fn shifted(self, power: i32) -> Option<Decimal> {
        Some(Decimal { power: self.power.checked_add(power)?, ..self })
    }

    /// This number times a power of ten, if that is a whole number which fits.
    fn whole(&self, power: i32) -> Option<u128> {
        let digits = self.digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        if significant.is_empty() {
            return Some(0);
        }
        let zeros = i32::try_from(digits.len() - significant.len()).ok()?;
        let power = self.power.checked_add(zeros)?.checked_add(power)?;
        significant.parse::<u128>().ok()?.checked_mul(10u128.checked_pow(u32::try_from(power).ok()?)?)
    }

    /// The floating-point number that is nearest to this one times a power of ten.
    fn nearest(&self, power: i32) -> Option<f64> {
        let power = self.power.checked_add(power)?;
        format!("{}e{power}", self.digits).parse().ok().filter(|number: &f64| number.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_every_form() {
        for (text, decimal, binary) in [
            ("0", 0, 0),
            ("7", 7, 7),
            ("+7", 7, 7),
            ("7B", 7, 7),
            ("8e9", 8_000_000_000, 8_000_000_000),
            ("1.5E3", 1500, 1500),
            ("20.0", 20, 20),
            ("1e3k", 1_000_000, 1_024_000),
            ("4k", 4000, 4096),
            ("4KB", 4000, 4096),
            ("4KiB", 4096, 4096),
            ("64M", 64_000_000, 64 << 20),
            ("64m", 64_000_000, 64 << 20),
            ("2G", 2_000_000_000, 2 << 30),
            ("2GiB", 2 << 30, 2 << 30),
            ("1T", 1_000_000_000_000, 1 << 40),
            ("18446744073709551615", u64::MAX, u64::MAX),
        ] {
            let read = [Prefixes::Decimal, Prefixes::Binary].map(|prefixes| bytes(text, prefixes));
            assert_eq!(read, [Some(decimal), Some(binary)], "{text}");
        }
        let wrong = "  k -1 -k 1.5 1.5M 1e-1 1e20 1e999999999 1e2147483648 4Q 1kk 1Mk NaN inf 0x10 18446744073709551616 19000000T 1e 1é é";
        for text in wrong.split(' ') {
            assert_eq!([Prefixes::Decimal, Prefixes::Binary].map(|prefixes| bytes(text, prefixes)), [None; 2], "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, exactly, rounded) in [
            ("0s", Some(0), 0),
            ("0ns", Some(0), 0),
            ("1ps", Some(1), 0),
            ("2.7ns", Some(2700), 3),
            ("0.001ns", Some(1), 0),
            ("0.0001ns", None, 0),
            ("20us", Some(20_000_000), 20_000),
            ("1.5us", Some(1_500_000), 1500),
            ("1e3ns", Some(1_000_000), 1000),
            ("1e-3s", Some(1_000_000_000), 1_000_000),
            (".5ms", Some(500_000_000), 500_000),
            ("5.s", Some(5_000_000_000_000), 5_000_000_000),
            ("1e7s", Some(10_000_000_000_000_000_000), 10_000_000_000_000_000),
        ] {
            assert_eq!((picoseconds(text), nanoseconds(text)), (exactly, Some(rounded)), "{text}");
        }
        assert_eq!(["10ms", "0.5s", "2.5us", "9ms"].map(seconds_with_unit), [0.01, 0.5, 2.5e-6, 0.009].map(Some));
        for text in ["", "20", "us", "s", "2.7.1ns", "-1ns", "1min", "1 ns", "nans", "infs", "1e400s", "99999999999999999999s"] {
            assert_eq!((picoseconds(text), nanoseconds(text)), (None, None), "{text}");
        }
        assert_eq!((seconds_with_unit("1e400s"), seconds_with_unit("3")), (None, None));
    }

    #[test]
    fn options_in_seconds_take_numbers_units_and_clocks() {
        let taken = ["90", "1e-3", "+3", "0.5", "500ms", "1.5us", "1:30", "1:00:00", "2-0:00:01", "1:0.5"];
        assert_eq!(taken.map(seconds), [90.0, 1e-3, 3.0, 0.5, 0.5, 1.5e-6, 90.0, 3600.0, 172_801.0, 60.5].map(Some));
        for text in ["", "x", "1:", "-3", "1:-3", "1:+3", "inf", "nan", "1e400", "1e308:0", "1e308-0", "1:30s", "3h"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
