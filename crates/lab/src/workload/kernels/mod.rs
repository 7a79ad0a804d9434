//! Computations on a big input that is cut into shares: kernels whose answers do not depend on where it is cut, and any program.
//!
//! A [`Computation`] is the parsed option; [`Computation::desk`] makes a rank's [`Desk`], which makes kernels and keeps their outputs;
//! [`Computation::answer`] combines the shares' answers.

mod checksum;
mod command;
mod count;
mod grep;
mod histogram;
mod pace;
mod process;
mod reduce;
mod spool;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use command::OkStatus;
pub use count::Counts;
pub use pace::Pace;
pub use process::{Errors, Process, how};
pub use reduce::{Reduce, Sums};

use crate::divisible::spread::collect::Outputs;
use crate::divisible::spread::{Kernel, Kernels, Range, Records};
use equipoise::error::{Error, Result};
use spool::Spools;

/// The computation that the options select.
#[derive(Clone, Debug)]
pub enum Computation {
    /// Lines, words and bytes, as `LC_ALL=C wc` counts them.
    Count,
    /// The records in which the expression is found; printed, or counted.
    Grep { expression: regex::bytes::Regex, pattern: String, print: bool },
    /// Number of occurrences of each byte.
    Bytes,
    /// Number of occurrences of each record.
    Records,
    /// The input's BLAKE3 hash.
    Checksum,
    /// A program, run on each share by `sh -c`.
    Command { command: String, ok: OkStatus },
}

/// An answer, put together.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Counts(Counts),
    /// Records found.
    Found(u64),
    /// Number of occurrences of each byte value.
    Bytes(Box<[u64]>),
    /// Number of occurrences of each record, in the order of the records' bytes.
    Records(BTreeMap<Vec<u8>, u64>),
    /// In hexadecimal digits.
    Checksum(String),
    /// Outputs to be collected; the least of the programs' exit statuses; and the number of shares without output, and of all shares.
    Written {
        status: i32,
        silent: u64,
        shares: u64,
    },
}

/// The result of a kernel that writes, apart from its output.
type Left = (i32, u64);

impl Computation {
    /// Reads `--kernel`: `count | grep=RE | histogram[=bytes|=numbers] | checksum`.
    ///
    /// # Errors
    /// Wrong usage if it is none of these, or the expression is not one.
    pub fn parse(text: &str, print: bool) -> Result<Computation> {
        let (name, detail) = text.split_once('=').map_or((text, None), |(name, detail)| (name, Some(detail)));
        if print && name != "grep" {
            return Err(Error::usage(format!("--print: only --kernel grep=RE finds lines to print, not {text}")));
        }
        match (name, detail) {
            ("count", None) => Ok(Computation::Count),
            ("checksum", None) => Ok(Computation::Checksum),
            ("histogram", None | Some("bytes")) => Ok(Computation::Bytes),
            ("histogram", Some("numbers" | "lines")) => Ok(Computation::Records),
            ("grep", Some(pattern)) => {
                let expression = grep::expression(pattern)?;
                Ok(Computation::Grep { expression, pattern: pattern.into(), print })
            }
            ("grep", None) => Err(Error::input("kernel", " grep: the regular expression is missing, as in grep=RE")),
            _ => {
                let known = "known are count, grep=RE, histogram, histogram=numbers and checksum";
                Err(Error::input("kernel", format!(" {text}: there is no such kernel; {known}")))
            }
        }
    }

    /// Name of the computation, as typed.
    pub fn name(&self) -> String {
        match self {
            Computation::Count => "count".into(),
            Computation::Grep { pattern, .. } => format!("grep={pattern}"),
            Computation::Bytes => "histogram".into(),
            Computation::Records => "histogram=numbers".into(),
            Computation::Checksum => "checksum".into(),
            Computation::Command { command, .. } => format!("command '{command}'"),
        }
    }

    /// Ends of shares that it needs, for an input of this length.
    pub fn records(&self, asked: Records, length: u64) -> Records {
        match self {
            Computation::Checksum => Records::Bytes(checksum::group(length)),
            _ => asked,
        }
    }

    /// Returns true if it writes, so that there is something to collect.
    pub fn writes(&self) -> bool {
        matches!(self, Computation::Command { .. } | Computation::Grep { print: true, .. })
    }

    /// A rank's kernels for an input of this length. A program is killed if it stands still for longer than `patience`, and is run on samples only
    /// if it `may_sample`: side effects that it has there, other than its output, are real.
    pub fn desk(&self, records: Records, length: u64, pace: Option<Rc<Pace>>, patience: Duration, may_sample: bool) -> Rc<Desk> {
        Rc::new(Desk { computation: self.clone(), records, length, pace, patience, may_sample, spools: Arc::default() })
    }

    /// Puts the answers of consecutive ranges together.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn answer(&self, parts: Vec<(u32, Range, Vec<u8>)>) -> Result<Answer> {
        Ok(match self {
            Computation::Count => Answer::Counts(each(parts, Counts::default(), Counts::then)?),
            Computation::Grep { print: false, .. } => Answer::Found(each(parts, 0, |sum, part: u64| sum + part)?),
            Computation::Bytes => Answer::Bytes(each(parts, vec![0; 256], histogram::sum)?.into()),
            Computation::Records => Answer::Records(histogram::merged(parts.iter().map(|(_, _, part)| part.as_slice()))?),
            Computation::Checksum => Answer::Checksum(checksum::combined(parts.iter().map(|(_, _, part)| part.as_slice()))?),
            Computation::Command { .. } | Computation::Grep { print: true, .. } => {
                let shares = parts.len() as u64;
                let lefts = each(parts, Vec::new(), |mut lefts: Vec<Left>, left: Left| {
                    lefts.push(left);
                    lefts
                })?;
                let status = lefts.iter().map(|(status, _)| *status).min().unwrap_or(0);
                let silent = lefts.iter().filter(|(_, written)| *written == 0).count() as u64;
                Answer::Written { status, silent, shares }
            }
        })
    }
}

/// Folds answers that all have the type `P`.
fn each<T, P: DeserializeOwned>(parts: Vec<(u32, Range, Vec<u8>)>, zero: T, fold: impl Fn(T, P) -> T) -> Result<T> {
    parts.into_iter().try_fold(zero, |sum, (node, _, part)| Ok(fold(sum, read(&part).map_err(|why| unreadable(node, &why))?)))
}

fn unreadable(node: u32, why: &serde_json::Error) -> Error {
    Error::Garbled { from: node, what: "'a share's answer'".into(), why: why.to_string() }
}

/// A partial answer as bytes.
fn written(part: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(part).map_err(|why| Error::Failed(format!("a share's answer cannot be written: {why}")))
}

fn read<T: DeserializeOwned>(part: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(part)
}

/// Makes the kernels of one rank, and keeps what they write.
pub struct Desk {
    computation: Computation,
    records: Records,
    length: u64,
    pace: Option<Rc<Pace>>,
    patience: Duration,
    may_sample: bool,
    spools: Spools,
}

/// Seconds per byte of a program of which nothing is known.
const ASSUMED: f64 = 1e-8;

impl Desk {
    /// Forgets what was written.
    pub fn clear(&self) {
        if let Ok(mut spools) = self.spools.lock() {
            spools.clear();
        }
    }

    /// Returns true if computing times can be predicted: by a measurement on a sample, or by the declared speeds of the ranks.
    pub fn predicts(&self) -> bool {
        self.pace.is_some() || self.samples()
    }

    fn samples(&self) -> bool {
        self.may_sample || !matches!(self.computation, Computation::Command { .. })
    }
}

impl Kernels for Desk {
    fn kernel(&self, node: u32, range: Range, sample: bool) -> Result<Box<dyn Kernel>> {
        if let Some(stand_in) = self.pace.as_ref().filter(|_| sample).and_then(|pace| pace.sample(node)) {
            return Ok(stand_in);
        }
        let output = || spool::Output::new(range, if sample { None } else { Some(self.spools.clone()) });
        let kernel: Box<dyn Kernel> = match &self.computation {
            Computation::Count => Box::new(count::Count::default()),
            Computation::Grep { expression, print, .. } => Box::new(grep::Grep::new(expression.clone(), self.records, print.then(output))),
            Computation::Bytes => Box::new(histogram::Bytes::default()),
            Computation::Records => Box::new(histogram::Records::new(self.records)),
            Computation::Checksum => Box::new(checksum::Checksum::new(range, self.length)),
            Computation::Command { command, ok } => {
                Box::new(command::Command::start(command, ok, (node, range), sample, self.patience, output())?)
            }
        };
        Ok(match &self.pace {
            Some(pace) => pace.around(node, kernel),
            None => kernel,
        })
    }

    fn assumed(&self, node: u32) -> Option<f64> {
        let is_virtual = self.pace.as_ref().is_some_and(|pace| pace.is_virtual);
        let of_pace = || self.pace.as_ref()?.seconds.get(node as usize).copied();
        (!is_virtual && !self.samples()).then(|| of_pace().unwrap_or(ASSUMED))
    }
}

impl Outputs for Desk {
    fn next(&self, range: Range, most: usize) -> Result<Vec<u8>> {
        let mut spools = self.spools.lock().map_err(|_| Error::Failed("a worker died while it wrote".into()))?;
        spools.get_mut(&range).map_or(Ok(Vec::new()), |spool| spool.next(most))
    }
}

#[cfg(test)]
mod tests;
