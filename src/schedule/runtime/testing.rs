//! A computation with small numbers for tasks and answers, for the tests of the runtime's parts.

use crate::node::Worker;
use crate::schedule::computation::{Computation, Slice, Yield};

/// A task below 100 is its own answer and takes that number of ticks; others spawn what [`children`](Sum::children) says. Answers are summed up.
pub(super) struct Sum;

impl Sum {
    fn children(task: u64) -> Vec<u64> {
        (0..task / 100 - 1).map(|child| child + 1).collect()
    }
}

impl Computation for Sum {
    type Task = u64;
    type Answer = u64;
    type Waiting = ();

    fn execute(&self, task: u64, worker: &mut dyn Worker) -> Yield<Self> {
        worker.spin(task);
        if task < 100 { Yield::Answer(task) } else { Yield::Children { tasks: Sum::children(task), waiting: () } }
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(answers.into_iter().sum())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }

    fn step(&self, task: u64, budget: u64, worker: &mut dyn Worker) -> Slice<Self> {
        if task <= budget {
            return Slice::Done(self.execute(task, worker));
        }
        worker.spin(budget);
        Slice::More(task - budget)
    }

    fn split(&self, task: &mut u64) -> Option<u64> {
        let part = *task / 2;
        *task -= part;
        (part > 0).then_some(part)
    }
}
