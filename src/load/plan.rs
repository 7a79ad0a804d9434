//! The plan of a phase: the log of its transfers.

use serde::{Deserialize, Serialize};

use crate::topology::NodeId;

/// Some tasks that went from one node to another in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Transfer {
    /// Steps are numbered so that a transfer depends only on transfers with smaller numbers: carried out in this order, no node ever gives
    /// a task that it does not have.
    pub step: u32,
    /// The node that sends.
    pub src: NodeId,
    /// The node that receives.
    pub dst: NodeId,
    /// Number of tasks, at least 1.
    pub tasks: u64,
    /// Their work units; equal to the number of tasks if these are unit tasks.
    pub work: u64,
}

/// All transfers of a balancing phase, by step, then source, then destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// In causal order.
    pub transfers: Vec<Transfer>,
}

impl Plan {
    /// A plan from the transfers that its nodes sent.
    pub fn new(mut transfers: Vec<Transfer>) -> Plan {
        transfers.sort_unstable();
        Plan { transfers }
    }

    /// The loads, in work units, after the plan.
    ///
    /// # Errors
    /// The first impossible transfer, which gives more work than its sender has then.
    pub fn apply(&self, loads: &[u64]) -> Result<Vec<u64>, Transfer> {
        let mut loads = loads.to_vec();
        for transfer in &self.transfers {
            let left = loads[transfer.src as usize].checked_sub(transfer.work).ok_or(*transfer)?;
            loads[transfer.src as usize] = left;
            loads[transfer.dst as usize] += transfer.work;
        }
        Ok(loads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_applied_step_by_step() {
        let through = |step| Transfer { step, src: 1, dst: 2, tasks: 4, work: 4 };
        let into = Transfer { step: 0, src: 0, dst: 1, tasks: 3, work: 3 };
        assert_eq!(Plan::new(vec![through(1), into]).apply(&[3, 1, 0]), Ok(vec![0, 0, 4]));
        assert_eq!(Plan::new(vec![through(0), into]).apply(&[3, 0, 0]), Err(through(0)));
    }
}
