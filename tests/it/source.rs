//! Reads Rust source just well enough to say which paths and macros it mentions: comments, strings and what is compiled for tests only are
//! left out. A lexer and the shape of `use`, not a parser.

/// A piece of source that means something, and the line that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// A word, `::`, or one other character.
    pub text: String,
    pub line: usize,
}

impl Token {
    fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    }
}

/// A path as written, such as `crate::load::Quota`, with the members of grouped `use` declarations spelt out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub segments: Vec<String>,
    pub line: usize,
    /// Whether a `!` follows: a macro.
    pub is_macro: bool,
}

/// What one file mentions, and which of its modules are for tests only.
#[derive(Debug, Default)]
pub struct Mentions {
    pub paths: Vec<Path>,
    /// Names in `#[cfg(test)] mod NAME;`: their files are for tests only.
    pub test_modules: Vec<String>,
    /// Names in `mod NAME`, whether the module is in another file or here.
    pub modules: Vec<String>,
}

/// What a file mentions outside its tests.
pub fn read(source: &str) -> Mentions {
    let (tokens, test_modules) = without_tests(&lex(source));
    let modules = tokens.windows(2).filter(|pair| pair[0].text == "mod" && pair[1].is_word()).map(|pair| pair[1].text.clone()).collect();
    Mentions { paths: paths(&tokens), test_modules, modules }
}

/// The tokens of a source, without comments, strings and character literals.
fn lex(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let length = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => chars[at..].iter().take_while(|&&c| c != '\n').count(),
            '/' if chars.get(at + 1) == Some(&'*') => block_comment(&chars[at..]),
            '"' => string(&chars[at..]),
            '\'' => quoted(&chars[at..]),
            ':' if chars.get(at + 1) == Some(&':') => {
                tokens.push(Token { text: "::".into(), line });
                2
            }
            c if c.is_alphanumeric() || c == '_' => {
                let word: String = chars[at..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
                match raw_string(&word, &chars[at..]) {
                    Some(length) => length,
                    None => {
                        let length = word.chars().count();
                        tokens.push(Token { text: word, line });
                        length
                    }
                }
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token { text: c.to_string(), line });
                }
                1
            }
        };
        line += chars[at..at + length].iter().filter(|&&c| c == '\n').count();
        at += length;
    }
    tokens
}

/// Length of a block comment, which may hold others.
fn block_comment(chars: &[char]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < chars.len() && depth > 0 {
        match (chars[at], chars.get(at + 1)) {
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            _ => at += 1,
        }
    }
    at
}

/// Length of a string with escapes.
fn string(chars: &[char]) -> usize {
    let mut at = 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// Length of a character literal, or 1 where the quote begins a lifetime.
fn quoted(chars: &[char]) -> usize {
    match chars {
        [_, '\\', _, rest @ ..] => 3 + rest.iter().take_while(|&&c| c != '\'').count() + 1,
        [_, _, '\'', ..] => 3,
        _ => 1,
    }
}

/// Length of a raw string, if this word begins one.
fn raw_string(word: &str, chars: &[char]) -> Option<usize> {
    if !matches!(word, "r" | "br" | "cr") {
        return None;
    }
    let hashes = chars[word.len()..].iter().take_while(|&&c| c == '#').count();
    let open = word.len() + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let inside = chars[open + 1..].windows(closing.len()).position(|window| window == closing)?;
    Some(open + 1 + inside + closing.len())
}

/// Leaves out the items under `#[cfg(test)]`; also the names of modules whose files these are.
fn without_tests(tokens: &[Token]) -> (Vec<Token>, Vec<String>) {
    const TEST_ONLY: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        if !starts_with(&tokens[at..], &TEST_ONLY) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += TEST_ONLY.len();
        let end = at + item_length(&tokens[at..]);
        let item = &tokens[at..end];
        if let Some(place) = item.iter().position(|token| token.text == "mod")
            && item.last().is_some_and(|last| last.text == ";")
            && let Some(name) = item.get(place + 1)
        {
            modules.push(name.text.clone());
        }
        at = end;
    }
    (kept, modules)
}

fn starts_with(tokens: &[Token], texts: &[&str]) -> bool {
    tokens.len() >= texts.len() && tokens.iter().zip(texts).all(|(token, text)| token.text == *text)
}

/// Number of tokens of the item that begins here: up to its closing brace, or its semicolon.
fn item_length(tokens: &[Token]) -> usize {
    let (mut round, mut braces) = (0i32, 0i32);
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" => round += 1,
            ")" | "]" => round -= 1,
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if braces == 0 && round == 0 && tokens.get(at + 1).is_none_or(|next| next.text != ";") {
                    return at + 1;
                }
            }
            ";" if round == 0 && braces == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// All paths, in `use` and elsewhere. Single words are paths too.
fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        // What an opaque type captures, `use<'a>`, is no declaration.
        if tokens[at].text == "use" && tokens.get(at + 1).is_some_and(|next| next.text != "<") {
            at = use_tree(tokens, at + 1, &[], &mut found);
        } else if tokens[at].is_word() {
            let (segments, next) = segments(tokens, at);
            let is_macro = tokens.get(next).is_some_and(|token| token.text == "!");
            found.push(Path { segments, line: tokens[at].line, is_macro });
            at = next;
        } else {
            at += 1;
        }
    }
    found
}

/// The words joined by `::` from here on, and where they end.
fn segments(tokens: &[Token], mut at: usize) -> (Vec<String>, usize) {
    let mut segments = vec![tokens[at].text.clone()];
    while tokens.get(at + 1).is_some_and(|token| token.text == "::") && tokens.get(at + 2).is_some_and(Token::is_word) {
        segments.push(tokens[at + 2].text.clone());
        at += 2;
    }
    (segments, at + 1)
}

/// Spells out one tree of a `use` declaration below a prefix; returns where it ends.
fn use_tree(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Path>) -> usize {
    let mut path = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = use_tree(tokens, at, &path, found);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.text == ","));
                }
                return at + 1;
            }
            "," | "}" | ";" => break,
            "as" => at += 1,
            "self" if !path.is_empty() => {}
            "::" => {}
            text => path.push(text.to_string()),
        }
        at += 1;
    }
    found.push(Path { segments: path, line, is_macro: false });
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(source: &str) -> Vec<String> {
        read(source).paths.iter().filter(|path| path.segments.len() > 1).map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn groups_are_spelt_out() {
        let source = "use crate::{error::{Error, Result}, load::Pile as Heap, node::{self, *}};\nuse std::time;";
        let expected = ["crate::error::Error", "crate::error::Result", "crate::load::Pile", "crate::node", "crate::node::*", "std::time"];
        assert_eq!(written(source), expected);
    }

    #[test]
    fn captured_lifetimes_are_no_declaration() {
        assert_eq!(written("fn f<'a>() -> impl Iterator + use<'a> { a::b() } use c::d;"), ["a::b", "c::d"]);
    }

    #[test]
    fn comments_strings_and_lifetimes_are_no_paths() {
        let source = r##"/* a::b /* c::d */ e::f */ // g::h
            fn f<'a>(x: &'a str) -> char { let s = "i::j \" k::l"; let r = r#"m::n " "#; let c = '"'; let d = '\''; o::p(d) }"##;
        assert_eq!(written(source), ["o::p"]);
    }

    #[test]
    fn what_is_for_tests_only_is_left_out() {
        let source = "a::b(); #[cfg(test)] mod tests { use c::d; fn f() { e::f([1; 2]) } } g::h();
            #[cfg(test)] mod apart; #[cfg(test)] #[path = \"x\"] mod more; #[cfg(test)] fn f(x: [u8; 2]) -> u8 { i::j } k::l();";
        assert_eq!(written(source), ["a::b", "g::h", "k::l"]);
        assert_eq!(read(source).test_modules, ["apart", "more"]);
    }

    #[test]
    fn macros_and_lines_are_told() {
        let mentions = read("x;\n\nprintln!(\"{}\", y::z)");
        assert_eq!(mentions.paths[1], Path { segments: vec!["println".into()], line: 3, is_macro: true });
        assert_eq!(mentions.paths[2].line, 3);
    }
}
