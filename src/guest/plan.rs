//! Plans: the destination of each item, and the quality of the result. Nothing moves yet.

use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::balancers;
use super::call::{State, World};
use super::decide::{All, Decision};
use super::letters::Op;
use super::measured::Moves;
use super::options::ByRank;
use super::places::{Places, Route};
use super::status::{Failure, Result, split};
use super::verdict::{Ratios, Verdict};
use crate::advice;
use crate::load::Place;

/// Input of a plan, by item. Fields that are `None` are 1, 0 and not pinned for all items.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// Number of items.
    pub items: usize,
    /// Work of each, finite and at least 0.
    pub weights: Option<&'a [f64]>,
    /// Memory of each.
    pub bytes: Option<&'a [u64]>,
    /// Pinned items: those with a value other than 0 stay.
    pub pinned: Option<&'a [u8]>,
    /// Number of coordinates of an item, and all coordinates, item by item. All ranks that have items have the same number; it may be 0 where
    /// there are none.
    pub coordinates: Option<(usize, &'a [f64])>,
    /// The destination rank of each item, if the caller has decided itself.
    pub destinations: Option<&'a [i32]>,
}

/// A decision on items that all ranks hold.
///
/// It may be moved and returned often, with other data, and read when the world is closed.
#[derive(Clone, Debug)]
pub struct Plan {
    world: u64,
    /// The same on all ranks.
    pub(super) number: u64,
    pub(super) destinations: Vec<u32>,
    pub(super) sources: Vec<(u32, u64)>,
    /// The way there.
    pub(super) there: Route,
    /// The way back.
    pub(super) back: Route,
    verdict: Verdict,
}

impl Plan {
    /// Returns the verdict on the plan, for all ranks together.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Number of items on this rank afterwards, including those that stay.
    pub fn incoming(&self) -> usize {
        self.sources.len()
    }

    /// The rank that each item goes to.
    pub fn destinations(&self) -> &[u32] {
        &self.destinations
    }

    /// Owner of each item that is here afterwards, and its index there, in the order in which items arrive.
    pub fn sources(&self) -> &[(u32, u64)] {
        &self.sources
    }

    /// Checks that it is the world's.
    pub(super) fn check(&self, world: &World) -> Result<()> {
        if self.world == world.id() { Ok(()) } else { Err(Failure::usage("the plan is another world's")) }
    }
}

/// Report of a rank on its items.
#[derive(Serialize, Deserialize)]
struct Offer {
    items: u64,
    weights: Option<Vec<f64>>,
    bytes: Option<Vec<u64>>,
    pinned: Option<Vec<u8>>,
    /// Number of coordinates of an item, and all of them.
    coordinates: Option<(u64, Vec<f64>)>,
    destinations: Option<Vec<u32>>,
    power: f64,
    capacity: Option<f64>,
    /// Moves since the last plan.
    moves: Moves,
}

/// Part of the plan that is sent to one rank.
#[derive(Serialize, Deserialize)]
struct Answer {
    destinations: Vec<u32>,
    sources: Vec<(u32, u64)>,
    verdict: Verdict,
}

impl World {
    /// Makes a plan. `op` tells whether the caller has decided the destinations; `mine` may already be an error in this rank's arguments.
    #[doc(hidden)]
    pub fn plan_as(&self, op: Op, given: Result<&Given<'_>>) -> Result<Plan> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let balancer = state.options.balancer.clone();
            let offer = given.and_then(|given| given.check(world.ranks()).map(|()| given)).map(|given| state.offer(given, world.rank()));
            let (offer, mine) = split(offer);
            state.agree(op, mine, &[])?;
            let Some(offer) = offer else { return Err(Failure::usage("no items")) };
            // What a plan costs is measured once all are here: a late rank costs what its load costs.
            let began = Instant::now();
            let answer = state.decided(&offer, |state, offers| {
                let all = All::of(&offers, dimensions(&offers)?)?;
                let decision = match op {
                    Op::PlanFrom => all.given(offers.iter().flat_map(|offer| offer.destinations.iter().flatten().copied()).collect())?,
                    _ => all.decide(&balancer, state.options.tolerance, state.options.seed)?,
                };
                let name = if op == Op::PlanFrom { "from" } else { &balancer };
                let verdict = state.verdict(&all, &decision, name, began.elapsed().as_secs_f64(), None);
                Ok(answers(&all, decision, &verdict))
            })?;
            state.measured.spent += answer.verdict.plan_seconds;
            state.made += 1;
            Ok(Plan::of(world, state.made, answer))
        })
    }

    /// Predicts the result of the balancer with the largest gain, if a unit of weight lasts `seconds_per_unit`. Nothing is moved or stored.
    /// Collective.
    ///
    /// # Errors
    /// As for [`plan`](World::plan).
    pub fn advise(&self, given: &Given<'_>, seconds_per_unit: f64) -> Result<Verdict> {
        self.advise_if(Ok(given), seconds_per_unit)
    }

    #[doc(hidden)]
    pub fn advise_if(&self, given: Result<&Given<'_>>, seconds_per_unit: f64) -> Result<Verdict> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let checked = match seconds_per_unit.is_finite() && seconds_per_unit >= 0.0 {
                true => given.and_then(|given| given.check(world.ranks()).map(|()| given)),
                false => Err(Failure::usage(format!("{seconds_per_unit} seconds per unit: it must be finite and at least 0"))),
            };
            let (offer, mine) = split(checked.map(|given| state.offer(given, world.rank())));
            state.agree(Op::Advise, mine, &[("seconds per unit", seconds_per_unit.to_bits())])?;
            let Some(offer) = offer else { return Err(Failure::usage("no items")) };
            state.decided(&offer, |state, offers| {
                let all = All::of(&offers, 0)?;
                let best = state.best(&all, seconds_per_unit)?;
                Ok(vec![best; offers.len()])
            })
        })
    }
}

impl State {
    /// Rank 0 decides on all ranks' offers, and learns from them what moves have taken.
    fn decided<T>(&mut self, offer: &Offer, decide: impl FnOnce(&mut State, Vec<Offer>) -> Result<Vec<T>>) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        self.measured.moves = Moves::default();
        self.through_first(offer, |state, offers| {
            state.measured.learn(offers.iter().map(|offer| offer.moves));
            decide(state, offers)
        })
    }

    fn offer(&self, given: &Given<'_>, rank: u32) -> Offer {
        let of = |numbers: &ByRank| match numbers {
            ByRank::Unset => None,
            ByRank::Own(own) => Some(*own),
            ByRank::List(list) => list.get(rank as usize).copied(),
        };
        Offer {
            items: given.items as u64,
            weights: given.weights.map(<[f64]>::to_vec),
            bytes: given.bytes.map(<[u64]>::to_vec),
            pinned: given.pinned.map(<[u8]>::to_vec),
            coordinates: given.coordinates.map(|(dimensions, all)| (dimensions as u64, all.to_vec())),
            destinations: given.destinations.map(|all| all.iter().map(|rank| *rank as u32).collect()),
            power: of(&self.options.powers).unwrap_or(1.0),
            capacity: of(&self.options.capacity),
            moves: self.measured.moves,
        }
    }

    /// Quality of a decision. `unit`: seconds per unit of weight, if the caller knows.
    fn verdict(&self, all: &All, decision: &Decision, balancer: &str, plan_seconds: f64, unit: Option<f64>) -> Verdict {
        let move_seconds = if decision.moved > 0 { self.measured.foreseen(decision.busiest) } else { 0.0 };
        // A power is relative to the others': a unit lasts so long on a rank of mean power, where the gain is measured, too.
        let Ratios { before, after, bound, gain, part, .. } = decision.ratios;
        let of_a_step =
            || self.measured.step_seconds.filter(|_| all.weights.iter().any(|weight| *weight > 0.0)).map(|seconds| part * seconds);
        let saved = unit.or(self.options.unit).map(|unit| gain * unit).or_else(of_a_step);
        let costs = plan_seconds + move_seconds;
        Verdict {
            before,
            after,
            bound,
            plan_seconds,
            move_seconds,
            pays_from_seconds_per_unit: if gain > 0.0 { costs / gain } else { f64::INFINITY },
            moved: decision.moved,
            bytes: decision.bytes,
            pays: saved.map(|saved| advice::pays(saved, costs)),
            balancer: balancer.into(),
        }
    }

    /// The verdict of the balancer that leaves least of a step and its own costs.
    fn best(&self, all: &All, unit: f64) -> Result<Verdict> {
        let mut best: Option<((f64, f64), Verdict)> = None;
        let mut refused = None;
        for name in crate::balance::SIMPLEST_FIRST.iter().copied().filter(|name| !balancers::needs_places(name)) {
            let began = Instant::now();
            let decision = match all.decide(name, self.options.tolerance, self.options.seed) {
                Ok(decision) => decision,
                Err(why) => {
                    refused = Some(why);
                    continue;
                }
            };
            let verdict = self.verdict(all, &decision, name, began.elapsed().as_secs_f64(), Some(unit));
            let left = (decision.ratios.left * unit + verdict.plan_seconds + verdict.move_seconds, decision.ratios.free.1);
            if best.as_ref().is_none_or(|(least, _)| left < *least) {
                best = Some((left, verdict));
            }
        }
        best.map(|(_, verdict)| verdict).ok_or_else(|| refused.unwrap_or_else(|| Failure::usage("no balancer suits")))
    }
}

impl Given<'_> {
    /// Checks everything that one rank can see.
    fn check(&self, ranks: u32) -> Result<()> {
        check_room(self.items)?;
        let lengths = [self.weights.map(<[f64]>::len), self.bytes.map(<[u64]>::len), self.pinned.map(<[u8]>::len)];
        let lengths = lengths.into_iter().chain([self.destinations.map(<[i32]>::len)]);
        if let Some(length) = lengths.flatten().find(|length| *length != self.items) {
            return Err(Failure::usage(format!("{length} numbers for {} items", self.items)));
        }
        let wrong = |weight: &f64| !(weight.is_finite() && *weight >= 0.0);
        if let Some(item) = self.weights.and_then(|weights| weights.iter().position(wrong)) {
            let weight = self.weights.unwrap_or_default()[item];
            return Err(Failure::usage(format!("item {item}: weight {weight}: it must be finite and at least 0")));
        }
        if let Some((dimensions, all)) = self.coordinates {
            // A rank without items may not know how many coordinates those of the others have.
            if !(1..=3).contains(&dimensions) && (dimensions, self.items) != (0, 0) {
                return Err(Failure::usage(format!("{dimensions} dimensions: there must be 1 to 3")));
            }
            if Some(all.len()) != self.items.checked_mul(dimensions) {
                return Err(Failure::usage(format!("{} coordinates for {} items of {dimensions}", all.len(), self.items)));
            }
            if let Some(at) = all.iter().position(|coordinate| !coordinate.is_finite()) {
                return Err(Failure::usage(format!("item {}: coordinate {}: it must be finite", at / dimensions, all[at])));
            }
        }
        let is_rank = |rank: &i32| u32::try_from(*rank).is_ok_and(|rank| rank < ranks);
        if let Some(item) = self.destinations.and_then(|all| all.iter().position(|rank| !is_rank(rank))) {
            let rank = self.destinations.unwrap_or_default()[item];
            return Err(Failure::usage(format!("item {item}: destination {rank} is no rank: there are {ranks}")));
        }
        Ok(())
    }
}

impl All {
    fn of(offers: &[Offer], dimensions: usize) -> Result<All> {
        let total = offers.iter().try_fold(0usize, |sum, offer| sum.checked_add(usize::try_from(offer.items).ok()?));
        let total = total.ok_or_else(|| Failure::usage("the ranks have more items together than can be counted"))?;
        check_room(total)?;
        let mut all = All {
            counts: offers.iter().map(|offer| offer.items as usize).collect(),
            weights: Vec::with_capacity(total),
            bytes: Vec::with_capacity(total),
            pinned: Vec::with_capacity(total),
            places: (dimensions > 0).then(|| Vec::with_capacity(total)),
            powers: offers.iter().map(|offer| offer.power).collect(),
            capacity: None,
            topology: None,
        };
        let has_capacity = offers.iter().any(|offer| offer.capacity.is_some());
        for (rank, offer) in offers.iter().enumerate() {
            let items = offer.items as usize;
            if has_capacity && offer.bytes.is_none() && items > 0 {
                return Err(Failure::usage(format!("rank {rank}: option capacity needs the bytes of its items, and they are not given")));
            }
            fill(&mut all.weights, offer.weights.as_deref(), 1.0, items);
            fill(&mut all.bytes, offer.bytes.as_deref(), 0, items);
            let pinned: Option<Vec<bool>> = offer.pinned.as_ref().map(|all| all.iter().map(|pinned| *pinned != 0).collect());
            fill(&mut all.pinned, pinned.as_deref(), false, items);
            if let (Some(places), Some((_, given))) = (&mut all.places, &offer.coordinates) {
                places.extend(given.chunks(dimensions).map(|given| {
                    let mut place: Place = [0.0; 3];
                    place[..dimensions].copy_from_slice(given);
                    place
                }));
            }
        }
        if has_capacity {
            all.capacity = Some(offers.iter().map(|offer| offer.capacity.map_or(u64::MAX, |bytes| bytes as u64)).collect());
        }
        Ok(all)
    }
}

/// Number of coordinates of an item: that of every rank that has items. 0: items have no coordinates.
fn dimensions(offers: &[Offer]) -> Result<usize> {
    let with_items = (0u32..).zip(offers).filter(|(_, offer)| offer.items > 0);
    let mut numbers = with_items.map(|(rank, offer)| (rank, offer.coordinates.as_ref().map_or(0, |(dimensions, _)| *dimensions)));
    let Some((first, dimensions)) = numbers.next() else { return Ok(0) };
    match numbers.find(|(_, other)| *other != dimensions) {
        Some((rank, other)) => {
            Err(Failure::usage(format!("rank {rank}: number of coordinates of an item: {other}, and {dimensions} on rank {first}")))
        }
        None => Ok(dimensions as usize),
    }
}

/// Bytes of the arrays of a plan for each item, on rank 0.
const BYTES_OF_AN_ITEM: usize = 64;

/// Checks that there is memory for a plan of this number of items.
fn check_room(items: usize) -> Result<()> {
    let bytes = items.saturating_mul(BYTES_OF_AN_ITEM);
    match crate::memory::reserve(&mut Vec::<u8>::new(), bytes) {
        true => Ok(()),
        false => Err(Failure::memory(&format!("a plan of {items} items"))),
    }
}

fn fill<T: Copy>(all: &mut Vec<T>, given: Option<&[T]>, otherwise: T, items: usize) {
    match given {
        Some(given) => all.extend_from_slice(given),
        None => all.extend(std::iter::repeat_n(otherwise, items)),
    }
}

fn answers(all: &All, decision: Decision, verdict: &Verdict) -> Vec<Answer> {
    let answer = |_| Answer { destinations: Vec::new(), sources: Vec::new(), verdict: verdict.clone() };
    let mut answers: Vec<Answer> = all.counts.iter().map(answer).collect();
    let mut destinations = decision.destinations.into_iter();
    for (rank, count) in all.counts.iter().enumerate() {
        let mine: Vec<u32> = destinations.by_ref().take(*count).collect();
        // Ranks and indices grow, so arrivals are in order.
        for (index, to) in mine.iter().enumerate() {
            answers[*to as usize].sources.push((rank as u32, index as u64));
        }
        answers[rank].destinations = mine;
    }
    answers
}

impl Plan {
    fn of(world: &World, number: u64, answer: Answer) -> Plan {
        let leaving = Places::by_rank(answer.destinations.iter().copied());
        let arriving = Places::by_rank(answer.sources.iter().map(|(rank, _)| *rank));
        Plan {
            world: world.id(),
            number,
            there: Route {
                leaving: leaving.clone(),
                arriving: arriving.clone(),
                items: answer.destinations.len(),
                arrivals: answer.sources.len(),
            },
            back: Route { leaving: arriving, arriving: leaving, items: answer.sources.len(), arrivals: answer.destinations.len() },
            destinations: answer.destinations,
            sources: answer.sources,
            verdict: answer.verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(items: u64, dimensions: Option<u64>) -> Offer {
        let coordinates = dimensions.map(|dimensions| (dimensions, vec![0.0; (items * dimensions) as usize]));
        let moves = Moves::default();
        Offer { items, weights: None, bytes: None, pinned: None, coordinates, destinations: None, power: 1.0, capacity: None, moves }
    }

    #[test]
    fn ranks_without_items_have_any_number_of_coordinates() {
        assert_eq!(dimensions(&[offer(0, None), offer(2, Some(3)), offer(0, Some(1)), offer(1, Some(3))]).unwrap(), 3);
        assert_eq!(dimensions(&[offer(0, Some(2)), offer(1, None)]).unwrap(), 0);
        assert_eq!(dimensions(&[offer(0, Some(2))]).unwrap(), 0);
        let refused = dimensions(&[offer(0, Some(1)), offer(2, Some(3)), offer(1, None)]).unwrap_err();
        assert_eq!(refused.text, "rank 2: number of coordinates of an item: 0, and 3 on rank 1");
    }

    #[test]
    fn only_a_rank_without_items_may_have_no_dimensions() {
        let given = |items, dimensions, coordinates| Given { items, coordinates: Some((dimensions, coordinates)), ..Given::default() };
        assert!(given(0, 0, &[][..]).check(2).is_ok());
        for (items, dimensions, coordinates) in [(1, 0, &[][..]), (0, 4, &[]), (1, 4, &[0.0; 4]), (2, 1, &[0.0])] {
            assert_eq!(given(items, dimensions, coordinates).check(2).unwrap_err().status, super::super::status::Status::Usage);
        }
    }
}
