//! All tags of the laboratory's messages, and the epochs of its programs, so that none is given twice.
//!
//! Each command's programs have a range in [`PROGRAMS`](equipoise::node::tags::PROGRAMS), in which the [farm](equipoise_farm::tags) has one, too.

use equipoise::node::Tag;

/// Messages of the spreading of one load (`divide`).
pub mod spread {
    use super::Tag;

    pub const PIECE: Tag = Tag::new(0x01, "piece of a share");
    pub const ACCEPTED: Tag = Tag::new(0x02, "piece accepted");
    pub const DONE: Tag = Tag::new(0x03, "a share's answer");
    pub const CHUNK: Tag = Tag::new(0x04, "chunk");
    pub const NEXT: Tag = Tag::new(0x05, "a chunk's answer, and a request for the next");
    pub const SAMPLE: Tag = Tag::new(0x0a, "sample");
    pub const PROBE: Tag = Tag::new(0x0b, "probe");
    pub const ECHO: Tag = Tag::new(0x0c, "echo");
    pub const BACK: Tag = Tag::new(0x0d, "measured links");
    pub const COSTS: Tag = Tag::new(0x0e, "costs of computing");
    pub const ASK: Tag = Tag::new(0x14, "what time is it?");
    pub const TIME: Tag = Tag::new(0x15, "the time");
    pub const MORE: Tag = Tag::new(0x1e, "more output");
    pub const OUTPUT: Tag = Tag::new(0x1f, "output");
}

/// Messages of the measurement of a network (`probe`).
pub mod probe {
    use super::Tag;

    pub const PING: Tag = Tag::new(0x20, "ping");
    pub const PONG: Tag = Tag::new(0x21, "pong");
    pub const BURST: Tag = Tag::new(0x22, "burst");
    pub const BURST_END: Tag = Tag::new(0x23, "end of a burst");
    pub const CROSSING: Tag = Tag::new(0x24, "crossing message");
    pub const RING: Tag = Tag::new(0x25, "message of a ring");
}

/// All of the laboratory's tags.
pub const ALL: [Tag; 20] = [
    spread::PIECE,
    spread::ACCEPTED,
    spread::DONE,
    spread::CHUNK,
    spread::NEXT,
    spread::SAMPLE,
    spread::PROBE,
    spread::ECHO,
    spread::BACK,
    spread::COSTS,
    spread::ASK,
    spread::TIME,
    spread::MORE,
    spread::OUTPUT,
    probe::PING,
    probe::PONG,
    probe::BURST,
    probe::BURST_END,
    probe::CROSSING,
    probe::RING,
];

/// The laboratory's epochs, between those of the library.
pub mod epochs {
    /// The sample of a calibration is computed on.
    pub const COMPUTING: u32 = 3;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use equipoise::node::epochs::{CLOSING, PHASES};
    use equipoise::node::tags::PROGRAMS;

    use super::*;

    #[test]
    fn every_tag_is_given_once_and_lies_in_the_range_of_its_room() {
        let (spread, probe) = ALL.split_at(14);
        let farm = equipoise_farm::tags::ALL;
        let mut numbers = BTreeSet::new();
        for (range, tags) in [(0x01..=0x1f, spread), (0x20..=0x2f, probe), (0x40..=0x4f, &farm)] {
            for tag in tags {
                assert!(PROGRAMS.contains(&tag.number()) && range.contains(&tag.number()), "{tag:?} is outside of {range:#06x?}");
                assert!(numbers.insert(tag.number()), "{tag:?} is given twice");
            }
        }
    }

    /// The list above is complete: a tag or epoch that is made anywhere else in the laboratory would not be checked.
    #[test]
    fn no_other_file_of_the_laboratory_makes_a_tag_or_an_epoch() {
        let (mut found, mut here) = (Vec::new(), 0);
        let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let digit = |line: &str| line.split(".epoch(").skip(1).any(|after| after.starts_with(|first: char| first.is_ascii_digit()));
                let makes = |line: &&str| ["Tag::new(", "Tag::background("].iter().any(|call| line.contains(call)) || digit(line);
                match path.ends_with("src/tags.rs") {
                    true => here = code.lines().filter(makes).count(),
                    false => found.extend(code.lines().filter(makes).map(|line| format!("{}: {line}", path.display()))),
                }
            }
        }
        assert!(found.is_empty(), "{found:#?}");
        assert_eq!(here, ALL.len());
    }

    #[test]
    fn epochs_are_apart() {
        assert!([CLOSING, epochs::COMPUTING, PHASES].is_sorted_by(|a, b| a < b));
    }
}
