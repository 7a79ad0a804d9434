//! The hierarchy of schedulers: the regions of a cube, with the processors that work in each.

use crate::error::Result;
use crate::schedule::registry::Region;
use crate::topology::hadamard::MedianSet;
use crate::topology::regions::Regions;
use crate::topology::{NodeId, Overlay, RankId, Topology};

/// Options of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LayoutOptions {
    pub set: MedianSet,
    /// The host's rank.
    pub host_rank: RankId,
    /// Whether the host executes tasks, and whether medians do.
    pub host_works: bool,
    pub medians_work: bool,
}

#[derive(Debug)]
pub(super) struct Layout {
    /// In ascending order of their medians. A region's members may be none: all of its nodes virtual.
    pub regions: Vec<Region>,
    of_node: Regions,
}

impl Layout {
    /// The layout of a hypercube.
    ///
    /// # Errors
    /// If the topology has no such layout, or the host is the only node that could work and does not.
    pub fn of(overlay: &Overlay, options: LayoutOptions) -> Result<Layout> {
        let Topology::Hypercube(cube) = &overlay.topology else {
            return Err(super::ENTRY.conflict(format!("it runs on hypercube, not on {}", overlay.topology.name())).into());
        };
        let of_node = Regions::of_hypercube(cube.dimension(), options.set)?;
        let placement = &overlay.placement;
        let host = (options.host_rank.get() < placement.ranks()).then(|| placement.real_node_of(options.host_rank));
        let mut regions: Vec<Region> = of_node.medians().iter().map(|median| Region { median: *median, members: Vec::new() }).collect();
        for rank in RankId::all(placement.ranks()) {
            let node = placement.real_node_of(rank);
            regions[of_node.region_of(node) as usize].members.push(node);
        }
        regions.iter_mut().for_each(|region| region.members.sort_unstable());
        if !options.host_works {
            if placement.ranks() == 1 {
                return Err(super::ENTRY.conflict("host=dedicated needs at least 2 ranks, there is 1").into());
            }
            // If the host is alone in its region, the other regions do the work.
            regions.iter_mut().for_each(|region| region.members.retain(|node| Some(*node) != host));
        }
        if !options.medians_work {
            for Region { median, members } in regions.iter_mut().filter(|region| region.members.len() > 1) {
                members.retain(|node| node != median);
            }
        }
        Ok(Layout { regions, of_node })
    }

    /// The region of a node, working or not.
    pub fn region_of(&self, node: NodeId) -> u32 {
        self.of_node.region_of(node)
    }
}
