//! Bounds for schedulers of independent tasks on unrelated ranks: a lower bound of the makespan, and heuristics that know all tasks
//! beforehand.

use equipoise::load::{Cost, Costs, NEVER};

/// Maximum number of steps of the ascent to the lower bound.
const STEPS: usize = 600;
/// Costs that the ascent may look at, so that large matrices don't take for ever.
const LOOKS: usize = 200_000_000;

/// A makespan that no schedule beats, near to that of the linear program (in which tasks may be divided; Lawler and Labetoulle 1978).
///
/// For any weights y of the ranks with sum 1, the sum over tasks of the least y·cost is such a bound, and the best weights give the linear
/// program's optimum (its dual). They are sought by multiplicative updates: a rank that would get more than the others becomes dearer.
/// The longest task, on the rank where it is shortest, is a bound as well. 0 without tasks; [`NEVER`] if a task can't run at all.
pub fn lower_bound(costs: &Costs) -> Cost {
    let longest = (0..costs.tasks()).map(|task| costs.least(task)).max().unwrap_or(0);
    if longest == NEVER {
        return NEVER;
    }
    let ranks = costs.ranks();
    let steps = (LOOKS / (costs.tasks() * ranks).max(1)).clamp(20, STEPS);
    let (mut weights, mut best) = (vec![1.0 / ranks as f64; ranks], 0.0f64);
    let mut loads = vec![0.0; ranks];
    for step in 0..steps {
        loads.fill(0.0);
        let mut bound = 0.0;
        for row in costs.rows() {
            let weighted =
                row.iter().zip(&weights).map(|(cost, weight)| if *cost == NEVER { f64::INFINITY } else { *cost as f64 * weight });
            let Some((rank, least)) = weighted.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            bound += least;
            loads[rank] += row[rank] as f64;
        }
        best = best.max(bound);
        let most = loads.iter().copied().fold(0.0, f64::max);
        if most <= 0.0 {
            break;
        }
        let pace = 0.5 / (1.0 + step as f64 / 8.0);
        weights.iter_mut().zip(&loads).for_each(|(weight, load)| *weight *= (pace * load / most).exp());
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
    // Rounding errors are far below this.
    longest.max((best * (1.0 - 1e-9)) as Cost)
}

/// Every task on the rank where it is shortest, divided evenly among all ranks: a bound for schedulers without queues.
pub fn row_minimum(costs: &Costs) -> f64 {
    (0..costs.tasks()).map(|task| costs.least(task) as f64).sum::<f64>() / costs.ranks() as f64
}

/// The makespan if every task, in order, goes to the rank that completes it first (the lowest number on a tie).
pub fn earliest_completion(costs: &Costs) -> Cost {
    let mut finish = vec![0; costs.ranks()];
    for row in costs.rows() {
        place(&mut finish, row);
    }
    finish.into_iter().max().unwrap_or(0)
}

fn completion(finish: &[Cost], row: &[Cost]) -> Option<(Cost, usize)> {
    let possible = row.iter().zip(finish).enumerate().filter(|(_, (cost, _))| **cost != NEVER);
    possible.map(|(rank, (cost, finish))| (finish.saturating_add(*cost), rank)).min()
}

fn place(finish: &mut [Cost], row: &[Cost]) {
    if let Some((at, rank)) = completion(finish, row) {
        finish[rank] = at;
    }
}

/// The makespan of min-min (Ibarra and Kim 1977): again and again the task that can be completed first.
pub fn min_min(costs: &Costs) -> Cost {
    greedy(costs, |finish, row| completion(finish, row).map(|(at, _)| std::cmp::Reverse(at)))
}

/// The makespan of sufferage (Maheswaran et al. 1999): again and again the task that would lose most without its best rank.
pub fn sufferage(costs: &Costs) -> Cost {
    greedy(costs, |finish, row| {
        let (mut first, mut second) = (NEVER, NEVER);
        for (cost, finish) in row.iter().zip(finish).filter(|(cost, _)| **cost != NEVER) {
            let at = finish.saturating_add(*cost);
            (first, second) = if at < first { (at, first) } else { (first, second.min(at)) };
        }
        Some(second - first)
    })
}

/// Places the task of the greatest urgency, the first of them, until none is left.
fn greedy<U: Ord>(costs: &Costs, urgency: impl Fn(&[Cost], &[Cost]) -> Option<U>) -> Cost {
    let mut finish = vec![0; costs.ranks()];
    let mut left: Vec<usize> = (0..costs.tasks()).collect();
    while !left.is_empty() {
        let urgencies = left.iter().enumerate().map(|(at, task)| (urgency(&finish, costs.row(*task)), std::cmp::Reverse(at)));
        let Some((_, at)) = urgencies.max() else { break };
        let task = left.remove(at.0);
        place(&mut finish, costs.row(task));
    }
    finish.into_iter().max().unwrap_or(0)
}

/// Bounds and heuristics for the tasks of a run.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Judgement {
    /// See [`lower_bound`].
    pub lower_bound: Cost,
    /// See [`earliest_completion`].
    pub earliest_completion: Cost,
    /// `None` where there are too many tasks to compute it in a moment.
    pub min_min: Option<Cost>,
    pub sufferage: Option<Cost>,
}

/// Costs that min-min and sufferage may look at.
const GREEDY_LOOKS: usize = 400_000_000;

impl Judgement {
    /// All of them.
    pub fn of(costs: &Costs) -> Judgement {
        let small = costs.tasks().saturating_mul(costs.tasks()).saturating_mul(costs.ranks()) <= GREEDY_LOOKS;
        Judgement {
            lower_bound: lower_bound(costs),
            earliest_completion: earliest_completion(costs),
            min_min: small.then(|| min_min(costs)),
            sufferage: small.then(|| sufferage(costs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use microlp::{ComparisonOp, OptimizationDirection, Problem};
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn random(tasks: usize, ranks: u32, impossible: f64, seed: u64) -> Costs {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut rows = Vec::new();
        for _ in 0..tasks {
            let sure = rng.random_range(0..ranks);
            rows.extend((0..ranks).map(|rank| {
                let cost = rng.random_range(1_000..200_000);
                if rank != sure && rng.random_bool(impossible) { NEVER } else { cost }
            }));
        }
        Costs::new(ranks, rows).unwrap()
    }

    fn linear_program(costs: &Costs) -> f64 {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let makespan = problem.add_var(1.0, (0.0, f64::INFINITY));
        let mut by_rank = vec![Vec::new(); costs.ranks()];
        for row in costs.rows() {
            let mut whole = Vec::new();
            for (rank, cost) in row.iter().enumerate().filter(|(_, cost)| **cost != NEVER) {
                let part = problem.add_var(0.0, (0.0, 1.0));
                whole.push((part, 1.0));
                by_rank[rank].push((part, *cost as f64));
            }
            problem.add_constraint(whole, ComparisonOp::Eq, 1.0);
        }
        for mut terms in by_rank {
            terms.push((makespan, -1.0));
            problem.add_constraint(terms, ComparisonOp::Le, 0.0);
        }
        problem.solve().unwrap().solution().unwrap().objective()
    }

    #[test]
    fn the_bound_is_that_of_the_linear_program_nearly() {
        for (tasks, ranks, impossible, seed) in [(40, 4, 0.0, 1), (25, 6, 0.4, 2), (60, 3, 0.2, 3), (9, 8, 0.0, 4)] {
            let costs = random(tasks, ranks, impossible, seed);
            let longest = (0..tasks).map(|task| costs.least(task)).max().unwrap() as f64;
            let (exact, ours) = (linear_program(&costs).max(longest), lower_bound(&costs) as f64);
            assert!(ours <= exact * (1.0 + 1e-9), "{ours} is no bound: {exact}");
            assert!(ours >= exact * 0.97, "{ours} is far from {exact}");
        }
    }

    #[test]
    fn nobody_beats_the_bound() {
        for seed in 0..40 {
            let costs = random(5 + seed as usize, 1 + seed as u32 % 6, 0.3, seed);
            let judgement = Judgement::of(&costs);
            for heuristic in [Some(judgement.earliest_completion), judgement.min_min, judgement.sufferage].into_iter().flatten() {
                assert!(heuristic >= judgement.lower_bound, "{judgement:?}");
            }
        }
    }

    #[test]
    fn extremes() {
        let none = Costs::new(3, vec![]).unwrap();
        assert_eq!(Judgement::of(&none), Judgement { lower_bound: 0, earliest_completion: 0, min_min: Some(0), sufferage: Some(0) });
        assert_eq!(lower_bound(&Costs::new(2, vec![NEVER, NEVER]).unwrap()), NEVER);
        assert_eq!(lower_bound(&Costs::new(2, vec![7, 9]).unwrap()), 7);
        assert_eq!(lower_bound(&Costs::new(1, vec![7, 9]).unwrap()), 16 - 1, "rounded down");
    }

    /// Totals that an independent program found, on the workers' columns.
    #[test]
    fn heuristics_give_the_published_totals() {
        for text in [include_str!("../../../tests/vectors/sash_6x3.txt"), include_str!("../../../tests/vectors/sash_12x4.txt")] {
            let numbers = |line: &str| line.split_whitespace().map(|cost| cost.parse().unwrap()).collect::<Vec<Cost>>();
            let rows: Vec<Vec<Cost>> = text.lines().filter(|line| !line.starts_with('#')).map(numbers).collect();
            let workers = rows[0].len() - 1;
            let costs = Costs::new(rows[0].len() as u32, rows.concat()).unwrap().on_first(workers);
            let words: Vec<&str> = text.lines().find(|line| line.contains("minmin")).unwrap().split_whitespace().collect();
            let figure = |name: &str| words[words.iter().position(|word| *word == name).unwrap() + 1].parse::<f64>().unwrap();
            assert_eq!(min_min(&costs) as f64, figure("minmin(n)"));
            assert_eq!(sufferage(&costs) as f64, figure("sufferage(n)"));
            assert_eq!(earliest_completion(&costs) as f64, figure("mct(n)"));
            assert!((row_minimum(&costs) - figure("rowminLB(n)")).abs() < 1e-3);
        }
    }
}
