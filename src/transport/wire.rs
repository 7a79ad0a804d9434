//! The only place that knows how headers and control messages are written: bincode with fixed-size integers, little-endian; with variable ones for
//! the data that accompanies tasks.
//!
//! A fixed-size encoding is three to four times as fast as the variable one on small messages. Reading is bounded: a hostile length
//! yields an error, never an allocation, and trailing bytes are an error too.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Body;
use super::Envelope;
use super::body::SHORT;

/// The largest control message that is accepted, in bytes. Task payloads do not pass through here.
pub const CONTROL_LIMIT: usize = 1 << 30;

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<CONTROL_LIMIT>()
}

fn compact() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<CONTROL_LIMIT>()
}

/// Bytes that a header takes on the wire, in front of the body.
pub const HEADER: usize = 4 + 4 + (4 + 4) + 2 + 4 + 8 + 8;

/// Why a message could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

/// Writes a control message.
///
/// # Panics
/// If the value's `Serialize` itself refuses (a map of unknown length, say): a mistake in the program, not in its input.
pub fn write<T: Serialize>(value: &T) -> Bytes {
    let mut out = Vec::new();
    write_into(value, &mut out);
    Bytes::from(out)
}

/// Writes a program's value, of any size.
///
/// # Errors
/// If the value's `Serialize` refuses, with the reason.
pub fn try_write<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    bincode::serde::encode_into_std_write(value, &mut out, config()).map_err(|why| why.to_string())?;
    Ok(out)
}

/// Reads what [`try_write`] wrote, all of it. The bound on what is allocated grows with the bytes.
pub fn read_value<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    const LARGE: usize = 1 << 38;
    if bytes.len() <= CONTROL_LIMIT {
        return read(bytes);
    }
    let config = bincode::config::standard().with_fixed_int_encoding().with_limit::<LARGE>();
    let (value, used) = bincode::serde::decode_from_slice(bytes, config).map_err(|why| Unreadable(why.to_string()))?;
    if used == bytes.len() { Ok(value) } else { Err(Unreadable(format!("{} bytes too many", bytes.len() - used))) }
}

/// Writes a control message's body, without memory of its own if it is short.
///
/// # Errors
/// If the value's `Serialize` refuses, with the reason.
pub fn try_write_body<T: Serialize>(value: &T) -> Result<Body, String> {
    let mut bytes = [0; SHORT];
    let short = bincode::serde::encode_into_slice(value, &mut bytes, config()).ok().and_then(|length| Body::short(bytes, length));
    short.map_or_else(|| try_write(value).map(|bytes| Bytes::from(bytes).into()), Ok)
}

/// As [`try_write_body`], for values of our own; see [`write()`].
pub fn write_body<T: Serialize>(value: &T) -> Body {
    try_write_body(value).expect("the library's own messages have derived forms, which are always written")
}

/// Appends a value to a buffer; see [`write()`].
pub fn write_into<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    bincode::serde::encode_into_std_write(value, out, config())
        .expect("a vector takes all bytes, and a value of the library is always written");
}

/// Reads a value that fills the bytes exactly.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    let (value, used) = read_prefix(bytes)?;
    if used != bytes.len() {
        return Err(Unreadable(format!("{} bytes too many", bytes.len() - used)));
    }
    Ok(value)
}

/// Reads a value from the front of the bytes, and returns it with its length.
pub fn read_prefix<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), Unreadable> {
    bincode::serde::decode_from_slice(bytes, config()).map_err(|e| Unreadable(e.to_string()))
}

/// Reads a value from the front of the bytes, and behind it a row of values of another type that fills the rest.
pub fn read_row<H: DeserializeOwned, T: DeserializeOwned>(bytes: &[u8]) -> Result<(H, Vec<T>), Unreadable> {
    let (head, used) = read_prefix(bytes)?;
    let (mut row, mut rest) = (Vec::new(), &bytes[used..]);
    while !rest.is_empty() {
        let (value, used) = read_prefix(rest)?;
        // A row of nothing at all would never end.
        if used == 0 {
            return Err(Unreadable(format!("{} bytes too many", rest.len())));
        }
        row.push(value);
        rest = &rest[used..];
    }
    Ok((head, row))
}

/// Appends a value in the variable encoding: small numbers take one byte. For the data that accompanies tasks, where bytes count for more than the
/// time to write them.
pub fn write_compactly<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    bincode::serde::encode_into_std_write(value, out, compact())
        .expect("a vector takes all bytes, and a value of the library is always written");
}

/// Reads a value in the variable encoding from the front of the bytes, and returns it with its length.
pub fn read_compactly<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), Unreadable> {
    bincode::serde::decode_from_slice(bytes, compact()).map_err(|e| Unreadable(e.to_string()))
}

/// Appends a number, seven bits a byte, the lowest first; all bytes but the last have the highest bit set (LEB128).
pub fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads such a number from place `at`, and moves on behind it. `None` if there is none, or it does not fit into 64 bits.
pub fn read_number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Appends the header of a message: its envelope and the length of its body.
pub fn write_header(envelope: &Envelope, body: u64, out: &mut Vec<u8>) {
    write_into(&(envelope, body), out);
}

/// Reads a header, and how long the body is that follows it.
pub fn read_header(bytes: &[u8]) -> Result<(Envelope, u64), Unreadable> {
    read_prefix(bytes).map(|(header, _)| header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Scope;

    fn envelope() -> Envelope {
        Envelope { src: 3, dst: 70_000, scope: Scope { run: 9, epoch: u32::MAX }, tag: 0x8001, chain: 12, tasks: u64::MAX }
    }

    #[test]
    fn a_header_has_its_size_and_returns_as_it_was() {
        let mut out = Vec::new();
        write_header(&envelope(), 77, &mut out);
        assert_eq!(out.len(), HEADER);
        assert_eq!(read_header(&out).unwrap(), (envelope(), 77));
    }

    #[test]
    fn bodies_are_the_same_short_or_long() {
        for length in 0..=2 * SHORT {
            let text = "x".repeat(length);
            let body = write_body(&text);
            assert_eq!(body.len(), 8 + length);
            assert_eq!(&*body, &*write(&text));
            assert_eq!(read::<String>(&body).unwrap(), text);
            assert_eq!(Bytes::from(body), write(&text));
        }
    }

    #[test]
    fn a_row_needs_no_length_and_is_read_to_its_end() {
        for length in 0..5_u16 {
            let mut out = Vec::new();
            write_into(&Some(7_u32), &mut out);
            (0..length).for_each(|value| write_into(&(value, "x".repeat(value.into())), &mut out));
            let (head, row) = read_row::<Option<u32>, (u16, String)>(&out).unwrap();
            assert_eq!(head, Some(7));
            assert!(row.into_iter().eq((0..length).map(|value| (value, "x".repeat(value.into())))));
            assert!(read_row::<Option<u32>, (u16, String)>(&out[..out.len() - 1]).is_err());
            out.push(0);
            assert!(read_row::<Option<u32>, (u16, String)>(&out).is_err());
        }
        assert!(read_row::<u8, ()>(&[1, 2]).is_err_and(|why| why.to_string() == "1 bytes too many"));
        assert_eq!(read_row::<u8, ()>(&[1]), Ok((1, vec![])));
    }

    #[test]
    fn numbers_return_as_they_were_and_take_as_few_bytes_as_they_can() {
        for (number, length) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let mut out = vec![7];
            write_number(number, &mut out);
            assert_eq!(out.len(), 1 + length);
            let mut at = 1;
            assert_eq!((read_number(&out, &mut at), at), (Some(number), out.len()));
            assert_eq!(read_number(&out[..length], &mut 1), None);
        }
        let beyond = [[0xff; 9].as_slice(), &[0x02]].concat();
        assert_eq!(read_number(&beyond, &mut 0), None);
        assert_eq!(read_number(&[0x80; 20], &mut 0), None);
        let mut out = Vec::new();
        write_compactly(&(3u32, vec![1u64, 2]), &mut out);
        assert_eq!((out.len(), read_compactly(&out)), (4, Ok(((3u32, vec![1u64, 2]), 4))));
    }

    #[test]
    fn trailing_missing_and_hostile_bytes_are_errors() {
        let bytes = write(&(1u32, vec![1u64, 2, 3]));
        assert_eq!(read::<(u32, Vec<u64>)>(&bytes).unwrap(), (1, vec![1, 2, 3]));
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert!(read::<(u32, Vec<u64>)>(&longer).is_err());
        assert!(read::<(u32, Vec<u64>)>(&bytes[..bytes.len() - 1]).is_err());
        let hostile = write(&(1u64 << 40));
        assert!(read::<Vec<u64>>(&hostile).is_err());
        assert!(read_header(&[0; 5]).is_err());
    }
}
