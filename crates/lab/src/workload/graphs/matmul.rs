//! Matrix multiplication by divide and conquer, with matrices that travel: a task carries both of its factors, and answers with the product.
//!
//! ```text
//!   | A B |   | E F |   | AE+BG AF+BH |     eight products of half the size; the parent adds them in pairs
//!   | C D | x | G H | = | CE+DG CF+DH |     a product of `block` rows or fewer is computed by its task
//! ```
//!
//! The factors are drawn, whole numbers below 1000, so that products are exact. The answer is one number, a sum of the product's elements with
//! a weight for each row and column, modulo 2^61 - 1. It is known without multiplying: weighted rows of the one factor times weighted columns of
//! the other (Freivalds, "Probabilistic machines can use less running time", 1977).

use std::ops::Range;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{Entry, Facts, Make, Number, Prepared, Workload};
use equipoise::error::Result;
use equipoise::node::{LARGEST_MESSAGE, Ticks, Worker};
use equipoise::schedule::{Computation, Roots, Yield};
use equipoise::spec::{InvalidSpec, Options};

pub(super) static ENTRY: Entry = Entry {
    name: "matmul",
    title: "matrix multiplication by divide and conquer",
    source: "",
    options: "n=256 (rows and columns), block=64 (rows of what a task multiplies by itself), seed=1 (of the factors)",
    examples: &["matmul:n=13,block=4", "matmul:n=32,block=16"],
    build,
    facts: Facts { answer: "checksum", has_own_network: false },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let n = options.within("n", 1..=MOST_ROWS)?.unwrap_or(256);
    let block = options.within("block", 1..=MOST_ROWS)?.unwrap_or(64);
    // A message may carry all tasks that there are. Each level of parts has twice the elements of the one before.
    let levels = n.div_ceil(block).next_power_of_two().ilog2();
    let bytes = (2 * n * n * ELEMENT) << levels;
    if bytes > LARGEST_MESSAGE as u64 {
        return Err(options.conflict(format!(
            "all parts of {block} rows together are {bytes} bytes, more than the {LARGEST_MESSAGE} of a message; ask for a larger block or a \
             smaller n"
        )));
    }
    let seed = options.whole("seed", 0)?.unwrap_or(1);
    Ok(Make::new(options, move |_| Ok(Prepared::new(Matmul { n: n as usize, block: block as usize, seed }))))
}

/// Beyond, the products alone would not fit into a message.
const MOST_ROWS: u64 = 8_192;
/// Bytes of an element of a factor in a message.
const ELEMENT: u64 = 4;
/// The elements of the factors are below.
const ELEMENTS: u32 = 1_000;
/// The modulus of checksums, a prime.
const MODULUS: u64 = (1 << 61) - 1;
/// Picoseconds that a multiplication with its addition takes, for the simulator: processor time measured on an Intel Xeon.
const MULTIPLICATION: u64 = 500;
/// Picoseconds that an element takes to be copied.
const COPY: u64 = 300;

/// The computation: the product of two square matrices.
#[derive(Clone, Copy, Debug)]
pub struct Matmul {
    pub n: usize,
    /// Products of more rows, columns or terms are divided.
    pub block: usize,
    /// Seed from which the factors are drawn.
    pub seed: u64,
}

/// A task: two factors, row by row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Product {
    rows: usize,
    /// Columns of the left factor and rows of the right one.
    terms: usize,
    columns: usize,
    left: Vec<u32>,
    right: Vec<u32>,
}

/// Division of a product into parts.
#[derive(Clone, Debug)]
pub struct Division {
    rows: Vec<Range<usize>>,
    columns: Vec<Range<usize>>,
    terms: Vec<Range<usize>>,
}

/// Part of a matrix.
fn part(matrix: &[u32], width: usize, rows: &Range<usize>, columns: &Range<usize>) -> Vec<u32> {
    rows.clone().flat_map(|row| &matrix[row * width..][columns.clone()]).copied().collect()
}

impl Product {
    /// The product, row by row. Each row that is done is shown to `look`.
    fn multiply(&self, mut look: impl FnMut()) -> Vec<u64> {
        let mut product = vec![0; self.rows * self.columns];
        let rows = product.chunks_mut(self.columns.max(1)).zip(self.left.chunks(self.terms.max(1)));
        for (into, left) in rows {
            for (factor, right) in left.iter().zip(self.right.chunks(self.columns.max(1))) {
                into.iter_mut().zip(right).for_each(|(into, right)| *into += u64::from(*factor) * u64::from(*right));
            }
            look();
        }
        product
    }

    /// Halves of what is longer than a block.
    fn division(&self, block: usize) -> Division {
        let halves = |length: usize| match length > block {
            true => vec![0..length.div_ceil(2), length.div_ceil(2)..length],
            false => std::iter::once(0..length).collect(),
        };
        Division { rows: halves(self.rows), columns: halves(self.columns), terms: halves(self.terms) }
    }

    fn divided(&self, division: &Division) -> Vec<Product> {
        let mut products = Vec::new();
        for rows in &division.rows {
            for columns in &division.columns {
                products.extend(division.terms.iter().map(|terms| Product {
                    rows: rows.len(),
                    terms: terms.len(),
                    columns: columns.len(),
                    left: part(&self.left, self.terms, rows, terms),
                    right: part(&self.right, self.columns, terms, columns),
                }));
            }
        }
        products
    }
}

impl Division {
    /// Puts the parts' products together.
    fn joined(&self, parts: &[Vec<u64>]) -> Vec<u64> {
        let end = |ranges: &[Range<usize>]| ranges.last().map_or(0, |range| range.end);
        let width = end(&self.columns);
        let mut product = vec![0; end(&self.rows) * width];
        let mut parts = parts.iter();
        for rows in &self.rows {
            for columns in &self.columns {
                for part in parts.by_ref().take(self.terms.len()) {
                    for (row, values) in rows.clone().zip(part.chunks(columns.len().max(1))) {
                        let into = &mut product[row * width..][columns.clone()];
                        into.iter_mut().zip(values).for_each(|(into, value)| *into += value);
                    }
                }
            }
        }
        product
    }
}

/// A product modulo the prime.
fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(MODULUS)) as u64
}

/// The sum of values times weights modulo the prime.
fn weighted(values: impl Iterator<Item = u64>, weights: &[u64]) -> u64 {
    values.zip(weights).fold(0, |sum, (value, weight)| (sum + times(value, *weight)) % MODULUS)
}

impl Matmul {
    fn factors(&self) -> Product {
        let mut rng = self.rng(super::super::MATRICES_STREAM);
        let mut matrix = || (0..self.n * self.n).map(|_| rng.random_range(0..ELEMENTS)).collect();
        Product { rows: self.n, terms: self.n, columns: self.n, left: matrix(), right: matrix() }
    }

    fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }

    /// The weights of rows and of columns.
    fn weights(&self) -> [Vec<u64>; 2] {
        let mut rng = self.rng(super::super::CHECKS_STREAM);
        let mut weights = || (0..self.n).map(|_| rng.random_range(1..MODULUS)).collect();
        [weights(), weights()]
    }

    fn checksum(&self, product: &[u64]) -> u64 {
        let [rows, columns] = self.weights();
        weighted(product.chunks(self.n).map(|row| weighted(row.iter().copied(), &columns)), &rows)
    }
}

impl Computation for Matmul {
    type Task = Product;
    type Answer = Vec<u64>;
    type Waiting = Division;

    fn execute(&self, product: Product, worker: &mut dyn Worker) -> Yield<Self> {
        let Product { rows, terms, columns, .. } = product;
        let size = |count: usize, picoseconds: u64| (count as u64 * picoseconds).div_ceil(1000) as Ticks;
        if rows.max(terms).max(columns) > self.block {
            let division = product.division(self.block);
            worker.charge(size(2 * (rows + columns) * terms, COPY));
            return Yield::Children { tasks: product.divided(&division), waiting: division };
        }
        worker.charge(size(rows * terms * columns, MULTIPLICATION));
        Yield::Answer(product.multiply(|| worker.checkpoint()))
    }

    fn join(&self, division: Division, answers: Vec<Vec<u64>>) -> Yield<Self> {
        Yield::Answer(division.joined(&answers))
    }

    fn combine(&self, mut into: Vec<u64>, more: Vec<u64>) -> Vec<u64> {
        into.iter_mut().zip(more).for_each(|(into, more)| *into += more);
        into
    }
}

impl Workload for Matmul {
    fn roots(&self) -> Roots<Self> {
        Roots::One(self.factors())
    }

    fn number(&self, answer: &Vec<u64>) -> Number {
        Number::Whole(self.checksum(answer))
    }

    fn known(&self) -> Option<Number> {
        let Product { left, right, .. } = self.factors();
        let [rows, columns] = self.weights();
        let of_terms = |term: usize| {
            let column = left.chunks(self.n).map(|row| u64::from(row[term]));
            let row = right[term * self.n..][..self.n].iter().map(|value| u64::from(*value));
            times(weighted(column, &rows), weighted(row, &columns))
        };
        Some(Number::Whole((0..self.n).map(of_terms).fold(0, |sum, term| (sum + term) % MODULUS)))
    }

    fn sequential(&self) -> Option<Number> {
        Some(Number::Whole(self.checksum(&self.factors().multiply(|| ()))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::simulate;
    use super::*;

    #[test]
    fn a_small_product_is_the_one_on_paper() {
        let product = Product { rows: 2, terms: 3, columns: 2, left: vec![1, 2, 3, 4, 5, 6], right: vec![7, 8, 9, 10, 11, 12] };
        assert_eq!(product.multiply(|| ()), [58, 64, 139, 154]);
        for block in 1..4 {
            let division = product.division(block);
            let parts: Vec<Vec<u64>> = product.divided(&division).iter().map(|part| part.multiply(|| ())).collect();
            assert_eq!(division.joined(&parts), [58, 64, 139, 154], "block {block}");
        }
    }

    #[test]
    fn the_check_agrees_with_the_product_and_notices_any_change() {
        for n in [1, 2, 7, 40] {
            let matmul = Matmul { n, block: 4, seed: 5 };
            assert_eq!(matmul.sequential(), matmul.known(), "n = {n}");
            let right = matmul.factors().multiply(|| ());
            for place in 0..right.len() {
                let mut wrong = right.clone();
                wrong[place] += 1;
                assert_ne!(matmul.checksum(&wrong), matmul.checksum(&right));
            }
        }
    }

    #[test]
    fn matrices_travel() {
        let (outcome, prepared) = simulate("matmul:n=48,block=12", "steal", 8, 1).unwrap();
        assert_eq!(outcome.answer, prepared.known());
        let bytes: u64 = outcome.nodes.iter().map(|node| node.bytes).sum();
        let migrated: u64 = outcome.nodes.iter().map(|node| node.migrated_out).sum();
        // At least two factors of 12 times 12 elements, and a product back.
        assert!(migrated > 7 && bytes > migrated * 3 * 144, "{bytes} bytes for {migrated} migrations");
    }

    #[test]
    fn what_no_message_could_carry_is_refused() {
        let refused = super::super::find("matmul:n=4096,block=64").err().map(|why| why.to_string()).unwrap();
        assert!(refused.contains("all parts of 64 rows together are 8589934592 bytes, more than"), "{refused}");
        assert!(super::super::find("matmul:n=4096,block=512").is_ok());
    }
}
