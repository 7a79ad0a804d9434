//! The working side of a node: the tasks that it was given, and the worker that executes them beside messages.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Figures, Independent, Turn};
use crate::error::{Error, Result};
use crate::load::{Checksum, Segment};
use crate::node::{Finished, Node, Ticks, WorkId};

/// Pieces of work that the worker has at a time: one that it executes, and one that it goes on with.
const AT_ONCE: usize = 2;
/// Tasks shorter than this are handed over together, as many as take so long.
const WORTH_A_PIECE: Ticks = 100_000;
/// As many together at the most.
const LARGEST_PIECE: usize = 4096;

/// A task in the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    task: usize,
    /// When it begins by the model, if nothing is before it.
    due: Option<Ticks>,
}

struct Piece {
    work: WorkId,
    tasks: Vec<usize>,
}

/// What a piece of work came to.
#[derive(Clone, Debug)]
pub struct Done {
    pub tasks: Vec<usize>,
    /// How long the worker took for them.
    pub took: Ticks,
}

/// A node's tasks and its worker.
pub struct Hands {
    node: Node,
    work: Arc<dyn Independent>,
    rank: usize,
    queue: VecDeque<Waiting>,
    pieces: VecDeque<Piece>,
    /// Since when the worker has had nothing to do.
    idle_since: Option<Ticks>,
    pub figures: Figures,
}

impl Hands {
    /// The hands of a node that has nothing to do yet.
    pub fn new(node: Node, work: Arc<dyn Independent>) -> Hands {
        let rank = node.rank_of(node.me());
        let figures = Figures { node: node.me(), rank, ..Figures::default() };
        let idle_since = Some(node.now());
        Hands { node, work, rank: rank as usize, queue: VecDeque::new(), pieces: VecDeque::new(), idle_since, figures }
    }

    /// Takes tasks, to be executed in this order. By the model the first begins when it is due, whenever word of it came.
    pub fn take(&mut self, tasks: impl IntoIterator<Item = usize>, due: Option<Ticks>) {
        let mut due = due;
        self.queue.extend(tasks.into_iter().map(|task| Waiting { task, due: due.take() }));
        self.feed();
    }

    /// Hands over to the worker what it can take.
    fn feed(&mut self) {
        while self.pieces.len() < AT_ONCE
            && let Some(first) = self.queue.pop_front()
        {
            let now = self.node.now();
            let follows = !self.pieces.is_empty();
            if let Some(since) = self.idle_since.take() {
                self.figures.waiting += now.saturating_sub(since);
            }
            let late = if follows { 0 } else { first.due.map_or(0, |due| now.saturating_sub(due)) };
            let mut tasks = vec![first.task];
            let more = if first.due.is_some() { 0 } else { self.together() - 1 };
            tasks.extend(self.queue.drain(..more.min(self.queue.len())).map(|waiting| waiting.task));
            let (work, rank, inside) = (self.work.clone(), self.rank, tasks.clone());
            let started = self.node.start(move |worker| {
                let mut turn = Turn { rank, late, follows };
                let mut value = 0u64;
                for task in inside {
                    value = value.wrapping_add(work.execute(task, turn, worker));
                    turn = Turn { rank, late: 0, follows: true };
                }
                value
            });
            self.pieces.push_back(Piece { work: started, tasks });
        }
    }

    /// How many tasks make a piece.
    fn together(&self) -> usize {
        let Figures { tasks, busy, .. } = self.figures;
        match busy.checked_div(tasks) {
            None => 1,
            Some(mean) => (WORTH_A_PIECE / mean.max(1)).clamp(1, LARGEST_PIECE as Ticks) as usize,
        }
    }

    /// Notes the end of a piece.
    ///
    /// # Errors
    /// If the world tells of work that is not ours.
    pub fn finished(&mut self, finished: Finished) -> Result<Done> {
        let place = self.pieces.iter().position(|piece| piece.work == finished.work);
        let piece = place.and_then(|place| self.pieces.remove(place));
        let Some(piece) = piece else { return Err(Error::Failed("work ended that nobody had begun".into())) };
        let value = finished.output.downcast::<u64>().map_err(|_| Error::Failed("a task's value is no number".into()))?;
        let took = finished.ended.saturating_sub(finished.began);
        let count = piece.tasks.len() as u64;
        let figures = &mut self.figures;
        figures.tasks += count;
        figures.value = figures.value.wrapping_add(*value);
        figures.busy += took;
        figures.largest = figures.largest.max(took / count.max(1));
        for task in &piece.tasks {
            figures.checksum = figures.checksum.and(Checksum::of(&Segment::range(*task as u64, 1)));
        }
        self.feed();
        if self.pieces.is_empty() {
            self.idle_since = Some(finished.ended.min(self.node.now()));
        }
        Ok(Done { tasks: piece.tasks, took })
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Tasks that were given and have not ended.
    pub fn held(&self) -> usize {
        self.queue.len() + self.pieces.iter().map(|piece| piece.tasks.len()).sum::<usize>()
    }

    /// Mean time of the tasks that have ended here.
    pub fn mean(&self) -> Option<Ticks> {
        self.figures.busy.checked_div(self.figures.tasks)
    }
}
