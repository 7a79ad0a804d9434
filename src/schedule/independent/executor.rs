//! The working side of a node: the tasks that it was given, and their execution between messages.
//!
//! Usually that is a worker thread. Handing a task over to it takes some microseconds, so a program may let shorter tasks be executed
//! [`at_once`](Executor::at_once), between two polls of the network, as long as they are that short.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::products;
use super::{Chunk, Figures, Independent, Pace, Turn};
use crate::error::{Error, Result};
use crate::load::Cost;
use crate::node::{Finished, Node, Ticks, WorkId, Worker};
use crate::topology::RankId;

/// Pieces of work that the worker has at a time: one that it executes, and one that it goes on with.
const AT_ONCE: usize = 2;
/// Target duration of the tasks that are handed to a worker together, if single tasks are shorter.
const WORTH_A_PIECE: Ticks = 100_000;
/// Maximum number of tasks that are handed to a worker together.
const LARGEST_PIECE: u64 = 4096;
/// Handing over to a worker that sleeps takes as long: shorter tasks are executed at once.
const SHORT: Ticks = 20_000;
/// Target duration of the tasks that are timed together, if tasks are executed at once.
const TIMED: Ticks = 5_000;

struct Piece {
    work: WorkId,
    tasks: Chunk,
}

/// Result of a piece of work.
#[derive(Clone, Debug)]
pub struct Done {
    /// The tasks that were executed.
    pub tasks: Chunk,
    /// Time that the worker took for them.
    pub took: Ticks,
}

/// Execution on the communication thread.
struct Inline {
    worker: Box<dyn Worker>,
    /// A task that is expected to cost as much is not short.
    long: Cost,
}

/// A node's tasks and its worker.
pub struct Executor {
    node: Node,
    work: Arc<dyn Independent>,
    rank: RankId,
    begun: Ticks,
    /// Chunks not begun yet, each with the time at which its first task begins by the model, if nothing is before it.
    queue: VecDeque<(Chunk, Option<Ticks>)>,
    queued: u64,
    pieces: VecDeque<Piece>,
    handed: u64,
    /// Since when nothing has been executed.
    idle_since: Option<Ticks>,
    /// Executes short tasks; `None` if all go to the worker thread.
    inline: Option<Inline>,
    /// Time of recent tasks.
    recent: Option<Ticks>,
    /// Statistics until now.
    pub figures: Figures,
}

impl Executor {
    /// The executor of a node that has nothing to do yet; the run begins now.
    pub fn new(node: Node, work: Arc<dyn Independent>) -> Executor {
        let rank = node.rank_of(node.me());
        let figures = Figures { node: node.me(), rank, ..Figures::default() };
        let begun = node.now();
        Executor {
            node,
            work,
            rank,
            begun,
            queue: VecDeque::new(),
            queued: 0,
            pieces: VecDeque::new(),
            handed: 0,
            idle_since: Some(begun),
            inline: None,
            recent: None,
            figures,
        }
    }

    /// Lets short tasks be executed at once: the program must call [`at_once`](Executor::at_once) whenever [`is_short`](Executor::is_short).
    /// Short are those that follow short ones and are not expected to take longer: a long task would keep the node from answering others.
    #[must_use]
    pub fn executing_short_tasks(mut self, pace: &Pace) -> Executor {
        self.inline = Some(Inline { worker: self.node.worker(), long: pace.cost(SHORT) });
        self
    }

    /// Takes tasks, to be executed in this order. By the model the first begins when it is due, whenever the message about it came.
    pub fn take(&mut self, tasks: Chunk, due: Option<Ticks>) {
        self.queued += tasks.count();
        let rest = match self.queue.back_mut() {
            Some((last, _)) if due.is_none() => last.append(tasks),
            _ => Some(tasks),
        };
        self.queue.extend(rest.filter(|rest| rest.count() > 0).map(|rest| (rest, due)));
        self.feed();
    }

    /// Returns true if there are short tasks waiting to be executed on the communication thread.
    pub fn is_short(&self) -> bool {
        self.queued > 0 && self.pieces.is_empty() && self.goes_at_once()
    }

    /// Whether the first task of the queue, if there is one, goes to the communication thread.
    fn goes_at_once(&self) -> bool {
        let is_long = || self.queue.front().and_then(|(chunk, _)| chunk.first()).is_some_and(|task| self.is_long(task));
        self.recent.is_some_and(|recent| recent < SHORT) && self.inline.is_some() && !is_long()
    }

    fn is_long(&self, task: usize) -> bool {
        self.inline.as_ref().is_some_and(|inline| self.work.costs().of(task, self.rank.index()) >= inline.long)
    }

    /// The number of tasks before the first long one of the first chunk, up to `most`.
    fn short_ones(&self, most: u64) -> u64 {
        let first = self.queue.front().map(|(chunk, _)| chunk);
        first.map_or(0, |chunk| chunk.iter().take(most as usize).take_while(|task| !self.is_long(*task)).count() as u64)
    }

    /// The first tasks of the queue: at most `most`, of one chunk.
    fn next(&mut self, most: u64) -> Option<(Chunk, Option<Ticks>)> {
        let (chunk, due) = self.queue.front_mut()?;
        let due = due.take();
        let tasks = chunk.take_first(if due.is_some() { 1 } else { most });
        if chunk.count() == 0 {
            self.queue.pop_front();
        }
        self.queued -= tasks.count();
        Some((tasks, due))
    }

    fn begins(&mut self, now: Ticks) {
        if let Some(since) = self.idle_since.take() {
            self.figures.waiting += now.saturating_sub(since);
        }
    }

    /// Executor over to the worker what it can take.
    fn feed(&mut self) {
        while self.pieces.len() < AT_ONCE && !self.goes_at_once() {
            let together = self.together();
            let Some((tasks, due)) = self.next(together) else { return };
            let now = self.node.now();
            let follows = !self.pieces.is_empty();
            self.begins(now);
            let late = if follows { 0 } else { due.map_or(0, |due| now.saturating_sub(due)) };
            let (work, rank, inside) = (self.work.clone(), self.rank, tasks.clone());
            let started = self.node.start(move |worker| {
                let mut turn = Turn { rank, late, follows };
                let (mut value, mut products) = (0u64, Vec::new());
                inside.for_each(|task| {
                    value = value.wrapping_add(products::of(task, &mut products, |product| work.execute(task, turn, worker, product)));
                    turn = Turn { rank, late: 0, follows: true };
                });
                (value, products)
            });
            self.handed += tasks.count();
            self.pieces.push_back(Piece { work: started, tasks });
        }
    }

    /// Number of tasks in a piece.
    fn together(&self) -> u64 {
        match self.mean() {
            None => 1,
            Some(mean) => (WORTH_A_PIECE / mean.max(1)).clamp(1, LARGEST_PIECE),
        }
    }

    /// Executes tasks for about this long, if they are short. Returns how many, and how long they took.
    pub fn at_once(&mut self, budget: Ticks) -> (u64, Ticks) {
        let (mut count, mut took) = (0, 0);
        let mut products = Vec::new();
        let mut now = self.node.now();
        while took < budget && self.is_short() {
            let timed = TIMED / self.recent.unwrap_or(TIMED).max(1);
            let Some((tasks, _)) = self.next(self.short_ones(timed.max(1))) else { break };
            let Some(Inline { worker, .. }) = &mut self.inline else { break };
            let (work, rank) = (&self.work, self.rank);
            let mut turn = Turn { rank, late: 0, follows: self.idle_since.is_none() };
            let mut value = 0u64;
            tasks.for_each(|task| {
                value = value.wrapping_add(products::of(task, &mut products, |product| work.execute(task, turn, worker.as_mut(), product)));
                turn.follows = true;
            });
            self.begins(now);
            let ended = self.node.now();
            self.ended(&tasks, value, ended - now, ended);
            count += tasks.count();
            took += ended - now;
            now = ended;
        }
        self.send(products);
        self.node.progressed();
        if self.queued == 0 {
            self.idle_since = Some(now);
        }
        self.feed();
        (count, took)
    }

    /// Notes the end of a piece of work.
    ///
    /// # Errors
    /// If the world reports unknown work.
    pub fn finished(&mut self, finished: Finished) -> Result<Done> {
        let place = self.pieces.iter().position(|piece| piece.work == finished.work);
        let piece = place.and_then(|place| self.pieces.remove(place));
        let Some(piece) = piece else { return Err(Error::Failed("work ended that nobody had begun".into())) };
        let output = finished.output.downcast::<(u64, Vec<u8>)>();
        let (value, products) = *output.map_err(|_| Error::Failed("a task's value is no number".into()))?;
        let took = finished.ended.saturating_sub(finished.began);
        self.handed -= piece.tasks.count();
        self.ended(&piece.tasks, value, took, finished.ended);
        self.send(products);
        self.feed();
        if self.pieces.is_empty() && self.queued == 0 {
            self.idle_since = Some(finished.ended.min(self.node.now()));
        }
        Ok(Done { tasks: piece.tasks, took })
    }

    /// Counts tasks that have ended.
    fn ended(&mut self, tasks: &Chunk, value: u64, took: Ticks, at: Ticks) {
        let count = tasks.count();
        let each = took / count.max(1);
        self.recent = Some(each);
        let figures = &mut self.figures;
        figures.tasks += count;
        figures.value = figures.value.wrapping_add(value);
        figures.busy += took;
        figures.largest = figures.largest.max(each);
        figures.checksum = figures.checksum.and(tasks.checksum());
        figures.completed += at.saturating_sub(self.begun) as f64 * count as f64;
    }

    fn send(&mut self, products: Vec<u8>) {
        if !products.is_empty() {
            self.figures.products += 1;
            products::send(&self.node, Bytes::from(products));
        }
    }

    /// Returns true if there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.held() == 0
    }

    /// Number of tasks that the worker executes together at present; 1 if there are none.
    pub fn first_piece(&self) -> u64 {
        self.pieces.front().map_or(1, |piece| piece.tasks.count())
    }

    /// Number of tasks that were given and have not ended.
    pub fn held(&self) -> u64 {
        self.queued + self.handed
    }

    /// Mean time of the tasks that have ended here.
    pub fn mean(&self) -> Option<Ticks> {
        self.figures.busy.checked_div(self.figures.tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{CYCLE, Costs};
    use crate::node::{self, Event};
    use crate::topology::{Overlay, Topology};
    use crate::transport::sim::Model;
    use crate::transport::world::World;

    /// Tasks that take what they are expected to.
    struct Expected(Arc<Costs>);

    impl Independent for Expected {
        fn costs(&self) -> &Arc<Costs> {
            &self.0
        }

        fn execute(&self, task: usize, turn: Turn, worker: &mut dyn Worker, _: &mut Vec<u8>) -> u64 {
            worker.charge(self.0.of(task, turn.rank.index()));
            1
        }
    }

    #[test]
    fn a_long_task_after_short_ones_goes_to_the_worker() {
        const LONG: Ticks = 1_000_000_000;
        let mut world = World::simulated(1, Model::default());
        let overlay = Overlay::one_host(Topology::parse("complete", 1).unwrap(), 1).unwrap();
        let ended = node::run(&mut world, &overlay, |node| async move {
            let mut costs = vec![100; 30];
            costs[20] = LONG;
            let work: Arc<dyn Independent> = Arc::new(Expected(Arc::new(Costs::new(1, costs).unwrap())));
            let pace = Pace { cycle: CYCLE, by_model: false, ahead: 0, seed: 1 };
            let mut executor = Executor::new(node.clone(), work).executing_short_tasks(&pace);
            executor.take(Chunk::Span { first: 0, count: 30, step: 1 }, None);
            let mut here = 0;
            while !executor.is_idle() {
                if executor.is_short() {
                    let before = node.now();
                    here += executor.at_once(LONG).0;
                    assert!(node.now() - before < LONG / 2, "others would wait");
                    continue;
                }
                match node.next_event().await {
                    Event::Finished { finished, .. } => _ = executor.finished(finished)?,
                    other => return Err(Error::Failed(format!("{other:?}"))),
                }
            }
            Ok((executor.figures.tasks, here))
        });
        // The first is given to the worker, as nothing is known yet, and so is the one that goes on with.
        let (tasks, here) = ended.unwrap()[0].1;
        assert!(tasks == 30 && (10..29).contains(&here), "{tasks} {here}");
    }
}
