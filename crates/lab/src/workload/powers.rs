//! Relative speeds of the nodes.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::Decimal;
use super::decimal::scaled;
use super::items::{self, Given};
use equipoise::error::{Error, Result};
use equipoise::load::Powers;
use equipoise::names;
use equipoise::spec::Options;

/// The noun for them.
const WHAT: &str = "powers";

/// Powers as they are given; [`Display`](fmt::Display) writes what [`PowerPattern::parse`] reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PowerPattern {
    /// Equal powers of all real nodes (the default).
    #[default]
    Equal,
    /// The power of every node of the topology.
    List(Vec<Decimal>),
    /// The same, in a file: numbers separated by commas, blanks or line ends, comments after `#`.
    File(PathBuf),
    /// Uniform integers in `low..=high`.
    Uniform { low: u64, high: u64 },
}

impl PowerPattern {
    /// Reads `3,4,5 | uniform:1..10 | @FILE | equal`. A file is only read by [`PowerPattern::draw`].
    ///
    /// # Errors
    /// [`Error::Spec`] if the pattern is unknown or has wrong options, [`Error::Input`] if a list is of something else than numbers.
    pub fn parse(text: &str) -> Result<PowerPattern> {
        let spec = match items::given(WHAT, text)? {
            Given::List(items) => return Ok(PowerPattern::List(items::numbers(WHAT, items, Decimal::parse)?)),
            Given::File(path) => return Ok(PowerPattern::File(path)),
            Given::Pattern(spec) => spec,
        };
        let read = |options: &mut Options<'_>| match spec.name() {
            "equal" => Ok(PowerPattern::Equal),
            "uniform" => match items::bounds(options)? {
                (_, 0) => Err(options.conflict("all powers are zero")),
                (low, high) => Ok(PowerPattern::Uniform { low, high }),
            },
            _ => Err(spec.unknown(["equal", "uniform", "a list such as 3,4,5", "@FILE"])),
        };
        Ok(spec.build(read)?)
    }

    /// The powers of the nodes of a topology, the first `real` of which are real; and the same as they were given, to be shown.
    ///
    /// A list has one number for every node, 0 for virtual ones (`real` and above), or for the real nodes only. Decimals are scaled to
    /// integers by one power of ten, so their ratios are exact. Patterns fill the real nodes and depend on `seed` and `real` alone.
    ///
    /// # Errors
    /// [`Error::Input`] if a file can't be read, a list has another length or a power for a virtual node, all powers are 0, or they are too
    /// large.
    pub fn draw(&self, nodes: u32, real: u32, seed: u64) -> Result<(Powers, Vec<Decimal>)> {
        let (given, source) = match self {
            PowerPattern::Equal => {
                let powers = Powers::equal(real, nodes);
                let shown = powers.to_vec().into_iter().map(Decimal::from).collect();
                return Ok((powers, shown));
            }
            PowerPattern::List(given) => (fitting(given.clone(), nodes, real, "")?, String::new()),
            PowerPattern::File(path) => {
                let source = format!(" @{}", names::shown(path));
                (fitting(items::numbers(WHAT, items::read(WHAT, path)?, Decimal::parse)?, nodes, real, &source)?, source)
            }
            PowerPattern::Uniform { low, high } => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                rng.set_stream(super::POWERS_STREAM);
                let mut drawn: Vec<Decimal> = (0..real).map(|_| rng.random_range(*low..=*high).into()).collect();
                drawn.resize(nodes as usize, Decimal::default());
                (drawn, format!(" {self}"))
            }
        };
        let integers = scaled(&given).map_err(|node| {
            Error::input(WHAT, format!("{source}: the power {} of node {node} is too large for the smallest fraction", given[node]))
        })?;
        let powers = Powers::listed(integers).map_err(|why| Error::input(WHAT, format!("{source}: {why}")))?;
        Ok((powers, given))
    }
}

/// Checks that there is a power for every node or every real one, and none but 0 for a virtual one.
fn fitting(mut powers: Vec<Decimal>, nodes: u32, real: u32, source: &str) -> Result<Vec<Decimal>> {
    if powers.len() == real as usize {
        powers.resize(nodes as usize, Decimal::default());
    }
    if powers.len() != nodes as usize {
        return Err(Error::input(WHAT, format!("{source}: {} numbers for {}", powers.len(), super::loads::places(nodes, real))));
    }
    match powers.iter().skip(real as usize).position(|power| !power.is_zero()) {
        Some(offset) => {
            let node = real as usize + offset;
            Err(Error::input(WHAT, format!("{source}: node {node} is virtual and must have power 0, not {}", powers[node])))
        }
        None => Ok(powers),
    }
}

impl FromStr for PowerPattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<PowerPattern> {
        PowerPattern::parse(text)
    }
}

impl fmt::Display for PowerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PowerPattern::Equal => f.write_str("equal"),
            PowerPattern::List(powers) => f.write_str(&powers.iter().map(Decimal::to_string).collect::<Vec<_>>().join(",")),
            PowerPattern::File(path) => write!(f, "@{}", names::shown(path)),
            PowerPattern::Uniform { low, high } => write!(f, "uniform:{low}..{high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, refusal};
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> PowerPattern {
        PowerPattern::parse(text).unwrap()
    }

    #[test]
    fn every_form_reads_back() {
        for text in ["3,4,5", "1.5,0,2", "@some/file", "uniform:1..10", "equal"] {
            assert_eq!(parse(text).to_string(), text);
        }
        assert_eq!(parse("uniform"), parse("uniform:1..10"));
    }

    #[test]
    fn decimals_keep_their_ratios() {
        let (powers, shown) = parse("1.5,3,0.25").draw(3, 3, 1).unwrap();
        assert_eq!(powers.to_vec(), [150, 300, 25]);
        assert_eq!(serde_json::to_string(&shown).unwrap(), "[1.5,3,0.25]");
        let (powers, shown) = PowerPattern::Equal.draw(4, 3, 1).unwrap();
        assert_eq!((powers, serde_json::to_string(&shown).unwrap()), (Powers::equal(3, 4), "[1,1,1,0]".to_string()));
        let file = testing::file("# two ranks\n1.5\n3 # fast\n0");
        assert_eq!(parse(&format!("@{}", file.display())).draw(3, 2, 1).unwrap().0.to_vec(), [15, 30, 0]);
    }

    #[test]
    fn wrong_powers_get_one_sentence() {
        for (text, why) in [
            ("", "powers, item 1: a number is missing"),
            ("1,NaN", "powers, item 2: \"NaN\" is not a finite number"),
            ("nan,1", "powers, item 1: \"nan\" is not a finite number"),
            ("inf", "powers, item 1: \"inf\" is not a finite number"),
            ("1,-2", "powers, item 2: -2 is negative"),
            ("1e400", "powers, item 1: 1e400 is beyond 2^64 - 1"),
            ("uniform:5", "powers uniform: LOW..HIGH is two whole numbers, the lower one first, as in 1..10, not '5'"),
            ("uniform:5..x", "powers uniform: LOW..HIGH is two whole numbers, the lower one first, as in 1..10, not '5..x'"),
            ("uniform:5..2", "powers uniform: LOW..HIGH is two whole numbers, the lower one first, as in 1..10, not '5..2'"),
            ("uniform:0..0", "powers uniform: all powers are zero"),
            ("fast", "powers 'fast' is unknown; known are equal, uniform, a list such as 3,4,5, @FILE"),
            ("@", "powers @: the name of a file is missing"),
        ] {
            assert_eq!(refusal(PowerPattern::parse(text)), why);
        }
        for (text, why) in [
            ("1", "powers: 1 numbers for the 2 ranks or the 3 nodes of the topology"),
            ("1,2,3", "powers: node 2 is virtual and must have power 0, not 3"),
            ("0,0,0", "powers: all powers are zero"),
            ("18446744073709551615,1,0", "powers: the sum of all powers is beyond 2^64 - 1"),
            ("0.000000001,99999999999,0", "powers: the power 99999999999 of node 1 is too large for the smallest fraction"),
        ] {
            assert_eq!(refusal(parse(text).draw(3, 2, 1)), why);
        }
        assert_eq!(refusal(parse("1").draw(3, 3, 1)), "powers: 1 numbers for the 3 nodes of the topology");
        assert_eq!(parse("4,5").draw(3, 2, 1).unwrap().0.to_vec(), [4, 5, 0]);
    }

    proptest! {
        #[test]
        fn patterns_fill_real_nodes_by_seed_alone(low in 1u64..5, width in 0u64..9, real in 1u32..40, more in 0u32..9, seed: u64) {
            let pattern = PowerPattern::Uniform { low, high: low + width };
            let (powers, shown) = pattern.draw(real + more, real, seed).unwrap();
            let native = pattern.draw(real, real, seed).unwrap().0;
            prop_assert_eq!(&powers.to_vec()[..real as usize], &native.to_vec()[..]);
            prop_assert!(native.to_vec().iter().all(|power| (low..=low + width).contains(power)));
            prop_assert!(powers.to_vec()[real as usize..].iter().all(|power| *power == 0));
            prop_assert_eq!(shown.len(), (real + more) as usize);
        }
    }
}
