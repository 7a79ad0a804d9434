//! The list of balancers.

use super::{
    Entry, chains, cwa, dem, diffusion, direct, greedy, greedy_refine, hierarchical, kk, kwa, mwa, none, optimal, pslb, psts, rcb, refine,
    sfc, tempered, twa,
};

/// All balancers, in the order in which they are shown.
pub const ALL: &[&Entry] = &[
    &twa::ENTRY,
    &cwa::ENTRY,
    &mwa::ENTRY,
    &kwa::ENTRY,
    &dem::ENTRY,
    &diffusion::fos::ENTRY,
    &diffusion::sos::ENTRY,
    &diffusion::ops::ENTRY,
    &pslb::ENTRY,
    &psts::ENTRY,
    &direct::ENTRY,
    &optimal::ENTRY,
    &greedy::ENTRY,
    &refine::ENTRY,
    &greedy_refine::ENTRY,
    &hierarchical::ENTRY,
    &kk::ENTRY,
    &chains::ENTRY,
    &rcb::ENTRY,
    &sfc::ENTRY,
    &tempered::ENTRY,
    &none::ENTRY,
];

/// Names of all balancers, the simplest first: among equally good balancers the simplest is recommended. First one exchange of loads and
/// direct transfers, then walks along links, then scans level by level and flow problems.
pub const SIMPLEST_FIRST: [&str; 22] = [
    "none",
    "direct",
    "refine",
    "greedy",
    "cwa",
    "dem",
    "pslb",
    "twa",
    "mwa",
    "kwa",
    "fos",
    "sos",
    "ops",
    "chains",
    "sfc",
    "rcb",
    "kk",
    "greedy-refine",
    "hierarchical",
    "optimal",
    "psts",
    "tempered",
];
