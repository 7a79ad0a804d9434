//! The links through which the load spreads: away from the source, from layer to layer.

use equipoise::topology::{NodeId, Topology};

/// Number of links that a processor can use at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// One: those behind it are served one after another, along one tree of shortest routes.
    One,
    /// All: every link between one layer and the next carries load, as Blazewicz and Drozdowski 1995 have it.
    All,
}

/// A link between a processor and one that is a hop further away from the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelLink {
    pub from: usize,
    pub to: usize,
    /// Seconds before the first byte of a message.
    pub startup: f64,
    /// Seconds for the whole load.
    pub seconds: f64,
}

/// Processors in layers, and the links between one layer and the next.
#[derive(Clone, Debug)]
pub struct ModelNetwork {
    pub source: usize,
    /// Distance of each processor from the source, in hops.
    pub layer: Vec<u32>,
    /// Seconds in which each processor computes the whole load; infinity for a source that does not compute.
    pub seconds: Vec<f64>,
    /// In the order of receivers, and of senders for each.
    pub links: Vec<ModelLink>,
    /// For each processor the links that it sends through, in the order of service.
    pub out: Vec<Vec<usize>>,
    /// For each processor the links that it receives through.
    pub into: Vec<Vec<usize>>,
}

/// Links on which the load of a topology's processors travels: pairs of sender and receiver, in the order of receivers, and of senders for
/// each.
pub fn routes(topology: &Topology, source: NodeId, ports: Ports) -> Vec<(NodeId, NodeId)> {
    let mut routes = Vec::new();
    for node in (0..topology.nodes()).filter(|node| *node != source) {
        let layer = topology.distance(source, node);
        match ports {
            Ports::One => routes.push((topology.next_hop(node, source), node)),
            Ports::All if layer == 1 => routes.push((source, node)),
            Ports::All => {
                let nearer = topology.neighbours(node).into_iter().filter(|other| topology.distance(source, *other) + 1 == layer);
                routes.extend(nearer.map(|other| (other, node)));
            }
        }
    }
    routes
}

impl ModelNetwork {
    /// A network of processors, given the seconds that each takes for the whole load, and links from layer to layer, those of each receiver
    /// together.
    ///
    /// A processor that serves several others serves the fastest link first, and of equal links the lowest number. That is the best order
    /// without start-up costs and returned results (Beaumont, Casanova, Legrand, Robert and Yang 2005).
    pub fn new(source: usize, layer: Vec<u32>, seconds: Vec<f64>, links: Vec<ModelLink>) -> ModelNetwork {
        let mut out = vec![Vec::new(); layer.len()];
        let mut into = vec![Vec::new(); layer.len()];
        for (index, link) in links.iter().enumerate() {
            out[link.from].push(index);
            into[link.to].push(index);
        }
        let mut network = ModelNetwork { source, layer, seconds, links, out, into };
        network.serve_by(|link| link.seconds);
        network
    }

    /// Changes the order of service: the least first.
    pub fn serve_by(&mut self, key: impl Fn(&ModelLink) -> f64) {
        for out in &mut self.out {
            out.sort_by(|a, b| key(&self.links[*a]).total_cmp(&key(&self.links[*b])).then(a.cmp(b)));
        }
    }

    /// The number of processors.
    pub fn processors(&self) -> usize {
        self.layer.len()
    }

    /// Returns true if every processor receives through one link only.
    pub fn is_tree(&self) -> bool {
        self.into.iter().all(|into| into.len() <= 1)
    }

    /// Returns true if any message has a start-up cost.
    pub fn has_startup(&self) -> bool {
        self.links.iter().any(|link| link.startup > 0.0)
    }

    /// The processors, those nearest to the source first.
    pub fn outwards(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.processors()).collect();
        order.sort_by_key(|processor| self.layer[*processor]);
        order
    }
}
