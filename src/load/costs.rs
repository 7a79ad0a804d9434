//! Costs of independent tasks on ranks of different kinds: processing and communication together, by task and rank (Hamidzadeh, Lilja and
//! Atif 1995, section 3).

/// A cost: millionths of a cycle, so that sums are exact. [`NEVER`] where a task can't run on a rank.
pub type Cost = u64;

/// Units of [`Cost`] in a cycle.
pub const CYCLE: Cost = 1_000_000;

/// Infinite cost, of a task on a rank that cannot run it (function-level heterogeneity).
pub const NEVER: Cost = Cost::MAX;

/// The largest cost that may be given: 10^9 cycles.
pub const MOST: Cost = 1_000_000_000 * CYCLE;

/// Mean of the costs that are not infinite; 0 if all are.
pub fn mean_of_finite<'a>(costs: impl Iterator<Item = &'a Cost> + Clone) -> Cost {
    let finite = costs.copied().filter(|cost| *cost != NEVER);
    (finite.clone().map(u128::from).sum::<u128>() / finite.count().max(1) as u128) as Cost
}

/// A matrix of costs: a row for each task, a column for each rank.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Costs {
    ranks: usize,
    by_task: Vec<Cost>,
}

impl Costs {
    /// Returns the matrix with these rows, concatenated; `None` if the values do not fill whole rows of `ranks` columns.
    pub fn new(ranks: u32, by_task: Vec<Cost>) -> Option<Costs> {
        let ranks = ranks as usize;
        (ranks > 0 && by_task.len().is_multiple_of(ranks)).then_some(Costs { ranks, by_task })
    }

    /// Number of tasks.
    pub fn tasks(&self) -> usize {
        self.by_task.len() / self.ranks
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The costs of a task, by rank.
    pub fn row(&self, task: usize) -> &[Cost] {
        &self.by_task[task * self.ranks..][..self.ranks]
    }

    /// The cost of a task on a rank.
    pub fn of(&self, task: usize, rank: usize) -> Cost {
        self.by_task[task * self.ranks + rank]
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &[Cost]> {
        self.by_task.chunks_exact(self.ranks)
    }

    /// Mean over all tasks, where they can run.
    pub fn mean(&self) -> Cost {
        mean_of_finite(self.by_task.iter())
    }

    /// A task's least cost.
    pub fn least(&self, task: usize) -> Cost {
        self.row(task).iter().copied().min().unwrap_or(NEVER)
    }

    /// The first task that no rank can run, if there is one.
    pub fn impossible(&self) -> Option<usize> {
        (0..self.tasks()).find(|task| self.least(*task) == NEVER)
    }

    /// Returns the costs of the same tasks on the first ranks only, or on all ranks if there are fewer.
    #[must_use]
    pub fn on_first(&self, ranks: usize) -> Costs {
        let ranks = ranks.clamp(1, self.ranks);
        Costs { ranks, by_task: self.rows().flat_map(|row| row[..ranks].iter().copied()).collect() }
    }

    /// Replaces every finite cost by a function of its rank and itself.
    #[must_use]
    pub fn map(mut self, mut change: impl FnMut(usize, Cost) -> Cost) -> Costs {
        for (at, cost) in self.by_task.iter_mut().enumerate() {
            if *cost != NEVER {
                *cost = change(at % self.ranks, *cost).min(NEVER - 1);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_has_rows_and_columns() {
        let costs = Costs::new(3, vec![1, 2, 3, 6, NEVER, 4, NEVER, NEVER, NEVER]).unwrap();
        assert_eq!((costs.tasks(), costs.ranks(), costs.of(1, 2), costs.least(1)), (3, 3, 4, 4));
        assert_eq!(costs.impossible(), Some(2));
        assert_eq!(costs.on_first(2).row(1), [6, NEVER]);
        assert_eq!(costs.clone().map(|rank, cost| cost * (rank as Cost + 1)).row(1), [6, NEVER, 12]);
        assert_eq!(Costs::new(2, vec![1; 3]), None);
        assert_eq!(Costs::new(0, vec![]), None);
        assert_eq!(Costs::new(2, vec![]).unwrap().tasks(), 0);
    }
}
