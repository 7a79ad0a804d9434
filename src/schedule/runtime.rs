//! What a node does in a run: the loop around its policy, its tasks and its messages.
//!
//! Everything that happens to the node is an event; the policy is told of it and says what it wants done. Between two events tasks are
//! executed: by worker threads, or here in batches or slices.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use rand::rngs::ChaCha8Rng;

use super::accounting::{Entry, Happening, Name, NodeReport, Outcome};
use super::answers::{Gathering, Outbound};
use super::computation::{Computation, Roots, Style};
use super::host::Host;
use super::item::{ANSWERS, Answered, Home, Item, JoinFrames, TASKS, TaskHeader};
use super::policy::{Action, AnyPolicy, ItemId, New, Occurrence, Order, POLICY, Place, View};
use super::system_phase::{BEGIN, Happened, SystemPhases};
use super::termination::{Counts, Next, Say, Tree, WAVE, Waves};
use super::unplaced::Unplaced;
use super::{Chosen, Options};
use crate::error::{Error, Result};
use crate::node::{self, Event, Message, Node, Ticks, TimerId, WorkId};
use crate::topology::NodeId;

/// One node's part in a run; call it on every node, with the same computation, scheduler and options.
///
/// The node should be in an epoch of its own, since whatever else comes to its scope meanwhile is an error.
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
) -> Result<Outcome<C::Answer>> {
    let mut shell = Shell::new(&node, computation, &scheduler, options)?;
    shell.run(roots).await?;
    shell.end().await
}

/// What a node holds and knows during a run.
pub(super) struct Shell<C: Computation> {
    pub node: Node,
    pub me: NodeId,
    pub counts: Rc<node::Recorder>,
    pub computation: Arc<C>,
    pub policy: Box<dyn AnyPolicy>,
    pub options: Options,
    pub style: Style,
    pub order: Order,
    /// How many tasks it executes at a time; 0 on a virtual node.
    pub workers: usize,
    /// For the times of migrations.
    pub rng: ChaCha8Rng,
    /// The host's part.
    pub host: Option<Host<C>>,
    pub host_node: NodeId,

    /// The number of the next task that comes here or is born here.
    next_item: u64,
    /// Tasks that the policy has not placed.
    pub unplaced: Unplaced<Item<C>>,
    /// The oldest in front.
    pub ready: VecDeque<Item<C>>,
    /// On worker threads.
    pub running: BTreeMap<WorkId, (ItemId, TaskHeader)>,
    /// Between two slices on this thread.
    pub sliced: Option<Item<C>>,
    /// Nodes that asked for tasks and have got none yet, the longest waiting in front.
    pub hungry: VecDeque<NodeId>,
    /// Nodes that asked for a part of a task that is being executed, and what they are told if there is none.
    pub awaiting_parts: VecDeque<(NodeId, Bytes)>,
    /// When this node's links are free for the next migration, if migrations queue for them.
    pub links: Vec<Ticks>,
    /// Migrating: under way until a timer runs out.
    pub delayed: BTreeMap<TimerId, (NodeId, Item<C>)>,
    pub frames: JoinFrames<C>,
    /// Answers to be delivered.
    pub answers: VecDeque<Answered<C::Answer>>,
    /// Answers that belong to other nodes, until they leave, and whether they wait for more.
    pub outbound: Outbound<C::Answer>,
    pub gathering: Gathering,
    /// Those of detached tasks and roots that ended up here, combined.
    pub partial: Option<C::Answer>,

    pub phases: SystemPhases,

    timers: BTreeMap<TimerId, ()>,
    actions: Vec<Action<Bytes>>,
    told_idle: bool,
    told_load: u32,
    pub waves: Waves,
    pause: Option<TimerId>,
    stopped: bool,
    /// Messages with tasks or answers.
    pub books: Counts,
    pub began: Ticks,
    /// What time it is, where that was just looked up.
    pub clock: Option<Ticks>,
    /// Since when the program has not waited, and how long it has executed tasks since then.
    awake_since: Ticks,
    pub executed_here: Ticks,
    /// Processor time of this thread when it was last asked for, and when that was.
    pub processor: Option<(Ticks, Ticks)>,
    pub report: NodeReport,
}

/// Events that are taken between two slices of work, at the most.
const EVENTS_BETWEEN: usize = 256;

impl<C: Computation> Shell<C> {
    fn new(node: &Node, computation: Arc<C>, scheduler: &Chosen, options: Options) -> Result<Shell<C>> {
        if let Some(objection) = scheduler.objection(node.topology()) {
            return Err(objection.into());
        }
        let (node, counts) = node.recorded();
        let me = node.me();
        let place = Place { me, overlay: node.overlay().clone(), workers: options.workers, unit: options.unit.max(1) };
        let (is_virtual, host_node) = (place.is_virtual(), place.host());
        let mut rng = node.rng();
        // The policy draws from a stream of its own, so that how migrations turn out does not depend on it.
        let policy_rng = node.rng();
        rng.set_stream(1 << 32 | u64::from(me));
        let policy = scheduler.policy(place, policy_rng)?;
        let workers = if is_virtual { 0 } else { options.workers.max(1) };
        let order = options.order.unwrap_or_else(|| policy.order());
        let report = NodeReport { node: me, rank: node.rank_of(me), is_virtual, workers, ..NodeReport::default() };
        let waves = Waves::new(Tree::new(me, host_node, node.nodes()));
        Ok(Shell {
            me,
            counts,
            style: options.style.unwrap_or(C::STYLE),
            computation,
            policy,
            order,
            workers: workers as usize,
            rng,
            host: None,
            host_node,
            next_item: 0,
            unplaced: Unplaced::default(),
            ready: VecDeque::new(),
            running: BTreeMap::new(),
            sliced: None,
            hungry: VecDeque::new(),
            awaiting_parts: VecDeque::new(),
            links: Vec::new(),
            delayed: BTreeMap::new(),
            frames: JoinFrames::default(),
            answers: VecDeque::new(),
            outbound: Outbound::default(),
            gathering: Gathering::new(options.gather_below),
            partial: None,
            phases: SystemPhases::new(scheduler.balancer()),
            timers: BTreeMap::new(),
            actions: Vec::new(),
            told_idle: false,
            told_load: 0,
            waves,
            pause: None,
            stopped: false,
            books: Counts::default(),
            began: node.now(),
            clock: None,
            awake_since: node.now(),
            executed_here: 0,
            processor: None,
            report,
            options,
            node,
        })
    }

    async fn run(&mut self, roots: Roots<C>) -> Result<()> {
        self.tell(Occurrence::Start)?;
        if self.me == self.host_node {
            self.submit(roots)?;
        }
        loop {
            self.go_on_with_phase().await?;
            self.settle_down()?;
            // No answer waits while this node waits, or goes on with its tasks.
            self.send_answers()?;
            if self.wave()? {
                return Ok(());
            }
            self.rests();
            self.node.ready_to_send().await;
            if !self.has_work_here() {
                let happened = self.next().await;
                self.wakes();
                match happened {
                    Happened::Event(event) => self.handle(event)?,
                    Happened::PhaseOver(queue) => self.phase_over(queue?)?,
                }
                continue;
            }
            self.wakes();
            self.told_idle = false;
            self.work_here()?;
            for _ in 0..EVENTS_BETWEEN {
                let Some(event) = self.node.try_event().await else { break };
                self.handle(event)?;
                self.settle_down()?;
            }
        }
    }

    /// The program has something to do from now on.
    fn wakes(&mut self) {
        self.awake_since = self.node.now();
    }

    /// It has nothing to do: what it did, but for the tasks it executed, is overhead.
    pub fn rests(&mut self) {
        let awake = self.node.now().saturating_sub(self.awake_since);
        self.report.overhead += awake.saturating_sub(std::mem::take(&mut self.executed_here));
    }

    /// Lets everything follow from what happened: answers, tasks that begin, an idle node's requests.
    fn settle_down(&mut self) -> Result<()> {
        self.deliver_answers()?;
        self.send_answers_unless_more_follow()?;
        self.dispatch();
        let view = self.view();
        if view.is_idle() && !self.told_idle && !self.stopped {
            self.told_idle = true;
            self.tell(Occurrence::Idle)?;
        }
        if view.load() != self.told_load {
            self.told_load = view.load();
            self.tell(Occurrence::Change)?;
        }
        self.dispatch();
        self.share()
    }

    fn dispatch(&mut self) {
        if self.begin_tasks() {
            self.told_idle = false;
        }
        self.report.peak_ready = self.report.peak_ready.max(self.ready.len() as u64);
    }

    pub fn view(&self) -> View {
        View {
            now: self.clock.unwrap_or_else(|| self.node.now()),
            ready: self.ready.len() as u32,
            running: (self.running.len() + usize::from(self.sliced.is_some())) as u32,
            workers: self.workers as u32,
        }
    }

    /// Tells the policy what happened, and does what it wants.
    pub fn tell(&mut self, what: Occurrence<'_>) -> Result<()> {
        let view = self.view();
        let mut actions = std::mem::take(&mut self.actions);
        self.policy.tell(what, &view, &mut actions)?;
        self.carry_out(actions.drain(..))?;
        self.actions = actions;
        Ok(())
    }

    pub fn set_policy_timer(&mut self, at: Ticks) {
        let timer = self.node.set_timer(at);
        self.timers.insert(timer, ());
    }

    /// A task is born, or comes here. It must be placed.
    pub fn enter(&mut self, header: TaskHeader, task: C::Task) -> New {
        let id = self.number();
        self.unplaced.push(id, Item { id, header, task });
        New { item: id, hops: header.hops }
    }

    pub fn number(&mut self) -> ItemId {
        self.next_item += 1;
        ItemId(self.next_item)
    }

    /// The task header of a task that is born here.
    pub fn birth(&mut self, home: Home, chain: Ticks) -> TaskHeader {
        let name = Name { born: self.me, number: self.report.born };
        self.report.born += 1;
        TaskHeader { name, home, label: 0, hops: 0, chain, spent: 0, divided: false }
    }

    /// Notes what happened now.
    pub fn trace(&mut self, task: impl Into<Option<Name>>, what: Happening) {
        if self.options.trace {
            self.trace_at(self.node.now(), task, what);
        }
    }

    pub fn trace_at(&mut self, at: Ticks, task: impl Into<Option<Name>>, what: Happening) {
        if self.options.trace {
            self.report.trace.push(Entry { at: at.saturating_sub(self.began), task: task.into(), what });
        }
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Message(message) => self.hear(&message),
            Event::Timer { timer, .. } => self.timer(timer),
            Event::Finished { finished, .. } => self.finished(finished),
            Event::Signal(_) => Ok(()),
            Event::RankLost(rank) => Err(Error::RankLost { rank }),
        }
    }

    fn hear(&mut self, message: &Message) -> Result<()> {
        let tag = message.envelope.tag;
        if tag == TASKS.id() {
            self.books.received += 1;
            self.arrive(message)
        } else if tag == ANSWERS.id() {
            self.books.received += 1;
            self.answers_arrive(message)
        } else if tag == POLICY.id() {
            self.trace(None, Happening::Heard { from: message.envelope.src });
            self.tell(Occurrence::Message(message))
        } else if tag == WAVE.id() {
            self.hear_wave(message)
        } else if tag == BEGIN.id() {
            self.phase_begins(message)
        } else {
            Err(Error::Failed(format!("a message with tag {tag:#06x} from node {} does not belong to the run", message.envelope.src)))
        }
    }

    fn timer(&mut self, timer: TimerId) -> Result<()> {
        if self.timers.remove(&timer).is_some() {
            self.tell(Occurrence::Timer)
        } else if let Some((from, item)) = self.delayed.remove(&timer) {
            self.migrated(from, vec![item])
        } else if self.pause == Some(timer) {
            self.pause = None;
            Ok(())
        } else {
            self.arrival(timer)
        }
    }

    /// Whether nothing can happen here any more unless a message brings a task or an answer.
    fn is_passive(&self) -> bool {
        self.ready.is_empty()
            && self.running.is_empty()
            && self.sliced.is_none()
            && self.unplaced.is_empty()
            && self.delayed.is_empty()
            && self.answers.is_empty()
            && self.outbound.is_empty()
            && !self.phases.is_going()
            && self.host.as_ref().is_none_or(Host::is_done)
    }

    /// Takes part in the waves that find out whether all is done; says whether it is.
    fn wave(&mut self) -> Result<bool> {
        while !self.stopped {
            match self.waves.next(self.is_passive(), self.books, self.node.now()) {
                Next::Wait => return Ok(false),
                Next::Ask => self.say_down(Say::Ask),
                Next::Answer(counts) => {
                    if let Some(parent) = self.waves.tree.parent {
                        self.say(parent, Say::Counts(counts));
                    }
                }
                Next::Pause(until) => {
                    if self.pause.is_none() {
                        self.pause = Some(self.node.set_timer(until));
                    }
                    return Ok(false);
                }
                Next::Done => self.stop(),
            }
        }
        Ok(true)
    }

    fn hear_wave(&mut self, message: &Message) -> Result<()> {
        let say: Say = node::open(message, WAVE)?;
        match say {
            Say::Stop => self.stop(),
            _ => {
                self.waves.hear(say).map_err(Error::Failed)?;
                if say == Say::Ask {
                    self.say_down(say);
                }
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.say_down(Say::Stop);
    }

    fn say_down(&mut self, say: Say) {
        for child in self.waves.tree.children.clone() {
            self.say(child, say);
        }
    }

    fn say(&mut self, to: NodeId, say: Say) {
        self.report.control += 1;
        self.node.send(to, WAVE, &say);
    }

    /// What is left where all should be done, if anything is.
    pub fn leftover(&self) -> Option<String> {
        if !self.is_passive() {
            let counts = [self.ready.len(), self.view().running as usize, self.unplaced.len(), self.delayed.len()];
            let [ready, running, unplaced, delayed] = counts;
            return Some(format!("{ready} tasks ready, {running} running, {unplaced} unplaced and {delayed} under way"));
        }
        self.frames.first().map(|name| format!("task {name}, whose children were never all answered"))
    }
}
