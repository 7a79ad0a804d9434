//! The topology of a kind that suits a number of ranks.

use std::sync::Arc;

use super::{Complete, Grid, Hypercube, Kind, Line, MAX_NODES, Mesh, Topology, Tree};

impl Topology {
    /// The topology of the given kind fitted to `ranks` ranks.
    ///
    /// Hypercube: the next power of two. Mesh and torus: R rows and C columns with C <= R <= 2C, the fewest nodes that hold the ranks,
    /// then the squarest. Tree: binary, as many nodes as ranks. Line, ring and complete: as many nodes as ranks; a graph, which has
    /// to be given, is the complete one. Grid: dimension
    /// ceil(log2 ranks), with sides of two, as Savvas and Kechadi 2004, equation 15, have it; PSTS gets another by itself, if none is asked for. No ranks are fitted as one; more than
    /// 2^30 as 2^30, which [`super::Placement::new`] then refuses.
    pub fn fitted(kind: Kind, ranks: u32) -> Topology {
        let ranks = ranks.clamp(1, MAX_NODES);
        match kind {
            Kind::Hypercube => Topology::Hypercube(Hypercube::fitted(ranks)),
            Kind::Mesh => Topology::Mesh(Mesh::of(&near_square(ranks), false)),
            Kind::Torus => Topology::Mesh(Mesh::of(&near_square(ranks), true)),
            Kind::Tree => Topology::Tree(Arc::new(Tree::heap_shaped(ranks, 2))),
            Kind::Grid => {
                let dimension = Hypercube::fitted(ranks).dimension();
                let sides = if dimension == 0 { vec![1] } else { vec![2; dimension as usize] };
                Topology::Grid(Grid::of(&sides))
            }
            Kind::Line => Topology::Line(Line::fitted(ranks)),
            Kind::Ring => Topology::Mesh(Mesh::of(&[ranks], true)),
            // Without its edges a graph is unknown; the complete one stands in.
            Kind::Complete | Kind::Graph => Topology::Complete(Complete::fitted(ranks)),
        }
    }
}

/// Rows and columns of the mesh for `ranks` ranks: of all R x C with C <= R <= 2C that hold them, those with the fewest nodes, and of
/// these the squarest.
///
/// Powers of two so give Wu's M x M or M x M/2 (1997, section 5). Without the bound on R every count would be filled exactly, by a
/// mesh of one column when it is prime; a few virtual nodes are cheaper than that mesh's diameter.
fn near_square(ranks: u32) -> [u32; 2] {
    let mut best: Option<(u64, [u32; 2])> = None;
    for columns in 1..=ranks.isqrt() + 1 {
        let rows = ranks.div_ceil(columns);
        if rows < columns || rows > 2 * columns {
            continue;
        }
        let nodes = u64::from(rows) * u64::from(columns);
        // More columns are squarer, so an equal count replaces the one before.
        if best.is_none_or(|(fewest, _)| nodes <= fewest) {
            best = Some((nodes, [rows, columns]));
        }
    }
    best.map_or([ranks, 1], |(_, sides)| sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_give_the_papers_meshes() {
        for (ranks, sides) in [(1, [1, 1]), (2, [2, 1]), (4, [2, 2]), (8, [4, 2]), (16, [4, 4]), (32, [8, 4]), (128, [16, 8])] {
            assert_eq!(near_square(ranks), sides);
        }
        assert_eq!(near_square(1 << 20), [1 << 10, 1 << 10]);
        assert_eq!(near_square(1 << 30), [1 << 15, 1 << 15]);
    }

    #[test]
    fn other_counts_waste_little_and_stay_near_square() {
        for (ranks, sides) in [(3, [2, 2]), (5, [3, 2]), (6, [3, 2]), (7, [4, 2]), (12, [4, 3]), (13, [5, 3]), (15, [5, 3])] {
            assert_eq!(near_square(ranks), sides);
        }
        for ranks in 1..=5000 {
            let [rows, columns] = near_square(ranks);
            assert!(columns <= rows && rows <= 2 * columns, "{ranks}: {rows}x{columns}");
            // The square that holds them is a candidate, or nearly: never a whole row and column too many.
            assert!(rows * columns >= ranks && rows * columns - ranks < rows, "{ranks}: {rows}x{columns}");
        }
    }
}
