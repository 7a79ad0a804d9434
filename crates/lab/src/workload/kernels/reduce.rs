//! Combination of the outputs of a program's runs.

use std::fmt::Write;

use equipoise::error::{Error, Result};

/// Parsed `--reduce`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reduce {
    /// They follow each other, in the order of the input.
    #[default]
    Concat,
    /// Each is a line of numbers, which are added up column by column.
    Sum,
    /// They follow each other on the standard input of this program.
    Program(String),
}

impl Reduce {
    /// Reads the option.
    pub fn parse(text: &str) -> Reduce {
        match text {
            "concat" => Reduce::Concat,
            "sum" => Reduce::Sum,
            program => Reduce::Program(program.into()),
        }
    }
}

/// Sums of columns; whole numbers stay exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    columns: Vec<Number>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Sums {
    /// Adds a share's output.
    ///
    /// # Errors
    /// If it is not one line with the same number of values as the others.
    pub fn add(&mut self, output: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(output);
        let wrong = |why: String| Err(Error::Failed(format!("--reduce sum: {why}; there is no answer")));
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return wrong("the command wrote nothing on a share, so there is nothing to add up".into());
        }
        if self.columns.is_empty() {
            self.columns = vec![Number::Whole(0); words.len()];
        }
        if words.len() != self.columns.len() {
            let (first, this) = (self.columns.len(), words.len());
            return wrong(format!("the command wrote {first} numbers on one share and {this} on another"));
        }
        for (sum, word) in self.columns.iter_mut().zip(words) {
            let number = match (word.parse::<i128>(), word.parse::<f64>()) {
                (Ok(whole), _) => Number::Whole(whole),
                (_, Ok(real)) if real.is_finite() => Number::Real(real),
                _ => return wrong(format!("the command wrote '{}', which is no number", word.chars().take(40).collect::<String>())),
            };
            *sum = match (*sum, number) {
                (Number::Whole(a), Number::Whole(b)) => a.checked_add(b).map_or(Number::Real(a as f64 + b as f64), Number::Whole),
                (a, b) => Number::Real(a.real() + b.real()),
            };
            if !sum.real().is_finite() {
                return wrong("the numbers that the command wrote add up to more than a double holds".into());
            }
        }
        Ok(())
    }

    /// The sums as a line.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for (index, sum) in self.columns.iter().enumerate() {
            let blank = if index > 0 { " " } else { "" };
            // Writing to a string does not fail.
            let _ = match sum {
                Number::Whole(whole) => write!(line, "{blank}{whole}"),
                Number::Real(real) => write!(line, "{blank}{real}"),
            };
        }
        line.push('\n');
        line
    }
}

impl Number {
    fn real(self) -> f64 {
        match self {
            Number::Whole(whole) => whole as f64,
            Number::Real(real) => real,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_add_up() {
        let mut sums = Sums::default();
        sums.add(b"  1 2.5 -3\n").unwrap();
        sums.add(b"10 0.5\n4").unwrap();
        assert_eq!(sums.line(), "11 3 1\n");
        let mut large = Sums::default();
        large.add(b"1e308").unwrap();
        assert!(large.add(b"1e308").unwrap_err().to_string().contains("more than a double holds"));
        for wrong in [&b""[..], b"1 2", b"1 2 x", b"1 2 inf"] {
            assert!(sums.add(wrong).is_err(), "{wrong:?}");
        }
    }
}
