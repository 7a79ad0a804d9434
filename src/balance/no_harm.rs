//! No phase ends with a slower slowest rank than it began with.
//!
//! Time is work over power, of a rank: of all nodes that it hosts. Quotas in whole units, and tasks that can't be parted, may make the
//! slowest rank slower: one task of ten on a rank a tenth as fast. There are two ways to prevent it, and both know the slowest rank's time
//! at the beginning from one reduction over the ranks:
//!
//! - *Quotas under a cap.* Where the loads after a phase are its quotas exactly (unit tasks), no quota is more than the rank does in that time
//!   ([`Shares::harmless`](crate::load::Shares::harmless)). The reduction comes before the decision; `direct` and `optimal` know all loads anyway.
//! - *A check at the end.* Otherwise the reduction comes after the exchange, with the times before and after. Only if the slowest rank has
//!   become slower, tasks go back the way they came from where there are too many ([`Mover::take_back`](crate::node::migrate::Mover::take_back)).
//!
//! Pinned work on a rank without power never ends. It is left out of these times: otherwise the slowest rank could not become slower, and
//! everything were allowed.
//!
//! Unit tasks on equally fast ranks need neither, and pay nothing: the slowest rank gets the mean, rounded up.
//!
//! ```text
//!   rank      loads, powers    rule        a tenth of the power        either way
//!    0          0,  1            1         takes 1, ten times 0.1          0
//!    1          2, 10            1                                         2       declined
//! ```

use super::{Cost, Phase};
use crate::error::{Error, Result};
use crate::load::RankTime;
use crate::node::{Group, HEADER_BYTES, Tag};
use crate::topology::NodeId;

const OF_VIRTUAL: Tag = crate::node::tags::balance::OF_VIRTUAL;
const TO_VIRTUAL: Tag = crate::node::tags::balance::TO_VIRTUAL;

/// Times of the slowest rank, reduced over all ranks, and this node's cap.
pub(super) struct Slowest {
    /// Time of the slowest rank when the phase began, and with the current loads.
    pub before: RankTime,
    pub now: RankTime,
    /// Maximum load of this node: at least its load at first, and together with the other nodes of its rank no more than the rank can do in
    /// the time `before`.
    pub cap: u64,
}

/// Load of a node at first, and now.
type Held = (u64, u64);

/// Times of the slowest rank, at first and now. Virtual nodes report to the real node of their rank, which costs no message between ranks.
pub(super) async fn slowest(phase: &Phase<'_>) -> Result<Slowest> {
    let (node, me) = (phase.node, phase.node.me());
    let placement = &node.overlay().placement;
    let mine: Held = (phase.began_with, phase.load());
    let rank = placement.rank_of(me);
    let real = placement.real_node_of(rank);
    if me != real {
        node.send(real, OF_VIRTUAL, &mine);
        let (before, now, cap) = node.receive(real, TO_VIRTUAL).await?;
        return Ok(Slowest { before, now, cap });
    }
    let guests: Vec<NodeId> = if placement.native() { Vec::new() } else { placement.nodes_on(rank).split_off(1) };
    let mut held = vec![mine];
    for guest in &guests {
        held.push(node.receive::<Held>(*guest, OF_VIRTUAL).await?);
    }
    let sum = |of: fn(&Held) -> u64| held.iter().map(of).sum::<u64>();
    let power = phase.powers().of(me) + guests.iter().map(|guest| phase.powers().of(*guest)).sum::<u64>();
    // What is pinned on a rank without power never ends, whatever the others do.
    let pinned = std::iter::once(&me).chain(&guests).map(|node| phase.shares.pinned_on(*node)).sum();
    let times = [sum(|held| held.0), sum(|held| held.1)].map(|work| RankTime { work, power }.without_what_is_stuck(pinned));
    // The first nodes are the real ones.
    let ranks = Group::spaced(0, 1, placement.ranks(), me).ok_or_else(|| Error::Failed(format!("node {me} is not real")))?;
    let [before, now] = ranks.all_reduce(node, times, |a: [RankTime; 2], b| [a[0].max(b[0]), a[1].max(b[1])]).await?;
    let caps = caps(&held, before.most_work(power));
    for (guest, cap) in guests.iter().zip(&caps[1..]) {
        node.send(*guest, TO_VIRTUAL, &(before, now, *cap));
    }
    Ok(Slowest { before, now, cap: caps[0] })
}

/// Caps of the nodes of a rank that may hold `most` together: what each held at first, plus its part of the rank's remaining room, up to what it
/// holds more now.
fn caps(held: &[Held], most: u64) -> Vec<u64> {
    let mut room = most.saturating_sub(held.iter().map(|held| held.0).sum());
    let mut caps: Vec<u64> = held
        .iter()
        .map(|(before, now)| {
            let more = now.saturating_sub(*before).min(room);
            room -= more;
            before + more
        })
        .collect();
    caps[0] = caps[0].saturating_add(room);
    caps
}

/// Checks a phase that is over, on all nodes together, and takes back what makes the slowest rank slower.
pub(super) async fn check(phase: &mut Phase<'_>) -> Result<()> {
    phase.enter(super::Stage::Decision);
    let Slowest { before, now, cap } = slowest(phase).await?;
    if now > before {
        phase.decline();
        phase.enter(super::Stage::Exchange);
        phase.mover.take_back(cap).await?;
    }
    Ok(())
}

/// Upper bound on the cost of the reduction, in addition to a balancer's own [cost](super::Facts::cost).
pub fn cost(ranks: u32) -> Cost {
    let core = 1 << ranks.ilog2();
    let (rounds, folded) = (u64::from(ranks.ilog2()), u64::from(ranks) - core);
    let messages = core * rounds + 2 * folded;
    Cost { steps: rounds + if folded > 0 { 2 } else { 0 }, messages, bytes: messages * (HEADER_BYTES + 4 * 8) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::Trial;
    use crate::load::{Powers, Segment, Shares, TaskBatch, WorkQueue};

    fn powers(list: &[u64]) -> Powers {
        Powers::listed(list.to_vec()).unwrap()
    }

    #[test]
    fn the_nodes_of_a_rank_share_what_it_may_hold() {
        assert_eq!(caps(&[(3, 3)], 10), [10]);
        assert_eq!(caps(&[(3, 8), (0, 4), (2, 0)], 10), [8, 0, 2]);
        assert_eq!(caps(&[(3, 1), (0, 4), (2, 0)], 10), [4, 4, 2]);
        // The slowest rank never ends anyway.
        assert_eq!(caps(&[(3, 1), (0, 4)], u64::MAX), [u64::MAX - 4, 4]);
    }

    #[test]
    fn a_slow_rank_is_not_given_a_task_that_a_fast_one_has_done_by_then() {
        for balancer in ["pslb", "psts"] {
            let trial = Trial::with(balancer, "line:2", &[0, 2], powers(&[1, 10]), 0);
            assert_eq!((trial.declined, trial.after), (true, vec![0, 2]), "{balancer}");
            let trial = Trial::with(balancer, "line:2", &[2, 0], powers(&[1, 10]), 0);
            assert_eq!((trial.declined, trial.after), (false, vec![1, 1]), "{balancer}");
            let plain = Trial::plain(balancer, "line:2", &[0, 2], powers(&[1, 10]));
            assert_eq!((plain.declined, plain.after), (false, vec![1, 1]), "{balancer}");
        }
    }

    #[test]
    fn pinned_work_without_power_excuses_nothing() {
        let on = [
            ("pslb", "line:4"),
            ("psts", "line:4"),
            ("direct", "complete"),
            ("cwa", "hypercube:2"),
            ("dem", "ring:4"),
            ("refine", "line:4"),
        ];
        for (balancer, topology) in on {
            for weight in [1, 3] {
                // Nodes 1 and 2 have power 1 and 10; node 0 has none, and 5 that can't leave it.
                let shares = Shares::new(powers(&[0, 1, 10, 10])).with_pinned(vec![5, 0, 0, 0]);
                let shares = if weight > 1 { shares.weighted() } else { shares };
                let trial = Trial::of_queues(balancer, topology, shares, move |node| {
                    let row = |first: u64, count: u64, weight: u64| -> TaskBatch {
                        Segment::row(first, count, weight, bytes::Bytes::new()).into_iter().collect()
                    };
                    match node {
                        0 => WorkQueue::new(TaskBatch::default()).with_pinned(row(0, 5, 1)),
                        2 => WorkQueue::new(row(5, 2, weight)),
                        3 => WorkQueue::new(row(7, 1, weight)),
                        _ => WorkQueue::new(TaskBatch::default()),
                    }
                });
                assert_eq!((trial.after[0], trial.after[1]), (5, 0), "{balancer}: {:?}", trial.after);
            }
        }
    }

    #[test]
    fn the_quotas_of_others_are_met_under_the_cap() {
        // Shares by position would be 1 1 1 0 of three units; the first takes ten times as long as the others for one.
        let trial = Trial::with("psts", "line:4", &[0, 2, 1, 0], powers(&[1, 10, 10, 10]), 0);
        assert!(trial.declined && trial.after[0] == 0, "{:?}", trial.after);
    }

    #[test]
    fn equally_fast_ranks_pay_nothing() {
        // However the powers are written.
        for balancer in ["cwa", "kwa", "dem", "psts"] {
            let loads = [19, 11, 2, 9, 0, 9, 10, 4];
            let equal = Trial::of(balancer, "hypercube:3", &loads);
            let listed = Trial::with(balancer, "hypercube:3", &loads, powers(&[7; 8]), 0);
            let plain = Trial::plain(balancer, "hypercube:3", &loads, Powers::equal(8, 8));
            assert_eq!((equal.counts, &equal.plan), (listed.counts, &listed.plan), "{balancer}");
            assert_eq!((equal.counts, &equal.plan), (plain.counts, &plain.plan), "{balancer}");
        }
    }

    #[test]
    fn ranks_of_different_speed_pay_one_reduction() {
        let loads = [19, 11, 2, 9, 0, 9, 10, 4];
        let mixed = powers(&[1, 2, 3, 1, 2, 3, 1, 2]);
        let (trial, plain) =
            (Trial::with("cwa", "hypercube:3", &loads, mixed.clone(), 0), Trial::plain("cwa", "hypercube:3", &loads, mixed));
        let Cost { steps, messages, bytes } = cost(8);
        assert_eq!((steps, messages), (3, 24));
        assert_eq!(u64::from(trial.counts.chain - plain.counts.chain), steps);
        assert_eq!((trial.counts.messages - plain.counts.messages, trial.counts.bytes - plain.counts.bytes), (messages, bytes));
        assert_eq!(trial.plan, plain.plan);
        // A balancer that knows all loads pays nothing.
        let mixed = powers(&[1, 2, 3, 1, 2, 3, 1, 2]);
        let (trial, plain) =
            (Trial::with("direct", "complete:8", &loads, mixed.clone(), 0), Trial::plain("direct", "complete:8", &loads, mixed));
        assert_eq!((trial.counts, trial.plan), (plain.counts, plain.plan));
    }
}
