//! Prediction of whether balancing pays, before anything is moved.
//!
//! The model of a balancer is the balancer itself. It runs on the given loads in the simulator, on the given network (a
//! [measured](crate::transport::sim::Measured) one, or a model), with the same messages as on real ranks. Its simulated time is the
//! predicted cost. Its gain is the time of the slowest rank before the phase minus the time after it, in each of the steps for which the
//! new loads last.
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

use std::rc::Rc;

use bytes::Bytes;
use serde::Serialize;

use crate::balance::{self, Chosen};
use crate::error::{Error, Result};
use crate::load::{Powers, Segment, Shares, TaskId, WorkQueue};
use crate::node::{HEADER_BYTES, Ticks};
use crate::phase::{self, Setting};
use crate::topology::{Hosts, Overlay, PlacementRule};
use crate::transport::sim::{Model, Network, Speed};
use crate::transport::world::World;

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
    /// Its topology.
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
    /// The least imbalance with which balancing pays, all else being equal; `None` if none does.
    pub crossover_imbalance: Option<f64>,
    /// The least duration of a task with which balancing pays; `None` if none does.
    pub crossover_task_seconds: Option<f64>,
    /// The least number of steps with which balancing pays; `None` if none does.
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
            seed: 1,
        }
    }

    /// Predicts the phase of each balancer, and compares them.
    ///
    /// # Errors
    /// Wrong usage if there are no loads, a duration is not a positive number, the network has another number of ranks, the payloads exceed
    /// the memory, or no balancer fits; otherwise any error of a simulation.
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
            let topology = chosen.entry.topology_on(&self.world(ranks).network());
            match chosen.entry.objection(&topology) {
                Some(objection) => refused = refused.or(Some(objection)),
                None => judged.push(self.judge(chosen, ranks)?),
            }
        }
        let at_stake = judged.iter().map(|judged| judged.gain.abs().max(judged.cost)).fold(0.0, f64::max);
        let most = judged.iter().map(Judged::net).fold(f64::NEG_INFINITY, f64::max);
        let is_best = |judged: &&Judged| judged.net() >= most - TIED * at_stake;
        let best = judged.iter().filter(is_best).min_by_key(|judged| judged.chosen.entry.simplicity());
        let Some(best) = best else {
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
        if self.loads.iter().try_fold(0u64, |sum, load| sum.checked_add(*load)).is_none() {
            return Err(Error::input("loads", ": the tasks of all ranks together are beyond 2^64 - 1"));
        }
        let largest = self.loads.iter().max().copied().unwrap_or(0);
        if largest.checked_mul(self.payload).is_none_or(|bytes| bytes > MOST_BYTES) {
            return Err(Error::input("payload", format!(" {}: {largest} tasks of a rank are more than 4 GiB to move", self.payload)));
        }
        Ok(ranks)
    }

    fn judge(&self, chosen: Rc<Chosen>, ranks: u32) -> Result<Judged> {
        let (loads, cost) = self.predict(&chosen, ranks, &self.loads)?;
        let (before, after) = (self.step(&self.loads), self.step(&loads));
        let topology = chosen.entry.topology_on(&self.world(ranks).network()).name();
        Ok(Judged { gain: (before - after) * self.steps as f64, cost, after, chosen, topology })
    }

    /// Seconds of a step with these loads: those of the slowest rank.
    fn step(&self, loads: &[u64]) -> f64 {
        let seconds = |(rank, load): (usize, &u64)| {
            let speed = self.speeds.get(rank).map_or(1.0, |speed| speed.value());
            *load as f64 * self.unit_seconds / speed
        };
        loads.iter().enumerate().map(seconds).fold(0.0, f64::max)
    }

    /// Loads by rank after a balancer's phase, and the seconds that it takes.
    fn predict(&self, chosen: &Rc<Chosen>, ranks: u32, loads: &[u64]) -> Result<(Vec<u64>, f64)> {
        phase_of(&mut self.world(ranks), chosen, loads, self.payload, self.seed)
    }

    /// The ranks, simulated.
    fn world(&self, ranks: u32) -> World {
        let hosts = self.hosts.clone();
        World::simulated(
            ranks,
            Model { network: self.network.clone(), speeds: self.speeds.clone(), hosts, seed: self.seed, ..Model::default() },
        )
    }

    fn advice(&self, best: &Judged, all: &[Judged], ranks: u32) -> Result<Advice> {
        let steps = self.steps as f64;
        let before = self.step(&self.loads);
        let (gain, cost) = (best.gain, best.cost);
        // Seconds of a step if all ranks ended together.
        let speeds: f64 = (0..ranks as usize).map(|rank| self.speeds.get(rank).map_or(1.0, |speed| speed.value())).sum();
        let mean = self.loads.iter().map(|load| *load as f64).sum::<f64>() * self.unit_seconds / speeds;
        let imbalance = if mean > 0.0 { before / mean } else { 1.0 };
        let even = self.predict(&best.chosen, ranks, &levelled(&self.loads))?.1;
        let margin = if cost > 0.0 { (gain / cost).max(0.0) } else { f64::INFINITY };
        Ok(Advice {
            pays: pays(gain, cost),
            balancer: best.chosen.name.clone(),
            topology: best.topology.clone(),
            before_seconds: before,
            after_seconds: best.after,
            gain_seconds: gain,
            gain_seconds_per_step: gain / steps,
            cost_seconds: cost,
            imbalance,
            crossover_imbalance: crossover_imbalance(&Line { mean, after: best.after, imbalance, even, cost, steps }),
            crossover_task_seconds: (gain > 0.0).then(|| self.unit_seconds * cost / gain),
            crossover_steps: (gain > 0.0).then(|| (cost * steps / gain).floor() as u64 + 1),
            crossover_arriving_seconds: seconds(self.request_and_task()),
            certainty: certainty(margin, self.error()),
            about_even: (1.0 / ABOUT_EVEN..=ABOUT_EVEN).contains(&margin),
            choices: all
                .iter()
                .map(|judged| Choice {
                    balancer: judged.chosen.name.clone(),
                    topology: judged.topology.clone(),
                    gain_seconds: judged.gain,
                    cost_seconds: judged.cost,
                })
                .collect(),
        })
    }

    /// Ticks of a request and the task that answers it, between hosts where there are several.
    fn request_and_task(&self) -> Ticks {
        let (request, task) = (HEADER_BYTES, HEADER_BYTES + self.payload);
        match &self.network {
            Network::Zero => 2,
            Network::Switched(link) | Network::Hops(link) => link.passage(request).saturating_add(link.passage(task)),
            Network::Measured(measured) => {
                let link = measured.between.unwrap_or(measured.within);
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
    topology: String,
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

/// The same tasks, as even as they can be.
fn levelled(loads: &[u64]) -> Vec<u64> {
    let (total, ranks) = (loads.iter().sum::<u64>(), loads.len() as u64);
    (0..ranks).map(|rank| total / ranks + u64::from(rank < total % ranks)).collect()
}

/// Linear model of gain and cost over the imbalance, between even loads and the given ones.
struct Line {
    /// Seconds of a step if all ranks ended together.
    mean: f64,
    /// Seconds of a step after balancing.
    after: f64,
    imbalance: f64,
    /// Cost of balancing even loads, and the given ones, in seconds.
    even: f64,
    cost: f64,
    steps: f64,
}

/// Imbalance x at which the gain, steps (mean x - after), equals the cost: even + (cost - even) (x - 1) / (imbalance - 1).
fn crossover_imbalance(line: &Line) -> Option<f64> {
    let Line { mean, after, imbalance, even, cost, steps } = *line;
    let rise = if imbalance > 1.0 { (cost - even) / (imbalance - 1.0) } else { 0.0 };
    let slope = steps * mean - rise;
    if slope <= 0.0 {
        return None;
    }
    Some(((even - rise + steps * after) / slope).max(1.0))
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

/// Loads by rank after a balancer's phase in a simulated world, and its duration in seconds, measured as by `compare`; for comparing
/// predictions with outcomes.
///
/// # Errors
/// Any error of a simulation.
#[doc(hidden)]
pub fn phase_of(world: &mut World, chosen: &Rc<Chosen>, loads: &[u64], payload: u64, seed: u64) -> Result<(Vec<u64>, f64)> {
    let (ranks, topology) = (world.ranks(), chosen.entry.topology_on(&world.network()));
    let overlay = Overlay::placed(topology, world.hosts(), PlacementRule::Hosts, seed)?;
    // All payloads are slices of one buffer.
    let zeros = Bytes::from(vec![0; (loads.iter().max().copied().unwrap_or(0) * payload) as usize]);
    let starts: Vec<TaskId> = loads.iter().scan(0, |next, load| Some(std::mem::replace(next, *next + load))).collect();
    let loads = loads.to_vec();
    let setting = Setting {
        balancer: chosen.clone(),
        shares: Shares::new(Powers::equal(ranks, overlay.topology.nodes())),
        queue: Rc::new(move |node| {
            let load = starts.get(node as usize).zip(loads.get(node as usize));
            let row = load.and_then(|(first, count)| Segment::row(*first, *count, 1, zeros.slice(..(count * payload) as usize)));
            Ok(WorkQueue::new(row.into_iter().collect()))
        }),
        plan: false,
        weighted: false,
        trace: None,
    };
    let outcome = phase::run(world, &overlay, &Rc::new(setting))?;
    let outcome = outcome.ok_or_else(|| Error::Failed("a simulated phase has left no outcome".into()))?;
    let mut by_rank = vec![0; ranks as usize];
    for (node, work) in (0..).zip(outcome.finals) {
        by_rank[overlay.placement.rank_of(node).index()] += work;
    }
    Ok((by_rank, seconds(outcome.elapsed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(loads: &[u64]) -> Question {
        Question::new(loads, 64, 1e-3, &Network::default())
    }

    #[test]
    fn it_pays_beyond_the_crossovers_and_not_before() {
        let loads = [40, 12, 9, 11, 8, 10, 9, 13];
        let at = |task: f64, loads: &[u64]| Question { unit_seconds: task, ..question(loads) }.answer().unwrap();
        let advice = at(1e-3, &loads);
        assert!(advice.pays && advice.certainty > 0.9 && !advice.about_even, "{advice:?}");
        assert_eq!((advice.gain_seconds * 1e3).round(), 26.0);
        let task = advice.crossover_task_seconds.unwrap();
        assert!(at(task * 1.02, &loads).pays && !at(task * 0.9, &loads).pays);
        assert!(at(task, &loads).about_even);
        // Just above the crossover in imbalance it pays, well below it does not.
        let short = at(4.0 * task, &loads);
        let least = short.crossover_imbalance.unwrap();
        assert!(least > 1.0 && least < short.imbalance, "{short:?}");
        let spread = |most: u64| {
            let rest = (112 - most) / 7;
            let mut loads = vec![rest; 8];
            loads[0] = 112 - 7 * rest;
            loads
        };
        for most in 14..41 {
            let loads = spread(most);
            let ratio = *loads.iter().max().unwrap() as f64 / 14.0;
            if (ratio / least - 1.0).abs() > 0.25 {
                assert_eq!(at(4.0 * task, &loads).pays, ratio > least, "{loads:?}: {ratio} against {least}");
            }
        }
    }

    #[test]
    fn more_steps_earn_what_one_does_not() {
        let one = Question { unit_seconds: 2e-7, ..question(&[100, 0, 0, 0]) };
        let advice = one.answer().unwrap();
        assert!(!advice.pays);
        let steps = advice.crossover_steps.unwrap();
        assert!(steps > 1 && Question { steps, ..one.clone() }.answer().unwrap().pays);
        assert!(!Question { steps: steps - 1, ..one }.answer().unwrap().pays);
    }

    #[test]
    fn even_loads_need_nothing() {
        let advice = question(&[10; 8]).answer().unwrap();
        assert!(!advice.pays && advice.gain_seconds == 0.0 && advice.certainty == 1.0);
        assert_eq!((advice.crossover_task_seconds, advice.crossover_steps, advice.imbalance), (None, None, 1.0));
        let least = advice.crossover_imbalance.unwrap();
        assert!(least > 1.0 && (least - 1.0 - advice.cost_seconds / 0.01).abs() < 1e-9);
        for loads in [&[0, 0][..], &[5]] {
            let advice = question(loads).answer().unwrap();
            assert!(!advice.pays, "{advice:?}");
        }
        assert_eq!(question(&[0, 0]).answer().unwrap().crossover_imbalance, None);
    }

    #[test]
    fn large_payloads_can_cost_more_than_they_gain() {
        let pays = |payload| Question { payload, ..question(&[64, 0]) }.answer().unwrap();
        assert!(pays(0).pays && pays(64).pays && !pays(1 << 20).pays);
        assert!(pays(1 << 20).cost_seconds > 32.0 * 1.048_576 * 2.7e-3);
        // A request and a message with the task.
        let one = pays(1_000_000).crossover_arriving_seconds;
        assert!((one - (2.0 * 20e-6 + 2.7e-3)).abs() < 1e-6, "{one}");
    }

    #[test]
    fn a_choice_of_balancers_is_kept_to() {
        let advice = Question { balancers: vec!["twa".into(), "dem".into()], ..question(&[80, 0, 0, 0, 0, 0, 0, 0]) }.answer().unwrap();
        assert_eq!(advice.choices.iter().map(|choice| choice.balancer.as_str()).collect::<Vec<_>>(), ["twa", "dem"]);
        assert!(["twa", "dem"].contains(&advice.balancer.as_str()));
        let all = question(&[80, 0, 0, 0, 0, 0, 0, 0]).answer().unwrap();
        assert_eq!(all.choices.len(), balance::without_places().count() - 1);
        let net = |choice: &Choice| choice.gain_seconds - choice.cost_seconds;
        let most = all.choices.iter().map(net).fold(f64::NEG_INFINITY, f64::max);
        assert!(all.gain_seconds - all.cost_seconds >= most - TIED * all.gain_seconds);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let said = |question: Question| question.answer().unwrap_err().to_string();
        assert_eq!(said(question(&[])), "loads: there must be at least one rank, and fewer than 2^32");
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let why = said(Question { unit_seconds: seconds, ..question(&[1]) });
            assert_eq!(why, format!("task-seconds: it must be a number of seconds above 0, not {seconds}"));
        }
        assert_eq!(said(Question { steps: 0, ..question(&[1]) }), "steps: it must be 1 or more");
        assert!(said(question(&[u64::MAX, 1])).starts_with("loads: the tasks of all ranks together"));
        assert!(said(Question { payload: u64::MAX, ..question(&[3]) }).starts_with("payload 18446744073709551615: 3 tasks"));
        assert!(said(Question { balancers: vec!["magic".into()], ..question(&[1]) }).contains("'magic' is unknown"));
    }

    #[test]
    fn certainty_grows_with_the_margin() {
        assert!((certainty(1.0, 0.1) - 0.5).abs() < 1e-12);
        assert!(certainty(2.0, 0.1) > 0.99 && certainty(2.0, 1.0) < 0.9 && certainty(0.5, 0.1) > 0.99);
        assert_eq!((certainty(0.0, 0.1), certainty(f64::INFINITY, 0.1)), (1.0, 1.0));
    }
}
