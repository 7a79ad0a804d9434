//! The end of a job: the last words, and the check that each task of the list has ended once.

use equipoise::error::LostTasks;
use equipoise::{Error, Result};

use super::{Lead, reporting};
use crate::report::Share;

impl Lead {
    /// The last words.
    ///
    /// # Errors
    /// If a task has no final record, or more than one; or the list could not be read to its end.
    pub fn end(&mut self, now: f64) -> Result<i32> {
        let (counts, seconds, shares) = (self.counts.clone(), now - self.began, self.shares(now));
        let capacity = shares.iter().map(|share| f64::from(share.workers)).sum();
        self.event(|_| counts.end_event(seconds, capacity));
        self.audience.remark(&counts.summary(seconds, capacity));
        if let Some(report) = &mut self.report {
            report.end(&counts, seconds, &shares).map_err(reporting)?;
        }
        if let Some(why) = self.why_unread.take() {
            return Err(why);
        }
        let finals = counts.done + counts.failed + counts.skipped;
        if finals + counts.left != counts.read || self.recorded.len() != finals {
            return Err(LostTasks::Unrecorded { tasks: counts.read, recorded: self.recorded.len(), left: counts.left }.into());
        }
        // One that has grown meanwhile has more, and they ran, too.
        if let Some(total) = counts.total.filter(|total| *total > counts.read) {
            let why =
                format!("the list had {total} tasks when the job began, and {} could be read: the others are in no record", counts.read);
            return Err(Error::Failed(why));
        }
        Ok(counts.exit_status(self.hosts.has_failed()))
    }

    /// The part that each rank had in the job. A rank 0 that was spared had none.
    fn shares(&self, now: f64) -> Vec<Share> {
        let is_spared = |rank: usize| self.settings.dedicated && rank == 0 && self.ranks.len() > 1 && self.counts.busy[0] <= 0.0;
        let share = |rank: usize| Share {
            workers: if is_spared(rank) { 0 } else { self.ranks[rank].room.workers },
            seconds: self.hosts.released(rank).unwrap_or(now) - self.began,
        };
        (0..self.ranks.len()).map(share).collect()
    }
}
