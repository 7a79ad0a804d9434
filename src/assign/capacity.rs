//! Bytes that ranks have room for: an assignment near a wanted one that keeps the capacities, and the rounds in which it can be carried out.
//!
//! Packing is NP-hard, so that both are heuristics: where they find nothing, a sentence names the rank.

use super::Assignment;

/// Tasks with their bytes, and the rooms of the ranks.
#[derive(Clone, Copy, Debug)]
pub struct Rooms<'a> {
    /// Weight of each task.
    pub weights: &'a [f64],
    /// The rank that holds it now, by task.
    pub owners: &'a [u32],
    /// Bytes of each task.
    pub bytes: &'a [u64],
    /// Tasks that may change their rank.
    pub movable: &'a [usize],
    /// Power of each rank.
    pub powers: &'a [f64],
    /// Bytes by rank.
    pub capacity: &'a [u64],
}

/// Why capacities cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the sentences say what the fields are")]
pub enum NoRoom {
    /// An assignment is beyond a capacity.
    #[error("rank {rank} has room for {room} bytes, and would have {needed}")]
    Beyond { rank: usize, room: u64, needed: u128 },
    /// The tasks that may not move exceed the capacity.
    #[error("rank {rank} has room for {room} bytes, and what is pinned there has {needed}")]
    Pinned { rank: usize, room: u64, needed: u128 },
    /// No assignment that keeps all capacities was found.
    #[error(
        "it does not fit: {all} bytes in all, and all ranks have room for {rooms}; rank {rank} has room for {room} and would get {needed}"
    )]
    DoesNotFit { all: u128, rooms: u128, rank: usize, room: u64, needed: u128 },
    /// The final assignment fits, but no order of moves keeps all capacities on the way.
    #[error(
        "it fits afterwards, not on the way: rank {rank} has room for {room} bytes, holds {held}, and gives none away before it gets {item} more"
    )]
    OnTheWay { rank: usize, room: u64, held: u128, item: u64 },
}

/// Steps that improve a packed assignment, at most.
const STEPS: usize = 2000;

/// Pairs of items that are looked at for exchanges, at most.
const LOOKS: usize = 1 << 24;

/// Returns true if an assignment is within the capacities.
pub fn are_kept(assignment: &[u32], bytes: &[u64], capacity: &[u64]) -> bool {
    first_over(&used(assignment, bytes, capacity.len()), capacity).is_none()
}

/// The same as an error that names the first rank that is beyond its own.
///
/// # Errors
/// [`NoRoom::Beyond`].
pub fn check(assignment: &[u32], bytes: &[u64], capacity: &[u64]) -> Result<(), NoRoom> {
    let used = used(assignment, bytes, capacity.len());
    match first_over(&used, capacity) {
        None => Ok(()),
        Some(rank) => Err(NoRoom::Beyond { rank, room: capacity[rank], needed: used[rank] }),
    }
}

/// Round in which each task moves; 0 for tasks that stay.
///
/// In a round a rank receives tasks up to its capacity, counting all that it holds, including tasks that it gives away in the same round.
/// Tasks of ranks that need room themselves come first. A rank that begins above its capacity may stay above it until it has given enough
/// away, and receives nothing before.
///
/// # Errors
/// [`NoRoom::OnTheWay`] if some tasks wait for each other's room.
pub fn rounds(owners: &[u32], destinations: &[u32], bytes: &[u64], capacity: &[u64]) -> Result<Vec<u32>, NoRoom> {
    let mut rounds = vec![0; owners.len()];
    let mut held = used(owners, bytes, capacity.len());
    let mut waiting: Vec<usize> = (0..owners.len()).filter(|task| owners[*task] != destinations[*task]).collect();
    let mut round = 0;
    while !waiting.is_empty() {
        round += 1;
        let mut expected = vec![0u128; capacity.len()];
        waiting.iter().for_each(|task| expected[destinations[*task] as usize] += u128::from(bytes[*task]));
        let lacks = |rank: usize| held[rank] + expected[rank] > u128::from(capacity[rank]);
        waiting.sort_by_key(|task| (!lacks(owners[*task] as usize), std::cmp::Reverse(bytes[*task]), *task));
        let mut filled = held.clone();
        let (going, left): (Vec<usize>, Vec<usize>) = waiting.iter().partition(|task| {
            let (rank, bytes) = (destinations[**task] as usize, u128::from(bytes[**task]));
            let has_room = bytes == 0 || filled[rank] + bytes <= u128::from(capacity[rank]);
            filled[rank] += if has_room { bytes } else { 0 };
            has_room
        });
        if let (true, Some(task)) = (going.is_empty(), left.first()) {
            let rank = destinations[*task] as usize;
            return Err(NoRoom::OnTheWay { rank, room: capacity[rank], held: held[rank], item: bytes[*task] });
        }
        held = filled;
        for task in going {
            rounds[task] = round;
            held[owners[task] as usize] -= u128::from(bytes[task]);
        }
        waiting = left;
    }
    Ok(rounds)
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
/// [`NoRoom::Pinned`] or [`NoRoom::DoesNotFit`], if none of them finds one.
pub fn keep(rooms: &Rooms<'_>, wanted: &[u32]) -> Result<Assignment, NoRoom> {
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

fn refusal(rooms: &Rooms<'_>, wanted: &[u32]) -> NoRoom {
    let fixed = Packing::emptied(rooms).used;
    if let Some(rank) = first_over(&fixed, rooms.capacity) {
        return NoRoom::Pinned { rank, room: rooms.capacity[rank], needed: fixed[rank] };
    }
    let all = rooms.bytes.iter().map(|bytes| u128::from(*bytes)).sum();
    let of_all = rooms.capacity.iter().map(|room| u128::from(*room)).sum();
    let used = used(wanted, rooms.bytes, rooms.capacity.len());
    let rank = first_over(&used, rooms.capacity).unwrap_or(0);
    NoRoom::DoesNotFit { all, rooms: of_all, rank, room: rooms.capacity[rank], needed: used[rank] }
}

struct Packing<'a> {
    rooms: &'a Rooms<'a>,
    assignment: Assignment,
    used: Vec<u128>,
    loads: Vec<f64>,
}

impl<'a> Packing<'a> {
    fn new(rooms: &'a Rooms<'a>, assignment: &[u32]) -> Packing<'a> {
        let mut loads = vec![0.0; rooms.capacity.len()];
        for (rank, weight) in assignment.iter().zip(rooms.weights) {
            loads[*rank as usize] += weight;
        }
        Packing { rooms, assignment: assignment.to_vec(), used: used(assignment, rooms.bytes, rooms.capacity.len()), loads }
    }

    /// Only with what may not move.
    fn emptied(rooms: &'a Rooms<'a>) -> Packing<'a> {
        let mut packing = Packing::new(rooms, rooms.owners);
        for item in rooms.movable {
            let rank = packing.assignment[*item] as usize;
            packing.used[rank] -= u128::from(rooms.bytes[*item]);
            packing.loads[rank] -= rooms.weights[*item];
        }
        packing
    }

    fn time(&self, rank: usize, more: f64) -> f64 {
        let work = self.loads[rank] + more;
        if work <= 0.0 { 0.0 } else { work / self.rooms.powers[rank] }
    }

    fn has_room(&self, rank: usize, item: usize) -> bool {
        self.used[rank] + u128::from(self.rooms.bytes[item]) <= u128::from(self.rooms.capacity[rank])
    }

    /// The rank with room that is done first with an item.
    fn best(&self, item: usize) -> Option<usize> {
        let weight = self.rooms.weights[item];
        let ranks = (0..self.loads.len()).filter(|rank| self.has_room(*rank, item));
        ranks.min_by(|a, b| self.time(*a, weight).total_cmp(&self.time(*b, weight)))
    }

    fn put(&mut self, item: usize, to: usize) {
        self.used[to] += u128::from(self.rooms.bytes[item]);
        self.loads[to] += self.rooms.weights[item];
        self.assignment[item] = to as u32;
    }

    fn carry(&mut self, item: usize, to: usize) {
        let from = self.assignment[item] as usize;
        self.used[from] -= u128::from(self.rooms.bytes[item]);
        self.loads[from] -= self.rooms.weights[item];
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
            let owner = self.rooms.owners[item] as usize;
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

    /// Takes single items off the slowest rank where others have room and time, or else exchanges one for a lighter one.
    fn improve(&mut self) {
        let mut looks = LOOKS;
        for _ in 0..STEPS {
            let times = (0..self.loads.len()).map(|rank| (self.time(rank, 0.0), rank));
            let Some((slowest, from)) = times.max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
            let weights = self.rooms.weights;
            let movable = self.rooms.movable.iter().copied();
            let leaving: Vec<usize> = movable.filter(|item| self.assignment[*item] as usize == from && weights[*item] > 0.0).collect();
            let steps = leaving.iter().filter_map(|item| {
                let to = self.best(*item).filter(|to| *to != from)?;
                let time = self.time(to, weights[*item]).max(self.time(from, -weights[*item]));
                (time < slowest).then_some((time, *item, to))
            });
            if let Some((_, item, to)) = steps.min_by(|a, b| a.0.total_cmp(&b.0)) {
                self.carry(item, to);
                continue;
            }
            looks = looks.saturating_sub(leaving.len() * self.rooms.movable.len());
            let exchange = if looks > 0 { self.exchange(from, slowest, &leaving) } else { None };
            let Some((item, other)) = exchange else { return };
            let to = self.assignment[other] as usize;
            self.carry(item, to);
            self.carry(other, from);
        }
    }

    /// The item of the slowest rank and the lighter one of another rank whose exchange helps most.
    fn exchange(&self, from: usize, slowest: f64, leaving: &[usize]) -> Option<(usize, usize)> {
        let Rooms { weights, bytes, movable, capacity, .. } = *self.rooms;
        let fits = |rank: usize, comes: usize, goes: usize| {
            let used = self.used[rank] - u128::from(bytes[goes]) + u128::from(bytes[comes]);
            used <= u128::from(capacity[rank]) || used <= self.used[rank]
        };
        let pairs = leaving.iter().flat_map(|item| movable.iter().map(move |other| (*item, *other)));
        let steps = pairs.filter_map(|(item, other)| {
            let (to, passes) = (self.assignment[other] as usize, weights[item] - weights[other]);
            if to == from || passes <= 0.0 {
                return None;
            }
            let time = self.time(to, passes).max(self.time(from, -passes));
            (time < slowest && fits(to, item, other) && fits(from, other, item)).then_some((time, item, other))
        });
        steps.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, item, other)| (item, other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packing_finds_what_repair_does_not() {
        let (bytes, weights) = ([6u64, 5, 5, 4], [1.0; 4]);
        let (owners, powers) = ([0; 4], [1.0; 2]);
        let rooms =
            Rooms { weights: &weights, owners: &owners, bytes: &bytes, movable: &[0, 1, 2, 3], powers: &powers, capacity: &[10, 10] };
        let found = keep(&rooms, &[0, 0, 0, 0]).unwrap();
        assert!(are_kept(&found, &bytes, &[10, 10]), "{found:?}");
        let narrow = Rooms { capacity: &[10, 9], ..rooms };
        assert!(keep(&narrow, &[0, 0, 0, 0]).unwrap_err().to_string().contains("does not fit"));
    }

    #[test]
    fn what_is_pinned_is_named() {
        let rooms = Rooms { weights: &[1.0], owners: &[1], bytes: &[8], movable: &[], powers: &[1.0, 1.0], capacity: &[99, 7] };
        assert_eq!(keep(&rooms, &[1]), Err(NoRoom::Pinned { rank: 1, room: 7, needed: 8 }));
        assert_eq!(check(&[1], &[8], &[99, 7]), Err(NoRoom::Beyond { rank: 1, room: 7, needed: 8 }));
    }

    #[test]
    fn room_is_made_first() {
        // Rank 1 is full: it gives 6 to rank 2 before it gets 5.
        assert_eq!(rounds(&[0, 1, 1], &[1, 2, 1], &[5, 6, 4], &[10, 10, 10]), Ok(vec![2, 1, 0]));
        // A circle with a gap of one task turns; without a gap it does not.
        assert_eq!(rounds(&[0, 1, 2], &[1, 2, 0], &[4, 4, 4], &[8, 4, 4]), Ok(vec![3, 2, 1]));
        let stuck = rounds(&[0, 1], &[1, 0], &[4, 4], &[7, 4]).unwrap_err();
        assert_eq!(stuck, NoRoom::OnTheWay { rank: 1, room: 4, held: 4, item: 4 });
        assert!(stuck.to_string().contains("fits afterwards, not on the way: rank 1 "), "{stuck}");
        // A task without bytes never waits.
        assert_eq!(rounds(&[0, 1], &[1, 0], &[0, 0], &[0, 0]), Ok(vec![1, 1]));
    }

    proptest! {
        #[test]
        fn nobody_is_beyond_its_capacity_in_any_round(
            tasks in prop::collection::vec((0u64..20, 0u32..4, 0u32..4), 0..20),
            spare in prop::collection::vec(0u64..20, 4),
        ) {
            let bytes: Vec<u64> = tasks.iter().map(|task| task.0).collect();
            let (owners, destinations): (Vec<u32>, Vec<u32>) = tasks.iter().map(|task| (task.1, task.2)).unzip();
            let most = |rank: usize| used(&owners, &bytes, 4)[rank].max(used(&destinations, &bytes, 4)[rank]) as u64;
            let capacity: Vec<u64> = (0..4).map(|rank| most(rank) + spare[rank]).collect();
            let Ok(rounds) = rounds(&owners, &destinations, &bytes, &capacity) else { return Ok(()) };
            for round in 1..=rounds.iter().copied().max().unwrap_or(0) {
                // At worst everything of a round arrives before anything leaves.
                let mut held = used(&owners, &bytes, 4);
                for task in 0..tasks.len() {
                    if rounds[task] > 0 && rounds[task] <= round {
                        held[destinations[task] as usize] += u128::from(bytes[task]);
                    }
                    if rounds[task] > 0 && rounds[task] < round {
                        held[owners[task] as usize] -= u128::from(bytes[task]);
                    }
                }
                prop_assert_eq!(first_over(&held, &capacity), None);
            }
            let moved = |task: usize| owners[task] != destinations[task];
            prop_assert!((0..tasks.len()).all(|task| (rounds[task] > 0) == moved(task)));
        }
    }
}
