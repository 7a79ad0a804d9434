//! Measurement of the costs of computing and sending.
//!
//! All nodes compute on the same sample of the real input at the same time, as they will later, pass after pass for some time; a pass on a
//! tiny piece gives the start-up. Then the links are measured one after another, down the tree: round trips of a short message, and the
//! time until some pieces are acknowledged, as in the distribution itself.

use std::rc::Rc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::kernel::{Kernels, Range};
use super::piece::PIECE;
use super::tree::SpreadTree;
use crate::tags::epochs;
use equipoise::error::{Error, Result};
use equipoise::node::collective::Group;
use equipoise::node::{Event, Node, Tag, Ticks};
use equipoise::topology::NodeId;

const SAMPLE: Tag = crate::tags::spread::SAMPLE;
const PROBE: Tag = crate::tags::spread::PROBE;
const ECHO: Tag = crate::tags::spread::ECHO;
const COSTS: Tag = crate::tags::spread::COSTS;
const BACK: Tag = crate::tags::spread::BACK;

/// A link: seconds until a message begins to arrive, and per byte after that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkCosts {
    pub startup: f64,
    pub per_byte: f64,
}

/// Costs of computing and sending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadCosts {
    /// Seconds per byte, by node.
    pub compute: Vec<f64>,
    /// Seconds that a kernel takes to start and end, by node.
    pub start: Vec<f64>,
    /// The link from its parent, by node; the originator's is from the disk.
    pub links: Vec<LinkCosts>,
}

impl SpreadCosts {
    /// Seconds per byte in which the originator reads and computes its own share.
    pub fn own(&self, origin: NodeId) -> f64 {
        self.compute[origin as usize] + self.links[origin as usize].per_byte
    }
}

/// Maximum number of passes that a node computes.
const MOST_PASSES: u32 = 200;
/// Number of bytes of the pass that measures the start-up.
const TINY: usize = 64;
const PINGS: u32 = 8;
/// Number of times that the bulk is sent, but only once if it takes longer than this.
const BULKS: u32 = 3;
const LONG_BULK: Ticks = 10_000_000;

/// One node's part. The originator gives the sample, the length of its first record, and how long reading takes in seconds per byte; it gets the
/// costs. `bulk` bytes are sent over every link, and
/// every node computes for `enough` ticks at least.
///
/// # Errors
/// If a rank is lost.
pub async fn calibrate(
    node: Node,
    tree: Rc<SpreadTree>,
    kernels: Rc<dyn Kernels>,
    given: Option<(Bytes, f64)>,
    bulk: u64,
    enough: Ticks,
) -> Result<Option<SpreadCosts>> {
    let me = node.me();
    let Some(group) = Group::spaced(0, 1, tree.len(), me) else { return Ok(None) };
    let (sample, reading) = match given {
        Some((sample, reading)) => (sample, reading),
        None => (node.receive_message(Some(tree.parent(me)), SAMPLE).await?.body.into(), 0.0),
    };
    for &child in tree.children(me) {
        node.send_bytes(child, SAMPLE, sample.clone());
    }
    group.barrier(&node).await?;
    let mine = match kernels.assumed(me) {
        Some(per_byte) => (0.0, per_byte),
        None => computing(&node.epoch(epochs::COMPUTING), &*kernels, &sample, enough).await?,
    };
    let all = gathered(&node, &tree, mine).await?;
    let links = links(&node, &tree, bulk).await?;
    if me != tree.root() {
        return Ok(None);
    }
    let (start, compute) = all.into_iter().unzip();
    let mut costs = SpreadCosts { compute, start, links: vec![LinkCosts::default(); tree.len() as usize] };
    for (child, link) in links {
        costs.links[child as usize] = link;
    }
    costs.links[tree.root() as usize].per_byte = reading;
    Ok(Some(costs))
}

/// The costs of computing of all nodes, in their order, at the originator; what is below each node on the others.
async fn gathered(node: &Node, tree: &SpreadTree, mine: (f64, f64)) -> Result<Vec<(f64, f64)>> {
    let me = node.me();
    let mut all = vec![(me, mine)];
    for &child in tree.children(me) {
        all.append(&mut node.receive(child, COSTS).await?);
    }
    if me != tree.root() {
        node.send(tree.parent(me), COSTS, &all);
    }
    all.sort_unstable_by_key(|(node, _)| *node);
    Ok(all.into_iter().map(|(_, costs)| costs).collect())
}

/// Seconds to start, and seconds per byte.
async fn computing(node: &Node, kernels: &dyn Kernels, sample: &Bytes, enough: Ticks) -> Result<(f64, f64)> {
    let seconds = |ticks: Ticks| ticks as f64 / 1e9;
    if sample.is_empty() {
        return Ok((0.0, 0.0));
    }
    let tiny = sample.slice(..sample.len().min(TINY));
    let (first, second) = (pass(node, kernels, tiny.clone()).await?, pass(node, kernels, tiny.clone()).await?);
    let tiny = (seconds(first.min(second)), tiny.len());
    let (mut took, mut bytes, mut passes) = (0, 0, 0);
    let mut length = (sample.len() / 16).max(1).min(sample.len());
    while took < enough && passes < MOST_PASSES {
        let once = pass(node, kernels, sample.slice(..length)).await?;
        if once < enough / 16 && length < sample.len() {
            length = sample.len().min(length * 4);
            continue;
        }
        took += once;
        bytes += length;
        passes += 1;
    }
    // Two points of a straight line.
    let (took, bytes) = (seconds(took) / f64::from(passes.max(1)), bytes as f64 / f64::from(passes.max(1)));
    if bytes < 4.0 * tiny.1 as f64 {
        return Ok((0.0, took / bytes));
    }
    let slope = (took - tiny.0) / (bytes - tiny.1 as f64);
    let per_byte = slope.clamp(took / bytes / 100.0, took / bytes);
    Ok(((took - per_byte * bytes).max(0.0), per_byte))
}

/// Measures the time of a kernel for these bytes. A failure is reported later, when it matters, but a kernel that stands still is an error, since it
/// would do so each time.
async fn pass(node: &Node, kernels: &dyn Kernels, bytes: Bytes) -> Result<Ticks> {
    let range = Range { start: 0, end: bytes.len() as u64 };
    let Ok(mut kernel) = kernels.kernel(node.me(), range, true) else { return Ok(0) };
    node.start(move |worker| kernel.eat(&bytes, worker).and_then(|()| kernel.finish(worker)));
    loop {
        match node.next_event().await {
            Event::Finished { finished, .. } => {
                return match finished.output.downcast::<Result<Vec<u8>>>().as_deref() {
                    Ok(Err(why @ Error::Stuck { .. })) => Err(why.clone()),
                    _ => Ok(finished.ended - finished.began),
                };
            }
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
    }
}

/// The links below this node, measured when the node above says so (by an empty probe).
async fn links(node: &Node, tree: &SpreadTree, bulk: u64) -> Result<Vec<(NodeId, LinkCosts)>> {
    let me = node.me();
    let parent = tree.parent(me);
    if me != tree.root() {
        while !node.receive_message(Some(parent), PROBE).await?.body.is_empty() {
            node.send(parent, ECHO, &());
        }
    }
    let mut measured = Vec::new();
    for &child in tree.children(me) {
        measured.push((child, link(node, child, bulk).await?));
        node.send_bytes(child, PROBE, Bytes::new());
        measured.append(&mut node.receive(child, BACK).await?);
    }
    if me != tree.root() {
        node.send(parent, BACK, &measured);
        measured.clear();
    }
    Ok(measured)
}

async fn link(node: &Node, child: NodeId, bulk: u64) -> Result<LinkCosts> {
    let mut trip = Ticks::MAX;
    for _ in 0..PINGS {
        let began = node.now();
        node.send_bytes(child, PROBE, Bytes::from_static(&[1]));
        node.receive::<()>(child, ECHO).await?;
        trip = trip.min(node.now() - began);
    }
    let pieces = bulk.div_ceil(PIECE).max(1);
    let piece = Bytes::from(vec![1; (bulk / pieces).max(1) as usize]);
    let mut took = Ticks::MAX;
    for _ in 0..BULKS {
        let began = node.now();
        for _ in 0..pieces {
            node.send_bytes(child, PROBE, piece.clone());
        }
        let mut first = None;
        for _ in 0..pieces {
            node.receive::<()>(child, ECHO).await?;
            first.get_or_insert(node.now());
        }
        let ended = node.now();
        took = took.min(ended - began);
        if took > LONG_BULK {
            // A limited link lets a first burst through at once; what follows is what it lasts at.
            let lasting = first.map_or(0, |first| (ended - first) * pieces / (pieces - 1).max(1));
            took = took.max(lasting + trip);
            break;
        }
    }
    // A start-up that seems to be all is one that was disturbed.
    let seconds = took.saturating_sub(trip).max(took / 4) as f64 / 1e9;
    Ok(LinkCosts { startup: trip as f64 / 2e9, per_byte: seconds / (pieces * piece.len() as u64) as f64 })
}
