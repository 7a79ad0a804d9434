//! Advice against outcomes on real ranks: does balancing pay as `advise` says? The tasks sleep. In each case they are balanced and run, and run where
//! they are.
//!
//! Needs mpirun; `scripts/advice` builds it and runs it on hosts that this machine plays.
//!
//! ```text
//! advice [--cases 25] [--rounds 5] [--seed 1]      a line for each case, and the number of answers that were right
//! ```

mod options;

use std::rc::Rc;
use std::time::{Duration, Instant};

use equipoise::advice::{OnePhase, Question, phase_of};
use equipoise::agreement::{from_first, one_node_per_rank, only};
use equipoise::transport::mpi::{self, Watch};
use equipoise::transport::sim::Network;
use equipoise::transport::world::World;
use equipoise::{Error, Result, balance, node};
use equipoise_lab::experiment::{self, ProbeSpec, settle, statistics};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// Factor within which gain and cost are about even, by the advice and in fact.
const ABOUT_EVEN: f64 = 1.25;
/// Gain over cost is drawn between this and its inverse, evenly over the logarithm.
const MOST: f64 = 4.0;
/// Bytes that a task carries.
const PAYLOADS: [u64; 2] = [4 << 10, 64 << 10];
/// Least number of tasks by which balancing shortens the longest queue.
const LEAST_UNITS: u64 = 5;

struct Arguments {
    cases: u32,
    rounds: u32,
    seed: u64,
}

fn main() {
    if let Err(why) = arguments().and_then(|arguments| run(&arguments)) {
        eprintln!("advice: {why}");
        std::process::exit(why.exit_status());
    }
}

fn arguments() -> Result<Arguments> {
    let mut found = Arguments { cases: 25, rounds: 5, seed: 1 };
    options::each(|given| {
        match given.name.as_str() {
            "--cases" => found.cases = given.number()?,
            "--rounds" => found.rounds = given.number::<u32>()?.max(1),
            "--seed" => found.seed = given.number::<u32>()?.into(),
            _ => return given.unknown(),
        }
        Ok(())
    })?;
    Ok(found)
}

fn run(arguments: &Arguments) -> Result<()> {
    // Rank 0 simulates while the others wait.
    let options = mpi::Options::program().with_watchdog(Watch::Always(Duration::from_secs(600))).with_seed(arguments.seed);
    let Some(world) = mpi::World::launched(options)? else {
        println!("advice: needs mpirun; run scripts/advice");
        return Ok(());
    };
    let mut world = World::from(world);
    if world.ranks() < 2 {
        return Err(Error::usage("one rank has nothing to balance: run scripts/advice"));
    }
    let probed = experiment::probe(&mut world, &ProbeSpec::full(12, 10_000_000), "probed", arguments.seed)?;
    let network = probed.map(|record| record.measured.network());
    let mut rng = ChaCha8Rng::seed_from_u64(arguments.seed);
    let (mut right, mut even) = (0, 0);
    for case in 0..arguments.cases {
        let ratio = MOST.powf(rng.random_range(-1.0..1.0));
        let tasks = Tasks::drawn(&mut rng, world.ranks());
        let (told, outcome) = tasks.compared(&mut world, network.as_ref(), ratio, arguments.rounds)?;
        let is_right = told.is_right(&outcome);
        right += u32::from(is_right);
        even += u32::from(told.about_even);
        if world.is_first() {
            let said = match (told.about_even, told.pays) {
                (true, _) => "about even",
                (false, true) => "pays",
                (false, false) => "does not pay",
            };
            let (gain, cost) = (1e3 * outcome.gain, 1e3 * outcome.cost);
            println!(
                "case {case}: {said}: {} on {}, foreseen cost {:.3} ms; gain {gain:.3} ms, cost {cost:.3} ms, ratio {:.2}{}",
                told.balancer,
                told.topology,
                1e3 * told.cost,
                outcome.ratio(),
                if is_right { "" } else { ": WRONG" }
            );
        }
    }
    if world.is_first() {
        println!("advice {} {right} {even}", arguments.cases);
    }
    Ok(())
}

/// The part of an advice that outcomes are compared with.
#[derive(Clone, Serialize, Deserialize)]
struct Told {
    pays: bool,
    about_even: bool,
    balancer: String,
    topology: String,
    /// Predicted seconds of the phase.
    cost: f64,
}

/// Seconds that balancing saves and takes: medians of some rounds.
struct Outcome {
    gain: f64,
    cost: f64,
}

impl Outcome {
    fn ratio(&self) -> f64 {
        self.gain / self.cost
    }
}

impl Told {
    /// Returns true if the answer is right. "About even" is, where gain and cost are within that factor.
    fn is_right(&self, outcome: &Outcome) -> bool {
        match self.about_even {
            true => (1.0 / ABOUT_EVEN..=ABOUT_EVEN).contains(&outcome.ratio()),
            false => self.pays == (outcome.gain > outcome.cost),
        }
    }
}

/// Tasks of one case.
struct Tasks {
    /// Number by rank.
    loads: Vec<u64>,
    payload: u64,
}

impl Tasks {
    /// The same on all ranks.
    fn drawn(rng: &mut ChaCha8Rng, ranks: u32) -> Tasks {
        let payload = PAYLOADS[rng.random_range(0..PAYLOADS.len())];
        loop {
            let mut loads: Vec<u64> = (0..ranks).map(|_| rng.random_range(0..40)).collect();
            if rng.random_bool(0.5) {
                loads[rng.random_range(0..ranks) as usize] += 40;
            }
            let share = loads.iter().sum::<u64>().div_ceil(ranks.into());
            if most(&loads) >= share + LEAST_UNITS {
                return Tasks { loads, payload };
            }
        }
    }

    /// The advice, and what became of it: tasks last so long that gain over cost is near this ratio.
    fn compared(&self, world: &mut World, network: Option<&Network>, ratio: f64, rounds: u32) -> Result<(Told, Outcome)> {
        // The balancer that is advised depends a little on the duration of tasks, which depends on what it costs.
        let (mut told, mut seconds) = (self.advice(world, network, 1e-3)?, 0.0);
        for _ in 0..2 {
            let mut costs = Vec::new();
            let mut units = 0;
            for _ in 0..rounds {
                let (after, cost) = self.balanced(world, &told)?;
                costs.push(cost);
                units = most(&self.loads).saturating_sub(most(&after));
            }
            seconds = ratio * median(&costs)? / units.max(1) as f64;
            told = self.advice(world, network, seconds)?;
        }
        let (mut gains, mut costs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let before = slept(world, &self.loads, seconds)?;
            let (after, cost) = self.balanced(world, &told)?;
            gains.push(before - slept(world, &after, seconds)?);
            costs.push(cost);
        }
        Ok((told, Outcome { gain: median(&gains)?, cost: median(&costs)? }))
    }

    /// Advice on the network, which rank 0 has.
    fn advice(&self, world: &mut World, network: Option<&Network>, seconds: f64) -> Result<Told> {
        from_first(world, || {
            let network = network.ok_or_else(|| Error::Failed("rank 0 has measured no network".into()))?;
            let mut question = Question::new(&self.loads, self.payload, seconds, network);
            // Tasks sleep equally long on all ranks.
            question.speeds = Vec::new();
            let advice = question.answer()?;
            Ok(Told {
                pays: advice.pays,
                about_even: advice.about_even,
                balancer: advice.balancer,
                topology: advice.topology,
                cost: advice.cost_seconds,
            })
        })
    }

    /// Loads after the advised phase, and the seconds that it takes.
    fn balanced(&self, world: &mut World, told: &Told) -> Result<(Vec<u64>, f64)> {
        let chosen = Rc::new(balance::find(&told.balancer)?);
        let topology = settle::topology(world, &told.topology)?;
        phase_of(world, &OnePhase { chosen, topology, loads: self.loads.clone(), powers: Vec::new(), payload: self.payload, seed: 1 })
    }
}

fn most(loads: &[u64]) -> u64 {
    loads.iter().copied().max().unwrap_or(0)
}

fn median(values: &[f64]) -> Result<f64> {
    statistics::median(values).map(|median| median.value).ok_or_else(|| Error::Failed("nothing was measured".into()))
}

/// Seconds in which the rank with the most tasks of this duration has run its own.
fn slept(world: &mut World, loads: &[u64], seconds: f64) -> Result<f64> {
    let overlay = one_node_per_rank(world)?;
    only(node::run(world, &overlay, |node| {
        let tasks = loads[node.me() as usize];
        async move {
            node.everyone().barrier(&node).await?;
            let began = Instant::now();
            // Each ends at its time, so that a late awakening is not one of all tasks after it.
            for task in 1..=tasks {
                let end = Duration::from_secs_f64(task as f64 * seconds);
                std::thread::sleep(end.saturating_sub(began.elapsed()));
            }
            let took = began.elapsed().as_secs_f64();
            node.everyone().all_reduce(&node, took, f64::max).await
        }
    })?)
}
