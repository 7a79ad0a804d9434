//! Limits: the end of the allocation, failures that halt the job, resources of a rank.

use crate::helper::protocol::Slots;
use crate::list::line;
use crate::task::Needs;

/// After how many failures the job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt {
    /// Whether running tasks are stopped; otherwise they end by themselves.
    pub now: bool,
    pub failures: u64,
}

impl Halt {
    /// Reads `now|soon,fail=N`.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Halt, String> {
        let wrong = || "it must be now,fail=N or soon,fail=N, with a whole number N above 0".to_string();
        let (when, what) = text.split_once(',').ok_or_else(wrong)?;
        let failures = what.strip_prefix("fail=").and_then(|number| number.parse().ok()).filter(|number| *number > 0).ok_or_else(wrong)?;
        match when {
            "now" => Ok(Halt { now: true, failures }),
            "soon" => Ok(Halt { now: false, failures }),
            _ => Err(wrong()),
        }
    }
}

/// The slots that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotsGiven {
    /// Whether the slots are those of a host, shared by its ranks.
    pub by_host: bool,
    pub cpus: u32,
    pub gpus: u32,
    pub mem: Option<u64>,
}

impl SlotsGiven {
    /// Reads `[host:]cpus=8,gpus=2,mem=64G`.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<SlotsGiven, String> {
        let wrong = || "it must be such as cpus=8,gpus=2,mem=64G, for each rank, or host:cpus=8 for all ranks of a host".to_string();
        let (by_host, list) = text.strip_prefix("host:").map_or((false, text), |list| (true, list));
        let mut given = SlotsGiven { by_host, ..SlotsGiven::default() };
        for part in list.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            match key {
                "cpus" => given.cpus = value.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?,
                "gpus" => given.gpus = value.parse().map_err(|_| wrong())?,
                "mem" => given.mem = Some(line::bytes(value).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        Ok(given)
    }

    /// Slots of rank number `index` of the `ranks` of a host. Processors are bound only where every rank of the host can have its own.
    pub fn of(&self, index: u32, ranks: u32) -> Slots {
        let ranks = ranks.max(1);
        let part = |all: u32| if self.by_host { share(all, index, ranks) } else { (all * index, all) };
        let ((first, cpus), (device, gpus)) = (part(self.cpus), part(self.gpus));
        let there = allowed();
        let in_all = if self.by_host { self.cpus } else { self.cpus.saturating_mul(ranks) } as usize;
        let cpu_set = match in_all <= there.len() {
            true => there[first as usize..][..cpus as usize].to_vec(),
            false => Vec::new(),
        };
        let named = std::env::var("CUDA_VISIBLE_DEVICES").or_else(|_| std::env::var("ROCR_VISIBLE_DEVICES")).unwrap_or_default();
        let named: Vec<&str> = named.split(',').filter(|name| !name.is_empty()).collect();
        let name = |number: u32| named.get(number as usize).map_or_else(|| number.to_string(), ToString::to_string);
        let mem = self.mem.map(|mem| if self.by_host { mem / u64::from(ranks) } else { mem });
        Slots { cpus, cpu_set, gpus: (device..device + gpus).map(name).collect(), mem }
    }

    /// The most that a task can have on rank number `index` of the `ranks` of a host.
    pub fn capacity(&self, index: u32, ranks: u32) -> Capacity {
        let ranks = ranks.max(1);
        let part = |all: u32| if self.by_host { share(all, index, ranks).1 } else { all };
        let mem = self.mem.map(|mem| if self.by_host { mem / u64::from(ranks) } else { mem });
        Capacity { cpus: (self.cpus > 0).then(|| part(self.cpus)), gpus: part(self.gpus), mem, is_given: true }
    }
}

/// The most that a task can have on a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// `None` if they are not counted.
    cpus: Option<u32>,
    gpus: u32,
    mem: Option<u64>,
    /// There are `--slots`.
    is_given: bool,
}

impl Capacity {
    /// What both have.
    pub fn least(self, other: Capacity) -> Capacity {
        let cpus = self.cpus.into_iter().chain(other.cpus).min();
        let mem = self.mem.into_iter().chain(other.mem).min();
        Capacity { cpus, gpus: self.gpus.min(other.gpus), mem, is_given: self.is_given }
    }

    /// Returns true if a task with these needs can run.
    pub fn holds(&self, needs: Needs) -> bool {
        self.objection(needs).is_none()
    }

    /// Why a task with these needs cannot run, if it cannot. Each task takes a processor.
    pub fn objection(&self, needs: Needs) -> Option<String> {
        let has = |what: &str, needs: u64, there: u64| Some(format!("it needs {what}={needs}, and a rank has {there} (--slots)"));
        match (self.cpus, self.mem) {
            (Some(there), _) if needs.cpus.max(1) > there => has("cpus", needs.cpus.max(1).into(), there.into()),
            _ if needs.gpus > self.gpus && self.is_given => has("gpus", needs.gpus.into(), self.gpus.into()),
            _ if needs.gpus > self.gpus => Some(format!("it needs gpus={}; say --slots gpus=N, how many a rank has", needs.gpus)),
            (_, Some(there)) if needs.mem > there => has("mem", needs.mem, there),
            _ => None,
        }
    }
}

/// First and number of a share; the first shares have one more if it does not come out even.
fn share(all: u32, index: u32, ranks: u32) -> (u32, u32) {
    let (each, more) = (all / ranks, all % ranks);
    (index * each + index.min(more), each + u32::from(index < more))
}

/// The processors that this process may use.
pub fn allowed() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect()
}

/// The end of the allocation as the batch system tells it, in seconds since 1970: Slurm's, or PBS's from the time that is left.
///
/// # Errors
/// That none of them tells it.
pub fn end_of_allocation(env: impl Fn(&str) -> Option<String>, now: f64) -> Result<f64, String> {
    let number = |name: &str| env(name).and_then(|text| text.trim().parse::<f64>().ok());
    if let Some(end) = number("SLURM_JOB_END_TIME") {
        return Ok(end);
    }
    if let (Some(start), Some(length)) = (number("SLURM_JOB_START_TIME"), number("SLURM_TIMELIMIT")) {
        return Ok(start + 60.0 * length);
    }
    if let Some(length) = number("PBS_WALLTIME") {
        // PBS tells how long the job may be from its own beginning, which is not later than ours.
        return Ok(number("PBS_START_TIME").or_else(|| number("PBS_STIME")).unwrap_or(now) + length);
    }
    Err("auto needs SLURM_JOB_END_TIME or PBS_WALLTIME in the environment; say how long it is, as in 1:00:00".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halts_are_read() {
        assert_eq!(Halt::parse("now,fail=1"), Ok(Halt { now: true, failures: 1 }));
        assert_eq!(Halt::parse("soon,fail=20"), Ok(Halt { now: false, failures: 20 }));
        for wrong in ["now", "now,fail=0", "later,fail=1", "now,fail=x", ""] {
            assert!(Halt::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn slots_are_shared_by_the_ranks_of_a_host() {
        let given = SlotsGiven::parse("host:cpus=3000000,gpus=3,mem=8G").unwrap();
        let (first, second) = (given.of(0, 2), given.of(1, 2));
        assert_eq!((first.gpus, second.gpus), (vec!["0".to_string(), "1".into()], vec!["2".to_string()]));
        assert_eq!((first.cpus, first.mem, first.cpu_set.len()), (1_500_000, Some(4 << 30), 0));
        assert_eq!(SlotsGiven::parse("gpus=2").unwrap().of(1, 2).gpus, ["2", "3"]);
        for wrong in ["", "cpus", "cpus=0", "cpus=-1", "mem=x", "disk=3"] {
            assert!(SlotsGiven::parse(wrong).is_err(), "{wrong}");
        }
        let given = SlotsGiven::parse("cpus=2,gpus=1,mem=1G").unwrap();
        let needs = Needs { cpus: 2, gpus: 1, mem: 1 << 30 };
        let objection = |needs| given.capacity(0, 1).objection(needs);
        assert_eq!(objection(needs), None);
        assert_eq!(objection(Needs { gpus: 2, ..needs }).unwrap(), "it needs gpus=2, and a rank has 1 (--slots)");
        assert_eq!(objection(Needs { mem: 1 << 31, ..needs }).unwrap(), "it needs mem=2147483648, and a rank has 1073741824 (--slots)");
        let uneven = SlotsGiven::parse("host:cpus=1").unwrap();
        assert!(uneven.capacity(0, 2).objection(Needs::default()).is_none() && uneven.capacity(1, 2).objection(Needs::default()).is_some());
        let none = Capacity::default().objection(Needs { gpus: 1, ..Needs::default() });
        assert_eq!(none.unwrap(), "it needs gpus=1; say --slots gpus=N, how many a rank has");
    }

    #[test]
    fn the_batch_system_tells_the_end() {
        let end = |variables: &[(&str, &str)]| {
            let variables: Vec<(String, String)> = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            end_of_allocation(move |name| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()), 100.0)
        };
        assert_eq!(end(&[("SLURM_JOB_END_TIME", "500")]), Ok(500.0));
        assert_eq!(end(&[("PBS_WALLTIME", "60")]), Ok(160.0));
        assert!(end(&[]).is_err());
    }
}
