//! The trees: which node has how many children, from a cryptographic hash of the way to it.
//!
//! A node's state is 20 bytes. The root's is SHA-1 of 16 zero bytes and the seed, child i's SHA-1 of its parent's state and i (numbers in 4
//! bytes, big-endian). So a tree is fixed by its parameters, and any part of it can be grown anywhere, from the state alone.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};
use sha1::block_api::compress;

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knot {
    pub(super) state: [u8; 20],
    /// Edges between the root and it.
    pub depth: u32,
}

/// SHA-1's state before the first block (FIPS 180-4, section 5.3.1).
const BEFORE: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// A block of SHA-1.
type Block = [u8; 64];

/// A short message as the one block that it fills with its padding (FIPS 180-4, section 5.1.1).
fn block_of(message: &[u8]) -> Block {
    let mut block = [0; 64];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    block[56..].copy_from_slice(&(8 * message.len() as u64).to_be_bytes());
    block
}

/// SHA-1 of a message of one block, by the processor's own instructions where it has them. A hasher for messages of any length costs as
/// much again as the block itself.
fn digest(block: &Block) -> [u8; 20] {
    let mut words = BEFORE;
    compress(&mut words, std::slice::from_ref(block));
    let mut bytes = [0; 20];
    for (four, word) in bytes.chunks_exact_mut(4).zip(words) {
        four.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

impl Knot {
    pub(super) fn root(seed: u32) -> Knot {
        let mut bytes = [0; 20];
        bytes[16..].copy_from_slice(&seed.to_be_bytes());
        Knot { state: digest(&block_of(&bytes)), depth: 0 }
    }

    /// Pushes its first `children` children onto a stack.
    pub(super) fn grow(&self, children: u32, stack: &mut Vec<Knot>) {
        /// Blocks that are written before the first of them is read: right after it was written in parts, it can't be read as a whole, and the
        /// processor waits (a quarter of a block's time).
        const AHEAD: u32 = 8;
        if children == 0 {
            return;
        }
        let mut message = [0; 24];
        message[..20].copy_from_slice(&self.state);
        let mut blocks = [block_of(&message); AHEAD as usize];
        for first in (0..children).step_by(AHEAD as usize) {
            let indices = first..children.min(first + AHEAD);
            for (block, index) in blocks.iter_mut().zip(indices.clone()) {
                block[20..24].copy_from_slice(&index.to_be_bytes());
            }
            stack.extend(blocks.iter().zip(indices).map(|(block, _)| Knot { state: digest(block), depth: self.depth + 1 }));
        }
    }

    /// Its random value, below 2^31.
    pub(super) fn value(&self) -> u32 {
        let [.., a, b, c, d] = self.state;
        u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff
    }
}

/// Dependence of a geometric tree's expected number of children on the depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// b0 above depth d, then 0.
    Fixed,
    /// Falls linearly to 0 at depth d.
    Linear,
    /// Swings between 1 / b0 and b0, until depth 5 d.
    Cyclic,
    /// Falls exponentially, to 1 at depth d.
    Exponential,
}

/// Distribution of the number of children of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Geometric distribution, whose mean depends on the depth by this shape.
    Geometric(Shape),
    /// `m` with probability `q`, else none; the root has `b0`.
    Binomial,
    /// Geometric above half the depth d, then binomial.
    Hybrid(Shape),
}

/// The parameters of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tree {
    pub kind: Kind,
    /// Expected number of children of the root.
    pub b0: f64,
    /// The depth d of geometric trees.
    pub depth: u32,
    /// Probability and number of children of a node in binomial trees.
    pub q: f64,
    pub m: u32,
    pub seed: u32,
}

/// The parameters that UTS itself has when none are given.
pub(super) const DEFAULT: Tree = Tree { kind: Kind::Geometric(Shape::Linear), b0: 4.0, depth: 6, q: 0.234_375, m: 4, seed: 0 };

/// The sample trees that come with UTS: name, parameters, and their nodes, greatest depth and leaves.
pub(super) const NAMED: [(&str, Tree, (u64, u32, u64)); 8] = [
    ("T1", Tree { kind: Kind::Geometric(Shape::Fixed), depth: 10, seed: 19, ..DEFAULT }, (4_130_071, 10, 3_305_118)),
    ("T2", Tree { kind: Kind::Geometric(Shape::Cyclic), b0: 6.0, depth: 16, seed: 502, ..DEFAULT }, (4_117_769, 81, 2_342_762)),
    ("T3", Tree { kind: Kind::Binomial, b0: 2000.0, q: 0.124_875, m: 8, seed: 42, ..DEFAULT }, (4_112_897, 1_572, 3_599_034)),
    ("T4", Tree { kind: Kind::Hybrid(Shape::Linear), b0: 6.0, depth: 16, seed: 1, ..DEFAULT }, (4_132_453, 134, 3_108_986)),
    ("T5", Tree { kind: Kind::Geometric(Shape::Linear), depth: 20, seed: 34, ..DEFAULT }, (4_147_582, 20, 2_181_318)),
    ("T1L", Tree { kind: Kind::Geometric(Shape::Fixed), depth: 13, seed: 29, ..DEFAULT }, (102_181_082, 13, 81_746_377)),
    ("T2L", Tree { kind: Kind::Geometric(Shape::Cyclic), b0: 7.0, depth: 23, seed: 220, ..DEFAULT }, (96_793_510, 67, 53_791_152)),
    ("T3L", Tree { kind: Kind::Binomial, b0: 2000.0, q: 0.200_014, m: 5, seed: 7, ..DEFAULT }, (111_345_631, 17_844, 89_076_904)),
];

/// A tree with what its numbers of children are drawn by worked out beforehand.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    tree: Tree,
    /// Distribution at each depth, as far as it is worked out beforehand.
    levels: Vec<Level>,
}

/// Distribution of the number of children of the nodes at a depth.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    /// No children.
    Barren,
    /// This number of children.
    Certain(u32),
    /// Geometric distribution: ln (1 - p).
    Geometric(f64),
    /// `m` or none.
    Binomial,
}

impl Draw {
    pub fn new(tree: Tree) -> Draw {
        /// Maximum number of depths that are computed beforehand.
        const MOST: u32 = 4096;
        let levels = (0..tree.depth.saturating_mul(5).saturating_add(2).min(MOST)).map(|depth| tree.level(depth)).collect();
        Draw { tree, levels }
    }

    /// Number of children of a node.
    pub fn children(&self, knot: &Knot) -> u32 {
        let level = self.levels.get(knot.depth as usize).copied().unwrap_or_else(|| self.tree.level(knot.depth));
        let uniform = f64::from(knot.value()) / 2f64.powi(31);
        match level {
            Level::Barren => 0,
            Level::Certain(children) => children,
            // Rounds down; what is no number becomes 0.
            Level::Geometric(log) => (((1.0 - uniform).ln() / log) as u32).min(MOST_CHILDREN),
            Level::Binomial if uniform < self.tree.q => self.tree.m.min(MOST_CHILDREN),
            Level::Binomial => 0,
        }
    }
}

/// Maximum number of children of a node, except for a binomial tree's root.
const MOST_CHILDREN: u32 = 100;

impl Tree {
    fn level(&self, depth: u32) -> Level {
        match self.kind {
            Kind::Binomial if depth == 0 => Level::Certain(self.b0.floor() as u32),
            Kind::Geometric(shape) => self.geometric(shape, depth),
            Kind::Hybrid(shape) if f64::from(depth) < 0.5 * f64::from(self.depth) => self.geometric(shape, depth),
            Kind::Binomial | Kind::Hybrid(_) => Level::Binomial,
        }
    }

    fn geometric(&self, shape: Shape, depth: u32) -> Level {
        let expected = self.expected(shape, depth);
        if expected <= 0.0 {
            return Level::Barren;
        }
        let p = 1.0 / (1.0 + expected);
        Level::Geometric((1.0 - p).ln())
    }

    /// The expected number of children at a depth of a geometric tree.
    pub(super) fn expected(&self, shape: Shape, depth: u32) -> f64 {
        let (at, end) = (f64::from(depth), f64::from(self.depth));
        match shape {
            _ if depth == 0 => self.b0,
            Shape::Fixed if depth < self.depth => self.b0,
            Shape::Fixed => 0.0,
            Shape::Linear => self.b0 * (1.0 - at / end),
            Shape::Cyclic if at > 5.0 * end => 0.0,
            Shape::Cyclic => self.b0.powf((2.0 * PI * at / end).sin()),
            Shape::Exponential => self.b0 * at.powf(-self.b0.ln() / end.ln()),
        }
    }
}
