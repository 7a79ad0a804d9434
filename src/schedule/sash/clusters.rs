//! The hierarchy of schedulers: one rank schedules all others, or a rank of each host the others there, with one rank above them all.
//!
//! ```text
//!   one scheduler            clusters=hosts
//!
//!     rank 5                      rank 5             searches over hosts: which gets which task
//!    / / | \ \                   /      \
//!   workers                 rank 2       rank 4      search over their own workers, among the tasks that they were given
//!                           /   \          |
//!                        workers        workers
//! ```
//!
//! To the one above, a host is a worker on which a task takes one over the sum of the speeds that its workers have for it: what they get done
//! together.

use super::SchedulerRank;
use crate::load::{Cost, Costs, NEVER};
use crate::topology::{HostId, Hosts, RankId};

/// A scheduler's ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub scheduler: RankId,
    /// In ascending order; none if the scheduler is alone and works itself.
    pub workers: Vec<RankId>,
}

/// Clusters, and the rank above them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub top: RankId,
    pub clusters: Vec<Cluster>,
}

impl Layout {
    /// A cluster of each host's ranks, but that of the one above them.
    pub fn by_host(costs: &Costs, hosts: &Hosts, scheduler_rank: SchedulerRank) -> Layout {
        let all: Vec<RankId> = RankId::all(costs.ranks() as u32).collect();
        let top = scheduler_rank.among(costs, &all);
        let cluster = |host| {
            let mut workers: Vec<RankId> = hosts.ranks_on(host).into_iter().filter(|rank| *rank != top).collect();
            (!workers.is_empty()).then(|| {
                let scheduler = scheduler_rank.among(costs, &workers);
                workers.retain(|rank| *rank != scheduler);
                Cluster { scheduler, workers }
            })
        };
        Layout { top, clusters: HostId::all(hosts.count()).filter_map(cluster).collect() }
    }

    /// The cluster that a rank belongs to; none if it is above them.
    pub fn of(&self, rank: RankId) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.scheduler == rank || cluster.workers.contains(&rank))
    }

    /// Costs of tasks as the top rank sees them: a column for each cluster, and one for itself.
    pub fn costs(&self, costs: &Costs) -> Costs {
        let row =
            |row: &[Cost]| self.clusters.iter().map(|cluster| cluster.cost(row)).chain([row[self.top.index()]]).collect::<Vec<Cost>>();
        let columns = self.clusters.len() as u32 + 1;
        Costs::new(columns, costs.rows().flat_map(row).collect()).unwrap_or_else(|| unreachable!("rows are whole"))
    }
}

impl Cluster {
    /// Number of its ranks that execute tasks.
    pub fn width(&self) -> usize {
        self.workers.len().max(1)
    }

    fn cost(&self, row: &[Cost]) -> Cost {
        let mut speed = 0.0;
        for cost in self.workers.iter().map(|worker| row[worker.index()]).filter(|cost| *cost != NEVER) {
            speed += 1.0 / (cost as f64).max(1e-9);
        }
        // A task that no worker can run may run on the scheduler.
        if speed > 0.0 { (1.0 / speed).round() as Cost } else { row[self.scheduler.index()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_a_scheduler_and_one_is_above_them() {
        let hosts = Hosts::from_names(&["a", "a", "b", "b", "b", "c"].map(String::from));
        let costs =
            Costs::new(6, vec![4, 9, 4, 4, 9, 7, NEVER, 5, 6, 3, 8, 7, NEVER, 2, NEVER, NEVER, 1, NEVER, 0, 5, 5, 5, 5, 5]).unwrap();
        let layout = Layout::by_host(&costs, &hosts, SchedulerRank::Last);
        let cluster = |scheduler, workers: &[u32]| Cluster {
            scheduler: RankId::new(scheduler),
            workers: workers.iter().copied().map(RankId::new).collect(),
        };
        assert_eq!(layout, Layout { top: RankId::new(5), clusters: vec![cluster(1, &[0]), cluster(4, &[2, 3])] });
        assert_eq!((layout.of(RankId::new(3)).unwrap().scheduler, layout.of(RankId::new(5))), (RankId::new(4), None));
        let seen = layout.costs(&costs);
        assert_eq!(seen.row(0), [4, 2, 7]);
        assert_eq!(seen.row(1), [5, 2, 7], "rank 0 can't run it, so its scheduler would");
        assert_eq!((seen.row(2), seen.row(3)), (&[2, 1, NEVER][..], &[0, 3, 5][..]));
        let first = Layout::by_host(&costs, &hosts, SchedulerRank::First);
        assert_eq!(first, Layout { top: RankId::FIRST, clusters: vec![cluster(1, &[]), cluster(2, &[3, 4]), cluster(5, &[])] });
    }
}
