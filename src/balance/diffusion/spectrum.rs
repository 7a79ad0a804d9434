//! Eigenvalues of the Laplacian of a topology: how fast diffusion on it goes.
//!
//! The nodes of these topologies are the points of a box, or all next to each other. An eigenvalue of a box is a sum of one eigenvalue of each side
//! (Fiedler, "Algebraic connectivity of graphs", 1973): `2 - 2 cos(pi j / k)` of a row of k nodes, `2 - 2 cos(2 pi j / k)` of a ring of k nodes, and
//! n (apart from 0) of the complete graph of n nodes.

use std::f64::consts::PI;

use crate::topology::{Side, Topology};

/// Eigenvalues that differ by less than this part of the largest are one.
const SAME: f64 = 1e-9;

/// The smallest and the largest nonzero eigenvalue; `None` of a single node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extremes {
    pub second: f64,
    pub largest: f64,
}

impl Extremes {
    /// The second largest modulus of an eigenvalue of `1 - alpha L`, for the best alpha, `2 / (second + largest)`.
    pub fn gamma(self) -> f64 {
        (self.largest - self.second) / (self.largest + self.second)
    }

    /// The best part of a difference that crosses a link in a step.
    pub fn alpha(self) -> f64 {
        2.0 / (self.second + self.largest)
    }
}

/// See [`Extremes`].
pub(super) fn extremes(topology: &Topology) -> Option<Extremes> {
    let n = f64::from(topology.nodes());
    if topology.sides() == 0 {
        return (topology.nodes() > 1).then_some(Extremes { second: n, largest: n });
    }
    let sides = || (0..topology.sides()).filter_map(|k| topology.side(k)).filter(|side| side.length > 1);
    let second = sides().map(|side| of_side(side, 1)).reduce(f64::min)?;
    let largest = sides().map(|side| of_side(side, last(side))).sum();
    Some(Extremes { second, largest })
}

/// All nonzero eigenvalues, each once, in ascending order; `None` if there are more than `most`.
pub(super) fn distinct(topology: &Topology, most: usize) -> Option<Vec<f64>> {
    let Some(Extremes { largest, .. }) = extremes(topology) else { return Some(Vec::new()) };
    if topology.sides() == 0 {
        return Some(vec![largest]);
    }
    let mut all = vec![0.0];
    for side in (0..topology.sides()).filter_map(|k| topology.side(k)).filter(|side| side.length > 1) {
        if last(side) as usize > most {
            return None;
        }
        let mut sums: Vec<f64> = (0..=last(side)).flat_map(|j| all.iter().map(move |value| value + of_side(side, j))).collect();
        sums.sort_by(f64::total_cmp);
        sums.dedup_by(|next, before| *next - *before < SAME * largest);
        if sums.len() > most + 1 {
            return None;
        }
        all = sums;
    }
    Some(all.split_off(1))
}

/// Returns true if the two ends of a side of several nodes are linked directly.
fn is_ring(side: Side) -> bool {
    side.wraps && side.length > 2
}

/// The number of the largest eigenvalue of a side.
fn last(side: Side) -> u32 {
    if is_ring(side) { side.length / 2 } else { side.length - 1 }
}

fn of_side(side: Side, j: u32) -> f64 {
    let turn = if is_ring(side) { 2.0 * PI } else { PI };
    2.0 - 2.0 * (turn * f64::from(j) / f64::from(side.length)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(spec: &str) -> Topology {
        Topology::parse(spec, 1).unwrap()
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn closed_forms() {
        let of = |spec: &str| extremes(&topology(spec)).unwrap();
        for d in 1..8 {
            let cube = of(&format!("hypercube:{d}"));
            assert!(near(cube.second, 2.0) && near(cube.largest, 2.0 * f64::from(d)));
            // Cybenko 1989: 1 / (d + 1), and (d - 1) / (d + 1).
            assert!(near(cube.alpha(), 1.0 / f64::from(d + 1)) && near(cube.gamma(), f64::from(d - 1) / f64::from(d + 1)));
            let all: Vec<f64> = (1..=d).map(|k| 2.0 * f64::from(k)).collect();
            assert!(distinct(&topology(&format!("hypercube:{d}")), 9).unwrap().iter().zip(&all).all(|(one, other)| near(*one, *other)));
        }
        let line = of("line:8");
        assert!(near(line.second, 2.0 - 2.0 * (PI / 8.0).cos()) && near(line.largest, 2.0 + 2.0 * (PI / 8.0).cos()));
        let torus = of("torus:4x6");
        assert!(near(torus.second, 1.0) && near(torus.largest, 8.0), "2 - 2 cos(2 pi / 6)");
        let complete = of("complete:7");
        assert!(near(complete.second, 7.0) && near(complete.gamma(), 0.0));
        assert_eq!(extremes(&topology("line:1")), None);
        assert_eq!(extremes(&topology("hypercube:0")), None);
    }

    #[test]
    fn equal_ones_count_once() {
        let count = |spec: &str| distinct(&topology(spec), 1000).unwrap().len();
        assert_eq!([count("hypercube:10"), count("complete:9"), count("line:9"), count("ring:9"), count("ring:8")], [10, 1, 8, 4, 4]);
        // 0, 2, 4 in both directions.
        assert_eq!((count("torus:4x4"), count("mesh:1x1"), count("torus:2x2")), (4, 0, 2));
        assert_eq!(distinct(&topology("line:12"), 10), None);
        assert_eq!(distinct(&topology("line:11"), 10).unwrap().len(), 10);
    }
}
