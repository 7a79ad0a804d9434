//! Values of many nodes in a row, each as it is written in a message, shared by all that hold them.
//!
//! In an all-gather every node holds a stretch of the same circle of values, twice as long after each step. Nodes of one process need not
//! hold copies: a row is a tree whose parts are shared, so concatenating two rows copies neither.
//!
//! ```text
//!   row of node 0        row of node 1          0 sends what it holds to 7, 1 to 0, ..
//!        / \                  / \
//!      ab   cd              bc   de             row of node 0 = (row of 0) + (row of 2), and so on
//! ```
//!
//! A row has a fingerprint of its values, which does not depend on how it was put together: equal rows are found without comparing the
//! values. The fingerprint has 122 bits (two polynomials over the field of 2^61 - 1 elements), so collisions are not to be expected.

use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;

use super::Body;

/// Values behind each other. Cheap to clone.
#[derive(Clone)]
pub struct Row(Rc<Values>);

struct Values {
    values: u32,
    bytes: usize,
    print: Fingerprint,
    kind: Kind,
}

enum Kind {
    /// Values as they arrived, not decoded yet.
    Whole(Body, usize),
    Pair(Row, Row),
}

/// Fingerprint of the values of a row: the same for the same values in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// Two sums of the values' hashes times powers of the bases; the last value has power 0.
    sums: [u64; 2],
    /// The bases to the power of the number of values.
    powers: [u64; 2],
}

const PRIME: u64 = (1 << 61) - 1;
const BASES: [u64; 2] = [0x09e3_779b_97f4_a7c1, 0x1405_7b7e_f767_814f];

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    plus(product as u64 & PRIME, (product >> 61) as u64)
}

/// Sum modulo the prime, of two numbers up to the prime.
fn plus(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum >= PRIME { sum - PRIME } else { sum }
}

impl Fingerprint {
    /// Fingerprint of a row of one value.
    pub fn of(value: &[u8]) -> Fingerprint {
        let hash = |seed: u64| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(seed);
            hasher.write(value);
            hasher.finish() % PRIME
        };
        Fingerprint { sums: [hash(0), hash(1)], powers: BASES }
    }

    /// Fingerprint of this row followed by another one.
    pub fn and(self, next: Fingerprint) -> Fingerprint {
        Fingerprint {
            sums: [0, 1].map(|k| plus(times(self.sums[k], next.powers[k]), next.sums[k])),
            powers: [0, 1].map(|k| times(self.powers[k], next.powers[k])),
        }
    }
}

impl Row {
    /// A row of one value.
    pub fn of(value: Body) -> Row {
        let (bytes, print) = (value.len(), Fingerprint::of(&value));
        Row(Rc::new(Values { values: 1, bytes, print, kind: Kind::Whole(value, 0) }))
    }

    /// The list of values that a message brought from another process, of which the bytes before `from` are something else.
    ///
    /// Its fingerprint is one of all values together, so that it is not found equal to a row of single ones.
    pub fn received(list: Body, from: usize, values: u32) -> Row {
        let print = Fingerprint::of(list.get(from..).unwrap_or_default());
        Row(Rc::new(Values { values, bytes: list.len().saturating_sub(from), print, kind: Kind::Whole(list, from) }))
    }

    /// Number of values.
    pub fn values(&self) -> u32 {
        self.0.values
    }

    /// Number of bytes that the values take.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    pub fn fingerprint(&self) -> Fingerprint {
        self.0.print
    }

    /// This row and another one behind it.
    pub fn and(&self, next: &Row) -> Row {
        let (front, back) = (&self.0, &next.0);
        let kind = Kind::Pair(self.clone(), next.clone());
        let print = front.print.and(back.print);
        Row(Rc::new(Values { values: front.values + back.values, bytes: front.bytes + back.bytes, print, kind }))
    }

    /// Splits the row into its first `count` values and the others, with `None` in place of an empty row. `skip` returns how many bytes the first
    /// values take, given the bytes and the number of values.
    pub fn split(&self, count: u32, skip: &impl Fn(&[u8], u32) -> usize) -> (Option<Row>, Option<Row>) {
        if count == 0 {
            return (None, Some(self.clone()));
        }
        if count >= self.values() {
            return (Some(self.clone()), None);
        }
        match &self.0.kind {
            Kind::Pair(front, back) if count <= front.values() => {
                let (first, rest) = front.split(count, skip);
                (first, Some(rest.map_or_else(|| back.clone(), |rest| rest.and(back))))
            }
            Kind::Pair(front, back) => {
                let (more, rest) = back.split(count - front.values(), skip);
                (Some(more.map_or_else(|| front.clone(), |more| front.and(&more))), rest)
            }
            Kind::Whole(list, from) => {
                let bytes = list.get(*from..).unwrap_or_default();
                let (first, rest) = bytes.split_at(skip(bytes, count).min(bytes.len()));
                let row = |bytes: &[u8], values| Row::received(bytes::Bytes::copy_from_slice(bytes).into(), 0, values);
                (Some(row(first, count)), Some(row(rest, self.values() - count)))
            }
        }
    }

    /// Writes the values behind each other.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match &self.0.kind {
            Kind::Whole(list, from) => out.extend_from_slice(list.get(*from..).unwrap_or_default()),
            Kind::Pair(front, back) => {
                front.append_to(out);
                back.append_to(out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::wire;

    fn row(values: std::ops::Range<u64>) -> Row {
        let single = |value: u64| Row::of(wire::write_body(&value));
        values.clone().skip(1).fold(single(values.start), |row, value| row.and(&single(value)))
    }

    fn skip(bytes: &[u8], count: u32) -> usize {
        assert!(bytes.len() >= 8 * count as usize);
        8 * count as usize
    }

    fn list(row: &Row) -> Vec<u64> {
        wire::read(&Body::from(row.clone())).unwrap()
    }

    #[test]
    fn a_row_is_written_as_a_list_is() {
        let row = row(5..9);
        let body = Body::from(row.clone());
        assert_eq!((body.len(), row.values(), row.bytes()), (8 + 32, 4, 32));
        assert_eq!(&*body, &*wire::write(&vec![5u64, 6, 7, 8]));
        assert_eq!(bytes::Bytes::from(body), wire::write(&vec![5u64, 6, 7, 8]));
        assert!(Body::from(row.clone()).row().is_some_and(|same| Rc::ptr_eq(&same.0, &row.0)));
    }

    #[test]
    fn fingerprints_tell_the_values_and_not_how_they_were_put_together() {
        let whole = row(0..9);
        for cut in 1..9 {
            let (front, back) = whole.split(cut as u32, &skip);
            let (front, back) = (front.unwrap(), back.unwrap());
            assert_eq!((list(&front), list(&back)), ((0..cut).collect(), (cut..9).collect()));
            assert_eq!(front.and(&back).fingerprint(), whole.fingerprint());
            assert_eq!(row(0..cut).fingerprint(), front.fingerprint());
            assert_ne!(back.and(&front).fingerprint(), whole.fingerprint());
        }
        assert_ne!(row(0..9).fingerprint(), row(0..10).fingerprint());
        assert_ne!(row(1..10).fingerprint(), row(0..9).fingerprint());
        let zeros = |count: usize| (1..count).fold(row(0..1), |row_of, _| row_of.and(&row(0..1)));
        assert_ne!(zeros(3).fingerprint(), zeros(4).fingerprint());
    }

    #[test]
    fn what_came_from_another_process_is_split_as_its_values_are_long() {
        let received = Row::received(wire::write(&vec![7u64, 8, 9]).into(), 8, 3);
        let all = row(5..7).and(&received).and(&row(10..12));
        assert_eq!(list(&all), (5..12).collect::<Vec<_>>());
        for cut in 0..=7 {
            let (front, back) = all.split(cut, &skip);
            assert_eq!(front.as_ref().map_or(Vec::new(), list), (5..5 + u64::from(cut)).collect::<Vec<_>>());
            assert_eq!(back.as_ref().map_or(Vec::new(), list), (5 + u64::from(cut)..12).collect::<Vec<_>>());
        }
    }
}
