//! The trees: which node has how many children, from a cryptographic hash of the way to it.
//!
//! A node's state is 20 bytes. The root's is SHA-1 of 16 zero bytes and the seed, child i's SHA-1 of its parent's state and i (numbers in 4
//! bytes, big-endian). So a tree is fixed by its parameters, and any part of it can be grown anywhere, from the state alone.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knot {
    pub(super) state: [u8; 20],
    /// Edges between the root and it.
    pub depth: u32,
}

impl Knot {
    pub(super) fn root(seed: u32) -> Knot {
        let mut bytes = [0; 20];
        bytes[16..].copy_from_slice(&seed.to_be_bytes());
        Knot { state: Sha1::digest(bytes).into(), depth: 0 }
    }

    pub(super) fn child(&self, index: u32) -> Knot {
        let mut bytes = [0; 24];
        bytes[..20].copy_from_slice(&self.state);
        bytes[20..].copy_from_slice(&index.to_be_bytes());
        Knot { state: Sha1::digest(bytes).into(), depth: self.depth + 1 }
    }

    /// Its random value, below 2^31.
    pub(super) fn value(&self) -> u32 {
        let [.., a, b, c, d] = self.state;
        u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff
    }
}

/// How a geometric tree's expected number of children depends on the depth.
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

/// How the number of children of a node is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the geometric distribution.
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
    /// Of binomial trees.
    pub q: f64,
    pub m: u32,
    pub seed: u32,
}

/// The parameters that UTS itself has when none are given.
pub(super) const DEFAULT: Tree = Tree { kind: Kind::Geometric(Shape::Linear), b0: 4.0, depth: 6, q: 0.234_375, m: 4, seed: 0 };

/// The sample trees that come with UTS: name, parameters, and their nodes, greatest depth and leaves.
pub(super) const NAMED: [(&str, Tree, (u64, u32, u64)); 5] = [
    ("T1", Tree { kind: Kind::Geometric(Shape::Fixed), depth: 10, seed: 19, ..DEFAULT }, (4_130_071, 10, 3_305_118)),
    ("T2", Tree { kind: Kind::Geometric(Shape::Cyclic), b0: 6.0, depth: 16, seed: 502, ..DEFAULT }, (4_117_769, 81, 2_342_762)),
    ("T3", Tree { kind: Kind::Binomial, b0: 2000.0, q: 0.124_875, m: 8, seed: 42, ..DEFAULT }, (4_112_897, 1_572, 3_599_034)),
    ("T4", Tree { kind: Kind::Hybrid(Shape::Linear), b0: 6.0, depth: 16, seed: 1, ..DEFAULT }, (4_132_453, 134, 3_108_986)),
    ("T5", Tree { kind: Kind::Geometric(Shape::Linear), depth: 20, seed: 34, ..DEFAULT }, (4_147_582, 20, 2_181_318)),
];

/// Children of a node at the most, but for a binomial tree's root.
const MOST_CHILDREN: f64 = 100.0;

impl Tree {
    /// Number of children of a node.
    pub fn children(&self, knot: &Knot) -> u32 {
        let uniform = f64::from(knot.value()) / 2f64.powi(31);
        match self.kind {
            Kind::Binomial if knot.depth == 0 => self.b0.floor() as u32,
            Kind::Geometric(shape) => self.geometric(shape, knot.depth, uniform),
            Kind::Hybrid(shape) if f64::from(knot.depth) < 0.5 * f64::from(self.depth) => self.geometric(shape, knot.depth, uniform),
            Kind::Binomial | Kind::Hybrid(_) => (if uniform < self.q { self.m } else { 0 }).min(MOST_CHILDREN as u32),
        }
    }

    fn geometric(&self, shape: Shape, depth: u32, uniform: f64) -> u32 {
        let expected = self.expected(shape, depth);
        if expected <= 0.0 {
            return 0;
        }
        let p = 1.0 / (1.0 + expected);
        ((1.0 - uniform).ln() / (1.0 - p).ln()).floor().clamp(0.0, MOST_CHILDREN) as u32
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
