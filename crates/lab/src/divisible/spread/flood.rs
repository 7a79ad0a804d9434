//! The rank program of the layered distribution: every node waits for all that it is to get, then computes and sends on over all its links at once.
//!
//! On real ranks of one host there are no links of the model's speed, so they can be emulated: a piece leaves when the link would have carried it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;

use super::answers::Answers;
use super::cut::InputSource;
use super::kernel::{Kernel, Kernels, Range};
use super::layers::Routes;
use super::order::{DONE, SpreadEnding, SpreadNodeReport, SpreadOrder, unexpected};
use super::piece::{PIECE, PIECE_TAG, Piece};
use super::share::{BITE, eat_all};
use equipoise::error::{Error, Result, Travelling};
use equipoise::node::{Event, Finished, Message, Node, Ticks};
use equipoise::topology::NodeId;

/// One node's part. The originator gives the input and gets the ending. `link` is the time of a link for a byte, in seconds, if links are emulated.
///
/// # Errors
/// As [`distribute`](super::program::distribute).
pub async fn flood(
    node: Node,
    routes: Rc<Routes>,
    order: Rc<SpreadOrder>,
    kernels: Rc<dyn Kernels>,
    source: Option<Box<dyn InputSource>>,
    link: Option<f64>,
) -> Result<Option<SpreadEnding>> {
    let range = order.ranges[node.me() as usize];
    let part = FloodNode {
        origin: order.origin,
        link,
        range,
        busy: false,
        outcome: None,
        early: VecDeque::new(),
        report: SpreadNodeReport::default(),
        node,
        routes,
        kernels,
    };
    match source {
        Some(source) if part.node.me() == order.origin => part.lead(&order, source).await.map(Some),
        _ => part.follow().await.map(|()| None),
    }
}

struct FloodNode {
    node: Node,
    origin: NodeId,
    link: Option<f64>,
    routes: Rc<Routes>,
    kernels: Rc<dyn Kernels>,
    range: Range,
    /// Whether the worker computes.
    busy: bool,
    outcome: Option<Result<Vec<u8>>>,
    /// Messages that came while this node was sending.
    early: VecDeque<Message>,
    report: SpreadNodeReport,
}

impl FloodNode {
    /// The originator's.
    async fn lead(mut self, order: &SpreadOrder, mut source: Box<dyn InputSource>) -> Result<SpreadEnding> {
        let began = self.node.now();
        if !self.range.is_empty() || source.is_empty() {
            let (mut own, range) = (source.again()?, self.range);
            self.compute(move |kernel, worker| eat_all(kernel, &mut *own, range, worker));
        }
        self.send_on(|range, into| source.read(range, into)).await?;
        let mut answers = Answers::new(order);
        while !answers.are_complete() || self.busy {
            answers.await_failed(&self.node, self.outcome.as_ref().and_then(|outcome| outcome.as_ref().err()))?;
            if let Some(message) = self.next().await? {
                answers.take(&message)?;
            }
        }
        Ok(answers.ending(&self.node, began, self.report, self.outcome))
    }

    /// The program of all other nodes.
    async fn follow(mut self) -> Result<()> {
        let volume = self.routes.volume(self.node.me());
        let mut got = Arrived::default();
        while got.bytes < volume {
            let Some(message) = self.next().await? else { continue };
            if message.envelope.tag != PIECE_TAG.id() {
                return Err(unexpected(&message));
            }
            let now = self.node.now();
            self.report.receiving = Some((self.report.receiving.map_or(now, |(first, _)| first), now));
            let piece = Piece::open(&message)?;
            got.take(piece.at, piece.content());
        }
        self.report.waiting = volume;
        if !self.range.is_empty() {
            let mut meal = Vec::new();
            got.slices(self.range, |slice| meal.push(slice))?;
            self.compute(move |kernel, worker| {
                for bite in meal.iter().flat_map(|slice| slice.chunks(BITE)) {
                    kernel.eat(bite, worker)?;
                    worker.checkpoint();
                }
                kernel.finish(worker)
            });
        }
        self.send_on(|range, into| got.slices(range, |slice| into.extend_from_slice(&slice))).await?;
        drop(got);
        if self.range.is_empty() {
            return Ok(());
        }
        while self.busy {
            if let Some(message) = self.next().await? {
                return Err(unexpected(&message));
            }
        }
        let answer = self.outcome.take().unwrap_or_else(|| Ok(Vec::new()));
        self.node.send(self.origin, DONE, &(std::mem::take(&mut self.report), answer.map_err(Travelling::from)));
        Ok(())
    }

    /// Lets the worker compute on the share.
    fn compute(&mut self, work: impl FnOnce(&mut dyn Kernel, &mut dyn equipoise::node::Worker) -> Result<Vec<u8>> + Send + 'static) {
        match self.kernels.kernel(self.node.me(), self.range, false) {
            Err(why) => self.outcome = Some(Err(why)),
            Ok(mut kernel) => {
                self.busy = true;
                self.node.start(move |worker| work(&mut *kernel, worker));
            }
        }
    }

    /// Sends on all links at once what they are to carry: a piece on each in turn. Emulated links have carried a piece when it leaves.
    async fn send_on(&mut self, mut read: impl FnMut(Range, &mut Vec<u8>) -> Result<()>) -> Result<()> {
        let began = self.node.now();
        let mut links: Vec<Outgoing> = self.routes.links_from(self.node.me()).map(|(to, ranges)| Outgoing::new(to, ranges)).collect();
        while let Some((end, at)) = links.iter().enumerate().filter_map(|(at, link)| Some((link.end_of_next()?, at))).min() {
            if let Some(seconds) = self.link {
                self.wait(began + (end as f64 * seconds * 1e9) as Ticks).await?;
            }
            let link = &mut links[at];
            let Some(range) = link.left.pop() else { continue };
            link.sent = end;
            let mut flat = Piece::head(link.to, range.start, range.len());
            read(range, &mut flat)?;
            self.node.ready_to_send().await;
            self.report.pieces += 1;
            self.node.send_bytes(link.to, PIECE_TAG, flat.into());
        }
        self.report.sent = links.into_iter().map(|link| (link.to, link.sent)).collect();
        Ok(())
    }

    /// Deals with events until then; messages are kept.
    async fn wait(&mut self, until: Ticks) -> Result<()> {
        if self.node.now() < until {
            self.node.expect_at(until);
        }
        while self.node.now() < until {
            let message = self.next_event().await?;
            self.early.extend(message);
        }
        Ok(())
    }

    /// Deals with the next event, or takes a message that came while this node was sending; hands messages back.
    async fn next(&mut self) -> Result<Option<Message>> {
        match self.early.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.next_event().await,
        }
    }

    /// Deals with the next event; hands messages back.
    async fn next_event(&mut self) -> Result<Option<Message>> {
        match self.node.next_event().await {
            Event::Message(message) => Ok(Some(message)),
            Event::Finished { finished, .. } => self.computed(finished).map(|()| None),
            Event::RankLost(rank) => Err(Error::RankLost { rank }),
            _ => Ok(None),
        }
    }

    fn computed(&mut self, finished: Finished) -> Result<()> {
        let foreign = |_| Error::Failed("a worker came back with something else than an answer".into());
        let outcome = *finished.output.downcast::<Result<Vec<u8>>>().map_err(foreign)?;
        self.busy = false;
        self.report.busy = finished.ended - finished.began;
        self.report.computing = vec![(finished.began, finished.ended)];
        self.report.finished = finished.ended;
        self.outcome = Some(outcome);
        Ok(())
    }
}

/// A link, and what it is still to carry.
struct Outgoing {
    to: NodeId,
    /// In pieces, the last first.
    left: Vec<Range>,
    /// Bytes that it has carried.
    sent: u64,
}

impl Outgoing {
    fn new(to: NodeId, ranges: &[Range]) -> Outgoing {
        let mut left: Vec<Range> = ranges.iter().flat_map(|range| pieces(*range)).collect();
        left.reverse();
        Outgoing { to, left, sent: 0 }
    }

    /// Bytes that it has carried when the next piece is through.
    fn end_of_next(&self) -> Option<u64> {
        self.left.last().map(|next| self.sent + next.len())
    }
}

/// A range in pieces.
fn pieces(range: Range) -> impl Iterator<Item = Range> {
    (range.start..range.end).step_by(PIECE as usize).map(move |start| Range { start, end: range.end.min(start + PIECE) })
}

/// Pieces that have arrived, by their start in the input.
#[derive(Default)]
struct Arrived {
    pieces: BTreeMap<u64, Bytes>,
    bytes: u64,
}

impl Arrived {
    fn take(&mut self, at: u64, content: Bytes) {
        self.bytes += content.len() as u64;
        self.pieces.insert(at, content);
    }

    /// The bytes of a range, in order, as slices of what came.
    fn slices(&self, range: Range, mut take: impl FnMut(Bytes)) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let found = self.pieces.range(..=at).next_back();
            let slice = found.and_then(|(start, content)| {
                let (from, until) = ((at - start) as usize, ((range.end - start) as usize).min(content.len()));
                (from < until).then(|| content.slice(from..until))
            });
            let slice = slice.ok_or_else(|| Error::wrong_result(format!("byte {at} of the input never came")))?;
            at += slice.len() as u64;
            take(slice);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_put_together() {
        let mut got = Arrived::default();
        for (at, text) in [(10, "klm"), (0, "abcdefghij"), (13, "nop"), (20, "uvw")] {
            got.take(at, Bytes::from_static(text.as_bytes()));
        }
        let bytes = |start, end| {
            let mut all = Vec::new();
            got.slices(Range { start, end }, |slice| all.extend_from_slice(&slice)).map(|()| String::from_utf8(all).unwrap())
        };
        assert_eq!(bytes(8, 15).unwrap(), "ijklmno");
        assert_eq!((bytes(21, 22).unwrap(), bytes(5, 5).unwrap()), ("v".into(), String::new()));
        assert_eq!(bytes(14, 18).unwrap_err().to_string(), "byte 16 of the input never came");
        assert_eq!(got.bytes, 19);
    }

    #[test]
    fn pieces_are_no_longer_than_one() {
        let lengths: Vec<u64> = pieces(Range { start: 5, end: 5 + 2 * PIECE + 1 }).map(|piece| piece.len()).collect();
        assert_eq!(lengths, [PIECE, PIECE, 1]);
    }
}
