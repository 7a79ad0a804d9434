//! The fewest moves by another algorithm, to judge by: iterative deepening with the walking distance (Takahashi, 1998) in place of the sum of
//! the tiles' distances, and with tables of its own.
//!
//! Look at rows only: how many tiles that belong to row j stand in row i. A vertical move takes one tile of a neighbouring row into the row of the
//! blank. How many such moves bring all tiles into their rows is found for all 24,964 such tables by breadth-first search from the goal; the same
//! for columns. Every move is either vertical or horizontal, so the sum of both is never more than the moves that are needed.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Tiles;

/// Rows and columns, and tiles of a row.
const SIDE: usize = 4;

/// Number of tiles of each goal row in each row; the row of the blank has one less.
type Rows = [[u8; SIDE]; SIDE];

/// All tables that moves can make.
struct Walk {
    number: HashMap<Rows, u16>,
    /// Number of vertical moves that each table is away from the goal.
    distance: Vec<u8>,
    /// Next table, by table, by whether the blank goes up or down, and by the goal row of the tile that comes.
    next: Vec<[[u16; SIDE]; 2]>,
}

static WALK: LazyLock<Walk> = LazyLock::new(Walk::new);

impl Walk {
    fn new() -> Walk {
        let mut goal = [[0; SIDE]; SIDE];
        (0..SIDE).for_each(|row| goal[row][row] = SIDE as u8 - u8::from(row == 0));
        let mut walk = Walk { number: HashMap::from([(goal, 0)]), distance: vec![0], next: Vec::new() };
        let mut tables = vec![goal];
        while let Some(&rows) = tables.get(walk.next.len()) {
            let blank = (0..SIDE).find(|row| rows[*row].iter().sum::<u8>() < SIDE as u8).unwrap_or(0);
            let away = walk.distance[walk.next.len()] + 1;
            let mut next = [[u16::MAX; SIDE]; 2];
            for (direction, from) in [(0, blank.checked_sub(1)), (1, Some(blank + 1).filter(|row| *row < SIDE))] {
                let Some(from) = from else { continue };
                for belongs in (0..SIDE).filter(|belongs| rows[from][*belongs] > 0) {
                    let mut moved = rows;
                    moved[from][belongs] -= 1;
                    moved[blank][belongs] += 1;
                    next[direction][belongs] = *walk.number.entry(moved).or_insert_with(|| {
                        tables.push(moved);
                        walk.distance.push(away);
                        tables.len() as u16 - 1
                    });
                }
            }
            walk.next.push(next);
        }
        walk
    }

    /// The number of the table in which `place` says in which row, or column, a square or a tile's home is.
    fn of(&self, tiles: &Tiles, place: fn(usize) -> usize) -> u16 {
        let mut rows = [[0; SIDE]; SIDE];
        for (square, &tile) in tiles.iter().enumerate().filter(|(_, tile)| **tile > 0) {
            rows[place(square)][place(tile.into())] += 1;
        }
        self.number.get(&rows).copied().unwrap_or(0)
    }
}

fn row(square: usize) -> usize {
    square / SIDE
}

fn column(square: usize) -> usize {
    square % SIDE
}

struct Search {
    walk: &'static Walk,
    tiles: Tiles,
}

impl Search {
    /// Returns true if the goal can be reached in `left` moves; `by_row` and `by_column` are the tables' numbers, `before` is where the blank was.
    fn within(&mut self, left: u8, blank: usize, before: usize, by_row: u16, by_column: u16) -> bool {
        let away = self.walk.distance[usize::from(by_row)] + self.walk.distance[usize::from(by_column)];
        if away > left {
            return false;
        }
        if away == 0 {
            // All tiles in their rows and in their columns.
            return true;
        }
        let steps = [
            (row(blank) > 0).then(|| (blank - SIDE, true, 0)),
            (row(blank) + 1 < SIDE).then(|| (blank + SIDE, true, 1)),
            (column(blank) > 0).then(|| (blank - 1, false, 0)),
            (column(blank) + 1 < SIDE).then(|| (blank + 1, false, 1)),
        ];
        for (to, is_vertical, direction) in steps.into_iter().flatten().filter(|(to, ..)| *to != before) {
            let tile = usize::from(self.tiles[to]);
            let next = |table: u16, belongs: usize| self.walk.next[usize::from(table)][direction][belongs];
            let (by_row, by_column) =
                if is_vertical { (next(by_row, row(tile)), by_column) } else { (by_row, next(by_column, column(tile))) };
            self.tiles.swap(blank, to);
            let found = self.within(left - 1, to, blank, by_row, by_column);
            self.tiles.swap(blank, to);
            if found {
                return true;
            }
        }
        false
    }
}

/// The fewest moves from these tiles, which can be brought into order.
pub fn fewest_moves(tiles: &Tiles) -> u8 {
    let walk = &*WALK;
    let (by_row, by_column) = (walk.of(tiles, row), walk.of(tiles, column));
    let blank = tiles.iter().position(|tile| *tile == 0).unwrap_or(0);
    let first = walk.distance[usize::from(by_row)] + walk.distance[usize::from(by_column)];
    let mut search = Search { walk, tiles: *tiles };
    // Two moves more each time: an odd number more never ends with the blank at home.
    (first..).step_by(2).find(|moves| search.within(*moves, blank, usize::MAX, by_row, by_column)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_tables_as_are_published() {
        assert_eq!((WALK.distance.len(), WALK.next.len()), (24_964, 24_964));
        // The farthest are 35 moves away.
        assert_eq!(WALK.distance.iter().max(), Some(&35));
    }

    #[test]
    fn short_ways_are_those_of_breadth_first_search() {
        let goal: Tiles = std::array::from_fn(|tile| tile as u8);
        let mut depths = HashMap::from([(goal, 0u8)]);
        let mut level = vec![goal];
        for depth in 1..=10 {
            let mut next = Vec::new();
            for tiles in level {
                let blank = tiles.iter().position(|tile| *tile == 0).unwrap();
                for to in (0..16).filter(|to| row(*to).abs_diff(row(blank)) + column(*to).abs_diff(column(blank)) == 1) {
                    let mut moved = tiles;
                    moved.swap(blank, to);
                    if depths.insert(moved, depth).is_none_or(|before| depths.insert(moved, before).is_none()) {
                        next.push(moved);
                    }
                }
            }
            level = next;
        }
        assert!(depths.len() > 3000);
        for (tiles, depth) in depths {
            assert_eq!(fewest_moves(&tiles), depth, "{tiles:?}");
        }
    }
}
