//! The imbalance from which a phase pays: the crossover points of Savvas and Kechadi 2004, tables 6 and 7.

use serde::Serialize;

/// Costs of a phase, and the work that it distributes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseCost {
    /// Seconds of the phase.
    pub phase: f64,
    /// Seconds of it without the exchange of tasks.
    pub without_exchange: f64,
    /// Seconds of a step in which all ranks take equally long.
    pub mean_step: f64,
    /// Steps for which the new loads last.
    pub steps: u64,
    /// Maximum over mean of the loads after the phase.
    pub after: f64,
    pub ranks: u32,
}

/// The least imbalances, as maximum over mean less one, with which a phase of the measured time ends the work earlier, on ranks with a core each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Crossover {
    /// Imbalance of the whole load (table 6).
    pub crossover_excess: f64,
    /// Caused by one task that arrives where loads are even (table 7): the task's work over the mean load of a rank, if it can be shared out.
    /// The exchange of its parts is left out.
    pub crossover_arrival: f64,
}

impl Crossover {
    /// Crossover computed from the cost of a phase; `None` where there is no work, or a single rank.
    ///
    /// With the imbalance x (maximum over mean) steps take x times the mean step, and after the phase `after` times. So it pays if
    /// `steps (x - after) mean_step` is above its time. A task that is a mean load long and is shared out by all n ranks saves 1 - 1/n
    /// of a mean step.
    pub fn of(cost: &PhaseCost) -> Option<Crossover> {
        let PhaseCost { phase, without_exchange, mean_step, steps, after, ranks } = *cost;
        if mean_step <= 0.0 || ranks < 2 {
            return None;
        }
        let in_means = |seconds: f64| seconds / (steps.max(1) as f64 * mean_step);
        Some(Crossover {
            crossover_excess: after - 1.0 + in_means(phase),
            // The task is there once, in the first step.
            crossover_arrival: without_exchange / mean_step / (1.0 - 1.0 / f64::from(ranks)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: PhaseCost = PhaseCost { phase: 0.02, without_exchange: 0.01, mean_step: 0.1, steps: 1, after: 1.05, ranks: 5 };

    #[test]
    fn it_pays_from_there() {
        let Crossover { crossover_excess, crossover_arrival } = Crossover::of(&COST).unwrap();
        // 1.25 mean steps and 1.05 with the phase's 0.2: equally long.
        assert!((crossover_excess - 0.25).abs() < 1e-12);
        // A task of an eighth of a mean load takes 12.5 ms; shared by five ranks it takes 2.5 ms, after 10 ms.
        assert!((crossover_arrival - 0.125).abs() < 1e-12);
    }

    #[test]
    fn more_steps_and_longer_steps_need_less() {
        let excess = |cost| Crossover::of(&cost).unwrap().crossover_excess;
        assert!((excess(PhaseCost { steps: 10, ..COST }) - 0.07).abs() < 1e-12);
        assert!((excess(PhaseCost { mean_step: 1.0, ..COST }) - 0.07).abs() < 1e-12);
        assert_eq!(Crossover::of(&PhaseCost { mean_step: 0.0, ..COST }), None);
        assert_eq!(Crossover::of(&PhaseCost { ranks: 1, ..COST }), None);
    }
}
