//! The grammar of specifications, `NAME[:key=value,flag,..]`, and of lists of them: balancers, schedulers, workloads, loads, powers,
//! weights, networks and topologies.
//!
//! A [`Spec`] is the parsed text; its [`Options`] are taken one by one by the code that knows them. Mistakes are [`InvalidSpec`]s, with the
//! same wording everywhere.

mod mistake;
pub mod quantity;

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::names;
pub use mistake::{InvalidSpec, Mistake, any_of, shown};

/// A name with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    what: &'static str,
    name: String,
    given: Vec<Given>,
}

/// An option as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    Flag(String),
    Value(String, String),
}

impl Spec {
    /// Parses `NAME[:key=value,flag,..]`. `what` is the noun for the item, with which sentences about it begin: `scheduler`.
    ///
    /// # Errors
    /// If an option is empty.
    pub fn parse(what: &'static str, text: &str) -> Result<Spec, InvalidSpec> {
        let (name, options) = split(text.trim());
        let mut spec = Spec { what, name: name.trim().to_string(), given: Vec::new() };
        for piece in options.into_iter().flat_map(|options| options.split(',')).map(str::trim) {
            spec.given.push(match piece.split_once('=') {
                Some((key, value)) => Given::Value(key.trim().into(), value.trim().into()),
                None if piece.is_empty() => return Err(spec.mistake(Mistake::EmptyOption)),
                None => Given::Flag(piece.into()),
            });
        }
        Ok(spec)
    }

    /// Noun for the item.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The name before the colon.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds an option with a value.
    pub fn set(&mut self, key: &str, value: &str) {
        self.given.push(Given::Value(key.into(), value.into()));
    }

    /// Builds the specified item. `make` takes the options that it knows.
    ///
    /// # Errors
    /// Those of `make`, and an unknown option if `make` does not take all of them.
    pub fn build<T, E: From<InvalidSpec>>(&self, make: impl FnOnce(&mut Options<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut options = Options { spec: self, left: self.given.iter().collect(), known: Vec::new() };
        let made = make(&mut options)?;
        options.finish()?;
        Ok(made)
    }

    /// The mistake that this is none of the known names.
    pub fn unknown<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> InvalidSpec {
        let known: Vec<String> = known.into_iter().map(str::to_string).collect();
        let is_known = |name: &str| known.iter().any(|known| known == name);
        let begins_with_one = |text: &str| text.split([':', '+', ',']).next().is_some_and(|name| is_known(name.trim()));
        match self.name.split_once(',') {
            Some((first, second)) if begins_with_one(first) && begins_with_one(second) => self.mistake(Mistake::SeveralNames),
            Some((name, option)) if is_known(name) => {
                let spec = Spec { what: self.what, name: name.into(), given: Vec::new() };
                spec.mistake(Mistake::MissingColon { option: shown(option) })
            }
            _ => self.mistake(Mistake::UnknownName { known }),
        }
    }

    /// The error that options don't go together, or don't fit their use; `why` is a clause that follows a colon.
    pub fn conflict(&self, why: impl Into<String>) -> InvalidSpec {
        self.mistake(Mistake::Conflict { why: names::one_line(why.into()) })
    }

    fn mistake(&self, mistake: Mistake) -> InvalidSpec {
        InvalidSpec { what: self.what, name: shown(&self.name), mistake }
    }
}

/// Text form as it was written, without blanks.
impl Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, given) in self.given.iter().enumerate() {
            let separator = if index == 0 { ':' } else { ',' };
            match given {
                Given::Flag(flag) => write!(f, "{separator}{flag}")?,
                Given::Value(key, value) => write!(f, "{separator}{key}={value}")?,
            }
        }
        Ok(())
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(name, options)| (name, Some(options)))
}

/// The items of a list `NAME[:key=value,..],NAME,..`. Text after a comma belongs to the item before it if it is `key=value`, or if that
/// item has options already and the text is no name: an option may be a flag.
pub fn items(list: &str, is_name: impl Fn(&str) -> bool) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for piece in list.split(',').map(str::trim) {
        let (name, _) = split(piece);
        let is_flag = || items.last().is_some_and(|last| last.contains(':')) && !is_name(name) && name == piece;
        let is_option = name.contains('=') || is_flag();
        match items.last_mut() {
            Some(last) if is_option => {
                last.push(',');
                last.push_str(piece);
            }
            _ => items.push(piece.to_string()),
        }
    }
    items
}

/// The options of a [`Spec`], each of which is taken once by the code that knows it.
pub struct Options<'a> {
    spec: &'a Spec,
    left: Vec<&'a Given>,
    /// Keys that were asked for so far.
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    /// The specification that the options belong to.
    pub fn spec(&self) -> &'a Spec {
        self.spec
    }

    /// Checks that all were taken.
    fn finish(&self) -> Result<(), InvalidSpec> {
        let Some(given) = self.left.first() else { return Ok(()) };
        let (Given::Flag(key) | Given::Value(key, _)) = given;
        Err(self.spec.mistake(Mistake::UnknownOption { key: shown(key), known: self.known.clone() }))
    }

    fn take(&mut self, key: &'static str) -> Vec<Option<&'a str>> {
        self.known.push(key);
        let is_key = |given: &mut &Given| matches!(given, Given::Flag(name) | Given::Value(name, _) if name == key);
        let value = |given: &'a Given| match given {
            Given::Flag(_) => None,
            Given::Value(_, value) => Some(value.as_str()),
        };
        self.left.extract_if(.., is_key).map(value).collect()
    }

    /// Returns true if a flag is given.
    ///
    /// # Errors
    /// If it has a value, or is given twice.
    pub fn flag(&mut self, key: &'static str) -> Result<bool, InvalidSpec> {
        match self.take(key)[..] {
            [] => Ok(false),
            [None] => Ok(true),
            [Some(value)] => Err(self.wrong(key, value, "a word without a value")),
            _ => Err(self.twice(key)),
        }
    }

    /// The only option without a key, such as the sizes in `mesh:3x4`; `like` is an example of it.
    ///
    /// # Errors
    /// If there are several.
    pub fn bare(&mut self, like: &'static str) -> Result<Option<&'a str>, InvalidSpec> {
        self.known.push(like);
        let flag = |given: &'a Given| match given {
            Given::Flag(flag) => Some(flag.as_str()),
            Given::Value(..) => None,
        };
        let flags: Vec<&str> = self.left.iter().copied().filter_map(flag).collect();
        self.left.retain(|given| matches!(given, Given::Value(..)));
        match flags[..] {
            [] => Ok(None),
            [flag] => Ok(Some(flag)),
            [_, second, ..] => Err(self.spec.mistake(Mistake::UnknownOption { key: shown(second), known: self.known.clone() })),
        }
    }

    /// The only option without a key, where there must be one.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn required(&mut self, like: &'static str) -> Result<&'a str, InvalidSpec> {
        if let Some(given) = self.bare(like)? {
            return Ok(given);
        }
        self.finish()?;
        Err(self.conflict(format!("{like} is missing")))
    }

    /// The values of `key=value,value,..`: the value of the key, and the options without a key after it.
    ///
    /// # Errors
    /// If the key is given without a value, or twice.
    pub fn list(&mut self, key: &'static str) -> Result<Option<Vec<&'a str>>, InvalidSpec> {
        let begin = self.left.iter().position(|given| matches!(given, Given::Value(name, _) if name == key));
        let Some(begin) = begin else { return Ok(self.value(key)?.map(|value| vec![value])) };
        let rest = self.left[begin + 1..].iter().take_while(|given| matches!(given, Given::Flag(_))).count();
        let following: Vec<&Given> = self.left.drain(begin + 1..begin + 1 + rest).collect();
        let mut values: Vec<&str> = self.value(key)?.into_iter().collect();
        values.extend(following.into_iter().map(|given| match given {
            Given::Flag(value) | Given::Value(_, value) => value.as_str(),
        }));
        Ok(Some(values))
    }

    /// The values of a key that may be given several times, in the order in which they were given.
    ///
    /// # Errors
    /// If the key is given without a value.
    pub fn values(&mut self, key: &'static str) -> Result<Vec<&'a str>, InvalidSpec> {
        let values: Option<Vec<&str>> = self.take(key).into_iter().collect();
        values.ok_or_else(|| self.spec.mistake(Mistake::MissingValue { key }))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If it is given without one, or twice.
    pub fn value(&mut self, key: &'static str) -> Result<Option<&'a str>, InvalidSpec> {
        match self.values(key)?[..] {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(self.twice(key)),
        }
    }

    /// The value of a key, converted by `read`, which returns `None` for a wrong one; `takes` describes the right ones.
    ///
    /// # Errors
    /// If the value is refused.
    pub fn read_with<T>(
        &mut self,
        key: &'static str,
        takes: &str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, InvalidSpec> {
        let Some(value) = self.value(key)? else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.wrong(key, value, takes))
    }

    /// The value of a key, parsed and checked; `takes` describes the right ones.
    ///
    /// # Errors
    /// If it is not one of these.
    pub fn read<T: FromStr>(
        &mut self,
        key: &'static str,
        takes: &str,
        is_taken: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, InvalidSpec> {
        self.read_with(key, takes, |value| value.parse().ok().filter(is_taken))
    }

    /// A whole number that is not less than `least`.
    ///
    /// # Errors
    /// If the value is none.
    pub fn whole<T: FromStr + PartialOrd + Display>(&mut self, key: &'static str, least: T) -> Result<Option<T>, InvalidSpec> {
        self.read(key, &format!("a whole number, {least} or more"), |number| *number >= least)
    }

    /// A whole number of this range.
    ///
    /// # Errors
    /// If the value is none.
    pub fn within<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Result<Option<T>, InvalidSpec>
    where
        T: FromStr + PartialOrd + Display,
    {
        let takes = format!("a whole number from {} to {}", range.start(), range.end());
        self.read(key, &takes, |number| range.contains(number))
    }

    /// A number of this range.
    ///
    /// # Errors
    /// If the value is none.
    pub fn real(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Result<Option<f64>, InvalidSpec> {
        let takes = format!("a number from {} to {}", range.start(), range.end());
        self.read(key, &takes, |number| range.contains(number))
    }

    /// A finite number that is not negative.
    ///
    /// # Errors
    /// If the value is none.
    pub fn not_negative(&mut self, key: &'static str) -> Result<Option<f64>, InvalidSpec> {
        self.read(key, "a number, 0 or more", |number: &f64| number.is_finite() && *number >= 0.0)
    }

    /// A finite number above 0.
    ///
    /// # Errors
    /// If the value is none.
    pub fn positive(&mut self, key: &'static str) -> Result<Option<f64>, InvalidSpec> {
        self.read(key, "a number above 0", |number: &f64| number.is_finite() && *number > 0.0)
    }

    /// A number strictly between 0 and 1.
    ///
    /// # Errors
    /// If the value is none.
    pub fn fraction(&mut self, key: &'static str) -> Result<Option<f64>, InvalidSpec> {
        self.read(key, "a number between 0 and 1", |number: &f64| *number > 0.0 && *number < 1.0)
    }

    /// A time with its unit, such as `200ms` or `1.5us`, in nanoseconds.
    ///
    /// # Errors
    /// If the value is none.
    pub fn duration(&mut self, key: &'static str) -> Result<Option<u64>, InvalidSpec> {
        self.read_with(key, quantity::TIME, quantity::nanoseconds)
    }

    /// One of several names.
    ///
    /// # Errors
    /// If the value is none of them.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Result<Option<T>, InvalidSpec> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        self.read_with(key, &any_of(&names), |value| choices.iter().find(|(name, _)| *name == value).map(|(_, choice)| *choice))
    }

    /// The error that a value is none of those that the key takes.
    pub fn wrong(&self, key: &'static str, value: &str, takes: &str) -> InvalidSpec {
        self.spec.mistake(Mistake::WrongValue { key, value: shown(value), takes: takes.into() })
    }

    fn twice(&self, key: &'static str) -> InvalidSpec {
        self.spec.mistake(Mistake::Twice { key })
    }

    /// See [`Spec::conflict`].
    pub fn conflict(&self, why: impl Into<String>) -> InvalidSpec {
        self.spec.conflict(why)
    }

    /// The mistake that an option is itself a specification with a mistake.
    pub fn nested(&self, why: InvalidSpec) -> InvalidSpec {
        self.spec.mistake(Mistake::Nested(Box::new(why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Made<T> = Result<T, InvalidSpec>;

    fn made<T>(text: &str, make: impl FnOnce(&mut Options<'_>) -> Made<T>) -> Made<T> {
        Spec::parse("chef", text)?.build(make)
    }

    fn refusal<T>(text: &str, make: impl FnOnce(&mut Options<'_>) -> Made<T>) -> String {
        made(text, make).err().map(|why| why.to_string()).unwrap_or_default()
    }

    #[test]
    fn each_is_taken_as_what_it_is() {
        let text = "ann:size=3, hot ,part=0.5,part=0.25,by=ladle,salt=1e-3,wait=1.5us,2x3";
        let seven = made(text, |options| {
            assert_eq!(options.spec().name(), "ann");
            assert_eq!((options.whole("size", 1u32)?, options.whole::<u64>("missing", 1)?), (Some(3), None));
            assert_eq!((options.flag("hot")?, options.flag("cold")?), (true, false));
            assert_eq!(options.values("part")?, ["0.5", "0.25"]);
            assert_eq!(options.choice("by", &[("spoon", 1), ("ladle", 2)])?, Some(2));
            assert_eq!(options.fraction("salt")?, Some(1e-3));
            assert_eq!(options.duration("wait")?, Some(1500));
            assert_eq!(options.bare("RxC")?, Some("2x3"));
            Ok(7)
        });
        assert_eq!(seven, Ok(7));
        assert_eq!(made("ann", |options| Ok(options.value("size")?.is_some())), Ok(false));
    }

    #[test]
    fn a_specification_reads_back() {
        for text in ["ann", "ann:size=3", "ann:hot,size=3,by=a:b", "ann:parents=-,0,1"] {
            assert_eq!(Spec::parse("chef", text).unwrap().to_string(), text);
        }
        let mut spec = Spec::parse("chef", " ann: hot , size = 3").unwrap();
        assert_eq!(spec.to_string(), "ann:hot,size=3");
        spec.set("by", "ladle");
        assert_eq!(spec.to_string(), "ann:hot,size=3,by=ladle");
    }

    #[test]
    fn a_list_ends_at_the_next_key() {
        let parents = |text: &str| made(text, |options| Ok((options.list("parents")?.map(|list| list.join(" ")), options.flag("hot")?)));
        assert_eq!(parents("ann:parents=-,0,1,1"), Ok((Some("- 0 1 1".into()), false)));
        assert_eq!(parents("ann:hot,parents=-"), Ok((Some("-".into()), true)));
        assert_eq!(parents("ann"), Ok((None, false)));
        assert_eq!(parents("ann:parents").unwrap_err().to_string(), "chef ann: parents needs a value, parents=..");
        assert_eq!(parents("ann:parents=1,2,parents=3").unwrap_err().to_string(), "chef ann: parents is given twice");
    }

    #[test]
    fn options_stay_with_their_item_in_a_list() {
        let items = |list| items(list, |name| ["a", "b", "c", "cwa", "dem", "dss"].contains(&name));
        assert_eq!(items("cwa, dem"), ["cwa", "dem"]);
        assert_eq!(items("a:x=1,y=2,b,c:z=3"), ["a:x=1,y=2", "b", "c:z=3"]);
        assert_eq!(items(""), [""]);
        // Flags, in either order, and before another name.
        assert_eq!(items("dss:static=0.3,affinity"), ["dss:static=0.3,affinity"]);
        assert_eq!(
            items("dss:affinity,static=0.3, cwa,dss:affinity,dem:x=a:b"),
            ["dss:affinity,static=0.3", "cwa", "dss:affinity", "dem:x=a:b"]
        );
        // An option of no entry is reported as a wrong name.
        assert_eq!(items("cwa,dme"), ["cwa", "dme"]);
        assert_eq!(items("a:x=1,dme:y=2"), ["a:x=1", "dme:y=2"]);
        assert_eq!(items("a,x=1"), ["a,x=1"]);
    }

    #[test]
    fn every_mistake_is_one_sentence() {
        let whole = |options: &mut Options<'_>| options.whole("size", 1u32);
        assert_eq!(refusal("ann:size=2", whole), "");
        assert_eq!(refusal("ann:size=0", whole), "chef ann: size is a whole number, 1 or more, not '0'");
        assert_eq!(refusal("ann:size=4294967296", whole), "chef ann: size is a whole number, 1 or more, not '4294967296'");
        assert_eq!(refusal("ann:size", whole), "chef ann: size needs a value, size=..");
        assert_eq!(refusal("ann:size=1,size=1", whole), "chef ann: size is given twice");
        assert_eq!(refusal("ann:size=1,", whole), "chef ann: '' is not of the form key=value");
        assert_eq!(refusal("ann:", whole), "chef ann: '' is not of the form key=value");
        assert_eq!(refusal("ann:sise=2", whole), "chef ann has no option 'sise'; it has size");
        assert_eq!(refusal("ann:size=2", |_| Ok(())), "chef ann takes no options, 'size' was given");
        assert_eq!(refusal("ann:n=9", |options| options.within("n", 1..=8u64)), "chef ann: n is a whole number from 1 to 8, not '9'");
        assert_eq!(refusal("ann:p=NaN", |options| options.real("p", 0.0..=2.5)), "chef ann: p is a number from 0 to 2.5, not 'NaN'");
        assert_eq!(refusal("ann:hot=yes", |options| options.flag("hot")), "chef ann: hot is a word without a value, not 'yes'");
        assert_eq!(refusal("ann:hot,hot", |options| options.flag("hot")), "chef ann: hot is given twice");
        let choice = |options: &mut Options<'_>| options.choice("by", &[("fork", 1), ("spoon", 2), ("ladle", 3)]);
        assert_eq!(refusal("ann:by=hand", choice), "chef ann: by is fork, spoon or ladle, not 'hand'");
        assert_eq!(refusal("ann:w=3", |options| options.duration("w")), "chef ann: w is a time such as 200ms, 1.5us or 0s, not '3'");
        assert_eq!(refusal("ann:2x3,4", |options| options.bare("RxC").map(|_| ())), "chef ann has no option '4'; it has RxC");
        assert_eq!(refusal("ann", |options| Err::<(), _>(options.conflict("a and b"))), "chef ann: a and b");
        let inner = |options: &mut Options<'_>| Err::<(), _>(options.nested(Spec::parse("dish", "x").unwrap().unknown(["soup"])));
        assert_eq!(refusal("ann", inner), "chef ann: dish 'x' is unknown; known are soup");
    }

    #[test]
    fn an_unknown_name_is_told_from_a_missing_colon() {
        let unknown = |text| Spec::parse("chef", text).unwrap().unknown(["ann", "bob"]).to_string();
        assert_eq!(unknown("eve"), "chef 'eve' is unknown; known are ann, bob");
        assert_eq!(unknown("eve,hot"), "chef 'eve,hot' is unknown; known are ann, bob");
        assert_eq!(unknown("ann,hot"), "chef ann: options follow a colon, as in ann:hot");
        assert_eq!(unknown("ann,bobby"), "chef ann: options follow a colon, as in ann:bobby");
        for list in ["ann,bob", "bob, ann", "ann,bob,eve", "ann+fast,bob+fast", "ann+fast,bob:hot"] {
            let names = list.split(':').next().unwrap();
            assert_eq!(unknown(list), format!("chef {names}: one name is needed, and this is a list"));
        }
        assert_eq!(unknown("e\x1b[31m"), "chef 'e\\x1b[31m' is unknown; known are ann, bob");
    }
}
