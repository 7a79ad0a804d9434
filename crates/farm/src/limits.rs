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

/// No host has more devices; each has a name in memory.
const MOST_GPUS: u32 = 4096;

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
        let wrong = || {
            format!(
                "it must be such as cpus=8,gpus=2,mem=64G, for each rank, or host:cpus=8 for all ranks of a host, and at most {MOST_GPUS} gpus"
            )
        };
        let (by_host, list) = text.strip_prefix("host:").map_or((false, text), |list| (true, list));
        let mut given = SlotsGiven { by_host, ..SlotsGiven::default() };
        for part in list.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            match key {
                "cpus" => given.cpus = value.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?,
                "gpus" => given.gpus = value.parse().ok().filter(|number| *number <= MOST_GPUS).ok_or_else(wrong)?,
                "mem" => given.mem = Some(line::bytes(value).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        Ok(given)
    }

    /// Slots of rank number `index` of the `ranks` of a host. Processors are bound only where every rank of the host can have its own.
    ///
    /// # Errors
    /// If the environment names fewer devices than the rank should have.
    pub fn of(&self, index: u32, ranks: u32) -> Result<Slots, String> {
        let (first, cpus) = self.part(self.cpus, index, ranks);
        let there = allowed();
        let cpu_set = match self.in_all(self.cpus, ranks) <= there.len() as u64 {
            true => there[first as usize..][..cpus as usize].to_vec(),
            false => Vec::new(),
        };
        let set = |name: &str| std::env::var(name).ok().map(|list| (name.to_string(), list));
        let all: Vec<_> = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"].into_iter().filter_map(set).collect();
        let visible = all.iter().find(|(_, list)| !list.is_empty()).or(all.first());
        let gpus = self.devices(index, ranks, visible.map(|(name, list)| (name.as_str(), list.as_str())))?;
        let mem = self.mem.map(|mem| if self.by_host { mem / u64::from(ranks.max(1)) } else { mem });
        Ok(Slots { cpus, cpu_set, gpus, mem })
    }

    /// First and number of what a rank has of something.
    fn part(&self, all: u32, index: u32, ranks: u32) -> (u64, u32) {
        match self.by_host {
            true => {
                let (first, number) = share(all, index, ranks.max(1));
                (first.into(), number)
            }
            false => (u64::from(all) * u64::from(index), all),
        }
    }

    /// Sum of something over the ranks of a host.
    fn in_all(&self, all: u32, ranks: u32) -> u64 {
        u64::from(all) * if self.by_host { 1 } else { u64::from(ranks.max(1)) }
    }

    /// Names of a rank's devices: numbers, or those in a variable of its environment, given by name and content. If it names enough for all ranks of the
    /// host, each rank takes its part; otherwise the list is the rank's own.
    fn devices(&self, index: u32, ranks: u32, visible: Option<(&str, &str)>) -> Result<Vec<String>, String> {
        let (first, number) = self.part(self.gpus, index, ranks);
        let Some((variable, list)) = visible.filter(|_| number > 0) else {
            return Ok((first..first + u64::from(number)).map(|device| device.to_string()).collect());
        };
        let mut names: Vec<String> = Vec::new();
        // What is behind a device that does not exist is not visible either.
        for name in list.split(',').map(str::trim).take_while(|name| !name.is_empty() && !name.starts_with('-') && *name != "NoDevFiles") {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_string());
            }
        }
        let first = if names.len() as u64 >= self.in_all(self.gpus, ranks) { first as usize } else { 0 };
        let taken = names.get(first..first + number as usize).map(<[String]>::to_vec);
        taken.ok_or_else(|| format!("a rank should have {number} devices, and {variable}={list} names {}", names.len()))
    }

    /// The most that a task can have on rank number `index` of the `ranks` of a host.
    pub fn capacity(&self, index: u32, ranks: u32) -> Capacity {
        let part = |all: u32| self.part(all, index, ranks).1;
        let mem = self.mem.map(|mem| if self.by_host { mem / u64::from(ranks.max(1)) } else { mem });
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
    /// Minimum of both, part by part.
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
        let [first, second] = [0, 1].map(|index| given.of(index, 2).unwrap());
        assert_eq!((first.gpus, second.gpus), (vec!["0".to_string(), "1".into()], vec!["2".to_string()]));
        assert_eq!((first.cpus, first.mem, first.cpu_set.len()), (1_500_000, Some(4 << 30), 0));
        assert_eq!(SlotsGiven::parse("gpus=2").unwrap().of(1, 2).unwrap().gpus, ["2", "3"]);
        let many = SlotsGiven::parse("cpus=4294967295").unwrap().of(7, 8).unwrap();
        assert_eq!((many.cpus, many.cpu_set.len()), (u32::MAX, 0));
        for wrong in ["gpus=4294967295", "", "cpus", "cpus=0", "cpus=-1", "mem=x", "disk=3"] {
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
    fn devices_are_those_that_the_rank_sees_and_never_shared() {
        let devices = |slots: &str, index, ranks, list: &str| {
            SlotsGiven::parse(slots).unwrap().devices(index, ranks, Some(("CUDA_VISIBLE_DEVICES", list))).map(|names| names.join(" "))
        };
        for (slots, index, ranks, list, names) in [
            ("gpus=2", 0, 1, "4,7", "4 7"),
            // Enough for all ranks of the host: each has its part.
            ("gpus=1", 1, 2, "4,7", "7"),
            ("host:gpus=3", 1, 2, "4,7,8", "8"),
            ("host:gpus=3", 1, 4, "GPU-a,GPU-b, GPU-c", "GPU-b"),
            ("host:gpus=2", 2, 3, "4,7", ""),
            // Its own.
            ("gpus=1", 1, 2, "0", "0"),
            ("gpus=2", 3, 4, "5,6", "5 6"),
            ("gpus=0", 0, 1, "", ""),
        ] {
            assert_eq!(devices(slots, index, ranks, list).as_deref(), Ok(names), "{slots} {index}/{ranks} {list}");
        }
        for (list, there) in [("1", 1), ("", 0), ("1,1", 1), ("NoDevFiles", 0), ("3,-1,4", 1)] {
            let why = format!("a rank should have 2 devices, and CUDA_VISIBLE_DEVICES={list} names {there}");
            assert_eq!(devices("gpus=2", 0, 1, list), Err(why));
        }
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
