//! Durations as people write them: `20us`, `2.7ns`. Exact in both directions, in whole picoseconds.

use crate::spec::quantity::{self, UNITS};

/// Picoseconds in a tick of the simulator, which is a nanosecond.
pub(super) const PER_TICK: u64 = 1_000;

/// Reads a number with a unit, in picoseconds. `None` if it is not one, is no whole number of picoseconds, or does not fit.
pub fn parse(text: &str) -> Option<u64> {
    quantity::picoseconds(text)
}

/// Writes picoseconds in the largest unit of which there is at least one; [`parse`] reads it back.
pub fn format(picoseconds: u64) -> String {
    write(u128::from(picoseconds))
}

/// Writes ticks likewise.
pub fn format_ticks(ticks: u64) -> String {
    write(u128::from(ticks) * u128::from(PER_TICK))
}

fn write(picoseconds: u128) -> String {
    let mut units = UNITS.iter().map(|(name, power)| (name, 10u128.pow(12 - power.unsigned_abs())));
    let Some((name, unit)) = units.find(|(_, unit)| picoseconds >= *unit) else { return "0ns".into() };
    let (whole, rest) = (picoseconds / unit, picoseconds % unit);
    if rest == 0 {
        return format!("{whole}{name}");
    }
    let digits = unit.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}{name}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        for (text, picoseconds) in [
            ("0ns", 0),
            ("20us", 20_000_000),
            ("2.7ns", 2_700),
            ("1ps", 1),
            ("0.001ns", 1),
            ("1.5s", 1_500_000_000_000),
            ("100ms", 100_000_000_000),
            ("1e3ns", 1_000_000),
            (".5ns", 500),
        ] {
            assert_eq!(parse(text), Some(picoseconds), "{text}");
        }
        for text in ["", "20", "us", "2.7.1ns", "-1ns", "1min", "0.0001ns", "99999999999999999999s", "1 ns"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_written_as_they_are_read() {
        for picoseconds in [0, 1, 999, 1_000, 2_700, 1_000_001, 20_000_000, 123_456_789_012, 3_000_000_000_000, u64::MAX] {
            assert_eq!(parse(&format(picoseconds)), Some(picoseconds), "{}", format(picoseconds));
        }
        assert_eq!(format(2_700), "2.7ns");
        assert_eq!(format_ticks(20_000), "20us");
        assert_eq!(format_ticks(u64::MAX), "18446744073.709551615s");
    }
}
