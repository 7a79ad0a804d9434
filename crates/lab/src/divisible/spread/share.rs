//! A node's own share: the part that has arrived, and the worker that computes on it.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

use super::cut::InputSource;
use super::kernel::{Kernel, Kernels, Range};
use super::order::{SpreadNodeReport, SpreadOrder};
use super::piece::{ACCEPTED, Gate, PIECE, Piece};
use super::plan::installment;
use equipoise::error::{Error, Result};
use equipoise::node::{Finished, Node, Ticks, Worker};
use equipoise::topology::NodeId;

/// Bytes that a worker takes between two checkpoints.
pub(super) const BITE: usize = 64 << 10;

/// Computing intervals with a shorter pause between them are reported as one ..
const PAUSE: Ticks = 20_000;
/// .. and all beyond this number.
const MOST_INTERVALS: usize = 256;

pub struct Share {
    me: NodeId,
    range: Range,
    installments: u32,
    room: u64,
    kernels: Rc<dyn Kernels>,
    /// The kernel while it is not lent to the worker, which is then idle.
    kernel: Option<Box<dyn Kernel>>,
    busy: bool,
    arrived: VecDeque<Bytes>,
    got: u64,
    fed: u64,
    /// The installments that were given to the worker, at least in part.
    begun: u32,
    /// Pieces that are acknowledged when the worker has made room.
    held: VecDeque<(NodeId, u64)>,
    outcome: Option<Result<Vec<u8>>>,
    report: SpreadNodeReport,
}

/// Result of a worker.
struct Fed {
    kernel: Option<Box<dyn Kernel>>,
    bytes: u64,
    /// The answer, if the share was finished with it.
    outcome: Result<Option<Vec<u8>>>,
}

impl Share {
    pub fn new(me: NodeId, order: &SpreadOrder, kernels: Rc<dyn Kernels>) -> Share {
        Share {
            me,
            range: order.ranges[me as usize],
            installments: order.installments.max(1),
            room: order.room.max(PIECE),
            kernels,
            kernel: None,
            busy: false,
            arrived: VecDeque::new(),
            got: 0,
            fed: 0,
            begun: 0,
            held: VecDeque::new(),
            outcome: None,
            report: SpreadNodeReport::default(),
        }
    }

    /// Returns true if there is anything to compute.
    pub fn is_due(&self) -> bool {
        !self.range.is_empty()
    }

    /// Returns true if nothing is left to do: it is computed, or has failed and all of it has come.
    pub fn is_over(&self) -> bool {
        !self.busy
            && self.held.is_empty()
            && self.got == self.range.len()
            && (self.outcome.is_some() || (!self.is_due() && self.begun == 0))
    }

    /// Failure of its computation, if there is one.
    pub fn failure(&self) -> Option<&Error> {
        self.outcome.as_ref()?.as_ref().err()
    }

    /// Lets the worker read the whole share by itself.
    pub fn read_oneself(&mut self, node: &Node, mut source: Box<dyn InputSource + Send>) {
        let range = self.range;
        self.begun = self.installments;
        self.got = range.len();
        let mut kernel = match self.kernels.kernel(self.me, range, false) {
            Ok(kernel) => kernel,
            Err(why) => return self.outcome = Some(Err(why)),
        };
        self.busy = true;
        node.start(move |worker| {
            let outcome = eat_all(&mut *kernel, &mut *source, range, worker).map(Some);
            Fed { kernel: Some(kernel), bytes: range.len(), outcome }
        });
    }

    /// Takes a piece of it that came from `from`.
    ///
    /// # Errors
    /// If it is not the next one.
    pub fn take(&mut self, node: &Node, from: NodeId, piece: Piece) -> Result<()> {
        if piece.at != self.range.start + self.got || piece.length() > self.range.len() - self.got {
            let what = format!("with bytes {}..{} of the input", piece.at, piece.at + piece.length());
            return Err(Error::Garbled { from, what, why: format!("byte {} comes next", self.range.start + self.got) });
        }
        let now = node.now();
        self.report.receiving = Some((self.report.receiving.map_or(now, |(first, _)| first), now));
        self.got += piece.length();
        self.held.push_back((from, piece.length()));
        if !matches!(self.outcome, Some(Err(_))) {
            self.arrived.push_back(piece.content());
        }
        self.report.waiting = self.report.waiting.max(self.got - self.fed);
        self.go_on(node);
        Ok(())
    }

    /// The worker is back.
    ///
    /// # Errors
    /// If it belongs to another node.
    pub fn fed(&mut self, node: &Node, finished: Finished) -> Result<()> {
        let foreign = |_| Error::Failed("a worker came back with something else than a share".into());
        let fed = *finished.output.downcast::<Fed>().map_err(foreign)?;
        self.busy = false;
        self.fed += fed.bytes;
        self.report.busy += finished.ended - finished.began;
        self.kernel = fed.kernel;
        let many = self.report.computing.len() >= MOST_INTERVALS;
        match self.report.computing.last_mut() {
            Some(last) if many || finished.began < last.1 + PAUSE => last.1 = finished.ended,
            _ => self.report.computing.push((finished.began, finished.ended)),
        }
        self.report.finished = finished.ended;
        match fed.outcome {
            Ok(None) => {}
            Ok(Some(answer)) => self.outcome = Some(Ok(answer)),
            Err(why) => {
                self.outcome = Some(Err(why));
                self.kernel = None;
                self.arrived.clear();
            }
        }
        self.go_on(node);
        Ok(())
    }

    /// Feeds the worker if there is enough input, and acknowledges the amount that there is room for.
    fn go_on(&mut self, node: &Node) {
        if matches!(self.outcome, Some(Err(_))) {
            self.fed = self.got;
        }
        self.feed(node);
        while let Some(&(from, bytes)) = self.held.front() {
            let before: u64 = self.held.iter().map(|(_, bytes)| bytes).sum();
            // The bytes up to and including this piece must be within the room.
            if (self.got - (before - bytes)).saturating_sub(self.fed) > self.room {
                break;
            }
            self.held.pop_front();
            node.send(from, ACCEPTED, &bytes);
        }
    }

    fn feed(&mut self, node: &Node) {
        let is_last = self.got == self.range.len();
        let waiting: u64 = self.got - self.fed;
        if self.busy || self.outcome.is_some() || self.arrived.is_empty() {
            return;
        }
        let next: u64 = (0..=self.begun).map(|round| installment(self.range.len(), round, self.installments)).sum();
        if !is_last && self.got < next && waiting < self.room {
            return;
        }
        while self.begun + 1 < self.installments
            && self.got >= (0..=self.begun).map(|round| installment(self.range.len(), round, self.installments)).sum()
        {
            self.begun += 1;
        }
        let made = match self.kernel.take() {
            Some(kernel) => Ok(kernel),
            None => self.kernels.kernel(self.me, self.range, false),
        };
        let mut kernel = match made {
            Ok(kernel) => kernel,
            Err(why) => {
                self.outcome = Some(Err(why));
                self.arrived.clear();
                self.fed = self.got;
                return;
            }
        };
        let meal: Vec<Bytes> = self.arrived.drain(..).collect();
        self.busy = true;
        node.start(move |worker| {
            let bytes = meal.iter().map(|piece| piece.len() as u64).sum();
            let mut eaten = Ok(());
            for bite in meal.iter().flat_map(|piece| piece.chunks(BITE)) {
                eaten = kernel.eat(bite, worker);
                if eaten.is_err() {
                    break;
                }
                worker.checkpoint();
            }
            let outcome = match eaten {
                Ok(()) if is_last => kernel.finish(worker).map(Some),
                Ok(()) => Ok(None),
                Err(why) => Err(why),
            };
            Fed { kernel: Some(kernel), bytes, outcome }
        });
    }

    /// Report and answer of the share; the answer is `None` for an empty share.
    pub fn ending(&mut self, gate: &Gate) -> (SpreadNodeReport, Option<Result<Vec<u8>>>) {
        let mut report = std::mem::take(&mut self.report);
        report.sent = gate.by_link.iter().map(|(&to, &bytes)| (to, bytes)).collect();
        report.pieces = gate.pieces;
        (report, self.outcome.take())
    }
}

/// Feeds a kernel with a range of the input.
///
/// # Errors
/// The source's or the kernel's.
pub fn eat_all(kernel: &mut dyn Kernel, source: &mut dyn InputSource, range: Range, worker: &mut dyn Worker) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + PIECE);
        buffer.clear();
        source.read(Range { start: at, end }, &mut buffer)?;
        for bite in buffer.chunks(BITE) {
            kernel.eat(bite, worker)?;
            worker.checkpoint();
        }
        at = end;
    }
    kernel.finish(worker)
}
