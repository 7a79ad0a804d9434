//! Which rank has the resources that a task needs. Ranks differ if a host's slots do not come out even, or hosts have more ranks than others.

use std::collections::HashMap;

use equipoise::Result;

use super::Lead;
use super::pool::{Choice, Ready};
use super::room::Room;
use crate::limits::Capacity;
use crate::list::Entry;
use crate::settings::Settings;
use crate::task::Task;

/// Room on each rank, where the hosts of ranks have these names.
pub(super) fn rooms(settings: &Settings, host_of_rank: &[String]) -> Vec<Room> {
    let mut ranks_on: HashMap<&str, u32> = HashMap::new();
    // The place of each rank among those of its host.
    let mut place = |host| {
        let ranks = ranks_on.entry(host).or_default();
        std::mem::replace(ranks, *ranks + 1)
    };
    let places: Vec<u32> = host_of_rank.iter().map(|host| place(host.as_str())).collect();
    let capacities = host_of_rank.iter().zip(places).map(|(host, place)| settings.capacity(place, ranks_on[host.as_str()]));
    capacities.map(|capacity| Room::new(settings.workers, capacity)).collect()
}

/// Room that every rank has. One that has none at all for tasks does not count.
pub(super) fn least(settings: &Settings, rooms: &[Room]) -> Room {
    let some = rooms.iter().filter(|room| room.workers > 0);
    Room::new(settings.workers, some.map(|room| room.capacity).reduce(Capacity::least).unwrap_or_default())
}

/// Number of tasks that each rank runs at a time, where the hosts of ranks have these names.
pub fn workers(settings: &Settings, host_of_rank: &[String]) -> Vec<u32> {
    rooms(settings, host_of_rank).iter().map(|room| room.workers).collect()
}

impl Lead {
    /// Refuses a task that no rank can ever run.
    pub(super) fn checked(&mut self, entry: Option<Entry>) -> Result<Option<Entry>> {
        let Some(Entry::Task(task)) = &entry else { return Ok(entry) };
        if !self.told_of_cpus && self.ranks.iter().all(|rank| rank.room.capacity.ignores_cpus(task.needs)) {
            self.told_of_cpus = true;
            self.audience.remark(&self.list.wrong(task.line, "cpus= counts only with --slots cpus=N, how many a rank has").to_string());
        }
        let is_spared = |rank: usize| self.settings.dedicated && rank == 0 && self.ranks.len() > 1;
        let mut why = None;
        for (_, rank) in self.ranks.iter().enumerate().filter(|(at, _)| !is_spared(*at)) {
            match rank.room.capacity.objection(task.needs) {
                None => return Ok(entry),
                objection => why = why.or(objection),
            }
        }
        why.map_or(Ok(()), |why| Err(self.list.wrong(task.line, &why))).map(|()| entry)
    }

    /// Leaves the tasks that only ranks had room for which are lost, or whose hosts were given back before tasks of a lost rank came back.
    pub(super) fn leave_what_fits_nowhere(&mut self) {
        if !self.ranks.iter().any(|rank| rank.lost) {
            return;
        }
        let living: Vec<Capacity> = self.that_may_work().map(|room| room.capacity).collect();
        let fits_nowhere = |task: &Task| !living.iter().any(|capacity| capacity.holds(task.needs));
        let left = self.pool.take(u64::MAX, fits_nowhere);
        if let Some((task, _)) = left.first() {
            let why = "no rank that is not lost or given back has what they need";
            self.audience.remark(&format!("task {} and perhaps others are left: {why}", task.seq));
        }
        left.iter().for_each(|(task, _)| self.leave(task.seq));
    }

    /// Room of the ranks that get tasks, now or when their hosts have started.
    pub(super) fn that_may_work(&self) -> impl Iterator<Item = Room> {
        (0..self.ranks.len()).filter(|rank| self.may_work(*rank)).map(|rank| self.ranks[rank].room)
    }

    /// Number of tasks that they run at a time.
    pub(super) fn workers(&self) -> u64 {
        self.that_may_work().map(|room| u64::from(room.workers)).sum()
    }

    /// Takes the tasks that only some ranks have the resources for, and that can begin there at once. The tasks that remain can run on every rank.
    pub(super) fn take_what_fits_some(&mut self, last: f64, now: f64) -> Vec<(usize, Vec<Ready>)> {
        let (least, mut taken) = (self.least.capacity, Vec::new());
        for rank in 0..self.ranks.len() {
            let mut room = self.ranks[rank].room;
            if room.capacity == least || room.held >= u64::from(room.workers) || self.draining || !self.works(rank) {
                continue;
            }
            let tasks = self.pool.choose(u64::MAX, |task| {
                if task.least_time() > last - now || !room.begins(task.needs) || least.holds(task.needs) {
                    return Choice::Pass;
                }
                room.add(task.needs);
                Choice::Take
            });
            taken.push((rank, tasks));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SlotsGiven;
    use crate::list::Origin;
    use crate::task::Needs;

    #[test]
    fn each_rank_has_its_own_share_of_its_host() {
        let mut settings = Settings::new(Origin::Empty(0));
        settings.slots = Some(SlotsGiven::parse("host:cpus=3,gpus=1").unwrap());
        let hosts = ["a", "b", "a"].map(String::from);
        let fits = |needs| rooms(&settings, &hosts).iter().map(|room| room.capacity.holds(needs)).collect::<Vec<_>>();
        let needs = |cpus, gpus| Needs { cpus, gpus, mem: 0 };
        assert_eq!([fits(needs(1, 0)), fits(needs(2, 0)), fits(needs(3, 0))], [[true; 3], [true, true, false], [false, true, false]]);
        assert_eq!([fits(needs(0, 1)), fits(needs(0, 2))], [[true, true, false], [false; 3]]);
        settings.workers = 3;
        assert_eq!(workers(&settings, &hosts), [2, 3, 1], "each task takes a processor");
    }
}
