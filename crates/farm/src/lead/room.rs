//! Free resources of a rank, which decide whether a further task can begin there.

use crate::limits::{Capacity, Demand};
use crate::task::Needs;

/// Tasks that a rank holds, and what it has for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    pub capacity: Capacity,
    /// Tasks that run at a time, at most.
    pub workers: u32,
    /// Number of tasks that were dealt to it and have not ended.
    pub held: u64,
    /// Resources that these take together.
    taken: Demand,
}

impl Room {
    /// An empty rank where no more than `workers` tasks run at a time.
    pub fn new(workers: u32, capacity: Capacity) -> Room {
        Room { capacity, workers: capacity.most_at_a_time().map_or(workers, |most| most.min(workers)), ..Room::default() }
    }

    /// Returns true if a task with these needs can begin at once.
    pub fn begins(&self, needs: Needs) -> bool {
        self.held < u64::from(self.workers) && self.capacity.has_room(self.taken, needs)
    }

    /// A task is dealt to the rank.
    pub fn add(&mut self, needs: Needs) {
        self.held += 1;
        self.taken = self.taken.plus(Demand::of(needs));
    }

    /// Some tasks have ended, which took this together.
    pub fn free(&mut self, tasks: u64, demand: Demand) {
        self.held = self.held.saturating_sub(tasks);
        self.taken = self.taken.minus(demand);
    }

    /// The rank is lost, with all that it held.
    pub fn clear(&mut self) {
        (self.held, self.taken) = (0, Demand::default());
    }

    /// Number of tasks of this kind that run at a time on the empty rank: of `tasks` tasks that take this together.
    pub fn at_a_time(&self, tasks: u64, demand: Demand) -> u64 {
        let part = self.capacity.part(demand) / tasks.max(1) as f64;
        // A sum of equal parts may miss the whole by its rounding.
        let fit = if part > 0.0 { (1.0 / part + 1e-9) as u64 } else { u64::MAX };
        fit.min(self.workers.into()).max(1)
    }

    /// Number of tasks like those that it holds which run at a time.
    pub fn parallel(&self) -> u64 {
        self.at_a_time(self.held, self.taken)
    }

    /// Number of tasks that it runs now; the others that it holds wait there.
    pub fn running(&self) -> u64 {
        self.held.min(self.parallel())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SlotsGiven;

    fn needs(cpus: u32, gpus: u32) -> Needs {
        Needs { cpus, gpus, mem: 0 }
    }

    #[test]
    fn tasks_begin_where_there_is_room_for_them() {
        let mut room = Room::new(16, SlotsGiven::parse("cpus=8,gpus=1").unwrap().capacity(0, 1));
        assert_eq!(room.workers, 8, "each task takes a processor");
        room.add(needs(3, 0));
        assert!(room.begins(needs(5, 1)) && !room.begins(needs(6, 0)) && !room.begins(needs(1, 2)));
        assert_eq!((room.parallel(), room.running()), (2, 1));
        room.add(needs(5, 1));
        assert!(!room.begins(needs(0, 0)));
        // Two that wait.
        [3, 5].into_iter().for_each(|cpus| room.add(needs(cpus, 0)));
        assert_eq!((room.held, room.parallel(), room.running()), (4, 2, 2));
        room.free(2, Demand::of(needs(3, 0)).plus(Demand::of(needs(5, 0))));
        room.free(1, Demand::of(needs(5, 1)));
        assert!(room.begins(needs(1, 1)) && room.begins(needs(5, 0)) && room.held == 1);
        room.clear();
        assert!(room.begins(needs(8, 1)));
    }

    #[test]
    fn without_slots_only_workers_count() {
        let mut room = Room::new(2, Capacity::default());
        room.add(needs(9, 0));
        assert!(room.begins(needs(9, 0)) && room.parallel() == 2);
        room.add(needs(1, 0));
        assert!(!room.begins(needs(1, 0)));
    }
}
