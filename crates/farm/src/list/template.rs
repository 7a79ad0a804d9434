//! Templates: one program for many arguments, as `farm --args FILE -- PROG {} --out {#}.txt` has it.

/// The program and its arguments, with places for a line of the file.
///
/// | place | what stands there |
/// | --- | --- |
/// | `{}` | the line |
/// | `{#}` | Seq |
/// | `{.}` | the line without its last extension |
/// | `{/}` | the line behind its last slash |
/// | `{//}` | the line before its last slash |
/// | `{/.}` | the line behind its last slash, without its last extension |
///
/// Without any place the line is the last argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    words: Vec<Vec<u8>>,
}

const PLACES: [&[u8]; 6] = [b"{}", b"{#}", b"{.}", b"{/}", b"{//}", b"{/.}"];

impl Template {
    pub fn new(mut words: Vec<Vec<u8>>) -> Template {
        let has_place = |word: &Vec<u8>| PLACES.iter().any(|place| word.windows(place.len()).any(|part| part == *place));
        if !words.iter().any(has_place) {
            words.push(b"{}".to_vec());
        }
        Template { words }
    }

    /// The command for one line, quoted for a shell. With a shell the words of the template are joined unchanged, so that it may hold
    /// pipes, and only the inserted text is quoted.
    pub fn fill(&self, seq: u64, line: &[u8], by_shell: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            if at > 0 {
                text.push(b' ');
            }
            match by_shell {
                true => text.extend(fill(word, seq, quoted, line)),
                false => text.extend(quoted(&fill(word, seq, <[u8]>::to_vec, line))),
            }
        }
        text
    }
}

fn fill(word: &[u8], seq: u64, put: impl Fn(&[u8]) -> Vec<u8>, line: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        match PLACES.iter().find(|place| rest.starts_with(place)) {
            Some(place) => {
                match *place {
                    b"{#}" => out.extend(seq.to_string().into_bytes()),
                    b"{.}" => out.extend(put(without_extension(line))),
                    b"{/}" => out.extend(put(base(line))),
                    b"{//}" => out.extend(put(folder(line))),
                    b"{/.}" => out.extend(put(without_extension(base(line)))),
                    _ => out.extend(put(line)),
                }
                rest = &rest[place.len()..];
            }
            None => {
                out.push(rest[0]);
                rest = &rest[1..];
            }
        }
    }
    out
}

fn base(line: &[u8]) -> &[u8] {
    line.rsplit(|byte| *byte == b'/').next().unwrap_or(line)
}

fn folder(line: &[u8]) -> &[u8] {
    match line.iter().rposition(|byte| *byte == b'/') {
        Some(0) => b"/",
        Some(at) => &line[..at],
        None => b".",
    }
}

fn without_extension(line: &[u8]) -> &[u8] {
    let name = line.len() - base(line).len();
    match line.iter().rposition(|byte| *byte == b'.') {
        // A name that begins with a dot has no extension.
        Some(at) if at > name => &line[..at],
        _ => line,
    }
}

/// A word quoted for a shell. A word that no shell accepts (with a zero byte) stays as it is.
pub fn quoted(word: &[u8]) -> Vec<u8> {
    shlex::bytes::try_quote(word).map_or_else(|_| word.to_vec(), std::borrow::Cow::into_owned)
}

/// The numbers of `A-B` or `A-B:S`.
///
/// # Errors
/// The expected form.
pub fn array(text: &str) -> Result<(u64, u64, u64), String> {
    let wrong = || "it must be a range of whole numbers with a step if need be, such as 1-100 or 1-10000:2".to_string();
    let whole = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (range, step) = text.split_once(':').map_or((text, "1"), |(range, step)| (range, step));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last, step) = (whole(first)?, whole(last)?, whole(step)?);
    // One more than the largest number of tasks cannot be counted.
    if step == 0 || first > last || (last - first) / step == u64::MAX { Err(wrong()) } else { Ok((first, last, step)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(words: &[&str], line: &str, by_shell: bool) -> String {
        let template = Template::new(words.iter().map(|word| word.as_bytes().to_vec()).collect());
        String::from_utf8(template.fill(7, line.as_bytes(), by_shell)).unwrap()
    }

    #[test]
    fn places_are_filled() {
        assert_eq!(filled(&["prog", "{}", "--out", "{#}.txt"], "a.dat", false), "prog a.dat --out 7.txt");
        assert_eq!(filled(&["prog", "{.}", "{/}", "{//}", "{/.}"], "in/x.y.gz", false), "prog in/x.y x.y.gz in x.y");
        assert_eq!(filled(&["prog"], "a b", false), "prog 'a b'");
        assert_eq!(filled(&["wc -l < {} | sort"], "it's", true), "wc -l < \"it's\" | sort");
        let words = super::super::line::words(filled(&["p", "{}"], "a 'b' \"c\" $d \\ *", false).as_bytes()).unwrap();
        assert_eq!(words[1], b"a 'b' \"c\" $d \\ *");
    }

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(
            (without_extension(b"a.b/c"), without_extension(b".x"), folder(b"c"), folder(b"/c")),
            (&b"a.b/c"[..], &b".x"[..], &b"."[..], &b"/"[..])
        );
    }

    #[test]
    fn arrays_have_steps() {
        assert_eq!([array("1-10000:2"), array("3-5"), array("7")], [Ok((1, 10000, 2)), Ok((3, 5, 1)), Ok((7, 7, 1))]);
        for wrong in ["", "1-", "5-3", "1-3:0", "a", "1-2-3", "0-18446744073709551615", "1-18446744073709551616"] {
            assert!(array(wrong).is_err(), "{wrong}");
        }
    }
}
