//! Files that outputs are collected in. Each output has a file of its own: a process that a task has left behind may write into it for ever after.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::task::{Capture, Kept};

/// Longer outputs stay in their file until they are wanted.
const SHORT: u64 = 16 << 10;

/// One output's file.
#[derive(Debug)]
pub struct Collector {
    pub file: File,
    path: PathBuf,
}

/// The files of a helper.
pub struct Collectors {
    folder: PathBuf,
    made: u64,
}

impl Collectors {
    pub fn new(folder: &Path) -> Collectors {
        Collectors { folder: folder.to_path_buf(), made: 0 }
    }

    /// Empty files for both outputs of a command.
    ///
    /// # Errors
    /// If the disk has none, or there are too few descriptors. Then none is left behind.
    pub fn get_two(&mut self) -> io::Result<(Collector, Collector)> {
        let one = self.get()?;
        match self.get() {
            Ok(other) => Ok((one, other)),
            Err(why) => {
                one.collect()?;
                Err(why)
            }
        }
    }

    fn get(&mut self) -> io::Result<Collector> {
        self.made += 1;
        let path = self.folder.join(format!("output-{}", self.made));
        // Appending, so that a program that opens it again, as /dev/stdout, overwrites nothing.
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path)?;
        Ok(Collector { file, path })
    }
}

impl Collector {
    /// Takes the output that was written until now. Only a long one stays in its file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn collect(self) -> io::Result<Capture> {
        let bytes = self.file.metadata()?.len();
        if bytes > SHORT {
            let lines = count_lines(&self.file, bytes)?;
            return Ok(Capture { bytes, lines, kept: Kept::File(self.path.as_os_str().as_bytes().to_vec()) });
        }
        fs::remove_file(&self.path)?;
        if bytes == 0 {
            return Ok(Capture::default());
        }
        let mut text = vec![0; bytes as usize];
        self.file.read_exact_at(&mut text, 0)?;
        Ok(Capture { bytes, lines: newlines(&text), kept: Kept::Here(text) })
    }
}

fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// Lines within the first `bytes` of a file.
fn count_lines(file: &File, bytes: u64) -> io::Result<u64> {
    let (mut buffer, mut at, mut lines) = (vec![0; 1 << 18], 0, 0);
    while at < bytes {
        let most = buffer.len().min((bytes - at) as usize);
        match file.read_at(&mut buffer[..most], at)? {
            0 => break,
            read => {
                lines += newlines(&buffer[..read]);
                at += read as u64;
            }
        }
    }
    Ok(lines)
}

/// The last bytes of an output, at most this many.
///
/// # Errors
/// If its file cannot be read.
pub fn last(capture: &Capture, most: u64) -> io::Result<Vec<u8>> {
    let from = capture.bytes.saturating_sub(most);
    match &capture.kept {
        Kept::Nowhere => Ok(Vec::new()),
        Kept::Here(text) => Ok(text[from as usize..].to_vec()),
        Kept::File(path) => {
            let mut end = vec![0; (capture.bytes - from) as usize];
            File::open(OsStr::from_bytes(path))?.read_exact_at(&mut end, from)?;
            Ok(end)
        }
    }
}

/// Removes the file of an output that is not needed any more.
pub fn discard(capture: &Capture) {
    if let Kept::File(path) = &capture.kept {
        let _ = fs::remove_file(Path::new(OsStr::from_bytes(path)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn short_outputs_are_read_and_long_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut collectors = Collectors::new(folder.path());
        for text in ["a\nb", "", "c\n"] {
            let mut one = collectors.get().unwrap();
            one.file.write_all(text.as_bytes()).unwrap();
            let kept = if text.is_empty() { Kept::Nowhere } else { Kept::Here(text.into()) };
            let lines = text.matches('\n').count() as u64;
            let mut left_behind = one.file.try_clone().unwrap();
            let captured = one.collect().unwrap();
            assert_eq!(
                [1, 2, 3].map(|most| last(&captured, most).unwrap()),
                [1, 2, 3].map(|most| text.as_bytes()[text.len().saturating_sub(most)..].to_vec())
            );
            assert_eq!(captured, Capture { bytes: text.len() as u64, lines, kept });
            // It writes where nobody reads.
            left_behind.write_all(b"late").unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut long = collectors.get().unwrap();
        long.file.write_all(&b"line\n".repeat(10_000)).unwrap();
        let captured = long.collect().unwrap();
        assert_eq!((captured.bytes, captured.lines), (50_000, 10_000));
        let Kept::File(path) = &captured.kept else { panic!("{captured:?}") };
        let path = PathBuf::from(OsStr::from_bytes(path));
        assert!(path.exists());
        // What is written later is not part of it.
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"late").unwrap();
        assert_eq!(last(&captured, 7).unwrap(), b"e\nline\n");
        discard(&captured);
        assert!(!path.exists());
    }
}
