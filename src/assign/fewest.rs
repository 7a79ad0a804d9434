//! Little movement within a time limit: a local search from the current assignment to one in which no rank exceeds the limit.
//!
//! A step exchanges up to three tasks of one rank for up to three of another one (all such pairs of sets, as long as a rank has few tasks, and
//! smaller sets otherwise). Of all steps of all pairs of ranks the one is taken that lowers `moved + price * excess` most: the work away from its
//! owners, and what ranks have above the limit. Where nothing lowers that and there is excess, its price rises fourfold. Then, some dozens of times,
//! a few ranks get all of their own tasks back and give all others away, and the search goes on from there; what it finds is kept if it moves no
//! more (ruin and recreate: Schrimpf and others 2000).
//!
//! Minimising movement under a limit contains bin packing, so that this is a heuristic. On LBAF's loads it ends within a tenth of the lower
//! bounds that an integer program proves (`tests/it/rivals.rs`). All numbers are whole and the stream is seeded: all ranks find the same.

use std::collections::BTreeMap;
use std::rc::Rc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::{Assignment, Problem};
use crate::load::RankTime;

/// Rounds after which a search ends that has found nothing.
const VAIN_ROUNDS: usize = 3;

/// Most tasks that one rank gives in a step.
const TOGETHER: usize = 3;

/// Most sets of tasks of a rank that are looked at for a step.
const SETS: usize = 48;

/// The first price of a unit of excess, in units of work moved, and the last one.
const PRICES: (i128, i128) = (8, 1 << 13);

/// Most rounds of ruin, and tasks for each round.
const ROUNDS: (usize, usize) = (40, 8);

/// Most ranks that are ruined in a round.
const RUINED: usize = 4;

/// Number of examined pairs of sets after which the search ends with its best result, where planning may take its time.
pub const LOOKS: u64 = 1 << 22;

/// An assignment in which no rank takes longer than `limit`, with little work moved; `None` if the search finds none.
///
/// The effort is bounded by a constant ([`LOOKS`]), which is enough for some hundred ranks.
pub fn fewest(problem: &Problem<'_>, limit: RankTime) -> Option<Assignment> {
    fewest_within(problem, limit, LOOKS)
}

/// As [`fewest`], with `looks` as the bound on the effort.
pub fn fewest_within(problem: &Problem<'_>, limit: RankTime, looks: u64) -> Option<Assignment> {
    let mut search = Search::new(problem, limit, looks);
    // A lower bound on the movement is the excess: with this the search ends.
    let least = search.excess();
    let mut stream = ChaCha8Rng::seed_from_u64(0);
    let mut best: Option<(u64, Assignment)> = None;
    for round in 0..=ROUNDS.0.min(problem.weights.len() / ROUNDS.1) {
        let ended = search.descend();
        let moved = problem.moved(&search.assignment);
        if search.excess() == 0 && best.as_ref().is_none_or(|(fewest, _)| moved <= *fewest) {
            best = Some((moved, search.assignment.clone()));
        }
        let is_least = best.as_ref().is_some_and(|(moved, _)| u128::from(*moved) <= least);
        if !ended || is_least || best.is_none() && round == VAIN_ROUNDS {
            break;
        }
        if let Some((_, assignment)) = &best {
            search.restart(assignment);
        }
        let ranks = problem.ranks();
        for _ in 0..(ranks / 8).clamp(1, RUINED) {
            search.ruin(stream.random_range(0..ranks as u32));
        }
    }
    best.map(|(_, assignment)| assignment)
}

/// Tasks that go from the first rank to the second, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    /// Change of the minimised quantity; negative if it becomes lower.
    change: i128,
    there: Set,
    back: Set,
}

/// Some tasks of a rank. Unused places are `usize::MAX`.
type Set = [usize; TOGETHER];

const NO_TASKS: Set = [usize::MAX; TOGETHER];

/// A set with its weight, and how much more work is away from its owners when it goes to the other rank.
#[derive(Clone, Copy)]
struct Gift {
    farther: i128,
    weight: i128,
    set: Set,
    /// Index from which tasks may be added.
    next: usize,
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    /// Most work of each rank.
    caps: Vec<i128>,
    assignment: Assignment,
    loads: Vec<i128>,
    /// Tasks with weight of each rank.
    held: Vec<Vec<usize>>,
    price: i128,
    /// The best step of each pair of ranks that has one.
    steps: BTreeMap<(usize, usize), Step>,
    looks: u64,
    /// Tasks that each rank can give to ranks of which it holds none; `None` until it has been computed.
    gifts: Vec<Option<Rc<[Gift]>>>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, limit: RankTime, looks: u64) -> Search<'a> {
        let caps = problem.powers.iter().map(|power| i128::from(limit.most_work(*power))).collect();
        let mut search = Search {
            problem,
            caps,
            assignment: Vec::new(),
            loads: Vec::new(),
            held: Vec::new(),
            price: PRICES.0,
            steps: BTreeMap::new(),
            looks,
            gifts: Vec::new(),
        };
        search.restart(problem.owners);
        search
    }

    fn restart(&mut self, assignment: &[u32]) {
        self.assignment = assignment.to_vec();
        self.loads = self.problem.loads(assignment).into_iter().map(i128::from).collect();
        self.held = vec![Vec::new(); self.problem.ranks()];
        self.gifts = vec![None; self.problem.ranks()];
        for (task, rank) in assignment.iter().enumerate().filter(|(task, _)| self.problem.weights[*task] > 0) {
            self.held[*rank as usize].push(task);
        }
    }

    fn excess(&self) -> u128 {
        (0..self.caps.len()).map(|rank| self.above(rank, 0).unsigned_abs()).sum()
    }

    /// The amount by which a rank exceeds its cap with `more` in addition.
    fn above(&self, rank: usize, more: i128) -> i128 {
        (self.loads[rank] + more - self.caps[rank]).max(0)
    }

    /// Everything that left this rank returns to it, and what came to it goes back.
    fn ruin(&mut self, rank: u32) {
        for task in 0..self.assignment.len() {
            let owner = self.problem.owners[task];
            if self.assignment[task] != owner && (owner == rank || self.assignment[task] == rank) {
                self.carry(task, owner as usize);
            }
        }
    }

    fn carry(&mut self, task: usize, to: usize) {
        let (from, weight) = (self.assignment[task] as usize, self.problem.weights[task]);
        self.assignment[task] = to as u32;
        if weight > 0 {
            self.held[from].retain(|held| *held != task);
            self.held[to].push(task);
            self.loads[from] -= i128::from(weight);
            self.loads[to] += i128::from(weight);
            (self.gifts[from], self.gifts[to]) = (None, None);
        }
    }

    /// Steps until none helps and nothing is above the limit, or the price is at its highest; `false` if there were too many looks.
    fn descend(&mut self) -> bool {
        self.price = PRICES.0;
        let ranks = self.caps.len();
        loop {
            self.steps.clear();
            for low in 0..ranks {
                for high in low + 1..ranks {
                    self.look(low, high);
                }
            }
            while let Some((pair, step)) = self.steps.iter().min_by_key(|(_, step)| **step).map(|(pair, step)| (*pair, *step)) {
                step.there.into_iter().take_while(|task| *task != usize::MAX).for_each(|task| self.carry(task, pair.1));
                step.back.into_iter().take_while(|task| *task != usize::MAX).for_each(|task| self.carry(task, pair.0));
                self.steps.remove(&pair);
                for rank in [pair.0, pair.1] {
                    for other in (0..ranks).filter(|other| *other != rank && !(rank == pair.1 && *other == pair.0)) {
                        self.look(rank.min(other), rank.max(other));
                    }
                }
                if self.looks == 0 {
                    return false;
                }
            }
            if self.looks == 0 {
                return false;
            }
            if self.excess() == 0 || self.price >= PRICES.1 {
                return true;
            }
            self.price *= 4;
        }
    }

    /// Notes the best step of a pair of ranks.
    fn look(&mut self, low: usize, high: usize) {
        self.steps.remove(&(low, high));
        let now = self.above(low, 0) + self.above(high, 0);
        // The excess of both over both caps remains, whatever they exchange.
        let both = self.loads[low] + self.loads[high] - self.caps[low] - self.caps[high];
        let hope = self.price * (now - both.max(0));
        let is_away = |rank: usize| self.held[rank].iter().any(|task| self.problem.owners[*task] as usize != rank);
        if self.looks == 0 || hope == 0 && !is_away(low) && !is_away(high) {
            return;
        }
        let (there, back) = (self.given(low, high), self.given(high, low));
        let nearest = back.first().map_or(0, |gift| gift.farther);
        let mut best: Option<Step> = None;
        let mut looks = 1;
        for gift in there.iter() {
            let least = best.map_or(0, |best| best.change);
            if gift.farther + nearest - hope >= least {
                break;
            }
            for other in back.iter() {
                let (least, farther) = (best.map_or(0, |best| best.change), gift.farther + other.farther);
                if farther - hope >= least {
                    break;
                }
                looks += 1;
                let passes = gift.weight - other.weight;
                let change = farther + self.price * (self.above(low, -passes) + self.above(high, passes) - now);
                if change < least {
                    best = Some(Step { change, there: gift.set, back: other.set });
                }
            }
        }
        self.looks = self.looks.saturating_sub(looks);
        if let Some(best) = best {
            self.steps.insert((low, high), best);
        }
    }

    /// The sets of tasks that a rank can give to another one, those first that bring most work to its owners.
    fn given(&mut self, from: usize, to: usize) -> Rc<[Gift]> {
        if self.held[from].iter().any(|task| self.problem.owners[*task] as usize == to) {
            return self.listed(from, to);
        }
        let listed = self.gifts[from].take().unwrap_or_else(|| self.listed(from, to));
        self.gifts[from] = Some(listed.clone());
        listed
    }

    fn listed(&mut self, from: usize, to: usize) -> Rc<[Gift]> {
        let held = &self.held[from];
        let mut gifts = vec![Gift { farther: 0, weight: 0, set: NO_TASKS, next: 0 }];
        let mut begin = 0;
        for size in 0..together(held.len()) {
            let end = gifts.len();
            for at in begin..end {
                let gift = gifts[at];
                for (place, task) in held.iter().enumerate().skip(gift.next) {
                    let (weight, owner) = (i128::from(self.problem.weights[*task]), self.problem.owners[*task] as usize);
                    let farther = if owner == from {
                        weight
                    } else if owner == to {
                        -weight
                    } else {
                        0
                    };
                    let mut set = gift.set;
                    set[size] = *task;
                    gifts.push(Gift { farther: gift.farther + farther, weight: gift.weight + weight, set, next: place + 1 });
                }
            }
            begin = end;
        }
        gifts.sort_unstable_by_key(|gift| (gift.farther, gift.set));
        self.looks = self.looks.saturating_sub(gifts.len() as u64);
        gifts.into()
    }
}

/// Number of tasks in the largest sets, for a rank with `tasks` tasks.
fn together(tasks: usize) -> usize {
    let (mut sets, mut of_size) = (1, 1);
    for size in 0..TOGETHER {
        of_size = of_size * tasks.saturating_sub(size) / (size + 1);
        sets += of_size;
        if sets > SETS {
            return size.max(1);
        }
    }
    TOGETHER
}

#[cfg(test)]
mod tests {
    use super::super::testing::optimum;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_ranks_exchange_larger_sets() {
        assert_eq!([0, 5, 6, 8, 9, 10, 1000].map(together), [3, 3, 3, 2, 2, 1, 1]);
    }

    #[test]
    fn two_tasks_for_one() {
        // 6 + 3 and 4 + 1: nothing fits but 3 for 1.
        let problem = Problem { weights: &[6, 3, 4, 1], owners: &[0, 0, 1, 1], fixed: &[0, 0], powers: &[1, 1] };
        let found = fewest(&problem, RankTime { work: 7, power: 1 }).unwrap();
        assert_eq!((found.as_slice(), problem.moved(&found)), ([0, 1, 1, 0].as_slice(), 4));
        assert_eq!(fewest(&problem, RankTime { work: 6, power: 1 }), None);
    }

    #[test]
    fn a_rank_without_power_is_emptied() {
        let problem = Problem { weights: &[6, 3, 0], owners: &[0, 0, 0], fixed: &[0, 0, 0], powers: &[0, 1, 2] };
        assert_eq!(fewest(&problem, RankTime { work: 3, power: 1 }), Some(vec![2, 1, 0]));
    }

    /// The least work moved within a limit, by trying all.
    fn least(problem: &Problem<'_>, limit: RankTime) -> u64 {
        let ranks = problem.ranks() as u64;
        let all = ranks.pow(problem.weights.len() as u32);
        let assignment = |number: u64| -> Assignment {
            (0..problem.weights.len() as u32).map(|task| (number / ranks.pow(task) % ranks) as u32).collect()
        };
        let good = (0..all).map(assignment).filter(|assignment| problem.slowest(&problem.loads(assignment)) <= limit);
        good.map(|assignment| problem.moved(&assignment)).min().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn it_keeps_the_limit_and_moves_little(
            tasks in prop::collection::vec((1u64..40, 0u32..3), 1..7),
            fixed in prop::collection::vec(0u64..20, 3),
            powers in prop::collection::vec(1u64..4, 3),
        ) {
            let (weights, owners): (Vec<u64>, Vec<u32>) = tasks.into_iter().unzip();
            let problem = Problem { weights: &weights, owners: &owners, fixed: &fixed, powers: &powers };
            let best = optimum(&problem);
            let limit = RankTime { work: best.work + best.work / 4, power: best.power };
            if let Some(found) = fewest(&problem, limit) {
                prop_assert!(problem.slowest(&problem.loads(&found)) <= limit);
                prop_assert!(problem.moved(&found) <= 2 * least(&problem, limit));
            }
        }
    }
}
