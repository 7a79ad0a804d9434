//! The options of what is chosen by name, `NAME[:key=value,..]`: of balancers and of schedulers; and lists of such names.

use std::fmt::Display;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Options, each of which is taken once by the code that knows it.
pub struct Options<'a> {
    /// Whose they are, in sentences about them: `--scheduler rid`.
    owner: String,
    /// Keys and their values; a single word has none.
    given: Vec<(&'a str, Option<&'a str>)>,
    known: Vec<&'static str>,
}

/// The name, and the options behind it if there is a colon.
pub fn split(spec: &str) -> (&str, Option<&str>) {
    spec.split_once(':').map_or((spec, None), |(name, options)| (name, Some(options)))
}

/// The items of a list `NAME[:key=value,..],NAME,..`. What follows a comma belongs to the item before it if it is `key=value`, or if that item has
/// options already and this is no name: words may be options, too.
pub fn listed(list: &str, is_name: impl Fn(&str) -> bool) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for piece in list.split(',') {
        let (name, _) = split(piece.trim());
        let is_option =
            name.contains('=') || (items.last().is_some_and(|last| last.contains(':')) && !is_name(name) && name == piece.trim());
        match items.last_mut() {
            Some(last) if is_option => {
                last.push(',');
                last.push_str(piece);
            }
            _ => items.push(piece.trim().to_string()),
        }
    }
    items
}

impl<'a> Options<'a> {
    /// Makes what the options are for, of those in the text.
    ///
    /// # Errors
    /// If they are wrong, or if `make` does not take all of them: the sentence lists those that it knows.
    pub fn make<T>(owner: String, text: Option<&'a str>, make: impl FnOnce(&mut Options<'a>) -> Result<T>) -> Result<T> {
        let mut options = Options { owner, given: Vec::new(), known: Vec::new() };
        for piece in text.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
            options.given.push(match piece.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None if piece.is_empty() => return Err(options.refuse("'' is not of the form key=value")),
                None => (piece, None),
            });
        }
        let made = make(&mut options)?;
        options.finish()?;
        Ok(made)
    }

    /// Checks that all were taken.
    fn finish(&self) -> Result<()> {
        let owner = &self.owner;
        match self.given.first() {
            None => Ok(()),
            Some((key, _)) if self.known.is_empty() => Err(Error::usage(format!("{owner} takes no options, '{key}' was given"))),
            Some((key, _)) => Err(Error::usage(format!("{owner} has no option '{key}'; it has {}", self.known.join(", ")))),
        }
    }

    fn take(&mut self, key: &'static str) -> Vec<Option<&'a str>> {
        self.known.push(key);
        self.given.extract_if(.., |(given, _)| *given == key).map(|(_, value)| value).collect()
    }

    fn twice(&self, key: &str) -> Error {
        self.refuse(&format!("{key} is given twice"))
    }

    /// Whether a single word is given.
    ///
    /// # Errors
    /// If it has a value.
    pub fn word(&mut self, key: &'static str) -> Result<bool> {
        match self.take(key)[..] {
            [] => Ok(false),
            [None] => Ok(true),
            [Some(value)] => Err(self.wrong(key, value, "a word without a value")),
            _ => Err(self.twice(key)),
        }
    }

    /// The values of a key that may be given several times, in the order in which they were given.
    ///
    /// # Errors
    /// If the key is given without a value.
    pub fn values(&mut self, key: &'static str) -> Result<Vec<&'a str>> {
        let values: Option<Vec<&str>> = self.take(key).into_iter().collect();
        values.ok_or_else(|| self.refuse(&format!("{key} needs a value, {key}=..")))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If it has none, or several.
    pub fn value(&mut self, key: &'static str) -> Result<Option<&'a str>> {
        match self.values(key)?[..] {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(self.twice(key)),
        }
    }

    /// The value of a key, read as what it `takes`, in words, and checked to be that.
    ///
    /// # Errors
    /// If it is not.
    pub fn read<T: FromStr>(&mut self, key: &'static str, takes: &str, is_taken: impl FnOnce(&T) -> bool) -> Result<Option<T>> {
        let Some(value) = self.value(key)? else { return Ok(None) };
        match value.parse().ok().filter(is_taken) {
            Some(read) => Ok(Some(read)),
            None => Err(self.wrong(key, value, takes)),
        }
    }

    /// A whole number that is not less than `least`.
    ///
    /// # Errors
    /// If the value is none.
    pub fn whole<T: FromStr + PartialOrd + Display>(&mut self, key: &'static str, least: T) -> Result<Option<T>> {
        self.read(key, &format!("a whole number, {least} or more"), |number| *number >= least)
    }

    /// A number of this range.
    ///
    /// # Errors
    /// If the value is none.
    pub fn real(&mut self, key: &'static str, least: f64, most: f64) -> Result<Option<f64>> {
        self.read(key, &format!("a number from {least} to {most}"), |number| (least..=most).contains(number))
    }

    /// A number between 0 and 1, neither of them.
    ///
    /// # Errors
    /// If the value is none.
    pub fn fraction(&mut self, key: &'static str) -> Result<Option<f64>> {
        self.read(key, "a number between 0 and 1", |number: &f64| *number > 0.0 && *number < 1.0)
    }

    /// One of several names.
    ///
    /// # Errors
    /// If the value is none of them.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(value) = self.value(key)? else { return Ok(None) };
        match choices.iter().find(|(name, _)| *name == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                Err(self.wrong(key, value, &any_of(&names)))
            }
        }
    }

    /// The error for a value that is none of those that the key takes.
    pub fn wrong(&self, key: &str, value: &str, takes: &str) -> Error {
        self.refuse(&format!("{key} is {takes}, not '{value}'"))
    }

    /// One sentence about these options.
    pub fn refuse(&self, why: &str) -> Error {
        Error::usage(format!("{}: {why}", self.owner))
    }
}

/// Names in words: `a, b or c`.
pub fn any_of(names: &[&str]) -> String {
    match names {
        [names @ .., last] if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        _ => names.join(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str, make: impl FnOnce(&mut Options<'_>) -> Result<()>) -> String {
        Options::make("--chef ann".into(), Some(text), make).err().map(|why| why.to_string()).unwrap_or_default()
    }

    #[test]
    fn each_is_taken_as_what_it_is() {
        assert_eq!(split("ann"), ("ann", None));
        let (name, text) = split("ann:size=3, hot ,part=0.5,part=0.25,by=ladle,salt=1e-3");
        assert_eq!(name, "ann");
        let made = Options::make(String::new(), text, |options| {
            assert_eq!((options.whole("size", 1u32)?, options.whole::<u64>("missing", 1)?), (Some(3), None));
            assert_eq!((options.word("hot")?, options.word("cold")?), (true, false));
            assert_eq!(options.values("part")?, ["0.5", "0.25"]);
            assert_eq!(options.choice("by", &[("spoon", 1), ("ladle", 2)])?, Some(2));
            assert_eq!(options.fraction("salt")?, Some(1e-3));
            Ok(7)
        });
        assert_eq!(made.unwrap(), 7);
        assert!(Options::make(String::new(), None, |options| options.value("size").map(|size| assert_eq!(size, None))).is_ok());
    }

    #[test]
    fn options_stay_with_their_item_in_a_list() {
        let listed = |list| listed(list, |name| ["a", "b", "c", "cwa", "dem", "dss"].contains(&name));
        assert_eq!(listed("cwa, dem"), ["cwa", "dem"]);
        assert_eq!(listed("a:x=1,y=2,b,c:z=3"), ["a:x=1,y=2", "b", "c:z=3"]);
        assert_eq!(listed(""), [""]);
        // Words, in either order, and before another name.
        assert_eq!(listed("dss:static=0.3,affinity"), ["dss:static=0.3,affinity"]);
        assert_eq!(
            listed("dss:affinity,static=0.3, cwa,dss:affinity,dem:x=a:b"),
            ["dss:affinity,static=0.3", "cwa", "dss:affinity", "dem:x=a:b"]
        );
        // What is nobody's option is a name that is wrong, and said to be so.
        assert_eq!(listed("cwa,dme"), ["cwa", "dme"]);
        assert_eq!(listed("a:x=1,dme:y=2"), ["a:x=1", "dme:y=2"]);
        assert_eq!(listed("a,x=1"), ["a,x=1"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let whole = |options: &mut Options<'_>| options.whole("size", 1u32).map(|_| ());
        assert_eq!(refusal("size=2", whole), "");
        assert_eq!(refusal("size=0", whole), "--chef ann: size is a whole number, 1 or more, not '0'");
        assert_eq!(refusal("size=4294967296", whole), "--chef ann: size is a whole number, 1 or more, not '4294967296'");
        assert_eq!(refusal("size", whole), "--chef ann: size needs a value, size=..");
        assert_eq!(refusal("size=1,size=1", whole), "--chef ann: size is given twice");
        assert_eq!(refusal("size=1,", whole), "--chef ann: '' is not of the form key=value");
        assert_eq!(refusal("", whole), "--chef ann: '' is not of the form key=value");
        assert_eq!(refusal("sise=2", whole), "--chef ann has no option 'sise'; it has size");
        assert_eq!(refusal("size=2", |_| Ok(())), "--chef ann takes no options, 'size' was given");
        let real = |options: &mut Options<'_>| options.real("part", 0.0, 2.5).map(|_| ());
        assert_eq!(refusal("part=NaN", real), "--chef ann: part is a number from 0 to 2.5, not 'NaN'");
        let word = |options: &mut Options<'_>| options.word("hot").map(|_| ());
        assert_eq!(refusal("hot=yes", word), "--chef ann: hot is a word without a value, not 'yes'");
        assert_eq!(refusal("hot,hot", word), "--chef ann: hot is given twice");
        let choice = |options: &mut Options<'_>| options.choice("by", &[("fork", 1), ("spoon", 2), ("ladle", 3)]).map(|_| ());
        assert_eq!(refusal("by=hand", choice), "--chef ann: by is fork, spoon or ladle, not 'hand'");
    }
}
