//! A balancer defined by the user, run and judged through the library: `cargo run --example your_own_balancer`.
//!
//! *Ring diffusion*: every node tells its right neighbour its load, and gives it half of what it has more. A few rounds come near to balance,
//! never exactly; the judge says how near, and at what cost.

use std::rc::Rc;

use equipoise::balance::{self, Balancer, Chosen, Cost, Entry, Facts, Knowledge, Phase, Promises, QuotaRule, Running, Stage};
use equipoise::load::Powers;
use equipoise::node::Tag;
use equipoise::topology::{Kind, Overlay, Topology};
use equipoise::transport::{sim, world::World};
use equipoise_lab::experiment::{self, BalanceSpec, Tasks};

const LOAD: Tag = Tag::new(1, "load");

struct Diffusion {
    rounds: u32,
}

impl Balancer for Diffusion {
    /// Program of one node. The same code runs on real ranks.
    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(async move {
            let (node, nodes) = (phase.node, phase.node.nodes());
            let (left, right) = ((node.me() + nodes - 1) % nodes, (node.me() + 1) % nodes);
            for _ in 0..self.rounds {
                phase.enter(Stage::Information);
                node.send(left, LOAD, &phase.load());
                let theirs: u64 = node.receive(right, LOAD).await?;
                phase.enter(Stage::Exchange);
                let surplus = phase.load().saturating_sub(theirs) / 2;
                phase.mover.give(right, &(), surplus);
                phase.mover.take_in::<()>(left).await?;
            }
            Ok(())
        })
    }
}

/// Facts about it that are known before it runs.
static ENTRY: Entry = Entry {
    name: "diffusion",
    title: "diffusion along a ring",
    source: "this example",
    options: "",
    examples: &["diffusion"],
    build: |_| Ok(Box::new(Diffusion { rounds: 32 })),
    facts: Facts {
        kinds: &[Kind::Ring],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::None,
        knows: Knowledge::Neighbours,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost: |topology| Cost { steps: 64, messages: 64 * u64::from(topology.nodes()), bytes: 10_000 * u64::from(topology.nodes()) },
    },
};

fn main() -> equipoise::Result<()> {
    let ranks = 12;
    let mine = Chosen { name: "diffusion".into(), entry: &ENTRY, made: Box::new(Diffusion { rounds: 32 }) };
    for balancer in [Rc::new(mine), Rc::new(balance::find("kwa")?)] {
        let mut world = World::simulated(ranks, sim::Model::default());
        let overlay = Overlay::one_host(Topology::parse("ring", ranks)?, ranks)?;
        let tasks = Tasks::numbered(&mut world, (1..=u64::from(ranks)).map(|i| i * i).collect(), 64)?;
        let spec = BalanceSpec { moves: false, ..BalanceSpec::new(balancer, overlay, tasks, Powers::equal(ranks, ranks)) };
        // No task is lost or doubled, or this is an error.
        let record = experiment::balance(&mut world, &spec)?;
        record.iter().for_each(|record| println!("{}", equipoise_lab::report::table::balance(record)));
    }
    Ok(())
}
