//! Bytes that ranks have room for.

use super::status::{Failure, Result};
use super::verdict::Judged;

/// Items with their bytes, and the rooms of the ranks.
#[derive(Clone, Copy)]
pub struct Rooms<'a> {
    pub judged: Judged<'a>,
    pub bytes: &'a [u64],
    /// Items that may change their rank.
    pub movable: &'a [usize],
    pub capacity: &'a [u64],
}

/// Steps that improve a packed assignment, at most.
const STEPS: usize = 2000;

/// Whether an assignment is within the capacities.
pub fn are_kept(assignment: &[u32], bytes: &[u64], capacity: &[u64]) -> bool {
    first_over(&used(assignment, bytes, capacity.len()), capacity).is_none()
}

/// The same as an error that names the first rank that is beyond its own.
///
/// # Errors
/// Wrong usage.
#[cfg(any(feature = "_ranks", test))]
pub fn check(assignment: &[u32], bytes: &[u64], capacity: &[u64]) -> Result<()> {
    let used = used(assignment, bytes, capacity.len());
    match first_over(&used, capacity) {
        None => Ok(()),
        Some(rank) => Err(Failure::usage(format!(
            "option capacity: rank {rank} has room for {} bytes, and its items would have {}",
            capacity[rank], used[rank]
        ))),
    }
}

fn used(assignment: &[u32], bytes: &[u64], ranks: usize) -> Vec<u128> {
    let mut used = vec![0u128; ranks];
    for (rank, bytes) in assignment.iter().zip(bytes) {
        used[*rank as usize] += u128::from(*bytes);
    }
    used
}

fn first_over(used: &[u128], capacity: &[u64]) -> Option<usize> {
    used.iter().zip(capacity).position(|(used, room)| *used > u128::from(*room))
}

/// An assignment near the wanted one that keeps the capacities.
///
/// Packing is NP-hard: three heuristics are tried, first the wanted assignment with the least repair.
///
/// # Errors
/// Wrong usage, with the rank that has no room, if none of them finds one.
pub fn keep(rooms: &Rooms<'_>, wanted: &[u32]) -> Result<Vec<u32>> {
    let repaired = Packing::new(rooms, wanted).repaired();
    let packed = || [true, false].into_iter().find_map(|homely| Packing::emptied(rooms).packed(homely));
    match repaired.or_else(packed) {
        Some(mut packing) => {
            packing.improve();
            Ok(packing.assignment)
        }
        None => Err(refusal(rooms, wanted)),
    }
}

fn refusal(rooms: &Rooms<'_>, wanted: &[u32]) -> Failure {
    let fixed = Packing::emptied(rooms).used;
    if let Some(rank) = first_over(&fixed, rooms.capacity) {
        let room = rooms.capacity[rank];
        return Failure::usage(format!(
            "option capacity: rank {rank} has room for {room} bytes, and its pinned items have {}",
            fixed[rank]
        ));
    }
    let needed: u128 = rooms.bytes.iter().map(|bytes| u128::from(*bytes)).sum();
    let room: u128 = rooms.capacity.iter().map(|room| u128::from(*room)).sum();
    let used = used(wanted, rooms.bytes, rooms.capacity.len());
    let rank = first_over(&used, rooms.capacity).unwrap_or(0);
    Failure::usage(format!(
        "option capacity: the items do not fit: they have {needed} bytes and all ranks room for {room}; rank {rank} has room for {} and would get {}",
        rooms.capacity[rank], used[rank]
    ))
}

struct Packing<'a> {
    rooms: &'a Rooms<'a>,
    assignment: Vec<u32>,
    used: Vec<u128>,
    loads: Vec<f64>,
}

impl<'a> Packing<'a> {
    fn new(rooms: &'a Rooms<'a>, assignment: &[u32]) -> Packing<'a> {
        let mut loads = vec![0.0; rooms.capacity.len()];
        for (rank, weight) in assignment.iter().zip(rooms.judged.weights) {
            loads[*rank as usize] += weight;
        }
        Packing { rooms, assignment: assignment.to_vec(), used: used(assignment, rooms.bytes, rooms.capacity.len()), loads }
    }

    /// Only with what may not move.
    fn emptied(rooms: &'a Rooms<'a>) -> Packing<'a> {
        let mut packing = Packing::new(rooms, rooms.judged.owners);
        for item in rooms.movable {
            let rank = packing.assignment[*item] as usize;
            packing.used[rank] -= u128::from(rooms.bytes[*item]);
            packing.loads[rank] -= rooms.judged.weights[*item];
        }
        packing
    }

    fn time(&self, rank: usize, more: f64) -> f64 {
        let work = self.loads[rank] + more;
        if work <= 0.0 { 0.0 } else { work / self.rooms.judged.powers[rank] }
    }

    fn has_room(&self, rank: usize, item: usize) -> bool {
        self.used[rank] + u128::from(self.rooms.bytes[item]) <= u128::from(self.rooms.capacity[rank])
    }

    /// The rank with room that is done first with an item.
    fn best(&self, item: usize) -> Option<usize> {
        let weight = self.rooms.judged.weights[item];
        let ranks = (0..self.loads.len()).filter(|rank| self.has_room(*rank, item));
        ranks.min_by(|a, b| self.time(*a, weight).total_cmp(&self.time(*b, weight)))
    }

    fn put(&mut self, item: usize, to: usize) {
        self.used[to] += u128::from(self.rooms.bytes[item]);
        self.loads[to] += self.rooms.judged.weights[item];
        self.assignment[item] = to as u32;
    }

    fn carry(&mut self, item: usize, to: usize) {
        let from = self.assignment[item] as usize;
        self.used[from] -= u128::from(self.rooms.bytes[item]);
        self.loads[from] -= self.rooms.judged.weights[item];
        self.put(item, to);
    }

    /// Items leave ranks without room, the largest first.
    fn repaired(mut self) -> Option<Packing<'a>> {
        let mut order = self.rooms.movable.to_vec();
        order.sort_by_key(|item| std::cmp::Reverse(self.rooms.bytes[*item]));
        for item in order {
            let from = self.assignment[item] as usize;
            if self.used[from] > u128::from(self.rooms.capacity[from])
                && self.rooms.bytes[item] > 0
                && let Some(to) = self.best(item)
            {
                self.carry(item, to);
            }
        }
        first_over(&self.used, self.rooms.capacity).is_none().then_some(self)
    }

    /// First fit, the largest first: where it is if there is room, or else where it is done first; or, not `homely`, where least room is left.
    fn packed(mut self, homely: bool) -> Option<Packing<'a>> {
        let mut order = self.rooms.movable.to_vec();
        order.sort_by_key(|item| std::cmp::Reverse(self.rooms.bytes[*item]));
        for item in order {
            let owner = self.rooms.judged.owners[item] as usize;
            let left = |rank: &usize| u128::from(self.rooms.capacity[*rank]) - self.used[*rank];
            let to = match homely {
                true if self.has_room(owner, item) => owner,
                true => self.best(item)?,
                false => (0..self.loads.len()).filter(|rank| self.has_room(*rank, item)).min_by_key(left)?,
            };
            self.put(item, to);
        }
        first_over(&self.used, self.rooms.capacity).is_none().then_some(self)
    }

    /// Takes single items off the slowest rank where others have room and time.
    fn improve(&mut self) {
        for _ in 0..STEPS {
            let times = (0..self.loads.len()).map(|rank| (self.time(rank, 0.0), rank));
            let Some((slowest, from)) = times.max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
            let weights = self.rooms.judged.weights;
            let leaving = self.rooms.movable.iter().copied().filter(|item| self.assignment[*item] as usize == from && weights[*item] > 0.0);
            let steps = leaving.filter_map(|item| {
                let to = self.best(item).filter(|to| *to != from)?;
                let time = self.time(to, weights[item]).max(self.time(from, -weights[item]));
                (time < slowest).then_some((time, item, to))
            });
            let Some((_, item, to)) = steps.min_by(|a, b| a.0.total_cmp(&b.0)) else { return };
            self.carry(item, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_finds_what_repair_does_not() {
        let (bytes, weights) = ([6u64, 5, 5, 4], [1.0; 4]);
        let judged = Judged { weights: &weights, owners: &[0, 0, 0, 0], pinned: &[false; 4], powers: &[1.0, 1.0] };
        let rooms = Rooms { judged, bytes: &bytes, movable: &[0, 1, 2, 3], capacity: &[10, 10] };
        let found = keep(&rooms, &[0, 0, 0, 0]).unwrap();
        assert!(are_kept(&found, &bytes, &[10, 10]), "{found:?}");
        let narrow = Rooms { capacity: &[10, 9], ..rooms };
        assert!(keep(&narrow, &[0, 0, 0, 0]).unwrap_err().text.contains("do not fit"));
    }

    #[test]
    fn what_is_pinned_is_named() {
        let judged = Judged { weights: &[1.0], owners: &[1], pinned: &[true], powers: &[1.0, 1.0] };
        let rooms = Rooms { judged, bytes: &[8], movable: &[], capacity: &[99, 7] };
        assert!(keep(&rooms, &[1]).unwrap_err().text.contains("rank 1"));
    }
}
