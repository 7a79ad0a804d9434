//! Executing tasks: on worker threads, in batches or in slices; and what follows from their ends.

use super::accounting::{Happening, NodeReport};
use super::computation::{Computation, Slice, Style, Yield};
use super::item::{Answered, Home, Item, Resumed, TaskHeader, Then};
use super::policy::{ItemId, New, Occurrence, Order, Origin};
use super::runtime::Shell;
use crate::error::{Error, Result};
use crate::node::{Finished, Needed, Ticks};

/// Short tasks that are executed between two polls of the network, at the most.
const BATCH: usize = 256;
/// Slices on a worker thread are so much longer, since each is handed over and back.
const LONGER: Ticks = 10;

/// A task that takes less than this on the clock had its processor all the time: who has to wait for one waits for much longer. Of others
/// the processor time is asked for, which takes a hundredth of this.
const UNDISTURBED: Ticks = 20_000;

/// Tasks that must have ended before any is handed over ahead.
const BEFORE_AHEAD: u64 = 4;

impl<C: Computation> Shell<C> {
    fn next_ready(&mut self) -> Option<Item<C>> {
        match self.order {
            Order::Fifo => self.ready.pop_front(),
            // Where the last is a root, all are.
            Order::Lifo if self.ready.back().is_some_and(Item::is_root) => self.ready.pop_front(),
            Order::Lifo => self.ready.pop_back(),
        }
    }

    /// Whether tasks are executed on this thread.
    fn works_here(&self) -> bool {
        self.style != Style::Worker && self.workers == 1
    }

    /// Whether there is a task to be executed on this thread.
    pub(super) fn has_work_here(&self) -> bool {
        self.works_here() && (self.sliced.is_some() || !self.ready.is_empty())
    }

    /// Executor ready tasks to workers that have nothing to do; says whether there were any.
    pub(super) fn begin_tasks(&mut self) -> bool {
        let mut any = false;
        let most = self.workers + self.ahead();
        while !self.works_here()
            && self.running.len() < most
            && let Some(item) = self.next_ready()
        {
            any = true;
            self.begin(item);
        }
        any
    }

    /// How many tasks more than there are workers are handed over.
    fn ahead(&self) -> usize {
        let NodeReport { busy, tasks, .. } = self.report;
        let short = tasks >= BEFORE_AHEAD && busy / tasks < self.options.ahead_below;
        if short && self.style == Style::Worker { self.workers } else { 0 }
    }

    fn begin(&mut self, item: Item<C>) {
        let Item { id, header, task } = item;
        let (computation, drag) = (self.computation.clone(), self.options.drag);
        let budget = (self.style == Style::Sliced).then(|| self.options.slice.saturating_mul(LONGER));
        let work = self.node.start(move |worker| {
            let slice = match budget {
                Some(budget) => computation.step(task, budget, worker),
                None => Slice::Done(computation.execute(task, worker)),
            };
            if drag > 0.0 {
                worker.drag(drag);
            }
            slice
        });
        self.running.insert(work, (id, header));
    }

    /// A worker has ended a task, or a slice of it.
    pub(super) fn finished(&mut self, finished: Finished) -> Result<()> {
        let Finished { work, output, began, ended, needed } = finished;
        let Some((id, mut header)) = self.running.remove(&work) else { return Ok(()) };
        let slice =
            output.downcast::<Slice<C>>().map_err(|_| Error::Failed(format!("a worker returned no slice of task {}", header.name)))?;
        self.spent(&mut header, began, ended, needed);
        match *slice {
            Slice::More(task) => {
                let mut item = Item { id, header, task };
                self.feed(&mut item)?;
                self.begin(item);
                Ok(())
            }
            Slice::Done(yielded) => {
                self.settle(id, header, yielded)?;
                if self.running.is_empty() {
                    self.disappoint();
                }
                Ok(())
            }
        }
    }

    /// Between two slices: parts for those who asked, and for a worker here that has nothing to do.
    fn feed(&mut self, item: &mut Item<C>) -> Result<()> {
        while let Some((to, otherwise)) = self.awaiting_parts.pop_front() {
            self.part_or_word(item, to, otherwise)?;
        }
        while self.give_part(item)? {}
        if self.ready.is_empty()
            && self.running.len() + 1 < self.workers
            && let Some((header, task)) = self.split(item)
        {
            let part = self.enter(header, task);
            self.tell(Occurrence::New(&[part], Origin::Split))?;
        }
        Ok(())
    }

    /// Takes a part off a task that is being executed. Who waits for the task then waits for both.
    pub(super) fn split(&mut self, item: &mut Item<C>) -> Option<(TaskHeader, C::Task)> {
        let part = self.computation.split(&mut item.task)?;
        item.header.divided = true;
        let home = match item.header.home {
            Home::Nobody => Home::Nobody,
            Home::Parent { .. } | Home::Root { .. } => {
                let frame = self.frames.found(item.id, item.header, Then::Combine, 2);
                let part_of = |index| Home::Parent { node: self.me, frame, index };
                (item.header.home, item.header.label) = (part_of(0), 0);
                part_of(1)
            }
        };
        Some((TaskHeader { divided: true, ..self.birth(home, item.header.chain) }, part))
    }

    /// Executes tasks on this thread until it is time to poll of the network.
    pub(super) fn work_here(&mut self) -> Result<()> {
        let mut worker = self.node.worker();
        let mut asleep = 0;
        let start = self.node.now();
        if self.processor.is_none_or(|(_, at)| start.saturating_sub(at) > UNDISTURBED) {
            self.processor = self.node.processor_time().map(|time| (time, start));
        }
        for _ in 0..BATCH {
            let Some(item) = self.sliced.take().or_else(|| self.next_ready()) else { break };
            let Item { id, mut header, task } = item;
            let began = self.node.now();
            let slice = match self.style {
                Style::Sliced => self.computation.step(task, self.options.slice, &mut *worker),
                Style::Inline | Style::Worker => Slice::Done(self.computation.execute(task, &mut *worker)),
            };
            let mut ended = self.node.now();
            if self.options.drag > 0.0 {
                worker.spin((ended.saturating_sub(began) as f64 * self.options.drag) as Ticks);
                ended = self.node.now();
            }
            let slept = worker.asleep();
            let needed = self.needed(ended.saturating_sub(began), ended, slept - asleep);
            asleep = slept;
            self.spent(&mut header, began, ended, needed);
            self.executed_here += ended.saturating_sub(began);
            self.gathering.executed(ended.saturating_sub(began));
            match slice {
                Slice::More(task) => {
                    self.sliced = Some(Item { id, header, task });
                    break;
                }
                Slice::Done(yielded) => {
                    // A look at the clock would cost a good part of what follows from the end of a task.
                    self.clock = Some(ended);
                    self.settle(id, header, yielded)?;
                    self.deliver_answers()?;
                    self.send_answers_unless_more_follow()?;
                    self.clock = None;
                }
            }
            if ended.saturating_sub(start) >= self.options.slice {
                break;
            }
        }
        self.node.progressed();
        self.send_answers()
    }

    /// What a task on this thread needed that took so long: at most the processor time since it was last asked for.
    fn needed(&mut self, took: Ticks, now: Ticks, asleep: Ticks) -> Needed {
        if took < UNDISTURBED {
            return Needed::within(took, took, asleep);
        }
        let Some((before, _)) = self.processor else { return Needed::within(took, took, asleep) };
        let time = self.node.processor_time().unwrap_or(before);
        self.processor = Some((time, now));
        Needed::within(took, time.saturating_sub(before), asleep)
    }

    fn spent(&mut self, header: &mut TaskHeader, began: Ticks, ended: Ticks, needed: Needed) {
        let ticks = ended.saturating_sub(began);
        header.spent += needed.together();
        self.report.busy += ticks;
        self.report.needed += needed.together();
        self.report.asleep += needed.asleep;
        self.trace_at(began, header.name, Happening::Executed { ticks });
    }

    /// A task has ended.
    fn settle(&mut self, id: ItemId, mut header: TaskHeader, yielded: Yield<C>) -> Result<()> {
        self.report.tasks += 1;
        self.report.detached += u64::from(header.home == Home::Nobody);
        let spent = std::mem::take(&mut header.spent);
        if !header.divided && !C::DIVISIBLE {
            self.report.largest = self.report.largest.max(spent);
            header.chain += spent;
            self.report.chain = self.report.chain.max(header.chain);
        }
        let (spawned, answer) = self.spawn(id, header, yielded);
        self.tell(Occurrence::End(id, &spawned))?;
        self.answers.extend(answer);
        Ok(())
    }

    /// What a task or a join yields: new tasks, and an answer or not.
    fn spawn(&mut self, parent: ItemId, header: TaskHeader, mut yielded: Yield<C>) -> (Vec<New>, Option<Answered<C::Answer>>) {
        loop {
            match yielded {
                Yield::Answer(answer) => return (Vec::new(), Some(answered(header, answer))),
                // A parent without children waits for nothing.
                Yield::Children { tasks, waiting } if tasks.is_empty() => {
                    self.report.joins += 1;
                    yielded = self.computation.join(waiting, Vec::new());
                }
                Yield::Children { tasks, waiting } => {
                    let children = tasks.len() as u32;
                    let frame = self.frames.found(parent, header, Then::Join(waiting), children);
                    self.trace(header.name, Happening::Waits { children });
                    let spawned = (0..).zip(tasks).map(|(index, task)| {
                        let header = self.birth(Home::Parent { node: self.me, frame, index }, header.chain);
                        self.enter(header, task)
                    });
                    return (spawned.collect(), None);
                }
                Yield::Detached { tasks, answer } => {
                    let spawned = tasks.into_iter().map(|task| {
                        let header = self.birth(Home::Nobody, header.chain);
                        self.enter(header, task)
                    });
                    return (spawned.collect(), Some(answered(header, answer)));
                }
            }
        }
    }

    /// A parent's children are all answered.
    pub(super) fn resume(&mut self, resumed: Resumed<C>) -> Result<()> {
        let Resumed { parent, header, then, answers } = resumed;
        self.trace(header.name, Happening::Resumed);
        match then {
            Then::Join(waiting) => {
                self.report.joins += 1;
                let yielded = self.computation.join(waiting, answers);
                let (spawned, answer) = self.spawn(parent, header, yielded);
                self.answers.extend(answer);
                match spawned.is_empty() {
                    true => Ok(()),
                    false => self.tell(Occurrence::New(&spawned, Origin::Joined { parent })),
                }
            }
            Then::Combine => {
                let whole = answers.into_iter().reduce(|into, more| self.computation.combine(into, more));
                self.answers.extend(whole.map(|answer| answered(header, answer)));
                Ok(())
            }
        }
    }

    /// Puts an answer to those that nobody waits for.
    pub(super) fn combine(&mut self, answer: C::Answer) {
        self.partial = Some(match self.partial.take() {
            Some(partial) => self.computation.combine(partial, answer),
            None => answer,
        });
    }
}

fn answered<A>(header: TaskHeader, answer: A) -> Answered<A> {
    Answered { name: header.name, home: header.home, label: header.label, chain: header.chain, answer }
}
