//! The scheduling node: it searches, receives completions, and sends out assignments.
//!
//! By the model (what the paper simulates) a phase is computed at once, and its assignments leave when it ends. By the clock the scheduler
//! polls the network between expansions, and a phase ends when its time is over, when the search is complete, or when a worker runs dry.
//! A host's scheduler does the same with the tasks that the one above it has given to its host so far.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use log::debug;

use super::Sash;
use super::clusters::Cluster;
use super::forecast::Forecast;
use super::messages::{ASSIGN, Assigned, COMPLETED, Completed, END};
use super::phase::{Plan, join};
use super::search::{Assignment, Search};
use crate::error::{Error, Result};
use crate::load::{CYCLE, Cost, Costs, NEVER};
use crate::node::{Event, Node, Ticks, open};
use crate::schedule::independent::{Chunk, Effort, Executor, Independent, Pace};
use crate::topology::{NodeId, RankId};

/// Time between two polls of the network by the scheduler.
const BETWEEN_LOOKS: Ticks = 50_000;

/// Maximum time by which assignments are sent ahead, as a multiple of the usual one.
const MOST_AHEAD: Ticks = 16;

/// The members that execute a scheduler's tasks: ranks, or hosts.
pub struct Members {
    /// The columns of the matrix, in ascending order; the nodes that get messages; how many ranks execute there.
    columns: Vec<usize>,
    nodes: Vec<NodeId>,
    widths: Vec<usize>,
    places: BTreeMap<NodeId, usize>,
}

impl Members {
    fn new(columns: Vec<usize>, nodes: Vec<NodeId>, widths: Vec<usize>) -> Members {
        let places = nodes.iter().enumerate().map(|(place, node)| (*node, place)).collect();
        Members { columns, nodes, widths, places }
    }

    /// Ranks, in ascending order.
    pub fn ranks(node: &Node, ranks: &[RankId]) -> Members {
        let nodes = ranks.iter().map(|rank| node.overlay().placement.real_node_of(*rank)).collect();
        Members::new(ranks.iter().map(|rank| rank.index()).collect(), nodes, vec![1; ranks.len()])
    }

    /// Clusters, whose schedulers get messages.
    pub fn clusters(node: &Node, clusters: &[Cluster]) -> Members {
        let nodes = clusters.iter().map(|cluster| node.overlay().placement.real_node_of(cluster.scheduler)).collect();
        Members::new((0..clusters.len()).collect(), nodes, clusters.iter().map(Cluster::width).collect())
    }
}

/// The run's cycles and ticks.
struct Clock {
    pace: Pace,
    /// Start time of the run.
    begun: Ticks,
}

impl Clock {
    /// Returns the tick at which this time has passed since the beginning of the run.
    fn at(&self, time: Cost) -> Ticks {
        self.begun.saturating_add(self.pace.ticks(time))
    }
}

/// Time before a worker's finish time at which assignments are sent. It adapts to their delay.
struct Ahead {
    now: Ticks,
    usual: Ticks,
    most: Ticks,
    /// Whether a search has the tasks that are left, and not the plan.
    searching: bool,
}

impl Ahead {
    /// They came late.
    fn grow(&mut self) {
        self.now = (self.now + self.now / 4).min(self.most);
    }

    /// They came in time.
    fn shrink(&mut self) {
        self.now = (self.now - self.now / 32).max(self.usual);
    }
}

/// The scheduler above a host's, and the tasks received from there.
struct Above {
    node: NodeId,
    /// Those that are not scheduled yet.
    fresh: Vec<usize>,
    /// Whether no more will come.
    ended: bool,
}

/// A scheduler at work.
pub struct Scheduler {
    node: Node,
    work: Arc<dyn Independent>,
    /// Tasks that have not arrived yet, in order.
    coming: VecDeque<usize>,
    /// Estimated costs of tasks, by column.
    estimates: Arc<Costs>,
    clock: Clock,
    sash: Arc<Sash>,
    /// Its own column.
    scheduler_rank: usize,
    members: Members,
    plan: Plan,
    pub executor: Executor,
    /// Tasks that have not ended anywhere.
    left: usize,
    pub effort: Effort,
    /// Forecast of the workers' finish times, in runs by the clock.
    forecast: Option<Forecast>,
    ahead: Ahead,
    /// For a host's scheduler.
    above: Option<Above>,
}

impl Scheduler {
    /// A scheduler of all tasks, whose own column is `scheduler_rank`. The run began at this time.
    #[expect(clippy::too_many_arguments, reason = "they are what a scheduler consists of")]
    pub fn new(
        node: Node,
        work: Arc<dyn Independent>,
        executor: Executor,
        pace: Pace,
        sash: Arc<Sash>,
        begun: Ticks,
        scheduler_rank: usize,
        members: Members,
        estimates: Arc<Costs>,
    ) -> Scheduler {
        let mut plan = Plan::new(&estimates, members.columns.clone());
        let left = plan.left.len() + plan.aside.len();
        let coming = if work.arrivals().is_empty() { VecDeque::new() } else { std::mem::take(&mut plan.left).into() };
        Scheduler {
            node,
            work,
            coming,
            estimates,
            clock: Clock { pace, begun },
            sash,
            scheduler_rank,
            members,
            plan,
            executor,
            left,
            effort: Effort::default(),
            forecast: None,
            ahead: Ahead { now: pace.ahead, usual: pace.ahead, most: MOST_AHEAD * pace.ahead, searching: false },
            above: None,
        }
    }

    /// The same with assignments that are sent this long before their receivers run dry.
    #[must_use]
    pub fn ahead_by(mut self, ahead: Ticks) -> Scheduler {
        self.ahead = Ahead { now: ahead, usual: ahead, most: 2 * ahead, searching: false };
        self
    }

    /// Tells the crew that all is done.
    pub fn end(&self) {
        self.members.nodes.iter().for_each(|node| self.node.send(*node, END, &()));
    }

    /// Now, from the beginning of the run.
    fn now(&self) -> Cost {
        self.clock.pace.cost(self.node.now() - self.clock.begun)
    }

    /// Column of the scheduler if it takes tasks itself: in the last phase; under another scheduler, where it doesn't know which phase is
    /// the last, when it has nothing to do.
    fn joins(&self) -> Option<usize> {
        let may = self.coming.is_empty() && (self.above.is_none() || self.executor.is_idle());
        (self.sash.joins && may).then_some(self.scheduler_rank)
    }

    /// Accepts the tasks that have arrived at this time. Returns the time of the next arrival if there is nothing to be scheduled.
    fn arrive(&mut self, now: Cost) -> Option<Cost> {
        let arrivals = self.work.arrivals();
        while let Some(&task) = self.coming.front().filter(|task| arrivals[**task] <= now) {
            self.plan.left.push(task);
            self.coming.pop_front();
        }
        self.coming.front().map(|task| arrivals[*task]).filter(|_| self.plan.left.is_empty())
    }

    /// Returns the time at which the last of the tasks arrives that no worker can run.
    fn last_aside(&self) -> Cost {
        self.plan.aside.iter().filter_map(|task| self.work.arrivals().get(*task)).copied().max().unwrap_or(0)
    }

    /// Runs by the model; the makespan is the model's, in cycles.
    pub async fn by_model(&mut self) -> Result<f64> {
        let costs = self.estimates.clone();
        let (mut now, mut own) = (0, 0);
        while !self.plan.left.is_empty() || !self.coming.is_empty() {
            while let Some(arrival) = self.arrive(now) {
                now = now.max(arrival);
                self.plan.nothing_until = now;
                self.wait_until(self.clock.at(now)).await?;
            }
            let phase = self.plan.phase(&costs, &self.sash.rules, now, self.joins());
            now = phase.end;
            own = own.max(now);
            self.wait_until(self.clock.at(now)).await?;
            self.log_phase(self.plan.tally.phases, &phase.assignments);
            let mut to_itself = Vec::new();
            for (place, &worker) in self.plan.workers.iter().enumerate() {
                let tasks: Vec<u64> = of(&phase.assignments, worker).map(|task| task as u64).collect();
                let took: Cost = tasks.iter().map(|task| costs.of(*task as usize, worker)).sum();
                if !tasks.is_empty() {
                    self.send(place, Assigned { tasks, due: Some(self.plan.finish[place] - took) });
                }
            }
            to_itself.extend(of(&phase.assignments, self.scheduler_rank));
            own = self.take(to_itself, own);
        }
        own = own.max(self.last_aside());
        let aside = std::mem::take(&mut self.plan.aside);
        own = self.take(aside, own);
        while self.left > 0 {
            self.next().await?;
        }
        let tally = self.plan.tally;
        self.effort = Effort {
            decisions: tally.phases,
            expansions: tally.expansions,
            generated: tally.nodes,
            search: tally.search as f64 / CYCLE as f64,
            waiting: tally.waiting as f64 / CYCLE as f64,
            ..self.effort
        };
        let worked = if self.executor.figures.tasks > 0 { own } else { 0 };
        Ok(self.plan.finish.iter().copied().max().unwrap_or(0).max(worked) as f64 / CYCLE as f64)
    }

    /// Gives itself tasks, to begin at this time; returns when they will have ended by the model.
    fn take(&mut self, tasks: Vec<usize>, at: Cost) -> Cost {
        let end = tasks.iter().fold(at, |end, task| end.saturating_add(self.estimates.of(*task, self.scheduler_rank)));
        self.executor.take(Chunk::list(tasks), Some(self.clock.at(at)));
        end
    }

    /// Logs the result of a phase.
    fn log_phase(&self, number: u64, assignments: &[Assignment]) {
        debug!(
            "{} ends phase {number} of its scheduling: {} tasks are assigned, {} of them to itself",
            self.node,
            assignments.len(),
            of(assignments, self.scheduler_rank).count()
        );
    }

    fn send(&self, place: usize, assigned: Assigned) {
        debug!("{} assigns {} tasks to node {}", self.node, assigned.tasks.len(), self.members.nodes[place]);
        self.node.send(self.members.nodes[place], ASSIGN, &assigned);
    }

    async fn wait_until(&mut self, at: Ticks) -> Result<()> {
        if at <= self.node.now() {
            return Ok(());
        }
        let timer = self.node.expect_at(at);
        loop {
            match self.node.next_event().await {
                Event::Timer { timer: ended, .. } if ended == timer => return Ok(()),
                event => self.happened(event)?,
            }
        }
    }

    async fn next(&mut self) -> Result<()> {
        let event = self.node.next_event().await;
        self.happened(event)
    }

    fn happened(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Message(message) if message.envelope.tag == COMPLETED.id() => {
                let Completed { tasks, took } = open(&message, COMPLETED)?;
                let now = self.now();
                if let (Some(forecast), Some(&place)) = (&mut self.forecast, self.members.places.get(&message.envelope.src)) {
                    let tasks: Vec<usize> = tasks.iter().map(|task| *task as usize).collect();
                    forecast.completed(place, &tasks, self.clock.pace.cost(took), now);
                    // Assignments came too late: the next ones leave earlier. While it searches, the tasks are with the search.
                    if (self.ahead.searching || !self.plan.left.is_empty()) && forecast.is_dry(place) {
                        self.ahead.grow();
                    }
                }
                self.ended(tasks, took);
            }
            Event::Message(message) if message.envelope.tag == ASSIGN.id() => {
                let assigned: Assigned = open(&message, ASSIGN)?;
                self.executor.figures.migrated += assigned.tasks.len() as u64;
                if let Some(above) = &mut self.above {
                    above.fresh.extend(assigned.tasks.into_iter().map(|task| task as usize));
                }
            }
            Event::Message(message) if message.envelope.tag == END.id() => {
                if let Some(above) = &mut self.above {
                    above.ended = true;
                }
            }
            Event::Finished { finished, .. } => {
                let done = self.executor.finished(finished)?;
                self.ended(done.tasks.tasks().into_iter().map(|task| task as u64).collect(), done.took);
            }
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
        Ok(())
    }

    /// Notes that tasks have ended. The scheduler above is sent this, and how long they took for all workers together.
    fn ended(&mut self, tasks: Vec<u64>, took: Ticks) {
        self.left = self.left.saturating_sub(tasks.len());
        if let Some(above) = &self.above {
            let width = self.members.columns.len().max(1) as Ticks;
            self.node.send(above.node, COMPLETED, &Completed { tasks, took: took / width });
        }
    }

    /// Schedules the tasks that the top scheduler gives, until it reports the end.
    pub async fn under(&mut self, above: NodeId) -> Result<()> {
        self.above = Some(Above { node: above, fresh: Vec::new(), ended: false });
        self.forecast = Some(Forecast::of_ranks(self.members.columns.len()));
        (self.coming, self.plan.left, self.plan.aside) = Default::default();
        while let Some(above) = self.above.as_mut().filter(|above| !above.ended) {
            let (can, cannot): (Vec<usize>, Vec<usize>) = std::mem::take(&mut above.fresh)
                .into_iter()
                .partition(|task| self.members.columns.iter().any(|column| self.estimates.of(*task, *column) != NEVER));
            self.plan.left.extend(can);
            self.executor.take(Chunk::list(cannot), None);
            if self.plan.left.is_empty() {
                self.next().await?;
            } else {
                let assignments = self.search().await?;
                self.give(assignments);
            }
        }
        Ok(())
    }

    /// Goes by the clock; the makespan is when the last completion was heard of, in cycles.
    pub async fn by_clock(&mut self) -> Result<f64> {
        self.forecast = Some(Forecast::new(&self.members.widths));
        while !self.plan.left.is_empty() || !self.coming.is_empty() {
            while let Some(arrival) = self.arrive(self.now()) {
                self.wait_until(self.clock.at(arrival)).await?;
            }
            let assignments = self.search().await?;
            self.give(assignments);
        }
        if !self.plan.aside.is_empty() {
            self.wait_until(self.clock.at(self.last_aside())).await?;
        }
        let aside = std::mem::take(&mut self.plan.aside);
        self.executor.take(Chunk::list(aside), None);
        while self.left > 0 {
            self.next().await?;
        }
        Ok(self.now() as f64 / CYCLE as f64)
    }

    /// Hears what has happened by now.
    async fn poll(&mut self) -> Result<()> {
        while let Some(event) = self.node.try_event().await {
            self.happened(event)?;
        }
        Ok(())
    }

    /// A phase by the clock.
    async fn search(&mut self) -> Result<Vec<Assignment>> {
        self.poll().await?;
        let (rules, estimates) = (self.sash.rules, self.estimates.clone());
        let begun = self.now();
        let finish = self.forecast.as_ref().map(|forecast| forecast.finish(begun)).unwrap_or_default();
        let factors = self.forecast.as_ref().map(Forecast::factors).unwrap_or_default();
        let ahead = self.clock.pace.cost(self.ahead.now);
        let end = finish.iter().copied().min().unwrap_or(begun).max(begun);
        // Assignments are to arrive before the worker runs dry.
        let until = end.saturating_sub(ahead).max(begun);
        // Completions are heard meanwhile, so the search has its own tasks and workers.
        let left = std::mem::take(&mut self.plan.left);
        self.ahead.searching = true;
        let places = candidates(&self.plan.workers, &finish, &left, &estimates, end.max(begun + ahead));
        let workers: Vec<usize> = places.iter().map(|place| self.plan.workers[*place]).collect();
        let base = places.iter().map(|place| finish[*place].max(end)).collect();
        let factors = places.iter().map(|place| factors[*place]).collect();
        let mut search = Search::new(&estimates, &workers, &left, base, rules.window, rules.ties).scaled(factors);
        let (mut expansions, mut used) = (0, 0);
        let mut looked = self.node.now();
        while !search.is_complete() && expansions < rules.most {
            let before = self.node.now();
            let generated = search.expand();
            // Time of a node in simulation; on real ranks it has passed already.
            self.node.charge(self.clock.pace.ticks(rules.v * generated));
            used += self.node.now() - before;
            expansions += 1;
            if generated == 0 || self.now() >= until {
                break;
            }
            if self.node.now() - looked >= BETWEEN_LOOKS {
                self.poll().await?;
                looked = self.node.now();
                if self.forecast.as_ref().is_some_and(Forecast::is_any_dry) {
                    break;
                }
            }
        }
        self.effort.decisions += 1;
        self.effort.expansions += u64::from(expansions);
        self.effort.generated += search.generated();
        self.effort.search += self.clock.pace.cost(used) as f64 / CYCLE as f64;
        if !search.is_complete() && self.now() < until {
            let at = self.clock.at(until);
            let timer = self.node.expect_at(at);
            while !self.forecast.as_ref().is_some_and(Forecast::is_any_dry) {
                match self.node.next_event().await {
                    Event::Timer { timer: ended, .. } if ended == timer => break,
                    event => self.happened(event)?,
                }
            }
            self.node.cancel_timer(timer);
        }
        if !self.forecast.as_ref().is_some_and(Forecast::is_any_dry) {
            self.ahead.shrink();
        }
        let mut assignments = search.chosen(rules.choice);
        if let Some(scheduler) = self.joins().filter(|_| assignments.len() == left.len()) {
            let now = self.now();
            let finish = self.forecast.as_ref().map(|forecast| forecast.finish(now)).unwrap_or_default();
            join(&estimates, &mut assignments, self.plan.workers.iter().copied().zip(finish).collect(), scheduler, now);
        }
        self.plan.left = left;
        self.ahead.searching = false;
        Ok(assignments)
    }

    fn give(&mut self, assignments: Vec<Assignment>) {
        self.log_phase(self.effort.decisions, &assignments);
        let now = self.now();
        for place in 0..self.plan.workers.len() {
            let worker = self.plan.workers[place];
            let tasks: Vec<usize> = of(&assignments, worker).collect();
            if tasks.is_empty() {
                continue;
            }
            if let Some(forecast) = &mut self.forecast {
                tasks.iter().for_each(|&task| forecast.grant(place, Assignment { task, worker }, &self.estimates, now));
            }
            self.send(place, Assigned { tasks: tasks.into_iter().map(|task| task as u64).collect(), due: None });
        }
        self.executor.take(Chunk::list(of(&assignments, self.scheduler_rank)), None);
        self.plan.remove(&assignments);
    }
}

/// The places of the workers that a phase gives tasks to: all of them, if it lasts as long as assignments are sent ahead; otherwise those that run
/// dry until then. The cost of a schedule is its last worker's end, so while others hold much, a task would go to the cheapest worker, and the dry
/// one would stay dry.
fn candidates(workers: &[usize], finish: &[Cost], left: &[usize], costs: &Costs, until: Cost) -> Vec<usize> {
    let all = || 0..workers.len();
    let dry: Vec<usize> = all().filter(|place| finish[*place] <= until).collect();
    let can = left.first().is_some_and(|task| dry.iter().any(|place| costs.of(*task, workers[*place]) != NEVER));
    let is_short = finish.iter().copied().min().is_some_and(|least| least < until);
    if is_short && can { dry } else { all().collect() }
}

fn of(assignments: &[Assignment], worker: usize) -> impl Iterator<Item = usize> + '_ {
    assignments.iter().filter(move |assignment| assignment.worker == worker).map(|assignment| assignment.task)
}

#[cfg(test)]
mod tests;
