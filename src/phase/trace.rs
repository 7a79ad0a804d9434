//! Timeline of one phase by node: the parts of the phase, and every message.

use std::cell::RefCell;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::balance::Span;
use crate::error::Result;
use crate::node::{Node, Tag};
use crate::topology::{NodeId, Overlay};
use crate::transport::tape::{MessageTrace, TraceEvent};

/// Maximum number of nodes of a trace; each is a row of its picture.
pub const MOST_NODES: u32 = 4096;
/// Maximum number of sends and receives that a trace holds; beyond it only their number is known.
pub const MOST_PASSAGES: usize = 400_000;

/// One phase over time.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Name of the part.
    pub name: String,
    /// In node order.
    pub rows: Vec<NodeTrace>,
    pub overlay: Rc<Overlay>,
}

/// One node's part in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTrace {
    pub node: NodeId,
    /// Correction to be added to this node's times to get node 0's clock, in ticks.
    pub offset: i64,
    pub spans: Vec<Span>,
    pub passages: Vec<TraceEvent>,
    /// Passages that did not fit.
    pub missed: u64,
}

/// Events recorded by one node during a phase.
pub(super) struct Notes {
    pub tape: Rc<RefCell<MessageTrace>>,
    pub spans: Rc<RefCell<Vec<Span>>>,
}

impl Notes {
    /// Returns notes with room for `limit` passages.
    pub fn new(limit: usize) -> Notes {
        Notes { tape: Rc::new(RefCell::new(MessageTrace::new(limit))), spans: Rc::default() }
    }

    /// The node's trace, on its own clock as yet.
    pub fn of(self, node: NodeId) -> NodeTrace {
        let (passages, missed) = self.tape.borrow_mut().take();
        NodeTrace { node, offset: 0, spans: self.spans.take(), passages, missed }
    }
}

const CLOCK: Tag = crate::node::tags::phase::CLOCK;
const CLOCK_ANSWER: Tag = crate::node::tags::phase::CLOCK_ANSWER;
/// Questions to node 0; the one answered fastest counts.
const QUESTIONS: u32 = 9;

/// Node 0's clock minus this node's, in ticks. All nodes ask node 0 for its time, one after another. Its answer is assumed to be from half
/// way between question and arrival, so the error is less than half of the round trip (Cristian 1989).
///
/// # Errors
/// If a rank is lost.
pub async fn clock_offset(node: &Node) -> Result<i64> {
    if node.me() > 0 {
        let (mut least, mut offset) = (u64::MAX, 0);
        for question in 0..QUESTIONS {
            let asked = node.now();
            node.send(0, CLOCK, &question);
            let answer: u64 = node.receive(0, CLOCK_ANSWER).await?;
            let took = node.now() - asked;
            if took < least {
                (least, offset) = (took, answer as i64 - (asked + took / 2) as i64);
            }
        }
        return Ok(offset);
    }
    for other in 1..node.nodes() {
        for _ in 0..QUESTIONS {
            let _: u32 = node.receive(other, CLOCK).await?;
            node.send(other, CLOCK_ANSWER, &node.now());
        }
    }
    Ok(0)
}
