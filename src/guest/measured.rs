//! Times of plans, moves and steps so far, by which a move is foreseen.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::decide::Busiest;

/// Seconds that a move takes, however little moves.
const START: f64 = 50e-6;

/// Seconds that moving a byte takes, before any move was measured.
const GUESS: f64 = 1e-9;

/// Moves of one rank since the last plan. Items that stay count for nothing: no message has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Moves {
    number: u64,
    /// Items that left and that arrived, and their bytes.
    items: u64,
    bytes: u64,
    seconds: f64,
}

impl Moves {
    /// Notes a move.
    pub fn add(&mut self, items: usize, bytes: usize, took: Duration) {
        if bytes > 0 {
            self.number += 1;
            self.items += items as u64;
            self.bytes += bytes as u64;
            self.seconds += took.as_secs_f64();
        }
    }
}

/// Times so far.
#[derive(Default)]
pub(super) struct Measured {
    /// Seconds that balancing took since the last report, and before.
    pub spent: f64,
    pub cost: f64,
    /// Seconds of the last step, of all ranks together.
    pub step_seconds: Option<f64>,
    /// Moves that rank 0 has not heard of.
    pub moves: Moves,
    /// Rank 0's: seconds that moving a byte took, and bytes of an item.
    per_byte: Option<f64>,
    item_bytes: Option<f64>,
}

impl Measured {
    /// Takes in what each rank has moved since the last plan. The busiest one counts: the move is over when it is done.
    pub fn learn(&mut self, moves: impl Iterator<Item = Moves>) {
        let Some(busiest) = moves.max_by_key(|moves| moves.bytes).filter(|moves| moves.bytes > 0) else { return };
        let moving = (busiest.seconds - busiest.number as f64 * START).max(0.0);
        let per_byte = moving / busiest.bytes as f64;
        self.per_byte = Some(self.per_byte.map_or(per_byte, |before| f64::midpoint(before, per_byte)));
        self.item_bytes = Some(busiest.bytes as f64 / busiest.items as f64);
    }

    /// Seconds that a move is expected to take in which the busiest rank has so much to send and to receive.
    pub fn foreseen(&self, busiest: Busiest) -> f64 {
        let bytes = match busiest.bytes {
            0 => busiest.items as f64 * self.item_bytes.unwrap_or(8.0),
            bytes => bytes as f64,
        };
        START + bytes * self.per_byte.unwrap_or(GUESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(items: usize, bytes: usize, microseconds: u64) -> Moves {
        let mut moves = Moves::default();
        moves.add(items, bytes, Duration::from_micros(microseconds));
        moves
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_move_like_the_last_one_takes_as_long_as_it_did_on_the_busiest_rank() {
        let mut measured = Measured::default();
        let again = Busiest { items: 20, bytes: 1_000_000 };
        assert!(is_near(measured.foreseen(again), 50e-6 + 1e-3));
        // Rank 0 has little to do with it, and sees the others' time.
        measured.learn([moved(1, 50_000, 150), moved(20, 1_000_000, 10_050), Moves::default()].into_iter());
        assert!(is_near(measured.foreseen(again), 10_050e-6));
        assert!(is_near(measured.foreseen(Busiest { items: 20, bytes: 0 }), 10_050e-6));
        assert!(is_near(measured.foreseen(Busiest { items: 2, bytes: 0 }), 1_050e-6));
        measured.learn([moved(40, 1_000_000, 20_050)].into_iter());
        assert!(is_near(measured.foreseen(again), 15_050e-6));
    }

    #[test]
    fn what_moves_nothing_teaches_nothing_and_a_start_is_not_the_bytes() {
        let mut measured = Measured::default();
        let again = Busiest { items: 20, bytes: 1_000_000 };
        measured.learn([moved(0, 0, 90_000), moved(3, 0, 90_000)].into_iter());
        assert!(is_near(measured.foreseen(again), 50e-6 + 1e-3));
        measured.learn([moved(1, 8, 40)].into_iter());
        assert!(is_near(measured.foreseen(again), 50e-6));
    }
}
