//! Termination detection: Mattern's four-counter method ("Algorithms for distributed termination detection",
//! Distributed Computing 2, 1987, section 4), in waves over a binomial tree whose root is the host.
//!
//! Each node counts the messages with tasks or answers that it has sent and received. A wave asks every node for its two counts; a node that has
//! something to do answers when it has nothing more. If the number received in one wave equals the number sent in the next, all is done.
//!
//! Why: let `t` be the moment between the two waves. Counts only grow, so received(first wave) <= received(t) <= sent(t) <= sent(second
//! wave); if the ends are equal, all are: nothing is under way at `t`, and no node has received anything between its visit in the first
//! wave, when it was passive, and `t`. A passive node becomes active only by receiving, so all are passive at `t`, for ever.
//!
//! A wave asks downwards and sums counts upwards: 2 (n - 1) messages, 2 ceil(log2 n) of them one after the other
//! ([`Tree`](crate::schedule::tree::Tree)).
//!
//! Cost: at least two waves; more while detached tasks move between passive nodes. A wave whose counts differ is followed by a pause as long as
//! the wave was, so that waves never take more than about half of the time.

use serde::{Deserialize, Serialize};

use crate::node::{Tag, Ticks, TimerId, tags};
use crate::schedule::tree::Tree;

pub(super) const WAVE: Tag = tags::schedule::WAVE;

/// Messages of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Say {
    /// Downwards: a wave begins.
    Ask,
    /// Upwards: the counts of a sub-tree.
    Counts(Counts),
    /// Downwards: all is done.
    Stop,
}

/// Numbers of messages that may bring tasks or answers.
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

/// Next step of a node in termination detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Wait for messages.
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

    /// Next step with this node's own counts, given whether it is `passive`. Call it again after each step other than waiting.
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

/// A node's part in the detection of termination: the waves, and the counts that they sum up.
pub(super) struct Termination {
    waves: Waves,
    counts: Counts,
    /// The timer of a pause between two waves.
    pause: Option<TimerId>,
    stopped: bool,
}

impl Termination {
    pub fn new(tree: Tree) -> Termination {
        Termination { waves: Waves::new(tree), counts: Counts::default(), pause: None, stopped: false }
    }

    pub fn tree(&self) -> &Tree {
        &self.waves.tree
    }

    /// A message that may bring tasks or answers has left.
    pub fn sent(&mut self) {
        self.counts.sent += 1;
    }

    /// Counts a message that may bring tasks or answers to each child in the tree.
    pub fn sent_down(&mut self) {
        self.counts.sent += self.tree().children.len() as u64;
    }

    /// Counts a message that may have brought tasks or answers, when its content is here.
    pub fn received(&mut self) {
        self.counts.received += 1;
    }

    /// Returns true if this node knows that all is done.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// Next step, given whether the node is `passive`. Call it again after each step other than waiting and pausing.
    pub fn next(&mut self, passive: bool, now: Ticks) -> Next {
        let next = self.waves.next(passive, self.counts, now);
        self.stopped |= next == Next::Done;
        next
    }

    /// Handles a message of a wave. Returns the message to be passed down.
    ///
    /// # Errors
    /// If it does not belong in the wave.
    pub fn hear(&mut self, say: Say) -> Result<Option<Say>, String> {
        match say {
            Say::Stop => self.stopped = true,
            Say::Ask | Say::Counts(_) => self.waves.hear(say)?,
        }
        Ok((say == Say::Ask || say == Say::Stop).then_some(say))
    }

    /// Returns true if a pause needs a timer, because none is running.
    pub fn needs_timer(&self) -> bool {
        self.pause.is_none()
    }

    pub fn pauses(&mut self, timer: TimerId) {
        self.pause = Some(timer);
    }

    /// Ends the pause if this was its timer. Returns true if it was.
    pub fn pause_over(&mut self, timer: TimerId) -> bool {
        self.pause.take_if(|pause| *pause == timer).is_some()
    }
}

#[cfg(test)]
#[path = "termination_tests.rs"]
mod tests;
