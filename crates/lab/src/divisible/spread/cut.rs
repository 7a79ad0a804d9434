//! Positions at which the input may be cut, and the cutting itself.

use std::fmt;
use std::str::FromStr;

use super::kernel::Range;
use equipoise::error::{Error, Result};

/// The input, as node 0 has it.
pub trait InputSource {
    /// Its length in bytes, as it was at the beginning.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the bytes of a range to a buffer.
    ///
    /// # Errors
    /// If they cannot be read, or are not there any more.
    fn read(&mut self, range: Range, into: &mut Vec<u8>) -> Result<()>;

    /// Another reader of the same input, for a worker.
    ///
    /// # Errors
    /// If it cannot be opened again.
    fn again(&self) -> Result<Box<dyn InputSource + Send>>;
}

/// Records, which are never cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Records {
    /// Lines, each with the newline at its end.
    #[default]
    Lines,
    /// Records that end with a null byte.
    Nul,
    /// Blocks of this number of bytes.
    Bytes(u64),
}

impl Records {
    /// The byte that ends a record, if one does.
    pub fn terminator(self) -> Option<u8> {
        match self {
            Records::Lines => Some(b'\n'),
            Records::Nul => Some(0),
            Records::Bytes(_) => None,
        }
    }
}

impl FromStr for Records {
    type Err = Error;

    fn from_str(text: &str) -> Result<Records> {
        match text.split_once('=') {
            None if text == "lines" => Ok(Records::Lines),
            None if text == "nul" => Ok(Records::Nul),
            Some(("bytes", number)) => match number.parse() {
                Ok(bytes) if bytes > 0 => Ok(Records::Bytes(bytes)),
                _ => Err(Error::usage(format!("--records {text}: a record has a whole number of bytes, at least 1"))),
            },
            _ => Err(Error::usage(format!("--records {text}: known are lines, nul and bytes=N"))),
        }
    }
}

impl fmt::Display for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Records::Lines => f.write_str("lines"),
            Records::Nul => f.write_str("nul"),
            Records::Bytes(bytes) => write!(f, "bytes={bytes}"),
        }
    }
}

/// Bytes that are searched at a time for the end of a record.
const LOOK: u64 = 64 << 10;

/// Finds ends of records, at positions in ascending order; no byte is read twice.
pub struct Cutter<'a> {
    source: &'a mut dyn InputSource,
    records: Records,
    /// No record ends between the first and the second; there it does.
    known: (u64, u64),
}

impl<'a> Cutter<'a> {
    pub fn new(source: &'a mut dyn InputSource, records: Records) -> Cutter<'a> {
        Cutter { source, records, known: (0, 0) }
    }

    /// The first place at or after `at` where a record ends (or the input begins).
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn end_from(&mut self, at: u64) -> Result<u64> {
        let len = self.source.len();
        if at == 0 || at >= len {
            return Ok(at.min(len));
        }
        if self.known.0 <= at && at <= self.known.1 {
            return Ok(self.known.1);
        }
        let end = match self.records {
            Records::Bytes(bytes) => at.div_ceil(bytes).saturating_mul(bytes).min(len),
            Records::Lines => self.find(b'\n', at - 1)?,
            Records::Nul => self.find(0, at - 1)?,
        };
        self.known = (at, end);
        Ok(end)
    }

    /// The place after the first such byte at or after `from`; the end of the input if there is none.
    fn find(&mut self, byte: u8, mut from: u64) -> Result<u64> {
        let len = self.source.len();
        let mut buffer = Vec::new();
        while from < len {
            let range = Range { start: from, end: len.min(from + LOOK) };
            buffer.clear();
            self.source.read(range, &mut buffer)?;
            if let Some(place) = buffer.iter().position(|&found| found == byte) {
                return Ok(from + place as u64 + 1);
            }
            from = range.end;
        }
        Ok(len)
    }
}

/// Consecutive ranges over the whole input, of about the given lengths (whose sum is the input's), each ending where a record does.
///
/// # Errors
/// If the input cannot be read.
pub fn cut(source: &mut dyn InputSource, records: Records, lengths: &[u64]) -> Result<Vec<Range>> {
    let len = source.len();
    let mut cutter = Cutter::new(source, records);
    let (mut start, mut wanted) = (0, 0u64);
    let mut ranges = Vec::with_capacity(lengths.len());
    for (index, length) in lengths.iter().enumerate() {
        wanted = wanted.saturating_add(*length);
        let end = if index + 1 == lengths.len() { len } else { cutter.end_from(wanted)?.max(start) };
        ranges.push(Range { start, end });
        start = end;
    }
    Ok(ranges)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An input in memory.
    #[derive(Clone)]
    pub struct Text(pub Vec<u8>);

    impl InputSource for Text {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&mut self, range: Range, into: &mut Vec<u8>) -> Result<()> {
            into.extend_from_slice(&self.0[range.start as usize..range.end as usize]);
            Ok(())
        }

        fn again(&self) -> Result<Box<dyn InputSource + Send>> {
            Ok(Box::new(self.clone()))
        }
    }

    fn ends(text: &str, records: Records, lengths: &[u64]) -> Vec<u64> {
        cut(&mut Text(text.into()), records, lengths).unwrap().iter().map(|range| range.end).collect()
    }

    #[test]
    fn shares_end_where_records_do() {
        assert_eq!(ends("a\nbb\nccc\n", Records::Lines, &[2, 2, 5]), [2, 5, 9]);
        assert_eq!(ends("a\nbb\nccc", Records::Lines, &[3, 3, 2]), [5, 8, 8]);
        assert_eq!(ends("one long line", Records::Lines, &[4, 4, 5]), [13, 13, 13]);
        assert_eq!(ends("", Records::Lines, &[0, 0, 0]), [0, 0, 0]);
        assert_eq!(ends("\n\n\n", Records::Lines, &[1, 1, 1]), [1, 2, 3]);
        assert_eq!(ends("a\0b\nc\0", Records::Nul, &[1, 2, 3]), [2, 6, 6]);
        assert_eq!(ends("0123456789", Records::Bytes(4), &[1, 3, 6]), [4, 4, 10]);
    }

    #[test]
    fn forms_of_the_option() {
        for text in ["lines", "nul", "bytes=7"] {
            assert_eq!(text.parse::<Records>().unwrap().to_string(), text);
        }
        for wrong in ["", "bytes", "bytes=0", "bytes=x", "words"] {
            assert!(wrong.parse::<Records>().unwrap_err().to_string().starts_with("--records"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_record_is_cut(text in "[ab\n]{0,200}", weights in prop::collection::vec(0u64..50, 1..9)) {
            let total: u64 = weights.iter().sum();
            let len = text.len() as u64;
            let lengths: Vec<u64> = weights.iter().map(|weight| (weight * len).checked_div(total).unwrap_or(0)).collect();
            let ranges = cut(&mut Text(text.clone().into()), Records::Lines, &lengths).unwrap();
            let mut at = 0;
            for range in &ranges {
                prop_assert_eq!(range.start, at);
                prop_assert!(range.end >= at);
                prop_assert!(range.end == 0 || range.end == len || text.as_bytes()[range.end as usize - 1] == b'\n');
                at = range.end;
            }
            prop_assert_eq!(at, len);
        }
    }
}
