//! The text files that options name: everything that is read as a whole is read here.
//!
//! A device may have no end, and a pipe need not have one. So devices are refused, and whatever is longer than [`MOST_BYTES`] is too. The name
//! `-` means standard input.
//!
//! A byte order mark at the beginning of a text is no part of it. What is packed is refused and not taken for text.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

/// Longer texts are refused.
pub const MOST_BYTES: u64 = 1 << 30;

/// The text in a file or a pipe.
///
/// # Errors
/// As [`bytes()`], and if it is not UTF-8. The error is a sentence that follows "cannot be read:".
pub fn read(path: &Path) -> io::Result<String> {
    text_of(bytes(path)?)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    let no_text = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    if let Some((packer, unpack)) = packing(&bytes) {
        return no_text(format!(
            "it is packed with {packer}; unpack it first, as in {unpack} FILE | equipoise .., with - for the file's name"
        ));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(why) if UTF_16.iter().any(|mark| why.as_bytes().starts_with(mark)) => no_text("it is text in UTF-16, not in UTF-8".into()),
        Err(_) => no_text("it is no text in UTF-8".into()),
    }
}

/// The marks at the beginning of texts, and of what is packed.
const UTF_8: &[u8] = b"\xef\xbb\xbf";
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
const PACKED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "gzip", "zcat"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstdcat"),
    (b"\xfd7zXZ\0", "xz", "xzcat"),
    (b"BZh", "bzip2", "bzcat"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4cat"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// Packer of some bytes, and the program that unpacks them; `None` if they have no mark of a packer.
pub fn packing(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    PACKED.iter().find(|(mark, ..)| bytes.starts_with(mark)).map(|(_, packer, unpack)| (*packer, *unpack))
}

/// The bytes behind a byte order mark, if there is one.
pub fn behind_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(UTF_8).unwrap_or(bytes)
}

/// Returns true if a file's name means standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The numbers of a line, separated by commas, semicolons or blanks; text after a `#` is a comment.
///
/// # Errors
/// If there are both commas and semicolons: a comma may be meant as a decimal point.
pub fn items(line: &str) -> Result<Vec<&str>, String> {
    let line = line.split('#').next().unwrap_or_default();
    if line.contains(',') && line.contains(';') {
        return Err("commas and semicolons: one of them is to separate numbers, and fractions have a point".into());
    }
    Ok(line.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|item| !item.is_empty()).collect())
}

/// Content of standard input, which can be read only once.
static STANDARD_INPUT: OnceLock<Result<Vec<u8>, (io::ErrorKind, String)>> = OnceLock::new();

fn standard_input() -> io::Result<Vec<u8>> {
    let read = || up_to(MOST_BYTES, io::stdin().lock()).map_err(|why| (why.kind(), why.to_string()));
    STANDARD_INPUT.get_or_init(read).clone().map_err(|(kind, why)| io::Error::new(kind, why))
}

/// The same for what may be packed.
///
/// # Errors
/// If it is not there, may not be read, is a folder, a device or a socket, or is longer than [`MOST_BYTES`].
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = marked_bytes(path)?;
    if behind_mark(&bytes).len() < bytes.len() {
        bytes.drain(..UTF_8.len());
    }
    Ok(bytes)
}

fn marked_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if is_standard_input(path) {
        return standard_input();
    }
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

/// Reads all of an input that has at most `most` bytes.
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
    use crate::workload::testing;

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
    fn marks_are_no_part_of_a_text_and_packed_texts_are_refused() {
        let file = |bytes: &[u8]| read(&testing::file(bytes)).map_err(|why| why.to_string());
        assert_eq!(file(b"\xef\xbb\xbfrank,work\n"), Ok("rank,work\n".into()));
        assert_eq!(file(b"\xef\xbb\xbf"), Ok(String::new()));
        assert_eq!(file(b"\xff\xfe1\0"), Err("it is text in UTF-16, not in UTF-8".into()));
        assert_eq!(file(b"1\xff"), Err("it is no text in UTF-8".into()));
        for (mark, packer, _) in PACKED {
            let why = file(&[mark, b"123"].concat()).unwrap_err();
            assert!(why.starts_with(&format!("it is packed with {packer}; unpack it first, as in ")), "{why}");
        }
        assert_eq!(bytes(&testing::file(b"\x1f\x8b1")).unwrap(), b"\x1f\x8b1");
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
