//! Lists of numbers, typed after an option or read from a file.

use std::path::Path;

use super::text;
use equipoise::error::{Error, Result};
use equipoise::names;

/// An item of a list, and where it stands in words that begin a sentence about it.
pub(super) struct Item {
    pub text: String,
    pub place: String,
}

/// The items of `3,4,5` as typed after `option`.
pub(super) fn typed(option: &str, text: &str) -> Vec<Item> {
    let place = |index: usize| format!("{option}, item {}", index + 1);
    text.split(',').enumerate().map(|(index, item)| Item { text: item.trim().to_string(), place: place(index) }).collect()
}

/// The items of a file: separated by commas, semicolons, blanks or line ends, perhaps in quotes; what follows a `#` on a line is a comment.
pub(super) fn read(option: &str, path: &Path) -> Result<Vec<Item>> {
    let shown = names::shown(path);
    let text = text::read(path).map_err(|why| Error::usage(format!("{option} @{shown}: the file cannot be read: {why}")))?;
    let mut items = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{option} @{shown}, line {}", number + 1);
        let split = text::items(line).map_err(|why| Error::usage(format!("{}: {why}", place())))?;
        items.extend(split.into_iter().map(|item| Item { text: unquoted(item).to_string(), place: place() }));
    }
    if items.is_empty() {
        return Err(Error::usage(format!("{option} @{shown}: the file holds no numbers")));
    }
    Ok(items)
}

fn unquoted(item: &str) -> &str {
    item.strip_prefix('"').and_then(|item| item.strip_suffix('"')).unwrap_or(item)
}

/// Reads a whole number from 0 to 2^64 - 1, or says in words that follow a colon why it is none.
pub(super) fn whole(text: &str) -> Result<u64, String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text {
        "" => Err("a number is missing".into()),
        _ if digits(text) => text.parse().map_err(|_| format!("{} is beyond 2^64 - 1", shortened(text))),
        _ if text.strip_prefix('-').is_some_and(digits) => Err(format!("{} is negative", shortened(text))),
        _ => Err(format!("\"{}\" is not a whole number", shortened(text))),
    }
}

/// The beginning of a text, so that a long one does not drown the sentence about it.
pub(super) fn shortened(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing;

    #[test]
    fn whole_numbers_only() {
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX));
        for (text, why) in [
            ("", "a number is missing"),
            ("18446744073709551616", "18446744073709551616 is beyond 2^64 - 1"),
            ("-3", "-3 is negative"),
            ("2.5", "\"2.5\" is not a whole number"),
            ("NaN", "\"NaN\" is not a whole number"),
            ("+3", "\"+3\" is not a whole number"),
        ] {
            assert_eq!(whole(text), Err(why.to_string()));
        }
    }

    #[test]
    fn a_file_is_a_list_with_places() {
        let file = testing::file("# loads\n1, 2\t3\n\n4,,5 # five\r\n");
        let items = read("--loads", &file).unwrap();
        assert_eq!(items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
        assert_eq!(items[3].place, format!("--loads @{}, line 4", file.display()));
        let other = testing::file("\u{feff}\"1\";\"2\"\n3;4\n");
        assert_eq!(read("--loads", &other).unwrap().iter().map(|item| item.text.as_str()).collect::<Vec<_>>(), ["1", "2", "3", "4"]);
        let both = testing::file("1\n1,5;2,5\n");
        let why = read("--powers", &both).err().unwrap().to_string();
        assert!(why.ends_with(", line 2: commas and semicolons: one of them is to separate numbers, and fractions have a point"), "{why}");
        let empty = testing::file("# nothing\n");
        assert!(matches!(read("--loads", &empty), Err(Error::Usage(why)) if why.ends_with("the file holds no numbers")));
        let missing = read("--powers", Path::new("/no/such/list")).err().unwrap().to_string();
        assert!(missing.starts_with("--powers @/no/such/list: the file cannot be read: No such file"), "{missing}");
    }
}
