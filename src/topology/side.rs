//! Common part of hypercubes, meshes, tori, grids, lines and rings: nodes at the points of a box, and walks along its sides.

use super::{NodeId, Topology};

/// One side of a box: nodes that differ in one coordinate only stand in a row, or in a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Number of nodes in a row, at least 1.
    pub length: u32,
    /// Difference of the numbers of two neighbours.
    pub stride: u32,
    /// Whether the last node of a row is next to the first one.
    pub wraps: bool,
}

impl Side {
    /// Coordinate of a node along this side.
    pub fn coordinate(&self, node: NodeId) -> u32 {
        node / self.stride % self.length
    }

    /// The node at this place of the row that `node` is in.
    pub fn at(&self, node: NodeId, coordinate: u32) -> NodeId {
        node - self.coordinate(node) * self.stride + coordinate * self.stride
    }
}

impl Topology {
    /// The number of sides; 0 if the nodes are no points of a box.
    ///
    /// A hypercube of dimension d has d sides of two nodes; a line and a ring have one.
    pub fn sides(&self) -> u32 {
        match self {
            Topology::Hypercube(cube) => cube.dimension(),
            Topology::Mesh(mesh) => mesh.dims().len() as u32,
            Topology::Grid(grid) => grid.dims().len() as u32,
            Topology::Line(_) => 1,
            Topology::Tree(_) | Topology::Complete(_) | Topology::Graph(_) => 0,
        }
    }

    /// The side number `k`, `k < sides()`: the slowest first, as meshes name theirs, so that the last one has stride 1. On a hypercube
    /// that is address bit `d - 1 - k`.
    pub fn side(&self, k: u32) -> Option<Side> {
        let of = |dims: &[u32], strides: &[u32], wraps| {
            let (length, stride) = (*dims.get(k as usize)?, *strides.get(k as usize)?);
            Some(Side { length, stride, wraps })
        };
        match self {
            Topology::Hypercube(cube) => {
                let bit = cube.dimension().checked_sub(k + 1)?;
                Some(Side { length: 2, stride: 1 << bit, wraps: false })
            }
            Topology::Mesh(mesh) => of(mesh.dims(), mesh.strides(), mesh.wraps()),
            Topology::Grid(grid) => of(grid.dims(), grid.strides(), false),
            Topology::Line(line) => of(&[line.nodes()], &[1], false),
            Topology::Tree(_) | Topology::Complete(_) | Topology::Graph(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_step_along_one_side() {
        for spec in ["hypercube:4", "mesh:3x1x4", "torus:3x4x2", "torus:1x5", "grid:2x3x2", "line:5", "ring:2", "ring:7"] {
            let topology = Topology::parse(spec, 1).unwrap();
            for node in 0..topology.nodes() {
                let mut beside = Vec::new();
                for k in 0..topology.sides() {
                    let side = topology.side(k).unwrap();
                    let at = side.coordinate(node);
                    assert_eq!(side.at(side.at(node, 0), at), node, "{spec}");
                    let last = side.length - 1;
                    let ends = side.wraps && (at == 0 || at == last);
                    let steps = [at.checked_sub(1), (at < last).then_some(at + 1), ends.then_some(last - at)];
                    beside.extend(steps.into_iter().flatten().map(|to| side.at(node, to)).filter(|other| *other != node));
                }
                beside.sort_unstable();
                beside.dedup();
                assert_eq!(beside, topology.neighbours(node), "{spec}, node {node}");
            }
            assert_eq!(topology.side(topology.sides()), None);
        }
        assert_eq!(Topology::parse("tree:binary", 3).unwrap().sides(), 0);
    }
}
