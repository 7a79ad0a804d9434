//! The input: a file on the host of the originator, or what is put aside there first because it has no length: standard input, a pipe, an input that is
//! compressed.

use std::fs::{File, Metadata};
use std::io::{self, Cursor, ErrorKind, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::unpack::{Form, MAGIC};
use crate::divisible::spread::cut::Cutter;
use crate::divisible::spread::{InputSource, Range, Records};
use equipoise::error::{Error, Result};
use equipoise::node::Worker;

/// A file that is read in ranges, as it was when it was opened. All readers share the file that was opened then, whatever happens to its name.
#[derive(Clone, Debug)]
pub struct Input {
    /// Name at the beginning of error messages.
    named: String,
    file: Arc<File>,
    length: u64,
    /// Compression that was unpacked.
    packed: Option<Form>,
    /// Time of the last change, to detect changes during the run; `None` for a private temporary file.
    changed: Option<(i64, i64)>,
}

/// An input that was found.
#[derive(Debug)]
pub enum FoundInput {
    /// It can be read from any place.
    Ready(Input),
    /// It must be put aside first.
    InputStream(InputStream),
}

/// An input of unknown length.
#[derive(Debug)]
pub struct InputStream {
    named: String,
    from: From,
    raw: bool,
    promised: Option<Form>,
}

#[derive(Debug)]
enum From {
    Open(File),
    /// A named pipe: opening it waits for a writer.
    Named(PathBuf),
}

/// The name of standard input.
const STANDARD: &str = "-";
/// Number of blocks of the sample, from equally distant places ..
const BLOCKS: u64 = 4;
/// .. and bytes of each.
const BLOCK: u64 = 256 << 10;

/// Finds an input; `-` is standard input. With `raw` the bytes of what is compressed are taken as they are.
///
/// # Errors
/// Wrong usage if it cannot be read, or is nothing that could be divided.
pub fn find(path: &Path, raw: bool) -> Result<FoundInput> {
    let named = format!("--input {}", path.display());
    let unreadable = |why: io::Error| Error::usage(format!("{named}: it cannot be read: {why}"));
    let wrong = |why: &str| Error::usage(format!("{named}: {why}"));
    let promised = path.to_str().and_then(Form::promised).filter(|_| !raw);
    let stream = |from| Ok(FoundInput::InputStream(InputStream { named: named.clone(), from, raw, promised }));
    if path == Path::new(STANDARD) {
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(unreadable)?);
        let about = file.metadata().map_err(unreadable)?;
        return match about.is_file() && file.stream_position().is_ok_and(|at| at == 0) && about.len() > 0 {
            true => ready(named, file, &about, raw, promised),
            false if about.is_dir() => Err(wrong("standard input is a folder")),
            false => stream(From::Open(file)),
        };
    }
    // Checked before it is opened: opening a pipe would wait for a writer.
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if about.is_dir() {
        return Err(wrong("this is a folder; one file is divided"));
    }
    if about.file_type().is_fifo() {
        return stream(From::Named(path.into()));
    }
    if !about.is_file() {
        return Err(wrong("this is a device or a socket; a file is divided, or what comes through a pipe"));
    }
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    // Files of the kernel, as in /proc, say that they are empty, and are not.
    if about.len() == 0 && file.read_at(&mut [0], 0).map_err(unreadable)? > 0 {
        return stream(From::Open(file));
    }
    ready(named, file, &about, raw, promised)
}

/// A file that is there, unless it must be unpacked.
fn ready(named: String, file: File, about: &Metadata, raw: bool, promised: Option<Form>) -> Result<FoundInput> {
    let mut head = [0; MAGIC];
    let read = file.read_at(&mut head, 0).map_err(|why| Error::usage(format!("{named}: it cannot be read: {why}")))?;
    let form = if raw { Form::Plain } else { judged(&named, &head[..read], promised)? };
    if form != Form::Plain {
        return Ok(FoundInput::InputStream(InputStream { named, from: From::Open(file), raw, promised }));
    }
    let changed = Some(times(about));
    Ok(FoundInput::Ready(Input { named, file: Arc::new(file), length: about.len(), packed: None, changed }))
}

/// Time at which a file's content was last changed.
fn times(about: &Metadata) -> (i64, i64) {
    (about.mtime(), about.mtime_nsec())
}

/// Form of an input. Refused if it has an unsupported compression, or a name of a compressed file without being one.
fn judged(named: &str, head: &[u8], promised: Option<Form>) -> Result<Form> {
    match (Form::of(head), promised) {
        (Form::Foreign(name, unpacks), _) => Err(Error::usage(format!(
            "{named}: it is compressed by {name}, which is not read here: `{unpacks} FILE | equipoise divide --input - ..` does it, and --raw takes \
             its bytes as they are"
        ))),
        (form, Some(promised)) if form != promised => {
            let name = promised.name();
            Err(Error::usage(format!(
                "{named}: it is called as if it were compressed by {name}, and is not; --raw takes its bytes as they are"
            )))
        }
        (form, _) => Ok(form),
    }
}

impl InputStream {
    /// Unpacks the input into an unnamed temporary file. Takes until its writer has finished.
    ///
    /// # Errors
    /// Wrong usage if it cannot be read to its end, or is damaged; a failure if there is no room for it.
    pub fn put_aside(self, worker: &mut dyn Worker) -> Result<Input> {
        let InputStream { named, from, raw, promised } = self;
        let unreadable = |why: io::Error| Error::usage(format!("{named}: it cannot be read: {why}"));
        let full = |why: io::Error| Error::Failed(format!("{named}: it cannot be put aside in {}: {why}", std::env::temp_dir().display()));
        let source = match from {
            From::Open(file) => file,
            From::Named(path) => File::open(path).map_err(unreadable)?,
        };
        let mut head = Vec::new();
        (&source).take(MAGIC as u64).read_to_end(&mut head).map_err(unreadable)?;
        let form = if raw { Form::Plain } else { judged(&named, &head, promised)? };
        // A file that is unpacked must not change meanwhile; pipes have no modification times.
        let before = source.metadata().ok().filter(Metadata::is_file).map(|about| times(&about));
        let read_again = source.try_clone().map_err(unreadable)?;
        let mut file = tempfile::tempfile().map_err(full)?;
        let (mut length, mut failed) = (0, None);
        let unpacked = form.unpack(Cursor::new(head).chain(source), |bytes| {
            worker.checkpoint();
            length += bytes.len() as u64;
            file.write_all(bytes).map_err(|why| {
                failed = Some(why);
                ErrorKind::Other.into()
            })
        });
        let after = read_again.metadata().ok().map(|about| times(&about));
        if before.is_some() && before != after {
            return Err(Error::Failed(format!("{named}: the file was written to while it was read; there is no answer")));
        }
        match (unpacked, failed) {
            (_, Some(why)) => Err(full(why)),
            (Err(why), None) if why.kind() == ErrorKind::InvalidData => {
                Err(Error::usage(format!("{named}: it is compressed by {}, and damaged: {why}", form.name())))
            }
            (Err(why), None) => Err(unreadable(why)),
            (Ok(()), None) => {
                let packed = Some(form).filter(|form| *form != Form::Plain);
                Ok(Input { named, file: Arc::new(file), length, packed, changed: None })
            }
        }
    }
}

impl Input {
    /// Checks that the input has not changed since it was opened.
    ///
    /// # Errors
    /// If it is not, or cannot be asked any more.
    pub fn check(&self) -> Result<()> {
        let about = self.file.metadata().map_err(|why| Error::Failed(format!("{}: {why}", self.named)))?;
        match self.changed {
            _ if about.len() < self.length => Err(self.shrank(about.len())),
            Some(changed) if changed != times(&about) || about.len() != self.length => Err(Error::Failed(format!(
                "{}: the file was written to while it was read, so nobody knows what was read of it; there is no answer (divide a copy, or what \
                 `head -c {} FILE` writes to --input -)",
                self.named, self.length
            ))),
            _ => Ok(()),
        }
    }

    /// Compression that was unpacked, if any.
    pub fn packed(&self) -> Option<&'static str> {
        self.packed.map(Form::name)
    }

    fn shrank(&self, now: u64) -> Error {
        let (named, before) = (&self.named, self.length);
        Error::Failed(format!("{named}: the file was cut from {before} to {now} bytes while it was read; there is no answer"))
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

impl InputSource for Input {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&mut self, range: Range, into: &mut Vec<u8>) -> Result<()> {
        let before = into.len();
        let wanted = usize::try_from(range.len()).unwrap_or(usize::MAX);
        into.resize(before + wanted, 0);
        match self.file.read_exact_at(&mut into[before..], range.start) {
            Ok(()) => Ok(()),
            Err(why) if why.kind() == ErrorKind::UnexpectedEof => {
                Err(self.shrank(self.file.metadata().map_or(range.start, |about| about.len())))
            }
            Err(why) => Err(Error::Failed(format!("{}: it cannot be read any further: {why}", self.named))),
        }
    }

    fn again(&self) -> Result<Box<dyn InputSource + Send>> {
        Ok(Box::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Still;

    impl Worker for Still {
        fn checkpoint(&mut self) {}
        fn charge(&mut self, _: u64) {}
        fn sleep(&mut self, _: u64) {}
        fn spin(&mut self, _: u64) {}
    }

    fn opened(path: &Path) -> Result<Input> {
        match find(path, false)? {
            FoundInput::Ready(input) => Ok(input),
            FoundInput::InputStream(stream) => stream.put_aside(&mut Still),
        }
    }

    fn all_of(mut input: Input) -> Vec<u8> {
        let mut all = Vec::new();
        input.read(Range { start: 0, end: input.len() }, &mut all).unwrap();
        all
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        flate2::bufread::GzEncoder::new(text, flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
        packed
    }

    #[test]
    fn a_file_is_read_in_ranges_and_must_not_shrink() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let mut input = opened(&path).unwrap();
        let mut read = b"> ".to_vec();
        input.read(Range { start: 4, end: 8 }, &mut read).unwrap();
        assert_eq!(read, b"> two\n");
        assert_eq!(input.sample(Records::Lines).unwrap(), "one\ntwo\nthree\n");
        std::fs::write(&path, "one\n").unwrap();
        for why in [input.read(Range { start: 2, end: 8 }, &mut read), input.check()] {
            let why = why.unwrap_err().to_string();
            assert!(why.contains("cut from 14 to 4 bytes"), "{why}");
        }
        std::fs::remove_file(&path).unwrap();
        let missing = opened(&path).unwrap_err();
        assert!(missing.exit_status() == 2 && missing.to_string().contains("No such file"), "{missing}");
        assert!(opened(folder.path()).unwrap_err().to_string().ends_with("this is a folder; one file is divided"));
        assert!(opened(Path::new("/dev/zero")).unwrap_err().to_string().contains("this is a device"));
    }

    #[test]
    fn a_file_that_is_written_to_is_noticed_and_one_that_is_replaced_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        // Long ago, so that a clock of any grain shows the difference.
        let before = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
        File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        let input = opened(&path).unwrap();
        input.check().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "another one").unwrap();
        std::fs::rename(&path, folder.path().join("kept")).unwrap();
        std::fs::rename(&other, &path).unwrap();
        // The opened file is still there, also for a second reading.
        let mut read = Vec::new();
        input.again().unwrap().read(Range { start: 0, end: 8 }, &mut read).unwrap();
        assert!(input.check().is_ok() && read == b"one\ntwo\n");
        // The same number of bytes; then more.
        for (text, at) in [("ten", 0), ("more", 8)] {
            File::options().write(true).open(folder.path().join("kept")).unwrap().write_at(text.as_bytes(), at).unwrap();
            let why = input.check().unwrap_err();
            assert!(why.exit_status() == 1 && why.to_string().contains("was written to while it was read"), "{why}");
        }
    }

    #[test]
    fn what_has_no_length_is_put_aside() {
        let input = opened(Path::new("/proc/self/status"));
        if cfg!(target_os = "linux") {
            assert!(all_of(input.unwrap()).starts_with(b"Name:"));
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let text = b"line\n".repeat(100_000);
        let through_the_pipe = |written: Vec<u8>| {
            let writer = path.clone();
            let writing = std::thread::spawn(move || std::fs::write(&writer, written).unwrap());
            let input = opened(&path).unwrap();
            writing.join().unwrap();
            input
        };
        let plain = through_the_pipe(text.clone());
        assert_eq!((plain.packed(), plain.check().is_ok(), all_of(plain) == text), (None, true, true));
        let packed = through_the_pipe(gzip(&text));
        assert_eq!((packed.packed(), all_of(packed) == text), (Some("gzip"), true));
    }

    #[test]
    fn what_is_compressed_is_unpacked_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let packed = gzip(b"one\ntwo\n");
        for name in ["a.gz", "without-an-ending"] {
            assert_eq!(all_of(opened(&write(name, &packed)).unwrap()), b"one\ntwo\n");
        }
        let zstd = ruzstd::encoding::compress_to_vec(&b"three\n"[..], ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(all_of(opened(&write("b.zst", &zstd)).unwrap()), b"three\n");
        let FoundInput::Ready(raw) = find(&folder.path().join("a.gz"), true).unwrap() else { panic!("a file is ready") };
        assert_eq!(all_of(raw), packed);
        for (name, content, said) in [
            ("c.gz", &b"one\n"[..], "it is called as if it were compressed by gzip, and is not; --raw takes its bytes as they are"),
            ("d.gz", b"", "it is called as if it were compressed by gzip, and is not; --raw takes its bytes as they are"),
            ("e", &packed[..packed.len() - 3], "it is compressed by gzip, and damaged: it ends in the middle"),
            ("f.zst", &zstd[..zstd.len() - 3], "it is compressed by zstd, and damaged: "),
            ("g", b"\xfd7zXZ\0\0\x04", "it is compressed by xz, which is not read here: `xz -dc FILE | equipoise"),
        ] {
            let why = opened(&write(name, content)).unwrap_err();
            assert!(why.exit_status() == 2 && why.to_string().contains(said), "{name}: {why}");
        }
    }

    #[test]
    fn the_sample_of_a_large_file_comes_from_everywhere() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = (0..300_000).map(|number| format!("{number:09}\n")).collect();
        std::fs::write(&file, &text).unwrap();
        let sample = opened(file.path()).unwrap().sample(Records::Lines).unwrap();
        assert_eq!(sample.len() as u64, BLOCKS * BLOCK);
        for block in 0..BLOCKS as usize {
            let first: usize = std::str::from_utf8(&sample[block * BLOCK as usize..][..9]).unwrap().parse().unwrap();
            assert_eq!(first, 75_000 * block);
        }
    }
}
