//! N-Queens, all solutions: in how many ways n queens stand on a board of n times n so that none attacks another.
//!
//! Rows are filled from the top; three words of bits say which squares of the next row are attacked along columns and both diagonals.
//! A task is a board whose first rows are filled. Below `cutoff` rows it spawns a task for each safe square of the next row; from there on
//! it counts by itself.
//!
//! ```text
//!   row 0      Q . . .        . Q . .    ..         cutoff = 2: tasks of two rows count, those above spawn
//!   row 1   ..Q.   ...Q         ...Q
//! ```

use serde::{Deserialize, Serialize};

use super::{Entry, Facts, Make, Number, Prepared, Workload};
use equipoise::error::Result;
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::{Computation, Roots, Yield};
use equipoise::spec::{InvalidSpec, Options};

pub(super) static ENTRY: Entry = Entry {
    name: "queens",
    title: "N-Queens, all solutions",
    source: "",
    options: "n=12 (1 to 27), cutoff=2 up to n=12, 3 up to 15, 4 above (rows filled by tasks of their own)",
    examples: &["queens:n=1", "queens:n=6,cutoff=6", "queens:n=8", "queens:n=9,cutoff=0"],
    build,
    facts: Facts { answer: "solutions", has_own_network: false },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let n = options.within("n", 1..=27u64)?.unwrap_or(12);
    let cutoff = options.within("cutoff", 0..=27)?.unwrap_or(default_cutoff(n));
    let queens = Queens { n: n as u32, cutoff: cutoff as u32 };
    Ok(Make::new(options, move |_| Ok(Prepared::new(queens))))
}

/// Default cutoff, with which the counting tasks take 10 us to a millisecond.
fn default_cutoff(n: u64) -> u64 {
    match n {
        ..=12 => 2,
        13..=15 => 3,
        _ => 4,
    }
}

/// The number of solutions for n = 1, 2, .. (OEIS A000170).
const SOLUTIONS: [u64; 27] = [
    1,
    0,
    0,
    2,
    10,
    4,
    40,
    92,
    352,
    724,
    2_680,
    14_200,
    73_712,
    365_596,
    2_279_184,
    14_772_512,
    95_815_104,
    666_090_624,
    4_968_057_848,
    39_029_188_884,
    314_666_222_712,
    2_691_008_701_644,
    24_233_937_684_440,
    227_514_171_973_736,
    2_207_893_435_808_352,
    22_317_699_616_364_044,
    234_907_967_154_122_528,
];

/// Nanoseconds that a board takes, for the simulator: processor time measured on an Intel Xeon.
const BOARD: Ticks = 15;
/// Boards between two checkpoints: some microseconds.
const BETWEEN_CHECKPOINTS: u64 = 256;

/// The computation: the number of solutions on a board of this many rows.
#[derive(Clone, Copy, Debug)]
pub struct Queens {
    pub n: u32,
    /// Boards with fewer rows filled spawn.
    pub cutoff: u32,
}

/// A board whose first rows are filled.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Board {
    /// Columns with a queen.
    columns: u32,
    /// Squares of the next row that are attacked along the diagonals, to either side.
    left: u32,
    right: u32,
}

impl Board {
    const EMPTY: Board = Board { columns: 0, left: 0, right: 0 };

    fn rows(self) -> u32 {
        self.columns.count_ones()
    }
}

impl Queens {
    /// The boards with one row more.
    fn extended(self, board: Board) -> impl Iterator<Item = Board> {
        let mut safe = !(board.columns | board.left | board.right) & ((1 << self.n) - 1);
        std::iter::from_fn(move || {
            let square = safe & safe.wrapping_neg();
            safe ^= square;
            (square != 0).then_some(Board {
                columns: board.columns | square,
                left: (board.left | square) << 1,
                right: (board.right | square) >> 1,
            })
        })
    }

    /// The number of solutions that begin with this board. Every board is shown to `visit`.
    fn count(self, board: Board, visit: &mut impl FnMut()) -> u64 {
        visit();
        if board.rows() == self.n {
            return 1;
        }
        self.extended(board).map(|board| self.count(board, visit)).sum()
    }
}

impl Computation for Queens {
    type Task = Board;
    type Answer = u64;
    type Waiting = ();

    fn execute(&self, board: Board, worker: &mut dyn Worker) -> Yield<Self> {
        if board.rows() < self.cutoff.min(self.n) {
            let tasks: Vec<Board> = self.extended(board).collect();
            worker.charge(BOARD * (1 + tasks.len() as Ticks));
            return Yield::Children { tasks, waiting: () };
        }
        let mut boards = 0;
        let solutions = self.count(board, &mut || {
            boards += 1;
            if boards % BETWEEN_CHECKPOINTS == 0 {
                worker.checkpoint();
            }
        });
        worker.charge(BOARD * boards);
        Yield::Answer(solutions)
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(answers.into_iter().sum())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

impl Workload for Queens {
    fn roots(&self) -> Roots<Self> {
        Roots::One(Board::EMPTY)
    }

    fn number(&self, answer: &u64) -> Number {
        Number::Whole(*answer)
    }

    fn known(&self) -> Option<Number> {
        SOLUTIONS.get(self.n as usize - 1).map(|solutions| Number::Whole(*solutions))
    }

    fn sequential(&self) -> Option<Number> {
        Some(Number::Whole(self.count(Board::EMPTY, &mut || ())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_program_finds_the_known_numbers() {
        for n in 1..=if cfg!(debug_assertions) { 10 } else { 13 } {
            let queens = Queens { n, cutoff: 2 };
            assert_eq!(queens.sequential(), queens.known(), "n = {n}");
        }
    }

    #[test]
    fn no_queens_attack_each_other() {
        let queens = Queens { n: 6, cutoff: 0 };
        let mut boards = vec![(Board::EMPTY, Vec::new())];
        while let Some((board, columns)) = boards.pop() {
            for next in queens.extended(board) {
                let column = (next.columns ^ board.columns).trailing_zeros();
                let row = columns.len() as u32;
                for (above, other) in (0..).zip(&columns) {
                    assert!(column != *other && column.abs_diff(*other) != row - above);
                }
                boards.push((next, [columns.clone(), vec![column]].concat()));
            }
        }
    }

    #[test]
    #[ignore = "measures; run it alone, in release"]
    fn what_a_board_takes() {
        let queens = Queens { n: 14, cutoff: 0 };
        let (mut boards, began) = (0u64, std::time::Instant::now());
        let answer = queens.count(Board::EMPTY, &mut || boards += 1);
        println!("{answer} in {boards} boards, {:.2} ns each", began.elapsed().as_nanos() as f64 / boards as f64);
    }
}
