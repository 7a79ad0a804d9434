//! Destination of an answer: standard output, or a file that gets its name only when the answer is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use equipoise::{Error, Result};
use tempfile::NamedTempFile;

use crate::terminal;

pub enum Destination {
    Nowhere,
    /// Number of bytes written.
    Standard(u64),
    File(Box<Target>),
}

/// A file on its way.
pub struct Target {
    path: PathBuf,
    way: Way,
}

enum Way {
    /// A temporary file in the same folder, which is renamed in the end. Its name cannot be known before it exists, so it collides neither with
    /// another program that writes the same file nor with a link put there on purpose.
    Beside(NamedTempFile),
    /// A device or a pipe, written directly.
    Straight(File),
    /// The file has its name, or stays where it is.
    Ended,
}

impl Destination {
    /// A file.
    ///
    /// # Errors
    /// Wrong usage if it cannot be written.
    pub fn file(path: &Path) -> Result<Destination> {
        let refused = |why: io::Error| Error::usage(format!("--to {}: it cannot be written: {why}", path.display()));
        let about = fs::metadata(path).ok();
        if about.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(refused(io::ErrorKind::IsADirectory.into()));
        }
        let is_special = about.is_some_and(|about| {
            let kind = about.file_type();
            kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket()
        });
        let way = match is_special {
            true => Way::Straight(File::options().write(true).open(path).map_err(refused)?),
            false => Way::Beside(beside(path).map_err(refused)?),
        };
        Ok(Destination::File(Box::new(Target { path: path.into(), way })))
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
            Destination::File(to) => to.write(bytes).map_err(|why| to.failed(&why)),
        }
    }

    /// The answer is whole.
    ///
    /// # Errors
    /// If the disk does not take the rest of it.
    pub fn end(&mut self) -> Result<()> {
        let Destination::File(to) = self else { return Ok(()) };
        match std::mem::replace(&mut to.way, Way::Ended) {
            Way::Straight(mut file) => file.flush().map_err(|why| {
                to.way = Way::Straight(file);
                to.failed(&why)
            }),
            Way::Beside(whole) => {
                let ended = whole.as_file().sync_all();
                ended
                    .map_err(|why| (why, None))
                    .and_then(|()| whole.persist(&to.path).map_err(|why| (why.error, Some(why.file))))
                    .map_or_else(
                        |(why, file)| {
                            to.way = file.map_or(Way::Ended, Way::Beside);
                            Err(to.failed(&why))
                        },
                        |_| Ok(()),
                    )
            }
            Way::Ended => Ok(()),
        }
    }
}

/// A new file in the same folder, with the permissions that any new file gets there.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut begins = std::ffi::OsString::from(".");
    begins.push(path.file_name().unwrap_or_default());
    begins.push(".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&begins).suffix(".part").permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder)
}

impl Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.way {
            Way::Beside(file) => file.write_all(bytes),
            Way::Straight(file) => file.write_all(bytes),
            Way::Ended => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends the output after an error; the part that was written is kept.
    fn failed(&mut self, why: &io::Error) -> Error {
        let path = self.path.display();
        Error::Failed(match std::mem::replace(&mut self.way, Way::Ended) {
            Way::Beside(file) => match file.keep() {
                Ok((_, part)) => format!("--to {path}: {why}; the incomplete answer is in {}", part.display()),
                Err(_) => format!("--to {path}: {why}; nothing is left of the answer"),
            },
            Way::Straight(_) => format!("--to {path}: {why}; what was written there of the answer, if anything, is not all of it"),
            Way::Ended => format!("--to {path}: {why}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

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
        // As any file that is made there.
        let other = folder.path().join("other");
        fs::write(&other, "").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions(), fs::metadata(&other).unwrap().permissions());
        drop(Destination::file(&folder.path().join("given up")).unwrap());
        assert_eq!(names(folder.path()), ["other", "to"]);
    }

    #[test]
    fn two_at_once_are_each_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("both");
        let (mut one, mut other) = (Destination::file(&path).unwrap(), Destination::file(&path).unwrap());
        one.write(b"one and ").unwrap();
        other.write(b"the other, which is longer").unwrap();
        one.write(b"all of it").unwrap();
        one.end().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one and all of it");
        other.end().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"the other, which is longer");
        assert_eq!(names(folder.path()), ["both"]);
    }

    #[test]
    fn links_that_others_have_put_there_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("to"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        for name in ["to.part", ".to.part"] {
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        let mut to = Destination::file(&path).unwrap();
        to.write(b"it").unwrap();
        to.end().unwrap();
        assert_eq!((fs::read(&victim).unwrap(), fs::read(&path).unwrap()), (b"precious".to_vec(), b"it".to_vec()));
        assert!(!path.is_symlink());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told() {
        let mut full = Destination::file(Path::new("/dev/full")).unwrap();
        let why = full.write(b"x").unwrap_err().to_string();
        assert!(why.starts_with("--to /dev/full: No space left") && why.ends_with("is not all of it"), "{why}");
        for wrong in ["/no/such/folder/file", "/"] {
            assert!(Destination::file(Path::new(wrong)).is_err(), "{wrong}");
        }
        // The path has become a folder meanwhile: the finished part is kept.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("to");
        let mut to = Destination::file(&path).unwrap();
        to.write(b"it").unwrap();
        fs::create_dir(&path).unwrap();
        let why = to.end().unwrap_err().to_string();
        let part = names(folder.path()).remove(0);
        assert!(why.contains(&format!("the incomplete answer is in {}", folder.path().join(part).display())), "{why}");
    }
}
