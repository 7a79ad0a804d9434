//! The journal: a record of every attempt, one file a rank, tab separated.
//!
//! The first columns are those of GNU parallel's job log. A task counts as done when its record is on the disk.

mod by_seq;
pub mod foreign;
pub mod joblog;
mod known;
pub mod past;
pub mod record;
mod times;
pub mod write;

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, Cursor, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use equipoise::topology::RankId;
use equipoise::{Error, Result, names};
use tempfile::Builder;

/// The records that a rank of a job writes. The first job on a folder has no number in its names.
pub fn file(folder: &Path, rank: RankId, job: u32) -> PathBuf {
    match job {
        0 | 1 => folder.join(format!("rank-{rank}.log")),
        job => folder.join(format!("rank-{rank}.{job}.log")),
    }
}

/// All files of records in a folder, those of earlier jobs first.
///
/// # Errors
/// If the folder cannot be read.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some((rank, job)) = path.file_name().and_then(|name| name.to_str()).and_then(numbers) {
            found.push((job, rank, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, _, path)| path).collect())
}

/// Opens a file of records or a log. A device may have no end, and is none.
///
/// # Errors
/// If it cannot be opened, or is neither a regular file nor a pipe.
pub fn open(path: &Path) -> io::Result<File> {
    // Asked before it is opened, since to open a device may do something.
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_fifo() && !kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a regular file nor a pipe"));
    }
    File::open(path)
}

/// A log or a list of costs from its beginning, and whether it has records, ours or GNU parallel's. It is opened once: a pipe has no second reading.
///
/// # Errors
/// As [`open`], or if it cannot be read.
pub fn source(path: &Path) -> io::Result<(bool, BufReader<impl Read + use<>>)> {
    const RECORDS: &[u8] = b"Seq\t";
    let (file, mut beginning) = (open(path)?, Vec::new());
    (&file).take(RECORDS.len() as u64).read_to_end(&mut beginning)?;
    Ok((beginning == RECORDS, BufReader::with_capacity(1 << 16, Cursor::new(beginning).chain(file))))
}

/// All that another program's log or a list of costs has.
///
/// # Errors
/// If it cannot be read, or is longer than 1 GiB.
pub fn whole(source: impl Read) -> io::Result<Vec<u8>> {
    const MOST_BYTES: u64 = 1 << 30;
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        ..=MOST_BYTES => Ok(bytes),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is longer than 1 GiB")),
    }
}

/// Rank and job of a file of records.
pub fn numbers(name: &str) -> Option<(u32, u32)> {
    let numbers = name.strip_prefix("rank-")?.strip_suffix(".log")?;
    match numbers.split_once('.') {
        Some((rank, job)) => Some((rank.parse().ok()?, job.parse().ok()?)),
        None => Some((numbers.parse().ok()?, 1)),
    }
}

/// Makes the folder if need be, and takes the next number for a job on it.
///
/// # Errors
/// Wrong usage if the folder cannot be written to.
pub fn enter(folder: &Path, note: &str) -> Result<u32> {
    let refused = |why: io::Error| Error::usage(format!("--journal {}: it cannot be written to: {why}", names::shown(folder)));
    fs::create_dir_all(folder).map_err(refused)?;
    // The file appears with all that is in it. It gets its name by a link, which fails if another job has the number.
    let mut file = Builder::new().prefix(".job-").permissions(Permissions::from_mode(0o666)).tempfile_in(folder).map_err(refused)?;
    file.write_all(note.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(refused)?;
    for job in 1.. {
        if link(file.path(), &folder.join(format!("job-{job}"))).map_err(refused)? {
            sync_folder(folder).map_err(refused)?;
            return Ok(job);
        }
    }
    unreachable!("numbers do not end")
}

/// Gives a file a second name; false if another file has that name. A file server may have made the link although it answers that the name is there.
///
/// # Errors
/// If the file system refuses links.
pub(crate) fn link(file: &Path, name: &Path) -> io::Result<bool> {
    match fs::hard_link(file, name) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(fs::metadata(file)?.ino() == fs::metadata(name)?.ino()),
        Err(why) => Err(why),
    }
}

/// A new file is in its folder for good only when the folder is on the disk, too.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_numbers_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("j");
        assert_eq!((enter(&inner, "one").unwrap(), enter(&inner, "two").unwrap()), (1, 2));
        assert_eq!(fs::read_to_string(inner.join("job-2")).unwrap(), "two");
        for (rank, job) in [(1, 1), (0, 2), (0, 1), (10, 2)] {
            fs::write(file(&inner, RankId::new(rank), job), "").unwrap();
        }
        let found: Vec<_> = files(&inner).unwrap().iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_string()).collect();
        assert_eq!(found, ["rank-0.log", "rank-1.log", "rank-0.2.log", "rank-10.2.log"]);
        assert_eq!(enter(Path::new("/proc/none"), "").unwrap_err().exit_status(), 2);
    }
}
