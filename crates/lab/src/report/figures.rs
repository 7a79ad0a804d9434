//! Figures for people: few digits, units that fit.

/// A whole number with its thousands apart: `1,048,576`.
pub fn whole(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Three significant digits, whole numbers as such: `0.0123`, `1.23`, `45.6`, `1230`.
pub fn three(number: f64) -> String {
    rounded(number, 3)
}

/// Two significant digits.
pub fn two(number: f64) -> String {
    rounded(number, 2)
}

fn rounded(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        return if number.is_nan() { "-".into() } else { "inf".into() };
    }
    if number == 0.0 {
        return "0".into();
    }
    // Rounding may carry into one digit more (9.996 is 10.0), so the digits are counted after it.
    let rounded: f64 = format!("{number:.0$e}", digits - 1).parse().unwrap_or(number);
    let decimals = (digits as i32 - 1 - rounded.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{rounded:.decimals$}")
}

/// A ratio such as an imbalance: two decimals, more below 1.1 so that 1.004 does not look even; large ones in three digits.
pub fn ratio(number: f64) -> String {
    match number {
        n if !n.is_finite() => three(n),
        n if !(1.0..100.0).contains(&n) => three(n),
        n if n < 1.1 && n != 1.0 => format!("{n:.3}"),
        n => format!("{n:.2}"),
    }
}

/// A duration given in microseconds.
pub fn duration_us(us: f64) -> String {
    match us {
        us if !us.is_finite() => "never".into(),
        0.0 => "0 us".into(),
        us if us < 1e-6 => "<0.001 ns".into(),
        us if us < 1.0 => format!("{} ns", three(us * 1e3)),
        us if us < 1e3 => format!("{} us", three(us)),
        us if us < 1e6 => format!("{} ms", three(us / 1e3)),
        us => format!("{} s", three(us / 1e6)),
    }
}

/// An amount of bytes, in powers of 1000.
pub fn bytes(count: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let power = if count < 1000 { 0 } else { (count.ilog10() / 3) as usize };
    match power {
        0 => format!("{count} B"),
        _ => format!("{} {}", three(count as f64 / 1000f64.powi(power as i32)), units[power.min(6)]),
    }
}

/// `1 task`, `2 tasks`.
pub fn several(number: u64, one: &str) -> String {
    format!("{} {one}{}", whole(number), if number == 1 { "" } else { "s" })
}

/// Payload of tasks in words: `of 64 B`, `of 930 B on average` where they are not alike, `without payload`.
pub fn payload(payload: u64, is_mean: bool) -> String {
    match payload {
        0 => "without payload".into(),
        payload if is_mean => format!("of {} on average", bytes(payload)),
        payload => format!("of {}", bytes(payload)),
    }
}

/// `a`, `a and b`, `a, b and 3 others`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).into(),
        [first @ .., last] if names.len() <= 4 => format!("{} and {last}", first.join(", ")),
        [a, b, rest @ ..] => format!("{a}, {b} and {} others", rest.len()),
    }
}

/// Four significant digits; powers of ten where there would be many zeros.
pub(super) fn small(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        number if !(1e-4..1e6).contains(&number) => format!("{number:.3e}"),
        number => {
            let decimals = (3 - number.log10().floor() as i32).clamp(0, 7) as usize;
            format!("{number:.decimals$}")
        }
    }
}

/// A time in seconds, with the unit that fits.
pub(super) fn seconds(seconds: f64) -> String {
    duration_us(seconds * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0u64, 999, 1000, 1_048_576].map(whole), ["0", "999", "1,000", "1,048,576"]);
        let shown = [0.0, 0.012_34, 0.999_9, 1.234, 9.996, 45.67, 123.4, 12_345.0, f64::INFINITY].map(three);
        assert_eq!(shown, ["0", "0.0123", "1.00", "1.23", "10.0", "45.7", "123", "12300", "inf"]);
        assert_eq!([0.996, 14.4, 0.003_62].map(two), ["1.0", "14", "0.0036"]);
        assert_eq!([1.0, 1.004, 1.5, 8.0, 0.125, 1234.0].map(ratio), ["1.00", "1.004", "1.50", "8.00", "0.125", "1230"]);
    }

    #[test]
    fn units_fit() {
        let shown = [0.0, 1.99e-10, 2e-5, 0.5, 12.34, 1500.0, 2e6, f64::INFINITY].map(duration_us);
        assert_eq!(shown, ["0 us", "<0.001 ns", "0.0200 ns", "500 ns", "12.3 us", "1.50 ms", "2.00 s", "never"]);
        assert_eq!([0, 999, 1000, 2_345_678, u64::MAX].map(bytes), ["0 B", "999 B", "1.00 kB", "2.35 MB", "18.4 EB"]);
        assert_eq!(
            [(0, true), (930, true), (930, false)].map(|(bytes, mean)| payload(bytes, mean)),
            ["without payload", "of 930 B on average", "of 930 B"]
        );
        assert_eq!([several(1, "task"), several(2000, "rank")], ["1 task", "2,000 ranks"]);
    }

    #[test]
    fn small_numbers_stay_short() {
        assert_eq!(
            [0.0, 7.0 / 15.0, 0.001, 1.5e-9, 12.0, 123_456.0].map(small),
            ["0", "0.4667", "0.001000", "1.500e-9", "12.00", "123456"]
        );
    }
}
