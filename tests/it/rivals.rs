//! Balancers that know every task, on task times of real runs (tests/data/loads).

use std::path::PathBuf;

use equipoise::assign::{self, Assignment, Problem};
use equipoise_lab::workload::{MeasuredTasks, TaskSource};

/// A run, and a lower bound of what moves in it.
struct Load {
    run: &'static str,
    ranks: usize,
    /// If no rank ends with more than this times the mean,
    limit: f64,
    /// no less work than this moves. For the toy it is what ranks have above the limit; for the phases 501 and 901 the lightest sets of whole tasks that bring
    /// each rank below it (by trying all); for the others the dual bound that HiGHS 1.16 proves within 100 s for the integer program with a
    /// variable for each task and rank. What ranks have above the limit is up to a quarter less than these, and cannot be reached with whole tasks.
    least: u64,
}

const fn load(run: &'static str, ranks: usize, limit: f64, least: u64) -> Load {
    Load { run, ranks, limit, least }
}

const LOADS: [Load; 7] = [
    load("lbaf-toy-fewer-16ranks", 16, 1.0102, 5_583_015_237_500),
    load("lbaf-nolb-8color-32ranks,phase=101", 32, 1.0102, 51_749_524),
    load("lbaf-nolb-8color-32ranks,phase=201", 32, 1.0092, 138_824_580),
    load("lbaf-nolb-8color-32ranks,phase=301", 32, 1.0102, 342_179_043),
    load("lbaf-nolb-8color-32ranks,phase=401", 32, 1.0092, 243_906_421),
    load("lbaf-nolb-8color-32ranks,phase=501", 32, 1.0095, 224_716_336),
    load("lbaf-nolb-8color-32ranks,phase=901", 32, 1.0102, 370_278_239),
];

fn read(run: &str) -> MeasuredTasks {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", "loads"].iter().collect();
    TaskSource::parse(&format!("lbaf:{}/{run}", folder.display())).unwrap().measured().unwrap().unwrap()
}

/// What a problem is made of.
struct Given {
    weights: Vec<u64>,
    owners: Vec<u32>,
    fixed: Vec<u64>,
    powers: Vec<u64>,
}

impl Given {
    fn of(load: &Load) -> Given {
        let run = read(load.run);
        let mut fixed = vec![0; load.ranks];
        run.tasks.iter().filter(|task| task.pinned).for_each(|task| fixed[task.rank as usize] += task.work);
        let movable = || run.tasks.iter().filter(|task| !task.pinned);
        Given {
            weights: movable().map(|task| task.work).collect(),
            owners: movable().map(|task| task.rank).collect(),
            fixed,
            powers: vec![1; load.ranks],
        }
    }

    fn problem(&self) -> Problem<'_> {
        Problem { weights: &self.weights, owners: &self.owners, fixed: &self.fixed, powers: &self.powers }
    }
}

fn most(problem: &Problem<'_>, assignment: &Assignment) -> u64 {
    problem.loads(assignment).into_iter().max().unwrap()
}

#[test]
fn whole_tasks_move_little_and_end_within_a_hundredth_of_the_best() {
    for load in LOADS {
        let given = Given::of(&load);
        let problem = given.problem();
        let mean = problem.loads(problem.owners).iter().sum::<u64>() as f64 / load.ranks as f64;
        let best = [assign::greedy(&problem), assign::differencing(&problem), assign::refine(&problem)]
            .iter()
            .map(|found| most(&problem, found))
            .min()
            .unwrap();
        for (name, found) in [
            ("refine", assign::frugal_refine(&problem, assign::TOLERANCE)),
            ("greedy-refine", assign::greedy_refine(&problem, assign::TOLERANCE)),
        ] {
            let (most, moved) = (most(&problem, &found), problem.moved(&found));
            assert!(most as f64 <= 1.01 * best as f64, "{name} on {}: {most}, and the best is {best}", load.run);
            assert!(most as f64 <= load.limit * mean, "{name} on {}", load.run);
            assert!(moved as f64 <= 1.1 * load.least as f64, "{name} on {}: {moved} moved, and the least is {}", load.run, load.least);
        }
    }
}

#[test]
fn without_a_tolerance_the_best_maximum_is_kept_and_no_more_moves() {
    let given = Given::of(&LOADS[0]);
    let problem = given.problem();
    let (exact, refined) = (assign::frugal_refine(&problem, 1.0), assign::refine(&problem));
    assert_eq!(most(&problem, &exact), most(&problem, &refined));
    assert!(problem.moved(&exact) <= problem.moved(&refined));
}
