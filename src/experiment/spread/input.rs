//! The input: a file on the host of rank 0.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::divisible::spread::cut::Cutter;
use crate::divisible::spread::{Range, Records, Source};
use crate::error::{Error, Result};

/// A file that is read in ranges, with the length that it had when it was opened first.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    file: File,
    length: u64,
}

/// The sample has so many blocks from equally distant places ..
const BLOCKS: u64 = 4;
/// .. of so many bytes.
const BLOCK: u64 = 256 << 10;

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// Wrong usage if it cannot be read, or is no file that has a length.
    pub fn open(path: &Path) -> Result<Input> {
        let wrong = |why: String| Error::usage(format!("--input {}: {why}", path.display()));
        // Asked before it is opened: opening a pipe would wait for whoever writes to it.
        let about = std::fs::metadata(path).map_err(|why| wrong(format!("it cannot be read: {why}")))?;
        if about.is_dir() {
            return Err(wrong("this is a folder; one file is divided".into()));
        }
        if !about.is_file() {
            return Err(wrong("this is no regular file: what is to be divided must have a length and be read from any place".into()));
        }
        let mut file = File::open(path).map_err(|why| wrong(format!("it cannot be read: {why}")))?;
        let length = file.metadata().map_err(|why| wrong(format!("it cannot be read: {why}")))?.len();
        // Files of the kernel, as in /proc, say that they are empty, and are not.
        if length == 0 && file.read(&mut [0]).map_err(|why| wrong(format!("it cannot be read: {why}")))? > 0 {
            return Err(wrong("its length is not known beforehand; copy it into a file first".into()));
        }
        Ok(Input { path: path.into(), file, length })
    }

    /// Whether it has become shorter.
    ///
    /// # Errors
    /// If it has, or cannot be asked any more.
    pub fn check(&self) -> Result<()> {
        match self.file.metadata() {
            Ok(about) if about.len() >= self.length => Ok(()),
            Ok(about) => Err(self.shrank(about.len())),
            Err(why) => Err(Error::Failed(format!("--input {}: {why}", self.path.display()))),
        }
    }

    fn shrank(&self, now: u64) -> Error {
        let (path, before) = (self.path.display(), self.length);
        Error::Failed(format!("--input {path}: the file was cut from {before} to {now} bytes while it was read; there is no answer"))
    }

    /// Whole records from several places, which together are much like the input.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn sample(&mut self, records: Records) -> Result<Bytes> {
        let mut sample = Vec::new();
        let wanted = BLOCK.min(self.length);
        for block in 0..BLOCKS {
            if self.length <= BLOCK * BLOCKS && block > 0 {
                break;
            }
            let end = if self.length <= BLOCK * BLOCKS { self.length } else { wanted };
            let asked = self.length / BLOCKS * block;
            // A record longer than a block is not looked for.
            let start = Cutter::new(self, records).end_from(asked)?;
            let start = if start - asked < BLOCK { start } else { asked };
            self.read(Range { start, end: self.length.min(start + end) }, &mut sample)?;
        }
        Ok(sample.into())
    }
}

impl Source for Input {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&mut self, range: Range, into: &mut Vec<u8>) -> Result<()> {
        let before = into.len();
        let wanted = usize::try_from(range.len()).unwrap_or(usize::MAX);
        into.resize(before + wanted, 0);
        let read = self.file.seek(SeekFrom::Start(range.start)).and_then(|_| self.file.read_exact(&mut into[before..]));
        match read {
            Ok(()) => Ok(()),
            Err(why) if why.kind() == ErrorKind::UnexpectedEof => {
                Err(self.shrank(self.file.metadata().map_or(range.start, |about| about.len())))
            }
            Err(why) => Err(Error::Failed(format!("--input {}: it cannot be read any further: {why}", self.path.display()))),
        }
    }

    fn again(&self) -> Result<Box<dyn Source + Send>> {
        let again = Input::open(&self.path)?;
        if again.length < self.length {
            return Err(self.shrank(again.length));
        }
        Ok(Box::new(Input { length: self.length, ..again }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_in_ranges_and_must_not_shrink() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let mut input = Input::open(&path).unwrap();
        let mut read = b"> ".to_vec();
        input.read(Range { start: 4, end: 8 }, &mut read).unwrap();
        assert_eq!(read, b"> two\n");
        assert_eq!(input.sample(Records::Lines).unwrap(), "one\ntwo\nthree\n");
        std::fs::write(&path, "one\n").unwrap();
        for why in [input.read(Range { start: 2, end: 8 }, &mut read), input.check(), input.again().map(|_| ())] {
            let why = why.unwrap_err().to_string();
            assert!(why.contains("cut from 14 to 4 bytes"), "{why}");
        }
        std::fs::remove_file(&path).unwrap();
        let missing = Input::open(&path).unwrap_err();
        assert!(missing.exit_status() == 2 && missing.to_string().contains("No such file"), "{missing}");
        assert!(Input::open(folder.path()).unwrap_err().to_string().ends_with("this is a folder; one file is divided"));
        assert!(Input::open(Path::new("/dev/null")).unwrap_err().to_string().contains("no regular file"));
        assert!(Input::open(Path::new("/proc/self/status")).unwrap_err().to_string().contains("its length is not known"));
    }

    #[test]
    fn the_sample_of_a_large_file_comes_from_everywhere() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = (0..300_000).map(|number| format!("{number:09}\n")).collect();
        std::fs::write(&file, &text).unwrap();
        let sample = Input::open(file.path()).unwrap().sample(Records::Lines).unwrap();
        assert_eq!(sample.len() as u64, BLOCKS * BLOCK);
        for block in 0..BLOCKS as usize {
            let first: usize = std::str::from_utf8(&sample[block * BLOCK as usize..][..9]).unwrap().parse().unwrap();
            assert_eq!(first, 75_000 * block);
        }
    }
}
