//! Initial loads: the number of tasks of each node before balancing, as they are given.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Binomial, Distribution, Poisson};

use super::items::{self, Given, whole};
use equipoise::error::{Error, Result};
use equipoise::names;
use equipoise::spec::{InvalidSpec, Options, Spec};

/// The noun for them.
const WHAT: &str = "loads";
/// The names of patterns; a list and a file have none.
const KNOWN: [&str; 8] = ["uniform", "hot", "scattered", "poisson", "sparse", "zero", "a list such as 19,11,2", "@FILE"];

/// Loads as they are given; [`Display`](fmt::Display) writes what [`LoadPattern::parse`] reads.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadPattern {
    /// The load of every node of the topology.
    List(Vec<u64>),
    /// The same, in a file: numbers separated by commas, blanks or line ends, comments after `#`.
    File(PathBuf),
    /// Uniform integers in `0..=2 * mean`, then adjusted to the exact mean. Wu 1997, section 5, says that loads are random
    /// and have a given mean; the range is our choice. See
    /// [`LoadPattern::draw`].
    Uniform { mean: u64 },
    /// All tasks on one node.
    Hot { total: u64, node: u32 },
    /// This many tasks, each on a node drawn at random: our reading of the experiments of Savvas and Kechadi 2004, section 5.
    Scattered { total: u64 },
    /// Poisson numbers.
    Poisson { mean: f64 },
    /// With probability `p` a uniform number in `1..=max`, otherwise nothing.
    Sparse { p: f64, max: u64 },
    /// No tasks at all.
    Zero,
}

impl Default for LoadPattern {
    fn default() -> LoadPattern {
        LoadPattern::Uniform { mean: 10 }
    }
}

impl LoadPattern {
    /// Reads `19,11,2 | @FILE | uniform:mean=10 | hot:total=1000,node=0 | scattered:total=1000 | poisson:mean=10 | sparse:p=0.2,max=100 |
    /// zero`; options that are left out have the values shown. A file is only read by [`LoadPattern::draw`].
    ///
    /// # Errors
    /// [`Error::Spec`] if the pattern is unknown or has wrong options, [`Error::Input`] if a list is of something else than whole numbers.
    pub fn parse(text: &str) -> Result<LoadPattern> {
        let spec = match items::given(WHAT, text)? {
            Given::List(items) => return Ok(LoadPattern::List(items::numbers(WHAT, items, whole)?)),
            Given::File(path) => return Ok(LoadPattern::File(path)),
            Given::Pattern(spec) => spec,
        };
        Ok(spec.build(|options| LoadPattern::read(&spec, options))?)
    }

    /// Length of a list or a file; `None` for a pattern, which fills any number of ranks.
    ///
    /// # Errors
    /// If the file can't be read, or is no list of numbers.
    pub fn listed(&self) -> Result<Option<usize>> {
        match self {
            LoadPattern::List(loads) => Ok(Some(loads.len())),
            LoadPattern::File(path) => Ok(Some(items::numbers(WHAT, items::read(WHAT, path)?, whole)?.len())),
            _ => Ok(None),
        }
    }

    fn read(spec: &Spec, options: &mut Options<'_>) -> Result<LoadPattern, InvalidSpec> {
        Ok(match spec.name() {
            // Twice the mean has to fit.
            "uniform" => LoadPattern::Uniform { mean: options.within("mean", 0..=u64::MAX / 2)?.unwrap_or(10) },
            "hot" => LoadPattern::Hot {
                total: options.whole("total", 0)?.unwrap_or(1000),
                node: options.within("node", 0..=u32::MAX)?.unwrap_or(0),
            },
            "scattered" => LoadPattern::Scattered { total: options.whole("total", 0)?.unwrap_or(1000) },
            "poisson" => {
                let takes = format!("a number from 0 to {:e}", Poisson::<f64>::MAX_LAMBDA);
                let mean = options.read("mean", &takes, |mean: &f64| (0.0..=Poisson::<f64>::MAX_LAMBDA).contains(mean))?;
                LoadPattern::Poisson { mean: mean.unwrap_or(10.0) }
            }
            "sparse" => {
                LoadPattern::Sparse { p: options.real("p", 0.0..=1.0)?.unwrap_or(0.2), max: options.whole("max", 1)?.unwrap_or(100) }
            }
            "zero" => LoadPattern::Zero,
            _ => return Err(spec.unknown(KNOWN)),
        })
    }

    /// The load of every node of a topology of `nodes` nodes, of which the first `real` are real ones. The sum fits into a u64.
    ///
    /// A list has one number for every node, or for every real one; virtual nodes then have nothing. Patterns fill the real nodes only and depend on
    /// `seed` and `real` alone, so that every topology on the same ranks gets the same loads.
    ///
    /// `uniform` reaches its exact mean like this: the real nodes are put into a random order; as long as there are too few (too many)
    /// tasks, the next node in this order, round and round, gets (gives) one, unless it has `2 * mean` (none) already.
    ///
    /// # Errors
    /// [`Error::Input`] if a file can't be read, a list has another length, the node of `hot` is no real one, or the sum does not fit.
    pub fn draw(&self, nodes: u32, real: u32, seed: u64) -> Result<Vec<u64>> {
        self.drawn(nodes, real, seed, &places(nodes, real))
    }

    /// The same for ranks, where there is no topology.
    ///
    /// # Errors
    /// As [`LoadPattern::draw`].
    pub fn draw_by_rank(&self, ranks: u32, seed: u64) -> Result<Vec<u64>> {
        self.drawn(ranks, ranks, seed, &format!("the {ranks} ranks"))
    }

    /// `places` is what a list has a number for, in words.
    fn drawn(&self, nodes: u32, real: u32, seed: u64, places: &str) -> Result<Vec<u64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(super::LOADS_STREAM);
        let drawn: Vec<u64> = match self {
            LoadPattern::List(loads) => return full_list(loads.clone(), [nodes, real], None, places),
            LoadPattern::File(path) => {
                let loads = items::numbers(WHAT, items::read(WHAT, path)?, whole)?;
                return full_list(loads, [nodes, real], Some(path), places);
            }
            LoadPattern::Uniform { mean } => {
                let total = mean.checked_mul(u64::from(real)).ok_or_else(|| self.too_many(real))?;
                uniform_with_exact_mean(&mut rng, *mean, total, real)
            }
            LoadPattern::Hot { total, node } => {
                if *node >= real {
                    return Err(Error::input(WHAT, format!(" {self}: node {node} is none of the {real} real nodes, 0 to {}", real - 1)));
                }
                (0..real).map(|at| if at == *node { *total } else { 0 }).collect()
            }
            LoadPattern::Scattered { total } => scattered(&mut rng, *total, real).ok_or_else(|| self.too_many(real))?,
            LoadPattern::Poisson { mean: 0.0 } | LoadPattern::Zero => vec![0; real as usize],
            LoadPattern::Poisson { mean } => {
                let poisson = Poisson::new(*mean).map_err(|why| Error::input(WHAT, format!(" {self}: mean: {why}")))?;
                (0..real).map(|_| poisson.sample(&mut rng) as u64).collect()
            }
            LoadPattern::Sparse { p, max } => (0..real).map(|_| if rng.random_bool(*p) { rng.random_range(1..=*max) } else { 0 }).collect(),
        };
        let sum = drawn.iter().try_fold(0u64, |sum, load| sum.checked_add(*load));
        sum.ok_or_else(|| self.too_many(real))?;
        let mut loads = drawn;
        loads.resize(nodes as usize, 0);
        Ok(loads)
    }

    fn too_many(&self, real: u32) -> Error {
        Error::input(WHAT, format!(" {self}: the tasks of {real} nodes together are beyond 2^64 - 1"))
    }
}

/// Checks that a list is of the topology's nodes, or of its real nodes only, and that its sum fits into a u64.
fn full_list(mut loads: Vec<u64>, [nodes, real]: [u32; 2], path: Option<&Path>, places: &str) -> Result<Vec<u64>> {
    let source = path.map(|path| format!(" @{}", names::shown(path))).unwrap_or_default();
    if loads.len() == real as usize {
        loads.resize(nodes as usize, 0);
    }
    if loads.len() != nodes as usize {
        return Err(Error::input(WHAT, format!("{source}: {} numbers for {places}", loads.len())));
    }
    match loads.iter().try_fold(0u64, |sum, load| sum.checked_add(*load)) {
        Some(_) => Ok(loads),
        None => Err(Error::input(WHAT, format!("{source}: the tasks of all nodes together are beyond 2^64 - 1"))),
    }
}

/// Places for which a list of loads or powers has a number, in words.
pub(super) fn places(nodes: u32, real: u32) -> String {
    match nodes == real {
        true => format!("the {nodes} nodes of the topology"),
        false => format!("the {real} ranks or the {nodes} nodes of the topology"),
    }
}

fn uniform_with_exact_mean(rng: &mut ChaCha8Rng, mean: u64, total: u64, real: u32) -> Vec<u64> {
    let mut loads: Vec<u64> = (0..real).map(|_| rng.random_range(0..=2 * mean)).collect();
    let mut order: Vec<usize> = (0..real as usize).collect();
    order.shuffle(rng);
    let sum: u128 = loads.iter().map(|load| u128::from(*load)).sum();
    let total = u128::from(total);
    if sum < total {
        let room: Vec<u64> = order.iter().map(|at| 2 * mean - loads[*at]).collect();
        for (at, more) in order.iter().zip(round_and_round(&room, total - sum)) {
            loads[*at] += more;
        }
    } else {
        let room: Vec<u64> = order.iter().map(|at| loads[*at]).collect();
        for (at, less) in order.iter().zip(round_and_round(&room, sum - total)) {
            loads[*at] -= less;
        }
    }
    loads
}

/// Numbers of tasks on nodes, each task on a node drawn at random. A node has a binomial number of those that the nodes before it leave, so that 10^18 tasks
/// take no longer than ten.
fn scattered(rng: &mut ChaCha8Rng, total: u64, real: u32) -> Option<Vec<u64>> {
    let mut left = total;
    let here = |node: u32| {
        let drawn = Binomial::new(left, 1.0 / f64::from(real - node)).ok()?.sample(rng).min(left);
        left -= drawn;
        Some(drawn)
    };
    (0..real).map(here).collect()
}

/// Deals `tasks` out one at a time, round and round, to places that take no more than their `room`: in closed form, since there may
/// be 10^9 rounds. The rooms together hold the tasks.
fn round_and_round(room: &[u64], tasks: u128) -> Vec<u64> {
    let mut rising = room.to_vec();
    rising.sort_unstable();
    // The full rounds: as soon as the places that are not yet full can't all get what is left of the next stretch, share it.
    let (mut rounds, mut left) = (0u64, tasks);
    for (full, &next) in rising.iter().enumerate() {
        let open = (rising.len() - full) as u128;
        let stretch = u128::from(next - rounds) * open;
        if stretch > left {
            rounds += (left / open) as u64;
            left %= open;
            break;
        }
        left -= stretch;
        rounds = next;
    }
    let deal = |&room: &u64| {
        let last = u64::from(room > rounds && left > 0);
        left -= u128::from(last);
        room.min(rounds) + last
    };
    room.iter().map(deal).collect()
}

impl FromStr for LoadPattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<LoadPattern> {
        LoadPattern::parse(text)
    }
}

impl fmt::Display for LoadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadPattern::List(loads) => f.write_str(&loads.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
            LoadPattern::File(path) => write!(f, "@{}", names::shown(path)),
            LoadPattern::Uniform { mean } => write!(f, "uniform:mean={mean}"),
            LoadPattern::Hot { total, node: 0 } => write!(f, "hot:total={total}"),
            LoadPattern::Hot { total, node } => write!(f, "hot:total={total},node={node}"),
            LoadPattern::Scattered { total } => write!(f, "scattered:total={total}"),
            LoadPattern::Poisson { mean } => write!(f, "poisson:mean={mean}"),
            LoadPattern::Sparse { p, max } => write!(f, "sparse:p={p},max={max}"),
            LoadPattern::Zero => f.write_str("zero"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, refusal};
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> LoadPattern {
        LoadPattern::parse(text).unwrap()
    }

    #[test]
    fn every_form_reads_back() {
        for text in [
            "19,11,2",
            "0",
            "@some/file",
            "uniform:mean=10",
            "hot:total=1000",
            "hot:total=5,node=3",
            "scattered:total=40",
            "poisson:mean=2.5",
            "sparse:p=0.2,max=100",
            "zero",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        for (short, long) in [
            ("uniform", "uniform:mean=10"),
            ("hot", "hot:total=1000"),
            ("scattered", "scattered:total=1000"),
            ("poisson", "poisson:mean=10"),
            ("sparse:max=7", "sparse:p=0.2,max=7"),
        ] {
            assert_eq!(parse(short).to_string(), long);
        }
        assert_eq!(parse(" 1, 2 "), LoadPattern::List(vec![1, 2]));
    }

    #[test]
    fn wrong_forms_get_one_sentence() {
        for (text, why) in [
            ("", "loads, item 1: a number is missing"),
            ("1,,2", "loads, item 2: a number is missing"),
            ("1,-2", "loads, item 2: -2 is negative"),
            ("1,2.5", "loads, item 2: \"2.5\" is not a whole number"),
            ("3,NaN", "loads, item 2: \"NaN\" is not a whole number"),
            ("NaN", "loads, item 1: \"NaN\" is not a whole number"),
            ("18446744073709551616", "loads, item 1: 18446744073709551616 is beyond 2^64 - 1"),
            ("@", "loads @: the name of a file is missing"),
            ("uniform:mean=-1", "loads uniform: mean is a whole number from 0 to 9223372036854775807, not '-1'"),
            ("uniform:mean=1e3", "loads uniform: mean is a whole number from 0 to 9223372036854775807, not '1e3'"),
            (
                "uniform:mean=9223372036854775808",
                "loads uniform: mean is a whole number from 0 to 9223372036854775807, not '9223372036854775808'",
            ),
            ("uniform:men=3", "loads uniform has no option 'men'; it has mean"),
            ("sparse:q=3", "loads sparse has no option 'q'; it has p, max"),
            ("zero:q=3", "loads zero takes no options, 'q' was given"),
            ("uniform:", "loads uniform: '' is not of the form key=value"),
            ("uniform,mean=3", "loads uniform: options follow a colon, as in uniform:mean=3"),
            ("uniform:mean=1,mean=2", "loads uniform: mean is given twice"),
            ("hot:node=4294967296", "loads hot: node is a whole number from 0 to 4294967295, not '4294967296'"),
            ("sparse:p=1.5", "loads sparse: p is a number from 0 to 1, not '1.5'"),
            ("sparse:max=0", "loads sparse: max is a whole number, 1 or more, not '0'"),
            ("poisson:mean=NaN", "loads poisson: mean is a number from 0 to 1.844e19, not 'NaN'"),
            ("poisson:mean=1e400", "loads poisson: mean is a number from 0 to 1.844e19, not '1e400'"),
            ("poisson:mean=2e19", "loads poisson: mean is a number from 0 to 1.844e19, not '2e19'"),
        ] {
            assert_eq!(refusal(LoadPattern::parse(text)), why);
        }
        assert_eq!(
            refusal(LoadPattern::parse("unifrom")),
            "loads 'unifrom' is unknown; known are uniform, hot, scattered, poisson, sparse, zero, a list such as 19,11,2, @FILE"
        );
    }

    #[test]
    fn lists_must_fit_the_topology() {
        assert_eq!(parse("3,0,7").draw(3, 2, 1).unwrap(), [3, 0, 7]);
        assert_eq!(refusal(parse("3,0,7").draw(8, 8, 1)), "loads: 3 numbers for the 8 nodes of the topology");
        assert_eq!(refusal(parse("3,0,7").draw_by_rank(8, 1)), "loads: 3 numbers for the 8 ranks");
        assert_eq!(refusal(parse("3,0,7").draw(8, 6, 1)), "loads: 3 numbers for the 6 ranks or the 8 nodes of the topology");
        assert_eq!(parse("3,0,7").draw(4, 3, 1).unwrap(), [3, 0, 7, 0]);
        assert_eq!(parse("3,0,7,2").draw(4, 3, 1).unwrap(), [3, 0, 7, 2]);
        let beyond = format!("{},1", u64::MAX);
        assert_eq!(refusal(parse(&beyond).draw(2, 2, 1)), "loads: the tasks of all nodes together are beyond 2^64 - 1");
        let file = testing::file("1 2\n3,x\n");
        let at = format!("@{}", file.display());
        assert_eq!(refusal(parse(&at).draw(4, 4, 1)), format!("loads {at}, line 2: \"x\" is not a whole number"));
        let file = testing::file("1 2\n3");
        let at = format!("@{}", file.display());
        assert_eq!(parse(&at).draw(3, 1, 1).unwrap(), [1, 2, 3]);
        assert_eq!(refusal(parse(&at).draw(4, 4, 1)), format!("loads {at}: 3 numbers for the 4 nodes of the topology"));
    }

    #[test]
    fn sums_beyond_64_bits_are_refused() {
        let most = u64::MAX;
        assert!(refusal(parse("uniform:mean=9223372036854775807").draw(4, 3, 1)).contains("the tasks of 3 nodes together"));
        assert!(refusal(parse("poisson:mean=1e19").draw(4, 4, 1)).contains("beyond 2^64 - 1"));
        assert!(refusal(parse(&format!("sparse:p=1,max={most}")).draw(64, 64, 1)).contains("beyond 2^64 - 1"));
        assert_eq!(parse(&format!("hot:total={most}")).draw(3, 2, 1).unwrap(), [most, 0, 0]);
        assert_eq!(refusal(parse("hot:node=2").draw(3, 2, 1)), "loads hot:total=1000,node=2: node 2 is none of the 2 real nodes, 0 to 1");
        let huge = parse("poisson:mean=1e18").draw(4, 4, 1).unwrap();
        assert!(huge.iter().all(|load| load.abs_diff(1_000_000_000_000_000_000) < 20_000_000_000), "{huge:?}");
    }

    #[test]
    fn poisson_and_sparse_have_the_moments_they_should() {
        let n = 20_000;
        let loads = parse("poisson:mean=2.5").draw(n, n, 7).unwrap();
        let mean = loads.iter().sum::<u64>() as f64 / f64::from(n);
        let variance = loads.iter().map(|load| (*load as f64 - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((mean - 2.5).abs() < 0.05 && (variance - 2.5).abs() < 0.15, "{mean} {variance}");
        let loads = parse("sparse:p=0.2,max=9").draw(n, n, 7).unwrap();
        let busy = loads.iter().filter(|load| **load > 0).count() as f64 / f64::from(n);
        let mean = loads.iter().sum::<u64>() as f64 / f64::from(n);
        assert!((busy - 0.2).abs() < 0.02 && (mean - 1.0).abs() < 0.06 && loads.iter().max() == Some(&9), "{busy} {mean}");
    }

    #[test]
    fn scattered_tasks_are_all_there_and_each_is_anywhere() {
        let loads: Vec<Vec<u64>> = (0..2_000).map(|seed| parse("scattered:total=24").draw(6, 4, seed).unwrap()).collect();
        assert!(loads.iter().all(|loads| loads.iter().sum::<u64>() == 24 && loads[4..] == [0, 0]));
        for node in 0..4 {
            // Binomial with 24 tasks and a quarter: mean 6, variance 4.5, on the first node as on the last.
            let here: Vec<f64> = loads.iter().map(|loads| loads[node] as f64).collect();
            let mean = here.iter().sum::<f64>() / 2_000.0;
            let variance = here.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / 2_000.0;
            assert!((mean - 6.0).abs() < 0.2 && (variance - 4.5).abs() < 0.6, "{node}: {mean} {variance}");
        }
        let most = parse(&format!("scattered:total={}", u64::MAX)).draw(5, 5, 1).unwrap();
        assert!(
            most.iter().map(|load| u128::from(*load)).sum::<u128>() == u128::from(u64::MAX) && most.iter().all(|load| *load > u64::MAX / 6)
        );
        assert_eq!(parse("scattered:total=7").draw(1, 1, 1).unwrap(), [7]);
    }

    proptest! {
        #[test]
        fn uniform_has_its_exact_mean(
            mean in prop_oneof![0u64..20, 0u64..=1_000_000_000_000],
            real in 1u32..60,
            virtual_nodes in 0u32..9,
            seed: u64,
        ) {
            let pattern = LoadPattern::Uniform { mean };
            let loads = pattern.draw(real + virtual_nodes, real, seed).unwrap();
            prop_assert_eq!(loads.iter().sum::<u64>(), mean * u64::from(real));
            prop_assert!(loads.iter().all(|load| *load <= 2 * mean));
            prop_assert!(loads[real as usize..].iter().all(|load| *load == 0));
        }

        #[test]
        fn the_topology_does_not_matter(which in 0usize..5, real in 1u32..40, more in 0u32..40, seed: u64) {
            let pattern = parse(["uniform", "hot", "poisson", "sparse", "scattered"][which]);
            let native = pattern.draw(real, real, seed).unwrap();
            let overlay = pattern.draw(real + more, real, seed).unwrap();
            prop_assert_eq!(&overlay[..real as usize], &native[..]);
            prop_assert_eq!(pattern.draw(real, real, seed).unwrap(), native);
        }

        #[test]
        fn dealing_in_closed_form_is_dealing_one_by_one(room in prop::collection::vec(0u64..12, 1..8), part in 0.0f64..=1.0) {
            let tasks = (room.iter().sum::<u64>() as f64 * part) as u64;
            let mut dealt = vec![0; room.len()];
            let mut left = tasks;
            while left > 0 {
                for at in 0..room.len() {
                    if left > 0 && dealt[at] < room[at] {
                        dealt[at] += 1;
                        left -= 1;
                    }
                }
            }
            prop_assert_eq!(round_and_round(&room, u128::from(tasks)), dealt);
        }
    }
}
