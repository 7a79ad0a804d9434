//! Statistics of a node beyond those of the other parts: the time in which its program did something other than executing tasks, control
//! messages, arrivals, and the trace.

use crate::node::Ticks;
use crate::schedule::accounting::{Entry, Happening, Name};

pub(super) struct Statistics {
    began: Ticks,
    tracing: bool,
    trace: Vec<Entry>,
    /// Time since which the program has not waited, and time for which it has executed tasks since then.
    awake_since: Ticks,
    executed: Ticks,
    overhead: Ticks,
    /// Number of messages of the policy, of the termination waves and of system phases.
    pub control: u64,
    /// Number of migrations that arrived.
    pub migrated_in: u64,
}

impl Statistics {
    pub fn new(began: Ticks, tracing: bool) -> Statistics {
        Statistics { began, tracing, trace: Vec::new(), awake_since: began, executed: 0, overhead: 0, control: 0, migrated_in: 0 }
    }

    /// Ticks from the node's beginning in the run.
    pub fn since_began(&self, now: Ticks) -> Ticks {
        now.saturating_sub(self.began)
    }

    /// The time of the node's clock at which this many ticks have gone by since its beginning.
    pub fn at(&self, ticks: Ticks) -> Ticks {
        self.began.saturating_add(ticks)
    }

    /// Returns true if a trace is recorded.
    pub fn is_tracing(&self) -> bool {
        self.tracing
    }

    /// Adds a line to the trace, if there is one.
    pub fn trace(&mut self, at: Ticks, task: Option<Name>, what: Happening) {
        if self.tracing {
            self.trace.push(Entry { at: self.since_began(at), task, what });
        }
    }

    /// The program has something to do from now on.
    pub fn wakes(&mut self, now: Ticks) {
        self.awake_since = now;
    }

    /// The communication thread has executed a task for this long.
    pub fn executed(&mut self, ticks: Ticks) {
        self.executed += ticks;
    }

    /// The program has nothing to do: what it did apart from executing tasks is overhead.
    pub fn rests(&mut self, now: Ticks) {
        let awake = now.saturating_sub(self.awake_since);
        self.overhead += awake.saturating_sub(std::mem::take(&mut self.executed));
    }

    pub fn overhead(&self) -> Ticks {
        self.overhead
    }

    pub fn take_trace(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_the_time_awake_without_the_tasks() {
        let mut statistics = Statistics::new(100, false);
        statistics.executed(30);
        statistics.executed(20);
        statistics.rests(170);
        assert_eq!(statistics.overhead(), 20);
        // Time asleep does not count, nor do tasks twice.
        statistics.wakes(500);
        statistics.rests(507);
        assert_eq!(statistics.overhead(), 27);
        assert_eq!((statistics.since_began(507), statistics.at(407)), (407, 507));
    }

    #[test]
    fn a_trace_is_kept_only_if_it_is_asked_for_and_counts_from_the_beginning() {
        for tracing in [false, true] {
            let mut statistics = Statistics::new(100, tracing);
            statistics.trace(130, None, Happening::Announced { to: 2 });
            let expected = Entry { at: 30, task: None, what: Happening::Announced { to: 2 } };
            assert_eq!(statistics.take_trace(), if tracing { vec![expected] } else { Vec::new() });
        }
    }
}
