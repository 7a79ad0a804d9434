//! Answers at a node: each goes to the parent that waits for it here, which is resumed when it has all of them, or leaves for another node. Answers
//! of detached tasks are combined.

use std::collections::VecDeque;
use std::sync::Arc;

use super::frames::{JoinFrames, Resumed, Then};
use super::task::{Answered, Home, TaskHeader};
use crate::error::Result;
use crate::node::Ticks;
use crate::schedule::accounting::Name;
use crate::schedule::computation::{Computation, Yield};
use crate::schedule::policy::ItemId;
use crate::topology::NodeId;

pub(super) struct Joins<C: Computation> {
    computation: Arc<C>,
    me: NodeId,
    /// Destination of the answers of roots.
    host: NodeId,
    frames: JoinFrames<C>,
    /// Answers that are to be delivered.
    answers: VecDeque<Answered<C::Answer>>,
    /// Combined answers of detached tasks and roots that ended up here.
    partial: Option<C::Answer>,
    /// Number of parents that were resumed.
    joined: u64,
}

/// Destination of an answer.
pub(super) enum Delivery<A> {
    /// On another node.
    Elsewhere(NodeId, Answered<A>),
    /// To a parent that waits here.
    Parent(Child, Answered<A>),
    /// To the host, which this node is: its graph of this number is answered.
    Graph(u64, Answered<A>),
}

/// A place in a join frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    frame: u64,
    index: u32,
}

/// Tasks that a task or a join spawned.
pub(super) struct Spawned<T> {
    pub tasks: Vec<T>,
    /// The node and the join frame where a parent waits for them, if one does.
    pub frame: Option<(NodeId, u64)>,
}

impl<T> Spawned<T> {
    /// The tasks, each with the receiver of its answer.
    pub fn with_homes(self) -> impl Iterator<Item = (Home, T)> {
        let frame = self.frame;
        let home = move |index| frame.map_or(Home::Detached, |(node, frame)| Home::Parent { node, frame, index });
        (0..).zip(self.tasks).map(move |(index, task)| (home(index), task))
    }
}

impl<C: Computation> Joins<C> {
    pub fn new(computation: Arc<C>, me: NodeId, host: NodeId) -> Joins<C> {
        Joins { computation, me, host, frames: JoinFrames::default(), answers: VecDeque::new(), partial: None, joined: 0 }
    }

    /// An answer came from another node.
    pub fn arrive(&mut self, answered: Answered<C::Answer>) {
        self.answers.push_back(answered);
    }

    /// The next answer to be delivered. Answers of detached tasks are combined on the way.
    pub fn next(&mut self) -> Option<Delivery<C::Answer>> {
        while let Some(answered) = self.answers.pop_front() {
            match answered.home {
                Home::Detached => self.combine(answered.answer),
                Home::Parent { node, .. } if node != self.me => return Some(Delivery::Elsewhere(node, answered)),
                Home::Root { .. } if self.host != self.me => return Some(Delivery::Elsewhere(self.host, answered)),
                Home::Parent { frame, index, .. } => return Some(Delivery::Parent(Child { frame, index }, answered)),
                Home::Root { graph } => return Some(Delivery::Graph(graph, answered)),
            }
        }
        None
    }

    /// A child is answered. Returns its parent when it was the last one.
    ///
    /// # Errors
    /// If no parent waits for this answer.
    pub fn answer(&mut self, child: Child, chain: Ticks, answer: C::Answer) -> Result<Option<Resumed<C>>> {
        self.frames.answer(child.frame, child.index, chain, answer)
    }

    /// Resumes a parent. Returns the tasks that it spawns, if any; otherwise its answer is to be delivered.
    pub fn resume(&mut self, resumed: Resumed<C>) -> Option<Spawned<C::Task>> {
        let Resumed { parent, header, then, answers } = resumed;
        match then {
            Then::Join(waiting) => {
                self.joined += 1;
                let yielded = self.computation.join(waiting, answers);
                self.take(parent, header, yielded)
            }
            Then::Combine => {
                let whole = answers.into_iter().reduce(|into, more| self.computation.combine(into, more));
                self.answers.extend(whole.map(|answer| Answered::new(header, answer)));
                None
            }
        }
    }

    /// Takes the result of a task or a join. Returns the tasks that it spawns, if any; its answer, if there is one, is to be delivered.
    pub fn take(&mut self, parent: ItemId, header: TaskHeader, mut yielded: Yield<C>) -> Option<Spawned<C::Task>> {
        loop {
            match yielded {
                Yield::Answer(answer) => {
                    self.answers.push_back(Answered::new(header, answer));
                    return None;
                }
                // A parent without children waits for nothing.
                Yield::Children { tasks, waiting } if tasks.is_empty() => {
                    self.joined += 1;
                    yielded = self.computation.join(waiting, Vec::new());
                }
                Yield::Children { tasks, waiting } => {
                    let frame = self.frames.open(parent, header, Then::Join(waiting), tasks.len() as u32);
                    return Some(Spawned { tasks, frame: Some((self.me, frame)) });
                }
                Yield::Detached { tasks, answer } => {
                    self.answers.push_back(Answered::new(header, answer));
                    return Some(Spawned { tasks, frame: None });
                }
            }
        }
    }

    /// Records that a part is split off a task: the receiver of the task's answer then waits for both. Returns the receiver of the part's answer.
    pub fn split(&mut self, task: ItemId, header: &mut TaskHeader) -> Home {
        header.divided = true;
        if header.home == Home::Detached {
            return Home::Detached;
        }
        let frame = self.frames.open(task, *header, Then::Combine, 2);
        let part = |index| Home::Parent { node: self.me, frame, index };
        (header.home, header.label) = (part(0), 0);
        part(1)
    }

    /// Combines a detached task's answer with the others of detached tasks.
    pub fn combine(&mut self, answer: C::Answer) {
        self.partial = Some(match self.partial.take() {
            Some(partial) => self.computation.combine(partial, answer),
            None => answer,
        });
    }

    /// Returns true if all answers are delivered.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// A parent that waits, if there is one.
    pub fn any_parent(&self) -> Option<Name> {
        self.frames.any_parent()
    }

    /// Number of parents that were resumed, and the largest number that waited at one time.
    pub fn totals(&self) -> (u64, u64) {
        (self.joined, self.frames.peak as u64)
    }

    /// Takes the combined answers of detached tasks.
    pub fn take_partial(&mut self) -> Option<C::Answer> {
        self.partial.take()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Sum;
    use super::*;

    fn joins(me: NodeId) -> Joins<Sum> {
        Joins::new(Arc::new(Sum), me, 0)
    }

    fn header(number: u64, home: Home) -> TaskHeader {
        TaskHeader::new(Name { born: 0, number }, home, 0)
    }

    #[test]
    fn a_parent_is_resumed_with_its_children_answered_and_its_answer_leaves_for_its_home() {
        let mut joins = joins(2);
        let elsewhere = Home::Parent { node: 5, frame: 7, index: 1 };
        let yielded = Yield::Children { tasks: vec![10, 20], waiting: () };
        let spawned = joins.take(ItemId(1), TaskHeader { label: 3, ..header(4, elsewhere) }, yielded).unwrap();
        assert_eq!(spawned.frame.map(|(node, _)| node), Some(2));
        let children: Vec<_> = spawned.with_homes().collect();
        assert!(joins.any_parent().is_some() && joins.next().is_none());
        // The second child is answered first, by another node.
        for (home, task) in children.into_iter().rev() {
            joins.arrive(Answered::new(TaskHeader { chain: task, ..header(9, home) }, task));
            let Some(Delivery::Parent(child, answered)) = joins.next() else { panic!("the parent is here") };
            let resumed = joins.answer(child, answered.chain, answered.answer).unwrap();
            assert_eq!(resumed.is_some(), task == 10);
            if let Some(resumed) = resumed {
                assert_eq!(resumed.answers, [10, 20]);
                assert!(joins.resume(resumed).is_none());
                assert!(joins.answer(child, 0, 1).is_err(), "nobody waits any more");
            }
        }
        let Some(Delivery::Elsewhere(5, answered)) = joins.next() else { panic!("its own parent is on node 5") };
        assert_eq!((answered.answer, answered.label, answered.chain, answered.home), (30, 3, 20, elsewhere));
        assert_eq!((joins.any_parent(), joins.is_empty(), joins.totals()), (None, true, (1, 1)));
    }

    #[test]
    fn answers_of_roots_go_to_the_host_and_those_of_detached_tasks_are_combined_where_they_are() {
        for me in [0, 2] {
            let mut joins = joins(me);
            let yielded = Yield::Detached { tasks: vec![1, 2], answer: 5 };
            let spawned = joins.take(ItemId(1), header(0, Home::Detached), yielded).unwrap();
            assert!(spawned.with_homes().all(|(home, _)| home == Home::Detached));
            joins.take(ItemId(2), header(1, Home::Detached), Yield::Answer(6));
            joins.take(ItemId(3), header(2, Home::Root { graph: 8 }), Yield::Answer(7));
            match joins.next() {
                Some(Delivery::Graph(8, answered)) if me == 0 => joins.combine(answered.answer),
                Some(Delivery::Elsewhere(0, answered)) if me == 2 => assert_eq!(answered.answer, 7),
                _ => panic!("the answer of a root on node {me}"),
            }
            assert!(joins.next().is_none());
            assert_eq!(joins.take_partial(), Some(if me == 0 { 18 } else { 11 }));
        }
    }

    #[test]
    fn a_parent_without_children_is_resumed_at_once() {
        let mut joins = joins(0);
        assert!(joins.take(ItemId(1), header(0, Home::Detached), Yield::Children { tasks: Vec::new(), waiting: () }).is_none());
        assert!(joins.next().is_none());
        assert_eq!((joins.take_partial(), joins.totals()), (Some(0), (1, 0)));
    }

    #[test]
    fn who_waits_for_a_task_that_is_split_gets_one_answer_of_both_parts() {
        let mut joins = joins(1);
        let home = Home::Root { graph: 2 };
        let mut task = TaskHeader { label: 6, ..header(3, home) };
        let part = header(4, joins.split(ItemId(1), &mut task));
        assert!(task.divided && task.label == 0);
        for (header, answer) in [(part, 30), (task, 12)] {
            joins.take(ItemId(1), header, Yield::Answer(answer));
            let Some(Delivery::Parent(child, answered)) = joins.next() else { panic!("both parts belong here") };
            if let Some(resumed) = joins.answer(child, 0, answered.answer).unwrap() {
                assert!(joins.resume(resumed).is_none());
            }
        }
        let Some(Delivery::Elsewhere(0, answered)) = joins.next() else { panic!("the root's answer leaves for the host") };
        assert_eq!((answered.answer, answered.label, answered.home), (42, 6, home));
        // No parent waits for a detached task, split or not.
        let mut detached = header(5, Home::Detached);
        assert_eq!(joins.split(ItemId(2), &mut detached), Home::Detached);
        assert_eq!(joins.totals().0, 0);
    }
}
