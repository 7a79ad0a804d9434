//! The rank programs: one node searches, the others execute the schedule. With clusters each has a scheduler, under a top one.

use std::sync::Arc;

use super::Sash;
use super::clusters::{Cluster, Layout};
use super::estimates::estimates;
use super::messages::{ASSIGN, Assigned, COMPLETED, Completed, EFFORT, END};
use super::scheduler::{Members, Scheduler};
use crate::error::{Error, Result};
use crate::node::{Event, Node, Ticks, open};
use crate::schedule::independent::{Chunk, Effort, Executor, Figures, Independent, IndependentResult, Pace, collect};
use crate::topology::{NodeId, RankId};

/// One node's part.
///
/// # Errors
/// If a rank is lost.
pub async fn execute(node: Node, work: Arc<dyn Independent>, pace: Pace, sash: Arc<Sash>) -> Result<Option<IndependentResult>> {
    let (node, recorder) = node.recorded();
    let begun = node.now();
    let hosts = node.overlay().placement.hosts();
    let part = match sash.by_host && hosts.count() > 1 {
        true => Role::in_clusters(&node, Layout::by_host(work.costs(), hosts, sash.scheduler_rank)),
        false => {
            Role::of_one(&node, sash.scheduler_rank.among(work.costs(), &RankId::all(work.costs().ranks() as u32).collect::<Vec<_>>()))
        }
    };
    let executor = Executor::new(node.clone(), work.clone());
    let (figures, mine) = match part {
        Role::Worker { scheduler } => (worker(&node, executor, scheduler, begun, &pace).await?, None),
        Role::One { scheduler_rank } => {
            let by_model = pace.by_model && sash.error == 0.0 && !sash.alike;
            let estimates = estimates(work.costs(), &sash, pace.seed);
            let workers: Vec<RankId> = RankId::all(work.costs().ranks() as u32).filter(|rank| *rank != scheduler_rank).collect();
            let members = Members::ranks(&node, &workers);
            let mut one = Scheduler::new(node.clone(), work, executor, pace, sash, begun, scheduler_rank.index(), members, estimates);
            let makespan = if by_model { one.by_model().await? } else { one.by_clock().await? };
            one.end();
            let effort = Effort { scheduler: scheduler_rank, ..one.effort };
            (one.executor.figures, Some((makespan, effort)))
        }
        Role::Top { layout } => {
            let estimates = Arc::new(layout.costs(&estimates(work.costs(), &sash, pace.seed)));
            let members = Members::clusters(&node, &layout.clusters);
            let hosts = layout.clusters.iter().filter(|cluster| !cluster.workers.is_empty()).count();
            let column = layout.clusters.len();
            // A host's workers have a task each, and half of them one more, while the message about the end is under way.
            let ahead = 2 * pace.ahead + pace.ticks(work.costs().mean() * 3 / 2);
            let mut top = Scheduler::new(node.clone(), work, executor, pace, sash, begun, column, members, estimates).ahead_by(ahead);
            let makespan = top.by_clock().await?;
            top.end();
            let mut effort = Effort { scheduler: layout.top, ..top.effort };
            for _ in 0..hosts {
                let (_, theirs) = node.receive_any::<Effort>(EFFORT).await?;
                effort.decisions += theirs.decisions;
                effort.expansions += theirs.expansions;
                effort.generated += theirs.generated;
                effort.search += theirs.search;
            }
            (top.executor.figures, Some((makespan, effort)))
        }
        Role::Host { top, cluster } => {
            let estimates = estimates(work.costs(), &sash, pace.seed);
            let members = Members::ranks(&node, &cluster.workers);
            let mut host = Scheduler::new(node.clone(), work, executor, pace, sash, begun, cluster.scheduler.index(), members, estimates);
            host.under(top).await?;
            host.end();
            node.send(top, EFFORT, &host.effort);
            (host.executor.figures, None)
        }
    };
    let counts = recorder.get();
    let figures = Figures { elapsed: node.now() - begun, messages: counts.messages, bytes: counts.bytes, ..figures };
    collect(&node, figures, mine).await
}

/// Role of a node.
enum Role {
    Worker {
        scheduler: NodeId,
    },
    /// Schedules all others.
    One {
        scheduler_rank: RankId,
    },
    Top {
        layout: Layout,
    },
    /// Schedules a host's workers.
    Host {
        top: NodeId,
        cluster: Cluster,
    },
}

impl Role {
    fn of_one(node: &Node, scheduler_rank: RankId) -> Role {
        let scheduler = node.overlay().placement.real_node_of(scheduler_rank);
        if node.me() == scheduler { Role::One { scheduler_rank } } else { Role::Worker { scheduler } }
    }

    fn in_clusters(node: &Node, layout: Layout) -> Role {
        let node_of = |rank: RankId| node.overlay().placement.real_node_of(rank);
        let (me, top) = (node.rank_of(node.me()), node_of(layout.top));
        match layout.of(me) {
            None => Role::Top { layout },
            Some(cluster) if cluster.scheduler != me => Role::Worker { scheduler: node_of(cluster.scheduler) },
            Some(cluster) if cluster.workers.is_empty() => Role::Worker { scheduler: top },
            Some(cluster) => Role::Host { top, cluster: cluster.clone() },
        }
    }
}

/// A worker: it holds a queue, receives while it computes, and tells of every completion.
async fn worker(node: &Node, mut executor: Executor, scheduler: NodeId, begun: Ticks, pace: &Pace) -> Result<Figures> {
    loop {
        match node.next_event().await {
            Event::Message(message) if message.envelope.tag == ASSIGN.id() => {
                let assigned: Assigned = open(&message, ASSIGN)?;
                executor.figures.migrated += assigned.tasks.len() as u64;
                let due = assigned.due.map(|due| begun.saturating_add(pace.ticks(due)));
                executor.take(Chunk::List(assigned.tasks.into()), due);
            }
            Event::Message(message) if message.envelope.tag == END.id() => return Ok(executor.figures),
            Event::Finished { finished, .. } => {
                let done = executor.finished(finished)?;
                let tasks = done.tasks.tasks().into_iter().map(|task| task as u64).collect();
                node.send(scheduler, COMPLETED, &Completed { tasks, took: done.took });
            }
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
    }
}
