//! Tasks that are executed: on worker threads, or on the communication thread, whole or in slices; and how long they took.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::task::{Home, TaskHeader};
use crate::error::{Error, Result};
use crate::node::{Finished, Needed, Node, Ticks, WorkId, Worker};
use crate::schedule::Options;
use crate::schedule::computation::{Computation, Slice, Style};
use crate::schedule::policy::ItemId;
use crate::topology::NodeId;

/// Maximum number of tasks that are executed on the communication thread between two polls of the network.
pub(super) const BATCH: usize = 256;

/// Slices on a worker thread are longer by this factor, since each is handed over and back.
const LONGER: Ticks = 10;

/// A task that takes less than this on the clock had its processor all the time: waiting for a processor takes much longer. Processor time is
/// measured only for longer tasks; asking for it takes a hundredth of this.
const UNDISTURBED: Ticks = 20_000;

/// Number of tasks that must have ended before any is handed over ahead.
const BEFORE_AHEAD: u64 = 4;

/// Clock of the communication thread.
pub(super) trait Clock {
    fn now(&self) -> Ticks;

    /// Processor time of this thread so far, where the system tells.
    fn processor_time(&self) -> Option<Ticks>;
}

impl Clock for Node {
    fn now(&self) -> Ticks {
        Node::now(self)
    }

    fn processor_time(&self) -> Option<Ticks> {
        Node::processor_time(self)
    }
}

/// Totals of the tasks that were executed here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Time of workers.
    pub busy: Ticks,
    /// The part of it that tasks needed, and of that the part that they slept.
    pub needed: Ticks,
    pub asleep: Ticks,
    /// Number of tasks that ended, and of the detached ones among them.
    pub tasks: u64,
    pub detached: u64,
    /// The longest task, and the longest chain of them; those that were split do not count.
    pub largest: Ticks,
    pub chain: Ticks,
}

/// A slice of a task that has been executed, or all of it.
pub(super) struct Executed<C: Computation> {
    pub slice: Slice<C>,
    pub began: Ticks,
    pub ended: Ticks,
}

/// A task on a worker thread that has ended, or a slice of it has.
pub(super) struct Returned<C: Computation> {
    pub id: ItemId,
    pub header: TaskHeader,
    pub executed: Executed<C>,
}

pub(super) struct Execution<C: Computation> {
    computation: Arc<C>,
    style: Style,
    /// Number of tasks that the node executes at a time; 0 on a virtual node.
    workers: usize,
    /// See the [`Options`] of these names.
    slice: Ticks,
    drag: f64,
    ahead_below: Ticks,
    /// On worker threads.
    running: BTreeMap<WorkId, (ItemId, TaskHeader)>,
    /// Nodes that asked for a part of a task that is being executed, and the message to their policies if there is none.
    part_requests: VecDeque<(NodeId, Bytes)>,
    /// Processor time of this thread when it was last asked for, and when that was.
    processor: Option<(Ticks, Ticks)>,
    totals: Totals,
}

impl<C: Computation> Execution<C> {
    pub fn new(computation: Arc<C>, workers: usize, options: &Options) -> Execution<C> {
        Execution {
            computation,
            style: options.style.unwrap_or(C::STYLE),
            workers,
            slice: options.slice,
            drag: options.drag,
            ahead_below: options.ahead_below,
            running: BTreeMap::new(),
            part_requests: VecDeque::new(),
            processor: None,
            totals: Totals::default(),
        }
    }

    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Number of tasks on worker threads.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns true if tasks are executed on the communication thread.
    pub fn is_here(&self) -> bool {
        self.style != Style::Worker && self.workers == 1
    }

    /// Maximum number of tasks on worker threads. Where they are short, each worker is handed its next one ahead.
    pub fn capacity(&self) -> usize {
        if self.is_here() {
            return 0;
        }
        let Totals { busy, tasks, .. } = self.totals;
        let short = tasks >= BEFORE_AHEAD && busy / tasks < self.ahead_below;
        self.workers + if short && self.style == Style::Worker { self.workers } else { 0 }
    }

    /// Makes the piece of work that executes a task, or a slice of it, on a worker thread.
    pub fn work(&self, task: C::Task) -> impl FnOnce(&mut dyn Worker) -> Slice<C> + Send + 'static {
        let (computation, drag) = (self.computation.clone(), self.drag);
        let budget = (self.style == Style::Sliced).then(|| self.slice.saturating_mul(LONGER));
        move |worker| {
            let slice = match budget {
                Some(budget) => computation.step(task, budget, worker),
                None => Slice::Done(computation.execute(task, worker)),
            };
            if drag > 0.0 {
                worker.drag(drag);
            }
            slice
        }
    }

    /// A worker thread was given a task.
    pub fn started(&mut self, work: WorkId, id: ItemId, header: TaskHeader) {
        self.running.insert(work, (id, header));
    }

    /// A worker thread has ended a task, or a slice of it. `None` if the work was not ours.
    ///
    /// # Errors
    /// If it returned something else.
    pub fn finished(&mut self, finished: Finished) -> Result<Option<Returned<C>>> {
        let Finished { work, output, began, ended, needed } = finished;
        let Some((id, mut header)) = self.running.remove(&work) else { return Ok(None) };
        let slice =
            output.downcast::<Slice<C>>().map_err(|_| Error::Failed(format!("a worker returned no slice of task {}", header.name)))?;
        self.spent(&mut header, ended.saturating_sub(began), needed);
        Ok(Some(Returned { id, header, executed: Executed { slice: *slice, began, ended } }))
    }

    /// Tasks are about to be executed on this thread.
    pub fn begin_batch(&mut self, clock: &impl Clock) -> Ticks {
        let start = clock.now();
        if self.processor.is_none_or(|(_, at)| start.saturating_sub(at) > UNDISTURBED) {
            self.processor = clock.processor_time().map(|time| (time, start));
        }
        start
    }

    /// Executes a task, or a slice of it, on this thread.
    pub fn execute(&mut self, header: &mut TaskHeader, task: C::Task, worker: &mut dyn Worker, clock: &impl Clock) -> Executed<C> {
        let (asleep, computed) = (worker.asleep(), worker.computed());
        let began = clock.now();
        let slice = match self.style {
            Style::Sliced => self.computation.step(task, self.slice, worker),
            Style::Inline | Style::Worker => Slice::Done(self.computation.execute(task, worker)),
        };
        let mut ended = clock.now();
        if self.drag > 0.0 {
            worker.spin((ended.saturating_sub(began) as f64 * self.drag) as Ticks);
            ended = clock.now();
        }
        let took = ended.saturating_sub(began);
        let asleep = worker.asleep() - asleep;
        let needed = match worker.computed().zip(computed) {
            Some((now, before)) => Needed { processor: now - before, asleep },
            None => self.needed(took, ended, asleep, clock),
        };
        self.spent(header, took, needed);
        Executed { slice, began, ended }
    }

    /// Returns true if the network is to be polled after tasks were executed on this thread for this long.
    pub fn is_over(&self, executed: Ticks) -> bool {
        executed >= self.slice
    }

    /// Time that a task on this thread needed, out of the duration `took`: at most the processor time since the last measurement.
    fn needed(&mut self, took: Ticks, now: Ticks, asleep: Ticks, clock: &impl Clock) -> Needed {
        if took < UNDISTURBED {
            return Needed::within(took, took, asleep);
        }
        let Some((before, _)) = self.processor else { return Needed::within(took, took, asleep) };
        let time = clock.processor_time().unwrap_or(before);
        self.processor = Some((time, now));
        Needed::within(took, time.saturating_sub(before), asleep)
    }

    fn spent(&mut self, header: &mut TaskHeader, took: Ticks, needed: Needed) {
        header.spent += needed.together();
        self.totals.busy += took;
        self.totals.needed += needed.together();
        self.totals.asleep += needed.asleep;
    }

    /// A task has ended: it counts.
    pub fn count(&mut self, header: &mut TaskHeader) {
        let totals = &mut self.totals;
        totals.tasks += 1;
        totals.detached += u64::from(header.home == Home::Detached);
        let spent = std::mem::take(&mut header.spent);
        if !header.divided && !C::DIVISIBLE {
            totals.largest = totals.largest.max(spent);
            header.chain += spent;
            totals.chain = totals.chain.max(header.chain);
        }
    }

    /// Takes a part off a task that is being executed, if it can be divided.
    pub fn split(&self, task: &mut C::Task) -> Option<C::Task> {
        self.computation.split(task)
    }

    /// A node asks for a part of a task that is being executed.
    ///
    /// # Errors
    /// The message to its policy, if no task will pause from which a part could be taken.
    pub fn request_part(&mut self, from: NodeId, otherwise: Bytes) -> Result<(), Bytes> {
        if self.style != Style::Sliced || self.running.is_empty() {
            return Err(otherwise);
        }
        self.part_requests.push_back((from, otherwise));
        Ok(())
    }

    /// Takes the oldest request for a part.
    pub fn next_part_request(&mut self) -> Option<(NodeId, Bytes)> {
        self.part_requests.pop_front()
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::super::testing::Sum;
    use super::*;
    use crate::schedule::accounting::Name;
    use crate::schedule::computation::Yield;

    /// A clock that the worker moves; the thread has the processor for half of the time.
    #[derive(Clone, Default)]
    struct Hands(Rc<Cell<Ticks>>);

    impl Clock for Hands {
        fn now(&self) -> Ticks {
            self.0.get()
        }

        fn processor_time(&self) -> Option<Ticks> {
            Some(self.0.get() / 2)
        }
    }

    impl Worker for Hands {
        fn checkpoint(&mut self) {}

        fn charge(&mut self, ticks: Ticks) {
            self.0.set(self.0.get() + ticks);
        }

        fn sleep(&mut self, ticks: Ticks) {
            self.charge(ticks);
        }

        fn spin(&mut self, ticks: Ticks) {
            self.charge(ticks);
        }
    }

    fn execution(workers: usize, options: &Options) -> Execution<Sum> {
        Execution::new(Arc::new(Sum), workers, options)
    }

    fn options(style: Style) -> Options {
        Options { style: Some(style), slice: 30, ..Options::default() }
    }

    fn header(home: Home) -> TaskHeader {
        TaskHeader::new(Name { born: 0, number: 1 }, home, 5)
    }

    /// A worker has ended a task that took this long.
    fn end(execution: &mut Execution<Sum>, work: u64, task: u64) -> Result<Option<Returned<Sum>>> {
        let mut worker = Hands::default();
        let output = Box::new(execution.work(task)(&mut worker));
        let ended = worker.now();
        execution.finished(Finished { work: WorkId(work), output, began: 0, ended, needed: Needed::all(ended) })
    }

    #[test]
    fn tasks_on_this_thread_are_measured_in_slices_and_counted_once() {
        let mut execution = execution(1, &options(Style::Sliced));
        assert!(execution.is_here() && execution.capacity() == 0);
        let mut hands = Hands::default();
        let mut header = header(Home::Detached);
        let (mut task, mut slices) = (70, 0);
        loop {
            let clock = hands.clone();
            let Executed { slice, began, ended } = execution.execute(&mut header, task, &mut hands, &clock);
            slices += 1;
            assert_eq!(execution.is_over(ended - began), slices < 3);
            match slice {
                Slice::More(rest) => task = rest,
                Slice::Done(Yield::Answer(answer)) => break assert_eq!(answer, 10),
                Slice::Done(_) => panic!("{task} spawns nothing"),
            }
        }
        assert_eq!((slices, header.spent), (3, 70));
        execution.count(&mut header);
        let expected = Totals { busy: 70, needed: 70, asleep: 0, tasks: 1, detached: 1, largest: 70, chain: 75 };
        assert_eq!((execution.totals(), header.chain), (expected, 75));
        // The length of a task that was split says nothing.
        let mut split = TaskHeader { divided: true, spent: 500, ..header };
        execution.count(&mut split);
        assert_eq!(execution.totals().largest, 70);
    }

    #[test]
    fn of_a_long_task_only_the_processor_time_is_needed() {
        let options = Options { drag: 1_000.0, ..options(Style::Inline) };
        let mut execution = execution(1, &options);
        let mut hands = Hands::default();
        let clock = hands.clone();
        assert_eq!(execution.begin_batch(&clock), 0);
        let mut header = header(Home::Detached);
        let Executed { ended, .. } = execution.execute(&mut header, 90, &mut hands, &clock);
        assert_eq!((ended, execution.totals().busy), (90_090, 90_090));
        assert_eq!((header.spent, execution.totals().needed), (45_045, 45_045));
    }

    #[test]
    fn workers_are_handed_their_next_task_ahead_once_tasks_are_known_to_be_short() {
        for (style, ahead_below, capacity) in [(Style::Worker, 50, 4), (Style::Worker, 40, 2), (Style::Sliced, 50, 2)] {
            let mut execution = execution(2, &Options { ahead_below, ..options(style) });
            for task in 0..BEFORE_AHEAD {
                assert_eq!(execution.capacity(), 2);
                execution.started(WorkId(task), ItemId(task), header(Home::Detached));
                assert_eq!(execution.running(), 1);
                let mut returned = end(&mut execution, task, 40).unwrap().unwrap();
                assert_eq!((returned.id, returned.header.spent, returned.executed.ended), (ItemId(task), 40, 40));
                execution.count(&mut returned.header);
            }
            assert_eq!((execution.running(), execution.capacity()), (0, capacity), "{style:?}");
            assert!(end(&mut execution, 99, 40).unwrap().is_none(), "somebody else's work");
        }
    }

    #[test]
    fn a_slice_on_a_worker_is_longer_and_requests_for_parts_wait_for_its_end() {
        let mut execution = execution(3, &options(Style::Sliced));
        let word = Bytes::from_static(b"none");
        assert_eq!(execution.request_part(7, word.clone()), Err(word.clone()), "nothing is being executed");
        execution.started(WorkId(1), ItemId(1), header(Home::Detached));
        assert_eq!(execution.request_part(7, word.clone()), Ok(()));
        let returned = end(&mut execution, 1, 350).unwrap().unwrap();
        let Slice::More(mut rest) = returned.executed.slice else { panic!("350 is more than a slice of 300") };
        assert_eq!((rest, execution.split(&mut rest), rest), (50, Some(25), 25));
        assert_eq!((execution.next_part_request(), execution.next_part_request()), (Some((7, word)), None));
    }

    #[test]
    fn a_worker_that_returns_something_else_is_an_error() {
        let mut execution = execution(2, &options(Style::Worker));
        execution.started(WorkId(1), ItemId(1), header(Home::Detached));
        let finished = Finished { work: WorkId(1), output: Box::new(5), began: 0, ended: 1, needed: Needed::all(1) };
        let why = execution.finished(finished).err().unwrap().to_string();
        assert_eq!(why, "a worker returned no slice of task 1 of node 0");
    }
}
