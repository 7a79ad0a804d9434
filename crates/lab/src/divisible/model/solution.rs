//! The solution: the share of each processor, the finish time, and the speedup.

use equipoise::topology::NodeId;

/// Method by which a division was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Equations by layer or by dimension.
    ClosedForm,
    /// The equal-finish rule, from the leaves of a tree to its root.
    Recursion,
    /// The optimum of a linear program.
    LinearProgram,
    /// The equal-finish rule in the best of many orders of service, but not of all.
    Search,
    /// A linear program whose yes-or-no decisions, order of service, or choice of links are not proven to be the best.
    Approximation,
}

impl Method {
    /// For people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Method::ClosedForm => "closed form",
            Method::Recursion => "recursion",
            Method::LinearProgram => "linear program",
            Method::Search => "recursion, with an order of service that is not proven to be the best",
            Method::Approximation => "linear program, not proven to be the best",
        }
    }
}

/// The processors that are equally many hops away from the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerShare {
    pub processors: u64,
    /// The part of the whole load that one of them computes, their mean.
    pub alpha: f64,
    /// The part of the whole load that one of them receives, their mean.
    pub volume: f64,
}

/// Interval in which a message is in transit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageSpan {
    pub begin: f64,
    pub end: f64,
    /// The receiver, if it is one processor.
    pub to: Option<NodeId>,
}

/// One processor, or one of a layer of processors that all do the same. Times are seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessorShare {
    /// `None` for each processor of the layer.
    pub processor: Option<NodeId>,
    pub layer: u32,
    /// Number of processors that do the same.
    pub processors: u64,
    pub alpha: f64,
    pub volume: f64,
    /// Time at which the last of its share has arrived.
    pub arrival: f64,
    /// Time at which it is done, and has handed its results on if there are any; 0 if it gets nothing.
    pub finish: f64,
    pub computing: Vec<(f64, f64)>,
    pub sending: Vec<MessageSpan>,
    /// Intervals in which it returns results.
    pub returning: Vec<MessageSpan>,
}

/// A division of the load, and its worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    pub method: Method,
    pub processors: u64,
    pub layers: Vec<LayerShare>,
    /// Seconds until all is done.
    pub makespan: f64,
    /// The time of the source's processor alone, divided by the makespan.
    pub speedup: f64,
    /// The mean part of the makespan in which a processor computes.
    pub utilisation: f64,
    /// The reciprocal speed of one processor that is as good as all.
    pub equivalent_w: f64,
    /// Share of each layer where its processors do the same, else of each processor; empty for a large hypercube of one-port processors.
    pub parts: Vec<ProcessorShare>,
}
