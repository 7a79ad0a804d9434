//! Destination of an answer: standard output, or a file that gets its name only when the answer is complete.

use std::io::{self, Write};
use std::path::Path;

use equipoise::{Error, Result, names};
use equipoise_lab::whole_file::{Remains, WholeFile};

use crate::terminal;

pub enum Destination {
    Nowhere,
    /// Number of bytes written.
    Standard(u64),
    File(Box<WholeFile>),
}

impl Destination {
    /// A file.
    ///
    /// # Errors
    /// Wrong usage if it cannot be written.
    pub fn file(path: &Path) -> Result<Destination> {
        let refused = |why: io::Error| Error::usage(format!("--to {}: it cannot be written: {why}", names::shown(path)));
        Ok(Destination::File(Box::new(WholeFile::create(path).map_err(refused)?)))
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
            Destination::File(to) => to.write_all(bytes).map_err(|why| failed(to, &why)),
        }
    }

    /// The answer is complete.
    ///
    /// # Errors
    /// If the disk does not take the rest of it.
    pub fn end(&mut self) -> Result<()> {
        let Destination::File(to) = self else { return Ok(()) };
        to.end().map_err(|why| failed(to, &why))
    }
}

/// Ends the output after an error; the part that was written is kept.
fn failed(to: &mut WholeFile, why: &io::Error) -> Error {
    let path = names::shown(to.path());
    Error::Failed(match to.give_up() {
        Remains::Part(part) => format!("--to {path}: {why}; the incomplete answer is in {}", names::shown(&part)),
        Remains::InPlace => format!("--to {path}: {why}; what was written there of the answer, if anything, is not all of it"),
        Remains::Nothing => format!("--to {path}: {why}; nothing is left of the answer"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told() {
        let mut full = Destination::file(Path::new("/dev/full")).unwrap();
        let why = full.write(b"x").unwrap_err().to_string();
        assert!(why.starts_with("--to /dev/full: No space left") && why.ends_with("is not all of it"), "{why}");
        for wrong in ["/no/such/folder/file", "/"] {
            assert!(Destination::file(Path::new(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_incomplete_answer_is_named() {
        // The path has become a folder meanwhile.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("to");
        let mut to = Destination::file(&path).unwrap();
        to.write(b"it").unwrap();
        std::fs::create_dir(&path).unwrap();
        let why = to.end().unwrap_err().to_string();
        let part = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_file()).unwrap();
        assert!(why.ends_with(&format!("the incomplete answer is in {}", part.display())), "{why}");
        assert_eq!(std::fs::read(part).unwrap(), b"it");
    }
}
