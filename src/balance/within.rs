//! Phases that keep the [capacities](crate::load::Shares::with_capacity) of ranks, for balancers that know every task.
//!
//! 1. All-gather of the rows of alike tasks, and of the bytes of each.
//! 2. All nodes compute the balancer's assignment, what comes near to it within the capacities, and the rounds in which it is carried out; see
//!    [`assign::capacity`](crate::assign::capacity).
//! 3. In each round a node sends what leaves and receives what comes. A barrier between rounds sees to it that room has been made before it is taken.
//!
//! ```text
//!   capacity 10    0: 5 5    1: 6 4    2: -        round 1: 6 from 1 to 2     round 2: 5 from 0 to 1
//! ```
//!
//! Cost: as [`central`](super::central), and a step with a barrier for each round beyond the first.
//!
//! Guarantee: at no time has a rank more bytes than it has room for, if that was so at first; one that was beyond gets nothing before it is not.
//! It is an error (wrong usage, on all ranks the same) if no way is found, which the sentence says with the rank.

use std::collections::BTreeSet;

use super::ground::{Ground, Rule};
use super::items::Held;
use super::{Phase, Stage, gathering};
use crate::assign::capacity::{self, NoRoom, Rooms};
use crate::error::{Error, Result};
use crate::load::{TaskBatch, WorkQueue};
use crate::node::Gathered;
use crate::topology::{NodeId, RankId};

/// Report of a node: its tasks, bytes and count of each row of tasks that may move, and the bytes of tasks that may not.
type Offered = (Held, Vec<(u64, u64)>, u64);

fn offered(queue: &WorkQueue) -> Offered {
    let pinned = queue.pinned().into_iter().flat_map(TaskBatch::segments);
    let pinned = pinned.map(|segment| segment.len() * segment.size() as u64).sum();
    ((queue.movable_rows(), Vec::new()), queue.movable_bytes(), pinned)
}

/// A phase by this rule within capacities of the ranks.
pub(super) async fn exchange(phase: &mut Phase<'_>, rule: &dyn Rule, capacity: &[u64]) -> Result<()> {
    let (node, me) = (phase.node, phase.node.me() as usize);

    // Step 1.
    phase.enter(Stage::Information);
    let all: Gathered<Offered> = gathering::gather(node, offered(phase.mover.queue)).await?;

    // Step 2.
    phase.enter(Stage::Decision);
    let planned = all.derive(|all| planned(phase, all, rule, capacity));
    drop(all);
    let planned = match &*planned {
        Ok(planned) => planned,
        Err(why) => return Err(Error::NoRoom(why.to_string())),
    };
    node.charge(planned.tasks);
    if planned.declined {
        phase.decline();
    }

    // Step 3.
    phase.enter(Stage::Exchange);
    for (number, round) in planned.rounds.iter().enumerate() {
        if number > 0 {
            node.everyone().barrier(node).await?;
        }
        phase.mover.deal_out(&round.parts[me]).await;
        for src in &round.sources[me] {
            let arrival = phase.mover.receive::<()>(*src).await?;
            // Behind all others, so that the places of those that leave later stay as they are.
            phase.mover.queue.put_behind(arrival.batch);
        }
    }
    Ok(())
}

struct Planned {
    rounds: Vec<Round>,
    declined: bool,
    tasks: u64,
}

/// Transfers of one round, by node.
struct Round {
    /// First place, number and destination of the tasks that leave.
    parts: Vec<Vec<(u64, u64, NodeId)>>,
    /// The senders.
    sources: Vec<BTreeSet<NodeId>>,
}

fn planned(phase: &Phase<'_>, all: &[Offered], rule: &dyn Rule, capacity: &[u64]) -> Result<Planned, NoRoom> {
    let placement = &phase.node.overlay().placement;
    let held: Vec<Held> = all.iter().map(|(held, ..)| held.clone()).collect();
    let ground = Ground::new(phase, &held, false);
    let (problem, ranges) = (ground.problem(), &ground.items.ranges);
    let mut bytes: Vec<u64> = Vec::with_capacity(ranges.len() + capacity.len());
    let mut fixed_bytes = vec![0u64; capacity.len()];
    let mut ranges_of = ranges.chunk_by(|a, b| a.node == b.node).peekable();
    for (node, (_, rows, pinned)) in (0..).zip(all) {
        let total: u64 = rows.iter().map(|(bytes, count)| bytes * count).sum();
        let mut kept = total + pinned;
        if let Some(ranges) = ranges_of.next_if(|ranges| ranges[0].node == node) {
            let mut row = rows.iter();
            let (mut size, mut end, mut at) = (0, 0, 0);
            for range in ranges {
                let mut sum = 0;
                while at < range.at + range.count {
                    if at == end {
                        let (bytes, count) = row.next().copied().unwrap_or((0, u64::MAX - end));
                        (size, end) = (bytes, end + count);
                    }
                    // Tasks without work, which stay, lie between ranges.
                    let until = if at < range.at { end.min(range.at) } else { end.min(range.at + range.count) };
                    sum += if at < range.at { 0 } else { size * (until - at) };
                    at = until;
                }
                bytes.push(sum);
                kept -= sum;
            }
        }
        fixed_bytes[placement.rank_of(node).index()] += kept;
    }

    // The fixed work of a rank is one more task of it.
    let movable: Vec<usize> = (0..ranges.len()).collect();
    let ranks = 0..capacity.len() as u32;
    let weights: Vec<f64> = problem.weights.iter().chain(problem.fixed).map(|work| *work as f64).collect();
    let owners: Vec<u32> = problem.owners.iter().copied().chain(ranks.clone()).collect();
    let powers: Vec<f64> = problem.powers.iter().map(|power| *power as f64).collect();
    bytes.extend(fixed_bytes);
    let mut assignment: Vec<u32> = rule.assign(&ground.given()).into_iter().chain(ranks).collect();
    if !capacity::are_kept(&assignment, &bytes, capacity) {
        let rooms = Rooms { weights: &weights, owners: &owners, bytes: &bytes, movable: &movable, powers: &powers, capacity };
        assignment = capacity::keep(&rooms, &assignment)?;
    }
    let slowest = |assignment: &[u32]| problem.slowest(&problem.loads(&assignment[..ranges.len()]));
    let declined = !phase.shares.are_plain() && slowest(&assignment) > slowest(&owners) && capacity::are_kept(&owners, &bytes, capacity);
    if declined {
        assignment.clone_from(&owners);
    }
    let numbers = capacity::rounds(&owners, &assignment, &bytes, capacity)?;
    let mut rounds: Vec<Round> = Vec::new();
    for number in 1..=numbers.iter().copied().max().unwrap_or(0) {
        let mut round = Round { parts: vec![Vec::new(); all.len()], sources: vec![BTreeSet::new(); all.len()] };
        let (mut node, mut gone) = (NodeId::MAX, 0);
        for ((range, rank), in_round) in ranges.iter().zip(&assignment).zip(&numbers) {
            if range.node != node {
                (node, gone) = (range.node, 0);
            }
            if *in_round == number {
                // A virtual node's tasks stay on its rank unless they leave that.
                let dst = placement.real_node_of(RankId::new(*rank));
                round.parts[node as usize].push((range.at - gone, range.count, dst));
                round.sources[dst as usize].insert(node);
            } else if *in_round > 0 && *in_round < number {
                gone += range.count;
            }
        }
        rounds.push(round);
    }
    Ok(Planned { rounds, declined, tasks: ranges.len() as u64 })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use bytes::Bytes;

    use super::*;
    use crate::load::{Powers, Segment, Shares, Task};
    use crate::topology::{Overlay, Topology};
    use crate::transport::sim::Model;
    use crate::transport::world::World;

    /// Work and bytes of each rank's tasks after a phase; a task is (rank, weight, bytes).
    fn after(balancer: &str, tasks: &[(u32, u64, usize)], capacity: &[u64]) -> Result<Vec<(u64, u64)>> {
        let ranks = capacity.len() as u32;
        let mut world = World::simulated(ranks, Model::default());
        let overlay = Overlay::one_host(Topology::parse("complete", ranks).unwrap(), ranks).unwrap();
        let chosen = Rc::new(super::super::find(balancer).unwrap());
        let shares = Shares::new(Powers::equal(ranks, ranks)).weighted().with_capacity(capacity.to_vec());
        let results = crate::node::run(&mut world, &overlay, |node| {
            let task = |(id, (_, weight, bytes)): (usize, &(u32, u64, usize))| {
                Segment::from(Task { id: id as u64, weight: *weight, payload: Bytes::from(vec![0; *bytes]) })
            };
            let own: TaskBatch = tasks.iter().enumerate().filter(|(_, task)| task.0 == node.me()).map(task).collect();
            let mut queue = WorkQueue::new(own);
            let (chosen, shares) = (chosen.clone(), shares.clone());
            async move {
                let mut phase = Phase::begin(&node, &shares, &mut queue);
                phase.carry_out(&*chosen.made).await?;
                phase.end();
                Ok((queue.work(), queue.movable_bytes().iter().map(|(bytes, count)| bytes * count).sum()))
            }
        })?;
        let mut results: Vec<(NodeId, (u64, u64))> = results.into_iter().collect();
        results.sort_unstable();
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    #[test]
    fn room_is_made_before_it_is_taken() {
        // Rank 1 is full of light tasks, and rank 0 has the work.
        let tasks = [(0, 9, 5), (0, 8, 5), (0, 0, 1), (1, 1, 6), (1, 1, 4)];
        for balancer in ["greedy", "refine", "greedy-refine", "kk"] {
            let after = after(balancer, &tasks, &[11, 10, 10]).unwrap();
            assert_eq!(after.iter().map(|(work, _)| work).sum::<u64>(), 19, "{balancer}");
            assert!(after.iter().zip([11, 10, 10]).all(|((_, bytes), room)| *bytes <= room), "{balancer}: {after:?}");
            assert!(after.iter().all(|(work, _)| *work <= 10), "{balancer}: {after:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said_with_the_rank() {
        let why = after("greedy", &[(0, 9, 5), (1, 1, 5)], &[4, 4]).unwrap_err().to_string();
        assert!(why.contains("does not fit") && why.contains("rank 0 has room for 4 and would get 5"), "{why}");
    }
}
