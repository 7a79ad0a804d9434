//! Sharing of a list with other jobs on the same journal.
//!
//! The lead takes in only tasks of blocks that it holds. When it has run all of these it reads the list again for the others: tasks that
//! have their record by now are counted, tasks of dead jobs are run, and tasks of living jobs are waited for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use equipoise::{Error, Result};

use super::Lead;
use crate::journal::past::Past;
use crate::leases::{Hold, Leases};
use crate::prepare;
use crate::presence::Presence;
use crate::task::State;

/// Seconds between two looks at what others hold.
const LOOK: f64 = 1.0;

/// Knowledge of others' blocks.
#[derive(Default)]
pub struct Sharing {
    presence: Option<Arc<Presence>>,
    leases: Option<Leases>,
    /// Blocks that others hold or have done, and that are not counted yet.
    others: BTreeSet<u64>,
    /// In later passes through the list: the blocks that are wanted.
    wanted: Option<BTreeSet<u64>>,
    next_look: f64,
}

/// Decision on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is this job's.
    Ours,
    /// Another job has finished it; it is only counted, even if it failed.
    Counted,
    /// Another job may still run it: nothing to do now.
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

    /// Returns true if others' blocks are still to be counted or run.
    pub fn is_waiting(&self) -> bool {
        !self.others.is_empty()
    }

    pub fn take_in(&mut self, seq: u64) {
        if let Some(leases) = &mut self.leases {
            leases.take_in(seq);
        }
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
    pub(super) fn claim(&mut self, seq: u64) -> Result<Claim> {
        let Some(leases) = &mut self.sharing.leases else { return Ok(Claim::Ours) };
        let block = leases.block(seq);
        if self.sharing.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&block)) {
            return Ok(Claim::Not);
        }
        if self.sharing.wanted.is_some() && self.recorded.contains(seq) {
            // It was counted in an earlier pass.
            return Ok(Claim::Not);
        }
        leases.read_to(Some(seq)).map_err(failed)?;
        let hold = match self.sharing.others.contains(&block) {
            true => Hold::Others,
            false => leases.hold(seq).map_err(failed)?,
        };
        let recorded = self.past.final_state(seq).filter(|_| self.sharing.wanted.is_some());
        match hold {
            Hold::Ours => Ok(Claim::Ours),
            Hold::Inherited => {
                self.past = past(self)?;
                Ok(Claim::Ours)
            }
            // If it became done after the records were read, the next pass counts what is missing.
            Hold::Done if recorded.is_some() => Ok(Claim::Counted),
            Hold::Done | Hold::Others => {
                self.sharing.others.insert(block);
                self.printer.skip(seq);
                if let Some(state) = recorded {
                    // Tasks that depend on it need not wait for its whole block.
                    self.skip(seq, state == State::Done);
                }
                Ok(Claim::Not)
            }
        }
    }

    /// Looks after what others hold if there is nothing else to do.
    pub(super) fn share(&mut self, now: f64) -> Result<()> {
        self.sharing.presence.as_ref().map_or(Ok(()), |presence| presence.check())?;
        let is_idle = self.is_read && self.pool.ready() == 0 && self.out.is_empty() && !self.draining;
        if !is_idle || !self.sharing.is_waiting() || now < self.sharing.next_look {
            return Ok(());
        }
        let began = Instant::now();
        self.past = past(self)?;
        // Long journals are read less often.
        self.sharing.next_look = now + LOOK.max(10.0 * began.elapsed().as_secs_f64());
        self.sharing.wanted = Some(std::mem::take(&mut self.sharing.others));
        self.list = prepare::open(&self.settings)?;
        self.is_read = false;
        Ok(())
    }
}

/// The records as they are now.
fn past(lead: &Lead) -> Result<Past> {
    let mut settings = lead.settings.clone();
    settings.resume = true;
    prepare::past(&settings, &[])
}
