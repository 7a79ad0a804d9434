//! Collective operations that a world has itself, next to messages: on real ranks MPI's own, as immediate operations that the event loop polls.

/// One operation among some ranks. All of them begin the same operations in the same order.
#[cfg_attr(not(feature = "_ranks"), allow(dead_code, reason = "only real ranks have such operations"))]
pub(crate) enum Collective {
    /// The bytes of all members, one behind the other. Every member knows the lengths of all.
    AllGather { mine: Vec<u8>, lengths: Vec<usize> },
    /// Each number added up over all members, modulo 2^64.
    Sum(Vec<u64>),
    /// Each number added up over the members before this one; zeros for the first.
    SumBefore(Vec<u64>),
}

impl Collective {
    /// Name in the report of the nodes' waits.
    #[cfg(feature = "_ranks")]
    pub fn name(&self) -> &'static str {
        match self {
            Collective::AllGather { .. } => "all-gather",
            Collective::Sum(_) => "sum",
            Collective::SumBefore(_) => "scan",
        }
    }
}

/// Result of an operation: bytes of an all-gather, numbers of the others.
#[derive(Debug)]
#[cfg_attr(not(feature = "_ranks"), allow(dead_code, reason = "only real ranks have such operations"))]
pub(crate) enum Collected {
    Bytes(Vec<u8>),
    Numbers(Vec<u64>),
}

/// An operation that was begun. Numbers are unique within a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CollectiveId(pub u64);
