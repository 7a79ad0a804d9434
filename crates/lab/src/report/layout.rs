//! Positions at which the nodes of a topology are drawn.

use equipoise::topology::{Hypercube, NodeId, Topology, Tree};

/// Maximum number of nodes that are drawn one by one.
pub const MOST: u32 = 256;

/// Nodes as points of a plane, the y axis down, in units of the usual distance between neighbours; and the links to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyDrawing {
    pub points: Vec<(f64, f64)>,
    pub links: Vec<(NodeId, NodeId)>,
    /// A remark on links that are not drawn.
    pub omits: Option<&'static str>,
}

/// The drawing of a topology of at most [`MOST`] nodes; `None` for larger ones, and for trees that are too wide.
pub fn of(topology: &Topology) -> Option<TopologyDrawing> {
    if topology.nodes() > MOST {
        return None;
    }
    match topology {
        Topology::Hypercube(cube) => Some(hypercube(topology, cube)),
        Topology::Tree(tree) => parents(topology, tree),
        Topology::Mesh(mesh) if mesh.dims().len() > 1 => Some(lattice(topology, mesh.dims(), mesh.wraps())),
        Topology::Grid(grid) if grid.dims().len() > 1 => Some(lattice(topology, grid.dims(), false)),
        Topology::Complete(_) => Some(complete(topology)),
        Topology::Mesh(mesh) if mesh.wraps() => Some(ring(topology)),
        Topology::Line(_) | Topology::Mesh(_) | Topology::Grid(_) => Some(rows(topology)),
        // Any other graph is drawn as a ring with its links.
        Topology::Graph(_) => Some(ring(topology)),
    }
}

/// All links, each once.
fn links(topology: &Topology) -> Vec<(NodeId, NodeId)> {
    let of_node = |node| topology.neighbours(node).into_iter().filter(move |other| node < *other).map(move |other| (node, other));
    (0..topology.nodes()).flat_map(of_node).collect()
}

/// Cubes of three dimensions, drawn obliquely, in rows and columns by the higher dimensions.
fn hypercube(topology: &Topology, cube: &Hypercube) -> TopologyDrawing {
    const STEPS: [(f64, f64); 3] = [(1.0, 0.0), (0.0, 1.1), (0.48, 0.45)];
    let point = |node: NodeId| {
        let (mut x, mut y) = (0.0, 0.0);
        let (mut across, mut down) = (2.2, 2.3);
        for bit in 0..cube.dimension() {
            let (dx, dy) = match bit {
                0..3 => STEPS[bit as usize],
                _ if bit % 2 == 1 => (across, 0.0),
                _ => (0.0, down),
            };
            if node >> bit & 1 == 1 {
                (x, y) = (x + dx, y + dy);
            }
            // Each further dimension doubles the picture one way or the other.
            (across, down) = (across.max(2.0 * dx), down.max(2.0 * dy));
        }
        (x, y)
    };
    let within = |(a, b): &(NodeId, NodeId)| a >> 3 == b >> 3 || cube.dimension() == 4;
    TopologyDrawing {
        points: (0..cube.nodes()).map(point).collect(),
        links: links(topology).into_iter().filter(within).collect(),
        omits: (cube.dimension() > 4).then_some("Links between the sub-cubes of eight nodes are left out."),
    }
}

/// Planes of the last two dimensions, arranged in rows and columns by the other dimensions.
fn lattice(topology: &Topology, dims: &[u32], wraps: bool) -> TopologyDrawing {
    let (rows, columns) = (dims[dims.len() - 2], dims[dims.len() - 1]);
    let planes = topology.nodes() / (rows * columns);
    // The number of planes in a row makes the picture about square.
    let wide = (f64::from(planes) * f64::from(rows + 1) / f64::from(columns + 1)).sqrt().ceil().max(1.0) as u32;
    let point = |node: NodeId| {
        let (plane, row, column) = (node / (rows * columns), node / columns % rows, node % columns);
        let (left, top) = (plane % wide * (columns + 1), plane / wide * (rows + 1));
        (f64::from(left + column), f64::from(top + row))
    };
    let beside = |a: NodeId, b: NodeId| {
        let (a, b) = (point(a), point(b));
        (a.0 - b.0).abs() + (a.1 - b.1).abs() < 1.5
    };
    let within = |(a, b): &(NodeId, NodeId)| a / (rows * columns) == b / (rows * columns) && beside(*a, *b);
    TopologyDrawing {
        points: (0..topology.nodes()).map(point).collect(),
        links: links(topology).into_iter().filter(within).collect(),
        omits: match (planes > 1, wraps) {
            (false, false) => None,
            (false, true) => Some("The links that close rows and columns to rings are left out."),
            (true, false) => Some("Links between the planes are left out."),
            (true, true) => Some("Links between the planes, and those that close rows and columns to rings, are left out."),
        },
    }
}

/// One row, or several to be read like text.
fn rows(topology: &Topology) -> TopologyDrawing {
    let nodes = topology.nodes();
    let wide = if nodes <= 12 { nodes } else { (f64::from(nodes) * 2.0).sqrt().ceil() as u32 };
    TopologyDrawing {
        points: (0..nodes).map(|node| (f64::from(node % wide), f64::from(node / wide) * 1.2)).collect(),
        links: links(topology).into_iter().filter(|(a, b)| a / wide == b / wide).collect(),
        omits: (nodes > wide).then_some("The line continues from the end of a row at the beginning of the next."),
    }
}

fn circle(nodes: u32) -> Vec<(f64, f64)> {
    let radius = (0.5 / (std::f64::consts::PI / f64::from(nodes.max(2))).sin()).max(0.5);
    let angle = |node: u32| std::f64::consts::TAU * f64::from(node) / f64::from(nodes);
    (0..nodes).map(|node| (radius * angle(node).sin(), -radius * angle(node).cos())).collect()
}

fn ring(topology: &Topology) -> TopologyDrawing {
    match topology.nodes() {
        ..=40 => TopologyDrawing { points: circle(topology.nodes()), links: links(topology), omits: None },
        _ => TopologyDrawing {
            omits: Some("The ring continues from the end of a row at the beginning of the next, and from the last at the first."),
            ..rows(topology)
        },
    }
}

fn complete(topology: &Topology) -> TopologyDrawing {
    match topology.nodes() {
        nodes @ ..=16 => TopologyDrawing { points: circle(nodes), links: links(topology), omits: None },
        _ => TopologyDrawing { links: Vec::new(), omits: Some("Every node is next to every other; links are left out."), ..rows(topology) },
    }
}

/// Leaves in a row in preorder, each parent above the middle of its children.
fn parents(topology: &Topology, tree: &Tree) -> Option<TopologyDrawing> {
    const WIDEST: f64 = 56.0;
    let nodes = tree.nodes() as usize;
    let mut depth = vec![0u32; nodes];
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for node in 1..nodes {
        // A root is the only node without a parent.
        let parent = tree.parent(node as NodeId).unwrap_or(0) as usize;
        depth[node] = depth[parent] + 1;
        children[parent].push(node);
    }
    let mut x = vec![0.0; nodes];
    let mut leaves = 0.0;
    for node in (0..nodes).filter(|node| children[*node].is_empty()) {
        x[node] = leaves;
        leaves += 1.0;
    }
    for node in (0..nodes).rev() {
        if let (Some(first), Some(last)) = (children[node].first(), children[node].last()) {
            x[node] = (x[*first] + x[*last]) / 2.0;
        }
    }
    let down = (leaves / (f64::from(depth.iter().copied().max().unwrap_or(0)) + 1.0)).clamp(1.2, 3.0);
    let points = x.into_iter().zip(depth).map(|(x, depth)| (x, f64::from(depth) * down)).collect();
    (leaves <= WIDEST).then(|| TopologyDrawing { points, links: links(topology), omits: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(spec: &str) -> TopologyDrawing {
        of(&Topology::parse(spec, 1).unwrap()).unwrap_or_else(|| panic!("{spec} has a layout"))
    }

    #[test]
    fn no_two_nodes_lie_on_each_other() {
        for spec in
            "hypercube:0 hypercube:3 hypercube:4 hypercube:8 mesh:16x16 mesh:4x4x4 mesh:2x3x2x5 torus:4x8 torus:2x2 grid:3x3x3 grid:7 tree:parents=-,0,0 line:5 \
             line:200 ring:9 ring:100 complete:1 complete:2 complete:16 complete:256"
                .split_whitespace()
        {
            let TopologyDrawing { points, links, .. } = layout(spec);
            for (i, a) in points.iter().enumerate() {
                for b in &points[..i] {
                    let apart = (a.0 - b.0).hypot(a.1 - b.1);
                    assert!(apart > 0.4, "{spec}: {a:?} and {b:?}");
                }
            }
            assert!(links.iter().all(|(a, b)| a < b && (*b as usize) < points.len()), "{spec}");
        }
    }

    #[test]
    fn a_cube_has_its_edges_and_a_line_its_links() {
        assert_eq!((layout("hypercube:3").links.len(), layout("hypercube:3").omits), (12, None));
        assert_eq!(layout("hypercube:4").links.len(), 32);
        assert_eq!((layout("line:5").links.len(), layout("ring:9").links.len(), layout("mesh:3x4").links.len()), (4, 9, 17));
        assert!(layout("hypercube:5").omits.is_some() && layout("torus:4x4").omits.is_some());
    }

    #[test]
    fn parents_are_above_their_children() {
        let TopologyDrawing { points, .. } = layout("tree:parents=-,0,1,1,0");
        assert_eq!(points.iter().map(|(x, _)| *x).collect::<Vec<_>>(), [1.25, 0.5, 0.0, 1.0, 2.0]);
        assert!(points[0].1 < points[1].1 && points[1].1 < points[2].1 && points[1].1 == points[4].1);
    }

    #[test]
    fn what_cannot_be_seen_is_not_laid_out() {
        let too_many = Topology::parse("hypercube:9", 512).unwrap();
        let too_wide = Topology::parse("tree:binary", 200).unwrap();
        assert_eq!((of(&too_many), of(&too_wide)), (None, None));
    }
}
