//! Distribution of tasks: selection of tasks for a rank, and their number.

use log::debug;

use super::pool::Ready;
use super::{Lead, Out, Rank};
use crate::messages::ToHand;
use crate::task::Task;
use equipoise::topology::RankId;

/// Seconds of work that a rank gets at a time.
const AHEAD: f64 = 0.1;
/// Most tasks that a rank holds.
const MOST: f64 = 4096.0;

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
        let is_there = |rank: usize| self.hosts.takes_tasks(rank) && !self.ranks[rank].gone;
        let is_spared = self.settings.dedicated && rank == 0 && (1..self.ranks.len()).any(is_there);
        is_there(rank) && !is_spared
    }

    fn deal_in_turn(&mut self, now: f64) {
        let ranks = self.ranks.len();
        let last = self.settings.walltime.map_or(f64::INFINITY, |walltime| walltime.last());
        for turn in 0..ranks {
            let at = (self.next_rank + turn) % ranks;
            if self.draining || self.pool.ready() == 0 {
                break;
            }
            let Rank { capacity, .. } = self.ranks[at];
            let fits = |task: &Task| task.least_time() <= last - now && capacity.holds(task.needs);
            // A rule sets numbers only for tasks that are dealt.
            if !self.works(at) || (self.chunks.is_some() && self.pool.first(1, fits).is_empty()) {
                continue;
            }
            let most = self.room(at);
            let tasks = self.take(at, most, last - now);
            if !tasks.is_empty() {
                self.give(at, tasks, now);
            }
        }
        self.next_rank = (self.next_rank + 1) % ranks;
    }

    pub(super) fn give(&mut self, at: usize, tasks: Vec<Ready>, now: f64) {
        let rank = RankId::new(at as u32);
        self.ranks[at].held += tasks.len() as u64;
        let keeps = self.settings.survives;
        for (task, attempts) in &tasks {
            debug!("rank 0, lead: task {} goes to rank {rank}, attempts before: {attempts}", task.seq);
        }
        let out = tasks.iter().map(|(task, attempts)| (task.seq, Out::of(task, *attempts, rank, keeps, now)));
        self.out.extend(out);
        self.sends.push((rank, ToHand::Tasks(tasks)));
    }

    /// Takes tasks for a rank that can end in the time left.
    fn take(&mut self, rank: usize, most: u64, left: f64) -> Vec<Ready> {
        let workers = f64::from(self.settings.workers) * self.ranks.len() as f64;
        // Work that takes nearly all of the remaining time may have to be packed to fit.
        let is_cut = self.counts.has_costs && left.is_finite() && self.pool.estimate() > 0.9 * workers * left;
        let capacity = self.ranks[rank].capacity;
        let fits = |task: &Task| capacity.holds(task.needs);
        match is_cut {
            true => (0..most).map_while(|_| self.pool.take_packed(left, fits)).collect(),
            false => self.pool.take(most, |task| task.least_time() <= left && fits(task)),
        }
    }

    /// Number of tasks that a rank gets now.
    fn room(&mut self, at: usize) -> u64 {
        let (workers, left) = (u64::from(self.settings.workers), self.pool.ready());
        let rank = &self.ranks[at];
        if let Some(chunks) = &mut self.chunks {
            return if rank.held < workers { chunks.next(at, left) } else { 0 };
        }
        let to_fill = workers.saturating_sub(rank.held);
        // Tasks that have to fit into the time left, are dealt the longest first, or end the job by failing, are dealt when they can begin.
        let is_exact = self.settings.walltime.is_some() || self.settings.halt.is_some() || self.counts.has_costs;
        let ahead = match rank.measured.mean().filter(|_| !is_exact) {
            Some(mean) => (workers as f64 * (AHEAD / mean)).min(MOST) as u64,
            None => 0,
        };
        // Near the end a rank gets only a part of the tasks, since all the others could do them, too.
        let share = left / (2 * self.ranks.len() as u64);
        to_fill.max((workers + ahead).saturating_sub(rank.held).min(share))
    }
}
