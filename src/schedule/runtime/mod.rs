//! Runtime of a node in a run: the loop around its policy, its tasks and its messages.
//!
//! Everything that happens to the node is an event; the loop passes it to the policy, which returns actions. Between two events tasks are
//! executed: by worker threads, or here in batches or slices.
//!
//! Each part of the runtime owns its state and knows no other part: it returns values, or [effects](effects), to the loop in this file, which
//! alone calls the policy, the node and its network. The loop's own steps are in four files below it: `events`, `actions`, `spawning`, `end`.
//!
//! ```text
//!   tasks       not placed, ready, between slices, migrating; requests for tasks
//!   execution   on worker threads or here; how long it takes
//!   joins       answers, parents that wait for them (frames)        NodeRuntime: events -> parts -> policy -> parts -> sends
//!   outbox      tasks and answers, packed into messages
//!   graphs      roots and their answers, at the host
//!   phases      a balancer's run;  migration: its time;  termination: waves and counts;  statistics: overhead, trace
//! ```

mod actions;
mod effects;
mod end;
mod events;
mod execution;
mod frames;
mod graphs;
mod joins;
mod migration;
mod outbox;
mod phases;
mod spawning;
mod statistics;
mod task;
mod tasks;
mod termination;
#[cfg(test)]
mod testing;
mod unplaced;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::accounting::{Happening, Name, RunResult};
use super::computation::{Computation, Roots};
use super::policy::{Action, AnyPolicy, New, Occurrence, Origin, Place, View};
use super::tree::Tree;
use super::{Chosen, Options};
use crate::error::Result;
use crate::node::{Node, Ticks, TimerId};
use crate::topology::NodeId;
use effects::{Effect, Effects};
use execution::Execution;
use graphs::Graphs;
use joins::Joins;
use migration::MigrationTimes;
#[cfg(test)]
pub(super) use outbox::IN_A_ROW;
use outbox::Outbox;
use phases::{Happened, SystemPhases};
use statistics::Statistics;
#[cfg(test)]
pub(super) use task::{ANSWERS, TASKS};
use task::{Item, Travelling};
use tasks::TaskStore;
use termination::{Next, Say, Termination, WAVE};

/// Maximum number of events that are taken between two slices of work.
const EVENTS_BETWEEN: usize = 256;

/// One node's part in a run; call it on every node, with the same computation, scheduler and options.
///
/// The node should be in an epoch of its own: any other message in its scope is an error.
///
/// # Errors
/// Wrong usage if the scheduler does not fit the topology; the loss of a rank; an answer or task too large to be sent; tasks that are left when
/// all should be done.
pub async fn execute<C: Computation>(
    node: Node,
    computation: Arc<C>,
    scheduler: Chosen,
    roots: Roots<C>,
    options: Options,
) -> Result<RunResult<C::Answer>> {
    let (node, counts) = node.recorded();
    let mut runtime = NodeRuntime::new(node, computation, &scheduler, &options)?;
    runtime.run(roots).await?;
    runtime.end(&counts).await
}

/// The loop of one node, and the parts that it drives.
struct NodeRuntime<C: Computation> {
    node: Node,
    decisions: Decisions,
    tasks: TaskStore<C>,
    execution: Execution<C>,
    joins: Joins<C>,
    outbox: Outbox<C::Answer>,
    migration: MigrationTimes,
    /// At the host, once the roots are submitted.
    graphs: Option<Graphs<C>>,
    phases: SystemPhases,
    termination: Termination,
    statistics: Statistics,
    /// The current time, where it was just looked up.
    clock: Option<Ticks>,
    /// Buffers that are used again.
    effects: Effects,
    news: Vec<New>,
}

/// The policy, and what it knows already.
struct Decisions {
    policy: Box<dyn AnyPolicy>,
    /// Actions of the policy: a buffer that is reused.
    actions: Vec<Action<Bytes>>,
    timers: BTreeSet<TimerId>,
    /// Whether the policy has been informed that the node is idle, and the last load that it was informed of.
    knows_idle: bool,
    known_load: u32,
}

impl<C: Computation> NodeRuntime<C> {
    fn new(node: Node, computation: Arc<C>, scheduler: &Chosen, options: &Options) -> Result<NodeRuntime<C>> {
        if let Some(objection) = scheduler.objection(node.topology()) {
            return Err(objection.into());
        }
        let (me, nodes) = (node.me(), node.nodes());
        let host = scheduler.host_on(&node.overlay().placement)?;
        let place = Place { me, host, overlay: node.overlay().clone(), workers: options.workers, unit: options.unit.max(1) };
        let is_virtual = place.is_virtual();
        let mut rng = node.rng();
        // The policy draws from a stream of its own, so that how migrations turn out does not depend on it.
        rng.set_stream(1 << 32 | u64::from(me));
        let policy = scheduler.policy(place, node.rng())?;
        let workers = if is_virtual { 0 } else { options.workers.max(1) as usize };
        let order = options.order.unwrap_or_else(|| policy.order());
        Ok(NodeRuntime {
            decisions: Decisions { policy, actions: Vec::new(), timers: BTreeSet::new(), knows_idle: false, known_load: 0 },
            tasks: TaskStore::new(me, order, is_virtual),
            execution: Execution::new(computation.clone(), workers, options),
            joins: Joins::new(computation, me, host),
            outbox: Outbox::new(options.gather_below, options.loads_travel, options.largest_answer),
            migration: MigrationTimes::new(me, options.migration, options.contention, rng),
            graphs: None,
            phases: SystemPhases::new(me, nodes, scheduler.balancer()),
            termination: Termination::new(Tree::new(me, host, nodes)),
            statistics: Statistics::new(node.now(), options.trace),
            clock: None,
            effects: Effects::new(options.trace),
            news: Vec::new(),
            node,
        })
    }

    async fn run(&mut self, roots: Roots<C>) -> Result<()> {
        self.tell(Occurrence::Start)?;
        if self.termination.tree().parent.is_none() {
            self.begin(roots)?;
        }
        loop {
            if self.phases.is_going()
                && let Some(queue) = self.phases.go_on().await
            {
                self.phase_over(queue?)?;
            }
            self.settle_down()?;
            // No answer waits while this node waits, or goes on with its tasks.
            self.send_answers()?;
            if self.wave() {
                return Ok(());
            }
            self.statistics.rests(self.node.now());
            self.node.ready_to_send().await;
            if !self.execution.is_here() || !self.tasks.has_next() {
                let happened = self.phases.or_event(self.node.next_event()).await;
                self.statistics.wakes(self.node.now());
                match happened {
                    Happened::Event(event) => self.handle(event)?,
                    Happened::PhaseOver(queue) => self.phase_over(queue?)?,
                }
                continue;
            }
            self.statistics.wakes(self.node.now());
            self.decisions.knows_idle = false;
            self.execute_here()?;
            for _ in 0..EVENTS_BETWEEN {
                let Some(event) = self.node.try_event().await else { break };
                self.handle(event)?;
                self.settle_down()?;
            }
        }
    }

    /// Carries out all that follows from what happened: answers are delivered, tasks begin, an idle node asks for tasks.
    fn settle_down(&mut self) -> Result<()> {
        self.deliver_answers()?;
        self.send_answers_unless_more_follow()?;
        self.start_tasks();
        let view = self.view();
        if view.is_idle() && !self.decisions.knows_idle && !self.termination.has_stopped() {
            self.decisions.knows_idle = true;
            self.tell(Occurrence::Idle)?;
        }
        if view.load() != self.decisions.known_load {
            self.decisions.known_load = view.load();
            self.tell(Occurrence::Change)?;
        }
        self.start_tasks();
        self.share()
    }

    fn running(&self) -> usize {
        self.execution.running() + usize::from(self.tasks.is_sliced())
    }

    fn load(&self) -> u32 {
        self.tasks.ready() as u32 + self.running() as u32
    }

    fn view(&self) -> View {
        View {
            now: self.clock.unwrap_or_else(|| self.node.now()),
            ready: self.tasks.ready() as u32,
            running: self.running() as u32,
            workers: self.execution.workers() as u32,
        }
    }

    fn trace(&mut self, task: Option<Name>, what: Happening) {
        if self.statistics.is_tracing() {
            self.statistics.trace(self.node.now(), task, what);
        }
    }

    /// Tells the policy what happened, and does what it wants.
    fn tell(&mut self, what: Occurrence<'_>) -> Result<()> {
        let view = self.view();
        let mut actions = std::mem::take(&mut self.decisions.actions);
        self.decisions.policy.tell(what, &view, &mut actions)?;
        self.carry_out(actions.drain(..))?;
        self.decisions.actions = actions;
        Ok(())
    }

    /// Tells the policy of new tasks, if there are any.
    fn tell_new(&mut self, news: &[New], origin: Origin) -> Result<()> {
        if news.is_empty() { Ok(()) } else { self.tell(Occurrence::New(news, origin)) }
    }

    fn reuse(&mut self, mut news: Vec<New>) {
        news.clear();
        self.news = news;
    }

    fn send_tasks(&mut self, to: NodeId, mut tasks: Vec<Travelling<C::Task>>) -> Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        self.migration.depart(|| self.node.now(), to, &mut tasks);
        self.outbox.pack_tasks(to, self.load(), tasks, &mut self.effects)?;
        self.send();
        Ok(())
    }

    fn send_answers_unless_more_follow(&mut self) -> Result<()> {
        if self.outbox.gathers() { Ok(()) } else { self.send_answers() }
    }

    /// Sends all answers that are ready to leave.
    fn send_answers(&mut self) -> Result<()> {
        if !self.outbox.is_empty() {
            self.outbox.pack_answers(self.load(), &mut self.effects)?;
            self.send();
        }
        Ok(())
    }

    /// Carries out effects.
    fn send(&mut self) {
        for effect in self.effects.list.drain(..) {
            match effect {
                Effect::Send { to, tag, body, tasks } => {
                    self.termination.sent();
                    self.node.send_tasks(to, tag, body, tasks);
                }
                Effect::Trace { task, what } => self.statistics.trace(self.node.now(), Some(task), what),
            }
        }
    }

    /// Starts ready tasks on workers that have nothing to do.
    fn start_tasks(&mut self) {
        let capacity = self.execution.capacity();
        while self.execution.running() < capacity
            && let Some(item) = self.tasks.next_ready()
        {
            self.decisions.knows_idle = false;
            self.start(item);
        }
        self.tasks.measure();
    }

    fn start(&mut self, Item { id, header, task }: Item<C>) {
        let work = self.node.start(self.execution.work(task));
        self.execution.started(work, id, header);
    }

    /// Returns true if nothing can happen here any more unless a message brings a task or an answer.
    fn is_passive(&self) -> bool {
        self.tasks.is_empty()
            && self.execution.running() == 0
            && self.joins.is_empty()
            && self.outbox.is_empty()
            && !self.phases.is_going()
            && self.graphs.as_ref().is_none_or(Graphs::is_done)
    }

    /// Takes part in the waves that find out whether all is done; says whether it is.
    fn wave(&mut self) -> bool {
        while !self.termination.has_stopped() {
            match self.termination.next(self.is_passive(), self.node.now()) {
                Next::Wait => return false,
                Next::Ask => self.say_down(Say::Ask),
                Next::Answer(counts) => {
                    if let Some(parent) = self.termination.tree().parent {
                        self.statistics.control += 1;
                        self.node.send(parent, WAVE, &Say::Counts(counts));
                    }
                }
                Next::Pause(until) => {
                    if self.termination.needs_timer() {
                        self.termination.pauses(self.node.set_timer(until));
                    }
                    return false;
                }
                Next::Done => self.say_down(Say::Stop),
            }
        }
        true
    }

    fn say_down(&mut self, say: Say) {
        for child in &self.termination.tree().children {
            self.statistics.control += 1;
            self.node.send(*child, WAVE, &say);
        }
    }
}
