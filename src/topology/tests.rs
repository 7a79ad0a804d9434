//! Properties that every topology has, against a breadth-first search over its links.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// Parents in preorder: each next node is a child of the previous node or of one of its ancestors.
fn preorder_tree() -> impl Strategy<Value = Topology> {
    prop::collection::vec(0u32..4, 0..30).prop_map(|climbs| {
        let mut parents: Vec<Option<NodeId>> = vec![None];
        for climb in climbs {
            let mut parent = parents.len() as NodeId - 1;
            for _ in 0..climb {
                parent = parents[parent as usize].unwrap_or(parent);
            }
            parents.push(Some(parent));
        }
        Topology::Tree(Arc::new(Tree::from_parents(&parents).unwrap()))
    })
}

/// A tree in which each node hangs below any earlier one, and some links more.
fn connected_graph() -> impl Strategy<Value = Topology> {
    let links = (prop::collection::vec(any::<u32>(), 0..30), prop::collection::vec((any::<u32>(), any::<u32>()), 0..20));
    links.prop_map(|(parents, more)| {
        let nodes = parents.len() as u32 + 1;
        let mut links: Vec<(u32, u32)> = (1..nodes).zip(parents).map(|(node, parent)| (parent % node, node)).collect();
        links.extend(more.into_iter().map(|(a, b)| (a % nodes, b % nodes)).filter(|(a, b)| a < b));
        links.sort_unstable();
        links.dedup();
        let links: Vec<String> = links.iter().map(|(a, b)| format!("{a}-{b}")).collect();
        let edges = if links.is_empty() { "0".into() } else { links.join(",") };
        Topology::parse(&format!("graph:edges={edges}"), nodes).unwrap()
    })
}

fn sides() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1u32..5, 1..4)
}

fn any_topology() -> impl Strategy<Value = Topology> {
    prop_oneof![
        (0u32..6).prop_map(|d| Topology::Hypercube(Hypercube::new(d).unwrap())),
        (sides(), any::<bool>()).prop_map(|(dims, wrap)| Topology::Mesh(Mesh::new(&dims, wrap).unwrap())),
        sides().prop_map(|dims| Topology::Grid(Grid::new(&dims).unwrap())),
        preorder_tree(),
        (1u32..40, 1u32..6).prop_map(|(nodes, arity)| Topology::Tree(Arc::new(Tree::heap_shaped(nodes, arity)))),
        (1u32..40).prop_map(|nodes| Topology::Line(Line::new(nodes).unwrap())),
        (1u32..40).prop_map(|nodes| Topology::Mesh(Mesh::new(&[nodes], true).unwrap())),
        (1u32..20).prop_map(|nodes| Topology::Complete(Complete::new(nodes).unwrap())),
        connected_graph(),
    ]
}

fn searched_distances(topology: &Topology, from: NodeId) -> Vec<Option<u32>> {
    let mut distances = vec![None; topology.nodes() as usize];
    distances[from as usize] = Some(0);
    let mut ahead = VecDeque::from([(from, 0)]);
    while let Some((node, distance)) = ahead.pop_front() {
        for next in topology.neighbours(node) {
            if distances[next as usize].is_none() {
                distances[next as usize] = Some(distance + 1);
                ahead.push_back((next, distance + 1));
            }
        }
    }
    distances
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn distance_and_diameter_are_those_of_the_links(topology in any_topology()) {
        let mut longest = 0;
        for a in 0..topology.nodes() {
            for (b, searched) in searched_distances(&topology, a).into_iter().enumerate() {
                prop_assert_eq!(Some(topology.distance(a, b as NodeId)), searched, "{} {} {}", topology, a, b);
                longest = longest.max(topology.distance(a, b as NodeId));
            }
        }
        prop_assert_eq!(topology.diameter(), longest);
    }

    #[test]
    fn neighbours_are_sorted_mutual_and_never_oneself(topology in any_topology()) {
        for node in 0..topology.nodes() {
            let neighbours = topology.neighbours(node);
            prop_assert!(neighbours.is_sorted_by(|a, b| a < b), "{topology} {node} {neighbours:?}");
            for neighbour in neighbours {
                prop_assert!(neighbour != node && neighbour < topology.nodes());
                prop_assert!(topology.neighbours(neighbour).contains(&node));
            }
        }
    }

    #[test]
    fn routes_are_shortest_walks_along_links(topology in any_topology()) {
        for from in 0..topology.nodes() {
            prop_assert_eq!(topology.next_hop(from, from), from);
            for to in 0..topology.nodes() {
                let mut at = from;
                for hop in topology.route(from, to) {
                    prop_assert!(topology.neighbours(at).contains(&hop), "{topology} {from}->{to}: {at}->{hop}");
                    prop_assert_eq!(topology.distance(hop, to) + 1, topology.distance(at, to));
                    at = hop;
                }
                prop_assert_eq!(at, to);
            }
        }
    }

    #[test]
    fn names_and_serialised_forms_read_back(topology in any_topology(), ranks in 1u32..50) {
        let read = Topology::parse(&topology.name(), ranks).unwrap();
        prop_assert_eq!(&read, &topology);
        prop_assert_eq!(read.name(), topology.name());
        prop_assert!(topology.name().starts_with(topology.kind().as_str()));
        let json = serde_json::to_string(&topology).unwrap();
        prop_assert_eq!(serde_json::from_str::<Topology>(&json).unwrap(), topology);
    }

    #[test]
    fn coordinates_are_row_major(dims in sides(), wrap in any::<bool>()) {
        let mesh = Mesh::new(&dims, wrap).unwrap();
        let mut before: Option<Vec<u32>> = None;
        for node in 0..mesh.nodes() {
            let coordinates = mesh.coordinates(node);
            prop_assert_eq!(mesh.node_at(&coordinates), node);
            prop_assert!(coordinates.iter().zip(&dims).all(|(x, side)| x < side));
            prop_assert!(before.is_none_or(|before| before < coordinates));
            before = Some(coordinates);
        }
    }

    #[test]
    fn trees_are_numbered_in_preorder(nodes in 1u32..200, arity in 1u32..7) {
        let tree = Tree::heap_shaped(nodes, arity);
        let parents: Vec<Option<NodeId>> = tree.parents().collect();
        prop_assert_eq!(&Tree::from_parents(&parents).unwrap(), &tree);
        for node in 0..nodes {
            let children = tree.children(node);
            prop_assert!(children.len() <= arity as usize);
            prop_assert!(children.iter().all(|child| tree.parent(*child) == Some(node)));
            prop_assert_eq!(1 + children.iter().map(|child| tree.subtree_size(*child)).sum::<u32>(), tree.subtree_size(node));
            // Each subtree begins where its elder sibling's ends.
            let mut next = node + 1;
            for child in children {
                prop_assert_eq!(*child, next);
                next += tree.subtree_size(*child);
            }
            prop_assert_eq!(tree.depth(node), tree.distance(0, node));
        }
        // A heap is as flat as its arity allows: every level but the last is full.
        let full: u64 = (0..tree.height()).map(|level| u64::from(arity).pow(level)).sum();
        prop_assert!(full < u64::from(nodes));
    }
}

#[test]
fn every_kind_fits_every_rank_count() {
    for ranks in 1..=40 {
        // A graph has to be given.
        assert!(Topology::parse("graph", ranks).is_err());
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Graph) {
            let topology = Topology::parse(kind.as_str(), ranks).unwrap();
            assert_eq!(topology, Topology::fitted(kind, ranks));
            assert_eq!(topology.kind(), kind);
            let nodes = topology.nodes();
            match kind {
                Kind::Hypercube | Kind::Grid => assert_eq!(nodes, ranks.next_power_of_two()),
                Kind::Mesh | Kind::Torus => assert!((ranks..2 * ranks).contains(&nodes), "{kind} {ranks} {nodes}"),
                Kind::Tree | Kind::Line | Kind::Ring | Kind::Complete | Kind::Graph => assert_eq!(nodes, ranks),
            }
            let placement = Placement::one_host(nodes, ranks).unwrap();
            assert_eq!(placement.native(), nodes == ranks);
        }
    }
}

#[test]
fn a_million_nodes_are_arithmetic() {
    for kind in [Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Grid, Kind::Line, Kind::Ring, Kind::Complete] {
        let topology = Topology::fitted(kind, 1 << 20);
        assert_eq!(topology.nodes(), 1 << 20);
        let far = topology.route(0, (1 << 20) - 1).next();
        assert_eq!(far, Some(topology.next_hop(0, (1 << 20) - 1)));
    }
    let largest = Topology::fitted(Kind::Hypercube, u32::MAX);
    assert_eq!((largest.nodes(), largest.diameter()), (1 << 30, 30));
}

#[test]
fn routes_take_the_documented_turns() {
    let route = |spec: &str, from, to| Topology::parse(spec, 1).unwrap().route(from, to).collect::<Vec<_>>();
    assert_eq!(route("hypercube:3", 0b000, 0b101), [0b100, 0b101]);
    assert_eq!(route("mesh:3x4", 0, 6), [4, 5, 6]);
    assert_eq!(route("grid:3x4", 11, 5), [7, 6, 5]);
    assert_eq!(route("torus:4x5", 0, 13), [5, 10, 14, 13]);
    assert_eq!(route("ring:5", 0, 3), [4, 3]);
    assert_eq!(route("line:5", 3, 1), [2, 1]);
    assert_eq!(route("complete:5", 3, 1), [1]);
    // The tree of Wu's example 1.
    assert_eq!(route("tree:parents=-,0,1,1,0,4,0,6,6", 3, 8), [1, 0, 6, 8]);
}

#[test]
fn specifications_read_as_documented() {
    let name = |spec: &str, ranks| Topology::parse(spec, ranks).unwrap().name();
    assert_eq!(name("hypercube", 5), "hypercube:3");
    assert_eq!(name("mesh", 8), "mesh:4x2");
    assert_eq!(name("mesh:2x3x4", 5), "mesh:2x3x4");
    assert_eq!(name("mesh:12", 5), "mesh:12");
    assert_eq!(name("torus:12", 5), "ring:12");
    assert_eq!(name("grid", 1), "grid:1");
    assert_eq!(name("grid", 6), "grid:2x2x2");
    assert_eq!(name("tree", 6), "tree:binary,nodes=6");
    assert_eq!(name("tree:kary=2", 6), "tree:binary,nodes=6");
    assert_eq!(name("tree:kary=3,nodes=13", 2), "tree:kary=3,nodes=13");
    assert_eq!(name("tree:parents=-1, 0,1,1,0", 2), "tree:parents=-,0,1,1,0");
    // The heap of seven nodes in preorder.
    let heap = Topology::parse("tree:parents=-,0,1,1,0,4,4", 7).unwrap();
    assert_eq!(Topology::parse("tree:binary", 7).unwrap(), heap);
}

#[test]
fn wrong_specifications_are_refused_in_one_sentence() {
    let refused = [
        ("cube", "topology 'cube' is unknown; known are hypercube, mesh, torus, tree, grid, line, ring, complete"),
        ("", "'' is unknown"),
        ("hypercube:31", "more than 30 dimensions"),
        ("hypercube:99999999999999", "more than 30 dimensions"),
        ("hypercube:", "'' is not of the form key=value"),
        ("hypercube:-1", "dimension is a whole number, not '-1'"),
        ("mesh:4x", "each side is a whole number, not ''"),
        ("mesh:0x4", "a side is zero"),
        ("mesh:65536x65536", "more than 1073741824 nodes"),
        ("mesh:4294967296", "more than 1073741824 nodes"),
        ("grid:2x2x-3", "each side is a whole number, not '-3'"),
        ("torus:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "more than 30 dimensions"),
        ("line:0", "it has no nodes"),
        ("ring:0", "a side is zero"),
        ("complete:2000000000", "more than 1073741824 nodes"),
        ("tree:ternary", "a tree is binary, kary=K or parents="),
        ("tree:kary=3,arity=2", "tree has no option 'arity'; it has parents, binary, kary, nodes"),
        ("mesh:m=3", "mesh has no option 'm'; it has RxC"),
        ("mesh:3,4", "mesh has no option '4'; it has RxC"),
        ("tree:kary=0", "at least 1"),
        ("tree:kary=2,nodes=0", "at least 1"),
        ("tree:parents=", "each parent is a whole number, not ''"),
        ("tree:parents=0,1", "node 0 has parent 0, but it is the root"),
        ("tree:parents=-,0,-", "node 2 is a second root"),
        ("tree:parents=-,1", "node 1 has parent 1, which does not come before it"),
        ("tree:parents=-,0,0,1", "node 3 has parent 1, whose descendants had ended before node 2; parents are given in preorder"),
    ];
    for (spec, sentence) in refused {
        let message = Topology::parse(spec, 4).unwrap_err().to_string();
        assert!(message.starts_with("topology "), "{message}");
        assert!(message.contains(sentence), "{spec}: {message}");
        assert!(!message.contains('\n'));
    }
    assert_eq!(Topology::parse("mesh", 0), Err(InvalidTopology::NoRanks));
    assert!(serde_json::from_str::<Topology>("\"mesh:0\"").is_err());
    let long = format!("tree:parents=-,{}x", "0,".repeat(10_000));
    assert!(Topology::parse(&long, 4).unwrap_err().to_string().len() < 200);
}
