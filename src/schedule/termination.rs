//! How the nodes find out that all is done: Mattern's four-counter method ("Algorithms for distributed termination detection",
//! Distributed Computing 2, 1987, section 4), in waves over a binomial tree whose root is the host.
//!
//! Each node counts the messages with tasks or answers that it has sent and received. A wave asks every node for its two counts; a node that has
//! something to do answers when it has nothing more. If the number received in one wave equals the number sent in the next, all is done.
//!
//! Why: let `t` be the moment between the two waves. Counts only grow, so received(first wave) <= received(t) <= sent(t) <= sent(second
//! wave); if the ends are equal, all are: nothing is under way at `t`, and no node has received anything between its visit in the first
//! wave, when it was passive, and `t`. A passive node becomes active only by receiving, so all are passive at `t`, for ever.
//!
//! ```text
//!   places, 8 nodes:        0            a wave: asked downwards, counts summed upwards,
//!                        / | \           2 (n - 1) messages, 2 ceil(log2 n) of them one after the other
//!                       4  2  1
//!                      /|  |
//!                     6 5  3
//!                     |
//!                     7
//! ```
//!
//! Cost: at least two waves; more while detached tasks move between passive nodes. A wave whose counts differ is followed by a pause as long as
//! the wave was, so that waves never take more than about half of the time.

use serde::{Deserialize, Serialize};

use crate::node::{Tag, Ticks};
use crate::topology::NodeId;

pub(super) const WAVE: Tag = crate::node::tags::schedule::WAVE;
pub(super) const REPORT: Tag = crate::node::tags::schedule::REPORT;

/// What the nodes say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Say {
    /// Downwards: a wave begins.
    Ask,
    /// Upwards: the counts of a sub-tree.
    Counts(Counts),
    /// Downwards: all is done.
    Stop,
}

/// Messages with tasks or answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub sent: u64,
    pub received: u64,
}

impl Counts {
    fn and(self, other: Counts) -> Counts {
        Counts { sent: self.sent + other.sent, received: self.received + other.received }
    }
}

/// A node's place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// `None` at the root.
    pub parent: Option<NodeId>,
    pub children: Vec<NodeId>,
}

impl Tree {
    /// The binomial tree over `nodes` nodes whose root is `root`: places are counted from there.
    pub fn new(me: NodeId, root: NodeId, nodes: u32) -> Tree {
        let node = |place: u64| ((u64::from(root) + place) % u64::from(nodes)) as NodeId;
        let place = u64::from((me + nodes - root) % nodes);
        // Place p's children set one bit below its lowest set bit.
        let below = if place == 0 { 32 } else { place.trailing_zeros() };
        let children = (0..below).rev().map(|bit| place | 1 << bit).filter(|child| *child < u64::from(nodes)).map(node).collect();
        Tree { parent: (place != 0).then(|| node(place & (place - 1))), children }
    }
}

/// What a node has to do for termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing: wait for messages.
    Wait,
    /// Ask the children.
    Ask,
    /// Answer the parent.
    Answer(Counts),
    /// Only at the root: come back at this time.
    Pause(Ticks),
    /// Only at the root: all is done.
    Done,
}

/// One node's part in the waves.
#[derive(Debug)]
pub(super) struct Waves {
    pub tree: Tree,
    state: State,
    /// Children whose counts are missing in this wave, and the sum of the others'.
    missing: usize,
    below: Counts,
    /// Root: received in the wave before, when this wave began, and when the next may.
    before: Option<u64>,
    began: Ticks,
    not_before: Ticks,
    /// Waves that ended here.
    pub waves: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// No wave is here.
    Between,
    /// A wave came, and this node has not answered.
    Asked,
}

/// Shortest and longest pause between two waves.
const PAUSE: (Ticks, Ticks) = (20_000, 1_000_000);

impl Waves {
    pub fn new(tree: Tree) -> Waves {
        Waves { tree, state: State::Between, missing: 0, below: Counts::default(), before: None, began: 0, not_before: 0, waves: 0 }
    }

    /// A message came.
    ///
    /// # Errors
    /// If it does not belong into the wave, which means that the nodes are not in the same run.
    pub fn hear(&mut self, say: Say) -> Result<(), String> {
        match (say, &self.state) {
            (Say::Ask, State::Between) => self.begin(),
            (Say::Counts(counts), State::Asked) if self.missing > 0 => {
                self.missing -= 1;
                self.below = self.below.and(counts);
            }
            _ => return Err(format!("a termination wave said {say:?} to a node that is {:?}", self.state)),
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.state = State::Asked;
        self.missing = self.tree.children.len();
        self.below = Counts::default();
    }

    /// What to do now, `passive` or not, with this node's own counts. Call it again after each step other than waiting.
    pub fn next(&mut self, passive: bool, own: Counts, now: Ticks) -> Next {
        match self.state {
            State::Between if self.tree.parent.is_none() && passive => {
                if now < self.not_before {
                    return Next::Pause(self.not_before);
                }
                self.begin();
                self.began = now;
                Next::Ask
            }
            State::Asked if self.missing == 0 && passive => {
                self.state = State::Between;
                self.waves += 1;
                let sum = self.below.and(own);
                if self.tree.parent.is_some() {
                    return Next::Answer(sum);
                }
                if self.before == Some(sum.sent) {
                    return Next::Done;
                }
                self.before = Some(sum.received);
                self.not_before = match sum.sent == sum.received {
                    true => now,
                    false => now + (now - self.began).clamp(PAUSE.0, PAUSE.1),
                };
                self.next(passive, own, now)
            }
            _ => Next::Wait,
        }
    }
}

#[cfg(test)]
#[path = "termination_tests.rs"]
mod tests;
