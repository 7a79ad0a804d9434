//! Lending between regions, with work that arrives in small portions.

use super::*;

/// A vertebra spawns the next one and a number of ribs; all take the same time, and all are detached.
struct Spine {
    ribs: u32,
    cost: Ticks,
}

impl Computation for Spine {
    /// Number of vertebrae that follow; `None` for a rib.
    type Task = Option<u32>;
    type Answer = u64;
    type Waiting = ();

    fn execute(&self, task: Option<u32>, worker: &mut dyn Worker) -> Yield<Self> {
        worker.spin(self.cost);
        let tasks = match task {
            Some(left @ 1..) => [vec![Some(left - 1)], vec![None; self.ribs as usize]].concat(),
            _ => Vec::new(),
        };
        Yield::Detached { tasks, answer: 1 }
    }

    fn join(&self, (): (), _: Vec<u64>) -> Yield<Self> {
        Yield::Answer(0)
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

/// Busy time of each node, and the part of the granularity bound that was reached.
fn spine(ranks: u32, ribs: u32, seed: u64) -> (Vec<Ticks>, f64) {
    const VERTEBRAE: u32 = 100;
    let roots = || Roots::One(Some(VERTEBRAE));
    let (overlay, spine) = (fitted("hierarchical", ranks), Spine { ribs, cost: 2_000_000 });
    let outcome = run("hierarchical", &overlay, Model { seed, ..Model::default() }, &Options::default(), spine, &roots).unwrap();
    assert_eq!(outcome.answer, Some(u64::from(VERTEBRAE * (ribs + 1) + 1)));
    let summary = Summary::of(&outcome.nodes, outcome.makespan);
    (outcome.nodes.iter().map(|node| node.busy).collect(), summary.bound as f64 / summary.makespan as f64)
}

#[test]
fn regions_borrow_again_and_again_what_one_region_cannot_do_alone() {
    // One region has all vertebrae, and more ribs each time than it has processors; the others never have a task for each of theirs.
    for (ranks, ribs, least) in [(8, 5, 0.9), (16, 7, 0.9), (64, 30, 0.6)] {
        for seed in 1..=5 {
            let (busy, of_bound) = spine(ranks, ribs, seed);
            let told = format!("{ribs} ribs on {ranks} ranks, seed {seed}: {of_bound} of the bound, busy {busy:?}");
            assert!(of_bound > least, "{told}");
            let mean = busy.iter().sum::<Ticks>() / Ticks::from(ranks);
            assert!(ranks > 16 || busy.iter().all(|busy| busy * 2 >= mean), "{told}");
        }
    }
}
