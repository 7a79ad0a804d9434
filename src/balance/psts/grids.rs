//! Choice of the grid for a network: among all grids with one node per rank, the one with the least predicted time of a phase.
//!
//! Savvas and Kechadi 2004 count 2 (n_1 + .. + n_d - d) steps for a grid of sides n_1 to n_d (equation 11), so that ceil(log2 n) dimensions are best
//! (equation 15, proposition 4.1). That is for scans that pass from neighbour to neighbour. Ours are trees: a level of m sub-grids of s nodes takes
//! 2 ceil(log2 s) + ceil(log2 m) + 1 steps, so where all messages take equally long, the fewer dimensions the better. What a step takes depends on
//! how far its messages go, and on their bytes. So the messages of each step are listed, as [`Psts`](super::Psts) sends them, and the time of the last one to
//! arrive is predicted. Payloads of tasks are left out, since the grid is chosen before the loads are known: where they take longer than the start-ups of
//! messages that go from hop to hop, more dimensions would be faster.

use super::levels;
use crate::node::HEADER_BYTES;
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{Grid, KnownNetwork, NodeId, Overlay, Topology};

/// Bytes of the number of units that a message tells.
const NUMBER_BYTES: u64 = 8;
/// Passages that are looked up in all, at most: some milliseconds.
const MOST_PASSAGES: u64 = 1 << 20;
/// Nodes up to which every pair of a step counts; beyond, this number of them, evenly chosen, stands for all.
const EVERY_PAIR: u32 = 1 << 10;

/// The grid on which a phase is predicted to take the least time on this network.
pub(super) fn suited(network: &KnownNetwork<'_>) -> Topology {
    let ranks = network.hosts().ranks();
    let predicted = |topology: Topology| {
        let overlay = Overlay::new(topology, network.hosts().clone()).ok()?;
        Some((predicted(&overlay, network), overlay.topology))
    };
    // Of equally good ones the first, which has the fewest dimensions.
    let best = grids(ranks).into_iter().map(|sides| Topology::Grid(Grid::of(&sides))).filter_map(predicted).min_by_key(|(ticks, _)| *ticks);
    best.map_or_else(|| Topology::Grid(Grid::of(&[ranks.max(1)])), |(_, topology)| topology)
}

/// Sides of all grids with one node per rank and sides of at least two, and of the grid with all sides two, even if some of its nodes are
/// virtual. They are ordered by dimension, then the more even first. Very long lists are truncated.
fn grids(ranks: u32) -> Vec<Vec<u32>> {
    let cube = vec![2; ranks.next_power_of_two().ilog2() as usize];
    if ranks < 4 {
        return vec![vec![ranks.max(1)]];
    }
    let mut all = Vec::new();
    factorisations(ranks, &mut Vec::new(), &mut all);
    let sum = |sides: &Vec<u32>| sides.iter().map(|side| u64::from(*side)).sum::<u64>();
    all.sort_by_key(|sides| (sides.len(), sum(sides)));
    let steps = 4 * u64::from(ranks.ilog2());
    let affordable = MOST_PASSAGES / (steps * u64::from(ranks.min(EVERY_PAIR)));
    // The cube is asked in any case.
    all.retain(|sides| *sides != cube);
    all.truncate((affordable as usize).max(2) - 1);
    all.push(cube);
    all
}

/// All ways to write a number as a product of factors from two, in every order; stops at some thousands.
fn factorisations(number: u32, before: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
    const ENOUGH: usize = 4096;
    if number == 1 {
        found.push(before.clone());
    }
    // Large factors first: few dimensions.
    for factor in (2..=number).rev().filter(|factor| number.is_multiple_of(*factor)) {
        if found.len() >= ENOUGH {
            return;
        }
        before.push(factor);
        factorisations(number / factor, before, found);
        before.pop();
    }
}

/// Nanoseconds of a phase in which every node of a sender gives something: a message leaves when its node has got those of the steps before.
fn predicted(overlay: &Overlay, network: &KnownNetwork<'_>) -> u64 {
    let nodes = overlay.topology.nodes();
    let every = nodes.div_ceil(EVERY_PAIR);
    // When each chosen node, which stands for those up to the next one, has got all messages so far.
    let mut clocks = vec![0u64; nodes.div_ceil(every) as usize];
    let mut step = |bytes: u64, partner: &dyn Fn(NodeId) -> Option<NodeId>| {
        let before = clocks.clone();
        for (node, left) in (0..nodes).step_by(every as usize).zip(before) {
            if let Some(to) = partner(node) {
                let arrival = left.saturating_add(network.passage(overlay, node, to, bytes));
                let clock = &mut clocks[(to / every) as usize];
                *clock = arrival.max(*clock);
            }
        }
    };
    let said = HEADER_BYTES + NUMBER_BYTES;
    for (_, sub_grids, stride) in levels(&overlay.topology, 0) {
        let reaches = |size: u32| (0..size.next_power_of_two().ilog2()).map(|k| 1 << k);
        for reach in reaches(stride) {
            step(said, &|node| (node % stride + reach < stride).then_some(node + reach));
        }
        // From the last node of each sub-grid; places are counted from it.
        for reach in reaches(stride) {
            let turned = |node: NodeId| (node % stride + 1) % stride;
            step(said, &|node| {
                (turned(node) < reach && turned(node) + reach < stride)
                    .then(|| node - node % stride + (turned(node) + reach + stride - 1) % stride)
            });
        }
        let grid = sub_grids * stride;
        for reach in reaches(sub_grids) {
            let values = u64::from(reach.min(sub_grids - reach));
            step(HEADER_BYTES + NUMBER_BYTES * values, &|node| Some(node - node % grid + (node % grid + grid - reach * stride) % grid));
        }
        // Tasks go anywhere in the other sub-grids; the opposite place of the one half way round stands for where.
        let half = sub_grids / 2;
        step(TRANSFER_BYTES, &|node| {
            let (corner, place) = (node - node % grid, node % grid);
            Some(corner + ((place / stride + half) % sub_grids) * stride + (stride - 1 - place % stride))
        });
    }
    clocks.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Hosts, Kind};

    fn chosen(hosts: Hosts) -> String {
        suited(&KnownNetwork::of_hosts(hosts)).name()
    }

    #[test]
    fn every_grid_of_as_many_nodes_is_a_candidate() {
        assert_eq!(grids(8), [vec![8], vec![4, 2], vec![2, 4], vec![2, 2, 2]]);
        assert_eq!(grids(12).len(), 9);
        // A prime number of ranks has a line, and the cube with virtual nodes.
        assert_eq!(grids(7), [vec![7], vec![2, 2, 2]]);
        assert_eq!((grids(1), grids(3)), (vec![vec![1]], vec![vec![3]]));
        assert_eq!(grids(64).len(), 32);
        for ranks in [1000, 4096, 100_000, 720_720, 1 << 20] {
            assert!(grids(ranks).len() >= 2 && grids(ranks)[0].len() == 1, "{ranks}");
        }
    }

    #[test]
    fn steps_are_at_most_those_of_the_balancers_cost() {
        let each = KnownNetwork::new(Hosts::single(60), |_, _, _, _| 1);
        for sides in grids(60) {
            let overlay = Overlay::new(Topology::Grid(Grid::of(&sides)), Hosts::single(60));
            let Ok(overlay) = overlay else { continue };
            let (ours, most) = (predicted(&overlay, &each), super::super::cost(&overlay.topology).steps);
            // The cost counts as if every node waited for the slowest one of the level before, of which a line has none.
            assert!(ours <= most && 3 * ours >= 2 * most && (ours == most || sides.len() > 1), "{sides:?}: {ours}, at most {most}");
        }
        // The longest chains of messages of simulated phases (uniform loads of 1,000 on average) are 7, 13, 12 and 27.
        let steps = |sides: &[u32]| predicted(&Overlay::new(Topology::Grid(Grid::of(sides)), Hosts::single(60)).unwrap(), &each);
        assert_eq!([steps(&[60]), steps(&[10, 6]), steps(&[15, 4]), steps(&[3, 2, 2, 5])], [7, 13, 12, 26]);
    }

    #[test]
    fn hosts_are_the_first_dimension() {
        let hosts =
            |hosts: u32, ranks: u32| Hosts::from_names(&(0..hosts * ranks).map(|rank| format!("host{}", rank / ranks)).collect::<Vec<_>>());
        assert_eq!(chosen(Hosts::single(16)), "grid:16");
        assert_eq!(chosen(hosts(4, 8)), "grid:4x8");
        assert_eq!(chosen(hosts(3, 5)), "grid:3x5");
    }

    #[test]
    fn hop_by_hop_more_dimensions_are_better() {
        let hops = KnownNetwork::new(Hosts::single(64), |overlay, from, to, _| 20_000 * u64::from(overlay.topology.distance(from, to)));
        let Topology::Grid(grid) = suited(&hops) else { panic!("{:?}", Kind::Grid) };
        assert!(grid.dims().len() >= 3, "{grid:?}");
    }

    #[test]
    fn a_long_line_costs_its_bytes() {
        // Every node of a line of a million would hold the loads of all.
        let Topology::Grid(grid) = suited(&KnownNetwork::of_hosts(Hosts::single(1 << 20))) else { panic!("{:?}", Kind::Grid) };
        assert!(grid.dims().len() > 1, "{grid:?}");
    }
}
