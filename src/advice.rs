//! Prediction of whether balancing pays, before anything is moved.
//!
//! The model of a balancer is the balancer itself. It runs on the given loads in the simulator, on the given network (a
//! [measured](crate::transport::sim::Measured) one, or a model), with the same messages as on real ranks. Its simulated time is the
//! predicted cost. Its gain is the time of the slowest rank before the phase minus the time after it, in each of the steps for which the
//! new loads last. Ranks share the tasks in proportion to their speeds.
//!
//! ```
//! use equipoise::{advice::advise, transport::sim::Network};
//!
//! // Rank 0 has all 800 tasks, of 64 bytes and 1 ms each.
//! let advice = advise(&[800, 0, 0, 0, 0, 0, 0, 0], 64, 1e-3, &Network::default())?;
//! assert!(advice.pays && advice.gain_seconds > 0.6 && advice.cost_seconds < 0.01);
//! # Ok::<(), equipoise::Error>(())
//! ```
//!
//! # Certainty
//!
//! The gain is arithmetic; the cost is a prediction with an error. The error is assumed to be normal in the logarithm, with a standard
//! deviation of ln(1 + e). Here e is the model's own error plus a tenth for effects outside any model of links (deciding, packing, other
//! programs); a network that was not measured is assumed to be wrong by a factor of two. [`Advice::certainty`] is the probability that the
//! true cost is on the same side of the gain as the predicted one.

mod candidates;
mod crossover;
mod one_phase;

use std::rc::Rc;

use serde::Serialize;

use crate::balance::{self, Chosen};
use crate::error::{Error, Result};
use crate::load::{Powers, Quota};
use crate::node::{HEADER_BYTES, Ticks};
use crate::topology::{Hosts, Topology};
use crate::transport::sim::{Model, Network, Speed};
use crate::transport::world::World;
use candidates::Candidate;
pub use one_phase::{OnePhase, phase_of};

/// Within this factor gain and cost are about even.
const ABOUT_EVEN: f64 = 1.25;
/// Relative error of a prediction beyond that of the links.
const UNMODELLED: f64 = 0.1;
/// Relative error of a network that was not measured.
const ASSUMED: f64 = 1.0;
/// Balancers whose net gain differs by less than this part of what is at stake are equally good.
const TIED: f64 = 0.01;
/// Payloads of one rank are refused beyond this.
const MOST_BYTES: u64 = 1 << 32;
/// Shorter tasks are refused, and more seconds of all steps together than [`MOST_SECONDS`]: every figure is far from the bounds of a number.
const LEAST_SECONDS: f64 = 1e-18;
const MOST_SECONDS: f64 = 1e18;
/// Speeds are kept to this part; the power of the fastest rank is at most the other.
const SPEEDS: f64 = 1e6;
const FASTEST: f64 = 1e9;

/// Predicts whether to balance these loads of unit tasks, given by rank, once for one step. A task has `bytes` bytes and takes
/// `seconds_per_unit` seconds. [`Question`] has more choices.
///
/// # Errors
/// As [`Question::answer`].
pub fn advise(loads: &[u64], bytes: u64, seconds_per_unit: f64, network: &Network) -> Result<Advice> {
    Question::new(loads, bytes, seconds_per_unit, network).answer()
}

/// Input of a prediction: loads, cost of a task, network, and balancers to choose from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// Number of unit tasks of each rank.
    pub loads: Vec<u64>,
    /// Bytes that a task carries.
    pub payload: u64,
    /// Seconds that a task takes on a rank of speed 1.
    pub unit_seconds: f64,
    /// Number of steps that are computed before the loads have to be balanced anew.
    pub steps: u64,
    /// The network between the ranks.
    pub network: Network,
    /// Speed by rank; empty if all are 1.
    pub speeds: Vec<Speed>,
    /// Host of each rank; `None` if the network defines it, or all ranks are on one host.
    pub hosts: Option<Hosts>,
    /// The balancers to choose from, `NAME[:key=value,..]`; empty for all.
    pub balancers: Vec<String>,
    /// The topology of all of them, where those that can't run on it are left out. `None`: each balancer's own; for a tree walk on several hosts also
    /// the tree of the hosts; and up to 64 ranks, where the balancer's own has virtual nodes, also the first of its kinds that needs none.
    pub topology: Option<Topology>,
    /// Seed of the simulation.
    pub seed: u64,
}

/// Result of a prediction: whether balancing pays, with which balancer, and by how much.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// Whether the gain is above the cost.
    pub pays: bool,
    /// The balancer that leaves most of the gain, or loses least.
    pub balancer: String,
    /// Its topology, as `--topology` takes it.
    pub topology: String,
    /// Seconds of a step before and after.
    pub before_seconds: f64,
    /// Seconds of a step after balancing.
    pub after_seconds: f64,
    /// Seconds gained over all steps, the cost not subtracted.
    pub gain_seconds: f64,
    /// The same in one step.
    pub gain_seconds_per_step: f64,
    /// Predicted seconds of the balancing phase.
    pub cost_seconds: f64,
    /// Maximum over mean of the loads (in time), now.
    pub imbalance: f64,
    /// The least imbalance with which balancing pays, all else being equal; `None` if none does, not even that of all tasks on one rank. It lies
    /// between loads of this total that were simulated, so it is at most the sum of the speeds over the least of them.
    pub crossover_imbalance: Option<f64>,
    /// The least duration of a task with which balancing pays; `None` if none does.
    pub crossover_task_seconds: Option<f64>,
    /// The least number of steps with which balancing pays; `None` if none below 2^64 does.
    pub crossover_steps: Option<u64>,
    /// The least duration of a single task that arrives on a busy rank, with which it pays to send it to an idle one that asked for it.
    pub crossover_arriving_seconds: f64,
    /// Probability, from 0.5 to 1, that the answer is right.
    pub certainty: f64,
    /// Whether gain and cost differ by less than a factor of 1.25.
    pub about_even: bool,
    /// Prediction for each balancer.
    pub choices: Vec<Choice>,
}

/// Prediction for one balancer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Choice {
    /// The balancer.
    pub balancer: String,
    /// Its topology.
    pub topology: String,
    /// Seconds gained over all steps.
    pub gain_seconds: f64,
    /// Predicted seconds of its phase.
    pub cost_seconds: f64,
}

impl Question {
    /// A question about one step, with all balancers. Speeds are those of a measured network.
    pub fn new(loads: &[u64], payload: u64, unit_seconds: f64, network: &Network) -> Question {
        let speeds = match network {
            Network::Measured(measured) => measured.speeds.clone(),
            _ => Vec::new(),
        };
        Question {
            loads: loads.to_vec(),
            payload,
            unit_seconds,
            steps: 1,
            network: network.clone(),
            speeds,
            hosts: None,
            balancers: Vec::new(),
            topology: None,
            seed: 1,
        }
    }

    /// Predicts the phase of each balancer, and compares them.
    ///
    /// # Errors
    /// Wrong usage if there are no loads, a task takes no positive number of seconds or less than 10^-18, all steps take more than 10^18, the network has
    /// another number of ranks, the payloads exceed the memory, or no balancer fits; otherwise any error of a simulation.
    pub fn answer(&self) -> Result<Advice> {
        let ranks = self.check()?;
        let names: Vec<String> = match self.balancers.is_empty() {
            true => balance::without_places().map(|entry| entry.name.to_string()).filter(|name| name != "none").collect(),
            false => self.balancers.clone(),
        };
        let mut judged = Vec::new();
        let mut refused = None;
        for name in names {
            let chosen = Rc::new(balance::find(&name)?);
            for candidate in candidates::of(chosen.entry, self.topology.as_ref(), &self.world(ranks).network()) {
                match chosen.entry.objection(&candidate.topology) {
                    Some(objection) => refused = refused.or(Some(objection)),
                    None => judged.push(self.judge(chosen.clone(), candidate, ranks)?),
                }
            }
        }
        let at_stake = judged.iter().map(|judged| judged.gain.abs().max(judged.cost)).fold(0.0, f64::max);
        let most = judged.iter().map(Judged::net).fold(f64::NEG_INFINITY, f64::max);
        let is_best = |(_, judged): &(usize, &Judged)| judged.net() >= most - TIED * at_stake;
        let simpler = |a: &Judged, b: &Judged| a.chosen.entry.simplicity().cmp(&b.chosen.entry.simplicity());
        // Of one balancer's topologies the cheaper one, however little that is of what is at stake.
        let better = |a: &Judged, b: &Judged| simpler(a, b).then(a.cost.total_cmp(&b.cost));
        let best = judged.iter().enumerate().filter(is_best).min_by(|(_, a), (_, b)| better(a, b));
        let Some((best, _)) = best else {
            return Err(refused.map_or_else(|| Error::usage("there is no balancer to advise"), Error::from));
        };
        self.advice(best, &judged, ranks)
    }

    fn check(&self) -> Result<u32> {
        let ranks = u32::try_from(self.loads.len()).ok().filter(|ranks| *ranks > 0);
        let ranks = ranks.ok_or_else(|| Error::input("loads", ": there must be at least one rank, and fewer than 2^32"))?;
        if !(self.unit_seconds > 0.0 && self.unit_seconds.is_finite()) {
            return Err(Error::input("task-seconds", format!(": it must be a number of seconds above 0, not {}", self.unit_seconds)));
        }
        if self.steps == 0 {
            return Err(Error::input("steps", ": it must be 1 or more"));
        }
        if self.unit_seconds < LEAST_SECONDS {
            return Err(Error::input("task-seconds", format!(" {:e}: a task takes {LEAST_SECONDS:e} s or more", self.unit_seconds)));
        }
        let Some(total) = self.loads.iter().try_fold(0u64, |sum, load| sum.checked_add(*load)) else {
            return Err(Error::input("loads", ": the tasks of all ranks together are beyond 2^64 - 1"));
        };
        let slowest = (0..self.loads.len()).map(|rank| self.speed(rank)).fold(f64::INFINITY, f64::min);
        if total as f64 * self.unit_seconds / slowest * self.steps as f64 > MOST_SECONDS {
            let why = format!(" {:e}: all steps of these loads take more than {MOST_SECONDS:e} s on one rank", self.unit_seconds);
            return Err(Error::input("task-seconds", why));
        }
        let largest = self.loads.iter().max().copied().unwrap_or(0);
        if largest.checked_mul(self.payload).is_none_or(|bytes| bytes > MOST_BYTES) {
            return Err(Error::input("payload", format!(" {}: {largest} tasks of a rank are more than 4 GiB to move", self.payload)));
        }
        Ok(ranks)
    }

    fn judge(&self, chosen: Rc<Chosen>, on: Candidate, ranks: u32) -> Result<Judged> {
        let (loads, cost) = self.predict(&chosen, &on.topology, ranks, &self.loads)?;
        let (before, after) = (self.step(&self.loads), self.step(&loads));
        Ok(Judged { gain: (before - after) * self.steps as f64, cost, after, chosen, on })
    }

    /// Seconds of a step with these loads: those of the slowest rank.
    fn step(&self, loads: &[u64]) -> f64 {
        let seconds = |(rank, load): (usize, &u64)| *load as f64 * self.unit_seconds / self.speed(rank);
        loads.iter().enumerate().map(seconds).fold(0.0, f64::max)
    }

    fn speed(&self, rank: usize) -> f64 {
        self.speeds.get(rank).map_or(1.0, |speed| speed.value())
    }

    /// Integers in proportion to the speeds, by rank; as small as they can be.
    fn powers(&self) -> Vec<u64> {
        let speeds: Vec<f64> = (0..self.loads.len()).map(|rank| self.speed(rank)).collect();
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let unit = SPEEDS.min(FASTEST / fastest);
        let powers: Vec<u64> = speeds.iter().map(|speed| (speed * unit).round().max(1.0) as u64).collect();
        let divisor = powers.iter().copied().fold(0, greatest_common_divisor);
        powers.iter().map(|power| power / divisor.max(1)).collect()
    }

    /// Loads by rank after a balancer's phase, and the seconds that it takes.
    fn predict(&self, chosen: &Rc<Chosen>, topology: &Topology, ranks: u32, loads: &[u64]) -> Result<(Vec<u64>, f64)> {
        let (chosen, topology) = (chosen.clone(), topology.clone());
        let phase = OnePhase { chosen, topology, loads: loads.to_vec(), powers: self.powers(), payload: self.payload, seed: self.seed };
        phase_of(&mut self.world(ranks), &phase)
    }

    /// The ranks, simulated.
    fn world(&self, ranks: u32) -> World {
        let hosts = self.hosts.clone();
        World::simulated(
            ranks,
            Model { network: self.network.clone(), speeds: self.speeds.clone(), hosts, seed: self.seed, ..Model::default() },
        )
    }

    /// Advice to take the balancer at this place of all.
    fn advice(&self, at: usize, all: &[Judged], ranks: u32) -> Result<Advice> {
        let best = &all[at];
        let steps = self.steps as f64;
        let before = self.step(&self.loads);
        let (gain, cost) = (best.gain, best.cost);
        let margin = if cost > 0.0 { (gain / cost).max(0.0) } else { f64::INFINITY };
        Ok(Advice {
            pays: pays(gain, cost),
            balancer: best.chosen.name.clone(),
            topology: best.on.name.clone(),
            before_seconds: before,
            after_seconds: best.after,
            gain_seconds: gain,
            gain_seconds_per_step: gain / steps,
            cost_seconds: cost,
            imbalance: self.imbalance(&self.loads),
            crossover_imbalance: self.crossover_imbalance(at, all, ranks)?,
            crossover_task_seconds: (gain > 0.0).then(|| cost / (gain / self.unit_seconds)),
            crossover_steps: steps_beyond(cost * steps / gain).filter(|_| gain > 0.0),
            crossover_arriving_seconds: seconds(self.request_and_task()),
            certainty: certainty(margin, self.error()),
            about_even: (1.0 / ABOUT_EVEN..=ABOUT_EVEN).contains(&margin),
            choices: all
                .iter()
                .map(|judged| Choice {
                    balancer: judged.chosen.name.clone(),
                    topology: judged.on.name.clone(),
                    gain_seconds: judged.gain,
                    cost_seconds: judged.cost,
                })
                .collect(),
        })
    }

    /// Maximum over mean of the times that ranks take for these loads; 1 without loads.
    fn imbalance(&self, loads: &[u64]) -> f64 {
        let speeds: f64 = (0..loads.len()).map(|rank| self.speed(rank)).sum();
        // Seconds of a step if all ranks ended together.
        let mean = loads.iter().map(|load| *load as f64).sum::<f64>() * self.unit_seconds / speeds;
        if mean > 0.0 { self.step(loads) / mean } else { 1.0 }
    }

    /// The least imbalance with which a balancer pays, between even loads and all tasks on one rank: the one that is the slowest now, or else the
    /// one that computes the slowest.
    fn crossover_imbalance(&self, best: usize, all: &[Judged], ranks: u32) -> Result<Option<f64>> {
        let total = self.loads.iter().sum();
        let shares = Powers::listed(self.powers()).unwrap_or_else(|_| Powers::equal(ranks, ranks));
        let even = Quota::proportional(total, &shares).to_vec();
        let first = |is_worse: &dyn Fn(usize, usize) -> bool| {
            (1..self.loads.len()).fold(0, |worst, rank| if is_worse(rank, worst) { rank } else { worst })
        };
        let now = first(&|a, b| self.loads[a] as f64 / self.speed(a) > self.loads[b] as f64 / self.speed(b));
        let slowest = first(&|a, b| self.speed(a) < self.speed(b));
        let most = MOST_BYTES.checked_div(self.payload).unwrap_or(u64::MAX);
        let hottest = [now, slowest].map(|rank| crossover::hottest(&self.loads, rank, most));
        let imbalance = self.imbalance(&self.loads);
        let at_given: Vec<_> = all.iter().map(|judged| crossover::Point { imbalance, net: judged.net() }).collect();
        let case = crossover::Case { even: &even, given: &self.loads, hottest: &hottest, at_given: &at_given, best };
        crossover::least_imbalance(&case, |balancer, loads| {
            let (after, cost) = self.predict(&all[balancer].chosen, &all[balancer].on.topology, ranks, loads)?;
            let gain = (self.step(loads) - self.step(&after)) * self.steps as f64;
            Ok(crossover::Point { imbalance: self.imbalance(loads), net: gain - cost })
        })
    }

    /// Ticks of a request and the task that answers it, between hosts where there are several.
    fn request_and_task(&self) -> Ticks {
        let (request, task) = (HEADER_BYTES, HEADER_BYTES + self.payload);
        match &self.network {
            Network::Zero => 2,
            Network::Switched(link) | Network::Hops(link) => link.passage(request).saturating_add(link.passage(task)),
            Network::Measured(measured) => {
                let link = measured.farthest();
                link.passage(request).saturating_add(link.passage(task))
            }
        }
    }

    /// The relative error that predicted costs may have.
    fn error(&self) -> f64 {
        match &self.network {
            Network::Measured(measured) => measured.error() + UNMODELLED,
            _ => ASSUMED,
        }
    }
}

/// A balancer, with its phase predicted.
struct Judged {
    chosen: Rc<Chosen>,
    on: Candidate,
    gain: f64,
    cost: f64,
    /// Seconds of a step afterwards.
    after: f64,
}

impl Judged {
    fn net(&self) -> f64 {
        self.gain - self.cost
    }
}

/// Returns true if balancing pays: `gain` is the gain over all steps for which the loads last, and `cost` is in the same unit.
pub fn pays(gain: f64, cost: f64) -> bool {
    gain > cost
}

fn seconds(ticks: Ticks) -> f64 {
    ticks as f64 / 1e9
}

/// The least whole number above this one; `None` if it is not below 2^64.
fn steps_beyond(steps: f64) -> Option<u64> {
    (steps < u64::MAX as f64).then(|| (steps.floor() as u64).saturating_add(1))
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The probability that a cost predicted with this relative error is on the side of the gain on which it seems to be: the normal distribution, by its
/// logistic approximation.
fn certainty(margin: f64, error: f64) -> f64 {
    if margin <= 0.0 || margin.is_infinite() {
        return 1.0;
    }
    let deviations = margin.ln().abs() / error.ln_1p().max(1e-9);
    1.0 / (1.0 + (-1.702 * deviations).exp())
}

#[cfg(test)]
mod tests;
