//! The line of progress, with the time that is left.

use serde_json::json;

use super::Lead;
use super::counts::{Counts, Remaining};

/// Seconds between two lines of progress.
const EVERY: f64 = 5.0;

impl Lead {
    /// Shows the progress if it is time for that.
    pub(super) fn show_progress(&mut self, now: f64) {
        if now - self.last_line < EVERY || self.is_ending {
            return;
        }
        self.last_line = now;
        // What a rank holds beyond that waits there.
        let running = self.ranks.iter().map(|rank| rank.room.running()).sum::<u64>().min(self.out.len() as u64);
        self.event(|lead| {
            let Counts { done, failed, skipped, total, .. } = &lead.counts;
            json!({"event": "progress", "done": done, "failed": failed, "skipped": skipped, "running": running, "tasks": total})
        });
        let estimated = self.counts.has_costs.then(|| self.remaining(now).time(self.workers()));
        let (seconds, is_ending) = (now - self.began, self.draining);
        let left = if is_ending { None } else { self.counts.time_left(seconds, running, estimated) };
        let line = self.counts.progress(seconds, running, left);
        self.audience.remark(&line);
    }

    /// Mean seconds of the tasks that have ended.
    pub(super) fn usual(&self) -> Option<f64> {
        let (tasks, time) =
            self.ranks.iter().fold((0, 0.0), |(tasks, time), rank| (tasks + rank.measured.tasks, time + rank.measured.time));
        (tasks > 0).then(|| time / tasks as f64)
    }

    /// Time that is still to be worked. A task without an estimate is expected to take what others took, or are estimated to take.
    fn remaining(&self, now: f64) -> Remaining {
        let known: Vec<f64> = self.pool.costs().flatten().collect();
        let mean = || known.iter().sum::<f64>() / known.len().max(1) as f64;
        let mut remaining = Remaining::new(self.usual().unwrap_or_else(mean));
        self.pool.costs().for_each(|cost| remaining.add(cost, 0.0));
        self.out.values().for_each(|out| remaining.add(out.cost, now - out.dealt));
        let unread = self.counts.total.unwrap_or(0).saturating_sub(self.counts.read);
        remaining.add_unknown(unread);
        remaining
    }
}
