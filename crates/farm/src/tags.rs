//! All tags of the farm's messages, so that none is given twice: numbers from 0x40 to 0x4f, which the laboratory leaves to it.

use equipoise::node::Tag;

pub const TO_HAND: Tag = Tag::new(0x41, "lead to hand");
pub const TO_LEAD: Tag = Tag::new(0x42, "hand to lead");
/// Names what a rank and its helper say to each other, in errors. This goes through a socket: no message of a world has the tag.
pub const HELPER: Tag = Tag::new(0x43, "between a rank and its helper");

/// All of the farm's tags.
pub const ALL: [Tag; 3] = [TO_HAND, TO_LEAD, HELPER];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_is_given_once_and_no_other_file_makes_one() {
        let numbers: std::collections::BTreeSet<u16> = ALL.iter().map(|tag| tag.number()).collect();
        assert!(numbers.len() == ALL.len() && numbers.iter().all(|number| (0x40..=0x4f).contains(number)), "{numbers:#x?}");
        let (mut made, mut folders) = (0, vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let makes = ["Tag::new(", "Tag::background("].iter().map(|call| code.matches(call).count()).sum::<usize>();
                assert!(makes == 0 || path.ends_with("src/tags.rs"), "{} makes a tag", path.display());
                made += makes;
            }
        }
        assert_eq!(made, ALL.len());
    }
}
