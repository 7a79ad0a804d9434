//! Pieces of shares in transit, and the sending end of a node's links.
//!
//! The number of bytes in transit from a node is limited, whatever the number of its links: the next piece leaves when an earlier one was
//! acknowledged. So links are served in the order of the pieces, and a receiver that is slow or short of memory holds up its sender.

use std::collections::VecDeque;

use bytes::Bytes;

use equipoise::error::{Error, Result};
use equipoise::node::{Message, Node, Tag};
use equipoise::topology::NodeId;

/// The longest piece, in bytes of the input.
pub const PIECE: u64 = 256 << 10;
/// Maximum number of bytes in transit from a node before the next piece leaves. More would fill the queues of slow links: at 100 Mbit/s between
/// four hosts 1 MiB made a division 5 % slower (lost packets, and pieces that arrive out of turn).
const UNDER_WAY: u64 = 3 * PIECE / 2;

pub const PIECE_TAG: Tag = crate::tags::spread::PIECE;
pub const ACCEPTED: Tag = crate::tags::spread::ACCEPTED;

/// Bytes in front of a piece's content.
pub const HEAD: usize = 16;

/// A piece as it travels: its owner, its start in the input, and its bytes.
#[derive(Clone, Debug)]
pub struct Piece {
    pub owner: NodeId,
    pub at: u64,
    flat: Bytes,
}

impl Piece {
    /// A buffer for a piece, with its head; the content is appended to it.
    pub fn head(owner: NodeId, at: u64, content: u64) -> Vec<u8> {
        let mut flat = Vec::with_capacity(HEAD + content as usize);
        flat.extend_from_slice(&u64::from(owner).to_le_bytes());
        flat.extend_from_slice(&at.to_le_bytes());
        flat
    }

    /// A filled buffer as a piece.
    pub fn filled(owner: NodeId, at: u64, flat: Vec<u8>) -> Piece {
        Piece { owner, at, flat: flat.into() }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// If it is no piece.
    pub fn open(message: &Message) -> Result<Piece> {
        let body = &message.body;
        let number = |at: usize| body.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        match (number(0).and_then(|owner| NodeId::try_from(owner).ok()), number(8)) {
            (Some(owner), Some(at)) => Ok(Piece { owner, at, flat: body.clone().into() }),
            _ => Err(Error::Garbled {
                from: message.envelope.src,
                what: format!("'{}'", PIECE_TAG.name()),
                why: format!("it has {} bytes only", body.len()),
            }),
        }
    }

    /// Its part of the input.
    pub fn content(&self) -> Bytes {
        self.flat.slice(HEAD..)
    }

    /// Its length in bytes of the input.
    pub fn length(&self) -> u64 {
        (self.flat.len() - HEAD) as u64
    }
}

/// The sending end of all links of a node.
#[derive(Default)]
pub struct Gate {
    waiting: VecDeque<(NodeId, NodeId, Piece)>,
    under_way: u64,
    /// Bytes sent, and pieces.
    pub sent: u64,
    pub pieces: u64,
    /// The same by the node they were sent to.
    pub by_link: std::collections::BTreeMap<NodeId, u64>,
}

impl Gate {
    /// Returns true if a piece would leave at once.
    pub fn is_open(&self) -> bool {
        self.waiting.is_empty() && self.under_way < UNDER_WAY
    }

    /// Returns true if nothing waits, and nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way == 0
    }

    /// Sends a piece on the link to `to` as soon as there is room. The piece came from `from` (the node itself, if it is the originator),
    /// which receives the acknowledgement when the piece leaves.
    pub async fn send(&mut self, node: &Node, to: NodeId, from: NodeId, piece: Piece) {
        self.waiting.push_back((to, from, piece));
        self.pump(node).await;
    }

    /// Notes the acknowledgement of a piece of this number of bytes.
    pub async fn accepted(&mut self, node: &Node, bytes: u64) {
        self.under_way = self.under_way.saturating_sub(bytes);
        self.pump(node).await;
    }

    async fn pump(&mut self, node: &Node) {
        while self.under_way < UNDER_WAY {
            let Some((to, from, piece)) = self.waiting.pop_front() else { break };
            node.ready_to_send().await;
            self.under_way += piece.length();
            self.sent += piece.length();
            self.pieces += 1;
            *self.by_link.entry(to).or_default() += piece.length();
            if from != node.me() {
                node.send(from, ACCEPTED, &piece.length());
            }
            node.send_bytes(to, PIECE_TAG, piece.flat);
        }
    }
}
