//! Computations: the interface for programs whose tasks create tasks.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::node::{Ticks, Worker};

/// A computation as a graph of tasks that grows while it runs.
///
/// A task yields an answer, or children whose answers are joined later, or detached tasks, for which no parent waits. A waiting parent
/// holds no processor; it is resumed on the node where it waits. Every node has the same value of the computation; everything else travels
/// in tasks.
///
/// ```
/// use equipoise::{node::Worker, schedule::{Computation, Yield}};
///
/// struct Fibonacci;
///
/// impl Computation for Fibonacci {
///     type Task = u32;
///     type Answer = u64;
///     type Waiting = ();
///
///     fn execute(&self, n: u32, _: &mut dyn Worker) -> Yield<Self> {
///         if n < 2 { Yield::Answer(n.into()) } else { Yield::Children { tasks: vec![n - 1, n - 2], waiting: () } }
///     }
///
///     fn join(&self, _: (), answers: Vec<u64>) -> Yield<Self> {
///         Yield::Answer(answers.iter().sum())
///     }
///
///     fn combine(&self, into: u64, more: u64) -> u64 {
///         into + more
///     }
/// }
/// ```
pub trait Computation: Send + Sync + Sized + 'static {
    /// Data of a task. It is serialised only when it leaves its node.
    type Task: Serialize + DeserializeOwned + Send + 'static;
    /// The result of a task, or of a parent with all its children.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
    /// State that a parent keeps while it waits. It never leaves its node.
    type Waiting: Send + 'static;

    /// Default execution style of its tasks; [`Options::style`](super::Options::style) overrides it.
    const STYLE: Style = Style::Worker;

    /// Whether tasks can be [split](Computation::split). Then neither the largest task nor a chain of them is a lower bound on the time of
    /// a run.
    const DIVISIBLE: bool = false;

    /// Executes a task to its end. In simulation only what it tells the worker takes time.
    fn execute(&self, task: Self::Task, worker: &mut dyn Worker) -> Yield<Self>;

    /// Joins the answers of a parent's children, in the order in which they were spawned. Runs between two polls of the network, so it
    /// should be short. It may spawn again.
    fn join(&self, waiting: Self::Waiting, answers: Vec<Self::Answer>) -> Yield<Self>;

    /// Puts two answers that no parent waits for into one: of roots, of detached tasks, of the parts of a split task. In any order, so it must
    /// be commutative and associative.
    fn combine(&self, into: Self::Answer, more: Self::Answer) -> Self::Answer;

    /// Executes a task for about `budget` ticks. Only [`Style::Sliced`] calls it.
    fn step(&self, task: Self::Task, budget: Ticks, worker: &mut dyn Worker) -> Slice<Self> {
        let _ = budget;
        Slice::Done(self.execute(task, worker))
    }

    /// Takes a part off a task between two of its slices, about half of what is left; `None` if it can't be divided (now). The answers of
    /// both are [combined](Computation::combine).
    fn split(&self, task: &mut Self::Task) -> Option<Self::Task> {
        let _ = task;
        None
    }
}

/// The result of executing a task, or of joining answers.
pub enum Yield<C: Computation> {
    /// The task's answer.
    Answer(C::Answer),
    /// The task waits for these, at this node, and is joined when all of them are answered.
    Children {
        /// The children. Their answers come in the same order.
        tasks: Vec<C::Task>,
        /// State of the parent, which [`join`](Computation::join) gets back.
        waiting: C::Waiting,
    },
    /// The task's answer, and detached tasks: no parent waits for their answers, which are combined into the run's.
    Detached {
        /// The detached tasks.
        tasks: Vec<C::Task>,
        /// The answer of the task itself.
        answer: C::Answer,
    },
}

/// Result of a slice of a task.
pub enum Slice<C: Computation> {
    /// The task is not done: the rest of it.
    More(C::Task),
    /// The task is done, with this result.
    Done(Yield<C>),
}

/// Way in which a node executes its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Each on one of the rank's worker threads, so that the rank answers meanwhile: for tasks above some tens of microseconds.
    Worker,
    /// On the communication thread, in slices between two polls of the network: for tasks shorter than a hand-over to a worker.
    Inline,
    /// In slices, between which the task can be [split](Computation::split): on the communication thread with one worker, on worker
    /// threads with more.
    Sliced,
}

/// The tasks that a run begins with. Only the host's are used: elsewhere pass [`Roots::Elsewhere`].
pub enum Roots<C: Computation> {
    /// A task of the computation itself.
    One(C::Task),
    /// Several, at once.
    Many(Vec<C::Task>),
    /// Tasks that arrive over time.
    Stream(Box<dyn Source<C>>),
    /// This node is not the host.
    Elsewhere,
}

/// Source of the roots of a stream.
pub trait Source<C: Computation> {
    /// The next root and when it arrives, in ticks from the beginning of the run, not before the one before it. It is asked for when the one
    /// before it has arrived. `None`: no more will come.
    fn next(&mut self) -> Option<(Ticks, C::Task)>;

    /// Hears that the graph of a root was answered, `response` ticks after it arrived. Graphs are numbered from 0.
    fn answered(&mut self, graph: u64, response: Ticks) {
        let _ = (graph, response);
    }

    /// Returns true if the stream ended early, because roots came faster than their graphs were answered.
    fn gave_up(&self) -> bool {
        false
    }
}

/// Any iterator over arrivals is a source.
impl<C: Computation, I: Iterator<Item = (Ticks, C::Task)>> Source<C> for I {
    fn next(&mut self) -> Option<(Ticks, C::Task)> {
        Iterator::next(self)
    }
}
