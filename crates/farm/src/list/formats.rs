//! Lists that were written for other farms, read as they are: GREASY, disBatch, GNU parallel. Their commands run by a shell, as there.

use super::line::{self, Directives, Line};

/// Format of a list, by the program whose rules it follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Ours.
    #[default]
    Plain,
    Greasy,
    Disbatch,
    Parallel,
}

impl Format {
    pub const NAMES: [&str; 4] = ["plain", "greasy", "disbatch", "parallel"];

    pub fn parse(name: &str) -> Option<Format> {
        let all = [Format::Plain, Format::Greasy, Format::Disbatch, Format::Parallel];
        Self::NAMES.iter().position(|known| *known == name).map(|at| all[at])
    }
}

/// The result of reading a line of such a list.
#[derive(Debug, PartialEq)]
pub enum Item {
    Nothing,
    /// A command; the working directory and dependencies are among its directives. Dependencies are numbers of lines where `by_line` is set.
    Command {
        text: Vec<u8>,
        directives: Directives,
        by_line: bool,
        index: Option<u64>,
    },
    /// The same command for several indices.
    Repeat(Repeat),
    /// With `check`, later commands run only if all earlier ones succeeded.
    Barrier {
        check: bool,
    },
    /// A command for each host, at its start or its end.
    PerHost {
        text: Vec<u8>,
        at_start: bool,
    },
}

/// A command for `left` indices, from `next` on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeat {
    pub text: Vec<u8>,
    next: u64,
    step: u64,
    left: u64,
}

impl Iterator for Repeat {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let index = self.next;
        // Behind the last there may be no number.
        self.next = self.next.saturating_add(self.step);
        Some(index)
    }
}

/// Commands that a line may make.
const MOST: u64 = 1_000_000_000;

/// Settings that lines make for the lines after them.
#[derive(Debug, Default)]
pub struct Memory {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
}

/// Reads line number `number` of a list.
///
/// # Errors
/// The mistake in the line.
pub fn parse(format: Format, memory: &mut Memory, number: u64, text: &[u8]) -> Result<Item, String> {
    match format {
        Format::Plain => Ok(match line::parse(text)? {
            Line::Nothing | Line::Ahead(_) => Item::Nothing,
            Line::Barrier => Item::Barrier { check: false },
            Line::Command { text, directives } => Item::Command { text, directives, by_line: false, index: None },
        }),
        Format::Parallel => Ok(match text.trim_ascii() {
            // GNU parallel knows no comments, but a shell does: such a line, or a blank one, does nothing. In its log they have numbers.
            b"" => Item::Nothing,
            [b'#', ..] => Item::Nothing,
            text => plain(text.to_vec(), Directives::default()),
        }),
        Format::Greasy => greasy(number, text.trim_ascii()),
        Format::Disbatch => disbatch(memory, text),
    }
}

fn plain(text: Vec<u8>, directives: Directives) -> Item {
    Item::Command { text, directives, by_line: false, index: None }
}

/// `[@ dir @] [# -1, 3-6 #] command`: dependencies are lines of the file, negative ones count back from this line.
fn greasy(number: u64, line: &[u8]) -> Result<Item, String> {
    let (mut rest, mut said) = (line, Directives::default());
    loop {
        let (open, close): (&[u8], &[u8]) = match rest {
            [b'[', b'#', ..] => (b"[#", b"#]"),
            [b'[', b'@', ..] => (b"[@", b"@]"),
            [] | [b'#', ..] if rest.len() == line.len() => return Ok(Item::Nothing),
            [] | [b'#', ..] => return Err("there is no command behind [# .. #] or [@ .. @]".into()),
            _ => return Ok(Item::Command { text: rest.to_vec(), directives: said, by_line: true, index: None }),
        };
        let inner = &rest[2..];
        let end = inner.windows(2).position(|pair| pair == close);
        let shown = String::from_utf8_lossy(open).into_owned();
        let end = end.ok_or_else(|| format!("{shown} is not closed"))?;
        let value = inner[..end].trim_ascii();
        match open {
            b"[@" => said.dir = Some(value.to_vec()),
            _ => {
                let shown = String::from_utf8_lossy(value);
                let wrong = || format!("[# {shown} #]: they must be lines of the file, such as 3-6, or -1 for the line before");
                said.after = lines(number, &shown).ok_or_else(wrong)?;
            }
        }
        rest = inner[end + 2..].trim_ascii_start();
    }
}

fn lines(number: u64, text: &str) -> Option<Vec<(u64, u64)>> {
    let one = |text: &str| match text.trim().strip_prefix('-') {
        Some(back) => number.checked_sub(back.trim().parse().ok()?).filter(|line| *line > 0 && *line < number),
        None => text.trim().parse().ok().filter(|line| *line > 0),
    };
    let range = |text: &str| {
        let text = text.trim();
        // A minus sign at the beginning is no dash.
        match text.char_indices().skip(1).find(|(_, letter)| *letter == '-') {
            Some((at, _)) => Some((one(&text[..at])?, one(&text[at + 1..])?)).filter(|(first, last)| first <= last),
            None => one(text).map(|line| (line, line)),
        }
    };
    text.split(',').map(range).collect()
}

const DISBATCH: &[u8] = b"#DISBATCH";

/// `#DISBATCH PREFIX ..`, `SUFFIX ..`, `BARRIER [CHECK]`, `REPEAT N [start A] [step B] ..`, `PERENGINE START|STOP ..`. What is put before and behind
/// commands is taken as it is, blanks at its ends included.
fn disbatch(memory: &mut Memory, line: &[u8]) -> Result<Item, String> {
    let Some(said) = line.strip_prefix(DISBATCH) else {
        return Ok(match line.trim_ascii_start() {
            [] | [b'#', ..] => Item::Nothing,
            _ => plain([&memory.prefix, line, &memory.suffix].concat(), Directives::default()),
        });
    };
    let (word, rest) = first_word(said.trim_ascii_start());
    let known = "known are PREFIX, SUFFIX, BARRIER, REPEAT and PERENGINE";
    // What stands behind a word and one blank.
    let verbatim = |word: &[u8]| said.trim_ascii_start().get(word.len() + 1..).unwrap_or_default().to_vec();
    match word.to_ascii_uppercase().as_slice() {
        b"PREFIX" => memory.prefix = verbatim(word),
        b"SUFFIX" => memory.suffix = verbatim(word),
        b"BARRIER" => return Ok(Item::Barrier { check: rest.trim_ascii_end().eq_ignore_ascii_case(b"check") }),
        b"REPEAT" => return repeat(memory, rest),
        b"PERENGINE" => {
            let (when, text) = first_word(rest);
            let text = [&memory.prefix, text, &memory.suffix].concat();
            return match when.to_ascii_uppercase().as_slice() {
                b"START" => Ok(Item::PerHost { text, at_start: true }),
                b"STOP" => Ok(Item::PerHost { text, at_start: false }),
                _ => Err("#DISBATCH PERENGINE: START or STOP must follow".into()),
            };
        }
        word => return Err(format!("#DISBATCH {}: unknown; {known}", String::from_utf8_lossy(word))),
    }
    Ok(Item::Nothing)
}

fn repeat(memory: &Memory, said: &[u8]) -> Result<Item, String> {
    let wrong = || "#DISBATCH REPEAT: a number of times must follow, then perhaps start A and step B".to_string();
    let number = |word: &[u8]| std::str::from_utf8(word).ok().and_then(|text| text.parse::<u64>().ok()).ok_or_else(wrong);
    let (times, mut rest) = first_word(said);
    let (times, mut start, mut step) = (number(times)?, 0, 1);
    loop {
        let (word, after) = first_word(rest);
        let value = first_word(after);
        match word {
            b"start" => (start, rest) = (number(value.0)?, value.1),
            b"step" => (step, rest) = (number(value.0)?, value.1),
            _ => break,
        }
    }
    let last = times.saturating_sub(1).checked_mul(step).and_then(|far| far.checked_add(start));
    if times > MOST || last.is_none() {
        return Err(format!("#DISBATCH REPEAT: at most {MOST} times, with indices up to {}", u64::MAX));
    }
    Ok(Item::Repeat(Repeat { text: [&memory.prefix, rest, &memory.suffix].concat(), next: start, step, left: times }))
}

fn first_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(format: Format, number: u64, line: &str) -> Result<Item, String> {
        parse(format, &mut Memory::default(), number, line.as_bytes())
    }

    #[test]
    fn greasy_lists_have_folders_and_dependencies() {
        let said = Directives { after: vec![(9, 9), (3, 6)], dir: Some(b"/tmp/a b".to_vec()), ..Directives::default() };
        let command = Item::Command { text: b"./run 7".to_vec(), directives: said, by_line: true, index: None };
        assert_eq!(item(Format::Greasy, 10, "[@ /tmp/a b @] [# -1, 3-6 #] ./run 7"), Ok(command));
        assert_eq!(item(Format::Greasy, 1, "# comment"), Ok(Item::Nothing));
        for line in ["[# 1 #]", "[# 1 #] # comment", "[@ /tmp @]  "] {
            assert_eq!(item(Format::Greasy, 9, line), Err("there is no command behind [# .. #] or [@ .. @]".into()), "{line}");
        }
        assert!(item(Format::Greasy, 1, "[# -1 #] x").is_err() && item(Format::Greasy, 9, "[# 3 x").is_err());
    }

    #[test]
    fn disbatch_lists_have_directives() {
        let mut memory = Memory::default();
        let mut read = |line: &str| parse(Format::Disbatch, &mut memory, 1, line.as_bytes());
        // Blanks at the ends count.
        assert_eq!(read("#DISBATCH PREFIX cd /tmp; "), Ok(Item::Nothing));
        assert_eq!(read("#DISBATCH SUFFIX  > log"), Ok(Item::Nothing));
        assert_eq!(read("./run 1"), Ok(plain(b"cd /tmp; ./run 1 > log".to_vec(), Directives::default())));
        assert_eq!(read("  x "), Ok(plain(b"cd /tmp;   x  > log".to_vec(), Directives::default())));
        assert_eq!(read("  # comment"), Ok(Item::Nothing));
        let Ok(Item::Repeat(repeat)) = read("#DISBATCH REPEAT 3 start 5 step 2 ./x") else { panic!("no repetition") };
        assert_eq!((repeat.text.clone(), repeat.collect::<Vec<_>>()), (b"cd /tmp; ./x > log".to_vec(), vec![5, 7, 9]));
        let Ok(Item::Repeat(repeat)) = read("#DISBATCH REPEAT 2 start 18446744073709551614 step 1") else { panic!("no repetition") };
        assert_eq!(repeat.collect::<Vec<_>>(), [u64::MAX - 1, u64::MAX]);
        for many in ["18446744073709551615 x", "1000000001 x", "2 start 18446744073709551615 x", "3 step 9223372036854775808 x"] {
            assert!(
                read(&format!("#DISBATCH REPEAT {many}")).unwrap_err().starts_with("#DISBATCH REPEAT: at most 1000000000 times"),
                "{many}"
            );
        }
        assert_eq!(read("#DISBATCH BARRIER CHECK"), Ok(Item::Barrier { check: true }));
        assert_eq!(read("#DISBATCH PERENGINE START cp a b"), Ok(Item::PerHost { text: b"cd /tmp; cp a b > log".to_vec(), at_start: true }));
        assert!(read("#DISBATCH JUMP").unwrap_err().contains("known are PREFIX"));
    }
}
