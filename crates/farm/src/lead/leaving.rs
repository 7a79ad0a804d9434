//! Tasks that this job does not run any more: they are left for another one, and so is all that waits for them.

use log::debug;

use super::Lead;
use super::pool::{Added, Ready};

impl Lead {
    /// Adds a task to those that are to be dealt. One that can never run gets its record; one that waits for what is left is left.
    pub(super) fn pool(&mut self, ready: Ready) {
        match self.pool.add(ready) {
            Added::Kept => {}
            Added::Never(task) => {
                let seq = task.seq;
                let mut skipped = vec![task];
                skipped.extend(self.pool.ended(seq, false));
                self.record_skipped(skipped);
            }
            Added::Left(task) => self.leave(task.seq),
        }
    }

    /// Leaves a task that is in nobody's hands, with all that waits for it.
    pub(super) fn leave(&mut self, seq: u64) {
        let mut left = self.pool.leave(seq);
        left.push(seq);
        self.counts.left += left.len() as u64;
        for seq in left {
            debug!("rank 0, lead: task {seq} is left for another job");
            self.printer.skip(seq);
        }
    }

    /// All tasks before a barrier have ended. What is behind it is left if one of them is, or if `check` holds and one has failed.
    pub(super) fn pass_barrier(&mut self, check: bool) {
        let why = match (self.counts.left > 0, self.counts.failed + self.counts.skipped > 0) {
            (true, _) => "a task before a barrier is left: what follows is left, too",
            (false, true) if check => "a task before BARRIER CHECK failed: what follows is left",
            (false, _) => return,
        };
        self.audience.remark(why);
        self.drain(0.0, 0.0);
    }
}
