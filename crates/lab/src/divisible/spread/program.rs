//! The distribution, as one node does it.
//!
//! ```text
//!   originator worker: its own share, read by itself
//!              for each installment: for each node in order: read a piece, send it towards its owner   (a limited amount under way)
//!   the others for a node below: send it on     for oneself: keep it until the installment is complete, then feed the worker
//!   all        report and answer to the originator when the share is done
//! ```

use std::rc::Rc;

use super::answers::Answers;
use super::kernel::{Kernels, Range};
use super::order::{DONE, SpreadEnding, SpreadOrder, unexpected};
use super::piece::{ACCEPTED, Gate, PIECE, PIECE_TAG, Piece};
use super::plan::installment;
use super::tree::SpreadTree;
use equipoise::error::{Error, Result, Travelling};
use equipoise::node::{Event, Message, Node, open};
use equipoise::topology::NodeId;

use super::cut::InputSource;
use super::share::Share;

/// One node's part. The originator gives the input and gets the ending.
///
/// # Errors
/// If the originator cannot read the input, a rank is lost, or a share's computation fails and another is not over two seconds later. What goes wrong with a
/// share's computation otherwise is in the ending.
pub async fn distribute(
    node: Node,
    tree: Rc<SpreadTree>,
    order: Rc<SpreadOrder>,
    kernels: Rc<dyn Kernels>,
    source: Option<Box<dyn InputSource>>,
) -> Result<Option<SpreadEnding>> {
    let me = node.me();
    let forwards = if me == order.origin { 0 } else { tree.below(me).map(|owner| order.ranges[owner as usize].len()).sum() };
    let share = Share::new(me, &order, kernels);
    let part = TreeNode { node, origin: order.origin, tree: tree.clone(), share, gate: Gate::default(), forwarded: 0 };
    match source {
        Some(source) if me == order.origin => part.lead(&order, source).await.map(Some),
        _ => part.follow(forwards).await.map(|()| None),
    }
}

struct TreeNode {
    node: Node,
    origin: NodeId,
    tree: Rc<SpreadTree>,
    share: Share,
    gate: Gate,
    forwarded: u64,
}

impl TreeNode {
    /// The originator's.
    async fn lead(mut self, order: &SpreadOrder, mut source: Box<dyn InputSource>) -> Result<SpreadEnding> {
        let began = self.node.now();
        let is_empty = source.is_empty();
        if self.share.is_due() || is_empty {
            self.share.read_oneself(&self.node, source.again()?);
        }
        let mut pieces = Pieces::new(order);
        let mut answers = Answers::new(order);
        loop {
            while self.gate.is_open()
                && let Some((owner, range)) = pieces.next()
            {
                let mut flat = Piece::head(owner, range.start, range.len());
                source.read(range, &mut flat)?;
                let way = || Error::Failed(format!("there is no way from node {} to node {owner}", self.origin));
                let to = self.tree.towards(self.origin, owner).ok_or_else(way)?;
                self.gate.send(&self.node, to, self.origin, Piece::filled(owner, range.start, flat)).await;
            }
            if answers.are_complete() && self.share.is_over() && self.gate.is_empty() {
                break;
            }
            answers.await_failed(&self.node, self.share.failure())?;
            if let Some(message) = self.next().await? {
                answers.take(&message)?;
            }
        }
        let (report, answer) = self.share.ending(&self.gate);
        Ok(answers.ending(&self.node, began, report, answer))
    }

    /// The program of all other nodes, which have `forwards` bytes to send on.
    async fn follow(mut self, forwards: u64) -> Result<()> {
        let is_due = self.share.is_due();
        let mut told = !is_due;
        loop {
            if !told && self.share.is_over() {
                let (report, answer) = self.share.ending(&self.gate);
                self.node.send(self.origin, DONE, &(report, answer.unwrap_or_else(|| Ok(Vec::new())).map_err(Travelling::from)));
                told = true;
            }
            if told && self.forwarded == forwards && self.gate.is_empty() {
                return Ok(());
            }
            if let Some(message) = self.next().await? {
                return Err(unexpected(&message));
            }
        }
    }

    /// Deals with the next event; hands back messages that are neither pieces nor acknowledgements.
    async fn next(&mut self) -> Result<Option<Message>> {
        match self.node.next_event().await {
            Event::Message(message) if message.envelope.tag == PIECE_TAG.id() => {
                let piece = Piece::open(&message)?;
                let from = message.envelope.src;
                if piece.owner == self.node.me() {
                    self.share.take(&self.node, from, piece)?;
                } else {
                    let lost = || Error::Failed(format!("a piece of node {}'s share came to node {}", piece.owner, self.node.me()));
                    let to = self.tree.towards(self.node.me(), piece.owner).ok_or_else(lost)?;
                    self.forwarded += piece.length();
                    self.gate.send(&self.node, to, from, piece).await;
                }
                Ok(None)
            }
            Event::Message(message) if message.envelope.tag == ACCEPTED.id() => {
                self.gate.accepted(&self.node, open(&message, ACCEPTED)?).await;
                Ok(None)
            }
            Event::Message(message) => Ok(Some(message)),
            Event::Finished { finished, .. } => {
                self.share.fed(&self.node, finished)?;
                Ok(None)
            }
            Event::RankLost(rank) => Err(Error::RankLost { rank }),
            _ => Ok(None),
        }
    }
}

/// The pieces that the originator sends, in order.
struct Pieces<'a> {
    order: &'a SpreadOrder,
    round: u32,
    turn: usize,
    /// Remaining part of the current installment.
    left: Range,
}

impl<'a> Pieces<'a> {
    fn new(order: &'a SpreadOrder) -> Pieces<'a> {
        let mut pieces = Pieces { order, round: 0, turn: 0, left: Range::default() };
        pieces.left = pieces.installment();
        pieces
    }

    fn installment(&self) -> Range {
        let Some(&owner) = self.order.order.get(self.turn) else { return Range::default() };
        let range = self.order.ranges[owner as usize];
        let before: u64 = (0..self.round).map(|round| installment(range.len(), round, self.order.installments)).sum();
        let start = range.start + before;
        Range { start, end: start + installment(range.len(), self.round, self.order.installments) }
    }
}

impl Iterator for Pieces<'_> {
    type Item = (NodeId, Range);

    fn next(&mut self) -> Option<(NodeId, Range)> {
        while self.left.is_empty() {
            self.turn += 1;
            if self.turn >= self.order.order.len() {
                self.turn = 0;
                self.round += 1;
            }
            if self.round >= self.order.installments || self.order.order.is_empty() {
                return None;
            }
            self.left = self.installment();
        }
        let range = Range { start: self.left.start, end: self.left.end.min(self.left.start + PIECE) };
        self.left.start = range.end;
        Some((self.order.order[self.turn], range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn pieces_cover_every_share_in_order() {
        let ranges = vec![Range { start: 0, end: 10 }, Range { start: 700_010, end: 700_013 }, Range { start: 10, end: 700_010 }];
        for installments in [1, 2, 3, 7] {
            let order = SpreadOrder { origin: 0, ranges: ranges.clone(), installments, order: vec![2, 1], room: 1 };
            let mut at = BTreeMap::from([(1, 700_010), (2, 10)]);
            for (owner, range) in Pieces::new(&order) {
                assert!(!range.is_empty() && range.len() <= PIECE);
                assert_eq!(at.insert(owner, range.end), Some(range.start));
            }
            assert_eq!(at, BTreeMap::from([(1, 700_013), (2, 700_010)]));
        }
        assert_eq!(
            Pieces::new(&SpreadOrder { origin: 0, ranges: vec![Range { start: 0, end: 9 }], installments: 3, order: vec![], room: 1 })
                .count(),
            0
        );
    }
}
