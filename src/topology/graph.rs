//! Any connected network: nodes and links as an edge list gives them.

mod embedding;
mod metis;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::OnceLock;

use super::{InvalidTopology, NodeId};
use crate::names;

pub use embedding::Embedding;

/// Maximum number of nodes of a graph: distances between all of them are kept, two bytes a pair.
pub const MAX_GRAPH_NODES: u32 = 4096;

/// A connected graph. Messages take the cheapest route between two nodes; a link's cost is the reciprocal of its bandwidth. Among equally
/// cheap routes it is one with the fewest hops, and among these the one through the lowest neighbours.
#[derive(Debug)]
pub struct Graph {
    /// Text after `graph:`.
    source: String,
    /// Each link once, lower node first, in ascending order, with its bandwidth.
    links: Vec<Link>,
    /// Neighbours of node v, in ascending order: `neighbours[first[v]..first[v + 1]]`.
    first: Vec<u32>,
    neighbours: Vec<NodeId>,
    /// Hops of the cheapest route between two nodes.
    distances: Vec<u16>,
    /// Its cost; empty where all links have the same bandwidth, so that costs are hops.
    costs: Vec<u64>,
    /// The links' costs, in the order of `neighbours`; empty as well.
    link_costs: Vec<u32>,
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
    /// Reads an edge list, or a graph in the format of METIS, which is recognised. A line of an edge list is `a b [bandwidth]` for each
    /// link, nodes numbered from 0, separated by blanks, commas or semicolons; a line with one number names a node; text after a `#` is a
    /// comment. In METIS's format nodes are numbered from 1 and become ours from 0; the weights of links are their bandwidths, and those of
    /// nodes are ignored. `source` names the text, for error messages.
    ///
    /// # Errors
    /// One sentence with the source and the line, if a line is malformed, or the graph has no nodes, too many, or is not connected.
    pub fn read(source: &str, text: &str) -> Result<Graph, InvalidTopology> {
        let wrong = |reason: String| InvalidTopology::malformed(&format!("graph:{source}"), reason);
        if text.get(..14).is_some_and(|mark| mark.eq_ignore_ascii_case("%%MatrixMarket")) {
            return Err(wrong(
                "it is a matrix in Matrix Market's format; a graph is a line `a b` for each link, or in METIS's format".into(),
            ));
        }
        let (nodes, links) = Graph::links_of(text).map_err(wrong)?;
        let graph = Graph::of(source, nodes, links);
        match (0..nodes).find(|node| graph.distance_of(0, *node).is_none()) {
            Some(node) => Err(wrong(format!("no way leads from node 0 to node {node}; every node must be reached"))),
            None => Ok(graph),
        }
    }

    /// The number of nodes, and the links, of a text in one of the two formats.
    fn links_of(text: &str) -> Result<metis::Links, String> {
        let listed = Graph::edge_list(text);
        let is_whole = listed.as_ref().is_ok_and(|(nodes, links)| is_connected(*nodes, links));
        match metis::is_one(text) {
            // An edge list may look like one by chance. A graph of METIS's with a mistake may be read as an edge list, but seldom as a connected one.
            true => metis::read(text).or_else(|why| listed.ok().filter(|_| is_whole && metis::has_even_lines(text)).ok_or(why)),
            false if !is_whole && metis::resembles(text) => metis::read(text),
            false => listed,
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

    /// The graph of known links, with all distances by breadth-first search, or Dijkstra's where bandwidths differ.
    fn of(source: &str, nodes: u32, links: Vec<Link>) -> Graph {
        let mut beside: Vec<Vec<(NodeId, u32)>> = vec![Vec::new(); nodes as usize];
        let fastest = links.iter().map(|link| link.bandwidth).fold(0.0, f64::max);
        for Link { ends: (a, b), bandwidth } in &links {
            let cost = (f64::from(FASTEST) * fastest / bandwidth).round().min(f64::from(u32::MAX)) as u32;
            beside[*a as usize].push((*b, cost));
            beside[*b as usize].push((*a, cost));
        }
        let (mut first, mut neighbours, mut link_costs) = (vec![0], Vec::with_capacity(2 * links.len()), Vec::new());
        for mut others in beside {
            others.sort_unstable();
            neighbours.extend(others.iter().map(|(other, _)| *other));
            link_costs.extend(others.iter().map(|(_, cost)| *cost));
            first.push(neighbours.len() as u32);
        }
        if link_costs.iter().all(|cost| *cost == FASTEST) {
            link_costs = Vec::new();
        }
        let mut graph = Graph {
            source: names::one_line(source.to_string()),
            links,
            first,
            neighbours,
            distances: Vec::new(),
            costs: Vec::new(),
            link_costs,
            embedding: OnceLock::new(),
            rounds: OnceLock::new(),
        };
        if !graph.link_costs.is_empty() {
            (graph.costs, graph.distances) = graph.cheapest_routes();
            return graph;
        }
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

    /// Costs and hops of the cheapest routes between all nodes.
    fn cheapest_routes(&self) -> (Vec<u64>, Vec<u16>) {
        let nodes = self.nodes() as usize;
        let (mut costs, mut hops) = (vec![u64::MAX; nodes * nodes], vec![UNREACHED; nodes * nodes]);
        for (start, (costs, hops)) in (0..).zip(costs.chunks_mut(nodes).zip(hops.chunks_mut(nodes))) {
            (costs[start as usize], hops[start as usize]) = (0, 0);
            let mut ahead = BinaryHeap::from([Reverse((0, 0, start))]);
            while let Some(Reverse((cost, far, node))) = ahead.pop() {
                if (cost, far) > (costs[node as usize], hops[node as usize]) {
                    continue;
                }
                for (&other, link) in self.beside(node).iter().zip(self.costs_beside(node)) {
                    let (known, found) = ((costs[other as usize], hops[other as usize]), (cost + u64::from(*link), far + 1));
                    if found < known {
                        (costs[other as usize], hops[other as usize]) = found;
                        ahead.push(Reverse((found.0, found.1, other)));
                    }
                }
            }
        }
        (costs, hops)
    }

    /// Text after `graph:`: the printable name of its file, or its edges.
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

    /// Its embedding into a hyper-grid, computed at the first call.
    pub fn embedding(&self) -> &Embedding {
        self.embedding.get_or_init(|| Embedding::of(self))
    }

    /// Rounds in which each link is used once and every node has at most one partner, given as each node's partner by round. This is a
    /// greedy colouring of the links, with fewer than twice as many rounds as the largest degree. Links that are slower than a way around
    /// them are left out.
    pub fn rounds(&self) -> impl Iterator<Item = &[Option<NodeId>]> {
        let colour = || {
            let mut rounds: Vec<Vec<Option<NodeId>>> = Vec::new();
            for Link { ends: (a, b), .. } in self.links.iter().filter(|link| self.is_best(link.ends)) {
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

    /// Bandwidth of the link between two neighbours; 1 where there is none.
    pub fn bandwidth(&self, a: NodeId, b: NodeId) -> f64 {
        let at = self.links.binary_search_by_key(&(a.min(b), a.max(b)), |link| link.ends);
        at.map_or(1.0, |at| self.links[at].bandwidth)
    }

    /// Returns true if links have different bandwidths.
    pub fn has_unequal_links(&self) -> bool {
        !self.link_costs.is_empty()
    }

    /// Cost of a byte on the cheapest route between two nodes, relative to [`FASTEST`] on the fastest link.
    pub fn cost(&self, a: NodeId, b: NodeId) -> u64 {
        match self.costs.is_empty() {
            true => u64::from(FASTEST) * u64::from(self.distance(a, b)),
            false => self.costs[a as usize * self.nodes() as usize + b as usize],
        }
    }

    /// Every link once, in ascending order, with its cost for a unit carried: 1 where all links have the same bandwidth, otherwise
    /// as [`cost`](Graph::cost).
    pub fn link_costs(&self) -> Vec<((NodeId, NodeId), u32)> {
        let cost = |(a, b): (NodeId, NodeId)| match self.link_costs.is_empty() {
            true => 1,
            false => self.beside(a).binary_search(&b).map_or(FASTEST, |at| self.costs_beside(a)[at]),
        };
        self.links.iter().map(|link| (link.ends, cost(link.ends))).collect()
    }

    /// The most links of a route of which each is nearer to its end, if a hop is as near as the fastest link makes it: the diameter where all links have
    /// the same bandwidth.
    pub fn longest_descent(&self) -> u32 {
        let most = self.costs.iter().max().map(|most| most / u64::from(FASTEST));
        most.map_or(self.diameter(), |most| u32::try_from(most).unwrap_or(u32::MAX).min(self.nodes() - 1))
    }

    /// Returns true if no way around the link between two neighbours is cheaper.
    fn is_best(&self, (a, b): (NodeId, NodeId)) -> bool {
        self.distance(a, b) == 1
    }

    /// Costs of the links to this node's neighbours; empty where all links have the same bandwidth.
    fn costs_beside(&self, node: NodeId) -> &[u32] {
        match self.link_costs.is_empty() {
            true => &[],
            false => &self.link_costs[self.first[node as usize] as usize..self.first[node as usize + 1] as usize],
        }
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
        if self.costs.is_empty() {
            let nearer = |other: &&NodeId| self.distance(**other, to) < self.distance(from, to);
            return self.beside(from).iter().find(nearer).copied().unwrap_or(from);
        }
        let whole = (self.cost(from, to), self.distance(from, to));
        let on_route =
            |(other, link): &(&NodeId, &u32)| (self.cost(**other, to) + u64::from(**link), self.distance(**other, to) + 1) == whole;
        self.beside(from).iter().zip(self.costs_beside(from)).find(on_route).map_or(from, |(other, _)| *other)
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

/// Returns true if these links join all nodes.
fn is_connected(nodes: u32, links: &[Link]) -> bool {
    let mut leader: Vec<usize> = (0..nodes as usize).collect();
    let find = |leader: &mut Vec<usize>, mut node: usize| {
        while leader[node] != node {
            leader[node] = leader[leader[node]];
            node = leader[node];
        }
        node
    };
    let mut parts = nodes;
    for Link { ends: (a, b), .. } in links {
        let (a, b) = (find(&mut leader, *a as usize), find(&mut leader, *b as usize));
        if a != b {
            leader[a] = b;
            parts -= 1;
        }
    }
    parts == 1
}

/// The cost of the fastest link of a graph: costs of the others are rounded to a part of it.
pub const FASTEST: u32 = 1000;

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
        assert_eq!((graph.distance(1, 4), graph.next_hop(1, 4), graph.next_hop(0, 4), graph.next_hop(2, 2)), (3, 2, 3, 2));
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
        // A mistake in one is not hidden because the text can be read as an edge list, too.
        for (text, why) in [
            ("4 3\n2\n1 3\n2\n3\n", "line 5: the link between 3 and 4 is not on the line of the other node"),
            ("% c\n4 3\n2\n1 3\n2\n3\n", "line 6: the link between 3 and 4 is not on the line of the other node"),
            ("4 5\n2\n1 3\n2 4\n3\n", "it has 3 links, and its first line announces 5"),
            ("4 3\n2\n1 3\n2 4\n", "it has lines for 3 nodes, and its first line announces 4"),
            ("4 3\n2\n1 3\n2 4\n3\n2\n", "line 6: \"2\" stands behind the lines of all 4 nodes"),
            ("4 3\n2\n1 3\n2 4\n7\n", "line 5: neighbour 7, but the nodes are 1 to 4"),
            ("4 3\n1\n0 2\n1 3\n2\n", "line 2: node 1 is no neighbour of itself"),
            // Read as an edge list it is connected, but some lines name one node and others a link.
            ("3 1 10\n0 2\n2 3\n0\n", "line 2: the link between 1 and 2 is not on the line of the other node"),
        ] {
            assert_eq!(refusal(text), format!("topology graph:net.txt: {why}"), "{text:?}");
        }
        // Numbered from 1 it is still an edge list.
        assert!(refusal("1 2\n2 3\n3 4\n").ends_with("no way leads from node 0 to node 1; every node must be reached"));
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
    fn routes_avoid_slow_links_where_a_way_around_is_cheaper() {
        let triangle = |bandwidth: &str| Graph::read("net", &format!("0 1 1\n1 2 1\n2 0 {bandwidth}\n")).unwrap();
        let slow = triangle("0.001");
        assert_eq!((slow.next_hop(0, 2), slow.next_hop(2, 0), slow.distance(0, 2), slow.diameter()), (1, 1, 2, 2));
        assert_eq!((slow.cost(0, 1), slow.cost(0, 2)), (1_000, 2_000));
        assert_eq!(slow.link_costs(), [((0, 1), 1_000), ((0, 2), 1_000_000), ((1, 2), 1_000)]);
        // The link between 0 and 2 has no round.
        assert_eq!(slow.rounds().map(<[_]>::to_vec).collect::<Vec<_>>(), [[Some(1), Some(0), None], [None, Some(2), Some(1)]]);
        // Half as fast is as cheap as two hops, and fewer hops win.
        let half = triangle("0.5");
        assert_eq!((half.next_hop(0, 2), half.distance(0, 2), half.cost(0, 2), half.rounds().count()), (2, 1, 2_000, 3));
        // The only way is taken whatever it costs.
        let line = Graph::read("net", "0 1 0.001\n1 2 1\n").unwrap();
        assert_eq!((line.next_hop(0, 2), line.cost(0, 2), line.bandwidth(1, 0)), (1, 1_001_000, 0.001));
        // Only ratios count.
        let same = Graph::read("net", "0 1 7\n1 2 7\n2 0 7\n").unwrap();
        assert_eq!((same.cost(0, 2), same.link_costs()[1]), (1_000, ((0, 2), 1)));
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
