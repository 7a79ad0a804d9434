//! The syntax of patterns: `name:key=value,key=value`.

use std::ops::RangeInclusive;

use super::items::{shortened, whole};
use equipoise::error::{Error, Result};

/// A pattern's name and its parameters, each of which is taken once by the code that knows it.
pub(super) struct Pattern<'a> {
    option: &'static str,
    text: &'a str,
    pub name: &'a str,
    given: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Pattern<'a> {
    pub fn parse(option: &'static str, text: &'a str) -> Result<Pattern<'a>> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let mut pattern = Pattern { option, text, name: name.trim(), given: Vec::new(), known: Vec::new() };
        for parameter in parameters.split(',').map(str::trim).filter(|_| text.contains(':')) {
            let Some((key, value)) = parameter.split_once('=') else {
                return Err(pattern.wrong(format!("\"{}\" is not of the form key=value", shortened(parameter))));
            };
            let (key, value) = (key.trim(), value.trim());
            if pattern.given.iter().any(|(earlier, _)| *earlier == key) {
                return Err(pattern.wrong(format!("{} is given twice", shortened(key))));
            }
            pattern.given.push((key, value));
        }
        Ok(pattern)
    }

    /// One sentence about this pattern.
    pub fn wrong(&self, why: impl std::fmt::Display) -> Error {
        Error::usage(format!("{} {}: {why}", self.option, shortened(self.text)))
    }

    /// The value of a key, if it is given and not taken yet.
    fn look(&self, key: &str) -> Option<&'a str> {
        self.given.iter().find(|(given, _)| *given == key).map(|(_, value)| *value)
    }

    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let index = self.given.iter().position(|(given, _)| *given == key)?;
        Some(self.given.remove(index).1)
    }

    /// The text of a key, if it is given.
    pub fn text_of(&mut self, key: &'static str) -> Option<&'a str> {
        self.take(key)
    }

    /// A whole number, or its default.
    pub fn whole(&mut self, key: &'static str, default: u64) -> Result<u64> {
        match self.take(key) {
            Some(value) => whole(value).map_err(|why| self.wrong(format!("{key}: {why}"))),
            None => Ok(default),
        }
    }

    /// A finite number of at least 0, or its default.
    pub fn real(&mut self, key: &'static str, default: f64) -> Result<f64> {
        let Some(value) = self.take(key) else { return Ok(default) };
        match value.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
            Ok(number) if number < 0.0 => Err(self.wrong(format!("{key}: {} is negative", shortened(value)))),
            _ => Err(self.wrong(format!("{key}: \"{}\" is not a finite number", shortened(value)))),
        }
    }

    /// The same, or nothing if the value is `none`.
    pub fn real_or_none(&mut self, key: &'static str, default: f64) -> Result<Option<f64>> {
        if self.look(key) == Some("none") {
            self.take(key);
            return Ok(None);
        }
        self.real(key, default).map(Some)
    }

    /// A whole number of this range, or its default.
    pub fn within(&mut self, key: &'static str, default: u64, range: RangeInclusive<u64>) -> Result<u64> {
        match self.whole(key, default)? {
            number if range.contains(&number) => Ok(number),
            number => Err(self.wrong(format!("{key}: {number} is not between {} and {}", range.start(), range.end()))),
        }
    }

    /// A whole number of this range, if the key is given.
    pub fn optional(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Result<Option<u64>> {
        let is_given = self.look(key).is_some();
        let number = self.within(key, *range.start(), range)?;
        Ok(is_given.then_some(number))
    }

    /// One of the named values, if the key is given.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match choices.iter().find(|(name, _)| *name == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let known: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
                Err(self.wrong(format!("{key}: \"{}\" is unknown; known are {}", shortened(value), known.join(", "))))
            }
        }
    }

    /// A time with its unit, such as `200ms` or `1.5us`, in nanoseconds, if the key is given.
    pub fn duration(&mut self, key: &'static str) -> Result<Option<u64>> {
        const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
        /// Some months; beyond, sums of times might not fit.
        const LONGEST: f64 = 1e16;
        let Some(value) = self.take(key) else { return Ok(None) };
        let (number, unit) = value.split_at(value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len()));
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanoseconds)| *nanoseconds);
        let nanoseconds = number.parse().ok().zip(unit).map(|(number, unit): (f64, f64)| (number * unit).round());
        match nanoseconds {
            Some(nanoseconds) if (0.0..=LONGEST).contains(&nanoseconds) => Ok(Some(nanoseconds as u64)),
            _ => Err(self.wrong(format!("{key}: \"{}\" is not a time such as 200ms, 1.5us or 0s", shortened(value)))),
        }
    }

    /// To be called when all known keys are taken: what is left is unknown.
    pub fn finish(self) -> Result<()> {
        let Some((key, _)) = self.given.first() else { return Ok(()) };
        let known = match self.known.is_empty() {
            true => format!("{} takes no parameters", self.name),
            false => format!("{} knows {}", self.name, self.known.join(", ")),
        };
        Err(self.wrong(format!("unknown parameter {}; {known}", shortened(key))))
    }
}
