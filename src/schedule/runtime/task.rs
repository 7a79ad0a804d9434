//! A task at a node, in a message, and its answer on the way back.

use serde::{Deserialize, Serialize};

use crate::node::{Tag, Ticks, tags};
use crate::schedule::accounting::Name;
use crate::schedule::computation::Computation;
use crate::schedule::policy::ItemId;
use crate::topology::NodeId;

/// Tasks on their way to another node: a [`Cargo`].
pub(in crate::schedule) const TASKS: Tag = tags::schedule::TASKS;
/// Answers on their way to the parents that wait for them: the sender's load, if loads travel, and a row of [`Answered`] in the order in
/// which they came into being.
pub(in crate::schedule) const ANSWERS: Tag = tags::schedule::ANSWERS;

/// The receiver of a task's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Home {
    /// The join frame of this number on this node, where the task is child number `index`.
    Parent { node: NodeId, frame: u64, index: u32 },
    /// The host: the task is the root of this graph.
    Root { graph: u64 },
    /// No parent: the task is detached.
    Detached,
}

/// Everything about a task except its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskHeader {
    pub name: Name,
    pub home: Home,
    /// The label that the policy of the home's node gave it; 0 for none.
    pub label: u32,
    /// Number of its migrations.
    pub hops: u32,
    /// Length of the chain of tasks before it.
    pub chain: Ticks,
    /// Execution time so far, if it is executed in slices.
    pub spent: Ticks,
    /// Whether it is a part of a task that was split. Then its length gives no bound on how finely the work can be divided.
    pub divided: bool,
}

impl TaskHeader {
    /// The header of a task that is born now.
    pub fn new(name: Name, home: Home, chain: Ticks) -> TaskHeader {
        TaskHeader { name, home, label: 0, hops: 0, chain, spent: 0, divided: false }
    }
}

/// A task at a node.
pub(super) struct Item<C: Computation> {
    pub id: ItemId,
    pub header: TaskHeader,
    pub task: C::Task,
}

impl<C: Computation> Item<C> {
    /// Returns true if it begins a graph.
    pub fn is_root(&self) -> bool {
        matches!(self.header.home, Home::Root { .. })
    }
}

/// A task in a message.
#[derive(Serialize, Deserialize)]
pub(super) struct Travelling<T> {
    pub header: TaskHeader,
    /// Whether this is a migration, which may cost time at the receiver.
    pub migration: bool,
    /// Time of the migration, if the sender knows it.
    pub takes: Option<Ticks>,
    pub task: T,
}

impl<T> Travelling<T> {
    pub fn new(mut header: TaskHeader, task: T, migration: bool) -> Travelling<T> {
        header.hops += u32::from(migration);
        Travelling { header, migration, takes: None, task }
    }
}

/// A message of tasks.
#[derive(Serialize, Deserialize)]
pub(super) struct Cargo<T> {
    /// The sender's load, if loads travel.
    pub load: Option<u32>,
    pub tasks: Vec<Travelling<T>>,
}

/// An answer, and where it belongs.
#[derive(Serialize, Deserialize)]
pub(super) struct Answered<A> {
    /// The task whose answer it is.
    pub name: Name,
    pub home: Home,
    pub label: u32,
    /// Length of the longest chain of tasks up to the answer.
    pub chain: Ticks,
    pub answer: A,
}

impl<A> Answered<A> {
    pub fn new(header: TaskHeader, answer: A) -> Answered<A> {
        Answered { name: header.name, home: header.home, label: header.label, chain: header.chain, answer }
    }
}

/// Error for a task or an answer that fits into no message.
pub(super) fn too_large(what: &str, name: &str, bytes: usize, most: usize) -> String {
    format!("the {what} {name} takes {bytes} bytes; no more than {most} can be sent")
}
