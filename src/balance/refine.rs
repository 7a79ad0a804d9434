//! Refinement from where tasks are, after the idea of Charm++'s RefineLB: the slowest rank gives a task to a rank that ends sooner with it, or swaps
//! one for a lighter one, until neither helps. Everything else stays. What it does is in [`assign::refine`](fn@crate::assign::refine), how tasks get
//! there in [`central`](super::central).
//!
//! ```text
//!   5 5 | 4 2     5 gives nothing away: 4 + 2 + 5 = 11 > 10     but 5 for 2:     2 5 | 5 4
//! ```
//!
//! `tolerance` is the factor over the best time found up to which fewer moves win. Without it that is 1.009: the last thousandths of whole tasks
//! take several times the movement of all that comes before them. Unit tasks end at their quotas unless a tolerance is given.
//!
//! `locality=0.05`, for tasks that [talk to each other](crate::load::Shares::with_links), lets the slowest rank become by that part slower than the best result found, and brings those together
//! that say most to each other; what crosses ranks falls. It takes another all-gather, of the tasks' numbers.
//!
//! Guarantee: nobody becomes slower than the slowest was. What is even stays where it is; real loads end within a per cent of longest task first with a fraction of its moves.

use super::central::{self, Central};
use super::ground::{Given, Rule};
use super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use crate::assign::{self, Assignment, vectors};

pub(super) static ENTRY: Entry = Entry {
    name: "refine",
    title: "work leaves the slowest rank as long as that helps",
    source: "after Charm++'s RefineLB",
    options: "tolerance=1.009, locality=0.05 (needs tasks that talk to each other)",
    examples: &["refine", "refine:tolerance=1", "refine:tolerance=1.1"],
    build,
    facts: Facts {
        kinds: central::ANY,
        suited: None,
        refuses: central::too_many,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Tasks,
        promises: Promises { exact: true, local: true, ordered: false, optimal: false },
        cost: central::cost,
    },
};

struct Refine {
    tolerance: Tolerance,
    /// The part by which the slowest rank may become slower so that tasks that talk to each other lie together.
    locality: Option<f64>,
}

/// The option `tolerance`, if it is given.
#[derive(Clone, Copy)]
pub(super) struct Tolerance(Option<f64>);

impl Tolerance {
    pub(super) fn of(options: &mut Options<'_>) -> Result<Tolerance, InvalidSpec> {
        Ok(Tolerance(options.real("tolerance", 1.0..=1e6)?))
    }

    pub(super) fn or(self, given: &Given<'_>) -> f64 {
        self.0.unwrap_or(given.tolerance)
    }

    /// Returns true if even unit tasks may stay off their quotas.
    pub(super) fn leaves_something(self) -> bool {
        self.0.is_some_and(|factor| factor > 1.0)
    }
}

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Central(Refine { tolerance: Tolerance::of(options)?, locality: options.real("locality", 0.0..=1e6)? })))
}

impl Rule for Refine {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn by_links(&self) -> bool {
        self.locality.is_some()
    }

    fn by_columns(&self) -> bool {
        self.locality.is_none()
    }

    fn leaves_units_to_quotas(&self) -> bool {
        !self.tolerance.leaves_something() && self.locality.is_none()
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        if let Some(vectors) = &given.vectors {
            return vectors::refine(vectors, self.tolerance.or(given));
        }
        match (self.locality, given.neighbours) {
            (Some(locality), Some(neighbours)) => assign::local_refine(&given.problem, self.tolerance.or(given), neighbours, locality),
            _ if given.often => assign::quick_refine(&given.problem, self.tolerance.or(given)),
            _ => assign::frugal_refine(&given.problem, self.tolerance.or(given)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;

    #[test]
    fn unit_tasks_end_at_their_quotas_with_the_fewest_moved() {
        let trial = Trial::of("refine", "complete:4", &[9, 1, 0, 6]);
        assert_eq!((trial.after.as_slice(), trial.task_hops()), ([4, 4, 4, 4].as_slice(), 7));
        assert!(trial.kept_what_it_could(&[9, 1, 0, 6]));
    }

    #[test]
    fn whole_tasks() {
        let trial = Trial::weighing("refine", &[2, 2], &[5, 5, 4, 2], &[1, 1]);
        assert_eq!(trial.after, [7, 9]);
    }

    #[test]
    fn a_tolerance_leaves_more_where_it_is() {
        let moved = |balancer: &str| Trial::of(balancer, "complete:4", &[12, 8, 8, 8]).moves().iter().map(|(.., tasks)| tasks).sum::<u64>();
        assert_eq!((moved("refine"), moved("refine:tolerance=1.2"), moved("refine:tolerance=1.4")), (3, 2, 0));
    }

    #[test]
    fn locality_brings_together_what_talks() {
        use crate::load::{Link, Segment, Shares, WorkQueue};
        // Four tasks on each of two ranks; those of equal number on both talk to each other.
        let links: std::sync::Arc<[Link]> = (0..4).map(|task| Link { ends: (task, task + 4), bytes: 10.0 }).collect();
        let after = |balancer: &str| {
            let setting = crate::phase::Setting {
                balancer: std::rc::Rc::new(super::super::find(balancer).unwrap()),
                shares: Shares::new(crate::load::Powers::equal(2, 2)).weighted().with_links(std::sync::Arc::clone(&links)),
                queue: std::rc::Rc::new(|node| Ok(WorkQueue::new([Segment::range(4 * u64::from(node), 4)].into_iter().collect()))),
                plan: true,
                weighted: true,
                trace: None,
            };
            let mut world = crate::transport::world::World::simulated(2, crate::transport::sim::Model::default());
            let overlay = crate::topology::Overlay::one_host(crate::topology::Topology::parse("complete", 2).unwrap(), 2).unwrap();
            let outcome = crate::phase::run(&mut world, &overlay, &std::rc::Rc::new(setting)).unwrap().unwrap();
            let crossings = outcome.crossings.unwrap();
            (outcome.finals, crossings.before.ranks, crossings.after.ranks, crossings.after.hosts)
        };
        assert_eq!(after("refine"), (vec![4, 4], 40.0, 40.0, 0.0));
        assert_eq!(after("refine:locality=0"), (vec![4, 4], 40.0, 0.0, 0.0));
    }

    #[test]
    fn without_talk_there_is_no_locality() {
        let chosen = super::super::find("refine:locality=0.1").unwrap();
        assert!(chosen.rule().unwrap().by_links());
        assert!(super::super::find("refine:locality=-1").is_err());
    }
}
