//! Allocation of a rank's resources.

use super::protocol::Slots;
use crate::task::Needs;

/// The free resources of a rank.
#[derive(Clone, Debug)]
pub struct Free {
    /// Tasks that may still begin.
    workers: u32,
    cpus: u32,
    cpu_set: Vec<u32>,
    gpus: Vec<String>,
    mem: Option<u64>,
    /// Processors are among the slots. Otherwise a task's need of them does not count.
    counts_cpus: bool,
}

/// Resources that a task has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// 0 for a command that is not a task of the list.
    workers: u32,
    cpus: u32,
    pub cpu_set: Vec<u32>,
    pub gpus: Vec<String>,
    mem: u64,
}

impl Free {
    /// All is free. Without processors among the slots each worker is as good as one.
    pub fn new(workers: u32, slots: &Slots) -> Free {
        let Slots { cpus, cpu_set, gpus, mem } = slots.clone();
        let counts_cpus = cpus > 0;
        Free { workers, cpus: if counts_cpus { cpus } else { workers }, cpu_set, gpus, mem, counts_cpus }
    }

    /// Takes the resources that a task needs, if all of them are free.
    pub fn take(&mut self, needs: Needs) -> Option<Taken> {
        let cpus = if self.counts_cpus { needs.cpus.max(1) } else { 1 };
        let gpus = needs.gpus as usize;
        let mem = self.mem.map_or(0, |_| needs.mem);
        let fits = self.workers > 0 && cpus <= self.cpus && gpus <= self.gpus.len() && mem <= self.mem.unwrap_or(0);
        if !fits {
            return None;
        }
        self.workers -= 1;
        self.cpus -= cpus;
        self.mem = self.mem.map(|free| free - mem);
        let cpu_set = self.cpu_set.drain(..self.cpu_set.len().min(cpus as usize)).collect();
        Some(Taken { workers: 1, cpus, cpu_set, gpus: self.gpus.drain(..gpus).collect(), mem })
    }

    /// Gives it back.
    pub fn give_back(&mut self, taken: Taken) {
        self.workers += taken.workers;
        self.cpus += taken.cpus;
        self.mem = self.mem.map(|free| free + taken.mem);
        self.cpu_set.extend(taken.cpu_set);
        self.cpu_set.sort_unstable();
        self.gpus.extend(taken.gpus);
        self.gpus.sort();
    }

    /// Returns true if a task could begin if it needs nothing special.
    pub fn has_room(&self) -> bool {
        self.workers > 0 && self.cpus > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slots() -> Slots {
        Slots { cpus: 4, cpu_set: vec![0, 1, 2, 3], gpus: vec!["0".into(), "1".into()], mem: Some(100) }
    }

    #[test]
    fn tasks_get_processors_and_devices_of_their_own() {
        let mut free = Free::new(8, &slots());
        let one = free.take(Needs { cpus: 2, gpus: 1, mem: 60 }).unwrap();
        let other = free.take(Needs { cpus: 0, gpus: 1, mem: 40 }).unwrap();
        assert_eq!((one.cpu_set.as_slice(), one.gpus.as_slice()), (&[0, 1][..], &["0".to_string()][..]));
        assert_eq!((other.cpu_set.as_slice(), other.gpus.as_slice()), (&[2][..], &["1".to_string()][..]));
        assert_eq!(free.take(Needs { cpus: 1, gpus: 1, mem: 0 }), None);
        assert_eq!(free.take(Needs { cpus: 1, gpus: 0, mem: 1 }), None);
        free.give_back(one);
        assert!(free.take(Needs { cpus: 3, gpus: 1, mem: 60 }).is_some());
    }

    #[test]
    fn without_slots_a_task_takes_a_worker_whatever_it_needs() {
        let mut free = Free::new(2, &Slots::default());
        let nine = Needs { cpus: 9, ..Needs::default() };
        assert!(free.take(nine).is_some() && free.take(nine).is_some() && free.take(Needs::default()).is_none());
    }

    proptest! {
        #[test]
        fn never_more_than_there_is(needs in proptest::collection::vec((0u32..5, 0u32..3, 0u64..120), 1..60)) {
            let (mut free, mut taken) = (Free::new(3, &slots()), Vec::new());
            for (cpus, gpus, mem) in needs {
                match free.take(Needs { cpus, gpus, mem }) {
                    Some(one) => taken.push(one),
                    None if !taken.is_empty() => free.give_back(taken.remove(0)),
                    None => prop_assert!(cpus > 4 || gpus > 2 || mem > 100),
                }
                let sum: u32 = taken.iter().map(|one: &Taken| one.cpus).sum();
                let mut devices: Vec<_> = taken.iter().flat_map(|one| one.gpus.clone()).chain(free.gpus.clone()).collect();
                devices.sort();
                prop_assert!(sum <= 4 && taken.len() <= 3 && devices == ["0", "1"]);
            }
        }
    }
}
