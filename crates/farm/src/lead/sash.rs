//! Dealing ahead by a search (SASH): while ranks work, the next assignments are searched for by estimates and by the measured speeds of the
//! ranks, and then dealt. A phase begins when a rank is about to run dry.

use std::time::{Duration, Instant};

use equipoise::load::{Cost, Costs};
use equipoise::schedule::sash::forecast::Forecast;
use equipoise::schedule::sash::phase::Rules;
use equipoise::schedule::sash::search::{Assignment, Search};

use super::Lead;
use super::pool::Ready;
use super::room::Room;
use crate::limits::Demand;
use crate::task::{Needs, Task};

/// A rank that has less to do than this, in seconds, is about to run dry.
const DRY: f64 = 0.02;
/// Time that a search may take at most: nothing is heard meanwhile.
const LONGEST: Duration = Duration::from_millis(5);
/// A rank that has work for this time, in seconds, gets no more than can begin there at once.
const AHEAD: f64 = 0.1;
/// Tasks that a phase looks at, for each worker of the job.
const TASKS: usize = 2;
/// Costs that a phase looks at, at most.
const COSTS: usize = 1 << 18;

/// Forecast of the ranks' work.
pub struct Sash {
    forecast: Forecast,
    alike: bool,
    most: u32,
}

impl Sash {
    /// For ranks with this room.
    pub fn new(rooms: &[Room], alike: bool, most: u32) -> Sash {
        let widths: Vec<usize> = rooms.iter().map(|room| room.workers as usize).collect();
        Sash { forecast: Forecast::new(&widths), alike, most }
    }

    /// `tasks` tasks of a rank have ended, which took `seconds` seconds of the whole rank together.
    pub fn freed(&mut self, rank: usize, tasks: u64, seconds: f64, now: f64) {
        self.forecast.completed_first(rank, tasks as usize, cost(seconds), cost(now));
    }

    /// Assigns some of the tasks, given by the time that they take of a whole rank and by their needs, to some of the ranks now; nothing if no rank is
    /// about to run dry. `rooms` are those of all ranks; `more`: there are further tasks.
    fn phase(&mut self, tasks: &[(f64, Needs)], ranks: &[usize], rooms: &[Room], more: bool, now: f64) -> Vec<(usize, usize)> {
        let now = cost(now);
        let finish = self.forecast.finish(now);
        let mut ranks = ranks.to_vec();
        // Among equal ranks, the one that is free first.
        ranks.sort_by_key(|rank| finish[*rank]);
        let Some(first) = ranks.first().map(|rank| finish[*rank].saturating_sub(now)) else { return Vec::new() };
        let begins_one = |rank: &usize| tasks.iter().any(|(_, needs)| rooms[*rank].begins(*needs));
        if tasks.is_empty() || (first >= cost(DRY) && !ranks.iter().any(begins_one)) {
            return Vec::new();
        }
        let lengths: Vec<Cost> = tasks.iter().map(|(length, _)| cost(*length).max(1)).collect();
        let mut chosen = self.with_room(self.search(&lengths, &ranks, &finish, first), &lengths, tasks, rooms, now);
        if chosen.is_empty() && more {
            // The others will have enough to do.
            ranks.retain(|rank| begins_one(rank) || is_soon(finish[*rank], now));
            chosen = self.with_room(self.search(&lengths, &ranks, &finish, first), &lengths, tasks, rooms, now);
        }
        for Assignment { task, worker } in &chosen {
            self.forecast.give(*worker, *task, lengths[*task], now);
        }
        chosen.into_iter().map(|assignment| (assignment.task, assignment.worker)).collect()
    }

    /// The assignments for which there is room, in their order: the task can begin at once, or the rank has little to do.
    fn with_room(&self, chosen: Vec<Assignment>, lengths: &[Cost], tasks: &[(f64, Needs)], rooms: &[Room], now: Cost) -> Vec<Assignment> {
        let (mut finish, factors) = (self.forecast.finish(now), self.forecast.factors());
        let (mut rooms, mut kept) = (rooms.to_vec(), Vec::new());
        for assignment in chosen {
            let Assignment { task, worker } = assignment;
            let (_, needs) = tasks[task];
            if rooms[worker].begins(needs) || is_soon(finish[worker], now) {
                finish[worker] = finish[worker].saturating_add((lengths[task] as f64 * factors[worker]) as Cost);
                rooms[worker].add(needs);
                kept.push(assignment);
            }
        }
        kept
    }

    /// The best that a search finds which may take this time.
    fn search(&self, lengths: &[Cost], ranks: &[usize], finish: &[Cost], allotted: Cost) -> Vec<Assignment> {
        let (began, all) = (Instant::now(), finish.len());
        let costs = Costs::new(all as u32, lengths.iter().flat_map(|length| std::iter::repeat_n(*length, all)).collect());
        let Some(costs) = costs.filter(|_| !ranks.is_empty()) else { return Vec::new() };
        let (tasks, rules): (Vec<usize>, _) = ((0..lengths.len()).collect(), Rules::R1);
        let factors = self.forecast.factors();
        let factors = ranks.iter().map(|rank| if self.alike { 1.0 } else { factors[*rank] }).collect();
        let base = ranks.iter().map(|rank| finish[*rank]).collect();
        let mut search = Search::new(&costs, ranks, &tasks, base, rules.window, rules.ties).scaled(factors);
        let allotted = LONGEST.min(Duration::from_nanos(allotted));
        for expansion in 0..self.most {
            if search.is_complete() || (expansion > 0 && began.elapsed() >= allotted) || search.expand() == 0 {
                break;
            }
        }
        search.chosen(rules.choice)
    }
}

/// Returns true if a rank that finishes what it has at this time has little to do.
fn is_soon(finish: Cost, now: Cost) -> bool {
    finish.saturating_sub(now) < cost(AHEAD)
}

/// Seconds as costs: nanoseconds.
fn cost(seconds: f64) -> Cost {
    (seconds.max(0.0) * 1e9) as Cost
}

impl Lead {
    /// Deals by phases, until no rank is about to run dry.
    pub(super) fn deal_by_search(&mut self, mut sash: Sash, now: f64) {
        let last = self.settings.walltime.map_or(f64::INFINITY, |walltime| walltime.last());
        let ranks: Vec<usize> = (0..self.ranks.len()).filter(|rank| self.works(*rank)).collect();
        let most = (TASKS * self.all_workers as usize).min(COSTS / self.ranks.len()).max(1);
        // A task without an estimate is expected to take what others took.
        let usual = self.usual().unwrap_or(1.0);
        let least = self.least;
        // Of the time of a rank a task takes the part of its resources that it needs.
        let length = |task: &Task| task.cost.unwrap_or(usual) / least.at_a_time(1, Demand::of(task.needs)) as f64;
        for (rank, tasks) in self.take_what_fits_some(last, now) {
            for (task, _) in &tasks {
                sash.forecast.give(rank, task.seq as usize, cost(length(task)), cost(now - self.began));
            }
            self.give(rank, tasks, now);
        }
        while !self.draining {
            let (keys, tasks): (Vec<_>, Vec<_>) = self
                .pool
                .first(most, |task| task.least_time() <= last - now && least.capacity.holds(task.needs))
                .into_iter()
                .map(|(key, task)| (key, (length(task), task.needs)))
                .unzip();
            let more = self.pool.ready() > keys.len() as u64;
            let rooms: Vec<Room> = self.ranks.iter().map(|rank| rank.room).collect();
            let chosen = sash.phase(&tasks, &ranks, &rooms, more, now - self.began);
            if chosen.is_empty() {
                break;
            }
            let mut by_rank: Vec<Vec<Ready>> = vec![Vec::new(); self.ranks.len()];
            for (task, rank) in chosen {
                by_rank[rank].extend(self.pool.take_at(keys[task]));
            }
            for (rank, tasks) in by_rank.into_iter().enumerate().filter(|(_, tasks)| !tasks.is_empty()) {
                self.give(rank, tasks, now);
            }
        }
        self.sash = Some(sash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Capacity;

    /// Deals some of the tasks of these lengths, and notes it.
    fn deal(sash: &mut Sash, lengths: &[f64], rooms: &mut [Room], more: bool, now: f64) -> Vec<(usize, usize)> {
        let tasks: Vec<_> = lengths.iter().map(|length| (*length, Needs::default())).collect();
        let chosen = sash.phase(&tasks, &[0, 1], rooms, more, now);
        chosen.iter().for_each(|(_, rank)| rooms[*rank].add(Needs::default()));
        chosen
    }

    #[test]
    fn a_slow_rank_gets_no_long_task() {
        let mut rooms = [Room::new(1, Capacity::default()); 2];
        let mut sash = Sash::new(&rooms, false, 1000);
        // Three tasks each that show that rank 1 takes four times as long.
        for rank in 0..2 {
            for task in 0..3 {
                sash.forecast.give(rank, task, cost(1.0), 0);
            }
        }
        sash.freed(0, 3, 3.0, 3.0);
        sash.freed(1, 3, 12.0, 12.0);
        let lengths = [8.0, 1.0, 1.0, 1.0, 1.0];
        let mut dealt = Vec::new();
        loop {
            let left: Vec<usize> = (0..lengths.len()).filter(|task| dealt.iter().all(|(done, _)| done != task)).collect();
            let lengths: Vec<f64> = left.iter().map(|task| lengths[*task]).collect();
            let chosen = deal(&mut sash, &lengths, &mut rooms, false, 12.0);
            if chosen.is_empty() {
                break;
            }
            dealt.extend(chosen.into_iter().map(|(task, rank)| (left[task], rank)));
        }
        // Then both have something to do.
        assert_eq!(dealt, [(0, 0), (1, 1)]);
        // The fast one is free again long before the slow one would have ended a long task.
        sash.freed(1, 1, 4.0, 16.0);
        rooms[1].free(1, Demand::of(Needs::default()));
        assert_eq!(deal(&mut sash, &[8.0], &mut rooms, false, 16.0), [], "the task waits for the fast one");
        assert_eq!(deal(&mut sash, &[8.0], &mut rooms, true, 16.0), [(0, 1)], "the fast one will have others");
    }
}
