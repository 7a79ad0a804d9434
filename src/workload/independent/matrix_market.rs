//! Sparse matrices: files in the Matrix Market's coordinate format (Boisvert, Pozo and Remington 1996), drawn ones, and their product.

use std::path::Path;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::names;
use crate::workload::{COSTS_STREAM, text};

/// A sparse matrix by rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sparse {
    pub columns: usize,
    /// By row, its entries: column and value, by column.
    pub rows: Vec<Vec<(u32, f64)>>,
}

/// Rows and columns of the largest matrix.
const MOST: usize = 1 << 26;

impl Sparse {
    /// From entries in any order; what lies at the same place is added up.
    fn of(rows: usize, columns: usize, entries: impl IntoIterator<Item = (usize, u32, f64)>) -> Sparse {
        let mut by_row = vec![Vec::new(); rows];
        entries.into_iter().for_each(|(row, column, value)| by_row[row].push((column, value)));
        by_row.iter_mut().for_each(combine);
        Sparse { columns, rows: by_row }
    }

    pub fn entries(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Rows become columns.
    pub fn transposed(&self) -> Sparse {
        let entries = self
            .rows
            .iter()
            .enumerate()
            .flat_map(|(row, entries)| entries.iter().map(move |(column, value)| (*column as usize, row as u32, *value)));
        Sparse::of(self.columns, self.rows.len(), entries)
    }

    /// A row of the product with another matrix, and how many multiplications it took.
    pub fn row_of_product(&self, row: usize, other: &Sparse) -> (Vec<(u32, f64)>, u64) {
        let mut sums = Vec::new();
        for (middle, value) in &self.rows[row] {
            sums.extend(other.rows[*middle as usize].iter().map(|(column, factor)| (*column, value * factor)));
        }
        let multiplications = sums.len() as u64;
        combine(&mut sums);
        (sums, multiplications)
    }

    /// Rows of very different lengths (the longest have 16 times the mean): whole numbers from 1 to 9 at random places.
    pub fn drawn(rows: usize, entries: usize, seed: u64) -> Sparse {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(COSTS_STREAM);
        let mut all = Vec::new();
        for row in 0..rows {
            let scale = 0.5 / rng.random_range(1.0f64 / 32.0..=1.0).sqrt();
            let length = ((entries as f64 * scale).round() as usize).clamp(1, rows);
            all.extend((0..length).map(|_| (row, rng.random_range(0..rows as u32), f64::from(rng.random_range(1..=9u32)))));
        }
        Sparse::of(rows, rows, all)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If the file can't be read or is not of this format; the sentence names the option and the line.
    pub fn read(option: &str, path: &Path) -> Result<Sparse> {
        let shown = names::shown(&path);
        let text = text::read(path).map_err(|why| Error::usage(format!("{option}={shown}: the file cannot be read: {why}")))?;
        Sparse::parse(&text).map_err(|why| Error::usage(format!("{option}={shown}{why}")))
    }

    /// The same from a text; errors go on after the file's name.
    pub fn parse(text: &str) -> Result<Sparse, String> {
        let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
        let head = lines.next().map(|(_, line)| line.to_ascii_lowercase()).unwrap_or_default();
        let (has_values, symmetry) = match head.split_whitespace().collect::<Vec<_>>()[..] {
            ["%%matrixmarket", "matrix", "coordinate", kind @ ("real" | "integer" | "pattern"), symmetry] => (kind != "pattern", symmetry),
            _ => return Err(", line 1: it is not \"%%MatrixMarket matrix coordinate real|integer|pattern ..\"".into()),
        };
        // The factor of the other half, if only one half is in the file.
        let mirror = match symmetry {
            "general" => None,
            "symmetric" => Some(1.0),
            "skew-symmetric" => Some(-1.0),
            other => return Err(format!(", line 1: the symmetry \"{other}\" is none of general, symmetric, skew-symmetric")),
        };
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('%'));
        let (number, sizes) = lines.next().ok_or(": the line with the sizes is missing")?;
        let parsed: Vec<usize> = sizes.split_whitespace().map_while(|size| size.parse().ok()).collect();
        let [rows, columns, count] = parsed[..] else { return Err(format!(", line {number}: it is not of the form ROWS COLUMNS ENTRIES")) };
        if rows > MOST || columns > MOST {
            return Err(format!(", line {number}: more than {MOST} rows or columns"));
        }
        if mirror.is_some() && rows != columns {
            return Err(format!(", line {number}: a {symmetry} matrix has as many rows as columns"));
        }
        let mut entries = Vec::new();
        let mut read = 0;
        for (number, line) in lines {
            let (row, column, value) = entry(line, has_values).ok_or_else(|| {
                format!(", line {number}: it is not of the form {}", if has_values { "ROW COLUMN VALUE" } else { "ROW COLUMN" })
            })?;
            if !(1..=rows).contains(&row) || !(1..=columns).contains(&column) {
                return Err(format!(", line {number}: row {row}, column {column} is outside of {rows} x {columns}"));
            }
            read += 1;
            entries.push((row - 1, (column - 1) as u32, value));
            if let Some(factor) = mirror.filter(|_| row != column) {
                entries.push((column - 1, (row - 1) as u32, factor * value));
            }
        }
        if read != count {
            return Err(format!(": it has {read} entries, and announces {count}"));
        }
        Ok(Sparse::of(rows, columns, entries))
    }
}

/// Orders entries by column and adds up those of the same, in the order in which they stood.
fn combine(entries: &mut Vec<(u32, f64)>) {
    entries.sort_by_key(|(column, _)| *column);
    entries.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
}

fn entry(line: &str, has_value: bool) -> Option<(usize, usize, f64)> {
    let items: Vec<&str> = line.split_whitespace().collect();
    match (&items[..], has_value) {
        ([row, column, value], true) => {
            Some((row.parse().ok()?, column.parse().ok()?, value.parse().ok().filter(|value: &f64| value.is_finite())?))
        }
        ([row, column], false) => Some((row.parse().ok()?, column.parse().ok()?, 1.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KARATE: &str = include_str!("../../../tests/data/loops/karate.mtx");

    #[test]
    fn both_halves_of_a_symmetric_matrix_count() {
        let karate = Sparse::parse(KARATE).unwrap();
        assert_eq!((karate.rows.len(), karate.columns, karate.entries()), (34, 34, 156));
        assert_eq!(karate.rows.iter().map(Vec::len).max(), Some(17));
        assert_eq!(karate.transposed(), karate);
    }

    /// In the square of a graph's matrix the walks of two edges are counted: as many as the sum of the squared degrees.
    #[test]
    fn a_product_is_what_the_definition_says() {
        let karate = Sparse::parse(KARATE).unwrap();
        let degrees: u64 = karate.rows.iter().map(|row| (row.len() * row.len()) as u64).sum();
        let rows: Vec<(Vec<(u32, f64)>, u64)> = (0..34).map(|row| karate.row_of_product(row, &karate)).collect();
        assert_eq!(rows.iter().map(|(_, work)| work).sum::<u64>(), degrees);
        assert_eq!(rows.iter().flat_map(|(row, _)| row).map(|(_, value)| *value).sum::<f64>(), degrees as f64);
        // On the diagonal are the degrees.
        for (at, (row, _)) in rows.iter().enumerate() {
            let diagonal = row.iter().find(|(column, _)| *column as usize == at).unwrap();
            assert_eq!(diagonal.1, karate.rows[at].len() as f64);
        }
        let drawn = Sparse::drawn(40, 3, 1);
        let dense = |sparse: &Sparse, row: usize, column: u32| {
            sparse.rows[row].iter().find(|(at, _)| *at == column).map_or(0.0, |(_, value)| *value)
        };
        for row in 0..40 {
            let (product, _) = drawn.row_of_product(row, &drawn);
            for column in 0..40 {
                let expected: f64 = (0..40).map(|middle| dense(&drawn, row, middle) * dense(&drawn, middle as usize, column)).sum();
                assert_eq!(product.iter().find(|(at, _)| *at == column).map_or(0.0, |(_, value)| *value), expected);
            }
        }
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, says) in [
            ("", "line 1"),
            ("%%MatrixMarket matrix array real general\n", "line 1"),
            ("%%MatrixMarket matrix coordinate real hermitian\n", "line 1: the symmetry \"hermitian\""),
            ("%%MatrixMarket matrix coordinate real general\n% c\n2 2\n", "line 3: it is not of the form ROWS"),
            ("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", "line 2: a symmetric matrix"),
            ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1.0\n", "line 3: row 1, column 3 is outside"),
            ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan\n", "line 3: it is not of the form ROW COLUMN VALUE"),
            ("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n", "1 entries, and announces 2"),
        ] {
            let why = Sparse::parse(text).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }
}
