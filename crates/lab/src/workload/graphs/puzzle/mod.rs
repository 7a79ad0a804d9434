//! The 15-puzzle, solved with the fewest moves: iterative deepening A* (Korf, "Depth-first iterative-deepening: an optimal admissible tree
//! search", Artificial Intelligence 27, 1985) with the Manhattan distance.
//!
//! 1. Each iteration searches depth-first all positions whose moves so far and distance to the goal together stay within a bound.
//! 2. The first bound is the distance of the start; the next is the least that exceeded the one before.
//! 3. The first iteration that meets the goal has the optimum. Others that search meanwhile end their tasks: how many positions are searched
//!    in the last iteration is a matter of the schedule, the optimum is not.
//!
//! Iterations follow each other, so each bound is one task; it spreads as a tree, of which positions `cutoff` moves deep are searched by
//! tasks of their own.
//!
//! The known answer comes from another algorithm with other tables ([`walking`]).

mod walking;

use serde::{Deserialize, Serialize};

use super::{Entry, Facts, Make, Number, Prepared, Workload};
use equipoise::error::Result;
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::{Computation, Roots, Yield};
use equipoise::spec::{InvalidSpec, Options};

pub(super) static ENTRY: Entry = Entry {
    name: "puzzle",
    title: "the 15-puzzle by iterative deepening A*",
    source: "Korf 1985",
    options: "start=0-1-9-7-11-13-5-3-14-12-4-2-8-6-10-15 (tiles by rows, 0 is the blank; the goal is 0-1-2-..-15), \
              cutoff=8 (0 to 40; moves up to which positions are tasks that spawn)",
    examples: &[
        "puzzle:start=0-1-2-3-4-5-6-7-8-9-10-11-12-13-14-15",
        "puzzle:start=4-1-2-3-8-5-6-7-9-0-10-11-12-13-14-15,cutoff=0",
        "puzzle:start=1-2-6-3-4-9-5-7-8-13-10-11-12-14-0-15,cutoff=4",
    ],
    build,
    facts: Facts { answer: "moves", has_own_network: false },
};

const DEFAULT: &str = "0-1-9-7-11-13-5-3-14-12-4-2-8-6-10-15";

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let text = options.value("start")?.unwrap_or(DEFAULT);
    let start = read(text).map_err(|why| options.conflict(format!("start: {why}")))?;
    let cutoff = options.within("cutoff", 0..=40)?.unwrap_or(8);
    let puzzle = Puzzle { start, cutoff };
    Ok(Make::new(options, move |_| Ok(Prepared::new(puzzle))))
}

/// Reads tiles by rows, and checks that they can be brought into order.
fn read(text: &str) -> Result<Tiles, String> {
    let tiles: Vec<u8> =
        text.split('-').map(|tile| tile.trim().parse().ok().filter(|tile| *tile < 16)).collect::<Option<_>>().unwrap_or_default();
    let has_all = (0..16).all(|tile| tiles.contains(&tile));
    let tiles: [u8; 16] =
        tiles.try_into().ok().filter(|_| has_all).ok_or("must be each of the numbers 0 to 15 once, as in 1-2-0-3-..-15")?;
    match is_solvable(&tiles) {
        true => Ok(tiles),
        false => Err("no moves bring these tiles into order: two of them would have to be swapped".into()),
    }
}

/// Each move swaps the blank with a neighbour. So when it is back at home, after its distance in moves or an even number more, the permutation has
/// the parity of that distance.
fn is_solvable(tiles: &[u8; 16]) -> bool {
    let inversions = (0..16).map(|later| tiles[..later].iter().filter(|tile| **tile > tiles[later]).count()).sum::<usize>();
    let blank = tiles.iter().position(|tile| *tile == 0).unwrap_or(0);
    (inversions + blank / 4 + blank % 4) % 2 == 0
}

/// Nanoseconds that a position takes, for the simulator: processor time measured on an Intel Xeon.
const POSITION: Ticks = 15;
/// Positions between two checkpoints: some microseconds.
const BETWEEN_CHECKPOINTS: u64 = 512;

/// Tiles by squares, row by row; 0 is the blank.
pub type Tiles = [u8; 16];

/// The computation: the fewest moves from a start to the goal 0, 1, .., 15.
#[derive(Clone, Copy, Debug)]
pub struct Puzzle {
    pub start: Tiles,
    /// Positions fewer moves deep spawn.
    pub cutoff: u8,
}

/// Minimum number of moves that bring a tile home, by tile and square; 0 for the blank.
const DISTANCES: [[u8; 16]; 16] = {
    let mut distances = [[0; 16]; 16];
    let mut tile = 1;
    while tile < 16 {
        let mut square = 0;
        while square < 16 {
            let (rows, columns) = ((tile / 4_usize).abs_diff(square / 4), (tile % 4_usize).abs_diff(square % 4));
            distances[tile][square] = (rows + columns) as u8;
            square += 1;
        }
        tile += 1;
    }
    distances
};

/// Move of the blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Move {
    Up,
    Left,
    Right,
    Down,
}

const MOVES: [Move; 4] = [Move::Up, Move::Left, Move::Right, Move::Down];

impl Move {
    fn back(self) -> Move {
        match self {
            Move::Up => Move::Down,
            Move::Left => Move::Right,
            Move::Right => Move::Left,
            Move::Down => Move::Up,
        }
    }

    /// The square that the blank moves to.
    fn from(self, blank: u8) -> Option<u8> {
        match self {
            Move::Up => (blank >= 4).then(|| blank - 4),
            Move::Left => (!blank.is_multiple_of(4)).then(|| blank - 1),
            Move::Right => (blank % 4 < 3).then(|| blank + 1),
            Move::Down => (blank < 12).then(|| blank + 4),
        }
    }
}

/// A position of the search.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Position {
    tiles: Tiles,
    blank: u8,
    /// Number of moves from the start.
    moves: u8,
    /// Lower bound on the number of moves to the goal.
    distance: u8,
    last: Option<Move>,
}

impl Position {
    fn start(tiles: Tiles) -> Position {
        let blank = (0..16).find(|square| tiles[usize::from(*square)] == 0).unwrap_or(0);
        let distance = (0..16).map(|square| DISTANCES[usize::from(tiles[square])][square]).sum();
        Position { tiles, blank, moves: 0, distance, last: None }
    }

    /// Moves on the shortest way through this position, at least.
    fn estimate(&self) -> u8 {
        self.moves + self.distance
    }

    /// Positions after one move, except the one before this position.
    fn next(self) -> impl Iterator<Item = Position> {
        let allowed = MOVES.into_iter().filter(move |step| self.last != Some(step.back()));
        allowed.filter_map(move |step| {
            let to = step.from(self.blank)?;
            let (from, to_square) = (usize::from(self.blank), usize::from(to));
            let tile = self.tiles[to_square];
            let distances = &DISTANCES[usize::from(tile)];
            let mut tiles = self.tiles;
            (tiles[from], tiles[to_square]) = (tile, 0);
            let distance = self.distance + distances[from] - distances[to_square];
            Some(Position { tiles, blank: to, moves: self.moves + 1, distance, last: Some(step) })
        })
    }
}

/// A task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Search {
    /// All iterations in sequence.
    All,
    /// One iteration from this position on.
    Within { position: Position, bound: u8 },
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// The goal was found, after this number of moves.
    Goal(u8),
    /// The goal was not found; the least estimate beyond the bound.
    Beyond(u8),
}

/// Result of a search that met nothing, not even the bound.
const NOTHING: Found = Found::Beyond(u8::MAX);

impl Found {
    fn or(self, other: Found) -> Found {
        match (self, other) {
            (Found::Goal(a), Found::Goal(b)) => Found::Goal(a.min(b)),
            (Found::Goal(_), Found::Beyond(_)) => self,
            (Found::Beyond(_), Found::Goal(_)) => other,
            (Found::Beyond(a), Found::Beyond(b)) => Found::Beyond(a.min(b)),
        }
    }
}

/// Task that waits for searches.
#[derive(Clone, Copy, Debug)]
pub enum Waiting {
    /// The start, for an iteration.
    Iteration,
    /// A position, for those one move on; some may have been beyond the bound.
    Position(Found),
}

impl Puzzle {
    /// Searches depth-first until it meets the goal. Every position that it reaches is passed to `visit`.
    fn search(position: Position, bound: u8, visit: &mut impl FnMut()) -> Found {
        if position.distance == 0 {
            return Found::Goal(position.moves);
        }
        let mut found = NOTHING;
        for next in position.next() {
            visit();
            found = found.or(match next.estimate() {
                estimate if estimate > bound => Found::Beyond(estimate),
                _ => Self::search(next, bound, visit),
            });
            if let Found::Goal(_) = found {
                break;
            }
        }
        found
    }

    /// The plain program: all iterations.
    fn solve(&self, visit: &mut impl FnMut()) -> u8 {
        let start = Position::start(self.start);
        let mut bound = start.distance;
        loop {
            match Self::search(start, bound, visit) {
                Found::Goal(moves) => return moves,
                Found::Beyond(next) => bound = next,
            }
        }
    }

    fn iteration(&self, bound: Option<u8>) -> Yield<Puzzle> {
        let position = Position::start(self.start);
        let search = Search::Within { position, bound: bound.unwrap_or(position.distance) };
        Yield::Children { tasks: vec![search], waiting: Waiting::Iteration }
    }
}

impl Computation for Puzzle {
    type Task = Search;
    type Answer = Found;
    type Waiting = Waiting;

    fn execute(&self, search: Search, worker: &mut dyn Worker) -> Yield<Self> {
        let Search::Within { position, bound } = search else { return self.iteration(None) };
        if position.moves < self.cutoff && position.distance > 0 {
            worker.charge(POSITION * 4);
            let (within, beyond): (Vec<Position>, Vec<Position>) = position.next().partition(|next| next.estimate() <= bound);
            let beyond = beyond.iter().map(|next| Found::Beyond(next.estimate())).fold(NOTHING, Found::or);
            let tasks = within.into_iter().map(|position| Search::Within { position, bound }).collect();
            return Yield::Children { tasks, waiting: Waiting::Position(beyond) };
        }
        let mut positions = 1;
        let found = Self::search(position, bound, &mut || {
            positions += 1;
            if positions % BETWEEN_CHECKPOINTS == 0 {
                worker.checkpoint();
            }
        });
        worker.charge(POSITION * positions);
        Yield::Answer(found)
    }

    fn join(&self, waiting: Waiting, answers: Vec<Found>) -> Yield<Self> {
        match (waiting, answers.into_iter().fold(NOTHING, Found::or)) {
            (Waiting::Iteration, Found::Beyond(bound)) => self.iteration(Some(bound)),
            (Waiting::Iteration, goal) => Yield::Answer(goal),
            (Waiting::Position(beyond), found) => Yield::Answer(found.or(beyond)),
        }
    }

    fn combine(&self, into: Found, more: Found) -> Found {
        into.or(more)
    }
}

impl Workload for Puzzle {
    fn roots(&self) -> Roots<Self> {
        Roots::One(Search::All)
    }

    fn number(&self, answer: &Found) -> Number {
        let (Found::Goal(moves) | Found::Beyond(moves)) = answer;
        Number::Whole((*moves).into())
    }

    fn known(&self) -> Option<Number> {
        Some(Number::Whole(walking::fewest_moves(&self.start).into()))
    }

    fn sequential(&self) -> Option<Number> {
        Some(Number::Whole(self.solve(&mut || ()).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::simulate;
    use super::*;

    /// Korf's instances: the optimum, the distance and the start.
    fn instances() -> impl Iterator<Item = (u8, u8, Tiles)> {
        include_str!("../../../../../../tests/data/puzzle15/korf.tsv").lines().skip(1).map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            (fields[1].parse().unwrap(), fields[2].parse().unwrap(), read(&fields[3].replace(' ', "-")).unwrap())
        })
    }

    #[test]
    fn korfs_instances_are_read_with_their_distances() {
        assert!(instances().all(|(_, distance, start)| Position::start(start).distance == distance) && instances().count() == 8);
    }

    #[test]
    fn the_optimum_and_the_positions_searched_are_the_known_ones() {
        let mut positions = 0;
        let puzzle = Puzzle { start: read(DEFAULT).unwrap(), cutoff: 8 };
        assert_eq!(puzzle.solve(&mut || positions += 1), 42);
        // Counted by an independent program, which counts the start, too.
        assert_eq!(positions + 1, 540_860);
        assert_eq!(puzzle.known(), Some(Number::Whole(42)));
    }

    #[test]
    #[ignore = "takes a quarter of a minute (scripts/test --all)"]
    fn korfs_instances_have_their_optima() {
        for (optimum, _, start) in instances() {
            assert_eq!(walking::fewest_moves(&start), optimum, "{start:?}");
            assert_eq!(Puzzle { start, cutoff: 8 }.solve(&mut || ()), optimum, "{start:?}");
        }
    }

    #[test]
    fn every_task_ends_at_the_optimum() {
        let (outcome, _) = simulate("puzzle:cutoff=10", "steal", 8, 1).unwrap();
        assert_eq!(outcome.answer, Some(Number::Whole(42)));
    }

    #[test]
    fn half_of_all_starts_have_no_solution() {
        let mut tiles: Tiles = std::array::from_fn(|tile| tile as u8);
        assert!(is_solvable(&tiles));
        tiles.swap(14, 15);
        assert!(!is_solvable(&tiles));
        // Moves never change that.
        let mut position = Position::start(tiles);
        for step in 0..100 {
            let next: Vec<Position> = position.next().collect();
            position = next[step % next.len()];
            assert!(!is_solvable(&position.tiles));
            assert_eq!(position.distance, Position::start(position.tiles).distance);
        }
        for wrong in ["", "1-2", "0-0-2-3-4-5-6-7-8-9-10-11-12-13-14-15", "0-1-2-3-4-5-6-7-8-9-10-11-12-13-14-16", "a-b"] {
            assert!(read(wrong).is_err_and(|why| why.starts_with("must be each")), "{wrong}");
        }
    }
}
