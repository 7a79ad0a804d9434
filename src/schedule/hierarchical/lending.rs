//! Regions that lend each other work: what the medians tell each other, and which region is given the next child.
//!
//! Medians send each other the numbers of tasks in their regions, whenever that number has doubled or halved; a median that has lent to a region
//! which never had enough tasks to report receives a message when these are done. A median whose own processors all have work gives children, when
//! it places them, to regions with fewer tasks per processor than any of its own has.
//!
//! ```text
//!   median --Tasks 1--> other medians
//!      ^                     | where children are placed, and each processor has at least 1 task
//!      +--- child <--- processor
//! ```
//!
//! Telling at factors of two is receiver-initiated diffusion's rule for announcements (Willebeek-LeMair and Reeves 1993, with u = 0.5).

use rand::rngs::ChaCha8Rng;

use super::lists::least_loaded;
use crate::topology::NodeId;

/// Another region, as far as this median knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Other {
    median: NodeId,
    processors: u64,
    /// Number of tasks by its median's last message; 0 at first.
    announced: u64,
    /// Given from here since then.
    lent: u64,
}

impl Other {
    fn tasks(&self) -> u64 {
        self.announced + self.lent
    }
}

/// A median's knowledge of the other regions, and theirs of its own.
#[derive(Debug)]
pub(super) struct Lending {
    is_open: bool,
    processors: u64,
    /// Number of tasks of this region in the last message to the others.
    announced: u64,
    /// Tasks of this region, when it was last asked for news.
    before: u64,
    /// Medians that have lent here since that message.
    lenders: Vec<NodeId>,
    /// The other regions with processors.
    others: Vec<Other>,
}

/// Medians to which the number of tasks is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct News {
    pub to: Vec<NodeId>,
    pub tasks: u32,
}

impl Lending {
    /// All regions by median and number of processors, closed and without tasks at first.
    pub fn new(me: NodeId, regions: impl Iterator<Item = (NodeId, usize)>) -> Lending {
        let mut lending = Lending { is_open: false, processors: 0, announced: 0, before: 0, lenders: Vec::new(), others: Vec::new() };
        for (median, processors) in regions {
            let processors = processors as u64;
            if median == me {
                lending.processors = processors;
            } else if processors > 0 {
                lending.others.push(Other { median, processors, announced: 0, lent: 0 });
            }
        }
        lending
    }

    /// Lends tasks from now on.
    pub fn open(&mut self) {
        self.is_open = true;
    }

    fn other(&mut self, median: NodeId) -> Option<&mut Other> {
        self.others.iter_mut().find(|other| other.median == median)
    }

    /// A median has lent a task to this region.
    pub fn borrowed(&mut self, lender: NodeId) {
        if !self.lenders.contains(&lender) {
            self.lenders.push(lender);
        }
    }

    /// Returns the announcements to send, if any, now that this region has `tasks` tasks.
    pub fn news(&mut self, tasks: usize) -> Option<News> {
        let tasks = tasks as u64;
        let has_fallen = tasks < std::mem::replace(&mut self.before, tasks);
        if !self.is_open {
            return None;
        }
        // With less than one task for two processors it does not matter how few there are.
        let tasks = if 2 * tasks < self.processors { 0 } else { tasks };
        let is_news = match self.announced {
            0 => tasks > 0 && tasks >= self.processors,
            announced => tasks >= 2 * announced || 2 * tasks <= announced,
        };
        if is_news {
            self.announced = tasks;
            self.lenders.clear();
            return Some(News { to: self.others.iter().map(|other| other.median).collect(), tasks: tasks as u32 });
        }
        // Loans that came singly and are done were never announced: to their lenders they would be here for ever.
        let is_idle_again = has_fallen && tasks == 0 && self.announced == 0 && !self.lenders.is_empty();
        is_idle_again.then(|| News { to: std::mem::take(&mut self.lenders), tasks: 0 })
    }

    /// Notes the number of tasks in a region, as its median reports.
    pub fn heard(&mut self, median: NodeId, tasks: u32) {
        if let Some(other) = self.other(median) {
            (other.announced, other.lent) = (tasks.into(), 0);
        }
    }

    /// The median that receives the next child, if any, when each processor of this region has at least `least` tasks: that of the least loaded
    /// region among those that have fewer and have not yet received from here their deficit divided by the number of regions that may give; ties
    /// random.
    pub fn next_loan(&mut self, least: usize, rng: &mut ChaCha8Rng) -> Option<NodeId> {
        if !self.is_open {
            return None;
        }
        let (least, givers) = (least as u64, self.others.len() as u64);
        let in_want = self.others.iter_mut().filter(|other| {
            let lacking = (least * other.processors).saturating_sub(other.announced);
            other.lent < lacking.div_ceil(givers)
        });
        let loads = in_want.map(|other| {
            let (tasks, processors) = (other.tasks(), other.processors);
            (other, tasks, processors)
        });
        let other = least_loaded(loads, rng)?;
        other.lent += 1;
        Some(other.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// The median of node 0, with four processors, and those of other regions, open.
    fn lending(others: &[(NodeId, usize)]) -> Lending {
        let mut lending = Lending::new(0, others.iter().copied().chain([(0, 4)]));
        lending.open();
        lending
    }

    fn loans(lending: &mut Lending, least: usize) -> Vec<NodeId> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        std::iter::from_fn(|| lending.next_loan(least, &mut rng)).collect()
    }

    #[test]
    fn a_number_of_tasks_is_told_when_it_has_doubled_or_halved() {
        let mut lending = lending(&[(7, 4), (9, 4)]);
        let announced: Vec<_> = [3, 4, 5, 7, 8, 15, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4].map(|tasks| lending.news(tasks)).into();
        let news: Vec<u32> = announced.iter().flatten().map(|news| news.tasks).collect();
        // 15 is less than twice 8; below half of the processors there is nothing, and then it takes a task for each until there is something.
        assert_eq!(news, [4, 8, 4, 2, 0, 4], "{announced:?}");
        assert!(announced.iter().flatten().all(|news| news.to == [7, 9]), "{announced:?}");
    }

    #[test]
    fn lenders_are_told_of_loans_that_are_done_where_they_were_too_few_to_be_told() {
        let mut lending = lending(&[(7, 4), (9, 4)]);
        // One task of three was lent, and then one of one.
        assert_eq!([1, 2].map(|tasks| lending.news(tasks)), [None, None]);
        lending.borrowed(9);
        assert_eq!([3, 2].map(|tasks| lending.news(tasks)), [None, None]);
        assert_eq!(lending.news(1), Some(News { to: vec![9], tasks: 0 }));
        assert_eq!(lending.news(0), None);
        lending.borrowed(7);
        lending.borrowed(7);
        assert_eq!(lending.news(1), None, "it has only just come");
        assert_eq!(lending.news(0), Some(News { to: vec![7], tasks: 0 }));
        // With enough tasks all medians are informed, and also when the tasks end.
        lending.borrowed(7);
        assert_eq!([4, 2, 1, 0].map(|tasks| lending.news(tasks).map(|news| news.tasks)), [Some(4), Some(2), Some(0), None]);
    }

    #[test]
    fn nothing_is_told_nor_lent_before_regions_are_open_and_what_is_heard_before_is_kept() {
        let mut lending = Lending::new(0, [(0, 4), (5, 0), (7, 4)].into_iter());
        lending.heard(7, 1);
        assert_eq!(lending.news(8), None);
        assert!(loans(&mut lending, 8).is_empty());
        lending.open();
        assert_eq!(lending.news(8), Some(News { to: vec![7], tasks: 8 }), "a region without processors has no part in it");
        assert_eq!(loans(&mut lending, 1), [7, 7, 7]);
    }

    #[test]
    fn a_region_is_filled_up_to_the_load_here_until_it_tells_something_new() {
        let mut lending = lending(&[(7, 4)]);
        assert!(loans(&mut lending, 0).is_empty());
        assert_eq!(loans(&mut lending, 1), [7, 7, 7, 7]);
        assert!(loans(&mut lending, 1).is_empty());
        assert_eq!(loans(&mut lending, 5).len(), 16, "5 on each of 4 processors are 20");
        lending.heard(7, 20);
        assert!(loans(&mut lending, 5).is_empty());
        lending.heard(7, 19);
        assert_eq!(loans(&mut lending, 5), [7]);
    }

    #[test]
    fn several_that_give_share_and_the_least_loaded_is_served_first() {
        let several = || lending(&[(3, 4), (5, 8), (7, 4)]);
        let mut lending = several();
        lending.heard(5, 5);
        lending.heard(7, 4);
        // A third of what each lacks, rounded up: of 8, 11 and 4. For each processor 5 has 1 task after three loans, as 7 has.
        let given = loans(&mut lending, 2);
        assert_eq!(given[..3], [3, 3, 3]);
        assert_eq!([3, 5, 7].map(|median| given.iter().filter(|given| **given == median).count()), [3, 4, 2], "{given:?}");
        // Of equals none is always the first.
        let mut firsts: Vec<NodeId> = (0..20).filter_map(|seed| several().next_loan(1, &mut ChaCha8Rng::seed_from_u64(seed))).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts, [3, 5, 7]);
    }
}
