//! Lines, words and bytes.

use serde::{Deserialize, Serialize};

use crate::divisible::spread::Kernel;
use equipoise::error::Result;
use equipoise::node::Worker;

/// Counts as by `LC_ALL=C wc` of coreutils 8 and 9.1. Lines are newlines. A word begins with a visible ASCII character and ends before
/// white space; other bytes are ignored (control characters or bytes above 127 alone are no word).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub lines: u64,
    pub words: u64,
    pub bytes: u64,
    /// Whether a word goes on from before the first byte, should there be one.
    #[serde(default)]
    joins: bool,
    /// Whether it goes on beyond the last byte.
    #[serde(default)]
    open: bool,
    /// Whether nothing but unseen bytes was there.
    #[serde(default)]
    blank: bool,
}

impl Counts {
    /// The counts of a text and the text that follows it.
    pub fn then(self, next: Counts) -> Counts {
        if self.bytes == 0 {
            return next;
        }
        if next.bytes == 0 {
            return self;
        }
        let joined = self.open && next.joins;
        Counts {
            lines: self.lines + next.lines,
            words: self.words + next.words - u64::from(joined),
            bytes: self.bytes + next.bytes,
            joins: self.joins || (self.blank && next.joins),
            open: if next.blank { self.open } else { next.open },
            blank: self.blank && next.blank,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Unseen,
    Space,
    Newline,
    Visible,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Unseen; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        classes[byte as usize] = Class::Visible;
        byte += 1;
    }
    let spaces = [b' ', b'\t', 0x0b, 0x0c, b'\r'];
    let mut index = 0;
    while index < spaces.len() {
        classes[spaces[index] as usize] = Class::Space;
        index += 1;
    }
    classes[b'\n' as usize] = Class::Newline;
    classes
};

/// Counts a share.
pub struct Count {
    counts: Counts,
}

impl Default for Count {
    fn default() -> Count {
        Count { counts: Counts { blank: true, ..Counts::default() } }
    }
}

impl Kernel for Count {
    fn eat(&mut self, bytes: &[u8], _: &mut dyn Worker) -> Result<()> {
        let Counts { mut lines, mut words, joins, mut open, mut blank, .. } = self.counts;
        let mut joins = joins;
        for byte in bytes {
            match CLASSES[*byte as usize] {
                Class::Unseen => {}
                Class::Visible => {
                    joins |= blank;
                    blank = false;
                    words += u64::from(!open);
                    open = true;
                }
                Class::Space => (open, blank) = (false, false),
                Class::Newline => {
                    lines += 1;
                    (open, blank) = (false, false);
                }
            }
        }
        self.counts = Counts { lines, words, bytes: self.counts.bytes + bytes.len() as u64, joins, open, blank };
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Worker) -> Result<Vec<u8>> {
        super::written(&self.counts)
    }
}
