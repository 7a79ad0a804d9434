//! The text files that options name: everything that is read as a whole is read here.
//!
//! A device may have no end, and a pipe need not have one. So devices are refused, and whatever is longer than [`MOST_BYTES`] is too.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Longer texts are refused.
pub const MOST_BYTES: u64 = 1 << 30;

/// The text in a file or a pipe.
///
/// # Errors
/// As [`bytes()`], and if it is not UTF-8. The error is a sentence that follows "cannot be read:".
pub fn read(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// The same for what may be packed.
///
/// # Errors
/// If it is not there, may not be read, is a folder, a device or a socket, or is longer than [`MOST_BYTES`].
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Asked before it is opened, since to open a device may do something.
    let about = std::fs::metadata(path)?;
    if about.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if !about.is_file() && !is_pipe(&about) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a regular file nor a pipe"));
    }
    up_to(MOST_BYTES, File::open(path)?)
}

fn is_pipe(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    about.file_type().is_fifo()
}

/// All of an input that has so many bytes at the most.
fn up_to(most: u64, input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {most} bytes"))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_is_read() {
        let says = |path: &str| read(Path::new(path)).unwrap_err().to_string();
        assert_eq!(says("/dev/zero"), "it is neither a regular file nor a pipe");
        assert_eq!(says("/"), "it is a folder");
        assert!(read(Path::new("Cargo.toml")).unwrap().starts_with("[package]"));
        assert_eq!(up_to(3, io::repeat(7)).unwrap_err().to_string(), "it is longer than 3 bytes");
        assert_eq!(up_to(3, &[7, 8, 9][..]).unwrap(), [7, 8, 9]);
    }

    #[test]
    fn a_pipe_is_read_as_a_file_is() {
        let (reading, mut writing) = io::pipe().unwrap();
        io::Write::write_all(&mut writing, b"1 2\n").unwrap();
        drop(writing);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reading));
        assert_eq!(read(Path::new(&path)).unwrap(), "1 2\n");
    }
}
