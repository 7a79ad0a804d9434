//! Which tasks a rank gets: the first of those that are left, as many as the rule says. Tasks that can't run on a rank are never given to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::rules::{Chunks, Measured, Rule, share};
use crate::load::{Costs, NEVER};

/// How tasks are dealt out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    pub rule: Rule,
    /// The share of all tasks that is given before the beginning, in blocks.
    pub fixed: f64,
    /// A rank gets the task that is cheapest on it, not the first.
    pub affinity: bool,
}

/// Tasks that are given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lot {
    /// So many from the first on, each `step` after the one before.
    Span {
        first: u64,
        count: u64,
        step: u64,
    },
    List(Vec<u64>),
    /// No more will come.
    Nothing,
}

impl Lot {
    /// How many there are.
    pub fn count(&self) -> u64 {
        match self {
            Lot::Span { count, .. } => *count,
            Lot::List(tasks) => tasks.len() as u64,
            Lot::Nothing => 0,
        }
    }

    /// Them, in order.
    pub fn tasks(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Lot::Span { first, count, step } => Box::new((0..*count).map(move |i| (first + i * step) as usize)),
            Lot::List(tasks) => Box::new(tasks.iter().map(|task| *task as usize)),
            Lot::Nothing => Box::new(std::iter::empty()),
        }
    }
}

/// What is left.
enum Pool {
    /// All from here to the end, each of which can run anywhere.
    From {
        next: u64,
        end: u64,
    },
    These(BTreeSet<usize>),
}

/// Deals out tasks.
pub struct Dealer {
    costs: Arc<Costs>,
    pool: Pool,
    /// What each rank gets first; taken when it asks for the first time.
    reserved: Vec<Option<Lot>>,
    chunks: Chunks,
    /// For affinity: each rank's tasks from the cheapest on, and how far they have been looked at.
    cheapest: Vec<(Vec<usize>, usize)>,
    dealt: u64,
}

impl Dealer {
    /// All tasks of the matrix, still to be dealt out. `chunks` is the rule at work.
    pub fn new(costs: Arc<Costs>, terms: Terms, chunks: Chunks) -> Dealer {
        let (tasks, ranks) = (costs.tasks() as u64, costs.ranks() as u64);
        let anywhere = costs.rows().all(|row| row.iter().all(|cost| *cost != NEVER));
        let fixed = match terms.rule {
            Rule::Static | Rule::Cyclic => tasks,
            _ => (terms.fixed * tasks as f64) as u64,
        };
        let mut first = 0;
        let mut leftovers = BTreeSet::new();
        let mut reserve = |rank: u64| {
            let count = share(fixed, ranks, rank);
            let (from, step) = if terms.rule == Rule::Cyclic { (rank, ranks) } else { (first, 1) };
            first += count;
            let lot = Lot::Span { first: from, count, step };
            if anywhere {
                return Some(lot).filter(|lot| lot.count() > 0);
            }
            let (can, cannot): (Vec<usize>, Vec<usize>) = lot.tasks().partition(|task| costs.of(*task, rank as usize) != NEVER);
            leftovers.extend(cannot);
            Some(Lot::List(can.into_iter().map(|task| task as u64).collect())).filter(|lot| lot.count() > 0)
        };
        let reserved = (0..ranks).map(&mut reserve).collect();
        let cheapest = if terms.affinity { (0..ranks as usize).map(|rank| (by_cost(&costs, rank), 0)).collect() } else { Vec::new() };
        let pool = match anywhere && !terms.affinity {
            true => Pool::From { next: fixed, end: tasks },
            false => {
                leftovers.extend(fixed as usize..tasks as usize);
                Pool::These(leftovers)
            }
        };
        Dealer { costs, pool, reserved, chunks, cheapest, dealt: 0 }
    }

    /// Tells what was measured on a rank since the last time.
    pub fn learn(&mut self, rank: usize, measured: Measured) {
        self.chunks.learn(rank, measured);
    }

    fn left(&self) -> u64 {
        match &self.pool {
            Pool::From { next, end } => end - next,
            Pool::These(tasks) => tasks.len() as u64,
        }
    }

    /// Tasks that were given so far.
    pub fn dealt(&self) -> u64 {
        self.dealt
    }

    /// What a rank gets that asks now; [`Lot::Nothing`] if there is nothing left that it can run.
    pub fn deal(&mut self, rank: usize) -> Lot {
        if let Some(lot) = self.reserved[rank].take() {
            self.dealt += lot.count();
            return lot;
        }
        let left = self.left();
        let size = if left == 0 { 0 } else { self.chunks.next(rank, left) };
        let costs = &self.costs;
        let lot = match &mut self.pool {
            _ if size == 0 => Lot::Nothing,
            Pool::From { next, .. } => {
                let first = *next;
                *next += size;
                Lot::Span { first, count: size, step: 1 }
            }
            Pool::These(tasks) => {
                let given: Vec<usize> = match self.cheapest.get_mut(rank) {
                    Some((order, at)) => {
                        *at += order[*at..].iter().take_while(|task| !tasks.contains(task)).count();
                        order[*at..].iter().copied().filter(|task| tasks.contains(task)).take(size as usize).collect()
                    }
                    None => tasks.iter().copied().filter(|task| costs.of(*task, rank) != NEVER).take(size as usize).collect(),
                };
                given.iter().for_each(|task| _ = tasks.remove(task));
                if given.is_empty() { Lot::Nothing } else { Lot::List(given.into_iter().map(|task| task as u64).collect()) }
            }
        };
        self.dealt += lot.count();
        lot
    }
}

/// The tasks that a rank can run, from the cheapest on.
fn by_cost(costs: &Costs, rank: usize) -> Vec<usize> {
    let mut tasks: Vec<usize> = (0..costs.tasks()).filter(|task| costs.of(*task, rank) != NEVER).collect();
    tasks.sort_by_key(|task| (costs.of(*task, rank), *task));
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dealer(costs: Costs, rule: Rule, fixed: f64, affinity: bool) -> Dealer {
        let chunks = Chunks::new(rule, costs.tasks() as u64, &vec![1.0; costs.ranks()], None, 1);
        Dealer::new(Arc::new(costs), Terms { rule, fixed, affinity }, chunks)
    }

    #[test]
    fn cyclic_and_static_lots() {
        let costs = || Costs::new(3, vec![1; 24]).unwrap();
        let mut cyclic = dealer(costs(), Rule::Cyclic, 0.0, false);
        assert_eq!(cyclic.deal(1).tasks().collect::<Vec<_>>(), [1, 4, 7]);
        assert_eq!(cyclic.deal(2).tasks().collect::<Vec<_>>(), [2, 5]);
        assert_eq!((cyclic.deal(1), cyclic.deal(0).count()), (Lot::Nothing, 3));
        let mut blocks = dealer(costs(), Rule::Static, 0.0, false);
        assert_eq!(blocks.deal(2).tasks().collect::<Vec<_>>(), [6, 7]);
        let mut half = dealer(costs(), Rule::Ss, 0.5, false);
        assert_eq!(half.deal(0).tasks().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(half.deal(0).tasks().collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn affinity_takes_the_cheapest() {
        let mut dealer = dealer(Costs::new(2, vec![5, 1, 3, 2, 1, 9]).unwrap(), Rule::Ss, 0.0, true);
        let order: Vec<usize> = [0, 1, 0].iter().flat_map(|rank| dealer.deal(*rank).tasks().collect::<Vec<_>>()).collect();
        assert_eq!(order, [2, 0, 1]);
    }

    proptest! {
        #[test]
        fn every_task_is_dealt_once_to_a_rank_that_can_run_it(
            rows in proptest::collection::vec((proptest::collection::vec(any::<bool>(), 4), 0usize..4), 0..60),
            rule in prop_oneof![Just(Rule::Static), Just(Rule::Cyclic), Just(Rule::Gss), Just(Rule::Ss), Just(Rule::Fac2), Just(Rule::Awf)],
            fixed in 0.0..1.0,
            affinity in any::<bool>(),
        ) {
            let costs: Vec<u64> = rows.iter().flat_map(|(can, sure)| (0..4).map(move |rank| if can[rank] || rank == *sure { 7 } else { NEVER })).collect();
            let costs = Costs::new(4, costs).unwrap();
            let mut dealer = dealer(costs.clone(), rule, fixed, affinity);
            let mut seen = vec![0; costs.tasks()];
            let mut open = [true; 4];
            while open.contains(&true) {
                for (rank, is_open) in open.iter_mut().enumerate() {
                    let lot = dealer.deal(rank);
                    *is_open = lot != Lot::Nothing;
                    for task in lot.tasks() {
                        prop_assert!(costs.of(task, rank) != NEVER);
                        seen[task] += 1;
                    }
                }
            }
            prop_assert!(seen.iter().all(|times| *times == 1), "{:?}", seen);
            prop_assert_eq!(dealer.dealt(), costs.tasks() as u64);
        }
    }
}
