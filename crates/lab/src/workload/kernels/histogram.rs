//! Histogram: the number of occurrences of each byte, or of each record.

use std::collections::{BTreeMap, HashMap};

use super::grep::Splitter;
use crate::divisible::spread::{self, Kernel};
use equipoise::error::{Error, Result};
use equipoise::node::Worker;

/// Counts bytes.
pub struct Bytes {
    counts: Box<[u64; 256]>,
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes { counts: Box::new([0; 256]) }
    }
}

impl Kernel for Bytes {
    fn eat(&mut self, bytes: &[u8], _: &mut dyn Worker) -> Result<()> {
        bytes.iter().for_each(|&byte| self.counts[byte as usize] += 1);
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Worker) -> Result<Vec<u8>> {
        super::written(&self.counts.as_slice())
    }
}

/// Two histograms of bytes together.
pub fn sum(mut a: Vec<u64>, b: Vec<u64>) -> Vec<u64> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
    a
}

/// Counts records.
pub struct Records {
    splitter: Splitter,
    counts: HashMap<Vec<u8>, u64>,
}

impl Records {
    pub fn new(records: spread::Records) -> Records {
        Records { splitter: Splitter::new(records), counts: HashMap::new() }
    }
}

fn note(counts: &mut HashMap<Vec<u8>, u64>, record: &[u8]) {
    match counts.get_mut(record) {
        Some(count) => *count += 1,
        None => _ = counts.insert(record.to_vec(), 1),
    }
}

impl Kernel for Records {
    fn eat(&mut self, bytes: &[u8], _: &mut dyn Worker) -> Result<()> {
        let Records { splitter, counts } = self;
        splitter.eat(bytes, |record| {
            note(counts, record);
            Ok(())
        })
    }

    fn finish(&mut self, _: &mut dyn Worker) -> Result<Vec<u8>> {
        if let Some(last) = self.splitter.last() {
            note(&mut self.counts, &last);
        }
        // A flat table: how often, how long, the record.
        let mut table = Vec::new();
        for (record, count) in &self.counts {
            table.extend_from_slice(&count.to_le_bytes());
            table.extend_from_slice(&(record.len() as u64).to_le_bytes());
            table.extend_from_slice(record);
        }
        Ok(table)
    }
}

/// All tables together.
///
/// # Errors
/// If one cannot be read.
pub fn merged<'a>(tables: impl Iterator<Item = &'a [u8]>) -> Result<BTreeMap<Vec<u8>, u64>> {
    let mut counts = BTreeMap::new();
    for mut table in tables {
        while !table.is_empty() {
            let (count, record) = entry(&mut table).ok_or_else(|| Error::Failed("a share's table of records ends in the middle".into()))?;
            *counts.entry(record.to_vec()).or_insert(0) += count;
        }
    }
    Ok(counts)
}

fn entry<'a>(table: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let number = |table: &mut &'a [u8]| {
        let (number, rest) = table.split_first_chunk()?;
        *table = rest;
        Some(u64::from_le_bytes(*number))
    };
    let (count, length) = (number(table)?, usize::try_from(number(table)?).ok()?);
    let (record, rest) = table.split_at_checked(length)?;
    *table = rest;
    Some((count, record))
}
