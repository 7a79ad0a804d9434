//! Program of a rank in a probe: the same on real ranks and in simulation.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::rc::Rc;

use bytes::Bytes;
use equipoise::Result;
use equipoise::node::{HEADER_BYTES, Node, Tag, Ticks};
use equipoise::phase::trace::clock_offset;
use equipoise::topology::{HostId, Hosts, NodeId, RankId};
use equipoise::transport::interrupt::Interrupt;
use serde::{Deserialize, Serialize};

use super::fit::median;
use super::rounds;

const PING: Tag = crate::tags::probe::PING;
const PONG: Tag = crate::tags::probe::PONG;
const BURST: Tag = crate::tags::probe::BURST;
const BURST_END: Tag = crate::tags::probe::BURST_END;
const CROSSING: Tag = crate::tags::probe::CROSSING;

/// Body of the message with which the rates of all pairs of hosts are compared.
pub const LARGE: usize = 64 << 10;
/// Messages sent in a row to find the gap between them.
const IN_A_ROW: u64 = 64;
/// Maximum number of ranks whose clocks are compared.
const MOST_CLOCKS: u32 = 1_024;
/// Exchanges of which the shortest counts, for bodies below and above [`LARGE`].
const TRIES: [u32; 2] = [10, 3];

/// Operations in a row, where all ranks take part and none begins exactly with another: the mean counts.
const IN_TURN: u32 = 4;

/// Settings of a probe: number of rounds, and sizes.
#[derive(Clone, Debug)]
pub struct ProbeSpec {
    /// Number of rounds; each measures everything once.
    pub rounds: u32,
    /// Ticks that the kernel computes in a round.
    pub kernel: Ticks,
    /// Sizes of the messages' bodies, ascending.
    pub sizes: Vec<usize>,
    /// Sizes of the reductions over all ranks, in bytes.
    pub reductions: Vec<usize>,
}

impl ProbeSpec {
    /// Everything, with this much computing for each rank in a number of rounds.
    pub fn full(rounds: u32, kernel: Ticks) -> ProbeSpec {
        let sizes = [0, 1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20].to_vec();
        ProbeSpec { rounds, kernel, sizes, reductions: vec![8, 1 << 10, 64 << 10] }
    }

    /// Enough to predict phases, in a moment.
    pub fn quick() -> ProbeSpec {
        ProbeSpec { rounds: 3, kernel: 5_000_000, sizes: vec![0, 64, 1 << 10, 16 << 10, 128 << 10], reductions: Vec::new() }
    }
}

/// Times of one kind of link: of each size, each time that was measured; and gaps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkTimes {
    pub by_size: Vec<Vec<f64>>,
    pub gaps: Vec<f64>,
}

/// Times of the link to another host, by round: of an empty message and of one with [`LARGE`] bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostTimes {
    pub host: HostId,
    pub small: Vec<f64>,
    pub large: Vec<f64>,
}

/// Measurements of one rank, in ticks. Times of messages are one-way, and known to the asking end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RankTimes {
    pub kernel: Vec<f64>,
    /// Other rank, and the median over the rounds for an empty message.
    pub ranks: Vec<(NodeId, f64)>,
    pub hosts: Vec<HostTimes>,
    pub within: LinkTimes,
    /// Times of the links to other hosts, by host.
    pub between: BTreeMap<HostId, LinkTimes>,
    /// Times of the reductions, by size and round.
    pub reductions: Vec<Vec<f64>>,
    /// A message each way between two ranks, with the network to themselves, and with all ranks at once.
    pub alone: Vec<f64>,
    pub together: Vec<f64>,
    /// Clock of rank 0 minus this rank's.
    pub clock_offset: i64,
}

/// One rank's part: the number of finished rounds, which is less than asked for if a rank was asked to end; and at node 0 the measurements of all
/// ranks, by rank.
pub async fn program(
    node: Node,
    spec: Rc<ProbeSpec>,
    hosts: Rc<RanksByHost>,
    zeros: Bytes,
    interrupt: Option<Interrupt>,
) -> Result<(u32, Vec<RankTimes>)> {
    let probe = Probe::new(&node, &spec, hosts, zeros);
    let iterations = probe.calibrate().await?;
    let mut times = RankTimes { reductions: vec![Vec::new(); spec.reductions.len()], ..RankTimes::default() };
    let mut by_rank: Vec<(NodeId, Vec<f64>)> = Vec::new();
    for round in 0..spec.rounds {
        if let Some(interrupt) = &interrupt
            && node.everyone().all_reduce(&node, interrupt.signal(), i32::max).await? != 0
        {
            break;
        }
        probe.barrier().await?;
        times.kernel.push(probe.compute(iterations));
        probe.barrier().await?;
        probe.ranks(&mut by_rank).await?;
        probe.barrier().await?;
        probe.hosts(&mut times.hosts).await?;
        probe.barrier().await?;
        probe.sizes(round, &mut times).await?;
        probe.barrier().await?;
        probe.contention(round, &mut times).await?;
        for (bytes, reduced) in spec.reductions.iter().zip(&mut times.reductions) {
            probe.barrier().await?;
            let began = node.now();
            for _ in 0..IN_TURN {
                node.everyone().all_reduce(&node, vec![0u8; *bytes], |mine, _| mine).await?;
            }
            reduced.push((node.now() - began) as f64 / f64::from(IN_TURN));
        }
    }
    times.ranks = by_rank.into_iter().filter_map(|(rank, times)| Some((rank, median(&times)?))).collect();
    // One rank after the other.
    if node.nodes() <= MOST_CLOCKS {
        times.clock_offset = clock_offset(&node).await?;
    }
    Ok((times.kernel.len() as u32, node.everyone().gather(&node, times).await?))
}

/// The same with nothing but the exchanges of all at once.
pub async fn contention(node: Node, spec: Rc<ProbeSpec>, hosts: Rc<RanksByHost>, zeros: Bytes) -> Result<Vec<RankTimes>> {
    let probe = Probe::new(&node, &spec, hosts, zeros);
    let mut times = RankTimes::default();
    for round in 0..spec.rounds {
        probe.barrier().await?;
        probe.contention(round, &mut times).await?;
    }
    node.everyone().gather(&node, times).await
}

/// The nodes of the ranks of each host, found once for all nodes of a process. Each rank has one, of the same number.
pub struct RanksByHost(Vec<Vec<NodeId>>);

impl RanksByHost {
    /// Ranks by host, from a map of hosts.
    pub fn of(hosts: &Hosts) -> RanksByHost {
        let mut ranks = vec![Vec::new(); hosts.count() as usize];
        RankId::all(hosts.ranks()).for_each(|rank| ranks[hosts.host_of(rank).index()].push(rank.get()));
        RanksByHost(ranks)
    }

    fn count(&self) -> u32 {
        self.0.len() as u32
    }

    fn ranks(&self, host: HostId) -> &[NodeId] {
        &self.0[host.index()]
    }
}

/// A rank and its place among hosts.
struct Probe<'a> {
    node: &'a Node,
    spec: &'a ProbeSpec,
    hosts: Rc<RanksByHost>,
    me: NodeId,
    /// This rank's host, and its place among the ranks there.
    host: HostId,
    place: usize,
    /// Zeros for the longest body; all bodies are slices of it.
    zeros: Bytes,
}

impl<'a> Probe<'a> {
    fn new(node: &'a Node, spec: &'a ProbeSpec, hosts: Rc<RanksByHost>, zeros: Bytes) -> Probe<'a> {
        let (me, host) = (node.me(), node.host_of(node.me()));
        let place = hosts.ranks(host).iter().position(|rank| *rank == me).unwrap_or(0);
        Probe { node, spec, hosts, me, host, place, zeros }
    }

    async fn barrier(&self) -> Result<()> {
        self.node.everyone().barrier(self.node).await
    }

    fn is_simulated(&self) -> bool {
        self.node.processor_time().is_none()
    }

    /// Returns the number of iterations of the kernel that take the requested time on node 0; all ranks compute this number.
    async fn calibrate(&self) -> Result<u64> {
        /// Long enough for a clock, short enough for an interrupt to be rare.
        const NOTICEABLE: Ticks = 2_000_000;
        let mut iterations = 1_000;
        if self.me == 0 && !self.is_simulated() {
            // Not the time in which the rank had no processor: where a control group limits it, that is many times as long as the kernel takes.
            let clock = || self.node.processor_time().unwrap_or_else(|| self.node.now());
            loop {
                let began = clock();
                kernel(iterations);
                let took = (clock() - began).max(1);
                if took >= NOTICEABLE {
                    iterations = (iterations as f64 * self.spec.kernel as f64 / took as f64) as u64;
                    break;
                }
                iterations *= 2;
            }
        }
        self.node.everyone().broadcast(self.node, 0, Some(iterations.max(1))).await
    }

    /// Ticks that the kernel takes here.
    fn compute(&self, iterations: u64) -> f64 {
        let began = self.node.now();
        self.node.charge(self.spec.kernel);
        if !self.is_simulated() {
            kernel(iterations);
        }
        (self.node.now() - began) as f64
    }

    /// Shortest of some one-way times of a message with this body, in ticks; `None` at the answering end.
    async fn message(&self, other: NodeId, bytes: usize) -> Result<Option<f64>> {
        let body = self.zeros.slice(..bytes);
        let tries = TRIES[usize::from(bytes >= LARGE)];
        let mut shortest: Option<Ticks> = None;
        // The first does not count: the other may not be here yet, and real ranks connect.
        for attempt in 0..=tries {
            if self.me < other {
                let began = self.node.now();
                self.node.send_bytes(other, PING, body.clone());
                self.node.receive_message(Some(other), PONG).await?;
                let took = self.node.now() - began;
                if attempt > 0 {
                    shortest = Some(shortest.map_or(took, |shortest| shortest.min(took)));
                }
            } else {
                self.node.receive_message(Some(other), PING).await?;
                self.node.send_bytes(other, PONG, body.clone());
            }
        }
        Ok(shortest.map(|ticks| ticks as f64 / 2.0))
    }

    /// All pairs of ranks, or a sample of them.
    async fn ranks(&self, times: &mut Vec<(NodeId, Vec<f64>)>) -> Result<()> {
        let ranks = self.node.nodes();
        for round in rounds::rounds(ranks) {
            let Some(other) = rounds::partner(ranks, round, self.me) else { continue };
            let Some(took) = self.message(other, 0).await? else { continue };
            match times.iter_mut().find(|(known, _)| *known == other) {
                Some((_, known)) => known.push(took),
                None => times.push((other, vec![took])),
            }
        }
        Ok(())
    }

    /// The rank on another host that has the same place there.
    fn counterpart(&self, round: u32) -> Option<(HostId, NodeId)> {
        let host = HostId::new(rounds::partner(self.hosts.count(), round, self.host.get())?);
        self.hosts.ranks(host).get(self.place).map(|rank| (host, *rank))
    }

    /// All pairs of hosts, by the first rank of each.
    async fn hosts(&self, times: &mut Vec<HostTimes>) -> Result<()> {
        if self.place > 0 {
            return Ok(());
        }
        for round in rounds::rounds(self.hosts.count()) {
            let Some((host, other)) = self.counterpart(round) else { continue };
            let (small, large) = (self.message(other, 0).await?, self.message(other, LARGE).await?);
            let (Some(small), Some(large)) = (small, large) else { continue };
            match times.iter_mut().find(|known| known.host == host) {
                Some(known) => {
                    known.small.push(small);
                    known.large.push(large);
                }
                None => times.push(HostTimes { host, small: vec![small], large: vec![large] }),
            }
        }
        Ok(())
    }

    /// The rank with which this one measures links in a round: the first two ranks of a host within, the first ranks of two hosts between.
    async fn sizes(&self, round: u32, times: &mut RankTimes) -> Result<()> {
        let within = match self.place {
            0 | 1 => self.hosts.ranks(self.host).get(1 - self.place).copied(),
            _ => None,
        };
        if let Some(other) = within {
            self.link(other, &mut times.within).await?;
        }
        self.barrier().await?;
        let all = rounds::rounds(self.hosts.count());
        let Some(host_round) = all.get(round as usize % all.len().max(1)) else { return Ok(()) };
        if let Some((host, other)) = self.counterpart(*host_round).filter(|_| self.place == 0) {
            self.link(other, times.between.entry(host).or_default()).await?;
        }
        Ok(())
    }

    async fn link(&self, other: NodeId, times: &mut LinkTimes) -> Result<()> {
        times.by_size.resize(self.spec.sizes.len(), Vec::new());
        for (bytes, known) in self.spec.sizes.iter().zip(&mut times.by_size) {
            known.extend(self.message(other, *bytes).await?);
        }
        let one = self.burst(other, 1).await?;
        let many = self.burst(other, IN_A_ROW).await?;
        if let (Some(one), Some(many)) = (one, many) {
            times.gaps.push((many - one).max(0.0) / (IN_A_ROW - 1) as f64);
        }
        Ok(())
    }

    /// Shortest of some times, in ticks, until a number of consecutive empty messages has been answered by one; `None` at the answering
    /// end.
    async fn burst(&self, other: NodeId, messages: u64) -> Result<Option<f64>> {
        let mut shortest: Option<Ticks> = None;
        for _ in 0..TRIES[1] {
            if self.me < other {
                let began = self.node.now();
                for _ in 0..messages {
                    self.node.send_bytes(other, BURST, Bytes::new());
                }
                self.node.receive_message(Some(other), BURST_END).await?;
                let took = self.node.now() - began;
                shortest = Some(shortest.map_or(took, |shortest| shortest.min(took)));
            } else {
                for _ in 0..messages {
                    self.node.receive_message(Some(other), BURST).await?;
                }
                self.node.send_bytes(other, BURST_END, Bytes::new());
            }
        }
        Ok(shortest.map(|ticks| ticks as f64))
    }

    /// A message each way between two ranks of different hosts (of the same, if there is one host only): between the first two, then between all
    /// at once.
    async fn contention(&self, round: u32, times: &mut RankTimes) -> Result<()> {
        let other = if self.hosts.count() > 1 {
            let all = rounds::rounds(self.hosts.count());
            let host_round = all.get(round as usize % all.len().max(1)).copied().unwrap_or(0);
            self.counterpart(host_round).map(|(_, other)| other)
        } else {
            rounds::partner(self.node.nodes(), 0, self.me)
        };
        // The first pair is that of the first rank that has a partner; each rank knows whether it is one of them.
        let mine = other.map_or(u32::MAX, |other| other.min(self.me));
        let first = self.node.everyone().all_reduce(self.node, mine, u32::min).await?;
        if let Some(other) = other.filter(|_| mine == first) {
            times.alone.push(self.exchange(other).await?);
        }
        self.barrier().await?;
        if let Some(other) = other {
            times.together.push(self.exchange(other).await?);
        }
        self.barrier().await
    }

    async fn exchange(&self, other: NodeId) -> Result<f64> {
        let body = self.zeros.slice(..LARGE);
        let began = self.node.now();
        for _ in 0..IN_TURN {
            self.node.send_bytes(other, CROSSING, body.clone());
            self.node.receive_message(Some(other), CROSSING).await?;
        }
        Ok((self.node.now() - began) as f64 / f64::from(IN_TURN))
    }
}

/// Bytes of a message with such a body, its header included.
pub fn on_the_wire(body: usize) -> u64 {
    HEADER_BYTES + body as u64
}

/// A fixed piece of computing that no compiler can shorten and that fits into registers: the logistic map.
fn kernel(iterations: u64) -> f64 {
    let mut x = black_box(0.3);
    for _ in 0..iterations {
        x = 3.9 * x * (1.0 - x);
    }
    black_box(x)
}
