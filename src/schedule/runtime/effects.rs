//! Effects: requests of the runtime's parts to the loop. A part appends them to a list that is reused for every call; the loop carries them
//! out in order.

use bytes::Bytes;

use crate::node::Tag;
use crate::schedule::accounting::{Happening, Name};
use crate::topology::NodeId;

#[derive(Debug)]
pub(super) enum Effect {
    /// Send a message that holds this many tasks. It counts for the detection of termination.
    Send { to: NodeId, tag: Tag, body: Bytes, tasks: u64 },
    /// Add a line about a task to the trace.
    Trace { task: Name, what: Happening },
}

/// Effects in the order in which they are to be carried out.
#[derive(Debug)]
pub(super) struct Effects {
    pub list: Vec<Effect>,
    /// Without a trace, lines for it are dropped here.
    tracing: bool,
}

impl Effects {
    pub fn new(tracing: bool) -> Effects {
        Effects { list: Vec::new(), tracing }
    }

    pub fn send(&mut self, to: NodeId, tag: Tag, body: Bytes, tasks: usize) {
        self.list.push(Effect::Send { to, tag, body, tasks: tasks as u64 });
    }

    /// Traces the same happening for each of these tasks.
    pub fn trace(&mut self, tasks: impl Iterator<Item = Name>, what: Happening) {
        if self.tracing {
            self.list.extend(tasks.map(|task| Effect::Trace { task, what }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_the_trace_are_kept_only_with_a_trace() {
        let task = Name { born: 1, number: 2 };
        for tracing in [false, true] {
            let mut effects = Effects::new(tracing);
            effects.trace([task, task].into_iter(), Happening::Left { to: 3 });
            assert_eq!(effects.list.len(), if tracing { 2 } else { 0 });
        }
    }
}
