//! Balancing a program's own tasks: anything that serialises, from a `Vec` on each rank to a `Vec` on each rank.
//!
//! ```
//! use equipoise::{redistribute, transport::{sim, world::World}};
//!
//! let mut world = World::simulated(4, sim::Model::default());
//! // Rank 0 has all the work.
//! let tasks = redistribute(&mut world, "direct", |rank| if rank.get() == 0 { vec!["a", "b", "c", "d"] } else { vec![] }.into_iter().map(String::from).collect())?;
//! assert!(tasks.iter().all(|(_, tasks): &(_, Vec<String>)| tasks.len() == 1));
//! # Ok::<(), equipoise::Error>(())
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agreement;
use crate::balance;
use crate::error::{Error, Result, Travelling};
use crate::guest::Refused;
use crate::guest::decide::{All, Decision};
use crate::guest::travel::carried;
use crate::node::{self, Node, tags};
use crate::topology::{RankId, Topology};
use crate::transport::wire;
use crate::transport::world::World;

/// Options of a redistribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Terms {
    /// `NAME[:key=value,..]`: a balancer of the [registry](balance::ALL), or one that knows all weights, `refine` say.
    pub balancer: String,
    /// The factor over the best maximum found up to which fewer moves win; at least 1.
    pub tolerance: f64,
    /// Work per time of the ranks, relative to each other; empty if all are equal.
    pub powers: Vec<f64>,
    /// Seed; the same seed repeats all random decisions.
    pub seed: u64,
    /// `NAME[:SIZES]`: the topology whose links a balancer such as `dem` or `fos` moves tasks along when it decides; each task then goes straight to
    /// its destination. None: the balancer's own for this number of ranks. Balancers that know every task have no use for one.
    pub topology: Option<String>,
}

impl Terms {
    /// A balancer on equal ranks.
    pub fn of(balancer: &str) -> Terms {
        Terms { balancer: balancer.into(), tolerance: 1.0, powers: Vec::new(), seed: 0, topology: None }
    }
}

/// A task with its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed<T> {
    /// The program's own task.
    pub task: T,
    /// Work in any unit: finite, at least 0.
    pub weight: f64,
    /// Whether the task must stay on its rank.
    pub pinned: bool,
}

/// Result of a redistribution on one rank.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Balanced<T> {
    /// The tasks that are on this rank now.
    pub tasks: Vec<T>,
    /// Largest over mean of work over power, before.
    pub before: f64,
    /// The same after.
    pub after: f64,
    /// Number of tasks that changed their rank, of all ranks together.
    pub moved: u64,
    /// Seconds that it took on this rank.
    pub seconds: f64,
}

/// Balances this rank's tasks with those of all other ranks, so that the numbers of tasks on any two ranks differ by at most one (the exact result
/// and the cost depend on the [balancer](balance::ALL), which is named as on the command line, for example `"direct"`).
///
/// Every rank calls this with its own tasks. Tasks that stay are returned unchanged; tasks that leave travel as bytes, straight to their
/// destinations. They arrive in the order of rank and place there. See [`balance_weighed`] for tasks with weights.
///
/// A late rank is waited for, however long it computes before its call: a job ends only if a watchdog was requested, and only while all
/// ranks are in the call.
///
/// # Errors
/// Wrong usage if there is no such balancer; on every rank if the ranks name different ones, or a task would not read back unchanged; or in
/// a simulated world of several ranks (use [`redistribute`] there). The tasks are given back, as they were; `?` makes an
/// [`Error`] of it where they are not needed. Only if the world is lost meanwhile, they are lost with it.
pub fn balance_vec<T>(world: &mut World, balancer: &str, tasks: Vec<T>) -> Result<Vec<T>, Refused<T>>
where
    T: Serialize + DeserializeOwned + 'static,
{
    if RankId::each(world.held()).len() != 1 {
        let why = Error::usage("balance_vec takes the tasks of one rank, but all ranks of a simulation are here: use redistribute");
        return Err(refused(why, tasks));
    }
    let mut tasks = Some(tasks);
    let balanced = redistribute(world, balancer, |_| tasks.take().unwrap_or_default())?;
    Ok(balanced.into_iter().flat_map(|(_, tasks)| tasks).collect())
}

/// The same for tasks of different weights, on ranks of different powers; some may have to stay.
///
/// # Errors
/// As for [`balance_vec`], also where a weight is wrong; the tasks are given back.
pub fn balance_weighed<T>(world: &mut World, terms: &Terms, tasks: Vec<Weighed<T>>) -> Result<Balanced<T>, Refused<T>>
where
    T: Serialize + DeserializeOwned + 'static,
{
    if RankId::each(world.held()).len() != 1 {
        let why =
            Error::usage("balance_weighed takes the tasks of one rank, but all ranks of a simulation are here: use redistribute_weighed");
        return Err(refused(why, tasks.into_iter().map(|weighed| weighed.task).collect()));
    }
    let mut tasks = Some(tasks);
    let mut balanced = redistribute_weighed(world, terms, |_| tasks.take().unwrap_or_default())?;
    balanced.pop().map(|(_, balanced)| balanced).ok_or_else(|| refused(Error::Failed("this rank's node left no result".into()), Vec::new()))
}

/// Balances the tasks of all ranks, in a world of any kind. `tasks` returns the tasks of a rank, and is called for each rank that this
/// process holds; the results are in rank order. See [`balance_vec`].
///
/// # Errors
/// As for [`balance_vec`]; the tasks of all ranks that this process holds are given back, in rank order.
pub fn redistribute<T>(
    world: &mut World,
    balancer: &str,
    mut tasks: impl FnMut(RankId) -> Vec<T>,
) -> Result<Vec<(RankId, Vec<T>)>, Refused<T>>
where
    T: Serialize + DeserializeOwned + 'static,
{
    let unit = |task| Weighed { task, weight: 1.0, pinned: false };
    let balanced = redistribute_weighed(world, &Terms::of(balancer), |rank| tasks(rank).into_iter().map(unit).collect())?;
    Ok(balanced.into_iter().map(|(rank, balanced)| (rank, balanced.tasks)).collect())
}

/// The same for tasks of different weights. See [`balance_weighed`].
///
/// # Errors
/// As for [`balance_weighed`]; the tasks of all ranks that this process holds are given back.
pub fn redistribute_weighed<T>(
    world: &mut World,
    terms: &Terms,
    mut tasks: impl FnMut(RankId) -> Vec<Weighed<T>>,
) -> Result<Vec<(RankId, Balanced<T>)>, Refused<T>>
where
    T: Serialize + DeserializeOwned + 'static,
{
    let held: Vec<Vec<Weighed<T>>> = RankId::each(world.held()).map(&mut tasks).collect();
    let back = |why: Error, held: Vec<Vec<Weighed<T>>>| refused(why, held.into_iter().flatten().map(|weighed| weighed.task).collect());
    // With different balancers on the ranks, ranks would wait for messages that are never sent.
    match agreement::difference(world, terms) {
        Ok(None) => {}
        Ok(Some((rank, first, other))) => {
            let (first, other) = (&first.balancer, &other.balancer);
            let why = format!(
                "rank {rank} balances with '{other}', rank 0 with '{first}'; all ranks must name the same balancer, on the same terms"
            );
            return Err(back(Error::usage(why), held));
        }
        Err(why) => return Err(back(why, held)),
    }
    let overlay = match terms.check(world.ranks()).and_then(|()| agreement::one_node_per_rank(world)) {
        Ok(overlay) => overlay,
        Err(why) => return Err(back(why, held)),
    };
    let first = world.held().start;
    let mut held: Vec<Option<Vec<Weighed<T>>>> = held.into_iter().map(Some).collect();
    let results = node::run(world, &overlay, |node| {
        let mine = held.get_mut((node.me() - first.get()) as usize).and_then(Option::take).unwrap_or_default();
        balance(node, terms.clone(), mine)
    });
    let results = results.map_err(|why| refused(why, Vec::new()))?;
    let mut balanced = Vec::new();
    let mut kept = Vec::new();
    let mut failed = None;
    // Each rank has one node, of the same number.
    for (node, outcome) in results {
        match outcome {
            Ok(outcome) => balanced.push((RankId::new(node), outcome)),
            Err((why, tasks)) => {
                failed = failed.or(Some(why));
                kept.extend(tasks);
            }
        }
    }
    match failed {
        None => Ok(balanced),
        Some(why) => Err(refused(why, kept)),
    }
}

impl Terms {
    fn check(&self, ranks: u32) -> Result<()> {
        let chosen = balance::find(&self.balancer)?;
        if let Some(name) = &self.topology {
            let topology = Topology::parse(name, ranks)?;
            if let Some(why) = chosen.entry.objection(&topology) {
                return Err(why.into());
            }
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 1.0) {
            return Err(Error::usage(format!("the tolerance must be a number of at least 1, and is {}", self.tolerance)));
        }
        if !self.powers.is_empty() && self.powers.len() != ranks as usize {
            return Err(Error::usage(format!("there are {} powers, and {ranks} ranks", self.powers.len())));
        }
        match self.powers.iter().find(|power| !(power.is_finite() && **power >= 0.0)) {
            Some(power) => Err(Error::usage(format!("a power must be a finite number of at least 0, and one is {power}"))),
            None => Ok(()),
        }
    }
}

fn refused<T>(why: Error, values: Vec<T>) -> Refused<T> {
    Refused { failure: why.into(), values }
}

/// Outcome on a node: its tasks and the result, or the error and its unchanged tasks.
type Outcome<T> = Result<Balanced<T>, (Error, Vec<T>)>;

/// The decision as rank 0 announces it.
#[derive(Clone, Serialize, Deserialize)]
struct Announcement {
    counts: Vec<u64>,
    destinations: Vec<u32>,
    before: f64,
    after: f64,
    moved: u64,
}

/// One node's part. Errors that are the caller's are the node's result: an error of the program would end the whole job.
async fn balance<T: Serialize + DeserializeOwned + 'static>(node: Node, terms: Terms, mine: Vec<Weighed<T>>) -> Result<Outcome<T>> {
    let began = node.now();
    let everyone = node.everyone();
    let me = node.me();
    let weights: Vec<f64> = mine.iter().map(|weighed| weighed.weight).collect();
    let pinned: Vec<bool> = mine.iter().map(|weighed| weighed.pinned).collect();
    let tasks: Vec<T> = mine.into_iter().map(|weighed| weighed.task).collect();
    let wrong = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0));
    let checked = match wrong {
        Some(at) => Err(Error::usage(format!("rank {me}, task {at}: its weight must be finite and at least 0, and is {}", weights[at]))),
        None => Ok((weights, pinned)),
    };
    let offer = match agreed(everyone.agree(&node, checked).await)? {
        Ok(offer) => offer,
        Err(why) => return Ok(Err((why, tasks))),
    };
    let offers = everyone.gather(&node, offer).await?;
    let decided = (me == 0).then(|| decide(&terms, offers).map_err(Travelling::from));
    let decision: Result<Announcement, Travelling> = everyone.broadcast(&node, 0, decided).await?;
    let decision = match decision {
        Ok(decision) => decision,
        Err(why) => return Ok(Err((why.into(), tasks))),
    };
    let first: u64 = decision.counts.iter().take(me as usize).sum();
    let mine = &decision.destinations[first as usize..][..tasks.len()];
    let mut leaving: Vec<Vec<Vec<u8>>> = vec![Vec::new(); node.nodes() as usize];
    let mut written = Ok(());
    for (at, (task, to)) in tasks.iter().zip(mine).enumerate().filter(|(_, (_, to))| **to != me) {
        match carried(task, at) {
            Ok(bytes) => leaving[*to as usize].push(bytes),
            Err(why) => {
                written = Err(Error::usage(format!("rank {me}, {}", why.text)));
                break;
            }
        }
    }
    if let Err(why) = agreed(everyone.agree(&node, written).await)? {
        return Ok(Err((why, tasks)));
    }
    for (to, values) in (0..).zip(leaving).filter(|(_, values)| !values.is_empty()) {
        for value in values {
            node.ready_to_send().await;
            node.send_tasks(to, tags::redistribute::VALUES, bytes::Bytes::from(value), 1);
        }
    }
    let mut staying = tasks.into_iter().zip(mine).filter(|(_, to)| **to == me).map(|(task, _)| task);
    let mut here = Vec::new();
    let owners = (0..).zip(&decision.counts).flat_map(|(rank, count)| std::iter::repeat_n(rank, *count as usize));
    for (owner, _) in owners.zip(&decision.destinations).filter(|(_, to)| **to == me) {
        if owner == me {
            here.extend(staying.next());
            continue;
        }
        let message = node.receive_message(Some(owner), tags::redistribute::VALUES).await?;
        let value = wire::read_value(&message.body);
        here.push(value.map_err(|why| Error::Failed(format!("a task does not read back as it was written: {why}")))?);
    }
    let seconds = node.now().saturating_sub(began) as f64 * 1e-9;
    Ok(Ok(Balanced { tasks: here, before: decision.before, after: decision.after, moved: decision.moved, seconds }))
}

/// Separates a lost rank, which ends the run, from errors on which all ranks agree.
fn agreed<T>(agreed: Result<T>) -> Result<Result<T>> {
    match agreed {
        Err(lost @ Error::RankLost { .. }) => Err(lost),
        agreed => Ok(agreed),
    }
}

fn decide(terms: &Terms, offers: Vec<(Vec<f64>, Vec<bool>)>) -> Result<Announcement> {
    let counts: Vec<usize> = offers.iter().map(|(weights, _)| weights.len()).collect();
    let powers = if terms.powers.is_empty() { vec![1.0; counts.len()] } else { terms.powers.clone() };
    let (weights, pinned): (Vec<_>, Vec<_>) = offers.into_iter().unzip();
    let all = All {
        weights: weights.concat(),
        pinned: pinned.concat(),
        bytes: Vec::new(),
        places: None,
        powers,
        capacity: None,
        counts,
        topology: terms.topology.clone(),
    };
    let Decision { destinations, ratios, moved, .. } = all.decide(&terms.balancer, terms.tolerance, terms.seed)?;
    let counts = all.counts.iter().map(|count| *count as u64).collect();
    Ok(Announcement { counts, destinations, before: ratios.before, after: ratios.after, moved })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::sim;

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
    struct Cell {
        name: String,
        size: Option<u32>,
    }

    fn cells(rank: RankId) -> Vec<Cell> {
        let count = if rank.get() == 2 { 40 } else { rank.get() };
        (0..count).map(|i| Cell { name: format!("{rank}.{i}"), size: (i % 2 == 0).then_some(i) }).collect()
    }

    #[test]
    fn tasks_return_as_they_were_and_even() {
        for (balancer, ranks) in [("cwa", 1), ("cwa", 5), ("cwa", 8), ("none", 3)] {
            let mut world = World::simulated(ranks, sim::Model::default());
            let after = redistribute(&mut world, balancer, cells).unwrap();
            assert!(after.iter().map(|(rank, _)| *rank).eq(RankId::all(ranks)));
            let lengths: Vec<usize> = after.iter().map(|(_, tasks)| tasks.len()).collect();
            if balancer != "none" {
                let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
                assert!(most - least <= 1, "{balancer} on {ranks}: {lengths:?}");
            }
            let mut all: Vec<Cell> = after.into_iter().flat_map(|(_, tasks)| tasks).collect();
            let mut expected: Vec<Cell> = RankId::all(ranks).flat_map(cells).collect();
            all.sort();
            expected.sort();
            assert_eq!(all, expected);
        }
    }

    #[test]
    fn one_rank_needs_no_closure() {
        let mut world = World::simulated(1, sim::Model::default());
        assert_eq!(balance_vec(&mut world, "cwa", vec![3u8, 1]).unwrap(), [3, 1]);
        let mut world = World::simulated(2, sim::Model::default());
        let refused = balance_vec(&mut world, "cwa", vec![3u8]).unwrap_err();
        assert_eq!((refused.failure.status, refused.values.as_slice()), (crate::guest::Status::Usage, &[3][..]));
        let unknown = redistribute(&mut world, "magic", |rank| vec![rank.get(); 2]).unwrap_err();
        assert!(unknown.to_string().contains("'magic'"));
        assert_eq!(unknown.values, [0, 0, 1, 1]);
        // As before where nobody wants them.
        assert_eq!(Error::from(unknown).exit_status(), 2);
    }

    #[test]
    fn weights_powers_and_pins_count() {
        // Cells of cost 100 to 2,020 on eight ranks, the same number on each.
        let cost = |rank: RankId, at: u32| 100.0 + f64::from(rank.get() * 4 + at) * 1920.0 / 31.0;
        let tasks = |rank| (0..4).map(|at| Weighed { task: (rank, at), weight: cost(rank, at), pinned: at == 0 }).collect();
        let mut world = World::simulated(8, sim::Model::default());
        let balanced = redistribute_weighed(&mut world, &Terms::of("refine"), tasks).unwrap();
        let (_, one) = &balanced[3];
        assert!(one.before > 1.7 && one.after < 1.1 && one.moved > 0, "{} {} {}", one.before, one.after, one.moved);
        assert!(balanced.iter().all(|(rank, balanced)| balanced.tasks.contains(&(*rank, 0))));
        let loads = balanced.iter().map(|(_, balanced)| balanced.tasks.iter().map(|(rank, at)| cost(*rank, *at)).sum::<f64>());
        let (sum, most) = loads.fold((0.0, 0.0f64), |(sum, most), load| (sum + load, most.max(load)));
        assert!((one.after - most * 8.0 / sum).abs() < 1e-12);
        let terms = Terms { powers: vec![0.0, 1.0], ..Terms::of("greedy") };
        let mut world = World::simulated(2, sim::Model::default());
        let balanced = redistribute_weighed(&mut world, &terms, |_| vec![Weighed { task: 7u8, weight: 1.0, pinned: false }]).unwrap();
        assert_eq!((balanced[0].1.tasks.len(), balanced[1].1.tasks.len()), (0, 2));
    }

    #[test]
    fn a_balancer_decides_along_the_topology_that_is_named() {
        let tasks =
            |rank: RankId| (0..if rank.get() == 0 { 16 } else { 0 }).map(|at| Weighed { task: at, weight: 1.0, pinned: false }).collect();
        let on = |balancer: &str, topology: Option<&str>| {
            let terms = Terms { topology: topology.map(String::from), ..Terms::of(balancer) };
            let balanced = redistribute_weighed(&mut World::simulated(8, sim::Model::default()), &terms, tasks);
            balanced.map(|all| all.into_iter().map(|(_, balanced)| balanced.tasks).collect::<Vec<Vec<u32>>>())
        };
        let (line, cube) = (on("dem", Some("line")).unwrap(), on("dem", Some("hypercube")).unwrap());
        assert!(cube.iter().all(|tasks| tasks.len() == 2) && line != cube, "{line:?} {cube:?}");
        assert_eq!(on("cwa", None).unwrap(), on("cwa", Some("hypercube:3")).unwrap());
        for (topology, says) in [("line", "cwa"), ("ball", "topology 'ball'"), ("line:x", "topology")] {
            let refused = on("cwa", Some(topology)).unwrap_err();
            assert!(refused.failure.status == crate::guest::Status::Usage && refused.failure.text.contains(says), "{refused}");
            assert_eq!(refused.values, (0..16).collect::<Vec<u32>>());
        }
    }

    #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    enum Kind {
        A,
        #[serde(skip)]
        Skipped,
        C,
    }

    #[test]
    fn what_stays_is_untouched_and_what_does_not_travel_is_given_back() {
        let mut world = World::simulated(1, sim::Model::default());
        assert_eq!(balance_vec(&mut world, "none", vec![Kind::Skipped, Kind::C]).unwrap(), [Kind::Skipped, Kind::C]);
        let mut world = World::simulated(2, sim::Model::default());
        let tasks = |kind: Kind| {
            move |rank| vec![Weighed { task: kind.clone(), weight: 1.0, pinned: false }; if rank == RankId::FIRST { 4 } else { 0 }]
        };
        let refused = redistribute_weighed(&mut world, &Terms::of("refine"), tasks(Kind::Skipped)).unwrap_err();
        assert_eq!(refused.values, vec![Kind::Skipped; 4]);
        assert_eq!(refused.failure.status, crate::guest::Status::Usage);
        assert_eq!(redistribute_weighed(&mut world, &Terms::of("refine"), tasks(Kind::A)).unwrap()[1].1.tasks.len(), 2);
        let wrong = |_| vec![Weighed { task: 1u8, weight: f64::NAN, pinned: false }];
        let refused = redistribute_weighed(&mut world, &Terms::of("refine"), wrong).unwrap_err();
        assert!(refused.failure.text.contains("rank 0, task 0") && refused.values == [1, 1], "{refused}");
    }
}
