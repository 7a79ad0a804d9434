//! A file that gets its name only when it is complete. A run that fails leaves what was there before, and nobody reads half a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that is being written.
pub struct WholeFile {
    /// As it was asked for.
    path: PathBuf,
    /// Target, if it is a symbolic link.
    target: PathBuf,
    state: State,
}

enum State {
    /// It can be written, but nothing has been: there is no temporary file that a killed run would leave.
    Unwritten,
    /// A temporary file in the same folder, which is renamed in the end. Its name cannot be known before it exists, so it collides neither with
    /// another program that writes the same file nor with a link put there on purpose.
    Temporary(NamedTempFile),
    /// A device or a pipe, written in place.
    InPlace(File),
    Ended,
}

/// State of a file that could not be completed.
#[derive(Debug, PartialEq, Eq)]
pub enum Remains {
    /// A file under another name.
    Part(PathBuf),
    /// Bytes in a device or a pipe.
    InPlace,
    Nothing,
}

impl WholeFile {
    /// Prepares to write this file, so that a wrong name is found before the work begins. A symbolic link stays one: what it leads to is written. A
    /// file that is there keeps its mode.
    ///
    /// # Errors
    /// If it is a folder, or cannot be written.
    pub fn create(path: &Path) -> io::Result<WholeFile> {
        let about = fs::metadata(path).ok();
        if about.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let is_special = about.is_some_and(|about| {
            let kind = about.file_type();
            kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket()
        });
        let target = followed(path)?;
        let state = if is_special || is_descriptor(&target) {
            State::InPlace(File::options().append(true).open(path)?)
        } else {
            if target.exists() {
                // What may not be written is not replaced either.
                File::options().append(true).open(&target)?;
            }
            temporary(&target)?;
            State::Unwritten
        };
        Ok(WholeFile { path: path.into(), target, state })
    }

    /// Writes a file at once.
    ///
    /// # Errors
    /// As [`create`](WholeFile::create), and if the disk does not take it.
    pub fn put(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        WholeFile::create(path)?.complete(write)
    }

    /// Writes the whole content and gives the file its name.
    ///
    /// # Errors
    /// If the disk does not take it; then nothing is left of it, except in a device.
    pub fn complete(mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut buffered = BufWriter::new(&mut self);
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        self.end()
    }

    /// Path that was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name: all has been written.
    ///
    /// # Errors
    /// If the disk does not take the rest of it.
    pub fn end(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Unwritten => self.persist(temporary(&self.target)?),
            State::Temporary(file) => self.persist(file),
            State::InPlace(mut file) => file.flush().inspect_err(|_| self.state = State::InPlace(file)),
            State::Ended => Ok(()),
        }
    }

    fn persist(&mut self, file: NamedTempFile) -> io::Result<()> {
        if let Ok(before) = fs::metadata(&self.target) {
            file.as_file().set_permissions(before.permissions())?;
        }
        file.as_file().sync_all()?;
        match file.persist(&self.target) {
            Ok(_) => Ok(()),
            Err(why) => {
                self.state = State::Temporary(why.file);
                Err(why.error)
            }
        }
    }

    /// Gives up after an error, but keeps what was written.
    pub fn give_up(&mut self) -> Remains {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Temporary(file) => file.keep().map_or(Remains::Nothing, |(_, part)| Remains::Part(part)),
            State::InPlace(_) => Remains::InPlace,
            State::Unwritten | State::Ended => Remains::Nothing,
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if matches!(self.state, State::Unwritten) {
            self.state = State::Temporary(temporary(&self.target)?);
        }
        match &mut self.state {
            State::Temporary(file) => file.write(bytes),
            State::InPlace(file) => file.write(bytes),
            State::Unwritten | State::Ended => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Temporary(file) => file.flush(),
            State::InPlace(file) => file.flush(),
            State::Unwritten | State::Ended => Ok(()),
        }
    }
}

/// `/dev/stdout` may lead to a plain file, but is not to be replaced by one.
fn is_descriptor(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder))
}

/// The file to which a path leads over symbolic links; that file may not be there. Descriptors are not followed.
fn followed(path: &Path) -> io::Result<PathBuf> {
    /// The number that the system follows at most.
    const MOST_LINKS: usize = 40;
    let mut at = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if is_descriptor(&at) || !fs::symlink_metadata(&at).is_ok_and(|about| about.is_symlink()) {
            return Ok(at);
        }
        let next = fs::read_link(&at)?;
        at = at.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("too many symbolic links lead from one to the other"))
}

/// A new file in the same folder, with the permissions that any new file gets there.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix(&prefix).suffix(".part").permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder);
    made.map_err(|why| {
        // Without the name of the temporary file, which nobody has asked for; the library puts it behind the system's words.
        let said = why.to_string();
        io::Error::new(why.kind(), said.split(" at path ").next().unwrap_or(&said).to_string())
    })
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
    fn a_file_has_its_name_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("to");
        let mut to = WholeFile::create(&path).unwrap();
        assert!(names(folder.path()).is_empty());
        to.write_all(b"all of ").unwrap();
        assert!(!path.exists());
        to.write_all(b"it").unwrap();
        to.end().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all of it");
        // As any file that is made there.
        let other = folder.path().join("other");
        fs::write(&other, "").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions(), fs::metadata(&other).unwrap().permissions());
        let mut dropped = WholeFile::create(&folder.path().join("given up")).unwrap();
        dropped.write_all(b"some of it").unwrap();
        drop(dropped);
        assert_eq!(names(folder.path()), ["other", "to"]);
    }

    #[test]
    fn a_refusal_names_no_temporary_file() {
        let why = WholeFile::create(Path::new("/no/such/folder/file")).map(|_| ()).unwrap_err();
        assert_eq!((why.kind(), why.to_string().contains("part")), (io::ErrorKind::NotFound, false), "{why}");
    }

    #[test]
    fn a_link_stays_a_link_and_a_file_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::create_dir(place("far")).unwrap();
        fs::write(place("far/file"), "yesterday").unwrap();
        fs::set_permissions(place("far/file"), fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("far/file", place("near")).unwrap();
        std::os::unix::fs::symlink("near", place("nearest")).unwrap();
        std::os::unix::fs::symlink("far/new", place("dangling")).unwrap();
        for name in ["nearest", "dangling"] {
            WholeFile::put(&place(name), |out| out.write_all(b"today")).unwrap();
            assert!(fs::symlink_metadata(place(name)).unwrap().is_symlink() && fs::read(place(name)).unwrap() == b"today");
        }
        assert_eq!(fs::metadata(place("far/file")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!((names(&place("far")), names(folder.path()).len()), (vec!["file".to_owned(), "new".to_owned()], 4));
        std::os::unix::fs::symlink("round", place("round")).unwrap();
        assert!(WholeFile::create(&place("round")).is_err());
    }

    #[test]
    fn a_run_that_fails_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        WholeFile::put(&path, |out| out.write_all(b"yesterday")).unwrap();
        let failed = WholeFile::put(&path, |out| {
            out.write_all(b"today, but not all")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"yesterday".to_vec(), vec!["table.csv".to_owned()]));
        // Nothing at all is a complete file, too.
        WholeFile::put(&path, |_| Ok(())).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn two_at_once_are_each_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("both");
        let (mut one, mut other) = (WholeFile::create(&path).unwrap(), WholeFile::create(&path).unwrap());
        one.write_all(b"one and ").unwrap();
        other.write_all(b"the other, which is longer").unwrap();
        one.write_all(b"all of it").unwrap();
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
        WholeFile::put(&path, |out| out.write_all(b"it")).unwrap();
        assert_eq!((fs::read(&victim).unwrap(), fs::read(&path).unwrap()), (b"precious".to_vec(), b"it".to_vec()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_and_descriptors_are_written_in_place() {
        let mut full = WholeFile::create(Path::new("/dev/full")).unwrap();
        assert_eq!(full.write_all(b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(full.give_up(), Remains::InPlace);
        // A descriptor that leads to a file, as `/dev/stdout` does behind `>`.
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let file = File::create(&path).unwrap();
        let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        WholeFile::put(Path::new(&descriptor), |out| out.write_all(b"it")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"it".to_vec(), vec!["out".to_owned()]));
        for wrong in ["/no/such/folder/file", "/"] {
            assert!(WholeFile::create(Path::new(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_part_that_cannot_get_its_name_is_kept_on_request() {
        // The path has become a folder meanwhile.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("to");
        let mut to = WholeFile::create(&path).unwrap();
        to.write_all(b"it").unwrap();
        fs::create_dir(&path).unwrap();
        to.end().unwrap_err();
        let Remains::Part(part) = to.give_up() else { panic!("nothing is left") };
        assert_eq!(fs::read(part).unwrap(), b"it");
        assert_eq!(to.give_up(), Remains::Nothing);
    }
}
