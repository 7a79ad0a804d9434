//! Distribution of tasks: selection of tasks for a rank, and their number.

use log::debug;

use super::pool::{Choice, Ready};
use super::room::Room;
use super::{Lead, Out};
use crate::limits::Demand;
use crate::messages::ToHand;
use crate::task::Needs;
use equipoise::topology::RankId;

/// Seconds of work that a rank gets at a time.
const AHEAD: f64 = 0.1;
/// Most tasks that a rank holds.
const MOST: f64 = 4096.0;
/// A task that does not fit is overtaken this often at most; on a rank then a few times more.
const PATIENCE: u32 = 128;

impl Lead {
    /// Deals tasks to the ranks that have room.
    pub(super) fn deal(&mut self, now: f64) {
        match self.sash.take() {
            Some(sash) => self.deal_by_search(sash, now),
            None => self.deal_in_turn(now),
        }
    }

    /// Returns true if a rank gets tasks now.
    pub(super) fn works(&self, rank: usize) -> bool {
        self.hosts.is_ready(rank) && self.may_work(rank)
    }

    /// Returns true if a rank gets tasks, now or when its host has started. Rank 0 may be spared as long as there is another one.
    pub(super) fn may_work(&self, rank: usize) -> bool {
        let is_there = |rank: usize| self.hosts.takes_tasks(rank) && !self.ranks[rank].gone && self.ranks[rank].room.workers > 0;
        let is_spared = self.settings.dedicated && rank == 0 && (1..self.ranks.len()).any(is_there);
        is_there(rank) && !is_spared
    }

    fn deal_in_turn(&mut self, now: f64) {
        let ranks = self.ranks.len();
        let left = self.settings.walltime.map_or(f64::INFINITY, |walltime| walltime.last()) - now;
        let is_cut = self.is_cut(left);
        // By a rule a rank gets one chunk after the other, until no more of them could begin.
        while self.deal_round(left, is_cut, now) && self.chunks.is_some() {}
        self.next_rank = (self.next_rank + 1) % ranks;
    }

    /// Deals tasks to each rank that has room, once; false if there is none.
    fn deal_round(&mut self, left: f64, is_cut: bool, now: f64) -> bool {
        let (ranks, mut has_dealt) = (self.ranks.len(), false);
        for turn in 0..ranks {
            let at = (self.next_rank + turn) % ranks;
            if self.draining || self.pool.ready() == 0 {
                break;
            }
            if !self.works(at) {
                continue;
            }
            let tasks = if is_cut { self.take_packed(at, left) } else { self.take(at, left) };
            if !tasks.is_empty() {
                has_dealt = true;
                self.give(at, tasks, now);
            }
        }
        has_dealt
    }

    /// Returns true if the work takes nearly all of the remaining time, so that it may have to be packed to fit.
    fn is_cut(&self, left: f64) -> bool {
        if !self.counts.has_costs || left.is_infinite() {
            return false;
        }
        // Time of workers; a task keeps those idle that could run in its place.
        let workers = f64::from(self.least.workers);
        let time = |(needs, estimate): (Needs, f64)| estimate * workers / self.least.at_a_time(1, Demand::of(needs)) as f64;
        self.pool.needs().map(time).sum::<f64>() > 0.9 * self.workers() as f64 * left
    }

    pub(super) fn give(&mut self, at: usize, tasks: Vec<Ready>, now: f64) {
        let rank = RankId::new(at as u32);
        let keeps = self.settings.survives;
        for (task, attempts) in &tasks {
            self.ranks[at].room.add(task.needs);
            if !self.overtaken.is_empty() {
                self.overtaken.remove(&task.seq);
            }
            debug!("rank 0, lead: task {} goes to rank {rank}, attempts before: {attempts}", task.seq);
        }
        let out = tasks.iter().map(|(task, attempts)| (task.seq, Out::of(task, *attempts, rank, keeps, now)));
        self.out.extend(out);
        self.sends.push((rank, ToHand::Tasks(tasks)));
    }

    /// Takes tasks that can begin on a rank at once, of those that together fill the time left best.
    fn take_packed(&mut self, at: usize, left: f64) -> Vec<Ready> {
        let (mut room, mut tasks) = (self.ranks[at].room, Vec::new());
        while self.pool.least_needs().is_some_and(|needs| room.begins(needs))
            && let Some(ready) = self.pool.take_packed(left, |task| room.begins(task.needs))
        {
            room.add(ready.0.needs);
            tasks.push(ready);
        }
        tasks
    }

    /// Takes tasks for a rank that can end in the time left: those that can begin there at once, and behind them some that wait there for their turn.
    fn take(&mut self, at: usize, left: f64) -> Vec<Ready> {
        let (before, ready) = (self.ranks[at].room, self.pool.ready());
        let mut room = before;
        // A rule sets numbers for ranks where a task can begin.
        let most = if self.chunks.is_some() { 1 } else { u64::MAX };
        let mut tasks = self.take_to_begin(&mut room, most, left);
        let number = match &mut self.chunks {
            Some(_) if tasks.is_empty() => 0,
            Some(chunks) => chunks.next(at, ready),
            None => self.number_ahead(at, room.parallel(), before.held, ready),
        };
        let further = number.saturating_sub(tasks.len() as u64);
        tasks.extend(self.pool.take(further, |task| task.least_time() <= left && before.capacity.holds(task.needs)));
        tasks
    }

    /// Takes the first tasks that can begin at once. One that does not fit is overtaken by others for a while; then it is dealt, and waits on the rank,
    /// where nothing begins before it any more.
    fn take_to_begin(&mut self, room: &mut Room, most: u64, left: f64) -> Vec<Ready> {
        let Some(least) = self.pool.least_needs() else { return Vec::new() };
        if !room.begins(least) {
            return Vec::new();
        }
        let overtaken = &self.overtaken;
        let times = |seq: u64| overtaken.get(&seq).copied().unwrap_or(0);
        let (mut waits, mut passed) = (None, 0);
        let tasks = self.pool.choose(most, |task| {
            if !room.begins(least) || waits.is_some_and(|seq| times(seq) + passed >= PATIENCE) {
                return Choice::Stop;
            }
            if task.least_time() > left || !room.capacity.holds(task.needs) {
                return Choice::Pass;
            }
            let has_waited = waits.is_none() && times(task.seq) >= PATIENCE;
            if !room.begins(task.needs) && !has_waited {
                waits = waits.or(Some(task.seq));
                return Choice::Pass;
            }
            passed += u32::from(waits.is_some());
            room.add(task.needs);
            Choice::Take
        });
        if let Some(seq) = waits.filter(|_| passed > 0) {
            *self.overtaken.entry(seq).or_default() += passed;
        }
        tasks
    }

    /// Number of tasks that a rank gets now, including those that it begins at once. It holds `held` tasks and runs `parallel` at a time; `ready` tasks
    /// have not been dealt.
    fn number_ahead(&self, at: usize, parallel: u64, held: u64, ready: u64) -> u64 {
        // Tasks that have to fit into the time left, are dealt the longest first, or end the job by failing, are dealt when they can begin.
        let is_exact = self.settings.walltime.is_some() || self.settings.halt.is_some() || self.counts.has_costs;
        let Some(mean) = self.ranks[at].measured.mean().filter(|_| !is_exact) else { return 0 };
        let ahead = (parallel as f64 * (AHEAD / mean)).min(MOST) as u64;
        if ahead == 0 {
            return 0;
        }
        // Near the end a rank gets only a part of the tasks, since all the others could do them, too.
        (parallel + ahead).saturating_sub(held).min(ready / (2 * self.ranks.len() as u64))
    }
}
