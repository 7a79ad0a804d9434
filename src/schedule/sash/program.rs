//! The rank program: one node searches, the others execute what it found.
//!
//! By the model (what the paper simulates) a phase is computed at once, and its assignments leave when it ends. By the clock the scheduler
//! looks at the network between expansions, and a phase ends when its time is over, when the search is complete, or when a worker runs dry.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::Sash;
use super::forecast::Forecast;
use super::phase::{Plan, join};
use super::search::{Assignment, Search};
use crate::error::{Error, Result};
use crate::load::{CYCLE, Cost, Costs, NEVER};
use crate::node::{Event, Node, Tag, Ticks, open};
use crate::schedule::independent::{Effort, Figures, Hands, Independent, Lot, Outcome, Pace, collect};
use crate::topology::NodeId;

const ASSIGN: Tag = Tag::new(0x0611, "assignment of tasks");
const COMPLETED: Tag = Tag::new(0x0612, "completion of tasks");
const END: Tag = Tag::new(0x0613, "end of scheduling");

/// The scheduler looks at the network after so long.
const BETWEEN_LOOKS: Ticks = 50_000;

/// How far ahead assignments are sent at the most, as a multiple of what is usual.
const MOST_AHEAD: Ticks = 16;

/// Streams of random numbers below are nodes'.
const ESTIMATES_STREAM: u64 = (1 << 32) + 0x61;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Assigned {
    tasks: Vec<u64>,
    /// When the first begins by the model.
    due: Option<Cost>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Completed {
    tasks: Vec<u64>,
    took: Ticks,
}

/// One node's part.
///
/// # Errors
/// If a rank is lost.
pub async fn execute(node: Node, work: Arc<dyn Independent>, pace: Pace, sash: Arc<Sash>) -> Result<Option<Outcome>> {
    let (node, recorder) = node.recorded();
    let begun = node.now();
    let seat = sash.seat.rank(work.costs());
    let scheduler = node.overlay().placement.real_node_of(seat as u32);
    let hands = Hands::new(node.clone(), work.clone());
    let (figures, mine) = if node.me() == scheduler {
        let by_model = pace.by_model && sash.error == 0.0 && !sash.alike;
        let estimates = estimates(work.costs(), &sash, pace.seed);
        let mut plan = Plan::new(&estimates, (0..work.costs().ranks()).filter(|rank| *rank != seat).collect());
        let effort = Effort { scheduler: seat as u32, ..Effort::default() };
        let wanted = plan.left.len() + plan.aside.len();
        let coming = if work.arrivals().is_empty() { VecDeque::new() } else { std::mem::take(&mut plan.left).into() };
        let mut program = Program {
            work: work.clone(),
            coming,
            node: node.clone(),
            costs: work.costs().clone(),
            estimates,
            pace,
            sash,
            seat,
            plan,
            hands,
            begun,
            completed: 0,
            wanted,
            effort,
            forecast: None,
            ahead: pace.ahead,
        };
        let makespan = if by_model { program.by_model().await? } else { program.by_clock().await? };
        for other in (0..node.nodes()).filter(|other| *other != scheduler) {
            node.send(other, END, &());
        }
        (program.hands.figures, Some((makespan, program.effort)))
    } else {
        (worker(&node, hands, scheduler, begun, &pace).await?, None)
    };
    let counts = recorder.get();
    let figures = Figures { elapsed: node.now() - begun, messages: counts.messages, bytes: counts.bytes, ..figures };
    collect(&node, figures, mine).await
}

/// What the scheduler believes: costs that are wrong by as much as the options say.
fn estimates(costs: &Arc<Costs>, sash: &Sash, seed: u64) -> Arc<Costs> {
    if sash.error == 0.0 && !sash.alike {
        return costs.clone();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(ESTIMATES_STREAM);
    let mean = |row: &[Cost]| {
        let finite = || row.iter().copied().filter(|cost| *cost != NEVER);
        (finite().map(u128::from).sum::<u128>() / finite().count().max(1) as u128) as Cost
    };
    let known = match sash.alike {
        false => costs.as_ref().clone(),
        true => {
            let alike = costs.rows().flat_map(|row| {
                let mean = mean(row);
                row.iter().map(move |cost| if *cost == NEVER { NEVER } else { mean })
            });
            Costs::new(costs.ranks() as u32, alike.collect()).unwrap_or_else(|| costs.as_ref().clone())
        }
    };
    Arc::new(known.map(|_, cost| (cost as f64 * (1.0 + sash.error * rng.random_range(-1.0..=1.0))).max(0.0) as Cost))
}

/// A worker: it holds a queue, receives while it computes, and tells of every completion.
async fn worker(node: &Node, mut hands: Hands, scheduler: NodeId, begun: Ticks, pace: &Pace) -> Result<Figures> {
    loop {
        match node.next_event().await {
            Event::Message(message) if message.envelope.tag == ASSIGN.id() => {
                let assigned: Assigned = open(&message, ASSIGN)?;
                hands.figures.migrated += assigned.tasks.len() as u64;
                let due = assigned.due.map(|due| begun + pace.ticks(due));
                hands.take(Lot::List(assigned.tasks.into()), due);
            }
            Event::Message(message) if message.envelope.tag == END.id() => return Ok(hands.figures),
            Event::Finished { finished, .. } => {
                let done = hands.finished(finished)?;
                let tasks = done.tasks.tasks().into_iter().map(|task| task as u64).collect();
                node.send(scheduler, COMPLETED, &Completed { tasks, took: done.took });
            }
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
    }
}

/// The scheduling node.
struct Program {
    node: Node,
    work: Arc<dyn Independent>,
    /// Tasks that have not arrived yet, in order.
    coming: VecDeque<usize>,
    costs: Arc<Costs>,
    estimates: Arc<Costs>,
    pace: Pace,
    sash: Arc<Sash>,
    seat: usize,
    plan: Plan,
    hands: Hands,
    begun: Ticks,
    /// Tasks that have ended anywhere, and how many there are.
    completed: usize,
    wanted: usize,
    effort: Effort,
    /// By the clock: when workers will have finished; how long before that assignments are sent, which adapts to how long they take.
    forecast: Option<Forecast>,
    ahead: Ticks,
}

impl Program {
    /// Now, from the beginning of the run.
    fn now(&self) -> Cost {
        self.pace.cost(self.node.now() - self.begun)
    }

    /// Whether the scheduler takes tasks itself: in the last phase.
    fn joins(&self) -> Option<usize> {
        (self.sash.joins && self.coming.is_empty()).then_some(self.seat)
    }

    /// Lets in what has arrived at this time. If nothing is there to be scheduled, when the next task comes.
    fn arrive(&mut self, now: Cost) -> Option<Cost> {
        let arrivals = self.work.arrivals();
        while let Some(&task) = self.coming.front().filter(|task| arrivals[**task] <= now) {
            self.plan.left.push(task);
            self.coming.pop_front();
        }
        self.coming.front().map(|task| arrivals[*task]).filter(|_| self.plan.left.is_empty())
    }

    /// When the last of the tasks arrives that no worker can run.
    fn last_aside(&self) -> Cost {
        self.plan.aside.iter().filter_map(|task| self.work.arrivals().get(*task)).copied().max().unwrap_or(0)
    }

    /// Does what the model says; the makespan is the model's, in cycles.
    async fn by_model(&mut self) -> Result<f64> {
        let costs = self.costs.clone();
        let (mut now, mut own) = (0, 0);
        while !self.plan.left.is_empty() || !self.coming.is_empty() {
            while let Some(arrival) = self.arrive(now) {
                now = now.max(arrival);
                self.plan.nothing_until = now;
                self.wait_until(self.begun + self.pace.ticks(now)).await?;
            }
            let phase = self.plan.phase(&costs, &self.sash.rules, now, self.joins());
            now = phase.end;
            own = own.max(now);
            self.wait_until(self.begun + self.pace.ticks(now)).await?;
            let mut to_itself = Vec::new();
            for (place, &worker) in self.plan.workers.iter().enumerate() {
                let tasks: Vec<u64> = of(&phase.assignments, worker).map(|task| task as u64).collect();
                let took: Cost = tasks.iter().map(|task| costs.of(*task as usize, worker)).sum();
                if !tasks.is_empty() {
                    self.send(worker, Assigned { tasks, due: Some(self.plan.finish[place] - took) });
                }
            }
            to_itself.extend(of(&phase.assignments, self.seat));
            own = self.take(to_itself, own);
        }
        own = own.max(self.last_aside());
        let aside = std::mem::take(&mut self.plan.aside);
        own = self.take(aside, own);
        while self.completed < self.wanted {
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
        let worked = if self.hands.figures.tasks > 0 { own } else { 0 };
        Ok(self.plan.finish.iter().copied().max().unwrap_or(0).max(worked) as f64 / CYCLE as f64)
    }

    /// Gives itself tasks, to begin at this time; returns when they will have ended by the model.
    fn take(&mut self, tasks: Vec<usize>, at: Cost) -> Cost {
        let end = tasks.iter().fold(at, |end, task| end.saturating_add(self.costs.of(*task, self.seat)));
        self.hands.take(Lot::list(tasks), Some(self.begun + self.pace.ticks(at)));
        end
    }

    fn send(&self, worker: usize, assigned: Assigned) {
        self.node.send(self.node.overlay().placement.real_node_of(worker as u32), ASSIGN, &assigned);
    }

    async fn wait_until(&mut self, at: Ticks) -> Result<()> {
        if at <= self.node.now() {
            return Ok(());
        }
        let timer = self.node.set_timer(at);
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
                self.completed += tasks.len();
                let rank = self.node.rank_of(message.envelope.src) as usize;
                let now = self.now();
                if let (Some(forecast), Ok(place)) = (&mut self.forecast, self.plan.workers.binary_search(&rank)) {
                    let tasks: Vec<usize> = tasks.into_iter().map(|task| task as usize).collect();
                    forecast.completed(place, &tasks, self.pace.cost(took), now);
                    // Assignments came too late: the next ones leave earlier.
                    if !self.plan.left.is_empty() && forecast.is_dry(place) {
                        self.ahead = (self.ahead + self.ahead / 4).min(MOST_AHEAD * self.pace.ahead);
                    }
                }
            }
            Event::Finished { finished, .. } => self.completed += self.hands.finished(finished)?.tasks.count() as usize,
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
        Ok(())
    }

    /// Goes by the clock; the makespan is when the last completion was heard of, in cycles.
    async fn by_clock(&mut self) -> Result<f64> {
        self.forecast = Some(Forecast::new(self.plan.workers.len()));
        while !self.plan.left.is_empty() || !self.coming.is_empty() {
            while let Some(arrival) = self.arrive(self.now()) {
                self.wait_until(self.begun + self.pace.ticks(arrival)).await?;
            }
            let assignments = self.search().await?;
            self.give(assignments);
        }
        if !self.plan.aside.is_empty() {
            self.wait_until(self.begun + self.pace.ticks(self.last_aside())).await?;
        }
        let aside = std::mem::take(&mut self.plan.aside);
        self.hands.take(Lot::list(aside), None);
        while self.completed < self.wanted {
            self.next().await?;
        }
        Ok(self.now() as f64 / CYCLE as f64)
    }

    /// Hears what has happened by now.
    async fn look(&mut self) -> Result<()> {
        while let Some(event) = self.node.try_event().await {
            self.happened(event)?;
        }
        Ok(())
    }

    /// A phase by the clock.
    async fn search(&mut self) -> Result<Vec<Assignment>> {
        self.look().await?;
        let (rules, estimates) = (self.sash.rules, self.estimates.clone());
        let begun = self.now();
        let finish = self.forecast.as_ref().map(|forecast| forecast.finish(begun)).unwrap_or_default();
        let factors = self.forecast.as_ref().map(Forecast::factors).unwrap_or_default();
        let ahead = self.pace.cost(self.ahead);
        let end = finish.iter().copied().min().unwrap_or(begun).max(begun);
        // Assignments are to arrive before the worker runs dry.
        let until = end.saturating_sub(ahead).max(begun);
        // Completions are heard meanwhile, so the search has its own tasks and workers.
        let left = std::mem::take(&mut self.plan.left);
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
            // What a node takes in simulation; on real ranks it has really taken it.
            self.node.charge(self.pace.ticks(rules.v * generated));
            used += self.node.now() - before;
            expansions += 1;
            if generated == 0 || self.now() >= until {
                break;
            }
            if self.node.now() - looked >= BETWEEN_LOOKS {
                self.look().await?;
                looked = self.node.now();
                if self.forecast.as_ref().is_some_and(Forecast::is_any_dry) {
                    break;
                }
            }
        }
        self.effort.decisions += 1;
        self.effort.expansions += u64::from(expansions);
        self.effort.generated += search.generated();
        self.effort.search += self.pace.cost(used) as f64 / CYCLE as f64;
        if !search.is_complete() && self.now() < until {
            let at = self.begun + self.pace.ticks(until);
            let timer = self.node.set_timer(at);
            while !self.forecast.as_ref().is_some_and(Forecast::is_any_dry) {
                match self.node.next_event().await {
                    Event::Timer { timer: ended, .. } if ended == timer => break,
                    event => self.happened(event)?,
                }
            }
            self.node.cancel_timer(timer);
        }
        if !self.forecast.as_ref().is_some_and(Forecast::is_any_dry) {
            self.ahead = (self.ahead - self.ahead / 32).max(self.pace.ahead);
        }
        let mut assignments = search.chosen(rules.choice);
        if let Some(scheduler) = self.joins().filter(|_| assignments.len() == left.len()) {
            let now = self.now();
            let finish = self.forecast.as_ref().map(|forecast| forecast.finish(now)).unwrap_or_default();
            join(&estimates, &mut assignments, self.plan.workers.iter().copied().zip(finish).collect(), scheduler, now);
        }
        self.plan.left = left;
        Ok(assignments)
    }

    fn give(&mut self, assignments: Vec<Assignment>) {
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
            self.send(worker, Assigned { tasks: tasks.into_iter().map(|task| task as u64).collect(), due: None });
        }
        self.hands.take(Lot::list(of(&assignments, self.seat)), None);
        self.plan.remove(&assignments);
    }
}

/// The places of the workers that a phase gives tasks to: all of them, if it lasts as long as assignments are sent ahead; otherwise those that
/// run dry until then. The cost of a schedule is its last worker's end, so while others hold much, a task would go to whoever is cheapest,
/// and the dry one would stay dry.
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
mod tests {
    use super::*;

    #[test]
    fn short_phases_serve_those_who_run_dry() {
        let costs = Costs::new(3, vec![5, 5, NEVER, 5, 5, 5]).unwrap();
        let workers = [0, 1, 2];
        let places = |finish: [Cost; 3], task: usize, until: Cost| candidates(&workers, &finish, &[task], &costs, until);
        assert_eq!(places([100, 20, 90], 1, 30), [1], "the others hold much");
        assert_eq!(places([100, 20, 10], 0, 30), [1, 2]);
        assert_eq!(places([100, 90, 10], 0, 30), [0, 1, 2], "the dry one can't run it");
        assert_eq!(places([100, 40, 50], 1, 40), [0, 1, 2], "a phase of full length");
    }
}
