//! Self-scheduled loops: ranks take the iterations in chunks.
//!
//! The number of the next chunk is stored on rank 0, and a rank that wants a chunk increments it by a one-sided call: a rank that computes need not
//! answer. Every rank computes the chunk of a number for itself, for rules that treat all ranks alike (Eleliemy and Ciorba 2021 call that
//! distributed chunk calculation).
//!
//! For the other rules the number of iterations that were taken is stored. A rank computes its chunk from those that are left, or for `wf`, `awf-b`
//! and `awf-d` from those that were left at the beginning of the round in which they fall. It knows the times of its own chunks only, so
//! adaptive weights are 1 here.

use std::time::Instant;

use super::call::World;
use super::letters::Op;
use super::status::{Failure, Result, split};
use super::units::near_one;
use crate::schedule::selfsched::named;
use crate::schedule::selfsched::rules::{Chunks, Measured, Rounding, Rule, share};
use crate::spec::{InvalidSpec, Options, Spec};
use crate::topology::RankId;
use crate::transport::mpi::guest::SHARED;

/// The rule that is used when none is named.
pub const DEFAULT_RULE: &str = "fac2";

/// Rule by which chunks of iterations are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Terms {
    rule: Rule,
    rounding: Option<Rounding>,
    least: u64,
}

/// Reads `NAME[:chunk=8,least=1,rounding=up|down]`.
fn terms(text: &str) -> Result<Terms> {
    let spec = Spec::parse("rule", text).map_err(|why| Failure::usage(why.to_string()))?;
    let Some((_, rule)) = named::RULES.iter().find(|(name, _)| *name == spec.name()) else {
        return Err(Failure::usage(spec.unknown(named::RULES.map(|(name, _)| name)).to_string()));
    };
    let read = spec.build(|options: &mut Options<'_>| {
        let rule = named::refined(*rule, options, "")?;
        Ok::<_, InvalidSpec>(Terms { rule, rounding: named::rounding(options)?, least: options.whole("least", 1)?.unwrap_or(1) })
    });
    read.map_err(|why| Failure::usage(why.to_string()))
}

/// A loop that is open.
pub struct Loop {
    /// Index of its shared counter.
    slot: usize,
    first: u64,
    /// Number of iterations.
    length: u64,
    rank: u32,
    taker: Taker,
    /// Iterations that this rank took.
    taken: u64,
    /// Its last chunk: size, and when it was taken.
    last: Option<(u64, Instant)>,
    is_over: bool,
}

/// Way in which the next chunk is found.
enum Taker {
    /// Dealt out before the beginning: the next one, the end, and the distance.
    Dealt { next: u64, end: u64, stride: u64 },
    /// Chunks found by their number: the next number that is not replayed yet, and where its chunk begins.
    Numbered { chunks: Chunks, number: u64, start: u64, ranks: u64 },
    /// All chunks have this length.
    Even(u64),
    /// Chunk sizes depend on the remaining iterations, or on those at the beginning of their round.
    Left { chunks: Box<Chunks>, has_rounds: bool },
}

impl Taker {
    fn new(terms: Terms, length: u64, rank: u32, weights: &[f64]) -> Taker {
        let ranks = weights.len() as u64;
        let chunks = || Chunks::new(terms.rule, length, weights, terms.rounding, terms.least);
        match terms.rule {
            Rule::Static => {
                let rank = u64::from(rank);
                let start = (0..rank).map(|before| share(length, ranks, before)).sum();
                Taker::Dealt { next: start, end: start + share(length, ranks, rank), stride: 0 }
            }
            Rule::Cyclic => Taker::Dealt { next: u64::from(rank), end: length, stride: ranks },
            Rule::Ss => Taker::Even(terms.least),
            Rule::Fixed(chunk) => Taker::Even(chunk.max(terms.least)),
            // All would wait for what a rank without power took.
            Rule::Wf if weights[rank as usize] == 0.0 => Taker::Dealt { next: 0, end: 0, stride: 0 },
            Rule::Wf | Rule::AwfB | Rule::AwfD => Taker::Left { chunks: Box::new(chunks()), has_rounds: true },
            Rule::Awf | Rule::Af | Rule::AwfC | Rule::AwfE | Rule::Tap { variation: None } => {
                Taker::Left { chunks: Box::new(chunks()), has_rounds: false }
            }
            Rule::Single
            | Rule::Gss
            | Rule::Fac2
            | Rule::Tss
            | Rule::Fsc { .. }
            | Rule::Mfsc
            | Rule::Tfss
            | Rule::Fiss { .. }
            | Rule::Tap { variation: Some(_) } => Taker::Numbered { chunks: chunks(), number: 0, start: 0, ranks },
        }
    }

    /// The next chunk; `take` adds to the shared number and says what it was.
    fn next(&mut self, length: u64, rank: u32, mut take: impl FnMut(u64) -> Result<u64>) -> Result<Option<(u64, u64)>> {
        match self {
            Taker::Dealt { next, end, stride } => {
                let from = *next;
                if from >= *end {
                    return Ok(None);
                }
                let to = if *stride == 0 { *end } else { from + 1 };
                *next = if *stride == 0 { *end } else { from.saturating_add(*stride) };
                Ok(Some((from, to)))
            }
            Taker::Even(chunk) => {
                let from = take(1)?.checked_mul(*chunk).filter(|from| *from < length);
                Ok(from.map(|from| (from, from.saturating_add(*chunk).min(length))))
            }
            Taker::Numbered { chunks, number, start, ranks } => {
                let mine = take(1)?;
                loop {
                    if *start >= length {
                        return Ok(None);
                    }
                    let (from, current) = (*start, *number);
                    *start += chunks.next((current % *ranks) as usize, length - from);
                    *number += 1;
                    if current == mine {
                        return Ok(Some((from, *start)));
                    }
                }
            }
            Taker::Left { chunks, has_rounds } => {
                let seen = take(0)?;
                if seen >= length {
                    return Ok(None);
                }
                if *has_rounds {
                    chunks.find_round(length - seen);
                }
                let chunk = chunks.next(rank as usize, length - seen);
                let from = take(chunk)?;
                Ok((from < length).then(|| (from, from.saturating_add(chunk).min(length))))
            }
        }
    }
}

fn too_many() -> Failure {
    Failure::usage(format!("{SHARED} loops are open, and a world has no more: end one first"))
}

impl World {
    /// Opens a loop over the iterations `first .. last`. Collective. [`next`](World::next) is not.
    ///
    /// # Errors
    /// Wrong usage, if the rule is unknown, the end is before the beginning, ranks differ, or 64 loops are open.
    pub fn begin_loop(&self, first: u64, last: u64, rule: &str) -> Result<Loop> {
        self.begin_loop_if(Ok((first, last, rule)))
    }

    #[doc(hidden)]
    pub fn begin_loop_if(&self, given: Result<(u64, u64, &str)>) -> Result<Loop> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let read = given.and_then(|(first, last, rule)| {
                let length = last.checked_sub(first).ok_or_else(|| Failure::usage(format!("the loop ends at {last}, before {first}")))?;
                let rule = if rule.trim().is_empty() { DEFAULT_RULE } else { rule };
                Ok((first, length, rule, terms(rule)?))
            });
            let free = state.loops.iter().position(|open| !open);
            let checked = free.ok_or_else(too_many).and_then(|slot| Ok((slot, read?)));
            let (found, mine) = split(checked);
            let hash = |text: &str| text.bytes().fold(17u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
            let (slot, first, length, rule) =
                found.as_ref().map_or((0, 0, 0, 0), |(slot, (first, length, rule, _))| (*slot, *first, *length, hash(rule)));
            state.agree(Op::LoopBegin, mine, &[("first iteration", first), ("number of iterations", length), ("rule", rule)])?;
            let Some((_, (.., terms))) = found else { return Err(Failure::usage("no loop")) };
            let weights = state.weights(world);
            let weights = match terms.rule {
                Rule::Wf => match near_one(&state.all_of(weights)?).0 {
                    all if all.iter().all(|weight| *weight == 0.0) => {
                        return Err(Failure::usage("option powers: all ranks have power 0, and rule wf deals by it"));
                    }
                    all => all,
                },
                _ => vec![1.0; world.ranks() as usize],
            };
            if !state.link()?.shares() {
                state.confirm(Op::LoopBegin)?;
            }
            let link = state.link()?;
            link.share()?;
            if link.rank == RankId::FIRST {
                link.set(slot, 0)?;
            }
            // No rank takes a chunk before that.
            state.agree(Op::LoopBegin, Ok(()), &[])?;
            state.loops[slot] = true;
            let taker = Taker::new(terms, length, world.rank(), &weights);
            Ok(Loop { slot, first, length, rank: world.rank(), taker, taken: 0, last: None, is_over: false })
        })
    }

    /// The next iterations for this rank; `None` if there are no more. Not collective, and no other rank has to do anything for it.
    ///
    /// # Errors
    /// If the world is lost, or MPI fails.
    pub fn next(&self, of: &mut Loop) -> Result<Option<(u64, u64)>> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            of.measure();
            if of.is_over {
                return Ok(None);
            }
            let slot = of.slot;
            let link = state.link()?;
            let found = of.taker.next(of.length, of.rank, |more| Ok(link.add(slot, more)?))?;
            match found {
                None => of.is_over = true,
                Some((from, to)) => {
                    of.taken += to - from;
                    of.last = Some((to - from, Instant::now()));
                }
            }
            Ok(found.map(|(from, to)| (of.first + from, of.first + to)))
        })
    }

    /// Closes a loop. Collective; a rank that comes early leaves the rest to the others.
    ///
    /// # Errors
    /// Wrong usage, if some iterations were not taken by any rank.
    pub fn end_loop(&self, of: Loop) -> Result<()> {
        self.end_loop_if(Ok(&of))
    }

    #[doc(hidden)]
    pub fn end_loop_if(&self, of: Result<&Loop>) -> Result<()> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let (of, mine) = split(of);
            // Exact as doubles.
            let halves = |number: u64| [(number >> 32) as f64, f64::from(number as u32)];
            let taken = halves(of.map_or(0, |of| of.taken));
            let slot = of.map_or(u64::MAX, |of| of.slot as u64);
            let agreed = state.agree_with(Op::LoopEnd, mine, &[("loop", slot)], &taken, &[])?;
            let Some(of) = of else { return Err(Failure::usage("no loop")) };
            state.loops[of.slot] = false;
            let taken = u128::from(agreed.sums[0] as u64) * (1 << 32) + u128::from(agreed.sums[1] as u64);
            match u128::from(of.length) - taken.min(u128::from(of.length)) {
                0 => Ok(()),
                left => Err(Failure::usage(format!("{left} of {} iterations were not taken by any rank", of.length))),
            }
        })
    }
}

impl Loop {
    pub(super) fn is_open_in(&self, loops: &[bool]) -> bool {
        loops.get(self.slot).copied().unwrap_or(false)
    }

    /// Measures the time of the last chunk.
    fn measure(&mut self) {
        if let (Some((tasks, began)), Taker::Left { chunks, .. }) = (self.last.take(), &mut self.taker) {
            chunks.learn(self.rank as usize, measured(tasks, began.elapsed().as_secs_f64()));
        }
    }
}

/// Measurements of the iterations of a chunk, of which only the time together is known.
fn measured(tasks: u64, time: f64) -> Measured {
    Measured { tasks, time, squares: time * time / tasks as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All iterations, taken by ranks in turn. An iteration takes a second, and no time where nothing is measured.
    fn taken(rule: &str, length: u64, weights: &[f64], is_measured: bool) -> Vec<(u64, u64)> {
        let (terms, ranks) = (terms(rule).unwrap(), weights.len() as u32);
        let mut takers: Vec<Taker> = (0..ranks).map(|rank| Taker::new(terms, length, rank, weights)).collect();
        let (mut shared, mut found, mut open) = (0u64, Vec::new(), ranks);
        let mut over = vec![false; ranks as usize];
        while open > 0 {
            for rank in 0..ranks {
                if over[rank as usize] {
                    continue;
                }
                let next = takers[rank as usize].next(length, rank, |more| {
                    shared += more;
                    Ok(shared - more)
                });
                match next.unwrap() {
                    Some((from, to)) => {
                        found.push((from, to));
                        if let (true, Taker::Left { chunks, .. }) = (is_measured, &mut takers[rank as usize]) {
                            chunks.learn(rank as usize, measured(to - from, (to - from) as f64));
                        }
                    }
                    None => {
                        over[rank as usize] = true;
                        open -= 1;
                    }
                }
            }
        }
        found
    }

    #[test]
    fn every_iteration_once_under_every_rule() {
        for (rule, _) in named::RULES {
            for length in [0, 1, 7, 1000] {
                for (ranks, is_measured) in [(1, true), (2, false), (3, true), (5, false), (8, true)] {
                    let mut chunks = taken(rule, length, &vec![1.0; ranks], is_measured);
                    chunks.sort_unstable();
                    let mut next = 0;
                    for (from, to) in chunks {
                        assert!(from == next && to > from, "{rule} {length} {ranks}");
                        next = to;
                    }
                    assert_eq!(next, length, "{rule} on {ranks}");
                }
            }
        }
    }

    #[test]
    fn the_longest_loops_are_dealt_out_under_every_rule() {
        for (rule, _) in named::RULES {
            for length in [u64::MAX, u64::MAX - 1, 1 << 62] {
                let mut taker = Taker::new(terms(rule).unwrap(), length, 0, &[1.0; 3]);
                let (from, to) = taker.next(length, 0, |_| Ok(0)).unwrap().unwrap();
                assert!(from < to && to <= length, "{rule} {length}: {from} to {to}");
            }
        }
    }

    #[test]
    fn chunks_are_those_of_the_rules() {
        let of = |rule, weights: [f64; 4]| taken(rule, 100, &weights, true).iter().map(|(from, to)| to - from).collect::<Vec<_>>();
        let sizes = |rule| of(rule, [1.0; 4]);
        let factoring = [13, 13, 13, 13, 6, 6, 6, 6, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1];
        assert_eq!(sizes("fac2"), factoring);
        assert_eq!(sizes("wf"), factoring);
        // Half of what is left for each round, three quarters of it for the first rank. A rank without power gets nothing.
        assert_eq!(of("wf", [3.0, 1.0, 0.0, 0.0]), [38, 13, 19, 7, 9, 3, 5, 2, 2, 1, 1]);
        // The first chunks are small, and the rounds go on.
        for rule in ["awf-b", "awf-d"] {
            assert_eq!(sizes(rule), [2, 2, 2, 2, 13, 13, 13, 13, 6, 6, 6, 3, 3, 3, 3, 2, 2, 2, 1, 1, 1, 1], "{rule}");
        }
        for rule in ["awf", "awf-c", "awf-e"] {
            assert_eq!(sizes(rule)[..8], [2, 2, 2, 2, 12, 10, 9, 8], "{rule}");
        }
        assert_eq!(sizes("gss")[..5], [25, 19, 14, 11, 8]);
        assert_eq!(sizes("fixed:chunk=30"), [30, 30, 30, 10]);
        assert!(terms("fac3").unwrap_err().text.contains("fac2"));
        assert!(terms("gss:chunk=3").is_err());
    }
}
