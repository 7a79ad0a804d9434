//! Time of migrations in addition to the network's, in simulations of papers that charge for them. The times are exponentially distributed;
//! where migrations queue for links, they are served in sequence.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::task::Travelling;
use crate::node::Ticks;
use crate::topology::NodeId;

pub(super) struct MigrationTimes {
    me: NodeId,
    /// Mean of the exponential distribution; `None` if migrations take no time of their own.
    mean: Option<Ticks>,
    /// Whether migrations queue for a link of their sender.
    contention: bool,
    rng: ChaCha8Rng,
    /// Time at which this node's link of each dimension is free for the next migration.
    links: Vec<Ticks>,
}

impl MigrationTimes {
    pub fn new(me: NodeId, mean: Option<Ticks>, contention: bool, rng: ChaCha8Rng) -> MigrationTimes {
        MigrationTimes { me, mean, contention, rng, links: Vec::new() }
    }

    /// Tasks leave for a node. Where migrations queue for links, each carries how long it takes.
    pub fn depart<T>(&mut self, clock: impl FnOnce() -> Ticks, to: NodeId, tasks: &mut [Travelling<T>]) {
        if let Some(mean) = self.mean.filter(|_| self.contention) {
            let now = clock();
            for task in tasks.iter_mut().filter(|task| task.migration && task.takes.is_none()) {
                task.takes = Some(self.queue_for_link(now, to, mean));
            }
        }
    }

    /// A task has come. How long its migration still takes, if it takes time here.
    pub fn arrive<T>(&mut self, task: &Travelling<T>) -> Option<Ticks> {
        let mean = self.mean.filter(|_| task.migration)?;
        Some(task.takes.unwrap_or_else(|| exponential(&mut self.rng, mean)))
    }

    /// Time of a migration that has to queue for its link: each is served once, first come first served, on this node's link of the highest
    /// bit in which the two nodes' numbers differ.
    fn queue_for_link(&mut self, now: Ticks, to: NodeId, mean: Ticks) -> Ticks {
        let service = exponential(&mut self.rng, mean);
        let bit = (self.me ^ to).checked_ilog2().unwrap_or(0) as usize;
        if self.links.len() <= bit {
            self.links.resize(bit + 1, 0);
        }
        self.links[bit] = self.links[bit].max(now).saturating_add(service);
        self.links[bit] - now
    }
}

/// A time drawn from the exponential distribution with this mean.
fn exponential(rng: &mut impl rand::Rng, mean: Ticks) -> Ticks {
    let uniform: f64 = rng.random();
    (-(1.0 - uniform).ln() * mean as f64).round() as Ticks
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::super::task::{Home, TaskHeader};
    use super::*;
    use crate::schedule::accounting::Name;

    fn times(mean: Option<Ticks>, contention: bool) -> MigrationTimes {
        MigrationTimes::new(0, mean, contention, ChaCha8Rng::seed_from_u64(1))
    }

    fn task(migration: bool) -> Travelling<()> {
        Travelling::new(TaskHeader::new(Name { born: 0, number: 0 }, Home::Detached, 0), (), migration)
    }

    #[test]
    fn migrations_to_one_link_are_served_one_after_the_other() {
        let mut times = times(Some(1_000), true);
        let mut tasks = [task(true), task(false), task(true)];
        times.depart(|| 50, 4, &mut tasks);
        let [first, free, second] = tasks;
        assert_eq!(free.takes, None, "what is no migration costs nothing");
        // Both left at once; the second waits for the first.
        assert!(first.takes.unwrap() < second.takes.unwrap());
        // Nodes 5 and 4 lie behind the same link of node 0, node 1 behind another one.
        let mut behind = [task(true)];
        times.depart(|| 50, 5, &mut behind);
        assert!(behind[0].takes > second.takes);
        assert_eq!(times.links[2], 50 + behind[0].takes.unwrap());
        let mut elsewhere = [task(true)];
        times.depart(|| 50, 1, &mut elsewhere);
        assert_eq!(times.links[0], 50 + elsewhere[0].takes.unwrap());
        // The receiver takes the sender's word for it.
        assert_eq!(times.arrive(&second), second.takes);
    }

    #[test]
    fn without_contention_the_receiver_draws_times_with_the_mean_asked_for() {
        let mut times = times(Some(1_000), false);
        let mut tasks = [task(true)];
        times.depart(|| 0, 1, &mut tasks);
        assert_eq!(tasks[0].takes, None);
        let sum: Ticks = (0..20_000).map(|_| times.arrive(&tasks[0]).unwrap()).sum();
        assert!((19_500_000..20_500_000).contains(&sum), "{sum}");
        assert_eq!(times.arrive(&task(false)), None);
    }

    #[test]
    fn without_a_mean_migrations_take_no_time_of_their_own() {
        let mut times = times(None, true);
        let mut tasks = [task(true)];
        times.depart(|| 0, 1, &mut tasks);
        assert_eq!((tasks[0].takes, times.arrive(&tasks[0])), (None, None));
    }
}
