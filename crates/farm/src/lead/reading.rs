//! Reading of the list by the lead: no further ahead than needed, and finished tasks are only counted.

use equipoise::Result;

use super::Lead;
use super::sharing::Claim;
use crate::journal::past::Verdict;
use crate::list::Entry;
use crate::task::{State, Task};

/// Tasks that are ready, at most, before more are read, and tasks that wait for others; more where the longest is to be found among them.
const WINDOW: u64 = 8192;
const WINDOW_BY_COST: u64 = 1 << 16;
/// Bytes of their commands, at most.
const WINDOW_BYTES: usize = 16 << 20;
/// Number of edited lines that are reported one by one.
const TOLD: u64 = 20;

impl Lead {
    pub(super) fn read(&mut self) -> Result<()> {
        while !self.is_read {
            if let Some(check) = self.barrier {
                if !self.out.is_empty() || !self.pool.is_empty() {
                    return Ok(());
                }
                self.barrier = None;
                self.pass_barrier(check);
            }
            if self.draining {
                self.count_others()?;
            }
            let window = self.window();
            // Tasks that wait keep no rank busy: what comes behind them is read, too.
            let is_full = self.pool.ready() >= window || self.pool.waiting() >= window.max(WINDOW) || self.pool.bytes() >= WINDOW_BYTES;
            // Tasks that were read and that wait may wait for some that a dead job has left.
            let may_free = self.pool.ready() == 0 && self.sharing.is_behind();
            if is_full && !may_free && !self.draining {
                return Ok(());
            }
            let entry = match self.list.entry().and_then(|entry| self.checked(entry)) {
                Ok(entry) => entry,
                Err(why) => {
                    // Running tasks end normally; the sentence comes last.
                    self.why_unread = Some(why);
                    self.drain(f64::MAX, 0.0);
                    None
                }
            };
            std::mem::take(&mut self.list.remarks).iter().for_each(|remark| self.audience.remark(remark));
            match entry {
                None => {
                    self.is_read = true;
                    if self.counts.total.is_none() && self.why_unread.is_none() {
                        self.tell_missing(self.list.tasks());
                    }
                    // In a job that ends, a block may have tasks that are left.
                    if !self.draining {
                        self.sharing.read_to(None)?;
                    }
                }
                // A job that ends does not wait for what may still come.
                Some(Entry::Later) if self.draining => self.is_read = true,
                Some(Entry::Later) => return Ok(()),
                Some(Entry::Barrier { check }) if !self.draining => self.barrier = Some(check),
                Some(Entry::Barrier { .. }) => {}
                Some(Entry::PerHost { text, at_start }) => {
                    let begin = self.hosts.add(text, at_start);
                    self.sends.extend(begin);
                }
                Some(Entry::Task(task)) => self.take_in(task)?,
            }
        }
        Ok(())
    }

    /// Tells of tasks that have records and are not in the list any more, which has this number of tasks.
    pub(super) fn tell_missing(&mut self, tasks: u64) {
        if let Some((missing, last)) = self.past.behind(tasks) {
            self.audience.remark(&format!(
                "the list ends with task {tasks}, and {missing} tasks behind it, up to task {last}, have records of earlier jobs: they do not count"
            ));
        }
    }

    /// Number of tasks that may be ready before more are read.
    pub(super) fn window(&self) -> u64 {
        if (self.counts.has_costs || !self.costs.is_empty()) && self.sharing.is_alone() {
            return WINDOW_BY_COST;
        }
        // Shared tasks are not taken in long before they can be run.
        self.sharing.ahead(2 * self.all_workers).min(WINDOW)
    }

    fn take_in(&mut self, mut task: Task) -> Result<()> {
        let verdict = match self.claim(&task)? {
            Claim::Not => return Ok(()),
            Claim::Counted(state) => Verdict::Finished(state),
            Claim::Ours => self.past.judge(&task, self.settings.retry_failed),
        };
        self.counts.read += 1;
        let attempts = match verdict {
            Verdict::Finished(state) => {
                self.recorded.insert(task.seq);
                self.counts.count_earlier(state);
                self.printer.skip(task.seq);
                self.skip(task.seq, state == State::Done);
                return Ok(());
            }
            Verdict::Run { attempts } => attempts,
            Verdict::Edited => {
                let is_new = self.sharing.is_newly_edited(task.seq);
                self.counts.edited += u64::from(is_new);
                if is_new && self.counts.edited <= TOLD {
                    let text = String::from_utf8_lossy(&task.text).into_owned();
                    let more = if self.counts.edited == TOLD { " (further edited lines are only counted)" } else { "" };
                    self.audience.remark(&format!(
                        "line {} (task {}) is not the command that the journal has; it runs as a new one: {text}{more}",
                        task.line, task.seq
                    ));
                }
                0
            }
        };
        if self.draining {
            self.counts.left += 1;
            return Ok(());
        }
        self.sharing.take_in(task.seq);
        task.cost = task.cost.or_else(|| self.costs.get(&task.seq).copied()).or_else(|| self.past.learnt(&task.text));
        self.counts.has_costs |= task.cost.is_some();
        if let Some(walltime) = self.settings.walltime
            && task.cost.is_none()
            && task.min.is_none()
        {
            // Nothing is known of it: it is not begun when the end is near.
            task.min = Some(self.settings.grace.min(walltime.length / 20.0));
        }
        self.pool((task, attempts));
        Ok(())
    }
}
