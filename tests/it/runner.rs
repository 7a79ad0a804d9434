//! Runs one phase of a balancer in the simulator, and keeps all that can be known of it.

use std::rc::Rc;

use equipoise::balance::{Chosen, Cost, find, no_harm};
use equipoise::load::{Checksum, Plan, Powers, RankTime, Segment, Shares, TaskBatch, WorkQueue};
use equipoise::node::Counts;
use equipoise::phase::trace::NodeTrace;
use equipoise::phase::{self, Setting};
use equipoise::topology::{Overlay, RankId, Topology};
use equipoise::transport::sim::{self, Rules};
use equipoise::transport::world::World;
use equipoise_lab::workload::InitialTasks;

/// Input of a phase.
pub struct Setup {
    pub chosen: Rc<Chosen>,
    pub overlay: Overlay,
    pub powers: Powers,
    /// Seed of the nodes' random numbers.
    pub seed: u64,
    /// Disturbs the order in which messages arrive; `None` leaves the network as it is.
    pub disturbance: Option<u64>,
    /// How many messages' ends are noted on each node; `None` if no trace is wanted.
    pub trace: Option<usize>,
    /// Whether the balancer's rule is followed even where it makes the slowest rank slower.
    pub plain: bool,
}

/// Result of a phase, by node where it is a list. Loads are in work units.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub before: Vec<u64>,
    pub checksum_before: Checksum,
    pub queues: Vec<WorkQueue>,
    pub plan: Plan,
    /// Target loads: the reachable quotas nearest to the balancer's, and without a slower slowest rank.
    pub quota: Vec<u64>,
    /// Whether moves were declined that would have made the slowest rank slower.
    pub declined: bool,
    /// The times of the slowest rank before and after.
    pub slowest: [RankTime; 2],
    /// Its own, and what the reduction over the ranks takes where there is one.
    pub cost: Cost,
    /// Counts of all nodes together.
    pub counts: Counts,
    /// Empty if it was not wanted.
    pub trace: Vec<NodeTrace>,
}

impl Setup {
    /// A balancer on a topology with a rank for each node.
    pub fn native(balancer: &str, topology: Topology, powers: Powers) -> Setup {
        let ranks = topology.nodes();
        Setup::new(balancer, Overlay::one_host(topology, ranks).expect("one rank a node fits"), powers)
    }

    pub fn new(balancer: &str, overlay: Overlay, powers: Powers) -> Setup {
        let chosen = Rc::new(find(balancer).expect("a balancer of the registry"));
        assert_eq!(chosen.entry.objection(&overlay.topology), None);
        Setup { chosen, overlay, powers, seed: 0, disturbance: None, trace: None, plain: false }
    }

    /// One phase over these work queues, by node.
    pub fn run(&self, queues: Vec<WorkQueue>) -> Outcome {
        let placement = &self.overlay.placement;
        assert_eq!((queues.len(), self.powers.nodes()), (placement.nodes() as usize, placement.nodes()));
        let before: Vec<u64> = queues.iter().map(WorkQueue::work).collect();
        let queues: Vec<WorkQueue> = if self.chosen.needs_places() { queues.into_iter().map(placed).collect() } else { queues };
        let checksum_before = checksum(&queues);
        let pinned = queues.iter().map(|queue| queue.pinned().map_or(0, TaskBatch::work)).collect();
        let shares = Shares::new(self.powers.clone()).with_pinned(pinned);
        let is_unit = queues.iter().flat_map(WorkQueue::segments).all(|segment| segment.weight() <= 1);
        let shares = if is_unit { shares } else { shares.weighted() };
        let shares = if self.plain { shares.plainly() } else { shares };
        let quota = self.chosen.aims(&self.overlay, &before, &shares).to_vec();
        let cost = self.cost(&shares);

        let rules = self.disturbance.map_or_else(Rules::default, |seed| Rules::seeded(seed).delay_heavily(20_000).shuffle());
        let mut world = World::simulated(placement.ranks(), sim::Model { rules, seed: self.seed, ..sim::Model::default() });
        let setting = Rc::new(Setting {
            balancer: self.chosen.clone(),
            shares,
            queue: Rc::new(move |node| Ok(queues[node as usize].clone())),
            plan: true,
            weighted: !is_unit,
            trace: self.trace,
        });
        let (outcome, queues) =
            phase::run_and_keep(&mut world, &self.overlay, &setting).unwrap_or_else(|why| panic!("{} fails: {why}", self.chosen.name));
        let phase::Outcome { plan, counts, declined, trace, .. } = outcome.expect("node 0 is simulated, too");
        let after: Vec<u64> = queues.iter().map(WorkQueue::work).collect();
        let slowest = [self.slowest(&before), self.slowest(&after)];
        Outcome { before, checksum_before, queues, plan, quota, declined, slowest, cost, counts, trace }
    }

    /// The longest time of a rank with these loads, from what its nodes hold together.
    fn slowest(&self, loads: &[u64]) -> RankTime {
        let placement = &self.overlay.placement;
        let of_rank = |rank: u32| {
            let nodes = placement.nodes_on(RankId::new(rank));
            let work = nodes.iter().map(|node| loads[*node as usize]).sum();
            RankTime { work, power: nodes.iter().map(|node| self.powers.of(*node)).sum() }
        };
        (0..placement.ranks()).map(of_rank).max().expect("a rank")
    }

    /// Upper bound on the cost of a phase, without the additions for tasks of several units, and without tasks that go back.
    fn cost(&self, shares: &Shares) -> Cost {
        let Overlay { topology, placement } = &self.overlay;
        let (own, reduction) = ((self.chosen.entry.facts.cost)(topology), no_harm::cost(placement.ranks()));
        let knows_all = ["direct", "optimal", "none"].contains(&self.chosen.name.as_str());
        let surveyed =
            !shares.are_weighted() && shares.may_round_badly(placement.ranks()) && self.chosen.entry.facts.promises.exact && !knows_all;
        let checked = self.chosen.is_checked(shares, placement);
        match !shares.are_plain() && (surveyed || checked) {
            false => own,
            true => {
                Cost { steps: own.steps + reduction.steps, messages: own.messages + reduction.messages, bytes: own.bytes + reduction.bytes }
            }
        }
    }

    /// One phase over unit tasks without payload, numbered in node order.
    pub fn run_on_loads(&self, loads: &[u64]) -> Outcome {
        let tasks = InitialTasks::new(loads, 0).expect("tasks that can be numbered");
        self.run((0..self.powers.nodes()).map(|node| tasks.queue(node).expect("tasks without payload")).collect())
    }
}

/// The same tasks at places that their ids tell, scattered over a square.
fn placed(queue: WorkQueue) -> WorkQueue {
    let pinned = queue.pinned().map_or(0, TaskBatch::len);
    let tasks = queue.segments().flat_map(Segment::tasks).take((queue.len() - pinned) as usize);
    let places = tasks.map(|task| [(task.id * 37 % 101) as f64, (task.id * 59 % 97) as f64, 0.0]).collect();
    queue.with_places(places)
}

impl Outcome {
    pub fn after(&self) -> Vec<u64> {
        self.queues.iter().map(WorkQueue::work).collect()
    }

    pub fn checksum_after(&self) -> Checksum {
        checksum(&self.queues)
    }

    /// Work that left its node, even if it came back.
    pub fn nonlocal(&self) -> u64 {
        self.before.iter().zip(&self.queues).map(|(load, queue)| load - queue.own_work()).sum()
    }

    /// The least work that must leave their node for the quotas.
    pub fn minimum_nonlocal(&self) -> u64 {
        self.before.iter().zip(&self.quota).map(|(load, quota)| load.saturating_sub(*quota)).sum()
    }

    /// Returns true if tasks that were numbered in node order still lie in it, from the first node to the last.
    pub fn is_in_order(&self) -> bool {
        let row = self.queues.iter().flat_map(WorkQueue::segments).cloned().collect::<TaskBatch>();
        let whole = Segment::range(0, row.len());
        row.is_empty() || row.segments().eq([&whole])
    }

    /// Source, destination and number of tasks of each transfer, sorted.
    pub fn moves(&self) -> Vec<(u32, u32, u64)> {
        let mut moves: Vec<_> = self.plan.transfers.iter().map(|t| (t.src, t.dst, t.tasks)).collect();
        moves.sort_unstable();
        moves
    }

    /// Work units times hops.
    pub fn work_hops(&self, topology: &Topology) -> u128 {
        self.plan.transfers.iter().map(|t| u128::from(t.work) * u128::from(topology.distance(t.src, t.dst))).sum()
    }

    /// The largest difference between a final load and its quota.
    pub fn deviation(&self) -> u64 {
        self.after().iter().zip(&self.quota).map(|(after, quota)| after.abs_diff(*quota)).max().unwrap_or(0)
    }

    /// The least load that each node ever had, when the plan is carried out in its steps, giving before getting.
    pub fn lowest(&self) -> Vec<u64> {
        let mut loads = self.before.clone();
        let mut lowest = loads.clone();
        for step in self.plan.transfers.chunk_by(|a, b| a.step == b.step) {
            for transfer in step {
                let src = transfer.src as usize;
                loads[src] = loads[src].checked_sub(transfer.work).unwrap_or_else(|| panic!("{transfer:?} gives what is not there"));
                lowest[src] = lowest[src].min(loads[src]);
            }
            for transfer in step {
                loads[transfer.dst as usize] += transfer.work;
            }
        }
        assert_eq!(loads, self.after(), "the plan and the queues differ");
        lowest
    }
}

fn checksum(queues: &[WorkQueue]) -> Checksum {
    queues.iter().map(WorkQueue::checksum).fold(Checksum::default(), Checksum::and)
}
