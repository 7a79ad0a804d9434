//! Lists of numbers, typed after an option or read from a file.

use std::path::{Path, PathBuf};

use super::text;
use equipoise::error::{Error, Result};
use equipoise::names;
use equipoise::spec::{InvalidSpec, Options, Spec};

/// An item of a list, and where it stands: words that follow the noun for the list.
pub(super) struct Item {
    pub text: String,
    pub place: String,
}

/// Form in which numbers are given: a list, a file, or a pattern.
pub(super) enum Given {
    List(Vec<Item>),
    File(PathBuf),
    Pattern(Spec),
}

/// Reads `3,4,5 | @FILE | NAME[:key=value,..]`, what is a noun for it.
///
/// # Errors
/// If the name of the file is missing, or the pattern does not read as one.
pub(super) fn given(what: &'static str, text: &str) -> Result<Given> {
    // The name of a file may end with blanks.
    if let Some(file) = text.trim_start().strip_prefix('@') {
        return match file {
            "" => Err(Error::input(what, " @: the name of a file is missing")),
            _ => Ok(Given::File(names::path(file))),
        };
    }
    let text = text.trim();
    // A list that begins with `nan` or `inf` is a list of numbers with something wrong, not the name of a pattern.
    let first = text.split(',').next().unwrap_or_default().trim();
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) && first.parse::<f64>().is_err() {
        return Ok(Given::Pattern(Spec::parse(what, text)?));
    }
    let place = |index: usize| format!(", item {}", index + 1);
    Ok(Given::List(text.split(',').enumerate().map(|(index, item)| Item { text: item.trim().to_string(), place: place(index) }).collect()))
}

/// The numbers of some items.
///
/// # Errors
/// If one is none; the sentence names its place.
pub(super) fn numbers<T>(what: &'static str, items: Vec<Item>, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>> {
    items.iter().map(|item| read(&item.text).map_err(|why| Error::input(what, format!("{}: {why}", item.place)))).collect()
}

/// The whole numbers `LOW..HIGH` that a uniform distribution is drawn from; from 1 to 10 if nothing is given.
///
/// # Errors
/// If they are none, or in the wrong order.
pub(super) fn bounds(options: &mut Options<'_>) -> Result<(u64, u64), InvalidSpec> {
    let Some(text) = options.bare("LOW..HIGH")? else { return Ok((1, 10)) };
    let parsed = text.split_once("..").and_then(|(low, high)| Some((whole(low.trim()).ok()?, whole(high.trim()).ok()?)));
    let ordered = parsed.filter(|(low, high)| low <= high);
    ordered.ok_or_else(|| options.wrong("LOW..HIGH", text, "two whole numbers, the lower one first, as in 1..10"))
}

/// The items of a file: separated by commas, semicolons, blanks or line ends, perhaps in quotes; what follows a `#` on a line is a comment.
pub(super) fn read(what: &'static str, path: &Path) -> Result<Vec<Item>> {
    let shown = names::shown(path);
    let text = text::read(path).map_err(|why| Error::unreadable(what, format!(" @{shown}: the file cannot be read"), why))?;
    let mut items = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = || format!(" @{shown}, line {}", number + 1);
        let split = text::items(line).map_err(|why| Error::input(what, format!("{}: {why}", place())))?;
        items.extend(split.into_iter().map(|item| Item { text: unquoted(item).to_string(), place: place() }));
    }
    if items.is_empty() {
        return Err(Error::input(what, format!(" @{shown}: the file holds no numbers")));
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
        let items = read("loads", &file).unwrap();
        assert_eq!(items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
        assert_eq!(items[3].place, format!(" @{}, line 4", file.display()));
        let other = testing::file("\u{feff}\"1\";\"2\"\n3;4\n");
        assert_eq!(read("loads", &other).unwrap().iter().map(|item| item.text.as_str()).collect::<Vec<_>>(), ["1", "2", "3", "4"]);
        let both = testing::file("1\n1,5;2,5\n");
        let why = read("powers", &both).err().unwrap().to_string();
        assert!(why.ends_with(", line 2: commas and semicolons: one of them is to separate numbers, and fractions have a point"), "{why}");
        let empty = testing::file("# nothing\n");
        assert!(read("loads", &empty).err().unwrap().to_string().ends_with("the file holds no numbers"));
        let missing = read("powers", Path::new("/no/such/list")).err().unwrap().to_string();
        assert!(missing.starts_with("powers @/no/such/list: the file cannot be read: No such file"), "{missing}");
    }
}
