//! One line of a list: the command, and the directives behind `#EQ`.

use crate::task::{Needs, Task};
use equipoise::spec::quantity::{self, BYTES, Prefixes, SECONDS};

/// Content of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Blank, or a comment.
    Nothing,
    /// A command, with the directives that stand behind it.
    Command { text: Vec<u8>, directives: Directives },
    /// Directives for the next command.
    Ahead(Directives),
    /// Later tasks wait for all earlier ones.
    Barrier,
}

/// Directives of `#EQ` for a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directives {
    pub needs: Needs,
    pub cost: Option<f64>,
    pub min: Option<f64>,
    pub after: Vec<(u64, u64)>,
    pub dir: Option<Vec<u8>>,
    pub stdin: Option<Vec<u8>>,
}

impl Directives {
    /// Gives them to a task.
    pub fn apply(self, task: &mut Task) {
        (task.needs, task.cost, task.min, task.after) = (self.needs, self.cost, self.min, self.after);
        (task.dir, task.stdin) = (self.dir, self.stdin);
    }

    /// These directives, extended or overridden by others.
    pub fn and(mut self, others: Directives) -> Directives {
        let Needs { cpus, gpus, mem } = others.needs;
        let either = |own: u64, other: u64| if other > 0 { other } else { own };
        self.needs.cpus = either(self.needs.cpus.into(), cpus.into()) as u32;
        self.needs.gpus = either(self.needs.gpus.into(), gpus.into()) as u32;
        self.needs.mem = either(self.needs.mem, mem);
        self.after.extend(others.after);
        Directives {
            cost: others.cost.or(self.cost),
            min: others.min.or(self.min),
            dir: others.dir.or(self.dir),
            stdin: others.stdin.or(self.stdin),
            ..self
        }
    }
}

/// Reads a line.
///
/// # Errors
/// The mistake in its directives.
pub fn parse(line: &[u8]) -> Result<Line, String> {
    let line = line.trim_ascii();
    let (text, said) = match directive(line) {
        Some(at) => (line[..at].trim_ascii_end(), Some(line[at + MARK.len()..].trim_ascii())),
        None => (line, None),
    };
    let is_blank = text.is_empty() || text[0] == b'#';
    match said {
        None if is_blank => Ok(Line::Nothing),
        None => Ok(Line::Command { text: text.to_vec(), directives: Directives::default() }),
        Some(b"barrier") if is_blank => Ok(Line::Barrier),
        Some(b"barrier") => Err("#EQ barrier stands on a line of its own".into()),
        Some(said) if is_blank => Ok(Line::Ahead(directives(said)?)),
        Some(said) => Ok(Line::Command { text: text.to_vec(), directives: directives(said)? }),
    }
}

const MARK: &[u8] = b"#EQ";

/// Start of the directives: the first `#EQ` that is a word of its own and not in quotes.
fn directive(line: &[u8]) -> Option<usize> {
    let (mut quote, mut escaped, mut before) = (None, false, b' ');
    for (at, &byte) in line.iter().enumerate() {
        match (quote, byte) {
            _ if escaped => escaped = false,
            (None | Some(b'"'), b'\\') => escaped = true,
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b'#') if before.is_ascii_whitespace() => {
                let rest = &line[at..];
                let ends = rest.get(MARK.len()).is_none_or(u8::is_ascii_whitespace);
                // Behind another comment nothing counts.
                return (rest.starts_with(MARK) && ends).then_some(at);
            }
            _ => {}
        }
        before = byte;
    }
    None
}

const KNOWN: &str = "cost=SECONDS, min=SECONDS, cpus=N, gpus=N, mem=BYTES, after=SEQ,.., dir=PATH, stdin=FILE, barrier";

fn directives(said: &[u8]) -> Result<Directives, String> {
    let mut found = Directives::default();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for word in words(said).ok_or("#EQ: a quote is not closed")? {
        let (key, value) = match word.iter().position(|&byte| byte == b'=') {
            Some(at) => (&word[..at], &word[at + 1..]),
            None => return Err(format!("#EQ {}: unknown; known are {KNOWN}", shown(&word))),
        };
        let text = std::str::from_utf8(value).unwrap_or_default();
        let wrong = |what: &str| format!("#EQ {}={}: it must be {what}", shown(key), shown(value));
        match key {
            b"cost" => found.cost = Some(quantity::seconds(text).ok_or_else(|| wrong(SECONDS))?),
            b"min" => found.min = Some(quantity::seconds(text).ok_or_else(|| wrong(SECONDS))?),
            b"cpus" => found.needs.cpus = text.parse().map_err(|_| wrong("a whole number"))?,
            b"gpus" => found.needs.gpus = text.parse().map_err(|_| wrong("a whole number"))?,
            b"mem" => found.needs.mem = bytes(text).ok_or_else(|| wrong(BYTES))?,
            b"after" => found.after = ranges(text).ok_or_else(|| wrong("numbers of commands, such as 12,15-20"))?,
            b"dir" if !value.is_empty() => found.dir = Some(value.to_vec()),
            b"stdin" if !value.is_empty() => found.stdin = Some(value.to_vec()),
            b"dir" | b"stdin" => return Err(wrong("a path")),
            _ => return Err(format!("#EQ {}: unknown; known are {KNOWN}", shown(key))),
        }
    }
    Ok(found)
}

/// The words of a command as a shell reads them; `None` if a quote is not closed.
pub fn words(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    shlex::bytes::split(text)
}

/// A number of bytes, in which K, M, G and T are powers of 1024.
pub fn bytes(text: &str) -> Option<u64> {
    quantity::bytes(text, Prefixes::Binary)
}

/// `12,15-20` as ranges, both ends included.
pub fn ranges(text: &str) -> Option<Vec<(u64, u64)>> {
    let whole = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    let range = |text: &str| match text.split_once('-') {
        Some((first, last)) => Some((whole(first)?, whole(last)?)).filter(|(first, last)| first <= last),
        None => whole(text).map(|one| (one, one)),
    };
    text.split(',').map(range).collect()
}

/// The first word that only a shell understands, where no shell is asked for. In quotes it is an ordinary argument.
pub fn needs_a_shell(text: &[u8]) -> Option<String> {
    const OPERATORS: [&[u8]; 6] = [b"|", b"||", b"&&", b"&", b";", b"<"];
    const REDIRECTIONS: [&[u8]; 2] = [b">", b"2>"];
    let bare = without_quoted(text);
    let is_operator = |word: &&[u8]| OPERATORS.contains(word) || REDIRECTIONS.iter().any(|redirection| word.starts_with(redirection));
    let mut words = bare.split(u8::is_ascii_whitespace);
    words.find(is_operator).map(|word| String::from_utf8_lossy(word).into_owned())
}

/// The text with a letter in place of everything that stands in quotes or behind a backslash.
fn without_quoted(text: &[u8]) -> Vec<u8> {
    let (mut quote, mut is_escaped) = (None, false);
    let bare = |&byte: &u8| {
        let is_quoted = quote.is_some() || is_escaped;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if quote != Some(b'\'') => is_escaped = true,
            b'\'' | b'"' if quote == Some(byte) => quote = None,
            b'\'' | b'"' if quote.is_none() => quote = Some(byte),
            _ if !is_quoted => return byte,
            _ => {}
        }
        b'x'
    };
    text.iter().map(bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> (String, Directives) {
        match parse(line.as_bytes()).unwrap() {
            Line::Command { text, directives } => (String::from_utf8(text).unwrap(), directives),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn blank_lines_and_comments_are_nothing() {
        for line in ["", "  \t", "# a comment", "  #x", "#EQUAL cost=3", "# see #EQ barrier"] {
            assert_eq!(parse(line.as_bytes()), Ok(Line::Nothing), "{line}");
        }
        assert_eq!(parse(b"  #EQ  barrier "), Ok(Line::Barrier));
    }

    #[test]
    fn directives_stand_behind_a_command() {
        let (text, said) = command("run x.txt  #EQ cost=30 min=10 cpus=2 gpus=1 mem=4G after=12,15-20 dir='a b' stdin=in.txt");
        assert_eq!(text, "run x.txt");
        let needs = Needs { cpus: 2, gpus: 1, mem: 4 << 30 };
        let (dir, stdin) = (Some(b"a b".to_vec()), Some(b"in.txt".to_vec()));
        assert_eq!(said, Directives { needs, cost: Some(30.0), min: Some(10.0), after: vec![(12, 12), (15, 20)], dir, stdin });
        for quoted in ["echo '#EQ cost=1'", r"echo \#EQ cost=1", "echo \"a #EQ cost=1\"", "echo a#EQ cost=1", "echo # no #EQ cost=1"] {
            assert_eq!(command(quoted), (quoted.to_string(), Directives::default()));
        }
        assert!(matches!(parse(b"#EQ cost=1:00"), Ok(Line::Ahead(said)) if said.cost == Some(60.0)));
    }

    #[test]
    fn wrong_directives_are_named() {
        for (line, why) in [
            ("x #EQ cost=-1", "#EQ cost=-1: it must be a number of seconds, 0 or more, such as 0.5, 500ms or 1:30:00"),
            ("x #EQ cost=nan", "#EQ cost=nan: it must be a number of seconds, 0 or more, such as 0.5, 500ms or 1:30:00"),
            ("x #EQ mem=4Q", "#EQ mem=4Q: it must be a whole number of bytes below 2^64, such as 4096, 500M, 8e9 or 2GiB"),
            ("x #EQ after=3-1", "#EQ after=3-1: it must be numbers of commands, such as 12,15-20"),
            ("x #EQ after=0", "#EQ after=0: it must be numbers of commands, such as 12,15-20"),
            ("x #EQ dir=", "#EQ dir=: it must be a path"),
            ("x #EQ dir='a", "#EQ: a quote is not closed"),
            ("x #EQ barrier", "#EQ barrier stands on a line of its own"),
        ] {
            assert_eq!(parse(line.as_bytes()), Err(why.into()));
        }
        assert!(parse(b"x #EQ colour=red").unwrap_err().starts_with("#EQ colour: unknown; known are cost=SECONDS, "));
    }

    #[test]
    fn letters_behind_bytes_are_powers_of_1024() {
        assert_eq!(["7", "4k", "64M", "2GiB", "1T", "8e9"].map(bytes), [7, 4096, 64 << 20, 2 << 30, 1 << 40, 8_000_000_000].map(Some));
        assert_eq!(["", "G", "1.5G", "99999999999T"].map(bytes), [None; 4]);
    }

    #[test]
    fn what_only_a_shell_understands_is_seen() {
        let seen = |text: &str| needs_a_shell(text.as_bytes());
        for (text, operator) in
            [("a | b", "|"), ("a > b", ">"), ("a >b", ">b"), ("grep \"x | y\" f | wc", "|"), ("a 'b'\\'' c' && d", "&&")]
        {
            assert_eq!(seen(text).as_deref(), Some(operator), "{text}");
        }
        for text in ["a '|' b", "a b", "a \"| b\" c", "a \\| b", "a '\\' \"'|'\"", "a x>b"] {
            assert_eq!(seen(text), None, "{text}");
        }
    }
}
