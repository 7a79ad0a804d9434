//! Once a step: whether to balance before the next.

use super::call::{State, World};
use super::letters::Op;
use super::options::ByRank;
use super::status::{Failure, Result};
use super::step::trigger;
use crate::trigger::{Step, Watch};

impl World {
    /// Returns whether all ranks should balance before the next step, given the seconds that the last step took on this rank. The cost of balancing
    /// is the time that plans and moves have taken. Collective.
    ///
    /// # Errors
    /// Wrong usage on all ranks, if the seconds of one are negative or not finite.
    pub fn step(&self, seconds: f64) -> Result<bool> {
        self.step_if(Ok(seconds))
    }

    #[doc(hidden)]
    pub fn step_if(&self, seconds: Result<f64>) -> Result<bool> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let checked = seconds.and_then(|seconds| match seconds.is_finite() && seconds >= 0.0 {
                true => Ok(seconds),
                false => Err(Failure::usage(format!("{seconds} seconds: they must be finite and at least 0"))),
            });
            let seconds = checked.as_ref().copied().unwrap_or(0.0);
            let most = [seconds, -seconds, state.measured.spent];
            let agreed = state.agree_with(Op::Step, checked.map(drop), &[], &[seconds], &most)?;
            let (total, max, min, spent) = (agreed.sums[0], agreed.most[0], -agreed.most[1], agreed.most[2]);
            let step = Step { max, mean: (total / f64::from(world.ranks())).min(max), min };
            state.measured.step_seconds = Some(total);
            if spent > 0.0 {
                (state.measured.cost, state.measured.spent) = (spent, 0.0);
            }
            let name = state.options.trigger.clone();
            let cost = state.measured.cost;
            if state.watch.as_ref().is_none_or(|(of, _)| *of != name) {
                state.watch = Some((name.clone(), Watch::new(trigger(&name)?)));
            }
            let Some((_, watch)) = &mut state.watch else { return Ok(false) };
            let now = watch.ended(step, cost) && (name.starts_with("every") || step.max > step.mean);
            if now {
                watch.balanced();
            }
            Ok(now)
        })
    }
}

impl State {
    /// This rank's power.
    pub(super) fn weights(&self, world: &World) -> f64 {
        match &self.options.powers {
            ByRank::Unset => 1.0,
            ByRank::Own(own) => *own,
            ByRank::List(list) => list.get(world.rank() as usize).copied().unwrap_or(1.0),
        }
    }

    /// Everybody's number, by rank.
    pub(super) fn all_of(&mut self, mine: f64) -> Result<Vec<f64>> {
        self.through_first(&mine, |_, all| {
            let count = all.len();
            Ok(vec![all; count])
        })
    }
}
