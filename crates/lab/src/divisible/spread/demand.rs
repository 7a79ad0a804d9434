//! The baseline that needs no plan: chunks on demand (self-scheduling). A node that has nothing left gets the next chunk from the originator, which also
//! works, on its own worker. A chunk travels straight to its node; the request for the next is the answer to the last.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

use super::cut::{Cutter, InputSource, Records};
use super::kernel::{Kernels, Range};
use super::order::{SpreadEnding, SpreadNodeReport};
use super::piece::{ACCEPTED, Gate, PIECE, PIECE_TAG, Piece};
use super::share::eat_all;
use equipoise::error::{Error, Result, Travelling};
use equipoise::node::{Event, Node, Tag, Ticks, open};
use equipoise::topology::NodeId;

const CHUNK: Tag = crate::tags::spread::CHUNK;
const NEXT: Tag = crate::tags::spread::NEXT;

/// Chunks that each node gets on average.
pub const CHUNKS_EACH: u64 = 16;

type Answer = (Range, Result<Vec<u8>>);
/// The answer, and from when to when it was computed.
type Worked = ((Range, Result<Vec<u8>, Travelling>), Ticks, Ticks);

/// One node's part of `nodes`; the originator gives the input, and gets the ending, in which only the times of computing are filled in.
///
/// # Errors
/// If the originator cannot read the input, or a rank is lost.
pub async fn on_demand(
    node: Node,
    origin: NodeId,
    nodes: u32,
    records: Records,
    kernels: Rc<dyn Kernels>,
    source: Option<Box<dyn InputSource>>,
) -> Result<Option<SpreadEnding>> {
    match source {
        Some(source) if node.me() == origin => lead(node, nodes, records, &*kernels, source).await.map(Some),
        _ => follow(node, origin, &*kernels).await.map(|()| None),
    }
}

async fn lead(node: Node, nodes: u32, records: Records, kernels: &dyn Kernels, mut source: Box<dyn InputSource>) -> Result<SpreadEnding> {
    let began = node.now();
    let mut reader = source.again()?;
    let wanted = (source.len() / (u64::from(nodes) * CHUNKS_EACH)).max(1);
    let mut chunks = Chunks { at: 0, len: source.len(), wanted, first: true };
    let mut cutter = Cutter::new(&mut *reader, records);
    let mut gate = Gate::default();
    let mut pieces: VecDeque<(NodeId, Range)> = VecDeque::new();
    let mut asking: VecDeque<NodeId> = (0..nodes).filter(|other| *other != node.me()).collect();
    let (mut away, mut is_working) = (nodes - 1, false);
    let mut reports = vec![SpreadNodeReport::default(); nodes as usize];
    let mut answers: Vec<(NodeId, Answer)> = Vec::new();
    loop {
        if !is_working && let Some(range) = chunks.next(&mut cutter)? {
            start(&node, kernels, range, Work::Read(source.again()?));
            is_working = true;
        }
        while pieces.is_empty()
            && let Some(asks) = asking.pop_front()
        {
            let range = chunks.next(&mut cutter)?;
            node.send(asks, CHUNK, &range);
            match range {
                None => away -= 1,
                Some(range) => pieces.extend(in_pieces(range).map(|piece| (asks, piece))),
            }
        }
        while gate.is_open()
            && let Some((owner, range)) = pieces.pop_front()
        {
            let mut flat = Piece::head(owner, range.start, range.len());
            source.read(range, &mut flat)?;
            gate.send(&node, owner, node.me(), Piece::filled(owner, range.start, flat)).await;
        }
        if !asking.is_empty() && pieces.is_empty() {
            continue;
        }
        if !is_working && away == 0 && gate.is_empty() {
            break;
        }
        match node.next_event().await {
            Event::Finished { finished, .. } => {
                let times = (finished.began, finished.ended);
                answers.push((node.me(), *finished.output.downcast::<Answer>().map_err(|_| foreign())?));
                note(&mut reports[node.me() as usize], times);
                is_working = false;
            }
            Event::Message(message) if message.envelope.tag == ACCEPTED.id() => gate.accepted(&node, open(&message, ACCEPTED)?).await,
            Event::Message(message) if message.envelope.tag == NEXT.id() => {
                let from = message.envelope.src;
                let ((range, answer), began, ended): Worked = open(&message, NEXT)?;
                note(&mut reports[from as usize], (began, ended));
                answers.push((from, (range, answer.map_err(Error::from))));
                asking.push_back(from);
            }
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
    }
    answers.sort_by_key(|(_, (range, _))| *range);
    let answers = answers.into_iter().map(|(from, (range, answer))| Ok((from, range, answer?))).collect();
    Ok(SpreadEnding { began, ended: node.now(), reports, answers })
}

async fn follow(node: Node, origin: NodeId, kernels: &dyn Kernels) -> Result<()> {
    loop {
        let Some(range) = node.receive::<Option<Range>>(origin, CHUNK).await? else { return Ok(()) };
        let mut arrived = Vec::new();
        let mut got = 0;
        while got < range.len() {
            let piece = Piece::open(&node.receive_message(Some(origin), PIECE_TAG).await?)?;
            node.send(origin, ACCEPTED, &piece.length());
            got += piece.length();
            arrived.push(piece.content());
        }
        start(&node, kernels, range, Work::Eat(arrived));
        let ((range, answer), began, ended) = loop {
            match node.next_event().await {
                Event::Finished { finished, .. } => {
                    break (*finished.output.downcast::<Answer>().map_err(|_| foreign())?, finished.began, finished.ended);
                }
                Event::RankLost(rank) => return Err(Error::RankLost { rank }),
                _ => {}
            }
        };
        node.send::<Worked>(origin, NEXT, &((range, answer.map_err(Travelling::from)), began, ended));
    }
}

enum Work {
    Read(Box<dyn InputSource + Send>),
    Eat(Vec<Bytes>),
}

fn start(node: &Node, kernels: &dyn Kernels, range: Range, work: Work) {
    let kernel = kernels.kernel(node.me(), range, false);
    node.start(move |worker| -> Answer {
        let answer = kernel.and_then(|mut kernel| match work {
            Work::Read(mut source) => eat_all(&mut *kernel, &mut *source, range, worker),
            Work::Eat(pieces) => {
                pieces.iter().try_for_each(|piece| kernel.eat(piece, worker))?;
                kernel.finish(worker)
            }
        });
        (range, answer)
    });
}

fn note(report: &mut SpreadNodeReport, (began, ended): (Ticks, Ticks)) {
    report.computing.push((began, ended));
    report.finished = ended;
}

fn foreign() -> Error {
    Error::Failed("a worker came back with something else than a chunk".into())
}

fn in_pieces(range: Range) -> impl Iterator<Item = Range> {
    (range.start..range.end).step_by(PIECE as usize).map(move |start| Range { start, end: range.end.min(start + PIECE) })
}

/// Remaining part of the input.
struct Chunks {
    at: u64,
    len: u64,
    wanted: u64,
    /// An empty input is one chunk.
    first: bool,
}

impl Chunks {
    fn next(&mut self, cutter: &mut Cutter<'_>) -> Result<Option<Range>> {
        if self.at == self.len && !(self.first && self.len == 0) {
            return Ok(None);
        }
        self.first = false;
        let end = cutter.end_from(self.at.saturating_add(self.wanted).min(self.len))?;
        let range = Range { start: self.at, end };
        self.at = end;
        Ok(Some(range))
    }
}
