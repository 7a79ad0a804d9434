//! Distribution of tasks: a rank gets the first remaining tasks, in the number that the rule sets. Tasks that can't run on a rank are never
//! given to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::rules::{Chunks, Measured, Rule, share};
use crate::load::{Cost, Costs, NEVER};
use crate::schedule::independent::{Chunk, chunk};

/// Options of the distribution of tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The rule that sets the number of tasks.
    pub rule: Rule,
    /// The share of all tasks that is given before the beginning, in blocks.
    pub fixed: f64,
    /// A rank gets the task that is cheapest on it, not the first.
    pub affinity: bool,
}

/// The answer to a request for tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deal {
    /// These tasks.
    Chunk(Chunk),
    /// Nothing now; more comes, at this time if it is known.
    Later(Option<Cost>),
    /// No more will come.
    Nothing,
}

/// Tasks that have arrived and are not dealt yet.
enum Pool {
    /// All from here on, each of which can run anywhere.
    From(u64),
    These(BTreeSet<usize>),
    /// Each of which can run anywhere.
    Lots(Vec<Chunk>),
}

/// Order in which a rank gets the tasks that it can run.
enum Preference {
    First,
    /// The cheapest: each rank's tasks in this order, and the number of them that have been examined.
    Cheapest(Vec<(Vec<usize>, usize)>),
    /// As `Cheapest`, where there are few tasks at a time, so that all are examined.
    CheapestOfFew,
}

/// Deals out tasks.
pub struct Dealer {
    costs: Arc<Costs>,
    /// The columns of the ranks that are dealt to, by which they are known here.
    columns: Vec<usize>,
    pool: Pool,
    order: Preference,
    /// Whether more tasks will be brought.
    is_supplied: bool,
    /// Arrival times of the tasks, in order, empty if all are there; and the number of tasks that have arrived.
    arrivals: Vec<Cost>,
    arrived: u64,
    /// First chunk of each rank; taken when it asks for the first time.
    reserved: Vec<Option<Chunk>>,
    chunks: Chunks,
    dealt: u64,
}

impl Dealer {
    /// All tasks of the matrix, still to be dealt out. `chunks` is the rule at work. Tasks that arrive over time are not to be dealt out before
    /// the beginning.
    pub fn new(costs: Arc<Costs>, arrivals: &[Cost], terms: Terms, chunks: Chunks) -> Dealer {
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
            let chunk = Chunk::Span { first: from, count, step };
            if anywhere {
                return Some(chunk).filter(|chunk| chunk.count() > 0);
            }
            let (can, cannot): (Vec<usize>, Vec<usize>) =
                chunk.tasks().into_iter().partition(|task| costs.of(*task, rank as usize) != NEVER);
            leftovers.extend(cannot);
            Some(Chunk::list(can)).filter(|chunk| chunk.count() > 0)
        };
        let reserved = (0..ranks).map(&mut reserve).collect();
        let order = match terms.affinity {
            true => Preference::Cheapest((0..ranks as usize).map(|rank| (by_cost(&costs, rank), 0)).collect()),
            false => Preference::First,
        };
        let arrived = if arrivals.is_empty() { tasks } else { fixed };
        let pool = match anywhere && !terms.affinity {
            true => Pool::From(fixed),
            false => {
                leftovers.extend(fixed as usize..arrived as usize);
                Pool::These(leftovers)
            }
        };
        let columns = (0..ranks as usize).collect();
        Dealer { costs, columns, pool, order, is_supplied: false, arrivals: arrivals.to_vec(), arrived, reserved, chunks, dealt: 0 }
    }

    /// A dealer that begins without tasks for ranks of these columns; tasks are [brought](Dealer::supply). The rule starts anew each time,
    /// with the tasks that are there.
    pub fn supplied(costs: Arc<Costs>, columns: Vec<usize>, affinity: bool, chunks: Chunks) -> Dealer {
        let anywhere = costs.rows().all(|row| columns.iter().all(|column| row[*column] != NEVER));
        let pool = if anywhere && !affinity { Pool::Lots(Vec::new()) } else { Pool::These(BTreeSet::new()) };
        let order = if affinity { Preference::CheapestOfFew } else { Preference::First };
        let (arrived, reserved) = (costs.tasks() as u64, columns.iter().map(|_| None).collect());
        Dealer { costs, columns, pool, order, is_supplied: true, arrivals: Vec::new(), arrived, reserved, chunks, dealt: 0 }
    }

    /// Takes in tasks; whether more are to be brought.
    pub fn supply(&mut self, chunks: Vec<Chunk>, more: bool) {
        self.is_supplied = more;
        match &mut self.pool {
            Pool::Lots(pool) => chunks.into_iter().for_each(|chunk| chunk::push(pool, chunk)),
            Pool::These(tasks) => chunks.iter().for_each(|chunk| chunk.for_each(|task| _ = tasks.insert(task))),
            Pool::From(_) => {}
        }
        self.chunks.restart(self.left());
    }

    /// Tells what was measured on a rank since the last time.
    pub fn learn(&mut self, rank: usize, measured: Measured) {
        self.chunks.learn(rank, measured);
    }

    /// Lets in what has arrived by now. When the next task comes, if there is one.
    fn arrive(&mut self, now: Cost) -> Option<Cost> {
        while self.arrivals.get(self.arrived as usize).is_some_and(|at| *at <= now) {
            if let Pool::These(tasks) = &mut self.pool {
                tasks.insert(self.arrived as usize);
            }
            self.arrived += 1;
        }
        self.arrivals.get(self.arrived as usize).copied()
    }

    /// Number of tasks that are there and not dealt yet.
    pub fn left(&self) -> u64 {
        match &self.pool {
            Pool::From(next) => self.arrived - next,
            Pool::These(tasks) => tasks.len() as u64,
            Pool::Lots(chunks) => chunks.iter().map(Chunk::count).sum(),
        }
    }

    /// Tasks that were given so far.
    pub fn dealt(&self) -> u64 {
        self.dealt
    }

    /// Answer to a request of this rank at this time.
    pub fn deal(&mut self, rank: usize, now: Cost) -> Deal {
        let chunk = match self.reserved[rank].take() {
            Some(chunk) => Some(chunk),
            None => self.choose(rank, now),
        };
        match chunk {
            Some(chunk) => {
                self.dealt += chunk.count();
                Deal::Chunk(chunk)
            }
            None if self.is_supplied => Deal::Later(None),
            None => self.arrive(now).map_or(Deal::Nothing, |at| Deal::Later(Some(at))),
        }
    }

    fn choose(&mut self, rank: usize, now: Cost) -> Option<Chunk> {
        self.arrive(now);
        let left = self.left();
        if left == 0 {
            return None;
        }
        let size = self.chunks.next(rank, left);
        let (costs, column) = (&self.costs, self.columns[rank]);
        match &mut self.pool {
            Pool::From(next) => {
                let first = *next;
                *next += size;
                Some(Chunk::Span { first, count: size, step: 1 })
            }
            Pool::These(tasks) => {
                let can = |task: &usize| costs.of(*task, column) != NEVER;
                let given: Vec<usize> = match &mut self.order {
                    Preference::Cheapest(orders) => {
                        let (order, at) = &mut orders[rank];
                        // Tasks that have not arrived yet must be examined again.
                        let arrived = self.arrived as usize;
                        *at += order[*at..].iter().take_while(|task| !tasks.contains(task) && **task < arrived).count();
                        order[*at..].iter().copied().filter(|task| tasks.contains(task)).take(size as usize).collect()
                    }
                    Preference::CheapestOfFew => {
                        let mut all: Vec<usize> = tasks.iter().copied().filter(can).collect();
                        all.sort_by_key(|task| (costs.of(*task, column), *task));
                        all.truncate(size as usize);
                        all
                    }
                    Preference::First => tasks.iter().copied().filter(can).take(size as usize).collect(),
                };
                given.iter().for_each(|task| _ = tasks.remove(task));
                Some(Chunk::list(given)).filter(|chunk| chunk.count() > 0)
            }
            Pool::Lots(chunks) => {
                let given = chunks.first_mut()?.take_first(size);
                chunks.retain(|chunk| chunk.count() > 0);
                Some(given)
            }
        }
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
        Dealer::new(Arc::new(costs), &[], Terms { rule, fixed, affinity }, chunks)
    }

    /// Tasks that a rank gets when all have arrived.
    fn tasks(dealer: &mut Dealer, rank: usize) -> Vec<usize> {
        match dealer.deal(rank, Cost::MAX) {
            Deal::Chunk(chunk) => chunk.tasks(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn cyclic_and_static_lots() {
        let costs = || Costs::new(3, vec![1; 24]).unwrap();
        let mut cyclic = dealer(costs(), Rule::Cyclic, 0.0, false);
        assert_eq!(tasks(&mut cyclic, 1), [1, 4, 7]);
        assert_eq!(tasks(&mut cyclic, 2), [2, 5]);
        assert_eq!((cyclic.deal(1, 0), tasks(&mut cyclic, 0).len()), (Deal::Nothing, 3));
        let mut blocks = dealer(costs(), Rule::Static, 0.0, false);
        assert_eq!(tasks(&mut blocks, 2), [6, 7]);
        let mut half = dealer(costs(), Rule::Ss, 0.5, false);
        assert_eq!(tasks(&mut half, 0), [0, 1]);
        assert_eq!(tasks(&mut half, 0), [4]);
    }

    #[test]
    fn affinity_takes_the_cheapest() {
        let mut dealer = dealer(Costs::new(2, vec![5, 1, 3, 2, 1, 9]).unwrap(), Rule::Ss, 0.0, true);
        let order: Vec<usize> = [0, 1, 0].iter().flat_map(|rank| tasks(&mut dealer, *rank)).collect();
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn only_what_has_arrived_is_dealt() {
        for affinity in [false, true] {
            let costs = Costs::new(2, vec![9, 9, 8, 8, 7, 7]).unwrap();
            let chunks = Chunks::new(Rule::Single, 3, &[1.0; 2], None, 1);
            let terms = Terms { rule: Rule::Single, fixed: 0.0, affinity };
            let mut dealer = Dealer::new(Arc::new(costs), &[0, 5, 20], terms, chunks);
            assert_eq!(
                dealer.deal(0, 4),
                Deal::Chunk(if affinity { Chunk::list([0]) } else { Chunk::Span { first: 0, count: 1, step: 1 } })
            );
            assert_eq!(dealer.deal(1, 4), Deal::Later(Some(5)));
            let Deal::Chunk(both) = dealer.deal(1, 20) else { panic!("two are there") };
            assert_eq!(both.tasks(), if affinity { [2, 1] } else { [1, 2] });
            assert_eq!(dealer.deal(1, 20), Deal::Nothing);
        }
    }

    #[test]
    fn what_is_brought_is_dealt_by_the_rule_anew() {
        let chunks = || Chunks::new(Rule::Gss, 0, &[1.0; 2], None, 1);
        let mut dealer = Dealer::supplied(Arc::new(Costs::new(4, vec![1; 160]).unwrap()), vec![1, 3], false, chunks());
        assert_eq!(dealer.deal(0, 0), Deal::Later(None));
        dealer.supply(vec![Chunk::Span { first: 8, count: 10, step: 1 }], true);
        assert_eq!((tasks(&mut dealer, 1), dealer.left()), ((8..13).collect(), 5));
        dealer.supply(vec![Chunk::Span { first: 30, count: 3, step: 1 }], false);
        assert_eq!((tasks(&mut dealer, 0), tasks(&mut dealer, 0), tasks(&mut dealer, 1)), (vec![13, 14, 15, 16], vec![17], vec![30, 31]));
        assert_eq!((tasks(&mut dealer, 0), dealer.deal(0, 0)), (vec![32], Deal::Nothing));

        let costs = Costs::new(3, vec![1, 5, 9, 1, NEVER, 2, 1, 4, 3]).unwrap();
        let mut picky = Dealer::supplied(Arc::new(costs), vec![1, 2], true, Chunks::new(Rule::Ss, 0, &[1.0; 2], None, 1));
        picky.supply(vec![Chunk::list([0, 1, 2])], false);
        assert_eq!((tasks(&mut picky, 0), tasks(&mut picky, 0), picky.deal(0, 0)), (vec![2], vec![0], Deal::Nothing));
        assert_eq!(tasks(&mut picky, 1), [1]);
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
                    let chunk = tasks(&mut dealer, rank);
                    *is_open = !chunk.is_empty();
                    for task in chunk {
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
