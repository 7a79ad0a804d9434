//! Kernels: computations on a share.

use serde::{Deserialize, Serialize};

use equipoise::error::Result;
use equipoise::node::Worker;

/// A range of the input, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

impl Range {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// A computation on one share: it is fed the share's bytes in order, in pieces of any length.
pub trait Kernel: Send {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// If the computation failed; it is not asked again.
    fn eat(&mut self, bytes: &[u8], worker: &mut dyn Worker) -> Result<()>;

    /// The share has ended: its answer, in a form that only the maker of the kernel knows.
    ///
    /// # Errors
    /// If the computation failed.
    fn finish(&mut self, worker: &mut dyn Worker) -> Result<Vec<u8>>;
}

/// Makes kernels; every node has one.
pub trait Kernels {
    /// A kernel for this range of the input, on this node; `sample` if its answer is not wanted, only its time.
    ///
    /// # Errors
    /// If there can be none: a program that cannot be started, say.
    fn kernel(&self, node: u32, range: Range, sample: bool) -> Result<Box<dyn Kernel>>;

    /// The seconds per byte that a node is taken to need, where nothing may be computed on a sample to measure them.
    fn assumed(&self, node: u32) -> Option<f64> {
        let _ = node;
        None
    }
}
