//! Incremental collective scheduling: Wu, "On runtime parallel scheduling for processor load balancing", 1997, section 1; the system is that of Shu
//! and Wu, "Runtime incremental parallel scheduling (RIPS) on distributed memory computers", IEEE Trans. Parallel Distrib. Syst. 7, 1996. User
//! phases, in which tasks are executed where they are, alternate with system phases, in which a collective balancer redistributes the ready tasks of
//! all nodes, old and new together.
//!
//! 1. In a user phase a node executes what it has; what a task spawns is queued at its node.
//! 2. A node that has a reason (below) wishes for a phase; one wish a round goes up the tree of the nodes, whose root is the host.
//! 3. The host asks all for their loads: a reduction down and up the tree, during which no node stops working. From their summary it decides.
//! 4. If a phase begins, ready tasks are frozen and balanced (`runtime/phases.rs`); otherwise the host announces that none does, and whether a node
//!    idles.
//!
//! | trigger | requests a phase | a phase begins if |
//! |---|---|---|
//! | `any` | a node whose worker idles; once one is known to, a node with ready tasks to spare | one node idles and another has tasks to spare |
//! | `predicted` | the same | and the longest queue shrinks by more than `margin` times what a phase takes, by the measured means of both, or the imbalance has lasted that long; a node keeps what it would execute while the phase lasts |
//! | `periodic` | no node: the host asks every `period` | a node has tasks to spare, and loads differ by more than one |
//! | a [published criterion](crate::trigger) | the same | and the criterion asks for it, to which a round is a step: how long nodes worked since the last round, the longest and on average, and what a phase costs |
//! | `all` | a node that idles, once all below it in the tree do | all idle, and tasks wait |
//!
//! ```text
//!   user phase     node 0  ####|##########|          # a task runs   | frozen
//!                  node 1  ## .|####### . |          . idle: wishes
//!   system phase               ^ loads, freeze, balance, go on; running tasks are not disturbed
//! ```
//!
//! Cost: a round is 2 (n - 1) messages, a phase n - 1 more and those of the balancer. Guarantee: after a phase the balancer's, for the loads of the
//! round. A phase that moved nothing, and one that would not pay, is followed by a longer and longer pause, so that idle nodes don't phase in a loop.
//!
//! Departures. In the papers all stop for a system phase; here tasks go on running, and count as load that can't move. A node does not freeze what it
//! would keep anyway (the average load, or what its workers execute at once), so that it has something to do meanwhile. In a user phase
//! spawned tasks run where they are (RIPS calls it "lazy"); but so all would idle only at the end, so with `all` they wait for the next system phase
//! ("eager"). The pauses and the rule of `predicted` are ours. The roots of a stream arrive at uniformly random
//! ranks.

mod cost_model;
mod policy;
mod steps;
mod trigger;

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;

use super::policy::{AnyPolicy, Place, erase};
use super::registry::{Entry, Facts, NEIGHBOURLY, Scheduler, Units};
use crate::balance;
use crate::error::Result;
use crate::registry;
use crate::spec::{InvalidSpec, Options, any_of};
use crate::trigger::{self as criteria, Criterion};
use policy::Incremental;

pub(super) static ENTRY: Entry = Entry {
    name: "incremental",
    title: "incremental collective scheduling: a balancer redistributes the ready tasks again and again",
    source: "Shu and Wu 1996; Wu 1997, section 1",
    options: "balancer=cwa (any but rcb and sfc, its topologies; several options of its own with + between them), trigger=any|all|periodic|predicted (or one of \
              those that tell when to balance, menon for instance, its options with + between), period=2 (units of the workload's time, of periodic and those), margin=1 (of predicted: how many times its cost a phase must gain)",
    examples: &[
        "incremental",
        "incremental:trigger=all",
        "incremental:balancer=direct,trigger=predicted",
        "incremental:trigger=menon,period=0.1",
    ],
    build,
    facts: Facts { kinds: NEIGHBOURLY },
};

/// Condition on which a phase begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trigger {
    /// A node idles.
    Any,
    /// All idle.
    All,
    /// Time.
    Periodic,
    /// A node idles, and a phase is expected to pay.
    Predicted,
    /// Time, and a published criterion.
    Published(Criterion),
}

impl Trigger {
    /// Returns true if the host asks every period, and nodes never request a phase.
    fn goes_by_the_clock(self) -> bool {
        matches!(self, Trigger::Periodic | Trigger::Published(_))
    }

    /// The published criterion.
    fn criterion(self) -> Option<Criterion> {
        match self {
            Trigger::Published(criterion) => Some(criterion),
            _ => None,
        }
    }
}

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    let text: String = options.value("balancer")?.unwrap_or("cwa").into();
    if text.ends_with("+refine") {
        return Err(options.wrong("balancer", &text, "a balancer without +refine"));
    }
    let balancer: balance::Chosen = registry::find(&text.replace('+', ",")).map_err(|why| options.nested(why))?;
    if balancer.needs_places() {
        return Err(options.wrong("balancer", &text, "a balancer that needs no places of tasks"));
    }
    let trigger = trigger(options)?;
    let period = Units::read(options, "period")?.unwrap_or(Units(2.0));
    if period.0 <= 0.0 {
        return Err(options.wrong("period", "0", "a number of time units above 0"));
    }
    let margin = options.read("margin", "a number, 0 or more", |number: &f64| number.is_finite() && *number >= 0.0)?.unwrap_or(1.0);
    Ok(Arc::new(Collective { balancer: Arc::new(balancer), trigger, period, margin }))
}

/// Triggers that are this scheduler's own.
const OWN: [(&str, Trigger); 4] =
    [("any", Trigger::Any), ("all", Trigger::All), ("periodic", Trigger::Periodic), ("predicted", Trigger::Predicted)];

fn trigger(options: &mut Options<'_>) -> Result<Trigger, InvalidSpec> {
    let Some(text) = options.value("trigger")? else { return Ok(Trigger::Any) };
    if let Some((_, own)) = OWN.iter().find(|(name, _)| *name == text) {
        return Ok(*own);
    }
    let name = text.split(':').next().unwrap_or_default();
    if !registry::knows::<criteria::Facts>(name) {
        let published = registry::names::<criteria::Facts>().filter(|name| OWN.iter().all(|(own, _)| own != name));
        let known: Vec<&str> = OWN.iter().map(|(name, _)| *name).chain(published).collect();
        return Err(options.wrong("trigger", text, &any_of(&known)));
    }
    let chosen = criteria::find(&text.replace('+', ",")).map_err(|why| options.nested(why))?;
    Ok(Trigger::Published(chosen.made))
}

struct Collective {
    balancer: Arc<balance::Chosen>,
    trigger: Trigger,
    period: Units,
    margin: f64,
}

impl Scheduler for Collective {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        let period = self.period.ticks(place.unit);
        Ok(erase(Incremental::new(place, rng, self.trigger, period, self.margin)))
    }

    fn balancer(&self) -> Option<Arc<balance::Chosen>> {
        Some(self.balancer.clone())
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::Topology;

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let wrong = |spec: &str| crate::schedule::find(spec).err().map(|why| why.to_string()).unwrap_or_default();
        assert_eq!(wrong("incremental:balancer=psts:unit=first,trigger=periodic,period=0.5"), "");
        assert_eq!(wrong("incremental:trigger=threshold:above=1.2+window=3,period=0.5"), "");
        assert_eq!(
            wrong("incremental:trigger=some"),
            "scheduler incremental: trigger is any, all, periodic, predicted, never, every, threshold, marquez, menon, menon-baseline, \
             menon-interval, zhai, procassini or boulmier, not 'some'"
        );
        assert_eq!(
            wrong("incremental:trigger=every:steps=0"),
            "scheduler incremental: trigger every: steps is a whole number, 1 or more, not '0'"
        );
        assert_eq!(wrong("incremental:period=0"), "scheduler incremental: period is a number of time units above 0, not '0'");
        assert!(wrong("incremental:balancer=cwb").starts_with("scheduler incremental: balancer 'cwb' is unknown; known are "));
        assert_eq!(
            wrong("incremental:balancer=cwa+refine"),
            "scheduler incremental: balancer is a balancer without +refine, not 'cwa+refine'"
        );
        for balancer in ["rcb", "sfc:curve=hilbert"] {
            let refused = format!("scheduler incremental: balancer is a balancer that needs no places of tasks, not '{balancer}'");
            assert_eq!(wrong(&format!("incremental:balancer={balancer}")), refused);
        }
        assert_eq!(wrong("incremental:cwa"), "scheduler incremental has no option 'cwa'; it has balancer, trigger, period, margin");
    }

    #[test]
    fn the_topology_is_the_balancers() {
        let chosen = crate::schedule::find("incremental:balancer=mwa").unwrap();
        assert_eq!(chosen.default_topology(6).kind().to_string(), "mesh");
        assert_eq!(chosen.objection(&Topology::parse("mesh:2x3", 6).unwrap()), None);
        let objection = chosen.objection(&Topology::parse("hypercube:3", 8).unwrap()).unwrap();
        assert!(objection.to_string().starts_with("scheduler incremental:balancer=mwa: balancer mwa runs on mesh"), "{objection}");
    }
}
