//! Graphs in the format of METIS (Karypis and Kumar 1998, section 4.1.1 of its manual), which Chaco and many collections share.
//!
//! ```text
//! % a triangle with a tail
//! 4 4 001
//! 2 5 3 1
//! 1 5 3 1
//! 1 1 2 1 4 2
//! 3 2
//! ```
//!
//! The first line has the numbers of nodes and of links, and may have a format: three digits that say whether nodes have sizes, whether
//! they have weights (how many, a fourth number says), and whether links have weights. Then follows a line for each node: its size, its
//! weights, and its neighbours, each with the link's weight; nodes are numbered from 1 here. Each link stands in both its nodes' lines.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{Link, MAX_GRAPH_NODES};
use crate::spec::shown;
use crate::topology::NodeId;

/// Maximum number of weights of a node.
const MOST_WEIGHTS: usize = 64;

/// Content of the lines: number of nodes, and the links in ascending order.
pub(super) type Links = (u32, Vec<Link>);

/// Content of the first line.
#[derive(Debug, PartialEq)]
struct Head {
    nodes: usize,
    links: usize,
    /// Numbers before the neighbours on each node's line.
    own: usize,
    has_weights: bool,
}

impl Head {
    fn parse(line: &str) -> Option<Head> {
        let items: Vec<&str> = line.split_whitespace().collect();
        let (nodes, links, format, count) = match *items {
            [nodes, links] => (nodes, links, "0", None),
            [nodes, links, format] => (nodes, links, format, None),
            [nodes, links, format, count] => (nodes, links, format, Some(count)),
            _ => return None,
        };
        let digit = |place: usize| format.bytes().rev().nth(place).unwrap_or(b'0') == b'1';
        if format.len() > 3 || !format.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
            return None;
        }
        let count = match count {
            Some(count) => count.parse().ok().filter(|count| (usize::from(digit(1))..=MOST_WEIGHTS).contains(count))?,
            None => 1,
        };
        let own = usize::from(digit(2)) + if digit(1) { count } else { 0 };
        Some(Head { nodes: nodes.parse().ok().filter(|nodes| *nodes > 0)?, links: links.parse().ok()?, own, has_weights: digit(0) })
    }
}

/// The lines that are no comments, with their numbers; at the end no empty ones.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines: Vec<_> = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.starts_with('%')).collect();
    let first = lines.iter().position(|(_, line)| !line.is_empty()).unwrap_or(lines.len());
    lines.drain(..first);
    lines
}

/// Returns true if a text looks like this format, and not like an edge list: the number of nodes in its first line is the number of lines
/// that follow, or it has comments in METIS's form. Nodes of edge lists are numbered from 0, and node 0 has a link; here no neighbour is 0.
pub(super) fn is_one(text: &str) -> bool {
    let all = lines(text);
    if text.lines().any(|line| line.trim_start().starts_with('%')) {
        return true;
    }
    let Some(((_, head), rest)) = all.split_first() else { return false };
    // Without links it would fall apart, and be an edge list with node 0 on its first line.
    let Some(head) = Head::parse(head).filter(|head| head.links > 0) else { return false };
    let stride = 1 + usize::from(head.has_weights);
    let names_0 = |(_, line): &(usize, &str)| line.split_whitespace().skip(head.own).step_by(stride).any(|item| item == "0");
    let written = rest.iter().rposition(|(_, line)| !line.is_empty()).map_or(0, |last| last + 1);
    written <= head.nodes && rest.len() >= head.nodes && !text.contains(['#', ',', ';']) && !rest.iter().any(names_0)
}

/// Returns true if a text that is no connected edge list looks like this format with a mistake: its number of lines is nearly that of the nodes in
/// its first line, and they are not all of the form of links.
pub(super) fn resembles(text: &str) -> bool {
    let all = lines(text);
    let Some(((_, head), rest)) = all.split_first() else { return false };
    let Some(head) = Head::parse(head).filter(|head| head.links > 0) else { return false };
    let written = rest.iter().filter(|(_, line)| !line.is_empty()).count();
    written.abs_diff(head.nodes) <= 1 + head.nodes / 10 && !text.contains(['#', ',', ';']) && !has_even_lines(text)
}

/// Returns true if each line of a text is a link of an edge list, all with a bandwidth or all without one.
pub(super) fn has_even_lines(text: &str) -> bool {
    let mut counts = text.lines().map(|line| line.split_whitespace().count()).filter(|count| *count > 0);
    counts.next().is_some_and(|first| matches!(first, 2 | 3) && counts.all(|count| count == first))
}

/// Reads a text in this format.
///
/// # Errors
/// Error with the line in front.
pub(super) fn read(text: &str) -> Result<Links, String> {
    let mut all = lines(text).into_iter();
    let (number, line) = all.next().ok_or("it has no nodes")?;
    let head = Head::parse(line).ok_or_else(|| format!("line {number}: it is not of METIS's form NODES LINKS [FORMAT [WEIGHTS]]"))?;
    if head.nodes > MAX_GRAPH_NODES as usize {
        return Err(format!("line {number}: {} nodes, but a graph has at most {MAX_GRAPH_NODES}", head.nodes));
    }
    // By its nodes, the lower first: the weight, and on which line it stood; twice in the end.
    let mut found: BTreeMap<(NodeId, NodeId), (f64, usize, bool)> = BTreeMap::new();
    for node in 0..head.nodes as NodeId {
        let Some((number, line)) = all.next() else {
            return Err(format!("it has lines for {node} nodes, and its first line announces {}", head.nodes));
        };
        neighbours(node, line, &head, number, &mut found).map_err(|why| format!("line {number}: {why}"))?;
    }
    if let Some((number, line)) = all.find(|(_, line)| !line.is_empty()) {
        return Err(format!("line {number}: \"{}\" stands behind the lines of all {} nodes", shown(line), head.nodes));
    }
    if let Some(((a, b), (_, number, _))) = found.iter().find(|(_, (_, _, twice))| !twice) {
        return Err(format!("line {number}: the link between {} and {} is not on the line of the other node", a + 1, b + 1));
    }
    if found.len() != head.links {
        return Err(format!("it has {} links, and its first line announces {}", found.len(), head.links));
    }
    Ok((head.nodes as u32, found.into_iter().map(|(ends, (bandwidth, ..))| Link { ends, bandwidth }).collect()))
}

/// Reads the line of a node.
fn neighbours(
    node: NodeId,
    line: &str,
    head: &Head,
    number: usize,
    found: &mut BTreeMap<(NodeId, NodeId), (f64, usize, bool)>,
) -> Result<(), String> {
    let mut items = line.split_whitespace();
    for _ in 0..head.own {
        let own = items.next().ok_or("the node's own size or weights are missing")?;
        own.parse::<u64>().map_err(|_| format!("the node's size or weight \"{}\" is not a whole number", shown(own)))?;
    }
    while let Some(item) = items.next() {
        let other = match item.parse::<usize>() {
            Ok(other) if (1..=head.nodes).contains(&other) => other as NodeId - 1,
            Ok(other) => return Err(format!("neighbour {other}, but the nodes are 1 to {}", head.nodes)),
            Err(_) => return Err(format!("\"{}\" is not the number of a node", shown(item))),
        };
        let weight = match head.has_weights.then(|| items.next()) {
            None => 1.0,
            Some(weight) => {
                let weight = weight.ok_or_else(|| format!("the weight of the link to {} is missing", other + 1))?;
                let positive = weight.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0);
                positive.ok_or_else(|| format!("the link's weight \"{}\" is not a number above 0", shown(weight)))?
            }
        };
        if other == node {
            return Err(format!("node {} is no neighbour of itself", node + 1));
        }
        match found.entry((node.min(other), node.max(other))) {
            Entry::Vacant(place) => {
                place.insert((weight, number, false));
            }
            Entry::Occupied(mut place) => {
                let (earlier, on, twice) = place.get_mut();
                if *twice || *on == number {
                    return Err(format!("neighbour {} stands there twice", other + 1));
                }
                if *earlier != weight {
                    return Err(format!("the link to {} has the weight {weight} here, and {earlier} on line {on}", other + 1));
                }
                *twice = true;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The graph of figure 3 of METIS's manual (version 5), without and with weights.
    const PLAIN: &str = "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n";
    const WEIGHTED: &str = "% weights of nodes and links\n7 11 011\n4 5 1 3 2 2 1\n2 1 1 3 2 4 1\n5 5 3 4 2 2 2 1 2\n\
                            3 2 1 3 2 6 2 7 5\n1 1 1 3 3 6 2\n6 5 2 4 2 7 6\n2 6 6 4 5\n";

    #[test]
    fn the_manuals_graphs_are_read() {
        let (nodes, plain) = read(PLAIN).unwrap();
        assert_eq!((nodes, plain.len()), (7, 11));
        let (_, weighted) = read(WEIGHTED).unwrap();
        let ends = |links: &[Link]| links.iter().map(|link| link.ends).collect::<Vec<_>>();
        assert_eq!(ends(&plain), ends(&weighted));
        assert_eq!(weighted.last(), Some(&Link { ends: (5, 6), bandwidth: 6.0 }));
        // Three weights a node, and sizes.
        assert_eq!(read("2 1 110 3\n9 1 0 2 2\n9 0 2 1 1\n").unwrap().1.len(), 1);
        assert_eq!(read("1 0\n\n").unwrap(), (1, Vec::new()));
        assert!([PLAIN, WEIGHTED, "2 1 110 3\n9 1 0 2 2\n9 0 2 1 1\n"].map(is_one).iter().all(|is| *is));
    }

    #[test]
    fn edge_lists_are_told_from_it() {
        for text in
            ["0 1\n1 2\n2 0\n", "4 3\n0 1\n1 2\n2 3\n3 0\n", "2 1\n1 0\n", "1 0\n2 1\n", "# 1 1\n0 1\n", "0\n", "", "3 2\n2,1\n0,1\n"]
        {
            assert!(!is_one(text), "{text:?}");
        }
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, why) in [
            ("3 2\n2\n1 3\n", "it has lines for 2 nodes, and its first line announces 3"),
            ("3 2\n2\n1 3\n\n", "line 3: the link between 2 and 3 is not on the line of the other node"),
            ("3 3\n2\n1 3\n2\n", "it has 2 links, and its first line announces 3"),
            ("3 2\n2\n1 3\n2 4\n", "line 4: neighbour 4, but the nodes are 1 to 3"),
            ("3 2\n2\n1 3\n2 0\n", "line 4: neighbour 0, but the nodes are 1 to 3"),
            ("3 2\n2 2\n1 3\n2\n", "line 2: neighbour 2 stands there twice"),
            ("3 2\n2\n1 3 x\n2\n", "line 3: \"x\" is not the number of a node"),
            ("3 2\n2\n1 2 3\n2\n", "line 3: node 2 is no neighbour of itself"),
            ("3 2\n2\n1 3\n2\n1\n", "line 5: \"1\" stands behind the lines of all 3 nodes"),
            ("% c\n2 1 1\n2 7\n1 8\n", "line 4: the link to 1 has the weight 8 here, and 7 on line 3"),
            ("2 1 1\n2\n1 8\n", "line 2: the weight of the link to 2 is missing"),
            ("2 1 1\n2 0\n1 0\n", "line 2: the link's weight \"0\" is not a number above 0"),
            ("2 1 1\n2 2\0\n1 0\n", "line 2: the link's weight \"2\\x00\" is not a number above 0"),
            ("2 1 10\n\n1 1\n", "line 2: the node's own size or weights are missing"),
            ("2 1 10\nx 2\n1 1\n", "line 2: the node's size or weight \"x\" is not a whole number"),
            ("5000 1\n", "line 1: 5000 nodes, but a graph has at most 4096"),
            ("2 1 2\n", "line 1: it is not of METIS's form NODES LINKS [FORMAT [WEIGHTS]]"),
        ] {
            assert_eq!(read(text).unwrap_err(), why, "{text:?}");
        }
    }
}
