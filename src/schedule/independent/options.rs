//! A scheduler's options from the command line: `key=value` pairs, and single words.

use crate::error::{Error, Result};
use crate::schedule::registry::{unknown_option, wrong_value};

/// Options, each of which is taken once by the code that knows it.
pub struct Options<'a> {
    scheduler: &'static str,
    given: Vec<(&'a str, Option<&'a str>)>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    pub(super) fn parse(scheduler: &'static str, text: &'a str) -> Result<Options<'a>> {
        let mut given: Vec<(&str, Option<&str>)> = Vec::new();
        for piece in text.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
            let (key, value) = match piece.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (piece, None),
            };
            if given.iter().any(|(earlier, _)| *earlier == key) {
                return Err(Error::usage(format!("--scheduler {scheduler}: {key} is given twice")));
            }
            given.push((key, value));
        }
        Ok(Options { scheduler, given, known: Vec::new() })
    }

    fn take(&mut self, key: &'static str) -> Option<Option<&'a str>> {
        self.known.push(key);
        let place = self.given.iter().position(|(given, _)| *given == key)?;
        Some(self.given.remove(place).1)
    }

    /// Whether a single word is given.
    ///
    /// # Errors
    /// If it has a value.
    pub fn word(&mut self, key: &'static str) -> Result<bool> {
        match self.take(key) {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(value)) => Err(self.wrong(key, value, "a word without a value")),
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If it has none.
    pub fn value(&mut self, key: &'static str) -> Result<Option<&'a str>> {
        match self.take(key) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value)),
            Some(None) => Err(Error::usage(format!("--scheduler {}: {key} needs a value, {key}=..", self.scheduler))),
        }
    }

    /// A whole number of at least 1.
    ///
    /// # Errors
    /// If the value is none.
    pub fn count(&mut self, key: &'static str) -> Result<Option<u64>> {
        let Some(value) = self.value(key)? else { return Ok(None) };
        match value.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(self.wrong(key, value, "a whole number of at least 1")),
        }
    }

    /// A number of this range.
    ///
    /// # Errors
    /// If the value is none.
    pub fn real(&mut self, key: &'static str, least: f64, most: f64) -> Result<Option<f64>> {
        let Some(value) = self.value(key)? else { return Ok(None) };
        match value.parse::<f64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(key, value, &format!("a number from {least} to {most}"))),
        }
    }

    /// One of several names.
    ///
    /// # Errors
    /// If the value is none of them.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(value) = self.value(key)? else { return Ok(None) };
        match choices.iter().find(|(name, _)| *name == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                Err(self.wrong(key, value, &names.join(", ")))
            }
        }
    }

    /// Whether hosts have schedulers of their own (`clusters`).
    ///
    /// # Errors
    /// If the value is another one.
    pub fn by_host(&mut self) -> Result<bool> {
        Ok(self.choice("clusters", &[("none", false), ("hosts", true)])?.unwrap_or(false))
    }

    /// The error for a value that is none of those that the key takes.
    pub fn wrong(&self, key: &str, value: &str, takes: &str) -> Error {
        wrong_value(self.scheduler, key, value, takes)
    }

    /// One sentence about these options.
    pub fn refuse(&self, why: &str) -> Error {
        Error::usage(format!("--scheduler {}: {why}", self.scheduler))
    }

    /// Checks that all were taken.
    pub(super) fn finish(self) -> Result<()> {
        self.given.first().map_or(Ok(()), |(key, _)| Err(unknown_option(self.scheduler, key, &self.known)))
    }
}
