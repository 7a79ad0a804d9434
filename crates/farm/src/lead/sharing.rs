//! Sharing of a list with other jobs on the same journal.
//!
//! The lead takes in only tasks of blocks that it holds. When it has nothing else to do it reads the list again from the beginning: tasks that have their
//! record by now are counted, tasks of dead jobs are run, and tasks of living jobs are waited for. This pass may begin before the list was read to
//! its end, where all the tasks that were read wait for others'. A job that was alone, or whose tasks waited, may have read far ahead; it gives back what
//! it will not soon run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use equipoise::{Error, Result};

use super::Lead;
use super::pool::Numbers;
use crate::journal::past::{Past, Verdict};
use crate::leases::{Hold, Leases};
use crate::prepare;
use crate::presence::Presence;
use crate::task::{State, Task};

/// Seconds between two looks at what others hold.
const LOOK: f64 = 1.0;

/// Knowledge of others' blocks.
#[derive(Default)]
pub struct Sharing {
    presence: Option<Arc<Presence>>,
    leases: Option<Leases>,
    /// Blocks that others hold or have done and that are not counted yet, as far as this pass through the list has come.
    others: BTreeSet<u64>,
    /// Blocks that were done when the records were last read.
    complete: BTreeSet<u64>,
    /// All other jobs that ran then have joined later.
    is_first: bool,
    /// Dead jobs whose records were read after their death.
    dead: BTreeSet<u32>,
    /// Tasks that were taken in or counted.
    taken: Numbers,
    /// Tasks whose command was edited.
    edited: Numbers,
    /// The last task that was read in this pass, and in any.
    at: u64,
    furthest: u64,
    /// The job ends: what others have not finished is still to be counted.
    is_to_count: bool,
    next_look: f64,
}

/// Decision on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is this job's.
    Ours,
    /// Another job has finished it; it is only counted, even if it failed.
    Counted(State),
    /// Another job may still run it, or it was taken in before: nothing to do now.
    Not,
}

fn failed(why: std::io::Error) -> Error {
    Error::Failed(format!("--journal: the leases of blocks cannot be written: {why}"))
}

impl Sharing {
    pub fn new(presence: Option<Arc<Presence>>, leases: Option<Leases>) -> Sharing {
        Sharing { presence, leases, ..Sharing::default() }
    }

    /// Number of tasks that may be ready before more are read, where `least` are needed to keep all ranks busy.
    pub fn ahead(&self, least: u64) -> u64 {
        self.leases.as_ref().map_or(u64::MAX, |leases| least.max(leases.size()))
    }

    /// Returns true if no other job could run what this one takes ahead.
    pub fn is_alone(&self) -> bool {
        self.leases.is_none() || self.presence.as_ref().is_none_or(|presence| presence.is_alone())
    }

    /// Returns true if others' blocks are still to be counted or run.
    pub fn is_waiting(&self) -> bool {
        !self.others.is_empty()
    }

    /// Returns true if tasks that come before others that were read are still to be looked at.
    pub fn is_behind(&self) -> bool {
        self.at < self.furthest
    }

    /// Has the tasks counted that others have not finished, since the job ends. Returns true if there may be some.
    pub fn count_again(&mut self) -> bool {
        self.is_to_count = self.leases.is_some();
        self.is_to_count
    }

    pub fn take_in(&mut self, seq: u64) {
        if let Some(leases) = &mut self.leases {
            leases.take_in(seq);
        }
    }

    /// Returns true if a task was not known to be edited before.
    pub fn is_newly_edited(&mut self, seq: u64) -> bool {
        self.edited.insert(seq)
    }

    pub fn ended(&mut self, seq: u64) -> Result<()> {
        self.leases.as_mut().map_or(Ok(()), |leases| leases.ended(seq).map_err(failed))
    }

    pub fn read_to(&mut self, seq: Option<u64>) -> Result<()> {
        self.leases.as_mut().map_or(Ok(()), |leases| leases.read_to(seq).map_err(failed))
    }

    pub fn end(&self) {
        self.presence.iter().for_each(|presence| presence.end());
    }
}

impl Lead {
    /// Decides whether a task is to be taken in now.
    pub(super) fn claim(&mut self, task: &Task) -> Result<Claim> {
        let (sharing, seq) = (&mut self.sharing, task.seq);
        let Some(leases) = &mut sharing.leases else { return Ok(Claim::Ours) };
        let block = leases.block(seq);
        if !self.draining && (sharing.at == 0 || leases.block(sharing.at) != block) {
            leases.read_to(Some(seq)).map_err(failed)?;
        }
        (sharing.at, sharing.furthest) = (seq, seq.max(sharing.furthest));
        if sharing.taken.contains(seq) {
            return Ok(Claim::Not);
        }
        let state = match self.past.judge(task, false) {
            Verdict::Finished(state) => Some(state),
            // A record of the command that was on this line before says nothing about this one.
            Verdict::Run { .. } | Verdict::Edited => None,
        };
        let is_complete = sharing.complete.contains(&block);
        // Where hosts' clocks differ, such a record may seem to be the later one; in a block that is done the command has its own, too.
        if let (true, Some(state)) = (is_complete, state.or_else(|| self.past.final_state(seq))) {
            sharing.taken.insert(seq);
            return Ok(Claim::Counted(state));
        }
        let hold = match sharing.others.contains(&block) || is_complete {
            // A job that ends takes nothing more from others, and leaves what is not finished.
            _ if self.draining => Hold::Ours,
            // Who had the block had a shorter list, which has grown since. The first of the living runs what is new in it.
            true if is_complete && sharing.is_first && !self.past.has(seq) => Hold::Ours,
            true => Hold::Others,
            false => leases.hold(seq).map_err(failed)?,
        };
        match hold {
            Hold::Ours => {
                sharing.taken.insert(seq);
                Ok(Claim::Ours)
            }
            Hold::Inherited(holder) => {
                sharing.taken.insert(seq);
                // The records of a dead job do not change: they are read once, however many blocks it had.
                if sharing.dead.insert(holder) {
                    self.read_records()?;
                }
                Ok(Claim::Ours)
            }
            // What became done after the records were read is counted in the next pass.
            Hold::Done | Hold::Others => {
                sharing.others.insert(block);
                self.printer.skip(seq);
                // Tasks that depend on it need not wait for its whole block. A failure may be older than the job that tries it again.
                if let Some(state) = state.filter(|state| *state == State::Done || !self.settings.retry_failed) {
                    self.skip(seq, state == State::Done);
                }
                Ok(Claim::Not)
            }
        }
    }

    /// Gives back what was taken in far ahead while this job was alone or its tasks waited, and looks after what others hold if there is nothing else to do: all is read,
    /// or what was read waits for others.
    pub(super) fn share(&mut self, now: f64) -> Result<()> {
        self.sharing.presence.as_ref().map_or(Ok(()), |presence| presence.check())?;
        if self.draining || now < self.sharing.next_look {
            return Ok(());
        }
        let has_work = self.pool.ready() > 0 || (self.pool.waiting() == 0 && !self.out.is_empty());
        let is_reading = !self.is_read && self.sharing.is_behind();
        let is_idle = !has_work && !is_reading && self.sharing.is_waiting();
        let keep = 2 * self.window();
        let is_far_ahead = self.pool.ready() > keep && !self.sharing.is_alone();
        if !is_idle && !is_far_ahead {
            return Ok(());
        }
        let began = Instant::now();
        // What is given back is looked at again in its turn, by this job, too.
        if (is_far_ahead && self.give_back(keep)?) || is_idle {
            self.read_again()?;
        }
        // Long journals are read less often.
        self.sharing.next_look = now + LOOK.max(10.0 * began.elapsed().as_secs_f64());
        Ok(())
    }

    /// Gives back blocks of which nothing runs, but for about this many tasks. Returns false if there are none.
    fn give_back(&mut self, keep: u64) -> Result<bool> {
        let Some(leases) = &mut self.sharing.leases else { return Ok(false) };
        let (mut left, mut given) = (self.pool.ready(), BTreeSet::new());
        // A command that failed here would be tried again by the job that takes its block, if that tries failed ones again.
        for (block, tasks) in leases.idle(self.pool.numbers(), self.settings.retry_failed) {
            if left <= keep {
                break;
            }
            left -= tasks;
            given.insert(block);
        }
        let taken = self.pool.take(u64::MAX, |task| given.contains(&leases.block(task.seq)));
        taken.iter().for_each(|(task, _)| self.sharing.taken.remove(task.seq));
        self.counts.read -= taken.len() as u64;
        given.iter().try_for_each(|block| leases.give_back(*block)).map_err(failed)?;
        Ok(!given.is_empty())
    }

    /// In a job that ends: begins to count what others have not finished.
    pub(super) fn count_others(&mut self) -> Result<()> {
        match std::mem::take(&mut self.sharing.is_to_count) {
            true => self.read_again(),
            false => Ok(()),
        }
    }

    /// Begins a pass through the list, with the records as they are now.
    fn read_again(&mut self) -> Result<()> {
        // Jobs that are dead by now write no records any more.
        let is_later = |presence: &Arc<Presence>| presence.others().iter().all(|other| *other > presence.job());
        self.sharing.is_first = self.sharing.presence.as_ref().is_none_or(is_later);
        // Blocks that are done by now have all their records.
        self.sharing.complete = self.sharing.leases.as_mut().map_or(Ok(BTreeSet::new()), Leases::look).map_err(failed)?;
        self.read_records()?;
        self.sharing.others.clear();
        self.sharing.at = 0;
        self.list = prepare::open(&self.settings)?;
        self.is_read = false;
        Ok(())
    }

    /// Reads the records as they are now. They are not in memory twice.
    fn read_records(&mut self) -> Result<()> {
        let mut settings = self.settings.clone();
        settings.resume = true;
        self.past = Past::default();
        self.past = prepare::past(&settings, &[])?;
        Ok(())
    }
}
