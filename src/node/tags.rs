//! All tags of the library's own messages, and the epochs of a run, so that none is given twice.
//!
//! Each room has a range of tags. Programs that run on [`Node`](super::Node)s use tags in [`PROGRAMS`].

use std::ops::RangeInclusive;

use crate::transport::Tag;

/// The tags that are free for programs, custom balancers and custom schedulers.
pub const PROGRAMS: RangeInclusive<u16> = 0x0001..=0x00ff;

/// Messages of balancers.
pub(crate) mod balance {
    use super::Tag;

    pub const CWA_SUM: Tag = Tag::new(0x0101, "cwa sub-cube load");
    pub const TWA_SUM: Tag = Tag::new(0x0111, "twa subtree load");
    pub const TWA_TOTAL: Tag = Tag::new(0x0112, "twa total");
    pub const DEM_LOAD: Tag = Tag::new(0x0121, "dem load");
    pub const DIFFUSION_LOAD: Tag = Tag::new(0x0131, "load of a diffusion step");
    pub const PAIR: Tag = Tag::new(0x0135, "tasks of a pair's rank");
    pub const GUEST_LOAD: Tag = Tag::new(0x0136, "load of a virtual node before a repair");
    pub const GOSSIP: Tag = Tag::new(0x0141, "gossip of light ranks");
    pub const OFFER: Tag = Tag::new(0x0142, "offers on their way");
    pub const ANSWER: Tag = Tag::new(0x0143, "answer to an offer");
    /// The guarantee that no phase makes the slowest rank slower.
    pub const OF_VIRTUAL: Tag = Tag::new(0x01f1, "load of a virtual node");
    pub const TO_VIRTUAL: Tag = Tag::new(0x01f2, "slowest rank");
}

/// Messages of the runtime of tasks that create tasks.
pub(crate) mod schedule {
    use super::Tag;

    pub const TASKS: Tag = Tag::new(0x0201, "tasks");
    pub const ANSWERS: Tag = Tag::new(0x0202, "answers");
    /// Requests and announcements of policies are no progress.
    pub const POLICY: Tag = Tag::background(0x0203, "policy");
    pub const WAVE: Tag = Tag::background(0x0204, "termination wave");
    pub const REPORT: Tag = Tag::new(0x0205, "report");
    pub const BEGIN: Tag = Tag::background(0x0206, "system phase");
    /// Names a task of a work queue that can't be read; it is never sent.
    pub const FROZEN: Tag = Tag::new(0x0207, "frozen task");
    pub const TRACE: Tag = Tag::new(0x0208, "trace");
}

/// Messages of the schedulers of independent tasks.
pub(crate) mod independent {
    use super::Tag;

    pub const REQUEST: Tag = Tag::background(0x0601, "request for tasks");
    pub const GRANT: Tag = Tag::new(0x0602, "grant of tasks");
    pub const FINISHED: Tag = Tag::new(0x0603, "end of tasks");
    pub const DEMAND: Tag = Tag::background(0x0604, "request for a host's tasks");
    pub const SUPPLY: Tag = Tag::new(0x0605, "grant of a host's tasks");
    pub const EFFORT: Tag = Tag::new(0x0610, "effort");
    pub const ASSIGN: Tag = Tag::new(0x0611, "assignment of tasks");
    pub const COMPLETED: Tag = Tag::new(0x0612, "completion of tasks");
    pub const END: Tag = Tag::new(0x0613, "end of scheduling");
    pub const CLUSTER_EFFORT: Tag = Tag::new(0x0614, "effort of a cluster's scheduler");
    pub const PRODUCT: Tag = Tag::new(0x0621, "products of tasks");
}

/// Messages of a program's own tasks that are balanced.
pub(crate) mod redistribute {
    use super::Tag;

    pub const VALUES: Tag = Tag::new(0x7c01, "values of a program");
}

/// Messages of a phase's trace.
pub(crate) mod phase {
    use super::Tag;

    pub const CLOCK: Tag = Tag::new(0x7d01, "clock");
    pub const CLOCK_ANSWER: Tag = Tag::new(0x7d02, "clock's answer");
}

/// Messages of the mover of tasks.
pub(crate) mod mover {
    use super::Tag;

    pub const TASKS: Tag = Tag::new(0x7e01, "tasks");
    pub const BACK: Tag = Tag::new(0x7e02, "tasks taken back");
}

/// Messages of collective operations.
pub(crate) mod collective {
    use super::Tag;

    pub const REDUCE: Tag = Tag::new(0x7f01, "reduction");
    pub const SCAN: Tag = Tag::new(0x7f02, "scan");
    pub const BROADCAST: Tag = Tag::new(0x7f03, "broadcast");
    pub const GATHER: Tag = Tag::new(0x7f04, "gather");
    pub const ALL_GATHER: Tag = Tag::new(0x7f05, "all-gather");
    pub const BARRIER: Tag = Tag::new(0x7f06, "barrier");
    pub const COLLECT: Tag = Tag::new(0x7f07, "collection");
    pub const OVER_FIRST: Tag = Tag::new(0x7f08, "all-gather over the first");
}

/// The epochs of a run: a message sent in one epoch is never received in another.
pub mod epochs {
    /// The run itself; a new [`Node`](crate::node::Node) is in it.
    pub const MAIN: u32 = 0;
    /// Unmeasured operations before and after the run: barriers, clocks, closing checks.
    pub const APART: u32 = 1;
    /// Results on their way to node 0, some of them sent while the run goes on.
    pub const CLOSING: u32 = 2;
    /// The first epoch of the phases inside a scheduler's run; phase number `n` has `PHASES + n`. Epochs from 3 up to this are free for programs.
    pub const PHASES: u32 = 1 << 16;
}

/// Each room: its name, its range and its tags.
fn rooms() -> Vec<(&'static str, RangeInclusive<u16>, Vec<Tag>)> {
    use {balance as b, collective as c, independent as i, mover as m, phase as p, schedule as s};
    vec![
        ("programs", PROGRAMS, vec![]),
        (
            "balance",
            0x0100..=0x01ff,
            vec![
                b::CWA_SUM,
                b::TWA_SUM,
                b::TWA_TOTAL,
                b::DEM_LOAD,
                b::DIFFUSION_LOAD,
                b::PAIR,
                b::GUEST_LOAD,
                b::GOSSIP,
                b::OFFER,
                b::ANSWER,
                b::OF_VIRTUAL,
                b::TO_VIRTUAL,
            ],
        ),
        ("schedule", 0x0200..=0x02ff, vec![s::TASKS, s::ANSWERS, s::POLICY, s::WAVE, s::REPORT, s::BEGIN, s::FROZEN, s::TRACE]),
        (
            "independent",
            0x0600..=0x06ff,
            vec![
                i::REQUEST,
                i::GRANT,
                i::FINISHED,
                i::DEMAND,
                i::SUPPLY,
                i::EFFORT,
                i::ASSIGN,
                i::COMPLETED,
                i::END,
                i::CLUSTER_EFFORT,
                i::PRODUCT,
            ],
        ),
        ("redistribute", 0x7c00..=0x7cff, vec![redistribute::VALUES]),
        ("phase", 0x7d00..=0x7dff, vec![p::CLOCK, p::CLOCK_ANSWER]),
        ("mover", 0x7e00..=0x7eff, vec![m::TASKS, m::BACK]),
        (
            "collective",
            0x7f00..=0x7fff,
            vec![c::REDUCE, c::SCAN, c::BROADCAST, c::GATHER, c::ALL_GATHER, c::BARRIER, c::COLLECT, c::OVER_FIRST],
        ),
    ]
}

/// All of the library's tags.
pub(super) fn all() -> Vec<Tag> {
    rooms().into_iter().flat_map(|(_, _, tags)| tags).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_is_given_once_and_lies_in_the_range_of_its_room() {
        let rooms = rooms();
        for pair in rooms.windows(2) {
            assert!(pair[0].1.end() < pair[1].1.start(), "the ranges of {} and {} overlap", pair[0].0, pair[1].0);
        }
        let mut numbers = std::collections::BTreeSet::new();
        for (room, range, tags) in &rooms {
            for tag in tags {
                assert!(range.contains(&tag.number()), "{room}: {tag:?} is outside of {range:#06x?}");
                assert!(numbers.insert(tag.number()), "{tag:?} is given twice");
            }
        }
    }

    /// The lists of the rooms are complete: a tag that is made anywhere else in the library would not be checked.
    #[test]
    fn no_other_file_of_the_library_makes_a_tag() {
        fn walk(folder: &std::path::Path, found: &mut Vec<String>, here: &mut usize) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found, here);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let makes = |line: &&str| {
                    !line.trim_start().starts_with("//") && ["Tag::new(", "Tag::background("].iter().any(|call| line.contains(call))
                };
                match path.ends_with("node/tags.rs") {
                    true => *here = code.lines().filter(makes).count(),
                    false => found.extend(code.lines().filter(makes).map(|line| format!("{}: {line}", path.display()))),
                }
            }
        }
        let (mut found, mut here) = (Vec::new(), 0);
        walk(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found, &mut here);
        assert!(found.is_empty(), "{found:#?}");
        assert_eq!(here, all().len());
    }

    #[test]
    fn epochs_are_apart() {
        let all = [epochs::MAIN, epochs::APART, epochs::CLOSING, epochs::PHASES];
        assert!(all.is_sorted_by(|a, b| a < b));
    }
}
