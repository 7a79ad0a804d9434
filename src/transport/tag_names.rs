//! Names of tags in logs: a message carries its tag's number only, and people read names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::Tag;

/// The names by number. It is process-wide, as the logger is; where two programs of a process gave a number two names, the last one counts.
static NAMES: Mutex<BTreeMap<u16, &'static str>> = Mutex::new(BTreeMap::new());

/// Makes the names of a program's tags known to the log: its lines on messages that arrive, or that are taken from any source, then have names instead of
/// numbers. A tag that this process has sent is known already, and so are the library's.
pub fn name_in_logs(tags: &[Tag]) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.extend(tags.iter().map(|tag| (tag.id(), tag.name())));
}

/// A tag by its [number on the wire](Tag::id), shown by its name if that is known.
pub(crate) struct Numbered(pub u16);

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.lock().unwrap_or_else(PoisonError::into_inner).get(&self.0).copied();
        match name {
            Some(name) => write!(f, "'{name}'"),
            None => write!(f, "tag {:#06x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_shown_by_their_names_once_these_are_known() {
        let (known, other) = (Tag::background(0x00f1, "known in logs"), Tag::new(0x00f2, "known to nobody"));
        assert_eq!(Numbered(known.id()).to_string(), "tag 0x80f1");
        name_in_logs(&[known]);
        assert_eq!((Numbered(known.id()).to_string(), Numbered(other.id()).to_string()), ("'known in logs'".into(), "tag 0x00f2".into()));
    }
}
