//! Progress of a division: the bytes of their shares that this process's nodes have computed on.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::divisible::spread::kernel::{Kernel, Kernels, Range};
use equipoise::error::Result;
use equipoise::node::Worker;

/// Called with the number of bytes that are done and the number of all, on any thread.
pub type SpreadProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Kernels that report the bytes that they have taken.
pub(super) struct Watched {
    kernels: Rc<dyn Kernels>,
    taken: Arc<AtomicU64>,
    of: u64,
    progress: SpreadProgress,
}

impl Watched {
    /// `of` is the length of the shares of this process's nodes.
    pub fn new(kernels: Rc<dyn Kernels>, of: u64, progress: SpreadProgress) -> Watched {
        Watched { kernels, taken: Arc::default(), of, progress }
    }
}

impl Kernels for Watched {
    fn kernel(&self, node: u32, range: Range, sample: bool) -> Result<Box<dyn Kernel>> {
        let kernel = self.kernels.kernel(node, range, sample)?;
        Ok(Box::new(WatchedKernel { kernel, taken: self.taken.clone(), of: self.of, progress: self.progress.clone() }))
    }

    fn assumed(&self, node: u32) -> Option<f64> {
        self.kernels.assumed(node)
    }
}

struct WatchedKernel {
    kernel: Box<dyn Kernel>,
    taken: Arc<AtomicU64>,
    of: u64,
    progress: SpreadProgress,
}

impl Kernel for WatchedKernel {
    fn eat(&mut self, bytes: &[u8], worker: &mut dyn Worker) -> Result<()> {
        self.kernel.eat(bytes, worker)?;
        let taken = self.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        (self.progress)(taken, self.of);
        Ok(())
    }

    fn finish(&mut self, worker: &mut dyn Worker) -> Result<Vec<u8>> {
        self.kernel.finish(worker)
    }
}
