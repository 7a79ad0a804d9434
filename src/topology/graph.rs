//! Any connected network: nodes and links as an edge list gives them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

use super::embedding::Embedding;
use super::{InvalidTopology, NodeId, metis};
use crate::names;

/// Maximum number of nodes of a graph: distances between all of them are kept, two bytes a pair.
pub const MAX_GRAPH_NODES: u32 = 4096;

/// A connected graph. Of all shortest routes between two nodes messages take the one through the lowest neighbours.
#[derive(Debug)]
pub struct Graph {
    /// What was given after `graph:`.
    source: String,
    /// Each link once, lower node first, in ascending order, with its bandwidth.
    links: Vec<Link>,
    /// Neighbours of node v, in ascending order: `neighbours[first[v]..first[v + 1]]`.
    first: Vec<u32>,
    neighbours: Vec<NodeId>,
    distances: Vec<u16>,
    embedding: OnceLock<Embedding>,
    rounds: OnceLock<Vec<Vec<Option<NodeId>>>>,
}

/// A link between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The lower node, and the higher one.
    pub ends: (NodeId, NodeId),
    /// Relative to the other links; 1 where none is given.
    pub bandwidth: f64,
}

impl Graph {
    /// Reads an edge list, or a graph in the format of METIS, which is recognised. In an edge list a line is `a b [bandwidth]` for each
    /// link, nodes numbered from 0, with blanks, commas or semicolons between; a line with one number names a node; what follows a `#` is a
    /// comment. In METIS's format, where nodes are numbered from 1 and become ours from 0, the weights of links are their bandwidths, and
    /// those of nodes are left aside. `source` is where it comes from, for sentences.
    ///
    /// # Errors
    /// One sentence with the source and the line, if a line is none of that, or the graph has no nodes, too many, or falls apart.
    pub fn read(source: &str, text: &str) -> Result<Graph, InvalidTopology> {
        let wrong = |reason: String| InvalidTopology::malformed(&format!("graph:{source}"), reason);
        if text.get(..14).is_some_and(|mark| mark.eq_ignore_ascii_case("%%MatrixMarket")) {
            return Err(wrong(
                "it is a matrix in Matrix Market's format; a graph is a line `a b` for each link, or in METIS's format".into(),
            ));
        }
        let read = match metis::is_one(text) {
            // An edge list may look like one by chance.
            true => metis::read(text).or_else(|why| Graph::edge_list(text).map_err(|_| why)),
            false => Graph::edge_list(text),
        };
        let (nodes, links) = read.map_err(wrong)?;
        let graph = Graph::of(source, nodes, links);
        match (0..nodes).find(|node| graph.distance_of(0, *node).is_none()) {
            Some(node) => Err(wrong(format!("no way leads from node 0 to node {node}; every node must be reached"))),
            None => Ok(graph),
        }
    }

    /// The number of nodes, and the links, of an edge list.
    fn edge_list(text: &str) -> Result<metis::Links, String> {
        let mut found: BTreeMap<(NodeId, NodeId), (usize, f64)> = BTreeMap::new();
        let mut nodes = 0;
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |reason: String| format!("line {number}: {reason}");
            let line = line.split('#').next().unwrap_or_default();
            if line.contains(',') && line.contains(';') {
                return Err(wrong("commas and semicolons: one of them is to separate numbers, and fractions have a point".into()));
            }
            let items: Vec<&str> =
                line.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|item| !item.is_empty()).collect();
            let node = |text: &str| match text.parse::<NodeId>() {
                Ok(node) if node < MAX_GRAPH_NODES => Ok(node),
                Ok(_) => Err(wrong(format!("node {text}, but a graph has at most {MAX_GRAPH_NODES} nodes, numbered from 0"))),
                Err(_) => Err(wrong(format!("{text:?} is not the number of a node"))),
            };
            let (a, b, bandwidth) = match *items {
                [] => continue,
                [only] => {
                    nodes = nodes.max(node(only)? + 1);
                    continue;
                }
                [a, b] => (node(a)?, node(b)?, 1.0),
                [a, b, bandwidth] => match bandwidth.parse::<f64>() {
                    Ok(number) if number.is_finite() && number > 0.0 => (node(a)?, node(b)?, number),
                    _ => return Err(wrong(format!("the bandwidth {bandwidth:?} is not a number above 0"))),
                },
                _ => return Err(wrong("a line holds two nodes and perhaps the bandwidth of their link".into())),
            };
            if a == b {
                return Err(wrong(format!("node {a} is no neighbour of itself")));
            }
            nodes = nodes.max(a.max(b) + 1);
            if let Some((earlier, _)) = found.insert((a.min(b), a.max(b)), (number, bandwidth)) {
                return Err(wrong(format!("the link between {a} and {b} is on line {earlier} already")));
            }
        }
        if nodes == 0 {
            return Err("it has no nodes".into());
        }
        Ok((nodes, found.into_iter().map(|(ends, (_, bandwidth))| Link { ends, bandwidth }).collect()))
    }

    /// The graph of known links, with all distances by breadth-first search.
    fn of(source: &str, nodes: u32, links: Vec<Link>) -> Graph {
        let mut beside: Vec<Vec<NodeId>> = vec![Vec::new(); nodes as usize];
        for Link { ends: (a, b), .. } in &links {
            beside[*a as usize].push(*b);
            beside[*b as usize].push(*a);
        }
        let (mut first, mut neighbours) = (vec![0], Vec::with_capacity(2 * links.len()));
        for mut others in beside {
            others.sort_unstable();
            neighbours.append(&mut others);
            first.push(neighbours.len() as u32);
        }
        let mut graph = Graph {
            source: names::one_line(source.to_string()),
            links,
            first,
            neighbours,
            distances: Vec::new(),
            embedding: OnceLock::new(),
            rounds: OnceLock::new(),
        };
        let mut distances = vec![UNREACHED; nodes as usize * nodes as usize];
        for (start, row) in (0..).zip(distances.chunks_mut(nodes as usize)) {
            row[start as usize] = 0;
            let mut ahead = VecDeque::from([start]);
            while let Some(node) = ahead.pop_front() {
                for &other in graph.beside(node) {
                    if row[other as usize] == UNREACHED {
                        row[other as usize] = row[node as usize] + 1;
                        ahead.push_back(other);
                    }
                }
            }
        }
        graph.distances = distances;
        graph
    }

    /// What was given after `graph:`: the name of its file as it is shown, or its edges.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// Every link once, in ascending order.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The edges as the specification `graph:edges=..` takes them.
    pub(super) fn edges(&self) -> String {
        let link = |Link { ends: (a, b), bandwidth }: &Link| match bandwidth {
            1.0 => format!("{a}-{b}"),
            bandwidth => format!("{a}-{b}-{bandwidth}"),
        };
        let links: Vec<String> = self.links.iter().map(link).collect();
        if links.is_empty() { "edges=0".into() } else { format!("edges={}", links.join(",")) }
    }

    /// How it lies in a hyper-grid; found when first asked for.
    pub fn embedding(&self) -> &Embedding {
        self.embedding.get_or_init(|| Embedding::of(self))
    }

    /// Each node's neighbour in each round of a schedule of the links: every link is used in one round, and a node has at most one neighbour per
    /// round. This is a greedy colouring of the links, with fewer than twice as many rounds as the largest degree.
    pub fn rounds(&self) -> impl Iterator<Item = &[Option<NodeId>]> {
        let colour = || {
            let mut rounds: Vec<Vec<Option<NodeId>>> = Vec::new();
            for Link { ends: (a, b), .. } in &self.links {
                let free = |round: &Vec<Option<NodeId>>| round[*a as usize].is_none() && round[*b as usize].is_none();
                let at = rounds.iter().position(free).unwrap_or_else(|| {
                    rounds.push(vec![None; self.nodes() as usize]);
                    rounds.len() - 1
                });
                rounds[at][*a as usize] = Some(*b);
                rounds[at][*b as usize] = Some(*a);
            }
            rounds
        };
        self.rounds.get_or_init(colour).iter().map(Vec::as_slice)
    }

    fn beside(&self, node: NodeId) -> &[NodeId] {
        &self.neighbours[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    fn distance_of(&self, a: NodeId, b: NodeId) -> Option<u32> {
        let distance = self.distances[a as usize * self.nodes() as usize + b as usize];
        (distance != UNREACHED).then_some(u32::from(distance))
    }

    pub(super) fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        self.beside(node).to_vec()
    }

    pub(super) fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        self.distance_of(a, b).unwrap_or(u32::MAX)
    }

    pub(super) fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        let nearer = |other: &&NodeId| self.distance(**other, to) < self.distance(from, to);
        self.beside(from).iter().find(nearer).copied().unwrap_or(from)
    }

    pub(super) fn diameter(&self) -> u32 {
        self.distances.iter().copied().max().map_or(0, u32::from)
    }
}

/// Graphs are equal when their links are, wherever they came from.
impl PartialEq for Graph {
    fn eq(&self, other: &Graph) -> bool {
        self.nodes() == other.nodes() && self.links == other.links
    }
}

const UNREACHED: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Graph::read("net.txt", text).unwrap_err().to_string()
    }

    #[test]
    fn an_edge_list_is_read() {
        let graph = Graph::read("net.txt", "# a square with a tail\n0 1\n1, 2 2.5\n2 3\n\n0 3 # closes\n4 3\n").unwrap();
        assert_eq!((graph.nodes(), graph.diameter()), (5, 3));
        assert_eq!(graph.neighbours(3), [0, 2, 4]);
        assert_eq!((graph.distance(1, 4), graph.next_hop(1, 4), graph.next_hop(0, 4), graph.next_hop(2, 2)), (3, 0, 3, 2));
        assert_eq!(graph.links()[2], Link { ends: (1, 2), bandwidth: 2.5 });
        assert_eq!(graph.edges(), "edges=0-1,0-3,1-2-2.5,2-3,3-4");
        assert_eq!(Graph::read("one", "0").unwrap().nodes(), 1);
    }

    #[test]
    fn metis_is_recognised() {
        let text = "% a triangle with a tail\n4 4 001\n2 5 3 1\n1 5 3 1\n1 1 2 1 4 2\n3 2\n";
        let graph = Graph::read("net.graph", text).unwrap();
        assert_eq!(graph.edges(), "edges=0-1-5,0-2,1-2,2-3-2");
        assert_eq!(refusal("4 2\n2\n1\n4\n3\n"), "topology graph:net.txt: no way leads from node 0 to node 2; every node must be reached");
        assert_eq!(refusal("% c\n3 3\n2\n1 3\n"), "topology graph:net.txt: it has lines for 2 nodes, and its first line announces 3");
        assert!(refusal("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n").contains("Matrix Market"));
        // By chance its first line fits those behind it.
        assert_eq!(Graph::read("edges", "3 2 11\n0 1 5\n1 2 5\n0 3 5\n").unwrap().links().len(), 4);
        assert_eq!(Graph::read("edges", "0;1;2.5\n1;2\n").unwrap().edges(), "edges=0-1-2.5,1-2");
    }

    #[test]
    fn wrong_lists_name_file_and_line() {
        for (text, why) in [
            ("0 1\n1 x\n", "line 2: \"x\" is not the number of a node"),
            ("0 1\n1 -2\n", "line 2: \"-2\" is not the number of a node"),
            ("0 1\n\n1 1\n", "line 3: node 1 is no neighbour of itself"),
            ("0 1\n2 1\n1 0\n", "line 3: the link between 1 and 0 is on line 1 already"),
            ("0 1 0\n", "line 1: the bandwidth \"0\" is not a number above 0"),
            ("0 1 fast\n", "line 1: the bandwidth \"fast\" is not a number above 0"),
            ("0 1 2 3\n", "line 1: a line holds two nodes"),
            ("0 4096\n", "line 1: node 4096, but a graph has at most 4096 nodes"),
            ("# none\n", "it has no nodes"),
            ("0 1\n2 3\n", "no way leads from node 0 to node 2"),
        ] {
            let said = refusal(text);
            assert!(said.starts_with(&format!("topology graph:net.txt: {why}")), "{said}");
        }
    }

    #[test]
    fn every_link_has_its_round() {
        let graph = Graph::read("star and ring", "0 1\n0 2\n0 3\n0 4\n1 2\n2 3\n3 4\n4 1").unwrap();
        let mut links = Vec::new();
        for round in graph.rounds() {
            for (node, partner) in (0..).zip(round) {
                if let Some(partner) = *partner {
                    assert_eq!(round[partner as usize], Some(node));
                    links.extend((node < partner).then_some((node, partner)));
                }
            }
        }
        links.sort_unstable();
        assert_eq!(links, graph.links().iter().map(|link| link.ends).collect::<Vec<_>>());
        assert!(graph.rounds().count() < 8);
    }
}
