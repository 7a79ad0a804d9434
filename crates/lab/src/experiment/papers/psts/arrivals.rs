//! Figure 6 of Savvas and Kechadi 2004 with arrivals over time: 4,000 tasks of random sizes arrive at random nodes of random powers while others
//! are executed, with and without PSTS.
//!
//! Time is in seconds. A node executes its tasks in the order of their arrival, one after the other; what it has begun stays (the paper's tasks are
//! not preempted) and counts as pinned load. At every tenth arrival it is asked whether a phase pays: whether the slowest node would end later than
//! all nodes together could, by more than the last phase took. If so, a phase of PSTS is carried out on simulated ranks. While it lasts, nodes go on
//! with what they have begun, and begin nothing new.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use statrs::distribution::{DiscreteCDF, Poisson};

use super::super::Value;
use super::super::evidence::Mean;
use super::{TASK_SECONDS, TASKS, powers};
use equipoise::balance;
use equipoise::error::{Error, Result};
use equipoise::load::{Powers, Segment, Shares, TaskBatch, WorkQueue};
use equipoise::phase::{self, Setting};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::sim::{Model, Network};
use equipoise::transport::world::World;

/// The mean number of work units of a task.
const MEAN_UNITS: u64 = 10;
/// The mean power of a node: uniform in 1 to 10.
const MEAN_POWER: f64 = 5.5;
/// Share of two average nodes' time that the tasks take while they arrive.
const UTILISATION: f64 = 0.8;

/// Arrivals from one question whether a phase pays to the next.
const ASKED_EVERY: usize = 10;

/// The distribution of the tasks' work units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// Uniform from 1 to twice the mean less 1.
    Uniform,
    /// Poisson's; a task without a unit has one.
    Poisson,
}

/// A stream of tasks.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Arrival in seconds, node, work units; in order of time.
    tasks: Vec<(f64, usize, u64)>,
    powers: Vec<u64>,
}

/// Result of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    /// Mean time from arrival to end.
    pub response: f64,
    /// Phases that were carried out.
    pub phases: u64,
}

/// The mean response time where tasks stay at the nodes at which they arrive, over that with PSTS: the harmonic mean over the cases, since where a slow
/// node is overloaded a single ratio may be a thousand times another.
pub(super) fn speedup(curve: &str, grid: &str, sizes: Sizes, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let nodes = Topology::parse(grid, 1)?.nodes();
    let mut samples = Vec::new();
    for case in 0..u64::from(cases) {
        let arrivals = Arrivals::draw(nodes, sizes, seed + case)?;
        samples.push(arrivals.balanced(grid)?.response / arrivals.stay().response);
    }
    let mean = Mean::of(&samples).ok_or_else(|| Error::Failed("a mean needs a case at least".into()))?;
    Ok(vec![Value::new(curve, inverse(&mean))])
}

/// One over a mean, whose error is that of the mean in first order.
fn inverse(mean: &Mean) -> Mean {
    Mean { value: 1.0 / mean.value, error: mean.error / mean.value.powi(2), ..*mean }
}

impl Arrivals {
    /// A Poisson stream of the same rate on any number of nodes: the paper's number of tasks is the same, too.
    pub fn draw(nodes: u32, sizes: Sizes, seed: u64) -> Result<Arrivals> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let powers = (0..nodes).map(|_| rng.random_range(1..=10)).collect();
        let rate = UTILISATION * 2.0 * MEAN_POWER / MEAN_UNITS as f64 / TASK_SECONDS;
        let poisson = Poisson::new(MEAN_UNITS as f64).map_err(|why| Error::Failed(why.to_string()))?;
        let mut now = 0.0;
        let tasks = (0..TASKS).map(|_| {
            now -= (1.0 - rng.random::<f64>()).ln() / rate;
            let units = match sizes {
                Sizes::Uniform => rng.random_range(1..2 * MEAN_UNITS),
                Sizes::Poisson => poisson.inverse_cdf(rng.random()).max(1),
            };
            (now, rng.random_range(0..nodes as usize), units)
        });
        Ok(Arrivals { tasks: tasks.collect(), powers })
    }

    fn nodes(&self) -> Vec<Node> {
        self.powers
            .iter()
            .map(|power| Node { unit: TASK_SECONDS / *power as f64, waiting: VecDeque::new(), running: None, waits_until: 0.0 })
            .collect()
    }

    /// Every task where it arrived.
    pub fn stay(&self) -> Course {
        let (mut nodes, mut ends) = (self.nodes(), vec![0.0; self.tasks.len()]);
        for (id, (at, node, units)) in self.tasks.iter().enumerate() {
            nodes[*node].until(*at, &mut ends);
            nodes[*node].arrive(*at, (id, *units));
        }
        self.course(nodes, ends, 0)
    }

    /// With PSTS on a grid.
    ///
    /// # Errors
    /// If a phase fails.
    pub fn balanced(&self, grid: &str) -> Result<Course> {
        let mut phases = Phases::on(grid, &self.powers)?;
        let (mut nodes, mut ends) = (self.nodes(), vec![0.0; self.tasks.len()]);
        let (mut last, mut number, mut go_on) = (0.0, 0, 0.0f64);
        for (id, (at, node, units)) in self.tasks.iter().enumerate() {
            // What arrives during a phase is there when it has ended.
            let now = at.max(go_on);
            nodes.iter_mut().for_each(|node| node.until(now, &mut ends));
            nodes[*node].arrive(now, (id, *units));
            if (id + 1).is_multiple_of(ASKED_EVERY) && self.gain(&nodes, now) > last {
                last = phases.carry_out(&mut nodes, now, &self.tasks)?;
                go_on = now + last;
                number += 1;
            }
        }
        Ok(self.course(nodes, ends, number))
    }

    /// How much sooner all would end if the work that waits could be parted at will; what is begun ends where it is.
    fn gain(&self, nodes: &[Node], now: f64) -> f64 {
        let left: Vec<f64> = nodes.iter().map(|node| node.left(now)).collect();
        let units = left.iter().zip(&self.powers).map(|(left, power)| left * *power as f64).sum::<f64>();
        let ideal = nodes.iter().map(|node| node.running_left(now)).fold(units / self.powers.iter().sum::<u64>() as f64, f64::max);
        left.into_iter().fold(0.0, f64::max) - ideal
    }

    /// After the last arrival: all that is left is executed.
    fn course(&self, mut nodes: Vec<Node>, mut ends: Vec<f64>, phases: u64) -> Course {
        nodes.iter_mut().for_each(|node| node.until(f64::INFINITY, &mut ends));
        let responses = ends.iter().zip(&self.tasks).map(|(end, (at, ..))| end - at).sum::<f64>();
        Course { response: responses / self.tasks.len() as f64, phases }
    }
}

/// A node with its tasks: numbers and work units, in order of arrival.
struct Node {
    /// Seconds of a work unit.
    unit: f64,
    waiting: VecDeque<(usize, u64)>,
    /// The task that is executed, and when it ends.
    running: Option<(usize, f64)>,
    /// The end of the last phase, before which nothing new is begun.
    waits_until: f64,
}

impl Node {
    /// Executes until then, and notes when tasks end.
    fn until(&mut self, now: f64, ends: &mut [f64]) {
        while let Some((id, end)) = self.running.filter(|(_, end)| *end <= now) {
            ends[id] = end;
            self.begin(end);
        }
    }

    fn begin(&mut self, now: f64) {
        let from = now.max(self.waits_until);
        self.running = self.waiting.pop_front().map(|(id, units)| (id, from + units as f64 * self.unit));
    }

    fn arrive(&mut self, now: f64, task: (usize, u64)) {
        self.waiting.push_back(task);
        if self.running.is_none() {
            self.begin(now);
        }
    }

    /// Seconds until all its tasks have ended.
    fn left(&self, now: f64) -> f64 {
        let waiting: u64 = self.waiting.iter().map(|(_, units)| units).sum();
        self.running_left(now) + waiting as f64 * self.unit
    }

    /// Seconds until the task that is executed has ended.
    fn running_left(&self, now: f64) -> f64 {
        self.running.map_or(0.0, |(_, end)| end - now)
    }

    /// Work units of the task that is executed, a part of one counted as one.
    fn begun(&self, now: f64) -> u64 {
        self.running.map_or(0, |(_, end)| ((end - now) / self.unit).ceil().max(1.0) as u64)
    }
}

/// Phases of PSTS on simulated ranks, with the tasks that wait.
struct Phases {
    world: World,
    overlay: Overlay,
    balancer: Rc<balance::Chosen>,
    powers: Powers,
}

impl Phases {
    fn on(grid: &str, listed: &[u64]) -> Result<Phases> {
        let topology = Topology::parse(grid, 1)?;
        let nodes = topology.nodes();
        let model = Model { network: Network::parse("switched")?, ..Model::default() };
        Ok(Phases {
            world: World::simulated(nodes, model),
            overlay: Overlay::one_host(topology, nodes)?,
            balancer: Rc::new(balance::find("psts")?),
            powers: powers(listed.to_vec())?,
        })
    }

    /// Carries a phase out, and says how many seconds it takes.
    fn carry_out(&mut self, nodes: &mut [Node], now: f64, tasks: &[(f64, usize, u64)]) -> Result<f64> {
        let begun: Vec<u64> = nodes.iter().map(|node| node.begun(now)).collect();
        let failed = || Error::Failed("a task of a phase has more units than fit".into());
        let row = |id: u64, units: u64| Segment::row(id, 1, units, Bytes::new()).ok_or_else(failed);
        let queue = |(number, node): (usize, &Node)| -> Result<WorkQueue> {
            let own: Result<TaskBatch> = node.waiting.iter().map(|(id, units)| row(*id as u64, *units)).collect();
            // Numbers of their own: what has begun is never given away.
            let pinned: Result<TaskBatch> =
                (begun[number] > 0).then(|| row((tasks.len() + number) as u64, begun[number])).into_iter().collect();
            Ok(WorkQueue::new(own?).with_pinned(pinned?))
        };
        let queues = nodes.iter().enumerate().map(queue).collect::<Result<Vec<WorkQueue>>>()?;
        let setting = Setting {
            balancer: self.balancer.clone(),
            shares: Shares::new(self.powers.clone()).with_pinned(begun).weighted().plainly(),
            queue: Rc::new(move |node| Ok(queues[node as usize].clone())),
            plan: false,
            weighted: true,
            trace: None,
        };
        let (outcome, queues) = phase::run_and_keep(&mut self.world, &self.overlay, &Rc::new(setting))?;
        let elapsed = outcome.ok_or_else(|| Error::Failed("a simulation left no outcome".into()))?.elapsed as f64 / 1e9;
        for (node, queue) in nodes.iter_mut().zip(&queues) {
            let mut held: Vec<usize> = queue.movable_segments().flat_map(Segment::tasks).map(|task| task.id as usize).collect();
            held.sort_unstable();
            node.waiting = held.into_iter().map(|id| (id, tasks[id].2)).collect();
            node.waits_until = now + elapsed;
            if node.running.is_none() {
                node.begin(now);
            }
        }
        Ok(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(powers: &[u64], tasks: &[(f64, usize, u64)]) -> Arrivals {
        Arrivals { tasks: tasks.to_vec(), powers: powers.to_vec() }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn tasks_that_stay_wait_for_those_before_them() {
        // A unit takes 50 us on a node of power 2. The second task waits for 0.4 ms of the first's 0.5 ms; the third has the other node.
        let course = arrivals(&[2, 1], &[(0.0, 0, 10), (1e-4, 0, 10), (2e-4, 1, 5)]).stay();
        assert!(near(course.response, (5e-4 + 9e-4 + 5e-4) / 3.0) && course.phases == 0, "{course:?}");
    }

    #[test]
    fn a_phase_is_carried_out_where_it_pays_and_moves_what_waits() {
        let tasks = |node: fn(u32) -> usize| -> Vec<(f64, usize, u64)> {
            (0..10).map(|task| (f64::from(task) * 1e-6, node(task), 1_000)).collect()
        };
        // Long tasks on one node of two: at the tenth arrival a phase pays.
        let stream = arrivals(&[1, 1], &tasks(|_| 0));
        let (stayed, balanced) = (stream.stay(), stream.balanced("grid:2").unwrap());
        // 0.1 s each: 1 to 10 of them on one node, 1 to 5 on each of two.
        assert!((stayed.response - 0.55).abs() < 1e-3 && (balanced.response - 0.3).abs() < 1e-3, "{stayed:?} {balanced:?}");
        assert_eq!(balanced.phases, 1);
        // The faster node gets more: three tasks in the time of one.
        let uneven = arrivals(&[3, 1], &tasks(|_| 1));
        assert!(uneven.balanced("grid:2").unwrap().response < 0.6 * uneven.stay().response);
        // Where all is even no phase pays.
        let even = arrivals(&[1, 1], &(0..10).map(|task| (0.0, task % 2, 1_000)).collect::<Vec<_>>());
        assert_eq!((even.balanced("grid:2").unwrap(), even.stay().phases), (Course { response: even.stay().response, phases: 0 }, 0));
    }

    #[test]
    fn streams_repeat_and_have_their_means() {
        for sizes in [Sizes::Uniform, Sizes::Poisson] {
            let drawn = Arrivals::draw(8, sizes, 3).unwrap();
            assert_eq!(drawn.tasks, Arrivals::draw(8, sizes, 3).unwrap().tasks);
            let units = drawn.tasks.iter().map(|(.., units)| *units as f64).sum::<f64>() / TASKS as f64;
            // Standard errors: 5.5 / 63 and 3.2 / 63.
            assert!((units - 10.0).abs() < 0.35, "{sizes:?}: {units}");
            let last = drawn.tasks.last().unwrap().0;
            // 8,800 tasks a second.
            assert!((last * 8_800.0 / TASKS as f64 - 1.0).abs() < 0.08, "{last}");
            let (most, least) =
                (drawn.tasks.iter().map(|task| task.2).max().unwrap(), drawn.tasks.iter().map(|task| task.2).min().unwrap());
            assert!(least >= 1 && (sizes == Sizes::Poisson) == (most > 19), "{least} to {most}");
            assert!(drawn.powers.iter().all(|power| (1..=10).contains(power)) && drawn.tasks.iter().all(|task| task.1 < 8));
        }
        let half = inverse(&Mean { value: 2.0, error: 0.4, freedom: 9.0, cases: 10 });
        assert!(near(half.value, 0.5) && near(half.error, 0.1) && half.cases == 10);
    }
}
