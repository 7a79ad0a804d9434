//! Records in which a regular expression is found.

use regex::bytes::{Regex, RegexBuilder};

use super::spool::Output;
use crate::divisible::spread::{Kernel, Records};
use equipoise::error::{Error, Result};
use equipoise::node::Worker;

/// The expression of `grep=RE`, on bytes as in the C locale: `.` is any byte. One with characters beyond ASCII is one of Unicode.
///
/// # Errors
/// Wrong usage if it is none.
pub fn expression(pattern: &str) -> Result<Regex> {
    let build = |unicode: bool| RegexBuilder::new(pattern).unicode(unicode).build();
    build(false).or_else(|_| build(true)).map_err(|why| {
        let said = why.to_string();
        let reason = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::input("kernel", format!(" grep={pattern}: this is no regular expression: {reason}"))
    })
}

/// Cuts what it is fed into records.
pub struct Splitter {
    records: Records,
    /// Beginning of a record whose end has not arrived.
    rest: Vec<u8>,
}

impl Splitter {
    pub fn new(records: Records) -> Splitter {
        Splitter { records, rest: Vec::new() }
    }

    /// Calls `each` for every record that ends in these bytes, without what ends it.
    pub fn eat(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        while let Some((end, next)) = self.end_in(bytes) {
            if self.rest.is_empty() {
                each(&bytes[..end])?;
            } else {
                self.rest.extend_from_slice(&bytes[..end]);
                each(&self.rest)?;
                self.rest.clear();
            }
            bytes = &bytes[next..];
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// The last record, if nothing ended it.
    pub fn last(&mut self) -> Option<Vec<u8>> {
        (!self.rest.is_empty()).then(|| std::mem::take(&mut self.rest))
    }

    fn end_in(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        match self.records {
            Records::Bytes(length) => {
                let end = usize::try_from(length - self.rest.len() as u64).unwrap_or(usize::MAX);
                (end <= bytes.len()).then_some((end, end))
            }
            Records::Lines => find(b'\n', bytes),
            Records::Nul => find(0, bytes),
        }
    }
}

fn find(terminator: u8, bytes: &[u8]) -> Option<(usize, usize)> {
    bytes.iter().position(|&byte| byte == terminator).map(|place| (place, place + 1))
}

/// Finds.
pub struct Grep {
    expression: Regex,
    splitter: Splitter,
    terminator: Option<u8>,
    found: u64,
    output: Option<Output>,
}

impl Grep {
    pub fn new(expression: Regex, records: Records, output: Option<Output>) -> Grep {
        Grep { expression, splitter: Splitter::new(records), terminator: records.terminator(), found: 0, output }
    }
}

/// Processes one record.
fn look(expression: &Regex, terminator: Option<u8>, found: &mut u64, output: &mut Option<Output>, record: &[u8]) -> Result<()> {
    if !expression.is_match(record) {
        return Ok(());
    }
    *found += 1;
    let Some(output) = output else { return Ok(()) };
    output.write(record)?;
    terminator.map_or(Ok(()), |byte| output.write(&[byte]))
}

impl Kernel for Grep {
    fn eat(&mut self, bytes: &[u8], _: &mut dyn Worker) -> Result<()> {
        let Grep { expression, splitter, terminator, found, output } = self;
        splitter.eat(bytes, |record| look(expression, *terminator, found, output, record))
    }

    fn finish(&mut self, _: &mut dyn Worker) -> Result<Vec<u8>> {
        if let Some(last) = self.splitter.last() {
            look(&self.expression, self.terminator, &mut self.found, &mut self.output, &last)?;
        }
        match self.output.take() {
            Some(output) => super::written(&(0, output.end()?)),
            None => super::written(&self.found),
        }
    }
}
