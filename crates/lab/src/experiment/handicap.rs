//! A contender that is slowed down on purpose: a test of the measurement, which must see it (see `scripts/fairness`). It is in no registry, and
//! its name says what it is.

use super::run;
use equipoise::balance::{Balancer, Chosen, Phase, Running};
use equipoise::error::Result;
use equipoise::load::{Quota, Shares};
use equipoise::topology::{Overlay, Placement, Topology};

/// Another balancer, whose phases take this many times as long on every node.
struct Slowed {
    inner: Box<dyn Balancer>,
    times: f64,
}

/// A balancer whose phases take `times` times as long.
pub fn slowed(chosen: Chosen, times: f64) -> Chosen {
    let Chosen { name, entry, made: inner } = chosen;
    Chosen { name: named(&name, times), entry, made: Box::new(Slowed { inner, times }) }
}

/// Makes each task of a scheduler take `times` times as long.
pub fn slow_down(contender: &mut run::SchedulerContender, times: f64) {
    contender.scheduler.name = named(&contender.scheduler.name, times);
    contender.drag = times - 1.0;
}

fn named(name: &str, times: f64) -> String {
    format!("{name} slowed {times} times")
}

impl Balancer for Slowed {
    fn quota(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        self.inner.quota(topology, total, shares)
    }

    fn reachable(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        self.inner.reachable(topology, total, shares)
    }

    fn aims(&self, overlay: &Overlay, loads: &[u64], shares: &Shares) -> Quota {
        self.inner.aims(overlay, loads, shares)
    }

    fn is_checked(&self, shares: &Shares, placement: &Placement) -> bool {
        self.inner.is_checked(shares, placement)
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(async move { self.drag(phase).await })
    }
}

impl Slowed {
    async fn drag(&self, phase: &mut Phase<'_>) -> Result<()> {
        let node = phase.node;
        let began = node.now();
        self.inner.run(phase).await?;
        let ended = node.now();
        let more = ((ended - began) as f64 * (self.times - 1.0)) as u64;
        // In simulation the charge passes the time, on real ranks the clock does.
        node.charge(more);
        while node.now() < ended + more {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::balance::{BalanceSpec, balance};
    use super::super::tasks::Tasks;
    use super::*;
    use equipoise::balance::find;
    use equipoise::load::Powers;
    use equipoise::transport::sim;
    use equipoise::transport::world::World;

    #[test]
    fn it_does_the_same_in_more_time() {
        let mut world = World::simulated(8, sim::Model::default());
        let mut run = |balancer: Rc<Chosen>| {
            let tasks = Tasks::numbered(&mut world, vec![19, 11, 2, 9, 0, 9, 10, 4], 64).unwrap();
            let overlay = Overlay::one_host(Topology::parse("hypercube:3", 8).unwrap(), 8).unwrap();
            let spec = BalanceSpec::new(balancer, overlay, tasks, Powers::equal(8, 8));
            balance(&mut world, &spec).unwrap().unwrap()
        };
        let (usual, slow) = (run(Rc::new(find("cwa").unwrap())), run(Rc::new(slowed(find("cwa").unwrap(), 1.2))));
        assert_eq!((slow.balancer.as_str(), &slow.finals, &slow.moves), ("cwa slowed 1.2 times", &usual.finals, &usual.moves));
        assert!((slow.seconds / usual.seconds - 1.2).abs() < 0.001, "{} {}", slow.seconds, usual.seconds);
    }
}
