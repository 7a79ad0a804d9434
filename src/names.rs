//! Names given by others, of files above all: as the text of an option, as a path, and in printable form.
//!
//! The name of a file is any bytes. Options are read as text, so a byte that is not text is represented by a character of its own (one for
//! private use), and is a byte again in the path. Nothing else in a name changes, so the mapping is reversible.
//!
//! Some characters are control characters of a terminal. Where a name, or a sentence with a name in it, is printed, these are escaped:
//! `\x1b`.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The first of the 256 characters that stand for bytes.
const STANDS_FOR_0: u32 = 0x10_ff00;

fn stand_in(byte: u8) -> char {
    char::from_u32(STANDS_FOR_0 + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte that a character stands for.
fn byte_of(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).checked_sub(STANDS_FOR_0)?).ok()
}

/// An argument as text. [`path`] and [`argument`] are the way back.
pub fn text(argument: &OsStr) -> String {
    let mut text = String::with_capacity(argument.len());
    for chunk in argument.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            // Whatever stands for a byte elsewhere must not mean one here.
            match byte_of(c) {
                Some(_) => text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(stand_in)),
                None => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(stand_in));
    }
    text
}

/// The argument that became this text.
pub fn argument(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(bytes)
}

/// The path that an option's text names.
pub fn path(text: &str) -> PathBuf {
    argument(text).into()
}

/// Printable form of a path.
pub fn shown(path: &Path) -> String {
    shown_bytes(path.as_os_str().as_bytes())
}

/// Printable form of a command-line argument.
pub fn shown_argument(argument: &OsStr) -> String {
    shown_bytes(argument.as_bytes())
}

fn shown_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&one_line(chunk.valid().to_string()));
        chunk.invalid().iter().for_each(|byte| written_out(&mut shown, u32::from(*byte)));
    }
    shown
}

/// Printable form of a sentence or a text, on one line.
pub fn one_line(text: String) -> String {
    without_orders(text, |_| false)
}

/// Printable form of a text of several lines.
pub fn lines(text: String) -> String {
    without_orders(text, |c| c == '\n' || c == '\t')
}

fn without_orders(text: String, stays: impl Fn(char) -> bool) -> String {
    let is_order = |c: char| !stays(c) && (c.is_control() || changes_direction(c) || byte_of(c).is_some());
    if !text.contains(is_order) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match (c, byte_of(c)) {
            (c, _) if !is_order(c) => shown.push(c),
            (_, Some(byte)) => written_out(&mut shown, u32::from(byte)),
            ('\n', _) => shown.push_str("\\n"),
            ('\t', _) => shown.push_str("\\t"),
            ('\r', _) => shown.push_str("\\r"),
            (c, _) => written_out(&mut shown, u32::from(c)),
        }
    }
    shown
}

/// Characters after which a terminal writes from right to left, or in another order than they stand.
fn changes_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn written_out(shown: &mut String, code: u32) {
    // Writing into a string cannot fail.
    let _ = if code < 0x100 { write!(shown, "\\x{code:02x}") } else { write!(shown, "\\u{{{code:x}}}") };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_shown_without_orders() {
        let shown = |bytes: &[u8]| shown(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(shown(b"plain-\xc3\xa9.csv"), "plain-é.csv");
        assert_eq!(shown(b"evil\x1b[31m\n.csv\x7f"), "evil\\x1b[31m\\n.csv\\x7f");
        assert_eq!(shown(b"\xff\xc3.csv"), "\\xff\\xc3.csv");
        assert_eq!(shown("a\u{202e}vsc\u{9b}31m".as_bytes()), "a\\u{202e}vsc\\x9b31m");
        assert_eq!(one_line(text(OsStr::from_bytes(b"@\xff\r\t: not there"))), "@\\xff\\r\\t: not there");
        assert_eq!(lines("a\n\tb\x1b".into()), "a\n\tb\\x1b");
    }

    #[test]
    fn what_is_text_stays_as_it_is() {
        assert_eq!(text(OsStr::new("costs:file=a,b=ü\n")), "costs:file=a,b=ü\n");
        assert_eq!(path("costs ü"), Path::new("costs ü"));
        assert_eq!(text(OsStr::from_bytes(b"@a\xff,phase=3")).split_once(",phase=").map(|(name, _)| path(name)), {
            Some(OsStr::from_bytes(b"@a\xff").into())
        });
    }

    proptest! {
        #[test]
        fn every_name_has_its_way_there_and_back(
            pieces in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..6),
                any::<u8>().prop_map(|byte| stand_in(byte).to_string().into_bytes()),
                any::<char>().prop_map(|c| c.to_string().into_bytes()),
            ], 0..6)
        ) {
            let name = OsString::from_vec(pieces.concat());
            prop_assert_eq!(argument(&text(&name)), name.clone());
            prop_assert!(!shown_argument(&name).contains(char::is_control));
        }
    }
}
