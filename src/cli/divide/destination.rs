//! Where an answer goes: standard output, or a file that has its name only when the answer is whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use equipoise::{Error, Result};

use crate::cli::terminal;

/// The end of the name of a file that is not whole.
const PART: &str = "part";

pub enum Destination {
    Nowhere,
    /// How many bytes were written.
    Standard(u64),
    File(Box<PartFile>),
}

/// A file on its way.
pub struct PartFile {
    path: PathBuf,
    /// Where it is written to; the same if that is a device or a pipe.
    part: PathBuf,
    file: File,
}

impl Destination {
    /// A file.
    ///
    /// # Errors
    /// Wrong usage if it cannot be written.
    pub fn file(path: &Path) -> Result<Destination> {
        let refused = |why: io::Error| Error::usage(format!("--to {}: it cannot be written: {why}", path.display()));
        let is_special = fs::metadata(path).is_ok_and(|about| !about.is_file());
        let mut name = path.as_os_str().to_owned();
        name.push(".");
        name.push(PART);
        let part = if is_special { path.to_path_buf() } else { name.into() };
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(!is_special).open(&part).map_err(refused)?;
        Ok(Destination::File(Box::new(PartFile { path: path.into(), part, file })))
    }

    /// Appends.
    ///
    /// # Errors
    /// If it is not taken; the sentence says that what was written is not all.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Destination::Nowhere => Ok(()),
            Destination::Standard(written) => {
                terminal::print(|out| out.write_all(bytes)).map_err(|why| match written {
                    0 => Error::Failed(format!("{why}; what was written of the answer, if anything, is not all of it")),
                    _ => Error::Failed(format!("{why}; the {written} bytes of the answer that were written before are not all of it")),
                })?;
                *written += bytes.len() as u64;
                Ok(())
            }
            Destination::File(to) => to.file.write_all(bytes).map_err(|why| to.failed(&why)),
        }
    }

    /// The answer is whole.
    ///
    /// # Errors
    /// If the disk does not take the rest of it.
    pub fn end(&mut self) -> Result<()> {
        let Destination::File(to) = self else { return Ok(()) };
        if to.part == to.path {
            return to.file.flush().map_err(|why| to.failed(&why));
        }
        to.file.sync_all().and_then(|()| fs::rename(&to.part, &to.path)).map_err(|why| to.failed(&why))
    }
}

impl PartFile {
    fn failed(&self, why: &io::Error) -> Error {
        let path = self.path.display();
        Error::Failed(match self.part == self.path {
            true => format!("--to {path}: {why}; what was written there of the answer, if anything, is not all of it"),
            false => format!("--to {path}: {why}; what there is of the answer is in {}, and is not all of it", self.part.display()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("to");
        let mut to = Destination::file(&path).unwrap();
        to.write(b"all of ").unwrap();
        assert!(!path.exists());
        to.write(b"it").unwrap();
        to.end().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all of it");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told() {
        let mut full = Destination::file(Path::new("/dev/full")).unwrap();
        let why = full.write(b"x").unwrap_err().to_string();
        assert!(why.starts_with("--to /dev/full: No space left") && why.ends_with("is not all of it"), "{why}");
        assert!(Destination::file(Path::new("/no/such/folder/file")).is_err());
    }
}
