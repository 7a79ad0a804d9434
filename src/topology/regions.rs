//! Disjoint regions of a hypercube around its medians: every processor with one nearest median, sizes as equal as can be.
//!
//! Ahmad, Ghafoor and Fox (1994) speak of spheres around the medians; spheres of the covering radius overlap (16 of 37 on the 256 nodes
//! of Q_8), and giving ties to the lowest address leaves sizes from 9 to 37. So ties are settled for equal sizes. On Q_8 the code
//! without bit 0 is perfect, and each region is the closed neighbourhood of the edge (c, c xor 1): 16 regions of 16, diameter 3.
//! Elsewhere the assignment is an optimal semi-matching (Harvey, Ladner, Lovász and Tamir 2006): processors change to another nearest
//! median along a chain of regions from a larger to a smaller one until no chain narrows the difference. Then the largest region is as
//! small, and the smallest as large, as any assignment to nearest medians allows; for n up to 16 they differ by one at most.

use super::hadamard::{self, MedianSet};
use super::{InvalidTopology, NodeId};

/// The regions of a cube: numbered as their medians ascend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    medians: Vec<NodeId>,
    /// At most 64 medians, so a byte per node.
    of_node: Vec<u8>,
}

impl Regions {
    /// The regions of the cube of dimension `n` around its Hadamard medians. Takes 2^n bytes, and nine times that memory while it is computed.
    pub fn of_hypercube(n: u32, set: MedianSet) -> Result<Regions, InvalidTopology> {
        let medians = hadamard::medians(n, set)?;
        let of_node = perfect(n, &medians).unwrap_or_else(|| semi_matched(n, &medians));
        Ok(Regions { medians, of_node })
    }

    /// The number of regions.
    pub fn count(&self) -> u32 {
        self.medians.len() as u32
    }

    /// The medians, by region.
    pub fn medians(&self) -> &[NodeId] {
        &self.medians
    }

    /// The region of a node.
    pub fn region_of(&self, node: NodeId) -> u32 {
        u32::from(self.of_node[node as usize])
    }

    /// The median that serves a node; a median serves itself.
    pub fn median_of(&self, node: NodeId) -> NodeId {
        self.medians[self.of_node[node as usize] as usize]
    }

    /// The nodes of a region, in ascending order, its median among them.
    pub fn members(&self, region: u32) -> Vec<NodeId> {
        (0..self.of_node.len() as NodeId).filter(|node| self.region_of(*node) == region).collect()
    }

    /// The number of nodes of each region.
    pub fn sizes(&self) -> Vec<u32> {
        sizes(&self.of_node, self.medians.len())
    }
}

fn sizes(of_node: &[u8], regions: usize) -> Vec<u32> {
    let mut sizes = vec![0; regions];
    for region in of_node {
        sizes[*region as usize] += 1;
    }
    sizes
}

/// The medians nearest to a node, as a set of bits, when addresses are compared without their lowest `ignored` bits.
fn nearest(medians: &[NodeId], node: NodeId, ignored: u32) -> u64 {
    let mut least = u32::MAX;
    let mut set = 0;
    for (region, median) in medians.iter().enumerate() {
        let distance = ((median ^ node) >> ignored).count_ones();
        if distance < least {
            (least, set) = (distance, 0);
        }
        if distance == least {
            set |= 1 << region;
        }
    }
    set
}

/// The assignment to the one nearest median without bit 0, if there is one for every node and the regions are equal.
///
/// Such a median is also nearest with bit 0: it is then at most one hop further off, and every other one at least one hop further than
/// it was without the bit.
fn perfect(n: u32, medians: &[NodeId]) -> Option<Vec<u8>> {
    let mut of_node = Vec::with_capacity(1 << n);
    for node in 0..1u32 << n {
        let set = nearest(medians, node, 1);
        if set.count_ones() != 1 {
            return None;
        }
        of_node.push(set.trailing_zeros() as u8);
    }
    let sizes = sizes(&of_node, medians.len());
    (sizes.iter().min() == sizes.iter().max()).then_some(of_node)
}

/// The assignment to nearest medians with the most equal sizes.
fn semi_matched(n: u32, medians: &[NodeId]) -> Vec<u8> {
    let mut assignment = Assignment::greedy(n, medians);
    while let Some(chain) = assignment.narrowing_chain() {
        assignment.shift(&chain);
    }
    assignment.of_node
}

/// Regions being evened out.
struct Assignment {
    /// The nearest medians of each node, as sets of bits.
    nearest: Vec<u64>,
    of_node: Vec<u8>,
    sizes: Vec<u32>,
    /// `movable[a][b]`: how many nodes of region a have the median of b nearest, too.
    movable: Vec<Vec<u32>>,
}

impl Assignment {
    /// Nodes without a choice first, then each other to the smallest region that it may join.
    fn greedy(n: u32, medians: &[NodeId]) -> Self {
        let nodes = 1u32 << n;
        let regions = medians.len();
        let mut assignment = Assignment {
            nearest: (0..nodes).map(|node| nearest(medians, node, 0)).collect(),
            of_node: vec![0; nodes as usize],
            sizes: vec![0; regions],
            movable: vec![vec![0; regions]; regions],
        };
        for bound in [true, false] {
            for node in 0..nodes as usize {
                let set = assignment.nearest[node];
                if set.is_power_of_two() != bound {
                    continue;
                }
                let smallest = members(set).min_by_key(|region| assignment.sizes[*region]).unwrap_or(0);
                assignment.sizes[smallest] += 1;
                assignment.of_node[node] = smallest as u8;
                members(set).for_each(|other| assignment.movable[smallest][other] += 1);
            }
        }
        assignment
    }

    /// A shortest chain of regions from a larger one to one smaller by at least two, each able to give a node to the next.
    fn narrowing_chain(&self) -> Option<Vec<usize>> {
        let regions = self.sizes.len();
        let mut starts: Vec<usize> = (0..regions).collect();
        starts.sort_by_key(|region| std::cmp::Reverse(self.sizes[*region]));
        for start in starts {
            let mut from: Vec<Option<usize>> = vec![None; regions];
            let mut reached = vec![start];
            let mut next = 0;
            while let Some(&region) = reached.get(next) {
                next += 1;
                for (other, movable) in self.movable[region].iter().enumerate() {
                    if *movable > 0 && other != start && from[other].is_none() {
                        from[other] = Some(region);
                        reached.push(other);
                    }
                }
            }
            let end = reached.into_iter().min_by_key(|region| self.sizes[*region])?;
            if self.sizes[start] >= self.sizes[end] + 2 {
                let mut chain: Vec<usize> = std::iter::successors(Some(end), |region| from[*region]).collect();
                chain.reverse();
                return Some(chain);
            }
        }
        None
    }

    /// Gives one node from each region of the chain to the next.
    fn shift(&mut self, chain: &[usize]) {
        for pair in chain.windows(2) {
            let (giver, taker) = (pair[0], pair[1]);
            let movable = |node: &usize| self.of_node[*node] as usize == giver && self.nearest[*node] >> taker & 1 == 1;
            let Some(node) = (0..self.of_node.len()).find(movable) else {
                continue;
            };
            self.of_node[node] = taker as u8;
            self.sizes[giver] -= 1;
            self.sizes[taker] += 1;
            for other in members(self.nearest[node]) {
                self.movable[giver][other] -= 1;
                self.movable[taker][other] += 1;
            }
        }
    }
}

/// The elements of a set of bits, in ascending order.
fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |element| set >> element & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(n: u32, set: MedianSet) -> Regions {
        let regions = Regions::of_hypercube(n, set).unwrap();
        assert_eq!(regions.sizes().iter().sum::<u32>(), 1 << n);
        for node in 0..1 << n {
            let distance = (regions.median_of(node) ^ node).count_ones();
            assert_eq!(distance, hadamard::distance_to_nearest(regions.medians(), node));
        }
        regions
    }

    fn range(regions: &Regions) -> (u32, u32) {
        let sizes = regions.sizes();
        (sizes.iter().copied().min().unwrap(), sizes.iter().copied().max().unwrap())
    }

    #[test]
    fn q8_has_sixteen_closed_neighbourhoods_of_edges() {
        let regions = regions(8, MedianSet::Default);
        assert_eq!(regions.sizes(), [16; 16]);
        for region in 0..16 {
            let median = regions.medians()[region as usize];
            let mut neighbourhood: Vec<NodeId> =
                (0..256).filter(|node| [median, median ^ 1].iter().any(|end| (end ^ node).count_ones() <= 1)).collect();
            neighbourhood.sort_unstable();
            let members = regions.members(region);
            assert_eq!(members, neighbourhood);
            let widest = members.iter().flat_map(|a| members.iter().map(move |b| (a ^ b).count_ones())).max();
            assert_eq!(widest, Some(3));
        }
    }

    #[test]
    fn small_cubes_have_equal_regions_of_at_least_four() {
        let sizes = [(0, 1, 1), (1, 1, 2), (2, 1, 4), (3, 2, 4), (4, 4, 4), (5, 8, 4), (6, 16, 4), (7, 16, 8)];
        for (n, count, size) in sizes {
            let regions = regions(n, MedianSet::Default);
            assert_eq!((regions.count(), range(&regions)), (count, (size, size)), "n = {n}");
        }
        // With the full code, too, though smaller.
        for (n, count, size) in [(1, 2, 1), (2, 4, 1), (3, 8, 1), (4, 8, 2), (5, 16, 2)] {
            let regions = regions(n, MedianSet::Full);
            assert_eq!((regions.count(), range(&regions)), (count, (size, size)), "n = {n}");
        }
    }

    #[test]
    fn regions_of_every_cube_differ_by_one_processor_at_most() {
        for n in 6..=16 {
            let (least, most) = range(&regions(n, MedianSet::Default));
            assert!(most - least <= 1, "n = {n}: {least} to {most}");
        }
    }
}
