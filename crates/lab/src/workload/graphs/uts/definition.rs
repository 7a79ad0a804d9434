//! Tree count straight from the definition, with a hasher for messages of any length, and every number of children computed where it is
//! needed. An independent program, to check the answer of the one that runs.

use std::f64::consts::PI;

use sha1::{Digest, Sha1};

use super::shape::{Kind, Shape, Tree};

/// The number of nodes; `None` if there are more than `most`.
pub fn nodes(tree: &Tree, most: u64) -> Option<u64> {
    let root = Sha1::new().chain_update([0; 16]).chain_update(tree.seed.to_be_bytes()).finalize();
    // By depth: the state there, and its next child and how many it has.
    let mut way = vec![(root, 0, children(tree, 0, random(&root)))];
    let mut nodes = 1;
    while let Some((state, next, children_here)) = way.last_mut() {
        if next == children_here {
            way.pop();
            continue;
        }
        let child = Sha1::new().chain_update(*state).chain_update(u32::to_be_bytes(*next)).finalize();
        *next += 1;
        nodes += 1;
        if nodes > most {
            return None;
        }
        let grown = children(tree, way.len() as u32, random(&child));
        way.push((child, 0, grown));
    }
    Some(nodes)
}

/// The last 31 bits of a state, as a number from 0 to 1.
fn random(state: &[u8]) -> f64 {
    let bits = state[16..].iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
    f64::from(bits & 0x7fff_ffff) / f64::from(1u32 << 31)
}

fn children(tree: &Tree, depth: u32, random: f64) -> u32 {
    match tree.kind {
        Kind::Geometric(shape) => geometric(tree, shape, depth, random),
        Kind::Hybrid(shape) if 2 * u64::from(depth) < u64::from(tree.depth) => geometric(tree, shape, depth, random),
        Kind::Binomial if depth == 0 => tree.b0 as u32,
        Kind::Binomial | Kind::Hybrid(_) => u32::from(random < tree.q) * tree.m,
    }
}

/// Geometrically distributed, b on average and at most 100.
fn geometric(tree: &Tree, shape: Shape, depth: u32, random: f64) -> u32 {
    let (at, end) = (f64::from(depth), f64::from(tree.depth));
    let b = match shape {
        _ if depth == 0 => tree.b0,
        Shape::Fixed => tree.b0 * f64::from(u8::from(depth < tree.depth)),
        Shape::Linear => tree.b0 * (1.0 - at / end),
        Shape::Exponential => tree.b0 * at.powf(-tree.b0.ln() / end.ln()),
        Shape::Cyclic => f64::from(u8::from(at <= 5.0 * end)) * tree.b0.powf((2.0 * PI * at / end).sin()),
    };
    if b > 0.0 { ((1.0 - random).ln() / (1.0 - 1.0 / (1.0 + b)).ln()).floor().clamp(0.0, 100.0) as u32 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::graphs::uts::Uts;
    use crate::workload::graphs::uts::shape::{DEFAULT, NAMED};

    #[test]
    fn the_definition_has_the_published_sizes() {
        // Above four million nodes each.
        let sizes = if cfg!(debug_assertions) { &NAMED[..0] } else { &NAMED[..5] };
        for (name, tree, (size, ..)) in sizes {
            assert_eq!((nodes(tree, *size), nodes(tree, size - 1)), (Some(*size), None), "{name}");
        }
    }

    #[test]
    fn both_programs_count_the_same() {
        let mut sizes = Vec::new();
        for shape in [Shape::Fixed, Shape::Linear, Shape::Cyclic, Shape::Exponential] {
            for kind in [Kind::Geometric(shape), Kind::Hybrid(shape), Kind::Binomial] {
                for (seed, b0, depth) in [(1, 2.5, 5), (7, 4.0, 4), (19, 3.0, 7)] {
                    let tree = Tree { kind, b0, depth, seed, q: 0.23, ..DEFAULT };
                    let counted = Uts::new(tree, 1).count().nodes;
                    assert_eq!(nodes(&tree, u64::MAX), Some(counted), "{tree:?}");
                    sizes.push(counted);
                }
            }
        }
        assert!(sizes.iter().filter(|size| **size > 100).count() > 9, "{sizes:?}");
    }
}
