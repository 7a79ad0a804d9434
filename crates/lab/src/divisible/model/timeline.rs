//! Timeline of a division, given the load on each link: the rules of the model, followed step by step.
//!
//! Closed forms and linear programs give the amounts; the times, and whether all finish together, come from here.

use super::network::{ModelNetwork, Ports};

/// A division of a load: the part that each link carries in each installment. A processor keeps the received load that it does not send.
#[derive(Clone, Debug)]
pub struct LoadDivision {
    pub ports: Ports,
    /// Parts of the whole load, by installment and link.
    pub sent: Vec<Vec<f64>>,
    /// Parts of the load that processors compute, by installment and processor.
    pub kept: Vec<Vec<f64>>,
    /// The size of the results, as a part of the load that they come from; 0 if none are returned.
    pub results: f64,
    /// Whether the processor that received first returns its results last (one port only).
    pub last_first: bool,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelMessage {
    pub link: usize,
    /// Whether the message returns results.
    pub returns: bool,
    /// The part of the load, or the size of the results.
    pub load: f64,
    pub begin: f64,
    pub end: f64,
}

/// Times of all messages and computations, in seconds.
#[derive(Clone, Debug, Default)]
pub struct DivisionTimeline {
    pub messages: Vec<ModelMessage>,
    /// Intervals in which each processor computes.
    pub computing: Vec<Vec<(f64, f64)>>,
    /// Time at which the last message to a processor has arrived.
    pub arrival: Vec<f64>,
    /// Time at which it has computed, and its results and those behind it, if any, have arrived at its sender.
    pub finish: Vec<f64>,
    pub makespan: f64,
}

impl LoadDivision {
    /// Division on a tree or a network by the load on its links; the source has the whole load, 1, at first.
    ///
    /// The part that a computing source keeps belongs to the first installment.
    pub fn new(network: &ModelNetwork, ports: Ports, sent: Vec<Vec<f64>>) -> LoadDivision {
        let sum = |links: &[usize], sent: &[f64]| links.iter().map(|link| sent[*link]).sum::<f64>();
        let mut kept: Vec<Vec<f64>> = sent
            .iter()
            .map(|sent| {
                let left = |processor: usize| (sum(&network.into[processor], sent) - sum(&network.out[processor], sent)).max(0.0);
                (0..network.processors()).map(left).collect()
            })
            .collect();
        let gone: f64 = sent.iter().map(|sent| sum(&network.out[network.source], sent)).sum();
        kept[0][network.source] = (1.0 - gone).max(0.0);
        LoadDivision { ports, sent, kept, results: 0.0, last_first: false }
    }

    /// The part of the load that a processor computes.
    pub fn alpha(&self, processor: usize) -> f64 {
        self.kept.iter().map(|kept| kept[processor]).sum()
    }

    /// Part of the load that a processor receives, including the part that it forwards.
    pub fn volume(&self, network: &ModelNetwork, processor: usize) -> f64 {
        if processor == network.source {
            return 1.0;
        }
        network.into[processor].iter().map(|link| self.through(*link)).sum()
    }

    fn through(&self, link: usize) -> f64 {
        self.sent.iter().map(|sent| sent[link]).sum()
    }

    /// Plays the division through: everything as soon as it can be.
    pub fn timeline(&self, network: &ModelNetwork) -> DivisionTimeline {
        let mut play = Play {
            network,
            division: self,
            timeline: DivisionTimeline { computing: vec![Vec::new(); network.processors()], ..DivisionTimeline::default() },
            arrivals: vec![vec![0.0; self.sent.len()]; network.processors()],
            free: vec![0.0; network.processors()],
        };
        let outwards = network.outwards();
        for &processor in &outwards {
            play.compute_and_send(processor);
        }
        let last = |processor: usize, play: &Play| play.timeline.computing[processor].last().map_or(0.0, |(_, end)| *end);
        let mut finish: Vec<f64> = (0..network.processors()).map(|processor| last(processor, &play)).collect();
        if self.results > 0.0 {
            let mut ready = finish.clone();
            for &processor in outwards.iter().rev() {
                play.collect(processor, &mut ready, &mut finish);
            }
        }
        let makespan = finish.iter().copied().fold(0.0, f64::max);
        let arrival = play.arrivals.iter().map(|by_installment| by_installment.iter().copied().fold(0.0, f64::max)).collect();
        DivisionTimeline { arrival, finish, makespan, ..play.timeline }
    }
}

struct Play<'a> {
    network: &'a ModelNetwork,
    division: &'a LoadDivision,
    timeline: DivisionTimeline,
    /// Time at which each processor has received each installment.
    arrivals: Vec<Vec<f64>>,
    /// Time at which each processor's port is free again.
    free: Vec<f64>,
}

impl Play<'_> {
    /// Plays a processor's computing and sending. Processors nearer to the source have sent already.
    fn compute_and_send(&mut self, processor: usize) {
        let mut computed = 0.0_f64;
        let mut link_free = vec![0.0_f64; self.network.out[processor].len()];
        for installment in 0..self.division.sent.len() {
            let here = self.arrivals[processor][installment];
            let kept = self.division.kept[installment][processor];
            if kept > 0.0 {
                let begin = here.max(computed);
                computed = begin + kept * self.network.seconds[processor];
                self.timeline.computing[processor].push((begin, computed));
            }
            for (place, &index) in self.network.out[processor].iter().enumerate() {
                let load = self.division.sent[installment][index];
                if load <= 0.0 {
                    continue;
                }
                let link = self.network.links[index];
                let free = match self.division.ports {
                    Ports::One => &mut self.free[processor],
                    Ports::All => &mut link_free[place],
                };
                let begin = here.max(*free);
                let end = begin + link.startup + load * link.seconds;
                *free = end;
                self.timeline.messages.push(ModelMessage { link: index, returns: false, load, begin, end });
                let arrival = &mut self.arrivals[link.to][installment];
                *arrival = arrival.max(end);
            }
        }
    }

    /// Plays a processor's collection of results. Processors further away from the source have all their results.
    fn collect(&mut self, processor: usize, ready: &mut [f64], finish: &mut [f64]) {
        let mut order: Vec<usize> = self.network.out[processor].clone();
        if self.division.last_first {
            order.reverse();
        }
        for index in order {
            let load = self.division.through(index) * self.division.results;
            if load <= 0.0 {
                continue;
            }
            let link = self.network.links[index];
            let begin = match self.division.ports {
                Ports::One => ready[link.to].max(self.free[processor]),
                Ports::All => ready[link.to],
            };
            let end = begin + link.startup + load * link.seconds;
            self.free[processor] = self.free[processor].max(end);
            self.timeline.messages.push(ModelMessage { link: index, returns: true, load, begin, end });
            finish[link.to] = finish[link.to].max(end);
            ready[processor] = ready[processor].max(end);
        }
    }
}
