//! Compressed input, recognised by its first bytes: gzip and zstd are unpacked, other archives are refused.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Number of bytes that are examined.
pub const MAGIC: usize = 12;

/// Kind of an input by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    Gzip,
    Zstd,
    /// Its name, and the command that unpacks it to standard output.
    Foreign(&'static str, &'static str),
}

/// First bytes of what is not read, its name, and what unpacks it.
const FOREIGN: [(&[u8], &str, &str); 7] = [
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"LZIP\x01", "lzip", "lzip -dc"),
    (b"\x1f\x9d", "compress", "uncompress -c"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x -so"),
    (b"\x89LZO\0", "lzop", "lzop -dc"),
];

/// Endings of names that promise a form.
const ENDINGS: [(&str, Form); 4] = [(".gz", Form::Gzip), (".tgz", Form::Gzip), (".zst", Form::Zstd), (".zstd", Form::Zstd)];

impl Form {
    pub fn of(head: &[u8]) -> Form {
        match head {
            [0x1f, 0x8b, 8, ..] => Form::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Form::Zstd,
            // A frame to be skipped before the first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Form::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Form::Foreign("bzip2", "bzip2 -dc"),
            _ => {
                let known = FOREIGN.iter().find(|(magic, ..)| head.starts_with(magic));
                known.map_or(Form::Plain, |(_, name, unpacks)| Form::Foreign(name, unpacks))
            }
        }
    }

    /// Kind by a file's name.
    pub fn promised(name: &str) -> Option<Form> {
        ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, form)| *form)
    }

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Form::Plain => "plain",
            Form::Gzip => "gzip",
            Form::Zstd => "zstd",
            Form::Foreign(name, _) => name,
        }
    }

    /// Gives what the source holds to `take`, in order.
    ///
    /// # Errors
    /// Those of `take` and of the source; what cannot be unpacked is [`ErrorKind::InvalidData`], with a reason.
    pub fn unpack(self, source: impl Read, take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let source = BufReader::with_capacity(CHUNK, source);
        match self {
            Form::Gzip => gunzip(source, take).map_err(|why| match why.kind() {
                ErrorKind::InvalidInput | ErrorKind::InvalidData => io::Error::new(ErrorKind::InvalidData, why.to_string()),
                ErrorKind::UnexpectedEof => in_the_middle(),
                _ => why,
            }),
            Form::Zstd => unzstd(source, take),
            Form::Plain | Form::Foreign(..) => copy(source, take),
        }
    }
}

const CHUNK: usize = 256 << 10;

fn in_the_middle() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it ends in the middle")
}

/// Unpacks all members in sequence. Zeros after the last, to which tapes and disks fill up blocks, are ignored as `gzip` does.
fn gunzip(mut source: impl BufRead, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    loop {
        copy(GzDecoder::new(&mut source), &mut take)?;
        let mut padded = false;
        loop {
            let next = source.fill_buf()?;
            if next.is_empty() {
                return Ok(());
            }
            let zeros = next.iter().take_while(|byte| **byte == 0).count();
            if zeros == 0 {
                break;
            }
            padded = true;
            source.consume(zeros);
        }
        if padded {
            return Err(io::Error::new(ErrorKind::InvalidData, "what follows its last part is neither another one nor zeros"));
        }
    }
}

fn copy(mut source: impl Read, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => take(&buffer[..read])?,
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

/// Unpacks all frames in sequence; checksums are compared if present.
fn unzstd(mut source: impl BufRead, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    /// The largest window that `zstd` itself reads without being asked to.
    const WINDOW: u64 = 1 << 27;
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW);
    let mut buffer = vec![0; CHUNK];
    while !source.fill_buf()?.is_empty() {
        match decoder.reset(&mut source) {
            Ok(()) => {}
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                let skipped = io::copy(&mut source.by_ref().take(length.into()), &mut io::sink())?;
                if skipped < u64::from(length) {
                    return Err(in_the_middle());
                }
                continue;
            }
            Err(why) => return Err(damaged(&why, "where a frame should begin there is none")),
        }
        while !decoder.is_finished() || decoder.can_collect() > 0 {
            if !decoder.is_finished() {
                decoder
                    .decode_blocks(&mut source, BlockDecodingStrategy::UptoBytes(CHUNK))
                    .map_err(|why| damaged(&why, "a block cannot be unpacked"))?;
            }
            while decoder.can_collect() > 0 {
                let read = decoder.read(&mut buffer)?;
                take(&buffer[..read])?;
            }
        }
        let (told, counted) = (decoder.get_checksum_from_data(), decoder.get_calculated_checksum());
        if told.is_some() && told != counted {
            return Err(io::Error::new(ErrorKind::InvalidData, "its checksum is another one"));
        }
    }
    Ok(())
}

/// Error about a file of zstd, in words that need no knowledge of the library.
fn damaged(why: &FrameDecoderError, otherwise: &str) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(why);
    while let Some(now) = cause {
        match now.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(ErrorKind::UnexpectedEof) => return in_the_middle(),
            Some(ErrorKind::Other | ErrorKind::InvalidData) | None => {}
            Some(kind) => return io::Error::new(kind, now.to_string()),
        }
        cause = now.source();
    }
    let sentence = match why {
        FrameDecoderError::WindowSizeTooBig { .. } => "it needs more than 128 MiB to be unpacked (zstd --long): unpack it before",
        FrameDecoderError::DictNotProvided { .. } => "it needs a dictionary: unpack it before",
        _ => otherwise,
    };
    io::Error::new(ErrorKind::InvalidData, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(form: Form, packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        form.unpack(packed, |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(all)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        flate2::bufread::GzEncoder::new(text, flate2::Compression::default()).read_to_end(&mut packed).unwrap();
        packed
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn what_was_packed_comes_back_of_several_parts_too() {
        let text: Vec<u8> = (0..300_000u32).flat_map(|number| format!("{}\n", number * 7919 % 65_537).into_bytes()).collect();
        for (form, pack) in [(Form::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Form::Zstd, zstd)] {
            let packed = pack(&text);
            assert_eq!(Form::of(&packed), form);
            assert!(unpacked(form, &packed).unwrap() == text);
            assert!(unpacked(form, &[pack(&text[..1000]), pack(b""), pack(&text[1000..])].concat()).unwrap() == text);
            for wrong in [&packed[..packed.len() / 2], &packed[..packed.len() - 1]] {
                assert_eq!(unpacked(form, wrong).unwrap_err().kind(), ErrorKind::InvalidData, "{form:?}");
            }
            let mut damaged = packed.clone();
            let middle = packed.len() / 2;
            damaged[middle..middle + 8].iter_mut().for_each(|byte| *byte ^= 0x55);
            assert!(unpacked(form, &damaged).is_err(), "{form:?}");
            let followed = [packed, b"something else".to_vec()].concat();
            assert!(unpacked(form, &followed).is_err(), "{form:?}");
        }
        // Zeros fill up a block; nothing may follow them.
        let padded = [gzip(&text[..1000]), gzip(&text[1000..]), vec![0; 700_000]].concat();
        assert!(unpacked(Form::Gzip, &padded).unwrap() == text);
        let why = unpacked(Form::Gzip, &[&padded[..], b"x"].concat()).unwrap_err().to_string();
        assert_eq!(why, "what follows its last part is neither another one nor zeros");
        for (from, sentence) in [(0, "it ends in the middle"), (1, "where a frame should begin there is none")] {
            let packed = zstd(&text);
            let wrong = if from == 0 { packed[..packed.len() / 2].to_vec() } else { [&packed[..], b"something else"].concat() };
            assert_eq!(unpacked(Form::Zstd, &wrong).unwrap_err().to_string(), sentence);
        }
        // A block of the kind that is reserved.
        let wrong_block = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 15, 0, 0, b'x'];
        assert_eq!(unpacked(Form::Zstd, &wrong_block).unwrap_err().to_string(), "a block cannot be unpacked");
        let skipped = [&[0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(b"and this")].concat();
        assert_eq!((Form::of(&skipped), unpacked(Form::Zstd, &skipped).unwrap()), (Form::Zstd, b"and this".to_vec()));
        // A block without compression, whose checksum is another one.
        let wrong_sum = [0x28, 0xb5, 0x2f, 0xfd, 0x24, 1, 9, 0, 0, b'x', 1, 2, 3, 4];
        assert_eq!(unpacked(Form::Zstd, &wrong_sum).unwrap_err().to_string(), "its checksum is another one");
    }

    #[test]
    fn forms_are_known_by_content_and_names_promise_them() {
        assert_eq!(Form::of(b"BZh91AY&SY"), Form::Foreign("bzip2", "bzip2 -dc"));
        assert_eq!(Form::of(b"\xfd7zXZ\0\0\x04").name(), "xz");
        for plain in [&b""[..], b"BZh is not always an archive", b"\x1f\x8b", b"PK", b"text"] {
            assert_eq!(Form::of(plain), Form::Plain);
        }
        assert_eq!((Form::promised("a.log.gz"), Form::promised("b.zst"), Form::promised("gz")), (Some(Form::Gzip), Some(Form::Zstd), None));
    }
}
