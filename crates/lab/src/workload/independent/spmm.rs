//! The product of two sparse matrices; a task is a row. How long a row takes shows only while it is computed (the example of Hamidzadeh, Lilja
//! and Atif 1995, section 1).

use bytes::{Buf, Bytes};
use serde::{Deserialize, Serialize};

use super::computed::Kernel;
use super::matrix_market::{Matrix, Sparse};
use super::{Entry, Facts, Make, Plan};
use equipoise::error::{Error, Result};
use equipoise::names;
use equipoise::node::Worker;
use equipoise::spec::{InvalidSpec, Options};

pub const ENTRY: Entry = Entry {
    name: "spmm",
    title: "the product of two sparse matrices, row by row",
    source: "",
    options: "file=A.mtx (Matrix Market, real or complex), times=B.mtx (otherwise A by itself, or by its transpose if A is not square); or rows=1000, entries=8 \
              (of a row, on average; drawn)",
    examples: &["spmm:rows=50,entries=4"],
    build,
    facts: Facts { answer: "checksum of the product" },
};

/// Time of a multiplication in simulation, in nanoseconds.
const MULTIPLICATION: f64 = 10.0;
const MOST_ROWS: u64 = 10_000_000;

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let file = options.value("file")?.map(names::path);
    let times = options.value("times")?.map(names::path);
    let rows = options.within("rows", 1..=MOST_ROWS)?;
    let entries = options.within("entries", 1..=MOST_ROWS)?;
    let make = match file {
        Some(_) if rows.or(entries).is_some() => return Err(options.conflict("rows and entries go without a file, which has its own")),
        Some(file) => Make::computing(options, MULTIPLICATION, move |_| {
            let left = Matrix::read("spmm:file", &file)?;
            let right = match &times {
                Some(file) => Matrix::read("spmm:times", file)?,
                None if left.real.columns == left.real.rows.len() => left.clone(),
                None => left.transposed(),
            };
            if right.real.rows.len() != left.real.columns {
                let (columns, rows) = (left.real.columns, right.real.rows.len());
                let why = format!("a matrix of {columns} columns cannot be multiplied by one of {rows} rows");
                return Err(Error::input("workload", format!(" spmm:times: {why}")));
            }
            let (left, right) = left.factors(right);
            Ok(Plan::Product(Product { left, right }))
        }),
        None if times.is_some() => return Err(options.conflict("times goes with file=A.mtx")),
        None => {
            let (rows, entries) = (rows.unwrap_or(1000) as usize, entries.unwrap_or(8) as usize);
            Make::computing(options, MULTIPLICATION, move |setting| {
                let [left, right] = [0, 1].map(|which| Sparse::drawn(rows, entries, setting.seed.wrapping_add(which << 40)));
                Ok(Plan::Product(Product { left, right }))
            })
        }
    };
    Ok(Make { accept: Some(Box::new(accept)), ..make })
}

/// Factors of the product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Product {
    pub left: Sparse,
    pub right: Sparse,
}

/// A row's part of the checksum: of places and values, to the bit; 32 bits, so that sums stay exact as numbers of JSON.
fn checksum(row: usize, entries: impl Iterator<Item = (u32, f64)>) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(MIX).rotate_left(29);
    let sum = entries.fold(mix(1, row as u64), |sum, (column, value)| mix(mix(sum, u64::from(column)), value.to_bits()));
    sum >> 32
}

/// An element of the vector that products are judged with, from 1 to 2; it never repeats.
fn weight(column: u32) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    1.0 + (f64::from(column) * GOLDEN).fract()
}

/// Checks that the rows that came back are in order and whole.
fn accept(products: &[(usize, Bytes)]) -> Result<()> {
    for (row, product) in products {
        let mut rest = product.clone();
        let sum = if rest.len() % 12 == 8 { rest.get_u64_le() } else { u64::MAX };
        let entries = std::iter::from_fn(|| (rest.remaining() >= 12).then(|| (rest.get_u32_le(), f64::from_bits(rest.get_u64_le()))));
        if checksum(*row, entries) != sum {
            return Err(Error::wrong_result(format!("row {row} of the product came back damaged")));
        }
    }
    Ok(())
}

impl Kernel for Product {
    fn tasks(&self) -> usize {
        self.left.rows.len()
    }

    fn compute(&self, task: usize, worker: &mut dyn Worker, product: &mut Vec<u8>) -> (u64, u64) {
        worker.checkpoint();
        let (row, multiplications) = self.left.row_of_product(task, &self.right);
        let sum = checksum(task, row.iter().copied());
        product.extend_from_slice(&sum.to_le_bytes());
        for (column, value) in row {
            product.extend_from_slice(&column.to_le_bytes());
            product.extend_from_slice(&value.to_bits().to_le_bytes());
        }
        // A row costs something even if it is empty.
        (sum, multiplications + 1)
    }

    /// A row of the product times a vector is the row of the left matrix times what the right one makes of the vector (Freivalds 1977).
    fn check(&self, task: usize, product: &[u8]) -> Result<(), String> {
        /// Parts of the sum of all magnitudes: what rounding may change in rows of millions.
        const ROUNDING: f64 = 1e-9;
        let entries = product.get(8..).unwrap_or_default().chunks_exact(12).map(|mut entry| (entry.get_u32_le(), entry.get_f64_le()));
        let of_product: f64 = entries.map(|(column, value)| value * weight(column)).sum();
        let (mut of_factors, mut magnitude) = (0.0, 0.0);
        for (middle, value) in &self.left.rows[task] {
            for (column, factor) in &self.right.rows[*middle as usize] {
                let part = value * (factor * weight(*column));
                of_factors += part;
                magnitude += part.abs();
            }
        }
        let differ = (of_product - of_factors).abs();
        match differ <= ROUNDING * magnitude || !magnitude.is_finite() {
            true => Ok(()),
            false => Err(format!("the row times a vector is {of_product}, and that of its factors {of_factors}")),
        }
    }
}
