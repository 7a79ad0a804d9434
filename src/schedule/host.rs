//! The host's part: it submits the roots and hears when their graphs are answered.

use std::collections::BTreeMap;

use super::accounting::Graph;
use super::computation::{Computation, Roots, Source};
use super::item::Home;
use super::policy::{New, Occurrence, Origin};
use super::runtime::Shell;
use crate::error::{Error, Result};
use crate::node::{Ticks, TimerId};

pub(super) struct Host<C: Computation> {
    /// Where more roots come from.
    source: Option<Box<dyn Source<C>>>,
    /// The root that arrives next, and the timer that tells when.
    next: Option<(TimerId, C::Task)>,
    submitted: u64,
    /// When the graphs that are not answered were submitted.
    open: BTreeMap<u64, Ticks>,
    answered: Vec<Graph>,
}

impl<C: Computation> Host<C> {
    /// Whether no root will come and none is unanswered.
    pub fn is_done(&self) -> bool {
        self.next.is_none() && self.open.is_empty()
    }

    /// The graphs in the order in which they were answered, and whether their source gave up.
    pub fn end(self) -> (Vec<Graph>, bool) {
        (self.answered, self.source.is_some_and(|source| source.gave_up()))
    }
}

impl<C: Computation> Shell<C> {
    /// Begins with the roots.
    pub(super) fn submit(&mut self, roots: Roots<C>) -> Result<()> {
        self.host = Some(Host { source: None, next: None, submitted: 0, open: BTreeMap::new(), answered: Vec::new() });
        match roots {
            Roots::One(task) => self.submit_all(vec![task], false),
            Roots::Many(tasks) => self.submit_all(tasks, false),
            Roots::Stream(source) => {
                if let Some(host) = &mut self.host {
                    host.source = Some(source);
                }
                self.await_next();
                Ok(())
            }
            Roots::Elsewhere => Err(Error::Failed(format!("node {} is the host, but was given no roots", self.me))),
        }
    }

    fn submit_all(&mut self, tasks: Vec<C::Task>, stream: bool) -> Result<()> {
        let now = self.node.now().saturating_sub(self.began);
        let mut items: Vec<New> = Vec::with_capacity(tasks.len());
        for task in tasks {
            let Some(host) = &mut self.host else { break };
            let graph = host.submitted;
            host.submitted += 1;
            host.open.insert(graph, now);
            let header = self.birth(Home::Root { graph }, 0);
            items.push(self.enter(header, task));
        }
        match items.is_empty() {
            true => Ok(()),
            false => self.tell(Occurrence::New(&items, Origin::Root { stream })),
        }
    }

    /// Asks the source for the next root.
    fn await_next(&mut self) {
        let Some(host) = &mut self.host else { return };
        host.next = None;
        if let Some((at, task)) = host.source.as_mut().and_then(|source| source.next()) {
            let timer = self.node.set_timer(self.began.saturating_add(at));
            host.next = Some((timer, task));
        }
    }

    /// The time of a root has come.
    pub(super) fn arrival(&mut self, timer: TimerId) -> Result<()> {
        let Some(host) = &mut self.host else { return Ok(()) };
        let Some((_, task)) = host.next.take_if(|(expected, _)| *expected == timer) else { return Ok(()) };
        self.submit_all(vec![task], true)?;
        self.node.progressed();
        self.await_next();
        Ok(())
    }

    /// A graph is answered.
    pub(super) fn graph_answered(&mut self, number: u64, answer: C::Answer) -> Result<()> {
        let now = self.node.now().saturating_sub(self.began);
        let unknown = || Error::Lost(format!("the answer of graph {number} came, but nobody waits for it"));
        let host = self.host.as_mut().ok_or_else(unknown)?;
        let submitted = host.open.remove(&number).ok_or_else(unknown)?;
        host.answered.push(Graph { number, submitted, answered: now });
        if let Some(source) = &mut host.source {
            source.answered(number, now - submitted);
        }
        self.combine(answer);
        Ok(())
    }
}
