//! Input of the model, and its validation.

use std::sync::Arc;

use super::network::{ModelLink, ModelNetwork, Ports, routes};
use equipoise::error::{Error, Result};
use equipoise::spec::{InvalidSpec, Mistake};
use equipoise::topology::{InvalidTopology, NodeId, Topology, Tree};

/// Maximum number of processors that are modelled one by one; hypercubes of equal processors may have 2^30.
pub const MOST_PROCESSORS: u32 = 1 << 16;
/// Maximum number of installments.
pub const MOST_INSTALLMENTS: usize = 100;

/// A topology and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTopology {
    pub name: String,
    pub topology: Topology,
}

impl NamedTopology {
    /// Reads what `--topology` takes with its size, and `star:N`: a hub, processor 0, and N - 1 around it.
    ///
    /// # Errors
    /// One sentence with the text; a topology without a size is refused, as there are no ranks to fit it to.
    pub fn parse(text: &str) -> Result<NamedTopology> {
        let refused = |why: String| Error::usage(format!("--topology {text}: {why}"));
        if let Some(size) = text.strip_prefix("star") {
            let nodes = size.strip_prefix(':').and_then(|size| size.parse::<u32>().ok()).filter(|nodes| *nodes > 0);
            let nodes = nodes.ok_or_else(|| refused("a star is given with its number of processors, 1 or more, as in star:8".into()))?;
            if nodes > MOST_PROCESSORS {
                return Err(refused(format!("the model looks at {MOST_PROCESSORS} processors at most")));
            }
            let parents: Vec<Option<NodeId>> = (0..nodes).map(|node| (node > 0).then_some(0)).collect();
            let tree = Tree::from_parents(&parents).map_err(|why| refused(why.to_string()))?;
            return Ok(NamedTopology { name: text.into(), topology: Topology::Tree(Arc::new(tree)) });
        }
        let topology = Topology::parse(text, 0).map_err(|why| match why {
            InvalidTopology::NoRanks => {
                refused("the model needs a size, as in hypercube:4, mesh:3x4, line:8, star:8 or tree:binary,nodes=15".into())
            }
            InvalidTopology::Spec(InvalidSpec { mistake: Mistake::UnknownName { .. }, .. }) => {
                Error::usage(format!("--{why}; for a divisible load also star"))
            }
            why => why.into(),
        })?;
        Ok(NamedTopology { name: topology.name(), topology })
    }

    /// The shape of an existing topology.
    pub fn of(topology: Topology) -> NamedTopology {
        NamedTopology { name: topology.name(), topology }
    }
}

/// A load to be divided, and the processors and links.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub shape: NamedTopology,
    /// Node that has the load at first.
    pub source: NodeId,
    /// Whether the source computes, too.
    pub source_computes: bool,
    pub ports: Ports,
    /// Reciprocal speed of the processors (the paper's w).
    pub w: f64,
    /// Reciprocal speed of the links (the paper's z).
    pub z: f64,
    /// Seconds in which a standard processor computes one unit of load.
    pub tcp: f64,
    /// Seconds in which a standard link carries one unit of load.
    pub tcm: f64,
    /// Seconds before the first byte of each message.
    pub startup: f64,
    /// The size of the load, in units.
    pub load: f64,
    /// The size of the results that go back to the source, as a part of the load; 0 if none do.
    pub results: f64,
    pub installments: usize,
    /// Speed of each processor, as a multiple of 1/w; empty if all are alike.
    pub speeds: Vec<f64>,
    /// Time per unit of each link, as a multiple of z, in the order of [`Question::links`]; empty if all are alike.
    pub links: Vec<f64>,
    /// The start-up of each link, instead of `startup` for all; empty if all are alike.
    pub startups: Vec<f64>,
}

impl Question {
    /// The paper's question: equal processors, all ports, w = z = Tcp = Tcm = 1.
    pub fn of(shape: NamedTopology) -> Question {
        Question {
            shape,
            source: 0,
            source_computes: true,
            ports: Ports::All,
            w: 1.0,
            z: 1.0,
            tcp: 1.0,
            tcm: 1.0,
            startup: 0.0,
            load: 1.0,
            results: 0.0,
            installments: 1,
            speeds: Vec::new(),
            links: Vec::new(),
            startups: Vec::new(),
        }
    }

    /// Refuses what makes no sense, in one sentence that names the option.
    ///
    /// # Errors
    /// Wrong usage.
    pub fn check(&self) -> Result<()> {
        let numbers = [
            ("--w", self.w, true),
            ("--z", self.z, false),
            ("--tcp", self.tcp, true),
            ("--tcm", self.tcm, false),
            ("--startup", self.startup, false),
            ("--load", self.load, true),
            ("--return", self.results, false),
        ];
        for (option, number, positive) in numbers {
            let right = number.is_finite() && if positive { number > 0.0 } else { number >= 0.0 };
            if !right {
                let wanted = if positive { "above 0" } else { "of 0 or more" };
                return Err(Error::usage(format!("{option} {number}: it must be a number {wanted}")));
            }
        }
        let nodes = self.shape.topology.nodes();
        let product = |option: &str, value: f64, lowest: f64| match value.is_finite() && value >= lowest && value <= 1e150 {
            true => Ok(()),
            false => Err(Error::usage(format!("{option}: their product, {value:e} s, is no time to calculate with"))),
        };
        product("--w, --tcp and --load", self.w * self.tcp * self.load, 1e-150)?;
        product("--z, --tcm and --load", self.z * self.tcm * self.load, 0.0)?;
        if self.startup > 1e150 {
            return Err(Error::usage(format!("--startup {:e}: this is no time to calculate with", self.startup)));
        }
        if self.results > 1e6 {
            return Err(Error::usage(format!("--return {}: results are at most a million times the load", self.results)));
        }
        if self.installments == 0 || self.installments > MOST_INSTALLMENTS {
            return Err(Error::usage(format!("--installments {}: it must be 1 to {MOST_INSTALLMENTS}", self.installments)));
        }
        if self.source >= nodes {
            return Err(Error::usage(format!("--source {}: {} has the processors 0 to {}", self.source, self.shape.name, nodes - 1)));
        }
        if !self.source_computes && nodes == 1 {
            return Err(Error::usage(format!("--source-idle: in {} there is nobody else to compute", self.shape.name)));
        }
        if !self.is_cube_of_equals() {
            self.check_size()?;
        }
        self.check_lists(nodes)
    }

    /// Refuses networks whose processors are too many to be looked at one by one.
    ///
    /// # Errors
    /// Wrong usage.
    pub fn check_size(&self) -> Result<()> {
        let (name, nodes) = (&self.shape.name, self.shape.topology.nodes());
        match nodes <= MOST_PROCESSORS {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "--topology {name}: it has {nodes} processors, the model looks at {MOST_PROCESSORS} at most \
                 (more only in hypercubes of equal processors and links, without installments)"
            ))),
        }
    }

    fn check_lists(&self, nodes: u32) -> Result<()> {
        if !self.speeds.is_empty() && self.speeds.len() != nodes as usize {
            let (given, name) = (self.speeds.len(), &self.shape.name);
            return Err(Error::usage(format!("--speeds: {given} given, {name} has {nodes} processors")));
        }
        let list = |option: &str, list: &[f64], positive: bool| {
            let wrong = list.iter().position(|x| !(x.is_finite() && *x <= 1e100 && if positive { *x >= 1e-100 } else { *x >= 0.0 }));
            match wrong {
                Some(index) => Err(Error::usage(format!(
                    "{option}, item {}: {:e} is not a number from {} to 1e100",
                    index + 1,
                    list[index],
                    if positive { "1e-100" } else { "0" }
                ))),
                None => Ok(()),
            }
        };
        list("--speeds", &self.speeds, true)?;
        for (option, values) in [("--links", &self.links), ("--startups", &self.startups)] {
            list(option, values, false)?;
            let links = if values.is_empty() { 0 } else { self.links().len() };
            if values.len() != links {
                return Err(Error::usage(format!(
                    "{option}: {} given, load goes through {links} links of {}, from those to processor 0 to those to processor {} \
                     (processor {} is the source)",
                    values.len(),
                    self.shape.name,
                    nodes - 1,
                    self.source
                )));
            }
        }
        Ok(())
    }

    /// The links that load goes through, sender and receiver: in the order of receivers, and of senders for each.
    pub fn links(&self) -> Vec<(NodeId, NodeId)> {
        routes(&self.shape.topology, self.source, self.ports)
    }

    /// Returns true if all processors are alike, and all links.
    pub fn is_homogeneous(&self) -> bool {
        self.speeds.is_empty() && self.links.is_empty() && self.startups.is_empty()
    }

    /// Returns true if it has a closed form by dimension.
    pub(super) fn is_cube_of_equals(&self) -> bool {
        let cube = matches!(self.shape.topology, Topology::Hypercube(_)) && self.is_homogeneous() && self.installments == 1;
        cube && match self.ports {
            Ports::All => true,
            Ports::One => self.startup == 0.0 && self.results == 0.0 && self.source_computes,
        }
    }

    /// Seconds in which the source's processor computes the whole load.
    pub fn alone(&self) -> f64 {
        self.seconds(self.source)
    }

    fn seconds(&self, processor: NodeId) -> f64 {
        self.compute() / self.speeds.get(processor as usize).copied().unwrap_or(1.0)
    }

    /// Seconds in which a processor of reciprocal speed w computes the whole load.
    pub(super) fn compute(&self) -> f64 {
        self.w * self.tcp * self.load
    }

    /// Seconds in which a link of reciprocal speed z carries the whole load.
    pub(super) fn carry(&self) -> f64 {
        self.z * self.tcm * self.load
    }

    /// The processors one by one.
    pub(super) fn network(&self) -> ModelNetwork {
        let topology = &self.shape.topology;
        let layer = (0..topology.nodes()).map(|node| topology.distance(self.source, node)).collect();
        let mut seconds: Vec<f64> = (0..topology.nodes()).map(|node| self.seconds(node)).collect();
        if !self.source_computes {
            seconds[self.source as usize] = f64::INFINITY;
        }
        let link = |(index, (from, to)): (usize, (NodeId, NodeId))| ModelLink {
            from: from as usize,
            to: to as usize,
            startup: self.startups.get(index).copied().unwrap_or(self.startup),
            seconds: self.carry() * self.links.get(index).copied().unwrap_or(1.0),
        };
        ModelNetwork::new(self.source as usize, layer, seconds, self.links().into_iter().enumerate().map(link).collect())
    }
}
