//! The two load lists. They answer as the paper's sorted lists do, in constant or short time.

use std::cmp::Ordering;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::topology::NodeId;

/// Level 1, at the host: graphs in flight by region.
#[derive(Debug)]
pub(super) struct Level1 {
    /// Graphs in flight, and processors.
    regions: Vec<(u32, u32)>,
}

impl Level1 {
    /// All regions empty, with their numbers of processors.
    pub fn new(processors: &[u32]) -> Level1 {
        Level1 { regions: processors.iter().map(|processors| (0, *processors)).collect() }
    }

    /// Assigns a graph to the region that then has the fewest for each processor; ties random.
    pub fn assign(&mut self, rng: &mut ChaCha8Rng) -> u32 {
        let working = self.regions.iter().enumerate().filter(|(_, (_, processors))| *processors > 0);
        let assigned = working.map(|(region, (graphs, processors))| (region, u64::from(graphs + 1), u64::from(*processors)));
        let region = least_loaded(assigned, rng).unwrap_or(0);
        self.regions[region].0 += 1;
        region as u32
    }

    /// Returns true if there is a region with processors and without graphs.
    pub fn has_empty(&self) -> bool {
        self.regions.iter().any(|(graphs, processors)| *graphs == 0 && *processors > 0)
    }

    /// A graph of this region was answered.
    pub fn answered(&mut self, region: u32) {
        if let Some((graphs, _)) = self.regions.get_mut(region as usize) {
            *graphs = graphs.saturating_sub(1);
        }
    }
}

/// Level 2, at a median: tasks assigned and not completed by processor. Processors of equal load share a bucket.
#[derive(Debug)]
pub(super) struct Level2 {
    /// In ascending order.
    members: Vec<NodeId>,
    /// Each member's load and its position in the bucket of that load.
    loads: Vec<(usize, usize)>,
    /// Members by load.
    buckets: Vec<Vec<u32>>,
    /// No member has less.
    least: usize,
    /// All of them together.
    tasks: usize,
}

impl Level2 {
    /// No tasks anywhere.
    pub fn new(members: &[NodeId]) -> Level2 {
        let count = members.len();
        Level2 {
            members: members.to_vec(),
            loads: (0..count).map(|at| (0, at)).collect(),
            buckets: vec![(0..count as u32).collect()],
            least: 0,
            tasks: 0,
        }
    }

    fn index(&self, node: NodeId) -> Option<usize> {
        self.members.binary_search(&node).ok()
    }

    #[cfg(test)]
    pub fn load(&self, node: NodeId) -> Option<usize> {
        self.index(node).map(|index| self.loads[index].0)
    }

    /// The load of the least loaded.
    pub fn least(&self) -> usize {
        self.least
    }

    /// Tasks of all members.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Assigns a task to the least loaded processor: the requester if it is one of them, else a random one.
    pub fn assign(&mut self, requester: NodeId, rng: &mut ChaCha8Rng) -> NodeId {
        let least = &self.buckets[self.least];
        let index = match self.index(requester) {
            Some(index) if self.loads[index].0 == self.least => index,
            _ => match least.get(pick(least.len(), rng)) {
                Some(index) => *index as usize,
                // There are no members.
                None => return requester,
            },
        };
        self.shift(index, self.least + 1);
        self.members[index]
    }

    /// A task of this processor has completed.
    pub fn complete(&mut self, node: NodeId) {
        if let Some(index) = self.index(node)
            && let (load @ 1.., _) = self.loads[index]
        {
            self.shift(index, load - 1);
        }
    }

    fn shift(&mut self, index: usize, load: usize) {
        let (from, at) = self.loads[index];
        self.tasks = self.tasks + load - from;
        self.buckets[from].swap_remove(at);
        if let Some(moved) = self.buckets[from].get(at) {
            self.loads[*moved as usize].1 = at;
        }
        if self.buckets.len() <= load {
            self.buckets.resize_with(load + 1, Vec::new);
        }
        self.loads[index] = (load, self.buckets[load].len());
        self.buckets[load].push(index as u32);
        self.least = self.least.min(load);
        while self.buckets[self.least].is_empty() {
            self.least += 1;
        }
    }
}

/// Among the candidates, given with load and number of processors, the one with the least load per processor; ties random.
pub(super) fn least_loaded<T>(given: impl Iterator<Item = (T, u64, u64)>, rng: &mut ChaCha8Rng) -> Option<T> {
    let (mut ties, mut least) = (Vec::new(), (0, 0));
    for (one, load, processors) in given {
        // Any candidate is less than none.
        let order = if ties.is_empty() { Ordering::Less } else { (load * least.1).cmp(&(least.0 * processors)) };
        match order {
            Ordering::Greater => {}
            Ordering::Equal => ties.push(one),
            Ordering::Less => (ties, least) = (vec![one], (load, processors)),
        }
    }
    let at = pick(ties.len(), rng);
    ties.into_iter().nth(at)
}

/// An index below this number, drawn at random where there is a choice.
fn pick(count: usize, rng: &mut ChaCha8Rng) -> usize {
    if count > 1 { rng.random_range(0..count) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn level_one_takes_the_region_with_the_fewest_graphs_a_processor() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut equal = Level1::new(&[16; 4]);
        let mut round: Vec<u32> = (0..4).map(|_| equal.assign(&mut rng)).collect();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2, 3]);
        assert!(!equal.has_empty());
        equal.answered(2);
        assert!(equal.has_empty());
        assert_eq!(equal.assign(&mut rng), 2);
        // Four processors take four graphs for each one of a single processor; where there is none there is no graph.
        let mut unequal = Level1::new(&[4, 0, 1]);
        let assigned: Vec<u32> = (0..10).map(|_| unequal.assign(&mut rng)).collect();
        assert!(!unequal.has_empty());
        assert_eq!([0, 1, 2].map(|region| assigned.iter().filter(|other| **other == region).count()), [8, 0, 2]);
    }

    #[test]
    fn level_two_prefers_the_requester_among_the_least_loaded() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut list = Level2::new(&[2, 3, 5, 7]);
        assert_eq!(list.assign(5, &mut rng), 5);
        // Siblings in sequence: each of the others once, then all are equal and the requester is first.
        let mut places = [0; 4].map(|_| list.assign(5, &mut rng));
        assert_eq!(places[3], 5);
        places[..3].sort_unstable();
        assert_eq!(places[..3], [2, 3, 7]);
        assert_eq!((list.least(), list.tasks()), (1, 5));
        // A completed task leaves before its children are placed.
        list.complete(5);
        list.complete(7);
        assert_eq!(list.assign(7, &mut rng), 7);
        assert_eq!([2, 3, 5, 7, 8].map(|node| list.load(node)), [Some(1), Some(1), Some(1), Some(1), None]);
        // A node that is no member has no tasks that complete, and asks for others.
        list.complete(9);
        let place = list.assign(9, &mut rng);
        assert_eq!((list.load(place), list.tasks()), (Some(2), 5));
    }

    #[test]
    fn the_buckets_answer_as_a_sorted_list_does() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let members: Vec<NodeId> = (0..20).collect();
        let (mut list, mut loads) = (Level2::new(&members), [0usize; 20]);
        for _ in 0..5_000 {
            let node = rng.random_range(0..20u32);
            if rng.random_range(0..2) == 0 && loads[node as usize] > 0 {
                list.complete(node);
                loads[node as usize] -= 1;
            } else {
                let place = list.assign(node, &mut rng);
                let least = loads.iter().min().copied().unwrap();
                assert_eq!(loads[place as usize], least);
                assert!(place == node || loads[node as usize] > least);
                loads[place as usize] += 1;
            }
            assert!((0..20).all(|node| list.load(node) == Some(loads[node as usize])));
            assert_eq!((list.least(), list.tasks()), (*loads.iter().min().unwrap(), loads.iter().sum()));
        }
    }
}
