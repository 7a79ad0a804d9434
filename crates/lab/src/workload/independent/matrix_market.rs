//! Sparse matrices: files in the Matrix Market's formats (Boisvert, Pozo and Remington 1996), drawn ones, and their product.

use std::path::Path;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::workload::{COSTS_STREAM, text};
use equipoise::error::{Error, Result};
use equipoise::names;

/// A sparse matrix by rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sparse {
    pub columns: usize,
    /// Entries of each row: column and value, by column.
    pub rows: Vec<Vec<(u32, f64)>>,
}

/// Rows and columns of the largest matrix.
const MOST: usize = 1 << 26;

impl Sparse {
    /// Builds a matrix from entries in any order; what lies at the same place is added up.
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

    /// The left factor of a product of complex matrices in real numbers: a + bi in column c is a in column 2c and b in column 2c + 1.
    fn side_by_side(real: &Sparse, imaginary: &Sparse) -> Sparse {
        let interleaved = |row: usize| {
            let parts = [(&real.rows[row], 0), (&imaginary.rows[row], 1)];
            parts.into_iter().flat_map(move |(part, at)| part.iter().map(move |(column, value)| (row, 2 * column + at, *value)))
        };
        Sparse::of(real.rows.len(), 2 * real.columns, (0..real.rows.len()).flat_map(interleaved))
    }

    /// The right factor: a + bi in row r and column c is a, b in row 2r and -b, a in row 2r + 1, from column 2c on. The product has
    /// the real parts in its even columns and the imaginary ones in its odd ones.
    fn in_blocks(real: &Sparse, imaginary: &Sparse) -> Sparse {
        let block = |row: usize| {
            let real = real.rows[row].iter().flat_map(move |&(c, a)| [(2 * row, 2 * c, a), (2 * row + 1, 2 * c + 1, a)]);
            let imaginary = imaginary.rows[row].iter().flat_map(move |&(c, b)| [(2 * row, 2 * c + 1, b), (2 * row + 1, 2 * c, -b)]);
            real.chain(imaginary)
        };
        Sparse::of(2 * real.rows.len(), 2 * real.columns, (0..real.rows.len()).flat_map(block))
    }
}

/// Content of a file: a real matrix, or the two parts of a complex one, which have entries at the same places.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    pub real: Sparse,
    imaginary: Option<Sparse>,
}

/// Kind of the entries, and the symmetry of a matrix of which only one half is in the file.
#[derive(Clone, Copy)]
struct Head {
    is_array: bool,
    field: Field,
    /// The factors of the mirrored entries' parts.
    mirror: Option<(f64, f64)>,
    /// Whether nothing is on the diagonal.
    is_skew: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Pattern,
    Real,
    Complex,
}

/// Row and column from 0, and both parts of an entry.
type Entry = (usize, u32, (f64, f64));

impl Matrix {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file can't be read or is not of this format; the sentence names the option and the line.
    pub fn read(option: &str, path: &Path) -> Result<Matrix> {
        let shown = names::shown(path);
        let text =
            text::read(path).map_err(|why| Error::unreadable("workload", format!(" {option}={shown}: the file cannot be read"), why))?;
        Matrix::parse(&text).map_err(|why| Error::input("workload", format!(" {option}={shown}{why}")))
    }

    /// The same from a text; errors go on after the file's name.
    pub fn parse(text: &str) -> Result<Matrix, String> {
        let mut lines = (1..).zip(text.lines().map(str::trim));
        let head = Head::parse(lines.next().map_or("", |(_, line)| line))?;
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('%'));
        let (number, sizes) = lines.next().ok_or(": the line with the sizes is missing")?;
        let form = if head.is_array { "ROWS COLUMNS" } else { "ROWS COLUMNS ENTRIES" };
        let parsed: Option<Vec<usize>> = sizes.split_whitespace().map(|size| size.parse().ok()).collect();
        let (rows, columns, count) = match parsed.as_deref() {
            Some([rows, columns]) if head.is_array => (*rows, *columns, None),
            Some([rows, columns, count]) if !head.is_array => (*rows, *columns, Some(*count)),
            _ => return Err(format!(", line {number}: it is not of the form {form}")),
        };
        if rows > MOST || columns > MOST {
            return Err(format!(", line {number}: more than {MOST} rows or columns"));
        }
        if head.mirror.is_some() && rows != columns {
            return Err(format!(", line {number}: a matrix of which one half is given has as many rows as columns"));
        }
        let entries = match count {
            Some(count) => head.coordinates(lines, (rows, columns), count)?,
            None => head.array(lines, (rows, columns))?,
        };
        let part =
            |of: fn((f64, f64)) -> f64| Sparse::of(rows, columns, entries.iter().map(|(row, column, value)| (*row, *column, of(*value))));
        let imaginary = (head.field == Field::Complex).then(|| part(|value| value.1));
        Ok(Matrix { real: part(|value| value.0), imaginary })
    }

    /// Rows become columns.
    pub fn transposed(&self) -> Matrix {
        Matrix { real: self.real.transposed(), imaginary: self.imaginary.as_ref().map(Sparse::transposed) }
    }

    /// Two factors in real numbers: they have the product's rows, and its real and imaginary parts side by side if one is complex.
    pub fn factors(self, right: Matrix) -> (Sparse, Sparse) {
        if self.imaginary.is_none() && right.imaginary.is_none() {
            return (self.real, right.real);
        }
        let imaginary = |matrix: &Matrix| {
            let none = || Sparse { columns: matrix.real.columns, rows: vec![Vec::new(); matrix.real.rows.len()] };
            matrix.imaginary.clone().unwrap_or_else(none)
        };
        (Sparse::side_by_side(&self.real, &imaginary(&self)), Sparse::in_blocks(&right.real, &imaginary(&right)))
    }
}

impl Head {
    fn parse(line: &str) -> Result<Head, String> {
        let line = line.to_ascii_lowercase();
        let ["%%matrixmarket", "matrix", form @ ("coordinate" | "array"), field, symmetry] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            return Err(", line 1: it is not \"%%MatrixMarket matrix coordinate|array real|integer|complex|pattern ..\"".into());
        };
        let field = match field {
            "real" | "integer" | "double" => Field::Real,
            "complex" => Field::Complex,
            "pattern" if form == "coordinate" => Field::Pattern,
            "pattern" => return Err(", line 1: an array has values; a pattern is none".into()),
            other => return Err(format!(", line 1: the field \"{other}\" is none of real, integer, complex, pattern")),
        };
        let mirror = match symmetry {
            "general" => None,
            "symmetric" => Some((1.0, 1.0)),
            "skew-symmetric" if field == Field::Pattern => return Err(", line 1: a pattern has no signs to be skew-symmetric".into()),
            "skew-symmetric" => Some((-1.0, -1.0)),
            "hermitian" if field == Field::Complex => Some((1.0, -1.0)),
            "hermitian" => return Err(", line 1: only a complex matrix is hermitian; a real one is symmetric".into()),
            other => {
                return Err(format!(", line 1: the symmetry \"{other}\" is none of general, symmetric, skew-symmetric, hermitian"));
            }
        };
        Ok(Head { is_array: form == "array", field, mirror, is_skew: symmetry == "skew-symmetric" })
    }

    /// Expected form of the lines of entries, after these words.
    fn form(self, before: &str) -> String {
        match self.field {
            Field::Pattern => before.trim_end().to_string(),
            Field::Real => format!("{before}VALUE"),
            Field::Complex => format!("{before}REAL IMAGINARY"),
        }
    }

    fn value(self, items: &[&str]) -> Option<(f64, f64)> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
        match (self.field, items) {
            (Field::Pattern, []) => Some((1.0, 0.0)),
            (Field::Real, [value]) => Some((number(value)?, 0.0)),
            (Field::Complex, [real, imaginary]) => Some((number(real)?, number(imaginary)?)),
            _ => None,
        }
    }

    /// Adds an entry, and its mirror image for a symmetric matrix.
    fn add(self, (row, column, value): Entry, entries: &mut Vec<Entry>) {
        entries.push((row, column, value));
        if let Some((real, imaginary)) = self.mirror.filter(|_| row != column as usize) {
            entries.push((column as usize, row as u32, (real * value.0, imaginary * value.1)));
        }
    }

    /// Entries one by one, each with its place.
    fn coordinates<'a>(
        self,
        lines: impl Iterator<Item = (usize, &'a str)>,
        (rows, columns): (usize, usize),
        count: usize,
    ) -> Result<Vec<Entry>, String> {
        let (mut entries, mut read) = (Vec::new(), 0);
        for (number, line) in lines {
            let items: Vec<&str> = line.split_whitespace().collect();
            let parsed = match items.as_slice() {
                [row, column, value @ ..] => row.parse().ok().zip(column.parse().ok()).zip(self.value(value)),
                _ => None,
            };
            let ((row, column), value): ((usize, usize), _) =
                parsed.ok_or_else(|| format!(", line {number}: it is not of the form {}", self.form("ROW COLUMN ")))?;
            if !(1..=rows).contains(&row) || !(1..=columns).contains(&column) {
                return Err(format!(", line {number}: row {row}, column {column} is outside of {rows} x {columns}"));
            }
            if self.is_skew && row == column {
                return Err(format!(", line {number}: the diagonal of a skew-symmetric matrix is 0 and not in the file"));
            }
            read += 1;
            self.add((row - 1, (column - 1) as u32, value), &mut entries);
        }
        match read == count {
            true => Ok(entries),
            false => Err(format!(": it has {read} entries, and announces {count}")),
        }
    }

    /// All values, column by column; of one half only those on the diagonal and below. Those that are not 0 are the entries.
    fn array<'a>(self, lines: impl Iterator<Item = (usize, &'a str)>, (rows, columns): (usize, usize)) -> Result<Vec<Entry>, String> {
        let first = |column: usize| match (self.mirror.is_some(), self.is_skew) {
            (false, _) => 0,
            (true, is_skew) => column + usize::from(is_skew),
        };
        let mut places = (0..columns).flat_map(|column| (first(column)..rows).map(move |row| (row, column)));
        let mut entries = Vec::new();
        for (number, line) in lines {
            let items: Vec<&str> = line.split_whitespace().collect();
            let value = self.value(&items).ok_or_else(|| format!(", line {number}: it is not of the form {}", self.form("")))?;
            let (row, column) = places.next().ok_or_else(|| format!(", line {number}: more values than {rows} x {columns} has"))?;
            if value != (0.0, 0.0) {
                self.add((row, column as u32, value), &mut entries);
            }
        }
        match places.next() {
            None => Ok(entries),
            Some((row, column)) => Err(format!(": the values end before row {}, column {}", row + 1, column + 1)),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const KARATE: &str = include_str!("../../../../../tests/data/loops/karate.mtx");

    #[test]
    fn both_halves_of_a_symmetric_matrix_count() {
        let karate = Matrix::parse(KARATE).unwrap().real;
        assert_eq!((karate.rows.len(), karate.columns, karate.entries()), (34, 34, 156));
        assert_eq!(karate.rows.iter().map(Vec::len).max(), Some(17));
        assert_eq!(karate.transposed(), karate);
    }

    /// In the square of a graph's matrix the walks of two edges are counted: their number is the sum of the squared degrees.
    #[test]
    fn a_product_is_what_the_definition_says() {
        let karate = Matrix::parse(KARATE).unwrap().real;
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

    /// A matrix as rows of values.
    fn dense(sparse: &Sparse) -> Vec<Vec<f64>> {
        let mut all = vec![vec![0.0; sparse.columns]; sparse.rows.len()];
        for (row, entries) in sparse.rows.iter().enumerate() {
            entries.iter().for_each(|(column, value)| all[row][*column as usize] = *value);
        }
        all
    }

    #[test]
    fn arrays_and_halves_are_read() {
        let of = |head: &str, rest: &str| Matrix::parse(&format!("%%MatrixMarket matrix {head}\n% c\n{rest}")).unwrap();
        assert_eq!(dense(&of("array real general", "2 3\n1\n4\n2\n0\n3\n6\n").real), [[1.0, 2.0, 3.0], [4.0, 0.0, 6.0]]);
        assert_eq!(of("array real general", "2 3\n1\n4\n2\n0\n3\n6\n").real.entries(), 5);
        assert_eq!(dense(&of("array integer symmetric", "2 2\n1\n2\n3\n").real), [[1.0, 2.0], [2.0, 3.0]]);
        assert_eq!(dense(&of("array real skew-symmetric", "2 2\n5\n").real), [[0.0, -5.0], [5.0, 0.0]]);
        assert_eq!(dense(&of("coordinate real skew-symmetric", "2 2 1\n2 1 5\n").real), [[0.0, -5.0], [5.0, 0.0]]);
        let hermitian = of("coordinate complex hermitian", "2 2 2\n1 1 3 0\n2 1 1 2\n");
        assert_eq!(dense(&hermitian.real), [[3.0, 1.0], [1.0, 0.0]]);
        assert_eq!(dense(hermitian.imaginary.as_ref().unwrap()), [[0.0, -2.0], [2.0, 0.0]]);
        assert_eq!(hermitian, of("array complex hermitian", "2 2\n3 0\n1 2\n0 0\n"));
        assert_eq!(dense(&of("coordinate complex symmetric", "2 2 1\n2 1 1 2\n").imaginary.unwrap()), [[0.0, 2.0], [2.0, 0.0]]);
    }

    #[test]
    fn complex_products_have_both_parts() {
        let parse = |rest: &str| Matrix::parse(&format!("%%MatrixMarket matrix {rest}")).unwrap();
        // (1 + 2i, 3) times (4i, 5 - 1i): 1 + 2i times 4i is -8 + 4i; 3 times 5 - 1i is 15 - 3i.
        let row = parse("coordinate complex general\n1 2 2\n1 1 1 2\n1 2 3 0\n");
        let column = parse("coordinate complex general\n2 1 2\n1 1 0 4\n2 1 5 -1\n");
        let (left, right) = row.clone().factors(column);
        assert_eq!(left.row_of_product(0, &right).0, [(0, 7.0), (1, 1.0)]);
        // One of both may be real.
        let (left, right) = row.factors(parse("array real general\n2 1\n1\n1\n"));
        assert_eq!(left.row_of_product(0, &right).0, [(0, 4.0), (1, 2.0)]);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, says) in [
            ("", "line 1"),
            ("%%MatrixMarket matrix array pattern general\n", "line 1: an array has values; a pattern is none"),
            ("%%MatrixMarket matrix coordinate real hermitian\n", "line 1: only a complex matrix is hermitian"),
            ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", "line 1: a pattern has no signs"),
            ("%%MatrixMarket matrix coordinate quaternion general\n", "line 1: the field \"quaternion\" is none of"),
            ("%%MatrixMarket matrix coordinate real unitary\n", "line 1: the symmetry \"unitary\" is none of"),
            ("%%MatrixMarket vector array real general\n", "line 1: it is not"),
            ("%%MatrixMarket matrix array real general\n2 2 4\n", "line 2: it is not of the form ROWS COLUMNS"),
            ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", ": the values end before row 2, column 2"),
            ("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n4\n", "line 6: more values than 2 x 2 has"),
            ("%%MatrixMarket matrix array complex general\n1 1\n1\n", "line 3: it is not of the form REAL IMAGINARY"),
            ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 3\n", "line 3: the diagonal of a skew-symmetric"),
            ("%%MatrixMarket matrix coordinate real general\n% c\n2 2\n", "line 3: it is not of the form ROWS"),
            ("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", "line 2: a matrix of which one half is given"),
            ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1.0\n", "line 3: row 1, column 3 is outside"),
            ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan\n", "line 3: it is not of the form ROW COLUMN VALUE"),
            ("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n", "1 entries, and announces 2"),
        ] {
            let why = Matrix::parse(text).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }
}
