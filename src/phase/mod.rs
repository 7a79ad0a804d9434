//! One balancing phase as a program for every node, measured and checked.
//!
//! ```text
//!   work queue -> line up   -> | balancer: information, decision, exchange | -> closing check, collection on node 0
//!           uncounted    |          counted and timed                |    uncounted, in an epoch of its own
//! ```

pub mod trace;

use std::collections::BTreeMap;
use std::rc::Rc;

use log::debug;
use serde::{Deserialize, Serialize};

use crate::balance::{Chosen, Phase, Times};
use crate::error::{Error, LostTasks, Result};
use crate::load::{Checksum, Column, ColumnRatio, Crossing, Crossings, Occupancy, Plan, Shares, TaskId, Transfer, WorkQueue};
use crate::node::{self, Node, Ticks, epochs};
use crate::topology::{NodeId, Overlay, Placement};
use crate::transport::record::Counts;
use crate::transport::world::World;
use trace::{NodeTrace, Notes};

/// Inputs of a phase other than the world and its overlay. Every process of the job builds the same ones.
#[derive(Clone)]
pub struct Setting {
    pub balancer: Rc<Chosen>,
    pub shares: Shares,
    /// A node's tasks at the beginning. Called once for each node that this process holds.
    pub queue: Rc<dyn Fn(NodeId) -> Result<WorkQueue>>,
    /// Whether to record the plan. A million nodes make ten million transfers, so it is left out where it is not used.
    pub plan: bool,
    /// Whether tasks may have several work units.
    pub weighted: bool,
    /// Maximum number of sends and receives that each node records; `None` if no trace is wanted.
    pub trace: Option<usize>,
}

/// Outcome of a phase, over all nodes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Work units by node: the number of tasks if these are unit tasks.
    pub finals: Vec<u64>,
    /// Number of tasks that never left their node.
    pub stayed: u64,
    /// The same and more in work units, where tasks may have several.
    pub work: Option<InWork>,
    /// All transfers; empty if it was not wanted.
    pub plan: Plan,
    /// Number of transfers.
    pub transfers: u64,
    pub counts: Counts,
    /// Ticks of the slowest node, and how it spent them.
    pub elapsed: u64,
    pub times: Times,
    /// Whether moves of the balancer's rule were declined, because they would have made the slowest rank slower.
    pub declined: bool,
    /// Bytes between tasks that cross ranks and hosts, where it is known which tasks talk to each other.
    pub crossings: Option<Crossings>,
    /// Imbalance of each weight before and after, where tasks have several.
    pub columns: Option<Vec<ColumnRatio>>,
    /// Bytes of tasks on each rank, where ranks have a capacity.
    pub memory: Option<Occupancy>,
    /// Trace of each node; empty if it was not wanted.
    pub trace: Vec<NodeTrace>,
}

/// Moved work, in work units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InWork {
    /// Work units of the tasks that never left their node.
    pub stayed: u64,
    /// Work units sent, times hops.
    pub hops: u128,
}

/// Some consecutive nodes' part of an outcome, on its way to node 0.
#[derive(Debug, Serialize, Deserialize)]
struct Tally {
    finals: Vec<u64>,
    stayed: u64,
    work: Option<Box<InWork>>,
    moves: Vec<Transfer>,
    transfers: u64,
    counts: Counts,
    elapsed: u64,
    times: Times,
    declined: bool,
    trace: Vec<NodeTrace>,
    /// Nodes with the numbers of their tasks before and after, where these are looked at one by one.
    held: Vec<(NodeId, Vec<TaskId>, Vec<TaskId>)>,
    /// Bytes of each node's tasks before and after, where ranks have a capacity.
    bytes: Vec<[u64; 2]>,
    before: Checksum,
    after: Checksum,
}

impl Tally {
    fn and(mut self, mut next: Tally) -> Tally {
        self.finals.append(&mut next.finals);
        self.moves.append(&mut next.moves);
        self.trace.append(&mut next.trace);
        self.held.append(&mut next.held);
        self.bytes.append(&mut next.bytes);
        let (elapsed, times) = if next.elapsed > self.elapsed { (next.elapsed, next.times) } else { (self.elapsed, self.times) };
        Tally {
            finals: self.finals,
            stayed: self.stayed + next.stayed,
            work: self
                .work
                .zip(next.work)
                .map(|(a, b)| Box::new(InWork { stayed: a.stayed + b.stayed, hops: a.hops.saturating_add(b.hops) })),
            moves: self.moves,
            transfers: self.transfers + next.transfers,
            counts: self.counts.and(next.counts),
            elapsed,
            times,
            declined: self.declined | next.declined,
            trace: self.trace,
            held: self.held,
            bytes: self.bytes,
            before: self.before.and(next.before),
            after: self.after.and(next.after),
        }
    }
}

/// Longest wait after which a rank is certainly still awake; see [`line_up`].
const AWAKE: Ticks = 50_000;
/// Maximum number of barriers in [`line_up`]: with many ranks to a core waits never become short.
const MOST_BARRIERS: u32 = 8;

/// Runs one phase. The outcome comes where node 0 is, and is `None` in all other processes.
///
/// # Errors
/// [`Error::Lost`] if tasks were lost, doubled or changed; on all ranks alike [`Error::NoRoom`], after which the world can be used
/// again; otherwise as [`World::run`].
pub fn run(world: &mut World, overlay: &Overlay, setting: &Rc<Setting>) -> Result<Option<Outcome>> {
    Ok(balanced(world, overlay, setting, false)?.0)
}

/// Runs one phase, and keeps the final tasks of each node that this process holds, in node order.
///
/// # Errors
/// As [`run`].
pub fn run_and_keep(world: &mut World, overlay: &Overlay, setting: &Rc<Setting>) -> Result<(Option<Outcome>, Vec<WorkQueue>)> {
    balanced(world, overlay, setting, true)
}

fn balanced(world: &mut World, overlay: &Overlay, setting: &Rc<Setting>, keep: bool) -> Result<(Option<Outcome>, Vec<WorkQueue>)> {
    // In simulation all programs begin at the same instant, so a barrier would only make them begin at different ones.
    let barrier = !world.is_simulated();
    let results = node::run(world, overlay, |node| {
        let setting = setting.clone();
        async move { no_room_apart(balance(node, setting, barrier, keep).await) }
    })?;
    let (mut outcome, mut kept) = (None, Vec::new());
    for (_, result) in results {
        let (of_all, queue) = result.map_err(Error::NoRoom)?;
        outcome = outcome.or(of_all);
        kept.extend(queue.map(|queue| *queue));
    }
    Ok((outcome.map(|outcome| *outcome), kept))
}

/// The result of a node, with [`Error::NoRoom`] taken apart: a program that returns it to its carrier would end the job, and all nodes return it.
fn no_room_apart<T>(result: Result<T>) -> Result<Result<T, String>> {
    match result {
        Err(Error::NoRoom(why)) => Ok(Err(why)),
        other => other.map(Ok),
    }
}

/// One node's part; the outcome is node 0's. In simulation there may be a million of these, so what is waited for before and after the phase
/// is boxed: it takes room only while it lasts.
async fn balance(node: Node, setting: Rc<Setting>, barrier: bool, keep: bool) -> Result<(Option<Box<Outcome>>, Option<Box<WorkQueue>>)> {
    let mut queue = (setting.queue)(node.me())?;
    let before = queue.checksum();
    let is_listed = setting.shares.links().is_some() || setting.shares.columns().is_some();
    let held = is_listed.then(|| ids(&queue));
    if barrier {
        Box::pin(line_up(&node.epoch(epochs::APART))).await?;
    }
    let mut tally = measure(&node, &setting, &mut queue).await?;
    if barrier && let Some(trace) = tally.trace.first_mut() {
        trace.offset = Box::pin(trace::clock_offset(&node.epoch(epochs::APART))).await?;
    }
    tally.before = before;
    tally.after = queue.checksum();
    if setting.shares.capacity().is_some() {
        tally.bytes.push([tally.before.payload, tally.after.payload]);
    }
    tally.held.extend(held.map(|before| (node.me(), before, ids(&queue))));
    // Dropped at once where nobody wants it.
    let kept = keep.then(|| Box::new(queue));
    let outcome = Box::pin(close(node.epoch(epochs::APART), tally, setting)).await?;
    Ok((outcome, kept))
}

/// Returns on all nodes at nearly the same time, with all ranks awake, as those of a program are that comes from its own computing.
///
/// One barrier is not enough: a rank that waits for long, while others still make their tasks, sleeps between its polls of the network, for up to a
/// millisecond. It may still sleep when the others have begun, whose time then includes its sleep. The shorter the wait, the shorter the sleep; so
/// barriers are repeated until no rank has waited in the last one long enough to have slept.
async fn line_up(node: &Node) -> Result<()> {
    let everyone = node.everyone();
    for _ in 0..MOST_BARRIERS {
        let began = node.now();
        everyone.barrier(node).await?;
        let waited = node.now() - began;
        let longest = everyone.all_reduce(node, waited, Ticks::max).await?;
        if longest <= AWAKE {
            break;
        }
        debug!("{node} lines up again: a node waited for {longest} ns");
    }
    Ok(())
}

/// The phase itself, counted and timed.
async fn measure(node: &Node, setting: &Setting, queue: &mut WorkQueue) -> Result<Box<Tally>> {
    let notes = setting.trace.map(Notes::new);
    let (counted, counts) = match &notes {
        None => node.recorded(),
        Some(notes) => node.taped(notes.tape.clone()),
    };
    let began = node.now();
    let mut phase = Phase::begin(&counted, &setting.shares, queue);
    if let Some(notes) = &notes {
        phase.note_spans(notes.spans.clone());
    }
    if !setting.plan && !setting.weighted {
        phase.mover.only_count();
    }
    phase.carry_out(&*setting.balancer.made).await?;
    let declined = phase.has_declined();
    let transfers = phase.mover.transfers();
    let (moves, times) = phase.end();
    let elapsed = node.now() - began;
    let hops = |sent: &Transfer| u128::from(sent.work) * u128::from(node.topology().distance(sent.src, sent.dst));
    let in_work = || InWork { stayed: queue.own_work(), hops: moves.iter().map(hops).fold(0, u128::saturating_add) };
    Ok(Box::new(Tally {
        finals: vec![queue.work()],
        stayed: queue.own(),
        work: setting.weighted.then(|| Box::new(in_work())),
        transfers,
        moves: if setting.plan { moves } else { Vec::new() },
        counts: counts.get(),
        elapsed,
        times,
        declined,
        trace: notes.map(|notes| notes.of(node.me())).into_iter().collect(),
        held: Vec::new(),
        bytes: Vec::new(),
        before: Checksum::default(),
        after: Checksum::default(),
    }))
}

/// The closing check, on node 0.
async fn close(node: Node, tally: Box<Tally>, setting: Rc<Setting>) -> Result<Option<Box<Outcome>>> {
    match node.everyone().reduce(&node, *tally, Tally::and).await? {
        None => Ok(None),
        Some(tally) => outcome(tally, &setting, &node.overlay().placement).map(|outcome| Some(Box::new(outcome))),
    }
}

/// The numbers of a queue's tasks.
fn ids(queue: &WorkQueue) -> Vec<TaskId> {
    queue.segments().flat_map(|segment| segment.first()..segment.first() + segment.len()).collect()
}

fn outcome(tally: Tally, setting: &Setting, placement: &Placement) -> Result<Outcome> {
    let Tally { finals, stayed, work, moves, transfers, counts, elapsed, times, declined, trace, held, bytes, before, after } = tally;
    conserved(&setting.balancer.name, &before, &after)?;
    let (mut were, mut are) = (BTreeMap::new(), BTreeMap::new());
    for (node, before, after) in held {
        let rank = placement.rank_of(node);
        were.extend(before.into_iter().map(|id| (id, rank)));
        are.extend(after.into_iter().map(|id| (id, rank)));
    }
    let shares = &setting.shares;
    let crossing = |links, ranks| Crossing::of(links, ranks, placement);
    let crossings = shares.links().map(|links| Crossings { before: crossing(links, &were), after: crossing(links, &are) });
    let columns = shares.columns().map(|columns| {
        let ratio = |column: &Column, ranks| column.ratio(ranks, shares.powers(), placement);
        let of = |column: &Column| ColumnRatio { name: column.name.clone(), before: ratio(column, &were), after: ratio(column, &are) };
        columns.iter().map(of).collect()
    });
    let memory = shares.capacity().map(|capacity| Occupancy::new(capacity, &bytes, placement));
    Ok(Outcome {
        finals,
        stayed,
        work: work.map(|work| *work),
        plan: Plan::new(moves),
        transfers,
        counts,
        elapsed,
        times,
        declined,
        crossings,
        columns,
        memory,
        trace,
    })
}

/// Checks that all nodes together hold the same tasks after a phase as before.
///
/// # Errors
/// [`Error::Lost`], with the figures that differ.
pub fn conserved(balancer: &str, before: &Checksum, after: &Checksum) -> Result<()> {
    match before == after {
        true => Ok(()),
        false => Err(LostTasks::Changed { balancer: balancer.to_string(), before: *before, after: *after }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance;
    use crate::load::Powers;
    use crate::topology::Topology;
    use crate::transport::sim;

    fn setting(balancer: &str, loads: &[u64]) -> Rc<Setting> {
        let held = loads.to_vec();
        let nodes = loads.len() as u32;
        Rc::new(Setting {
            balancer: Rc::new(balance::find(balancer).unwrap()),
            shares: Shares::new(Powers::equal(nodes, nodes)),
            queue: Rc::new(move |node| Ok(WorkQueue::numbered(&held, node))),
            plan: true,
            weighted: false,
            trace: None,
        })
    }

    #[test]
    fn the_papers_third_example() {
        let loads = &[19, 11, 2, 9, 0, 9, 10, 4];
        let mut world = World::simulated(8, sim::Model::default());
        let overlay = Overlay::one_host(Topology::parse("hypercube:3", 8).unwrap(), 8).unwrap();
        let (outcome, queues) = run_and_keep(&mut world, &overlay, &setting("cwa", loads)).unwrap();
        let outcome = outcome.unwrap();
        assert_eq!(outcome.finals, [8; 8]);
        assert_eq!(outcome.counts.task_hops, 21);
        assert_eq!(outcome.plan.apply(loads), Ok(vec![8; 8]));
        assert_eq!(outcome.transfers, outcome.plan.transfers.len() as u64);
        // Locality: no node's own tasks fall below the smaller of its load and its quota.
        assert_eq!(outcome.stayed, 46, "8 + 8 + 2 + 8 + 0 + 8 + 8 + 4");
        assert_eq!(queues.iter().map(WorkQueue::own).collect::<Vec<_>>(), [8, 8, 2, 8, 0, 8, 8, 4]);
        let times = outcome.times;
        assert_eq!(times.information + times.decision + times.exchange, outcome.elapsed);
        // 24 exchanged loads; a message per transfer, and some that carry a vector theta only.
        assert!((24 + outcome.transfers..=24 + 12).contains(&outcome.counts.messages));
        assert_eq!(outcome.counts.chain, 6);
    }
}
