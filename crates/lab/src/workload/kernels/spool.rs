//! Outputs of kernels, kept until they are wanted: in memory at first, in a nameless file beyond that.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};

use crate::divisible::spread::Range;
use equipoise::error::{Error, Result};
use equipoise::names;

/// Number of bytes that stay in memory.
const IN_MEMORY: usize = 8 << 20;

/// Outputs by range.
pub type Spools = Arc<Mutex<BTreeMap<Range, Spool>>>;

/// Output for one range.
#[derive(Debug, Default)]
pub struct Spool {
    memory: Vec<u8>,
    /// Continuation of the part in memory.
    file: Option<File>,
    length: u64,
    /// Number of bytes that have been read.
    read: u64,
}

impl Spool {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.length += bytes.len() as u64;
        let room = if self.file.is_some() { 0 } else { (IN_MEMORY - self.memory.len()).min(bytes.len()) };
        self.memory.extend_from_slice(&bytes[..room]);
        if room == bytes.len() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(&bytes[room..]))
    }

    /// The next bytes, at most `most`; empty at the end.
    pub fn next(&mut self, most: usize) -> Result<Vec<u8>> {
        let in_memory = self.memory.len() as u64;
        if self.read < in_memory {
            let from = self.read as usize;
            let until = self.memory.len().min(from + most);
            self.read = until as u64;
            return Ok(self.memory[from..until].to_vec());
        }
        let Some(file) = &mut self.file else { return Ok(Vec::new()) };
        let mut bytes = vec![0; most.min((self.length - self.read) as usize)];
        let read = file.seek(SeekFrom::Start(self.read - in_memory)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|why| Error::Failed(format!("output that was put aside cannot be read back: {why}")))?;
        self.read += bytes.len() as u64;
        Ok(bytes)
    }
}

/// Writer of a kernel's output.
pub struct Output {
    range: Range,
    spool: Spool,
    /// Place for the finished output; `None` if it is not wanted.
    keep: Option<Spools>,
}

impl Output {
    pub fn new(range: Range, keep: Option<Spools>) -> Output {
        Output { range, spool: Spool::default(), keep }
    }

    /// Appends.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.keep.is_none() {
            return Ok(());
        }
        self.spool.write(bytes).map_err(|why| {
            let place = std::env::temp_dir();
            Error::Failed(format!("a share's output cannot be put aside in {}: {why}", names::shown(&place)))
        })
    }

    /// Leaves it; its length.
    ///
    /// # Errors
    /// If another worker died.
    pub fn end(self) -> Result<u64> {
        let length = self.spool.length;
        if let Some(keep) = self.keep {
            keep.lock().map_err(|_| Error::Failed("a worker died while it wrote".into()))?.insert(self.range, self.spool);
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_aside_comes_back() {
        let mut spool = Spool::default();
        let bytes: Vec<u8> = (0..IN_MEMORY + 100_000).map(|place| (place % 251) as u8).collect();
        bytes.chunks(70_001).for_each(|chunk| spool.write(chunk).unwrap());
        let mut back = Vec::new();
        loop {
            let next = spool.next(99_999).unwrap();
            if next.is_empty() {
                break;
            }
            back.extend(next);
        }
        assert!(back == bytes);
    }
}
