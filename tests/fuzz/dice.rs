//! Random choices: what a case is made of follows from the seed and the case's number alone.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

pub struct Dice(ChaCha8Rng);

/// Numbers at and beyond the edges of what is taken, and what is none.
const ODD_NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "0.5",
    "1.5",
    "1e-9",
    "5e-324",
    "1e9",
    "1e10",
    "1e19",
    "1e300",
    "1e400",
    "-1e300",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "4294967295",
    "4294967296",
    "1073741825",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0x10",
    "1_000",
    "1,000",
    "+3",
    " 3",
    "3 ",
    "1/3",
    "1/0",
    "0/0",
    "",
    "x",
    "-",
    "--",
    "\u{0663}",
    "1e",
    ".",
    "3.",
    ".5",
    "00007",
    "true",
];

/// Pieces that are put into texts, or between their lines.
const ODD_PIECES: &[&str] = &[
    "\u{feff}",
    "\r",
    "\r\n",
    "\n\n",
    "\t",
    ";",
    ",",
    "\"",
    "\"\"",
    "#",
    "%",
    "%%MatrixMarket",
    "\0",
    "\u{1b}[31m",
    "\u{202e}",
    "-",
    "=",
    ":",
    "{",
    "}",
    "[",
    "]",
    "null",
    "é",
    "  ",
    "inf",
    "nan",
    "1e308",
    "99999999999999999999",
    "-1",
    "0",
    "1",
    "..",
    "@",
    "|",
    "x",
];

impl Dice {
    pub fn of(seed: u64, case: u64) -> Dice {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(case);
        Dice(rng)
    }

    /// True in so many of a hundred.
    pub fn percent(&mut self, chance: u32) -> bool {
        self.0.random_range(0..100) < chance
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end.max(1))
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.0.random_range(least..=most)
    }

    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A number that is easily computed with, and now and then an odd one.
    pub fn number(&mut self, most: u64) -> String {
        match self.below(20) {
            0 | 1 => self.one(ODD_NUMBERS).to_string(),
            2 => format!("{}.{}", self.between(0, most), self.between(0, 999)),
            3 => format!("0.{}", self.between(0, 999)),
            _ => self.between(0, most).to_string(),
        }
    }

    /// A number of random numbers with separators.
    pub fn list(&mut self, count: usize, most: u64, between: &str) -> String {
        let odd = self.percent(8);
        let mut number = || if odd { self.number(most) } else { self.between(0, most).to_string() };
        let numbers: Vec<String> = (0..count).map(|_| number()).collect();
        numbers.join(between)
    }

    /// A text with some mistakes.
    pub fn mistaken(&mut self, text: &[u8]) -> Vec<u8> {
        let mut bytes = text.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(12)).min(bytes.len());
            match self.below(9) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes.truncate(at),
                2 => {
                    let piece = bytes[at..end].to_vec();
                    let to = self.below(bytes.len() + 1);
                    bytes.splice(to..to, piece);
                }
                3 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                4 => {
                    let number = self.one(ODD_NUMBERS).as_bytes().to_vec();
                    bytes.splice(at..at, number);
                }
                5 => self.replace_a_number(&mut bytes),
                6 => self.swap_lines(&mut bytes),
                _ => {
                    let piece = self.one(ODD_PIECES).as_bytes().to_vec();
                    let at = if self.percent(20) { 0 } else { at };
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    }

    fn replace_a_number(&mut self, bytes: &mut Vec<u8>) {
        let starts: Vec<usize> =
            (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_digit())).collect();
        if starts.is_empty() {
            return;
        }
        let at = *self.one(&starts);
        let end = (at..bytes.len()).find(|end| !bytes[*end].is_ascii_digit()).unwrap_or(bytes.len());
        let number = self.number(40);
        bytes.splice(at..end, number.into_bytes());
    }

    fn swap_lines(&mut self, bytes: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let (a, b) = (self.below(lines.len()), self.below(lines.len()));
        lines.swap(a, b);
        *bytes = lines.join(&b'\n');
    }
}
