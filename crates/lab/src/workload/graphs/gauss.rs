//! Gaussian elimination, with matrices that travel: the determinant of a matrix modulo the prime 2^31 - 1, which is exact.
//!
//! 1. A step takes the matrix that is left, makes the first `block` rows with pivots other than 0 triangular, and multiplies their pivots.
//! 2. The rows below are dealt into blocks, each a task that carries its rows and the step's: it eliminates and answers with what is left.
//! 3. When all have answered, the next step begins with their rows, with `block` rows and `block` columns fewer.
//!
//! ```text
//!   step: | 1 * * * * * |     task: | - - - * * * |     answers are the next matrix
//!         | 0 1 * * * * |           | - - - * * * |
//!         | 0 0 1 * * * |     task: | - - - * * * |
//! ```
//!
//! So generations of tasks alternate with single ones, and get smaller. The matrix has powers of drawn numbers in its rows, the highest first;
//! one of them is 0, so that there are pivots to be sought. Its determinant is known: the product of all differences (Vandermonde).

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{Entry, Facts, Make, Number, Prepared, Workload};
use equipoise::error::Result;
use equipoise::node::{LARGEST_MESSAGE, Ticks, Worker};
use equipoise::schedule::{Computation, Roots, Yield};
use equipoise::spec::{InvalidSpec, Options};

pub(super) static ENTRY: Entry = Entry {
    name: "gauss",
    title: "Gaussian elimination modulo a prime",
    source: "",
    options: "n=256 (1 to 8192 rows and columns), block=32 (1 to 8192; pivots of a step and rows of a task), seed=1 (of the matrix)",
    examples: &["gauss:n=1", "gauss:n=14,block=3"],
    build,
    facts: Facts { answer: "determinant", has_own_network: false },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let n = options.within("n", 1..=MOST_ROWS)?.unwrap_or(256) as usize;
    let block = options.within("block", 1..=MOST_ROWS)?.unwrap_or(32) as usize;
    let seed = options.whole("seed", 0)?.unwrap_or(1);
    Ok(Make::new(options, move |_| Ok(Prepared::new(Gauss { n, block, seed }))))
}

const MOST_ROWS: u64 = 8_192;
// A message may carry all tasks of a generation: their rows, and the same number of the step's rows, with up to five bytes per element.
const _: () = assert!(2 * 5 * MOST_ROWS * MOST_ROWS <= LARGEST_MESSAGE as u64);

const PRIME: u64 = (1 << 31) - 1;
/// Picoseconds that a multiplication with its subtraction takes, for the simulator: processor time measured on an Intel Xeon.
const MULTIPLICATION: u64 = 1_800;

/// The computation: a determinant.
#[derive(Clone, Copy, Debug)]
pub struct Gauss {
    pub n: usize,
    /// Pivots of a step, and rows of a task.
    pub block: usize,
    /// Seed from which the matrix is drawn.
    pub seed: u64,
}

/// A task. Matrices lie row by row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Elimination {
    /// All from here on: a square matrix.
    Step { side: usize, matrix: Vec<u32> },
    /// In some rows, with those of the step, whose pivots are 1.
    Rows { side: usize, pivots: Vec<u32>, rows: Vec<u32> },
}

/// The result of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Eliminated {
    /// Remaining part of the rows.
    Rows(Vec<u32>),
    Determinant(u32),
}

/// State of a step: the product of its pivots, with the sign of its exchanges.
#[derive(Clone, Copy, Debug)]
pub enum Waiting {
    /// For rows with `side` columns.
    Rows { side: usize, pivots: u32 },
    /// For the determinant of what they leave.
    Determinant { pivots: u32 },
}

fn times(a: u32, b: u32) -> u32 {
    (u64::from(a) * u64::from(b) % PRIME) as u32
}

/// The number that makes 1 of another, which is not 0 (Fermat).
fn inverse(number: u32) -> u32 {
    let (mut power, mut exponent, mut result) = (number, PRIME - 2, 1);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = times(result, power);
        }
        power = times(power, power);
        exponent /= 2;
    }
    result
}

fn negative(number: u32) -> u32 {
    ((PRIME - u64::from(number)) % PRIME) as u32
}

/// Takes a multiple of a row, whose first element is 1, off another, so that its first element becomes 0.
fn eliminate(row: &mut [u32], by: &[u32]) {
    let factor = u64::from(negative(row[0]));
    if factor == 0 {
        return;
    }
    for (value, by) in row.iter_mut().zip(by) {
        // Modulo 2^31 - 1 the upper bits count as if they were lower ones.
        let sum = u64::from(*value) + factor * u64::from(*by);
        let folded = (sum & PRIME) + (sum >> 31);
        *value = (if folded >= PRIME { folded - PRIME } else { folded }) as u32;
    }
}

/// Makes the first `width` rows of a square matrix triangular, with pivots of 1; returns the product of what the pivots were. Exchanges rows
/// where a pivot would be 0; where all are, so is the determinant.
fn triangular(matrix: &mut [u32], side: usize, width: usize) -> u32 {
    let mut product = 1;
    for pivot in 0..width {
        let found = (pivot..side).find(|row| {
            let (above, below) = matrix.split_at_mut(row.max(&pivot) * side);
            let row = &mut below[..side];
            // Rows that were looked at before have lost these already, which does no harm.
            (0..pivot).for_each(|column| eliminate(&mut row[column..], &above[column * side..][column..side]));
            row[pivot] != 0
        });
        let Some(found) = found else { return 0 };
        if found > pivot {
            let (above, below) = matrix.split_at_mut(found * side);
            above[pivot * side..][..side].swap_with_slice(&mut below[..side]);
            product = negative(product);
        }
        let row = &mut matrix[pivot * side..][..side];
        product = times(product, row[pivot]);
        let by = inverse(row[pivot]);
        row[pivot..].iter_mut().for_each(|value| *value = times(*value, by));
    }
    product
}

impl Gauss {
    /// The drawn numbers, all different, the first 0.
    fn numbers(&self) -> Vec<u32> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(super::super::MATRICES_STREAM);
        let mut taken = std::collections::BTreeSet::from([0]);
        let mut numbers = vec![0];
        while numbers.len() < self.n {
            let number = rng.random_range(1..PRIME as u32);
            if taken.insert(number) {
                numbers.push(number);
            }
        }
        numbers
    }

    fn matrix(&self) -> Vec<u32> {
        let powers = |number: u32| {
            let mut row: Vec<u32> = std::iter::successors(Some(1), |power| Some(times(*power, number))).take(self.n).collect();
            row.reverse();
            row
        };
        self.numbers().into_iter().flat_map(powers).collect()
    }

    /// A step: the product of its pivots, and the tasks that are left.
    fn step(&self, side: usize, mut matrix: Vec<u32>) -> Yield<Gauss> {
        let width = self.block.min(side);
        let pivots = triangular(&mut matrix, side, width);
        let below = matrix.split_off(width * side);
        if pivots == 0 || below.is_empty() {
            return Yield::Answer(Eliminated::Determinant(pivots));
        }
        let tasks = below.chunks(self.block * side);
        let tasks = tasks.map(|rows| Elimination::Rows { side, pivots: matrix.clone(), rows: rows.to_vec() }).collect();
        Yield::Children { tasks, waiting: Waiting::Rows { side: side - width, pivots } }
    }
}

/// Remaining part of rows after the elimination of some columns.
fn remainder(side: usize, pivots: &[u32], mut rows: Vec<u32>, mut look: impl FnMut()) -> Vec<u32> {
    let width = pivots.len() / side;
    let mut left = Vec::with_capacity(rows.len() / side * (side - width));
    for row in rows.chunks_mut(side) {
        for (column, by) in pivots.chunks(side).enumerate() {
            eliminate(&mut row[column..], &by[column..]);
        }
        left.extend_from_slice(&row[width..]);
        look();
    }
    left
}

impl Computation for Gauss {
    type Task = Elimination;
    type Answer = Eliminated;
    type Waiting = Waiting;

    fn execute(&self, task: Elimination, worker: &mut dyn Worker) -> Yield<Self> {
        let ticks = |multiplications: usize| (multiplications as u64 * MULTIPLICATION).div_ceil(1000) as Ticks;
        match task {
            Elimination::Step { side, matrix } => {
                let width = self.block.min(side);
                worker.charge(ticks(width * width * side / 2 + side * side));
                self.step(side, matrix)
            }
            Elimination::Rows { side, pivots, rows } => {
                worker.charge(ticks(rows.len() * pivots.len() / side.max(1)));
                Yield::Answer(Eliminated::Rows(remainder(side, &pivots, rows, || worker.checkpoint())))
            }
        }
    }

    fn join(&self, waiting: Waiting, answers: Vec<Eliminated>) -> Yield<Self> {
        match waiting {
            Waiting::Rows { side, pivots } => {
                let rows = answers.into_iter().filter_map(|answer| match answer {
                    Eliminated::Rows(rows) => Some(rows),
                    Eliminated::Determinant(_) => None,
                });
                let matrix = rows.flatten().collect();
                Yield::Children { tasks: vec![Elimination::Step { side, matrix }], waiting: Waiting::Determinant { pivots } }
            }
            Waiting::Determinant { pivots } => {
                let all = answers.into_iter().fold(Eliminated::Determinant(pivots), |into, more| self.combine(into, more));
                Yield::Answer(all)
            }
        }
    }

    /// The determinant of two matrices in one. Rows always have a step that waits for them.
    fn combine(&self, into: Eliminated, more: Eliminated) -> Eliminated {
        match (into, more) {
            (Eliminated::Determinant(a), Eliminated::Determinant(b)) => Eliminated::Determinant(times(a, b)),
            (determinant @ Eliminated::Determinant(_), Eliminated::Rows(_)) | (Eliminated::Rows(_), determinant) => determinant,
        }
    }
}

impl Workload for Gauss {
    fn roots(&self) -> Roots<Self> {
        Roots::One(Elimination::Step { side: self.n, matrix: self.matrix() })
    }

    fn number(&self, answer: &Eliminated) -> Number {
        Number::Whole(match answer {
            Eliminated::Determinant(determinant) => (*determinant).into(),
            Eliminated::Rows(_) => 0,
        })
    }

    fn known(&self) -> Option<Number> {
        let numbers = self.numbers();
        let differences = (0..).zip(&numbers).flat_map(|(at, a)| {
            let later = &numbers[at + 1..];
            later.iter().map(move |b| ((u64::from(*a) + PRIME - u64::from(*b)) % PRIME) as u32)
        });
        Some(Number::Whole(differences.fold(1, times).into()))
    }

    fn sequential(&self) -> Option<Number> {
        Some(Number::Whole(triangular(&mut self.matrix(), self.n, self.n).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::simulate;
    use super::*;

    /// The determinant by Laplace's expansion, as integers.
    fn laplace(matrix: &[Vec<i64>]) -> i64 {
        let Some((first, below)) = matrix.split_first() else { return 1 };
        let minor = |column: usize| -> Vec<Vec<i64>> { below.iter().map(|row| [&row[..column], &row[column + 1..]].concat()).collect() };
        (0..first.len()).map(|column| if column % 2 == 0 { 1 } else { -1 } * first[column] * laplace(&minor(column))).sum()
    }

    /// The same through steps and their tasks.
    fn in_steps(side: usize, matrix: Vec<u32>, block: usize) -> u32 {
        let gauss = Gauss { n: side, block, seed: 0 };
        match gauss.step(side, matrix) {
            Yield::Answer(Eliminated::Determinant(determinant)) => determinant,
            Yield::Children { tasks, waiting: Waiting::Rows { side: next, pivots } } => {
                let rows = tasks.into_iter().map(|task| match task {
                    Elimination::Rows { side, pivots, rows } => remainder(side, &pivots, rows, || ()),
                    Elimination::Step { .. } => Vec::new(),
                });
                times(pivots, in_steps(next, rows.flatten().collect(), block))
            }
            _ => u32::MAX,
        }
    }

    #[test]
    fn determinants_are_those_of_laplace() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut zeros = 0;
        for _ in 0..300 {
            // With enough zeros that pivots must be sought, and often there is none.
            let side = rng.random_range(1..6);
            let matrix: Vec<Vec<i64>> =
                (0..side).map(|_| (0..side).map(|_| if rng.random_bool(0.5) { 0 } else { rng.random_range(-9..10) }).collect()).collect();
            let expected = laplace(&matrix).rem_euclid(PRIME as i64) as u32;
            zeros += u32::from(expected == 0);
            let flat: Vec<u32> = matrix.concat().iter().map(|value| value.rem_euclid(PRIME as i64) as u32).collect();
            assert_eq!(triangular(&mut flat.clone(), side, side), expected, "{matrix:?}");
            for block in 1..=side {
                assert_eq!(in_steps(side, flat.clone(), block), expected, "{matrix:?} in steps of {block}");
            }
        }
        assert!((30..270).contains(&zeros), "{zeros}");
    }

    #[test]
    fn the_product_of_differences_is_the_determinant() {
        for n in [1, 2, 3, 10, 50] {
            let gauss = Gauss { n, block: 8, seed: 9 };
            assert_eq!(gauss.sequential(), gauss.known(), "n = {n}");
            assert_ne!(gauss.known(), Some(Number::Whole(0)));
        }
    }

    #[test]
    fn generations_follow_each_other_and_carry_rows() {
        let (outcome, prepared) = simulate("gauss:n=40,block=8", "random", 4, 1).unwrap();
        assert_eq!(outcome.answer, prepared.known());
        // Five steps, with 4, 3, 2 and 1 blocks of rows between them.
        assert_eq!(outcome.nodes.iter().map(|node| node.tasks).sum::<u64>(), 15);
        assert!(outcome.nodes.iter().map(|node| node.bytes).sum::<u64>() > 4 * 8 * 40);
    }
}
