//! Plans of a Rust program: values of any type that serialises move, and those that stay are not touched.

use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::World;
use super::letters::Op;
use super::plan::{Given, Plan};
use super::status::{Failure, Result, Status};
use super::travel::{Refused, carried};
use crate::transport::wire;

/// A plan, and the world that it is carried out in.
pub struct WorldPlan<'w> {
    world: &'w World,
    plan: Plan,
}

impl Deref for WorldPlan<'_> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}

impl World {
    /// Plans where this rank's items should go, by their weights. Collective.
    ///
    /// # Errors
    /// Wrong usage on all ranks, where a weight of one is wrong.
    pub fn plan(&self, weights: &[f64]) -> Result<WorldPlan<'_>> {
        self.plan_of(&Given { items: weights.len(), weights: Some(weights), ..Given::default() })
    }

    /// The same by all that can be known of items. Collective.
    ///
    /// # Errors
    /// As for [`plan`](World::plan); also where a capacity cannot be kept, or a destination is no rank.
    pub fn plan_of(&self, given: &Given<'_>) -> Result<WorldPlan<'_>> {
        let op = if given.destinations.is_some() { Op::PlanFrom } else { Op::Plan };
        Ok(WorldPlan { world: self, plan: self.plan_as(op, Ok(given))? })
    }
}

impl WorldPlan<'_> {
    /// Moves the items, and returns the items of this rank afterwards, in the order of [`sources`](Plan::sources). Items that stay are
    /// returned unchanged; items that leave travel as bytes. Collective.
    ///
    /// # Errors
    /// On all ranks, before anything is sent, if a value would not read back unchanged; the error returns the values.
    pub fn move_vec<T: Serialize + DeserializeOwned>(&self, items: Vec<T>) -> Result<Vec<T>, Refused<T>> {
        let places = self.plan.destinations.iter().copied();
        carry(self.world, &self.plan, Op::MoveVar, items, places.collect())
    }

    /// Returns one result for each item on this rank to the item's owner. The owner gets the results of its items, by index. Collective.
    ///
    /// # Errors
    /// As for [`move_vec`](WorldPlan::move_vec).
    pub fn give_back<T: Serialize + DeserializeOwned>(&self, results: Vec<T>) -> Result<Vec<T>, Refused<T>> {
        let places = self.plan.sources.iter().map(|(rank, _)| *rank);
        carry(self.world, &self.plan, Op::ReturnVar, results, places.collect())
    }

    /// Moves items of one size, as bytes. Collective.
    ///
    /// # Errors
    /// As for [`World::move_bytes`].
    pub fn move_bytes(&self, items: &[u8], size: usize, out: &mut [u8]) -> Result<()> {
        self.world.move_bytes(&self.plan, items, size, out)
    }

    /// Brings results of one size home, as bytes. Collective.
    ///
    /// # Errors
    /// As for [`World::return_bytes`].
    pub fn return_bytes(&self, results: &[u8], size: usize, out: &mut [u8]) -> Result<()> {
        self.world.return_bytes(&self.plan, results, size, out)
    }
}

#[cfg(feature = "plain")]
impl WorldPlan<'_> {
    /// Moves items of a plain type: numbers, arrays of them, and structures that derive `bytemuck::Pod`. Feature `plain`. They are copied as bytes and not written
    /// one by one, so this is the fastest way; the items given stay as they are. Otherwise like [`move_vec`](WorldPlan::move_vec). Collective.
    ///
    /// # Errors
    /// Wrong usage on all ranks, if one rank has another number of items than in the plan, or a type's size differs between ranks.
    pub fn move_plain<T: bytemuck::Pod>(&self, items: &[T]) -> Result<Vec<T>> {
        self.carry_plain(Op::Move, items, self.plan.incoming())
    }

    /// Returns results of a plain type, one for each item on this rank, to the items' owners. Otherwise like [`give_back`](WorldPlan::give_back).
    /// Collective.
    ///
    /// # Errors
    /// As for [`move_plain`](WorldPlan::move_plain).
    pub fn give_back_plain<T: bytemuck::Pod>(&self, results: &[T]) -> Result<Vec<T>> {
        self.carry_plain(Op::Return, results, self.plan.destinations.len())
    }

    fn carry_plain<T: bytemuck::Pod>(&self, op: Op, from: &[T], arriving: usize) -> Result<Vec<T>> {
        let mut into = Vec::new();
        let has_room = super::buffers::reserve(&mut into, arriving, "items that arrive");
        if has_room.is_ok() {
            into.resize(arriving, T::zeroed());
        }
        let arrays = has_room.map(|()| (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(&mut into)));
        self.world.carry(Ok(&self.plan), op, arrays, size_of::<T>())?;
        Ok(into)
    }
}

fn carry<T: Serialize + DeserializeOwned>(world: &World, plan: &Plan, op: Op, values: Vec<T>, to: Vec<u32>) -> Result<Vec<T>, Refused<T>> {
    let me = world.rank();
    let is_whole = values.len() == to.len();
    let written: Result<Vec<Vec<u8>>> = match is_whole {
        true => {
            let write = |(item, (value, to)): (usize, (&T, &u32))| if *to == me { Ok(Vec::new()) } else { carried(value, item) };
            values.iter().zip(&to).enumerate().map(write).collect()
        }
        false => Err(Failure::usage(format!("{} values are given, and the plan has {}", values.len(), to.len()))),
    };
    let slices: Result<Vec<&[u8]>> = written.as_ref().map(|all| all.iter().map(Vec::as_slice).collect()).map_err(Clone::clone);
    // Arriving values; `None` where a value stays.
    let mut arrived: Vec<Option<T>> = Vec::new();
    let mut wrong = None;
    let mut receive = |from: u32, index: u64, bytes: &[u8]| {
        if from == me {
            arrived.push(None);
            return 0;
        }
        match wire::read_value(bytes) {
            Ok(value) => {
                arrived.push(Some(value));
                0
            }
            Err(why) => {
                wrong = Some(format!("item {index} of rank {from} does not read: {why}"));
                1
            }
        }
    };
    let moved = world.carry_each(Ok(plan), op, slices.as_ref().map(Vec::as_slice).map_err(Clone::clone), &mut receive);
    if let Err(failure) = moved {
        let failure = match wrong {
            Some(text) if failure.status == Status::Callback => Failure::new(Status::Callback, text),
            _ => failure,
        };
        return Err(Refused { failure, values });
    }
    // Values that stay keep their order.
    let mut staying = values.into_iter().zip(to).filter(|(_, to)| *to == me).map(|(value, _)| value);
    Ok(arrived.into_iter().filter_map(|value| value.or_else(|| staying.next())).collect())
}
