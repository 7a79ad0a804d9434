//! A circle of equal processors that use all links at once: the load goes round both ways, and meets at the one opposite the source.
//!
//! The mirror image of a division takes as long as the division, and so does their mean (the division is a linear program): so there is a best
//! one in which both ways carry the same. Then the processor in the middle is as good as two of half its speed, one at the end of each way,
//! and these are two lines.

use super::network::ModelNetwork;
use super::timeline::LoadDivision;
use super::tree;

/// Divides the load over a circle; `None` if the network is none, or its processors, links or start-up costs break the symmetry.
pub fn divide(network: &ModelNetwork, results: f64) -> Option<LoadDivision> {
    let opposite = opposite(network)?;
    let mut lines = network.clone();
    lines.seconds[opposite] *= 2.0;
    lines.seconds.push(lines.seconds[opposite]);
    lines.layer.push(lines.layer[opposite]);
    let second = lines.into[opposite].pop()?;
    lines.links[second].to = network.processors();
    lines.into.push(vec![second]);
    lines.out.push(Vec::new());
    let mut division = tree::all_ports(&lines, results)?;
    for kept in &mut division.kept {
        let half = kept.pop()?;
        kept[opposite] += half;
    }
    Some(division)
}

/// The processor opposite the source, if there is symmetry.
fn opposite(network: &ModelNetwork) -> Option<usize> {
    let others = || (0..network.processors()).filter(|processor| *processor != network.source);
    let opposite = others().find(|processor| network.into[*processor].len() == 2)?;
    let is_circle = network.out[network.source].len() == 2
        && network.out[opposite].is_empty()
        && others().filter(|processor| *processor != opposite).all(|one| network.into[one].len() == 1 && network.out[one].len() == 1);
    let alike = others().all(|processor| network.seconds[processor] == network.seconds[opposite])
        && network.links.windows(2).all(|two| two[0].seconds == two[1].seconds)
        && !network.has_startup();
    (is_circle && alike).then_some(opposite)
}
