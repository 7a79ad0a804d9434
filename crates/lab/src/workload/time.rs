//! Units of measured times.

use std::fmt;
use std::str::FromStr;

use equipoise::spec::quantity::UNITS;

/// Unit of a time. The units are in the order of [`UNITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
    Picoseconds,
}

const ALL: [TimeUnit; 5] =
    [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Microseconds, TimeUnit::Nanoseconds, TimeUnit::Picoseconds];

/// Conversion of times into whole numbers of work units.
pub(super) struct Scale {
    /// Factor from a time in this unit to work units.
    pub factor: u64,
    /// Seconds that a work unit takes.
    pub seconds: f64,
    /// The work unit in words, for sentences that end with a number of them.
    pub words: &'static str,
}

impl TimeUnit {
    /// The scale at which times of this unit with `places` decimal places are integers: nanoseconds, or the decimal fraction of one that is needed.
    pub(super) fn scale(self, places: u8) -> Scale {
        let (_, power) = UNITS[self as usize];
        // Decimal places from a nanosecond to this unit, and those that are left below a nanosecond.
        let above = power + 9;
        let below = (i32::from(places) - above).max(0);
        // As text the power of ten is the nearest number to it.
        let seconds = format!("1e-{}", 9 + below).parse().unwrap_or(f64::NAN);
        let words = if below == 0 { " ns" } else { " of the parts of a nanosecond that its digits need" };
        Scale { factor: 10u64.pow((above + below) as u32), seconds, words }
    }
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeUnit, String> {
        let found = ALL.into_iter().zip(UNITS).find(|(_, (name, _))| *name == text);
        found.map(|(unit, _)| unit).ok_or_else(|| "known units of time are ps, ns, us, ms and s".into())
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(UNITS[*self as usize].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_read_back_and_keep_their_places() {
        for (unit, name) in ALL.into_iter().zip(["s", "ms", "us", "ns", "ps"]) {
            assert_eq!((name.parse(), unit.to_string().as_str()), (Ok(unit), name));
        }
        assert_eq!("min".parse::<TimeUnit>().unwrap_err(), "known units of time are ps, ns, us, ms and s");
        let scale = |unit: TimeUnit, places| (unit.scale(places).factor, unit.scale(places).seconds);
        assert_eq!(scale(TimeUnit::Seconds, 4), (1_000_000_000, 1e-9));
        assert_eq!(scale(TimeUnit::Microseconds, 9), (1_000_000_000, 1e-15));
        assert_eq!((scale(TimeUnit::Picoseconds, 0), scale(TimeUnit::Picoseconds, 2)), ((1, 1e-12), (100, 1e-14)));
    }
}
