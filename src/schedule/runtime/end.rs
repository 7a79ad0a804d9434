//! The end of a run: reports, traces and answers are gathered at the host.

use std::rc::Rc;

use super::NodeRuntime;
use super::graphs::Graphs;
use crate::error::{LostTasks, Result};
use crate::node::{self, Recorder, Tag, Ticks, tags};
use crate::schedule::accounting::{NodeReport, RunResult};
use crate::schedule::computation::Computation;

/// To the parent in the tree, at the end: the reports of a sub-tree of nodes with the lengths of their traces, and the answers of detached tasks
/// there.
const REPORT: Tag = tags::schedule::REPORT;
/// To the host, at the end: a piece of a node's trace.
const TRACE: Tag = tags::schedule::TRACE;
/// Bytes of an entry of a trace, at most.
const ENTRY: usize = 40;
/// Maximum number of entries in a piece of a trace.
const PIECE: usize = 1 << 20;

impl<C: Computation> NodeRuntime<C> {
    /// Work left over at the end, if there is any.
    fn leftover(&self) -> Option<LostTasks> {
        let node = self.node.me();
        if self.is_passive() {
            return self.joins.any_parent().map(|name| LostTasks::Unanswered { node, task: name.to_string() });
        }
        let (ready, running, (unplaced, migrating)) = (self.tasks.ready(), self.running(), self.tasks.waiting());
        Some(LostTasks::LeftOver { node, ready, running, unplaced, migrating })
    }

    fn report(&mut self, now: Ticks, messages: &Recorder) -> NodeReport {
        let (me, totals, counts) = (self.node.me(), self.execution.totals(), messages.get());
        let (joins, peak_waiting) = self.joins.totals();
        NodeReport {
            node: me,
            rank: self.node.rank_of(me),
            is_virtual: self.node.overlay().placement.is_virtual(me),
            workers: self.execution.workers() as u32,
            elapsed: self.statistics.since_began(now),
            busy: totals.busy,
            needed: totals.needed,
            asleep: totals.asleep,
            overhead: self.statistics.overhead(),
            tasks: totals.tasks,
            joins,
            born: self.tasks.born(),
            detached: totals.detached,
            migrated_out: self.outbox.migrated(),
            migrated_in: self.statistics.migrated_in,
            largest: totals.largest,
            chain: totals.chain,
            peak_ready: self.tasks.peak_ready(),
            peak_waiting,
            messages: counts.messages,
            bytes: counts.bytes,
            control: self.statistics.control,
            trace: self.statistics.take_trace(),
        }
    }

    /// Ends the run when all is done: the reports of all nodes and the answers of detached tasks go to the host.
    pub(super) async fn end(mut self, messages: &Rc<Recorder>) -> Result<RunResult<C::Answer>> {
        let now = self.node.now();
        self.statistics.rests(self.node.now());
        if let Some(left) = self.leftover() {
            return Err(left.into());
        }
        let mut own = self.report(now, messages);
        let trace = std::mem::take(&mut own.trace);
        let mut nodes = vec![(own, trace.len() as u64)];
        for child in &self.termination.tree().children {
            let (mut theirs, partial): (Vec<(NodeReport, u64)>, Option<C::Answer>) = self.node.receive(*child, REPORT).await?;
            nodes.append(&mut theirs);
            partial.into_iter().for_each(|partial| self.joins.combine(partial));
        }
        let answer = self.joins.take_partial();
        if let Some(parent) = self.termination.tree().parent {
            let body = node::pack(&(&nodes, &answer));
            self.outbox.check_answer(body.len(), || "all detached tasks of a sub-tree of nodes".into())?;
            self.node.send_bytes(parent, REPORT, body);
            // A trace can be longer than a message may be, and goes through no other node.
            for piece in trace.chunks((self.outbox.largest() / ENTRY).clamp(1, PIECE)) {
                self.node.ready_to_send().await;
                self.node.send(self.termination.tree().root, TRACE, &piece);
            }
            return Ok(RunResult::elsewhere());
        }
        nodes.sort_by_key(|(report, _)| report.node);
        let mut reports = Vec::with_capacity(nodes.len());
        for (mut report, entries) in nodes {
            if report.node == self.node.me() {
                report.trace.extend_from_slice(&trace);
            }
            while (report.trace.len() as u64) < entries {
                report.trace.append(&mut self.node.receive(report.node, TRACE).await?);
            }
            reports.push(report);
        }
        let (graphs, gave_up) = self.graphs.take().map(Graphs::end).unwrap_or_default();
        Ok(RunResult::at_host(answer, graphs, gave_up, reports, self.statistics.since_began(now)))
    }
}
