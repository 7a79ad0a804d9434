//! The syntax of patterns: `name:key=value,key=value`.

use super::items::{shortened, whole};
use crate::error::{Error, Result};

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

    fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let index = self.given.iter().position(|(given, _)| *given == key)?;
        Some(self.given.remove(index).1)
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
