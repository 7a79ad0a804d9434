//! Loads drawn on their topology: each node is a vessel, filled up to its load. Many nodes are drawn as a histogram.

use super::chart::{Scale, plain};
use super::figures::{several, whole};
use super::layout::{self, TopologyDrawing};
use super::svg::{Anchor, Svg};
use crate::experiment::LoadMap;

const WIDTH: f64 = 360.0;
const EDGE: f64 = 8.0;
const TALLEST: f64 = 420.0;
/// Minimum distance of nodes; closer ones cannot be distinguished.
const CLOSEST: f64 = 6.0;
/// The widest vessel.
const VESSEL: f64 = 34.0;

/// The loads of all nodes at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    Before,
    After,
}

impl Time {
    fn of(self, map: &LoadMap) -> &[u64] {
        match self {
            Time::Before => &map.before,
            Time::After => &map.after,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Time::Before => "before",
            Time::After => "after",
        }
    }
}

/// Pictures of the same loads before and after, on the same scale.
pub struct Sketches {
    pub before: String,
    pub after: String,
    /// Whether single nodes are drawn.
    pub nodes: bool,
    /// A remark on links that are not drawn.
    pub omits: Option<&'static str>,
}

/// Draws them.
pub fn sketches(map: &LoadMap) -> Sketches {
    match layout::of(&map.topology).map(|layout| (spacing(&layout), layout)) {
        Some((spacing, layout)) if spacing >= CLOSEST => Sketches {
            before: nodes(map, &layout, spacing, Time::Before),
            after: nodes(map, &layout, spacing, Time::After),
            nodes: true,
            omits: layout.omits,
        },
        _ => Sketches { before: histogram(map, Time::Before), after: histogram(map, Time::After), nodes: false, omits: None },
    }
}

/// The corner and the size of the rectangle that holds all points.
fn bounds(layout: &TopologyDrawing) -> ((f64, f64), (f64, f64)) {
    let range = |of: fn(&(f64, f64)) -> f64| {
        let values = || layout.points.iter().map(of);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        (low, high - low)
    };
    let ((left, width), (top, height)) = (range(|point| point.0), range(|point| point.1));
    ((left, top), (width, height))
}

/// The size, in pixels, of the layout's unit: as large as the picture allows.
fn spacing(layout: &TopologyDrawing) -> f64 {
    let (_, (width, height)) = bounds(layout);
    let (across, down) = ((WIDTH - 2.0 * EDGE) / (width + 1.0), (TALLEST - 2.0 * EDGE) / (height + 1.0));
    across.min(down).min(2.2 * VESSEL)
}

fn nodes(map: &LoadMap, layout: &TopologyDrawing, spacing: f64, time: Time) -> String {
    let loads = time.of(map);
    let top = map.before.iter().chain(&map.after).chain(&map.quota).copied().max().unwrap_or(0).max(1) as f64;
    let ((left, upper), (width, height)) = bounds(layout);
    let labelled = spacing >= 23.0;
    // A vessel leaves room for its number and for links to be seen.
    let side = (spacing * if labelled { 0.46 } else { 0.6 }).min(VESSEL);
    let margin = (WIDTH - width * spacing) / 2.0;
    let at = |(x, y): (f64, f64)| (margin + (x - left) * spacing, EDGE + spacing / 2.0 + (y - upper) * spacing);
    let title = format!("loads {} on {}", time.name(), map.topology.kind());
    let mut svg = Svg::new(WIDTH, (height + 1.0) * spacing + 2.0 * EDGE + 4.0, &title);
    for (a, b) in &layout.links {
        svg.line(at(layout.points[*a as usize]), at(layout.points[*b as usize]), "link");
    }
    for (node, point) in layout.points.iter().enumerate() {
        let ((x, y), load, quota) = (at(*point), loads[node], map.quota[node]);
        let id = node as u32;
        let is_virtual = map.placement.is_virtual(id);
        let host = if is_virtual { format!(", virtual, on rank {}", map.placement.rank_of(id)) } else { String::new() };
        svg.group(&format!("node {node}{host}: {}, quota {}", several(load, "task"), whole(quota)), |svg| {
            let (left, base) = (x - side / 2.0, y + side / 2.0);
            svg.rect(left, y - side / 2.0, side, side, "vessel");
            let full = side * load as f64 / top;
            svg.rect(left, base - full, side, full, "fill");
            svg.rect(left, y - side / 2.0, side, side, if is_virtual { "rim virtual" } else { "rim" });
            let level = base - side * quota as f64 / top;
            if quota > 0 && side > 5.0 {
                svg.line((left - 2.5, level), (left + side + 2.5, level), "halo");
                svg.line((left - 2.5, level), (left + side + 2.5, level), "level");
            }
            if labelled {
                let text = plain(load as f64);
                let fits = spacing >= 30.0 || text.len() <= 4;
                svg.text((x, base + 10.5), Anchor::Middle, if fits { "load" } else { "load small" }, &text);
            }
        });
    }
    svg.finish()
}

const BINS: usize = 20;

fn histogram(map: &LoadMap, time: Time) -> String {
    const HEIGHT: f64 = 200.0;
    const LEFT: f64 = 52.0;
    const BASE: f64 = HEIGHT - 42.0;
    let most = map.before.iter().chain(&map.after).copied().max().unwrap_or(0).max(1);
    let across = Scale::up_to(most as f64);
    let counts = |time: Time| {
        let mut counts = [0u64; BINS];
        for load in time.of(map) {
            counts[((*load as f64 / across.end * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
        counts
    };
    let up = Scale::up_to(counts(Time::Before).into_iter().chain(counts(Time::After)).max().unwrap_or(1) as f64);
    let plot = WIDTH - LEFT - 16.0;
    let x = |value: f64| LEFT + value / across.end * plot;
    let y = |count: f64| BASE - count / up.end * (BASE - 24.0);
    let mut svg = Svg::new(WIDTH, HEIGHT, &format!("numbers of nodes by their loads {}", time.name()));
    for tick in up.ticks() {
        svg.line((LEFT - 4.0, y(tick)), (WIDTH - 16.0, y(tick)), "gridline");
        svg.text((LEFT - 7.0, y(tick) + 4.0), Anchor::End, "tick", &plain(tick));
    }
    for (bin, count) in counts(time).into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let (from, to) = (x(across.end * bin as f64 / BINS as f64), x(across.end * (bin + 1) as f64 / BINS as f64));
        let says = format!(
            "{} to {} tasks: {}",
            plain(across.end * bin as f64 / BINS as f64),
            plain(across.end * (bin + 1) as f64 / BINS as f64),
            several(count, "node")
        );
        // Even one node in a million is visible.
        let height = (BASE - y(count as f64)).max(1.5);
        svg.group(&says, |svg| svg.rect(from + 0.5, BASE - height, to - from - 1.0, height, "fill rim"));
    }
    for tick in across.ticks() {
        svg.line((x(tick), BASE), (x(tick), BASE + 4.0), "axis");
        svg.text((x(tick), BASE + 16.0), Anchor::Middle, "tick", &plain(tick));
    }
    svg.line((LEFT, BASE), (WIDTH - 16.0, BASE), "axis");
    svg.text((LEFT + plot / 2.0, BASE + 32.0), Anchor::Middle, "caption", "tasks of a node");
    svg.text((2.0, 11.0), Anchor::Start, "caption", "nodes");
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::topology::{Placement, Topology};

    fn map(spec: &str, ranks: u32) -> LoadMap {
        let topology = Topology::parse(spec, ranks).unwrap();
        let nodes = topology.nodes();
        LoadMap {
            placement: Placement::one_host(nodes, ranks).unwrap(),
            before: (0..nodes).map(u64::from).collect(),
            quota: vec![3; nodes as usize],
            after: vec![3; nodes as usize],
            topology,
        }
    }

    #[test]
    fn every_node_is_drawn_with_its_load() {
        let Sketches { before, after, nodes, omits } = sketches(&map("hypercube:3", 7));
        assert!(nodes && omits.is_none());
        assert_eq!((before.matches("\"vessel\"").count(), after.matches("\"link\"").count()), (8, 12));
        assert!(before.contains("node 7, virtual, on rank 0: 7 tasks, quota 3") && before.contains("rim virtual"));
        assert!(before.contains(">7</text>") && !after.contains(">7</text>"));
    }

    #[test]
    fn pictures_of_all_topologies_have_their_measure() {
        for spec in
            "hypercube:8 mesh:16x16 torus:8x8 grid:4x4x4 line:256 ring:256 complete:256 tree:binary complete:1 hypercube:5".split(' ')
        {
            let drawn = sketches(&map(spec, if spec == "tree:binary" { 31 } else { Topology::parse(spec, 1).unwrap().nodes() }));
            assert!(drawn.nodes, "{spec}");
            let height: f64 = drawn.before.split("viewBox=\"0 0 360 ").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
            assert!(height <= TALLEST + 30.0, "{spec}: {height}");
        }
    }

    #[test]
    fn many_nodes_are_counted() {
        let drawn = sketches(&map("hypercube:10", 1024));
        assert!(!drawn.nodes && drawn.before.contains("tasks of a node") && drawn.after.contains("1,024 nodes"));
    }
}
