//! The registry of balancers: the construction from a specification.

use super::entry::{Chosen, Entry, Facts};
use super::{ALL, partition_file, parts, repair};
use crate::error::Result;
use crate::registry;

/// The balancer that `NAME[:key=value,..]` names, or `NAME[..]+refine`: the same, and what whole tasks leave is repaired by pairs of ranks.
///
/// # Errors
/// If there is none of this name (the sentence lists all), or its options are wrong; for `from:FILE`, which is made by [`from_parts`](super::from_parts).
pub fn find(spec: &str) -> Result<Chosen> {
    if partition_file(spec).is_some() {
        return Err(parts::not_read().into());
    }
    let Some(walk) = spec.strip_suffix(repair::SUFFIX) else { return Ok(registry::find(spec)?) };
    let walk: Chosen = registry::find(walk)?;
    let (name, entry) = (format!("{}{}", walk.name, repair::SUFFIX), walk.entry);
    Ok(Chosen { name, entry, made: Box::new(repair::Repaired::new(walk)) })
}

/// All balancers but those that need a [place](crate::load::WorkQueue::with_places) of each task.
pub fn without_places() -> impl Iterator<Item = &'static Entry> {
    ALL.iter().copied().filter(|entry| find(entry.name).is_ok_and(|chosen| !chosen.needs_places()))
}

/// The balancers in a list `NAME[:key=value,..],NAME,..`.
pub fn listed(list: &str) -> Vec<String> {
    crate::spec::items(list, |name| name == "from" || registry::knows::<Facts>(name.strip_suffix(repair::SUFFIX).unwrap_or(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_balancer_has_a_place_among_the_simplest() {
        let mut places: Vec<usize> = ALL.iter().map(|entry| entry.simplicity()).collect();
        places.sort_unstable();
        assert_eq!(places, (0..ALL.len()).collect::<Vec<_>>());
    }
}
