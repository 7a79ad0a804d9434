//! Locality: number of tasks that had to leave their node, and number that did.

use crate::load::{Plan, Transfer};
use crate::topology::NodeId;

/// Minimum number of tasks that must leave their node to reach the quotas: the sum of the deficits (Wu 1997, section 4, lemma 4: minimal
/// locality loss). Both lists are by node, and the sum of `loads` fits into u64.
pub fn minimum_nonlocal(loads: &[u64], quota: &[u64]) -> u64 {
    loads.iter().zip(quota).map(|(load, quota)| quota.saturating_sub(*load)).sum()
}

/// Number of tasks that left their node at any time, including those that came back; `own_left` are the own tasks that never left, by node.
pub fn nonlocal(loads: &[u64], own_left: &[u64]) -> u64 {
    loads.iter().zip(own_left).map(|(load, left)| load.saturating_sub(*left)).sum()
}

/// Minimum number of tasks that each node holds at any time of a plan, or the first impossible transfer, which gives more than its sender
/// has.
///
/// Transfers of one step do not depend on each other, so any of them may come first: a node is assumed to send all that it sends in a step
/// before anything arrives.
pub fn least_held(plan: &Plan, loads: &[u64]) -> Result<Vec<u64>, Transfer> {
    let mut held = loads.to_vec();
    let mut least = loads.to_vec();
    for step in plan.transfers.chunk_by(|a, b| a.step == b.step) {
        for transfer in step {
            let src = transfer.src as usize;
            held[src] = held[src].checked_sub(transfer.work).ok_or(*transfer)?;
            least[src] = least[src].min(held[src]);
        }
        for transfer in step {
            held[transfer.dst as usize] += transfer.work;
        }
    }
    Ok(least)
}

/// A node that once held less than the smaller of its load and its quota, so that a task moved which could have stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach {
    pub node: NodeId,
    /// The least number of tasks that it held.
    pub held: u64,
    /// The smaller of its load and its quota.
    pub promised: u64,
}

/// First node, by number, that breaches locality in a plan: no node may ever hold less than the smaller of its load and its quota.
///
/// # Errors
/// The first impossible transfer.
pub fn locality_breach(plan: &Plan, loads: &[u64], quota: &[u64]) -> Result<Option<Breach>, Transfer> {
    let least = least_held(plan, loads)?;
    let judged = (0..).zip(&least).zip(loads.iter().zip(quota));
    let mut breaches = judged.map(|((node, held), (load, quota))| Breach { node, held: *held, promised: *load.min(quota) });
    Ok(breaches.find(|breach| breach.held < breach.promised))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn transfer(step: u32, src: u32, dst: u32, tasks: u64) -> Transfer {
        Transfer { step, src, dst, tasks, work: tasks }
    }

    #[test]
    fn tasks_that_had_to_move_and_did() {
        // Wu's example 1: loads and quotas of the tree.
        let (loads, quota) = ([1, 4, 5, 11, 7, 2, 3, 3, 5], [5, 5, 5, 5, 5, 4, 4, 4, 4]);
        assert_eq!(minimum_nonlocal(&loads, &quota), 4 + 1 + 2 + 1 + 1);
        assert_eq!(nonlocal(&loads, &loads), 0);
        assert_eq!(nonlocal(&[3, 5], &[1, 5]), 2);
    }

    #[test]
    fn a_node_that_sends_before_it_receives_is_seen() {
        let loads = [6, 2, 0];
        // Node 1 passes on what it got: nothing of its own need leave.
        let patient = Plan::new(vec![transfer(0, 0, 1, 3), transfer(1, 1, 2, 2)]);
        assert_eq!(least_held(&patient, &loads), Ok(vec![3, 2, 0]));
        assert_eq!(locality_breach(&patient, &loads, &[3, 3, 2]), Ok(None));
        // In one step it may have sent first.
        let hasty = Plan::new(vec![transfer(0, 0, 1, 3), transfer(0, 1, 2, 2)]);
        assert_eq!(least_held(&hasty, &loads), Ok(vec![3, 0, 0]));
        assert_eq!(locality_breach(&hasty, &loads, &[3, 3, 2]), Ok(Some(Breach { node: 1, held: 0, promised: 2 })));
        let impossible = Plan::new(vec![transfer(0, 2, 1, 1)]);
        assert_eq!(least_held(&impossible, &loads), Err(transfer(0, 2, 1, 1)));
        assert_eq!(least_held(&Plan::default(), &loads), Ok(loads.to_vec()));
    }

    proptest! {
        #[test]
        fn surplus_is_what_deficits_miss(loads in prop::collection::vec(0u64..100, 1..20), seed: u64) {
            // Any reshuffle of the same total serves as quotas.
            let turn = (seed % loads.len() as u64) as usize;
            let quota = [&loads[turn..], &loads[..turn]].concat();
            let surplus: u64 = loads.iter().zip(&quota).map(|(load, quota)| load.saturating_sub(*quota)).sum();
            prop_assert_eq!(minimum_nonlocal(&loads, &quota), surplus);
        }

        #[test]
        fn no_node_is_held_to_have_less_than_the_plan_leaves(
            loads in prop::collection::vec(0u64..50, 2..8),
            moves in prop::collection::vec((0u32..3, any::<u32>(), any::<u32>(), 1u64..9), 0..10),
        ) {
            let nodes = loads.len() as u32;
            let transfers = moves.into_iter().map(|(step, src, dst, tasks)| transfer(step, src % nodes, dst % nodes, tasks));
            let plan = Plan::new(transfers.filter(|transfer| transfer.src != transfer.dst).collect());
            if let Ok(least) = least_held(&plan, &loads) {
                let last = plan.apply(&loads).unwrap();
                prop_assert!(least.iter().zip(loads.iter().zip(&last)).all(|(least, (first, last))| least <= first && least <= last));
            }
        }
    }
}
