//! Refinement from where tasks are, as Charm++'s RefineLB does it: work leaves the slowest rank as long as that helps, and nothing else moves.
//!
//! In each step one task goes from the slowest rank to another rank that ends sooner with it than the slowest does without. The first such
//! rank is taken in order of their times, and the task that comes nearest to making both equal. Where no task fits anywhere, one is swapped
//! for a lighter one in the same way. At the end tasks that
//! have moved go back where that makes no rank slower than the result, also in exchange for a task that costs less.
//!
//! The time of the slowest rank falls with every step or the number of ranks that are that slow does, so this ends; it ends at an optimum of moves
//! and swaps of the slowest rank. No bound on how far that is from the best of all assignments beyond longest task first's is claimed.

use std::collections::BTreeSet;

use super::{Assignment, Neighbours, Problem, fewest, near};
use crate::load::RankTime;

/// Steps for each task, at most: whole weights can come nearer to each other by one unit at a time.
const STEPS_PER_TASK: usize = 8;

/// The tolerance of balancers that are given none: most movement buys the last thousandths.
pub const TOLERANCE: f64 = 1.009;

/// Looks of [`quick_refine`] for less movement.
const QUICK_LOOKS: u64 = 1 << 14;

/// Maximum number of tasks that are examined to find one that makes room.
const LOOKS: usize = 1 << 24;

/// Takes work off the slowest rank until that no longer helps.
///
/// O(log) for a move; a swap examines all pairs of tasks of two ranks of which one is the slowest.
pub fn refine(problem: &Problem<'_>) -> Assignment {
    let refined = evened(problem);
    // As good with less movement, if that can be had.
    let limit = problem.slowest(&problem.loads(&refined));
    with_less_movement(problem, refined, limit)
}

/// The result of [`within`] for a limit, if it moves less than this assignment; or else this one.
fn with_less_movement(problem: &Problem<'_>, refined: Assignment, limit: RankTime) -> Assignment {
    let frugal = within(problem, limit);
    frugal.filter(|frugal| problem.moved(frugal) < problem.moved(&refined)).unwrap_or(refined)
}

/// As [`refine`](fn@refine), or a result with less movement that lets the slowest rank take at most `tolerance` times (at least 1) as long,
/// by the same rule or by [`fewest`](fn@fewest).
pub fn frugal_refine(problem: &Problem<'_>, tolerance: f64) -> Assignment {
    refine_with(problem, tolerance, fewest::LOOKS)
}

/// The same for who plans every step: the search for less movement ends after some tenths of a millisecond.
pub fn quick_refine(problem: &Problem<'_>, tolerance: f64) -> Assignment {
    refine_with(problem, tolerance, QUICK_LOOKS)
}

/// The same for two ranks of many: nothing moves if none of the two takes longer than [`TOLERANCE`] times `mean`, the time with work evenly over all ranks,
/// and otherwise no more than that needs.
pub fn refine_towards(problem: &Problem<'_>, mean: RankTime) -> Assignment {
    let enough = scaled(mean, TOLERANCE);
    if problem.slowest(&problem.loads(problem.owners)) <= enough {
        return problem.owners.to_vec();
    }
    let refined = refine(problem);
    let limit = scaled(problem.slowest(&problem.loads(&refined)), TOLERANCE).max(enough);
    with_less_movement(problem, refined, limit)
}

fn refine_with(problem: &Problem<'_>, tolerance: f64, looks: u64) -> Assignment {
    let refined = refine(problem);
    let limit = scaled(problem.slowest(&problem.loads(&refined)), tolerance);
    // The first of those that move the same.
    let found = std::iter::once(refined).chain(frugal(problem, limit, looks));
    found.min_by_key(|assignment| problem.moved(assignment)).unwrap_or_else(|| problem.owners.to_vec())
}

/// As [`frugal_refine`], then communicating tasks are placed together, on ranks that take at most `1 + locality` times as long, and no
/// longer than the slowest did. This is tried from that result and from the current assignment (if it is within the limit); the result with
/// less communication between ranks is taken.
pub fn local_refine(problem: &Problem<'_>, tolerance: f64, neighbours: &Neighbours, locality: f64) -> Assignment {
    let refined = frugal_refine(problem, tolerance);
    let before = problem.slowest(&problem.loads(problem.owners));
    let limit = scaled(problem.slowest(&problem.loads(&refined)), 1.0 + locality).min(before);
    let is_within = before <= limit;
    let starts = is_within.then(|| problem.owners.to_vec()).into_iter().chain([refined]);
    let found = starts.map(|start| near(problem, neighbours, start, limit));
    let best = found.min_by(|a, b| neighbours.crossing(a).total_cmp(&neighbours.crossing(b)).then(problem.moved(a).cmp(&problem.moved(b))));
    best.unwrap_or_else(|| problem.owners.to_vec())
}

/// Assignments with little movement, within a limit of the slowest rank's time.
pub(super) fn frugal(problem: &Problem<'_>, limit: RankTime, looks: u64) -> impl Iterator<Item = Assignment> {
    within(problem, limit).into_iter().chain(fewest::fewest_within(problem, limit, looks))
}

/// Returns the time multiplied by a factor.
pub(super) fn scaled(time: RankTime, factor: f64) -> RankTime {
    RankTime { work: (time.work as f64 * factor.max(1.0)) as u64, power: time.power }
}

/// The same without a second try.
pub(super) fn evened(problem: &Problem<'_>) -> Assignment {
    let mut state = State::new(problem);
    for _ in 0..STEPS_PER_TASK * problem.weights.len() {
        if !state.improve() {
            break;
        }
    }
    state.settle();
    state.assignment
}

/// Finds an assignment in which no rank exceeds `limit`, with little movement from the current one; `None` if this rule finds no way.
///
/// The slowest rank gives what it has too much, and no more: the lightest task that is enough, or else the heaviest that another rank has room for.
/// A task is swapped for a lighter one where none fits.
fn within(problem: &Problem<'_>, limit: RankTime) -> Option<Assignment> {
    let caps: Vec<u64> = problem.powers.iter().map(|power| limit.most_work(*power)).collect();
    let mut state = State::new(problem);
    for _ in 0..STEPS_PER_TASK * problem.weights.len() {
        if state.order.last().is_none_or(|(time, _)| *time <= limit) {
            state.settle_within(limit);
            return Some(state.assignment);
        }
        if !state.give(&caps) {
            return None;
        }
    }
    None
}

pub(super) struct State<'a> {
    problem: &'a Problem<'a>,
    pub assignment: Assignment,
    loads: Vec<u64>,
    /// Weight and number of the movable tasks of each rank.
    held: Vec<BTreeSet<(u64, usize)>>,
    /// All ranks by time.
    order: BTreeSet<(RankTime, usize)>,
}

/// Two ranks, and what may pass from the slower to the faster one.
struct Gap {
    /// Less than this must pass, or the other becomes as slow.
    below: u64,
    /// With this both are done at the same time.
    even: u64,
}

impl<'a> State<'a> {
    fn new(problem: &'a Problem<'a>) -> State<'a> {
        State::with(problem, problem.owners.to_vec())
    }

    pub fn with(problem: &'a Problem<'a>, assignment: Assignment) -> State<'a> {
        let loads = problem.loads(&assignment);
        let mut held = vec![BTreeSet::new(); problem.ranks()];
        for (task, rank) in assignment.iter().enumerate() {
            held[*rank as usize].insert((problem.weights[task], task));
        }
        let order = loads.iter().enumerate().map(|(rank, work)| (problem.time(rank, *work), rank)).collect();
        State { problem, assignment, loads, held, order }
    }

    fn carry(&mut self, task: usize, to: usize) {
        let (from, weight) = (self.assignment[task] as usize, self.problem.weights[task]);
        for rank in [from, to] {
            self.order.remove(&(self.problem.time(rank, self.loads[rank]), rank));
        }
        self.loads[from] -= weight;
        self.loads[to] += weight;
        for rank in [from, to] {
            self.order.insert((self.problem.time(rank, self.loads[rank]), rank));
        }
        self.held[from].remove(&(weight, task));
        self.held[to].insert((weight, task));
        self.assignment[task] = to as u32;
    }

    /// One step that takes work off the slowest rank; `false` if there is none.
    fn improve(&mut self) -> bool {
        let Some(&(slowest, from)) = self.order.last() else { return false };
        let faster = || {
            self.order.iter().take_while(|(time, _)| *time < slowest).map(|(_, rank)| *rank).filter(|rank| self.problem.powers[*rank] > 0)
        };
        let moved = faster().find_map(|to| Some((self.nearest(from, &self.gap(from, to))?, to)));
        if let Some((task, to)) = moved {
            self.carry(task, to);
            return true;
        }
        let Some((task, other, to)) = faster().find_map(|to| self.swap(from, to)) else { return false };
        self.carry(task, to);
        self.carry(other, from);
        true
    }

    /// One step that brings a rank above its cap nearer to it, and no other above; `false` if there is none.
    fn give(&mut self, caps: &[u64]) -> bool {
        let Some(&(_, from)) = self.order.last() else { return false };
        let excess = self.loads[from].saturating_sub(caps[from]);
        let others = || self.order.iter().map(|(_, rank)| *rank).filter(|rank| self.loads[*rank] < caps[*rank]);
        // Whether it is enough, and then how little moves; or else how much.
        let worth = |weight: u64| if weight >= excess { (0, weight) } else { (1, u64::MAX - weight) };
        let moved = others().filter_map(|to| {
            let room = caps[to] - self.loads[to];
            let enough = self.held[from].range((excess.max(1), 0)..(room.saturating_add(1), 0).max((excess.max(1), 0))).next();
            let most = || self.held[from].range((1, 0)..(room.saturating_add(1), 0)).next_back();
            let (weight, task) = *enough.or_else(most)?;
            Some((worth(weight), task, to))
        });
        if let Some((_, task, to)) = moved.min() {
            self.carry(task, to);
            return true;
        }
        let swapped = others().filter_map(|to| {
            let room = caps[to] - self.loads[to];
            let pairs = self.held[from].iter().filter_map(|&(weight, task)| {
                // The heaviest that makes the difference enough, or the lightest that makes it fit.
                let lightest = weight.saturating_sub(room);
                let heaviest = weight.saturating_sub(excess);
                let enough = || self.held[to].range((lightest, 0)..=(heaviest, usize::MAX)).next();
                let fits = || self.held[to].range((lightest, 0)..(weight, 0)).next();
                let (other, number) = *(if lightest <= heaviest { enough() } else { None }).or_else(fits)?;
                Some((worth(weight - other).0, worth(weight - other).1.saturating_add(other), task, number))
            });
            pairs.min().map(|pair| (pair, to))
        });
        let Some(((_, _, task, other), to)) = swapped.min() else { return false };
        self.carry(task, to);
        self.carry(other, from);
        true
    }

    fn gap(&self, from: usize, to: usize) -> Gap {
        let (power, of_other) = (u128::from(self.problem.powers[from]), u128::from(self.problem.powers[to]));
        let (load, others) = (u128::from(self.loads[from]), u128::from(self.loads[to]));
        let u64_of = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        if power == 0 {
            return Gap { below: u64::MAX, even: self.loads[from] };
        }
        let below = (load * of_other).div_ceil(power) - others;
        Gap { below: u64_of(below), even: u64_of((load * of_other - others * power) / (power + of_other)) }
    }

    /// The task of a rank that fits into the gap and comes nearest to its middle.
    fn nearest(&self, rank: usize, gap: &Gap) -> Option<usize> {
        let held = &self.held[rank];
        let lighter = held.range((1, 0)..(gap.even.saturating_add(1), 0)).next_back();
        let heavier = held.range((gap.even.saturating_add(1), 0)..).next();
        let fits = |found: &&(u64, usize)| (1..gap.below).contains(&found.0);
        let found = lighter.filter(fits).into_iter().chain(heavier.filter(fits));
        found.min_by_key(|(weight, _)| weight.abs_diff(gap.even)).map(|(_, task)| *task)
    }

    /// Tasks of two ranks that change places: their difference fits into the gap and comes nearest to its middle.
    fn swap(&self, from: usize, to: usize) -> Option<(usize, usize, usize)> {
        let gap = self.gap(from, to);
        let mut best: Option<(u64, usize, usize)> = None;
        let mut last = None;
        for &(weight, task) in &self.held[from] {
            // Tasks of the same weight are alike.
            if last.replace(weight) == Some(weight) {
                continue;
            }
            let wanted = weight.saturating_sub(gap.even);
            let lighter = self.held[to].range(..(wanted, 0)).next_back();
            let heavier = self.held[to].range((wanted, 0)..).next();
            for &(other_weight, other) in lighter.into_iter().chain(heavier) {
                let difference = weight.saturating_sub(other_weight);
                let distance = difference.abs_diff(gap.even);
                if (1..gap.below).contains(&difference) && best.is_none_or(|(least, ..)| distance < least) {
                    best = Some((distance, task, other));
                }
            }
        }
        best.map(|(_, task, other)| (task, other, to))
    }

    /// Brings back what need not have moved, within the time of the slowest rank.
    pub fn settle(&mut self) {
        if let Some(&(slowest, _)) = self.order.last() {
            self.settle_within(slowest);
        }
    }

    /// The same within a limit that all ranks keep: tasks return to their owners, the heaviest first, where there is room for them, or where another
    /// task that costs less movement can leave for them.
    fn settle_within(&mut self, limit: RankTime) {
        let caps: Vec<u64> = self.problem.powers.iter().map(|power| limit.most_work(*power)).collect();
        let order = self.problem.heaviest_first();
        let mut looks = LOOKS;
        loop {
            let mut settled = true;
            for &task in &order {
                let (at, owner, weight) = (self.assignment[task] as usize, self.problem.owners[task] as usize, self.problem.weights[task]);
                if at == owner || weight == 0 {
                    continue;
                }
                if self.loads[owner].saturating_add(weight) <= caps[owner] {
                    self.carry(task, owner);
                    settled = false;
                } else if weight <= caps[owner] && looks > 0 {
                    looks = looks.saturating_sub(self.held[owner].len());
                    if let Some((other, to)) = self.exchange(task, &caps) {
                        self.carry(other, to);
                        self.carry(task, owner);
                        settled = false;
                    }
                }
            }
            if settled {
                return;
            }
        }
    }

    /// Returns the task that best leaves a rank, and its destination, so that one of the rank's own tasks can return to it. All ranks stay
    /// within their caps, and less work is away from its owner.
    fn exchange(&self, task: usize, caps: &[u64]) -> Option<(usize, usize)> {
        let (at, owner, weight) = (self.assignment[task] as usize, self.problem.owners[task] as usize, self.problem.weights[task]);
        let needed = (self.loads[owner] + weight).saturating_sub(caps[owner]);
        let idle = self.order.first().map_or(at, |(_, rank)| *rank);
        let mut best: Option<(u64, usize, usize)> = None;
        for &(leaving, other) in self.held[owner].range((needed.max(1), 0)..) {
            let home = self.problem.owners[other] as usize;
            // Work of these two that is away from its owner afterwards.
            for to in [at, home, idle] {
                let held = if to == at { self.loads[at] - weight } else { self.loads[to] };
                if to == owner || held.saturating_add(leaving) > caps[to] {
                    continue;
                }
                let away = if to == home { 0 } else { leaving };
                let was_away = weight + if home == owner { 0 } else { leaving };
                if away < was_away && best.is_none_or(|(least, ..)| away.saturating_sub(was_away - weight) < least) {
                    best = Some((away.saturating_sub(was_away - weight), other, to));
                }
            }
        }
        best.filter(|(more, ..)| *more < weight).map(|(_, other, to)| (other, to))
    }
}

#[cfg(test)]
mod tests {
    use super::super::greedy_refine;
    use super::super::testing::{optimum, seconds};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_task_that_fits_nowhere_is_swapped() {
        // 5 + 5 and 4 + 2: no task is below the gap of 4 but in exchange for another.
        let problem = Problem { weights: &[5, 5, 4, 2], owners: &[0, 0, 1, 1], fixed: &[0, 0], powers: &[1, 1] };
        let assignment = refine(&problem);
        assert_eq!(problem.slowest(&problem.loads(&assignment)), RankTime { work: 9, power: 1 });
    }

    #[test]
    fn what_is_even_stays() {
        let problem = Problem { weights: &[3, 3, 6], owners: &[0, 1, 2], fixed: &[3, 3, 0], powers: &[1, 1, 1] };
        assert_eq!(refine(&problem), [0, 1, 2]);
        assert_eq!(greedy_refine(&problem, 1.0), [0, 1, 2]);
        assert_eq!(refine(&Problem { weights: &[], owners: &[], fixed: &[7, 0], powers: &[1, 1] }), [0u32; 0]);
    }

    #[test]
    fn work_leaves_a_rank_without_power() {
        let problem = Problem { weights: &[3, 4], owners: &[0, 0], fixed: &[0, 0, 0], powers: &[0, 1, 1] };
        let mut loads = problem.loads(&refine(&problem));
        loads.sort_unstable();
        assert_eq!(loads, [0, 3, 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn nobody_becomes_slower_and_it_is_near_the_optimum(
            tasks in prop::collection::vec((1u64..40, 0u32..3), 1..8),
            fixed in prop::collection::vec(0u64..20, 3),
            powers in prop::collection::vec(1u64..4, 3),
        ) {
            let (weights, owners): (Vec<u64>, Vec<u32>) = tasks.into_iter().unzip();
            let problem = Problem { weights: &weights, owners: &owners, fixed: &fixed, powers: &powers };
            let before = problem.slowest(&problem.loads(&owners));
            let best = seconds(optimum(&problem));
            for assignment in [refine(&problem), greedy_refine(&problem, 1.0), greedy_refine(&problem, 1.2)] {
                let after = problem.slowest(&problem.loads(&assignment));
                prop_assert!(after <= before);
                prop_assert!(seconds(after) <= 2.0 * best + 1e-9, "{} against {}", seconds(after), best);
            }
        }

        #[test]
        fn a_tolerance_buys_less_movement(tasks in prop::collection::vec((1u64..40, 0u32..4), 1..40)) {
            let (weights, owners): (Vec<u64>, Vec<u32>) = tasks.into_iter().unzip();
            let problem = Problem { weights: &weights, owners: &owners, fixed: &[0; 4], powers: &[1; 4] };
            let (exact, loose) = (greedy_refine(&problem, 1.0), greedy_refine(&problem, 1.5));
            prop_assert!(problem.moved(&loose) <= problem.moved(&exact));
            let time = |assignment: &Assignment| seconds(problem.slowest(&problem.loads(assignment)));
            // The tolerance counts from the best that is found before less movement is looked for, which may be a little better still.
            let refined = time(&refine(&problem));
            prop_assert!(time(&loose) <= 1.5 * refined + 1e-9 && time(&exact) <= refined);
        }
    }
}
