//! A partition that was computed elsewhere: another program (METIS, KaHIP, Zoltan) has said to which rank each task goes, and here it is carried out.
//!
//! 1. Each node looks up the destinations of its tasks, and reports the work for each destination (an all-gather).
//! 2. All nodes see whether the file fits the tasks, and whether the slowest rank would become slower; then nothing moves.
//! 3. Each node sends what does not stay, one message for each destination.
//!
//! ```text
//!   file     0 1 1 0        task 0 stays on rank 0, task 1 goes to 1, ..
//! ```
//!
//! Tasks are distinguished by their numbers (ids). The command line numbers them in the order of ranks: those of rank 0 come first. Pinned tasks stay, whatever the file says, and the phase says that something was declined.
//!
//! Cost: an all-gather with an entry for each pair of nodes with tasks between them, one step, at most a message for each pair.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Balancer, Chosen, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage, central, gathering,
    slowest_of,
};
use crate::error::{Error, Result};
use crate::load::{Shares, TaskBatch};
use crate::node::Gathered;
use crate::topology::{NodeId, Placement, RankId, Topology};

/// Prefix of its specification; the rest is a file name.
pub(super) const PREFIX: &str = "from:";

/// Not in the registry: it needs a file.
static ENTRY: Entry = Entry {
    name: "from",
    title: "a partition from a file",
    source: "another program: METIS, KaHIP, Zoltan",
    options: "FILE",
    examples: &[],
    build: unread,
    facts: Facts {
        kinds: central::ANY,
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::None,
        knows: Knowledge::Tasks,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost,
    },
};

/// An [`Offer`] has at most an entry for each other node.
fn cost(topology: &Topology) -> Cost {
    central::cost_of_all(topology, 25 + 12 * u64::from(topology.nodes() - 1))
}

fn unread(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Err(not_read())
}

/// Refusal of the bare name: a `from` balancer can only be made after its file was read.
pub(super) fn not_read() -> InvalidSpec {
    ENTRY.conflict("its file has to be read first, as the command line does")
}

/// The file that `from:FILE` names, if a specification is one.
pub fn partition_file(spec: &str) -> Option<&str> {
    spec.trim().strip_prefix(PREFIX)
}

/// The balancer that takes task i to the rank `parts[i]`; `file` is where that comes from, for sentences.
pub fn from_parts(file: &str, parts: Vec<RankId>) -> Chosen {
    let name = crate::names::one_line(format!("{PREFIX}{file}"));
    Chosen { name: name.clone(), entry: &ENTRY, made: Box::new(Parts { name, rank_of: parts.into() }) }
}

/// Reads a partition into `ranks` parts, numbered from 0. The text has a line for each task: either its part, in the order of the tasks'
/// numbers (METIS, KaHIP), or its number and its part, in any order (Zoltan). Blank lines are skipped, and so is text after a `#` or `%`.
///
/// # Errors
/// A clause with the line number if a line is neither, a part is out of range, or a task is named twice; a clause if a task is missing.
pub fn read_partition(text: &str, ranks: u32) -> Result<Vec<RankId>, String> {
    let mut named: BTreeMap<usize, (usize, RankId)> = BTreeMap::new();
    let mut columns = None;
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |why: String| format!("line {number}: {why}");
        let line = line.split(['#', '%']).next().unwrap_or_default();
        let items: Vec<&str> = line.split_whitespace().collect();
        if items.is_empty() {
            continue;
        }
        if items.len() > 2 {
            return Err(wrong(format!("{} numbers; a line has the part of a task, or a task and its part", items.len())));
        }
        if *columns.get_or_insert(items.len()) != items.len() {
            return Err(wrong("some lines have one number and some have two".into()));
        }
        let read = |text: &str| text.parse::<u64>().map_err(|_| wrong(format!("{text:?} is not a whole number of 0 or more")));
        let part = read(items[items.len() - 1])?;
        if part >= u64::from(ranks) {
            return Err(wrong(format!("part {part}, but there are {ranks} ranks, which are parts 0 to {}", ranks - 1)));
        }
        let task = if items.len() == 2 { read(items[0])? as usize } else { named.len() };
        if let Some((earlier, _)) = named.insert(task, (number, RankId::new(part as u32))) {
            return Err(wrong(format!("task {task} is on line {earlier} already")));
        }
    }
    match (0..named.len()).find(|task| !named.contains_key(task)) {
        Some(missing) => Err(format!("task {missing} is missing: {} tasks are named, which must be 0 to {}", named.len(), named.len() - 1)),
        None => Ok(named.into_values().map(|(_, part)| part).collect()),
    }
}

struct Parts {
    name: String,
    /// Destination rank of each task.
    rank_of: Arc<[RankId]>,
}

/// Report of a node on its tasks.
#[derive(serde::Serialize, serde::Deserialize)]
struct Offer {
    tasks: u64,
    load: u64,
    /// Work units that leave it, by destination.
    leaving: Vec<(NodeId, u64)>,
    /// Whether a pinned task should leave it.
    is_stuck: bool,
}

/// Verdict on the partition, derived from the reports of all nodes.
struct Judged {
    tasks: u64,
    is_slower: bool,
    is_stuck: bool,
    /// Nodes that send to each node.
    sources: Vec<Vec<NodeId>>,
}

impl Judged {
    fn of(all: &[Offer], shares: &Shares, placement: &Placement) -> Judged {
        let before: Vec<u64> = all.iter().map(|offer| offer.load).collect();
        let mut after = before.clone();
        let mut sources = vec![Vec::new(); all.len()];
        for (node, offer) in (0..).zip(all) {
            for (dst, work) in &offer.leaving {
                after[node as usize] -= work;
                after[*dst as usize] += work;
                sources[*dst as usize].push(node);
            }
        }
        let slowest = |loads: &[u64]| slowest_of(loads, shares, placement);
        Judged {
            tasks: all.iter().map(|offer| offer.tasks).sum(),
            is_slower: slowest(&after) > slowest(&before),
            is_stuck: all.iter().any(|offer| offer.is_stuck),
            sources,
        }
    }
}

impl Parts {
    async fn exchange(&self, phase: &mut Phase<'_>) -> Result<()> {
        let (node, me) = (phase.node, phase.node.me());
        let placement = &node.overlay().placement;
        let here = placement.rank_of(me);

        // Step 1.
        phase.enter(Stage::Information);
        let queue = &phase.mover.queue;
        // Beyond the file's end nothing matters: the numbers differ.
        let rank_of = |id: u64| usize::try_from(id).ok().and_then(|id| self.rank_of.get(id)).copied().unwrap_or(here);
        let mut parts: Vec<(u64, u64, NodeId)> = Vec::new();
        let mut leaving: BTreeMap<NodeId, u64> = BTreeMap::new();
        let mut at = 0;
        for segment in queue.movable_segments() {
            for id in segment.first()..segment.first() + segment.len() {
                let rank = rank_of(id);
                if rank != here {
                    let dst = placement.real_node_of(rank);
                    *leaving.entry(dst).or_default() += segment.weight();
                    match parts.last_mut() {
                        Some((first, count, to)) if *to == dst && *first + *count == at => *count += 1,
                        _ => parts.push((at, 1, dst)),
                    }
                }
                at += 1;
            }
        }
        let pinned = || queue.pinned().into_iter().flat_map(TaskBatch::segments);
        let is_stuck = pinned().any(|segment| (segment.first()..segment.first() + segment.len()).any(|id| rank_of(id) != here));
        let offer = Offer { tasks: queue.len(), load: queue.work(), leaving: leaving.into_iter().collect(), is_stuck };
        let all: Gathered<Offer> = gathering::gather(node, offer).await?;

        // Step 2.
        phase.enter(Stage::Decision);
        let judged = all.derive(|all| Judged::of(all, phase.shares, placement));
        drop(all);
        self.check_tasks(judged.tasks)?;
        let is_refused = judged.is_slower && !phase.shares.are_plain();
        if is_refused || judged.is_stuck {
            phase.decline();
        }
        if is_refused {
            return Ok(());
        }

        // Step 3.
        phase.enter(Stage::Exchange);
        phase.mover.deal_out(&parts).await;
        phase.mover.take_in_order(&judged.sources[me as usize]).await
    }
}

impl Balancer for Parts {
    /// A partition that makes the slowest rank slower is refused as a whole.
    fn is_checked(&self, _: &Shares, _: &Placement) -> bool {
        false
    }

    fn check_tasks(&self, tasks: u64) -> Result<()> {
        let (given, name) = (self.rank_of.len() as u64, &self.name);
        if given == tasks {
            return Ok(());
        }
        Err(Error::usage(format!("balancer {name}: it has the parts of {given} tasks, and there are {tasks}")))
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(self.exchange(phase))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::load::{Powers, Segment, WorkQueue};
    use crate::phase::{self, Setting};
    use crate::topology::{Overlay, Topology};
    use crate::transport::sim::Model;
    use crate::transport::world::World;

    /// The tasks of each of three ranks after a phase, and whether something was declined. At first each has two: 0 and 1, 2 and 3, 4 and 5.
    fn after(parts: &[u32], weights: [u64; 3], pinned: bool) -> Result<(Vec<Vec<u64>>, bool)> {
        let mut world = World::simulated(3, Model::default());
        let overlay = Overlay::one_host(Topology::parse("complete", 3).unwrap(), 3).unwrap();
        let row = move |node: u32, from: u64, count| Segment::row(from, count, weights[node as usize], bytes::Bytes::new()).unwrap();
        let queue = move |node: u32| {
            let first = 2 * u64::from(node);
            Ok(match pinned && node == 2 {
                true => {
                    WorkQueue::new([row(node, first, 1)].into_iter().collect()).with_pinned([row(node, first + 1, 1)].into_iter().collect())
                }
                false => WorkQueue::new([row(node, first, 2)].into_iter().collect()),
            })
        };
        let setting = Setting {
            balancer: Rc::new(from_parts("a.part", parts.iter().copied().map(RankId::new).collect())),
            shares: Shares::new(Powers::equal(3, 3)).weighted(),
            queue: Rc::new(queue),
            plan: true,
            weighted: true,
            trace: None,
        };
        let (outcome, queues) = phase::run_and_keep(&mut world, &overlay, &Rc::new(setting))?;
        let ids = |queue: &WorkQueue| {
            let mut ids: Vec<u64> = queue.segments().flat_map(Segment::tasks).map(|task| task.id).collect();
            ids.sort_unstable();
            ids
        };
        Ok((queues.iter().map(ids).collect(), outcome.unwrap().declined))
    }

    #[test]
    fn every_task_goes_where_the_file_says() {
        let (tasks, declined) = after(&[0, 2, 0, 1, 1, 2], [1, 1, 1], false).unwrap();
        assert_eq!((tasks, declined), (vec![vec![0, 2], vec![3, 4], vec![1, 5]], false));
    }

    #[test]
    fn what_is_pinned_stays_and_what_is_slower_does_not_happen() {
        let (tasks, declined) = after(&[0, 0, 1, 1, 1, 0], [1, 9, 9], true).unwrap();
        assert_eq!((tasks, declined), (vec![vec![0, 1], vec![2, 3], vec![4, 5]], true), "27 on rank 1");
        let (tasks, declined) = after(&[0, 0, 1, 0, 2, 0], [1, 9, 9], true).unwrap();
        assert_eq!((tasks, declined), (vec![vec![0, 1, 3], vec![2], vec![4, 5]], true), "5 is pinned");
    }

    #[test]
    fn a_file_for_other_tasks_is_refused() {
        let why = after(&[0, 1, 2], [1, 1, 1], false).unwrap_err().to_string();
        assert!(why.contains("balancer from:a.part: it has the parts of 3 tasks, and there are 6"), "{why}");
    }

    #[test]
    fn partitions_are_read_in_both_forms() {
        assert_eq!(read_partition("1\n0\n\n2 # a comment\n", 3), Ok([1, 0, 2].map(RankId::new).into()));
        assert_eq!(read_partition("% task part\n2 1\n0 0\n1\t2\n", 3), Ok([0, 2, 1].map(RankId::new).into()));
        assert_eq!(read_partition("", 3), Ok(vec![]));
        for (text, why) in [
            ("0\n3\n", "line 2: part 3, but there are 3 ranks, which are parts 0 to 2"),
            ("0\n\n-1\n", "line 3: \"-1\" is not a whole number of 0 or more"),
            ("0\n1.5\n", "line 2: \"1.5\" is not a whole number of 0 or more"),
            ("0 1 2\n", "line 1: 3 numbers; a line has the part of a task, or a task and its part"),
            ("0\n1 1\n", "line 2: some lines have one number and some have two"),
            ("0 1\n0 2\n", "line 2: task 0 is on line 1 already"),
            ("0 1\n2 2\n", "task 1 is missing: 2 tasks are named, which must be 0 to 1"),
        ] {
            assert_eq!(read_partition(text, 3), Err(why.into()));
        }
    }
}
