//! Execution of a plan, forth and back: items of one size between arrays, and items of any size.

use std::time::{Duration, Instant};

use super::buffers::{Buffers, reserve};
use super::call::{Same, State, World};
use super::letters::Op;
use super::places::{Aligned, Places, Receive, Route};
use super::plan::Plan;
use super::status::{Failure, Result, Status, split};
use crate::topology::RankId;
use crate::transport::mpi::abandoned;
use crate::transport::mpi::foreign::{Arriving, Leaving};
use crate::transport::mpi::guest::Patience;

/// Something with room for these bytes, filled with zeros.
fn room(bytes: usize, what: &str) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    reserve(&mut buffer, bytes, what)?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

impl World {
    /// Moves items of one size: `items` holds them in their order, `out` gets the items of this rank afterwards, in the order of
    /// [`sources`](Plan::sources). Collective.
    ///
    /// # Errors
    /// Wrong usage on all ranks, if an array of one rank does not have the length of the plan.
    pub fn move_bytes(&self, plan: &Plan, items: &[u8], size: usize, out: &mut [u8]) -> Result<()> {
        self.carry(Ok(plan), Op::Move, Ok((items, out)), size)
    }

    /// Returns results of one size to the owners of the items: `results` holds one for each item on this rank, in the order of
    /// [`sources`](Plan::sources), `out` gets the results of this rank's items, by index. Collective.
    ///
    /// # Errors
    /// As for [`move_bytes`](World::move_bytes).
    pub fn return_bytes(&self, plan: &Plan, results: &[u8], size: usize, out: &mut [u8]) -> Result<()> {
        self.carry(Ok(plan), Op::Return, Ok((results, out)), size)
    }

    /// Both, where it may be known already that this rank's arguments are wrong.
    #[doc(hidden)]
    pub fn carry(&self, plan: Result<&Plan>, op: Op, arrays: Result<(&[u8], &mut [u8])>, size: usize) -> Result<()> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let began = Instant::now();
            let is_watched = state.limit().is_some();
            let (plan, arrays, mine) = match (plan.and_then(|plan| plan.check(world).map(|()| plan)), arrays) {
                (Ok(plan), Ok(arrays)) => (Some(plan), Some(arrays), Ok(())),
                (Err(why), _) | (_, Err(why)) => (None, None, Err(why)),
            };
            let route = plan.map(|plan| if op == Op::Move { &plan.there } else { &plan.back });
            let prepared = mine.and_then(|()| match (route, &arrays) {
                (Some(route), Some((from, into))) => route.prepare(&mut state.buffers, world.rank, from, into.len(), size, is_watched),
                _ => Err(Failure::usage("no plan")),
            });
            let (staging, mine) = split(prepared);
            let preparing = began.elapsed();
            let number = plan.map_or(0, |plan| plan.number);
            state.agree(op, mine, &[("plan", number), ("bytes of an item", size as u64)])?;
            let (Some(route), Some((from, into)), Some(staging)) = (route, arrays, staging) else {
                return Err(Failure::usage("no plan"));
            };
            let began = Instant::now();
            state.carry(route, from, into, size, staging)?;
            let items = route.travelling(world.rank);
            state.note(preparing + began.elapsed(), items, items * size);
            Ok(())
        })
    }

    /// Moves items of any size; `receive` is called for each item of this rank afterwards, in the order of [`sources`](Plan::sources),
    /// including those that stay. Collective.
    ///
    /// # Errors
    /// Wrong usage on all ranks; a callback's refusal, after which items are still with their owners.
    pub fn move_each(&self, plan: &Plan, items: &[&[u8]], receive: Receive<'_>) -> Result<()> {
        self.carry_each(Ok(plan), Op::MoveVar, Ok(items), receive)
    }

    /// Brings results of any size home; `receive` is called for each of this rank's items, by index, with the rank that computed it.
    /// Collective.
    ///
    /// # Errors
    /// As for [`move_each`](World::move_each).
    pub fn return_each(&self, plan: &Plan, results: &[&[u8]], receive: Receive<'_>) -> Result<()> {
        self.carry_each(Ok(plan), Op::ReturnVar, Ok(results), receive)
    }

    /// Both, where it may be known already that this rank's arguments are wrong.
    #[doc(hidden)]
    pub fn carry_each(&self, plan: Result<&Plan>, op: Op, items: Result<&[&[u8]]>, receive: Receive<'_>) -> Result<()> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let both = plan.and_then(|plan| plan.check(world).map(|()| plan)).and_then(|plan| items.map(|items| (plan, items)));
            let both = both.and_then(|(plan, items)| {
                let route = if op == Op::MoveVar { &plan.there } else { &plan.back };
                match items.len() == route.items {
                    true => Ok((plan, route, items, route.rooms_for_sizes(world.rank)?)),
                    false => Err(Failure::usage(format!("{} items are given, and the plan has {}", items.len(), route.items))),
                }
            });
            let (both, mine) = split(both);
            let number = both.as_ref().map_or(0, |(plan, ..)| plan.number);
            state.agree(op, mine, &[("plan", number)])?;
            let Some((plan, route, items, rooms)) = both else { return Err(Failure::usage("no plan")) };
            let began = Instant::now();
            let same: Same<'_> = &[("plan", number)];
            let (sizes, packed) = state.exchange_each(op, route, items, rooms, same)?;
            let bytes = route.leaving_bytes(world.rank, items) + packed.iter().map(Vec::len).sum::<usize>();
            state.note(began.elapsed(), route.travelling(world.rank), bytes);
            drop(state);
            let delivered = world.deliver(plan, op, route, items, &sizes, &packed, receive);
            let mut state = world.state.borrow_mut();
            state.agree(op, delivered, same)?;
            Ok(())
        })
    }

    /// Calls back for everything that has come and what is here.
    #[allow(clippy::too_many_arguments, reason = "each is needed, and they are together here only")]
    fn deliver(
        &self,
        plan: &Plan,
        op: Op,
        route: &Route,
        items: &[&[u8]],
        sizes: &[Vec<u64>],
        packed: &[Vec<u8>],
        receive: Receive<'_>,
    ) -> Result<()> {
        // Bytes of each arrival: peer and offset; or the item that stays.
        let mut found: Vec<&[u8]> = vec![&[]; route.arrivals];
        for (peer, (rank, places)) in route.arriving.iter().enumerate() {
            if *rank == self.rank {
                let own = route.leaving.iter().find(|(rank, _)| *rank == self.rank);
                let stays = own.map(|(_, places)| places.iter().map(|at| items[at]).collect::<Vec<_>>()).unwrap_or_default();
                places.iter().zip(stays).for_each(|(place, bytes)| found[place] = bytes);
                continue;
            }
            let mut start = 0;
            for (place, size) in places.iter().zip(&sizes[peer]) {
                let end = start + *size as usize;
                found[place] = &packed[peer][start..end];
                start = end;
            }
        }
        let mut aligned = Aligned::new();
        // Others wait for the last callback, which may come late.
        let every = self.state.borrow().limit().map(|limit| limit / 4);
        let mut last = Instant::now();
        for (place, bytes) in found.into_iter().enumerate() {
            if every.is_some_and(|every| last.elapsed() > every) {
                self.state.borrow_mut().is_at_work()?;
                last = Instant::now();
            }
            let (from, index) = match op {
                Op::MoveVar => plan.sources[place],
                _ => (plan.destinations[place], place as u64),
            };
            let bytes = aligned.copy(bytes)?;
            let answer = self.back(|| receive(from, index, bytes));
            if answer != 0 {
                let text = format!("item {index} of rank {from}: the callback returned {answer}");
                return Err(Failure::new(Status::Callback, text));
            }
        }
        Ok(())
    }
}

/// Items from each rank that something comes from: their sizes, and their bytes one behind the other.
type Arrived = (Vec<Vec<u64>>, Vec<Vec<u8>>);

/// Buffers for what is not in one piece in the caller's arrays.
struct Staging {
    leaving: Vec<Option<Vec<u8>>>,
    arriving: Vec<Option<Vec<u8>>>,
}

impl Route {
    /// Number of items that leave this rank or reach it.
    fn travelling(&self, me: RankId) -> usize {
        self.leaving.iter().chain(&self.arriving).filter(|(rank, _)| *rank != me).map(|(_, places)| places.len()).sum()
    }

    /// Bytes of the items that leave this rank.
    fn leaving_bytes(&self, me: RankId, items: &[&[u8]]) -> usize {
        let leaving = self.leaving.iter().filter(|(rank, _)| *rank != me);
        leaving.flat_map(|(_, places)| places.iter()).map(|at| items[at].len()).sum()
    }

    /// Room for the sizes of the items that arrive from each rank.
    fn rooms_for_sizes(&self, me: RankId) -> Result<Vec<Vec<u8>>> {
        self.arriving.iter().map(|(rank, places)| room(if *rank == me { 0 } else { places.len() * 8 }, "sizes")).collect()
    }

    /// Checks the arrays, and makes room for what must be collected or spread, and for everything if a time limit may end the wait: transfers that
    /// are left behind may not write into the caller's array then.
    fn prepare(&self, buffers: &mut Buffers, me: RankId, from: &[u8], into: usize, size: usize, is_watched: bool) -> Result<Staging> {
        for (items, bytes, what) in [(self.items, from.len(), "given"), (self.arrivals, into, "to be received")] {
            if items.checked_mul(size) != Some(bytes) {
                return Err(Failure::usage(format!("{bytes} bytes for {items} items of {size} that are {what}")));
            }
        }
        let mut packed = |rank: &RankId, places: &Places, leaves: bool| {
            if *rank == me || size == 0 || !(is_watched || matches!(places, Places::List(_))) {
                return Ok(None);
            }
            let mut buffer = buffers.take(places.len() * size, "items")?;
            if leaves {
                places.iter().zip(buffer.chunks_exact_mut(size)).for_each(|(at, item)| item.copy_from_slice(&from[at * size..][..size]));
            }
            Ok(Some(buffer))
        };
        Ok(Staging {
            leaving: self.leaving.iter().map(|(rank, places)| packed(rank, places, true)).collect::<Result<_>>()?,
            arriving: self.arriving.iter().map(|(rank, places)| packed(rank, places, false)).collect::<Result<_>>()?,
        })
    }
}

impl State {
    /// Notes what a move took; items and bytes are those that left this rank or reached it.
    fn note(&mut self, took: Duration, items: usize, bytes: usize) {
        self.measured.spent += took.as_secs_f64();
        self.measured.moves.add(items, bytes, took);
    }

    fn carry(&mut self, route: &Route, from: &[u8], into: &mut [u8], size: usize, mut staging: Staging) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        let me = self.link()?.rank;
        let mut leaving = Vec::new();
        for ((rank, places), staging) in route.leaving.iter().zip(&staging.leaving) {
            let bytes = match (staging, places) {
                _ if *rank == me => continue,
                (Some(staging), _) => staging.as_slice(),
                (None, places) => &from[places.at(0) * size..][..places.len() * size],
            };
            leaving.push(Leaving { to: *rank, from: bytes.as_ptr(), length: bytes.len() });
        }
        let mut arriving = Vec::new();
        for ((rank, places), staging) in route.arriving.iter().zip(&mut staging.arriving) {
            let bytes = match (staging, places) {
                _ if *rank == me => continue,
                (Some(staging), _) => staging.as_mut_slice(),
                (None, places) => &mut into[places.at(0) * size..][..places.len() * size],
            };
            arriving.push(Arriving { from: *rank, into: bytes.as_mut_ptr(), length: bytes.len() });
        }
        let moved = self.transfer(&arriving, &leaving);
        if moved.is_err() {
            // MPI may still read the one and write the other.
            abandoned::keep(staging);
            return moved;
        }
        let own = |routes: &[(RankId, Places)]| routes.iter().position(|(rank, _)| *rank == me);
        if let (Some(out), Some(here)) = (own(&route.leaving), own(&route.arriving)) {
            for (from_place, to_place) in route.leaving[out].1.iter().zip(route.arriving[here].1.iter()) {
                into[to_place * size..(to_place + 1) * size].copy_from_slice(&from[from_place * size..(from_place + 1) * size]);
            }
        }
        for ((_, places), staging) in route.arriving.iter().zip(&staging.arriving) {
            if let Some(staging) = staging {
                for (place, item) in places.iter().zip(staging.chunks(size)) {
                    into[place * size..(place + 1) * size].copy_from_slice(item);
                }
            }
        }
        self.buffers.give(staging.leaving.into_iter().chain(staging.arriving).flatten());
        Ok(())
    }

    /// Moves bytes, and waits until all have arrived.
    #[allow(unsafe_code, reason = "the arrays outlive the call, or are leaked by the callers if it fails")]
    fn transfer(&mut self, arriving: &[Arriving], leaving: &[Leaving]) -> Result<()> {
        // SAFETY: the callers of this keep the arrays until it returns, and forget their own if it fails; a caller's own arrays are used
        // only where no time limit ends the wait.
        let mut moving = unsafe { self.link()?.begin(arriving, leaving)? };
        // All ranks are here: it will not be long.
        let mut patience = Patience::eager();
        let mut pieces = usize::MAX;
        while !moving.is_over()? {
            // A transfer that goes on takes the time that it takes.
            if moving.pieces() < pieces {
                pieces = moving.pieces();
                self.has_progressed();
            }
            self.look(&mut patience, &|| "what a rank has to send".into())?;
        }
        Ok(())
    }

    /// Sends items of any size, and gets those of others: their sizes, and their bytes one behind the other, for each that something comes
    /// from.
    fn exchange_each(&mut self, op: Op, route: &Route, items: &[&[u8]], rooms: Vec<Vec<u8>>, same: Same<'_>) -> Result<Arrived> {
        let me = self.link()?.rank;
        let out: Vec<Vec<u8>> = route
            .leaving
            .iter()
            .map(|(rank, places)| {
                let sizes = places.iter().filter(|_| *rank != me).map(|at| items[at].len() as u64);
                sizes.flat_map(u64::to_le_bytes).collect()
            })
            .collect();
        let sizes = self.exchange(route, out, rooms)?;
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let sizes: Vec<Vec<u64>> = sizes.iter().map(|bytes| bytes.chunks_exact(8).map(number).collect()).collect();

        let packed = || {
            let mut packed = Vec::new();
            for (rank, places) in &route.leaving {
                let total = if *rank == me { 0 } else { places.iter().map(|at| items[at].len()).sum() };
                let mut bytes = Vec::new();
                reserve(&mut bytes, total, "items")?;
                if total > 0 {
                    places.iter().for_each(|at| bytes.extend_from_slice(items[at]));
                }
                packed.push(bytes);
            }
            Ok(packed)
        };
        let rooms = sizes.iter().map(|sizes| {
            let total = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(usize::try_from(*size).ok()?));
            room(total.ok_or_else(|| Failure::memory("items"))?, "items")
        });
        let both = packed().and_then(|packed| Ok((packed, rooms.collect::<Result<Vec<_>>>()?)));
        let (both, mine) = split(both);
        // A rank that has no memory says so before anything is sent.
        self.agree(op, mine, same)?;
        let Some((packed, rooms)) = both else { return Err(Failure::memory("items")) };
        let arrived = self.exchange(route, packed, rooms)?;
        Ok((sizes, arrived))
    }

    /// Exchanges buffers of known lengths.
    fn exchange(&mut self, route: &Route, out: Vec<Vec<u8>>, mut rooms: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let leaving = route.leaving.iter().zip(&out).filter(|(_, bytes)| !bytes.is_empty());
        let leaving: Vec<Leaving> =
            leaving.map(|((to, _), bytes)| Leaving { to: *to, from: bytes.as_ptr(), length: bytes.len() }).collect();
        let arriving = route.arriving.iter().zip(&mut rooms).filter(|(_, bytes)| !bytes.is_empty());
        let arriving: Vec<Arriving> =
            arriving.map(|((from, _), bytes)| Arriving { from: *from, into: bytes.as_mut_ptr(), length: bytes.len() }).collect();
        match self.transfer(&arriving, &leaving) {
            Ok(()) => Ok(rooms),
            Err(why) => {
                // MPI may still read the one and write the other.
                abandoned::keep((out, rooms));
                Err(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_row_are_a_run() {
        let found = Places::by_rank([2, 0, 0, 2, 1].into_iter());
        let run = |first, count| Places::Run { first, count };
        let expected = [run(1, 2), run(4, 1), Places::List(vec![0, 3])];
        assert_eq!(found, RankId::all(3).zip(expected).collect::<Vec<_>>());
        assert_eq!(found[2].1.iter().collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn copies_are_aligned() {
        let mut aligned = Aligned::new();
        for length in [0, 1, 16, 33] {
            let bytes: Vec<u8> = (0..length).collect();
            let copy = aligned.copy(&bytes).unwrap();
            assert_eq!(copy, bytes);
            assert_eq!(copy.as_ptr() as usize % 16, 0);
        }
    }
}
