//! Limits: the end of the allocation, failures that halt the job, resources of a rank.

use serde::{Deserialize, Serialize};

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

    /// Slots of rank number `index` of a host, whose ranks may use these processors.
    ///
    /// # Errors
    /// If the environment names fewer devices than the rank should have.
    pub fn of(&self, index: u32, host: &[&Processors]) -> Result<Slots, String> {
        let ranks = host.len() as u32;
        let (_, cpus) = self.part(self.cpus, index, ranks);
        let cpu_set = self.cpu_set(index, host);
        let set = |name: &str| std::env::var(name).ok().map(|list| (name.to_string(), list));
        let all: Vec<_> = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"].into_iter().filter_map(set).collect();
        let visible = all.iter().find(|(_, list)| !list.is_empty()).or(all.first());
        let gpus = self.devices(index, ranks, visible.map(|(name, list)| (name.as_str(), list.as_str())))?;
        let mem = self.mem.map(|mem| if self.by_host { mem / u64::from(ranks.max(1)) } else { mem });
        Ok(Slots { cpus, cpu_set, gpus, mem })
    }

    /// The processors that a rank's tasks are bound to. Ranks that may use the same ones share them, if they suffice for all of these ranks. None if they do
    /// not, or if another rank may use a part of them.
    fn cpu_set(&self, index: u32, host: &[&Processors]) -> Vec<u32> {
        let ranks = host.len() as u32;
        let Some(mine) = host.get(index as usize).map(|processors| &processors.allowed) else { return Vec::new() };
        let (mut first, mut number, mut all) = (0, 0, 0);
        for (other, Processors { allowed, .. }) in (0..).zip(host) {
            if allowed != mine {
                if allowed.iter().any(|cpu| mine.contains(cpu)) {
                    return Vec::new();
                }
                continue;
            }
            let cpus = u64::from(self.part(self.cpus, other, ranks).1);
            (first, number) = if other == index { (all, cpus) } else { (first, number) };
            all += cpus;
        }
        match all <= mine.len() as u64 {
            true => mine[first as usize..][..number as usize].to_vec(),
            false => Vec::new(),
        }
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

    /// Number of tasks that a rank of a host with this number of ranks runs at a time if nothing else is said: one on each of its processors.
    pub fn workers(&self, ranks: u32) -> Option<u32> {
        (self.cpus > 0).then(|| self.part(self.cpus, 0, ranks).1.clamp(1, 65536))
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

/// Resources that several tasks take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    cpus: u64,
    gpus: u64,
    mem: u64,
}

impl Demand {
    /// Demand of one task. Each takes a processor.
    pub fn of(needs: Needs) -> Demand {
        Demand { cpus: needs.cpus.max(1).into(), gpus: needs.gpus.into(), mem: needs.mem }
    }

    #[must_use]
    pub fn plus(self, other: Demand) -> Demand {
        let sum = u64::saturating_add;
        Demand { cpus: sum(self.cpus, other.cpus), gpus: sum(self.gpus, other.gpus), mem: sum(self.mem, other.mem) }
    }

    #[must_use]
    pub fn minus(self, other: Demand) -> Demand {
        let rest = u64::saturating_sub;
        Demand { cpus: rest(self.cpus, other.cpus), gpus: rest(self.gpus, other.gpus), mem: rest(self.mem, other.mem) }
    }
}

impl Capacity {
    /// Number of tasks that can run at a time, where processors are counted.
    pub fn most_at_a_time(&self) -> Option<u32> {
        self.cpus
    }

    /// Returns true if the resources suffice for a task with these needs while other tasks take `taken`.
    pub fn has_room(&self, taken: Demand, needs: Needs) -> bool {
        let Demand { cpus, gpus, mem } = taken.plus(Demand::of(needs));
        let fits = |there: Option<u64>, demand: u64| there.is_none_or(|there| demand <= there);
        self.holds(needs) && fits(self.cpus.map(u64::from), cpus) && gpus <= self.gpus.into() && fits(self.mem, mem)
    }

    /// Part of the resources that is taken: of the kind of which there is least left.
    pub fn part(&self, taken: Demand) -> f64 {
        let part = |there: Option<u64>, taken: u64| there.filter(|_| taken > 0).map_or(0.0, |there| taken as f64 / there.max(1) as f64);
        part(self.cpus.map(u64::from), taken.cpus).max(part(Some(self.gpus.into()), taken.gpus)).max(part(self.mem, taken.mem))
    }

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

    /// Returns true if a task may ask for processors that nobody counts.
    pub fn ignores_cpus(&self, needs: Needs) -> bool {
        self.cpus.is_none() && needs.cpus > 1
    }

    /// Why a task with these needs cannot run, if it cannot. Each task takes a processor.
    pub fn objection(&self, needs: Needs) -> Option<String> {
        let has = |what: &str, needs: u64, there: u64| Some(format!("it needs {what}={needs}, and a rank has {there} (--slots)"));
        match (self.cpus, self.mem) {
            (Some(there), _) if needs.cpus.max(1) > there => has("cpus", needs.cpus.max(1).into(), there.into()),
            _ if needs.gpus > self.gpus && self.is_given => has("gpus", needs.gpus.into(), self.gpus.into()),
            _ if needs.gpus > self.gpus => Some(format!("it needs gpus={}; say --slots gpus=N, how many a rank has", needs.gpus)),
            (_, Some(there)) if needs.mem > there => has("mem", needs.mem, there),
            (_, None) if needs.mem > 0 => Some(format!("it needs mem={}; say --slots mem=BYTES, how much a rank has", needs.mem)),
            _ => None,
        }
    }
}

/// First and number of a share; the first shares have one more if it does not come out even.
fn share(all: u32, index: u32, ranks: u32) -> (u32, u32) {
    let (each, more) = (all / ranks, all % ranks);
    (index * each + index.min(more), each + u32::from(index < more))
}

/// The processors of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Processors {
    /// Numbers of those that it may use: a launcher may have bound it to some, a batch system given it some.
    pub allowed: Vec<u32>,
    /// How many its host has.
    pub all: u32,
}

impl Processors {
    /// Those of this process.
    pub fn here() -> Processors {
        let set = rustix::thread::sched_getaffinity(None).ok();
        let is_set = |cpu: &usize| set.is_some_and(|set| set.is_set(*cpu));
        let allowed: Vec<u32> = (0..rustix::thread::CpuSet::MAX_CPU).filter(is_set).map(|cpu| cpu as u32).collect();
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
        let all = online.and_then(|list| count(&list)).unwrap_or(0).max(allowed.len() as u32);
        Processors { allowed, all }
    }
}

/// Number of the processors in the kernel's list of them, as `0-3,8`.
fn count(list: &str) -> Option<u32> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let range = |text: &str| match text.split_once('-') {
        Some((first, last)) => number(last)?.checked_sub(number(first)?)?.checked_add(1),
        None => number(text).map(|_| 1),
    };
    list.split(',').map(range).try_fold(0, |sum: u32, range| sum.checked_add(range?))
}

/// Says that ranks may not use as many processors as they run commands at a time, although their hosts have more. Both by rank; `first` is the first
/// that runs commands.
pub fn bound_remark(workers: &[u32], ranks: &[Processors], first: usize) -> Option<String> {
    let is_bound = |(rank, workers): (&Processors, u32)| (rank.allowed.len() as u32) < rank.all.min(workers);
    let all = ranks.iter().zip(workers.iter().copied()).enumerate().skip(first);
    let bound: Vec<(usize, (&Processors, u32))> = all.filter(|(_, rank)| is_bound(*rank)).collect();
    let (rank, (Processors { allowed, all }, workers)) = bound.first()?;
    let (number, others) = (allowed.len(), bound.len() - 1);
    let who = if others > 0 { format!("rank {rank} (and {others} more like it)") } else { format!("rank {rank}") };
    Some(format!(
        "{who} runs {workers} commands at a time on {number} of the {all} processors of its host, since it is bound to them; mpirun --bind-to none or \
         srun --cpus-per-task={workers} gives it more"
    ))
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
        let processors = Processors { allowed: vec![0, 1, 2, 3], all: 4 };
        let of = |given: &SlotsGiven, index, ranks| given.of(index, &vec![&processors; ranks]).unwrap();
        let [first, second] = [0, 1].map(|index| of(&given, index, 2));
        assert_eq!((first.gpus, second.gpus), (vec!["0".to_string(), "1".into()], vec!["2".to_string()]));
        assert_eq!((first.cpus, first.mem, first.cpu_set.len()), (1_500_000, Some(4 << 30), 0));
        assert_eq!(of(&SlotsGiven::parse("gpus=2").unwrap(), 1, 2).gpus, ["2", "3"]);
        let many = of(&SlotsGiven::parse("cpus=4294967295").unwrap(), 7, 8);
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
        let workers = |slots: &str, ranks| SlotsGiven::parse(slots).unwrap().workers(ranks);
        assert_eq!([workers("host:cpus=64", 4), workers("cpus=64", 4), workers("host:cpus=3", 2)], [Some(16), Some(64), Some(2)]);
        assert_eq!([workers("host:cpus=1", 2), workers("gpus=1", 2), workers("cpus=99999", 1)], [Some(1), None, Some(65536)]);
        let uneven = SlotsGiven::parse("host:cpus=1").unwrap();
        assert!(uneven.capacity(0, 2).objection(Needs::default()).is_none() && uneven.capacity(1, 2).objection(Needs::default()).is_some());
        let none = Capacity::default().objection(Needs { gpus: 1, ..Needs::default() });
        assert_eq!(none.unwrap(), "it needs gpus=1; say --slots gpus=N, how many a rank has");
        let mem = Needs { mem: 1 << 30, ..Needs::default() };
        let without = "it needs mem=1073741824; say --slots mem=BYTES, how much a rank has";
        assert_eq!(Capacity::default().objection(mem).as_deref(), Some(without));
        assert_eq!(SlotsGiven::parse("cpus=2").unwrap().capacity(0, 1).objection(mem).as_deref(), Some(without));
        let cpus = |cpus| Needs { cpus, ..Needs::default() };
        assert!(Capacity::default().ignores_cpus(cpus(2)) && !Capacity::default().ignores_cpus(cpus(1)));
        assert!(!given.capacity(0, 1).ignores_cpus(cpus(2)));
    }

    #[test]
    fn tasks_are_bound_to_processors_that_no_other_rank_takes() {
        let sets = |slots: &str, host: &[&[u32]]| {
            let host: Vec<Processors> = host.iter().map(|allowed| Processors { allowed: allowed.to_vec(), all: 16 }).collect();
            let given = SlotsGiven::parse(slots).unwrap();
            (0..host.len() as u32).map(|index| given.of(index, &host.iter().collect::<Vec<_>>()).unwrap().cpu_set).collect::<Vec<_>>()
        };
        let none = Vec::<u32>::new();
        // All may use the same: each has its part, if there is enough for all.
        assert_eq!(sets("cpus=2", &[&[0, 1, 4, 5], &[0, 1, 4, 5]]), [[0, 1], [4, 5]]);
        assert_eq!(sets("host:cpus=3", &[&[0, 1, 4, 5], &[0, 1, 4, 5]]), [vec![0, 1], vec![4]]);
        assert_eq!(sets("cpus=2", &[&[0, 1, 4], &[0, 1, 4]]), [none.clone(), none.clone()]);
        // Each its own, as srun --cpus-per-task has it: of every rank's processors only its own count.
        assert_eq!(sets("cpus=2", &[&[0, 1], &[2, 3, 4]]), [[0, 1], [2, 3]]);
        assert_eq!(sets("host:cpus=4", &[&[0, 8], &[1, 9]]), [[0, 8], [1, 9]]);
        assert_eq!(sets("cpus=3", &[&[0, 1], &[2, 3, 4]]), [none.clone(), vec![2, 3, 4]]);
        // Two on each socket.
        assert_eq!(sets("cpus=1", &[&[0, 1], &[0, 1], &[2, 3], &[2, 3]]), [[0], [1], [2], [3]]);
        assert_eq!(sets("cpus=1", &[&[0, 1], &[1, 2], &[3]]), [none.clone(), none.clone(), vec![3]]);
        assert_eq!(sets("gpus=1", &[&[0], &[1]]), [none.clone(), none]);
    }

    #[test]
    fn ranks_that_are_bound_to_too_few_processors_are_told() {
        let rank = |allowed: u32, all| Processors { allowed: (0..allowed).collect(), all };
        let said = bound_remark(&[4; 3], &[rank(4, 8), rank(1, 2), rank(3, 8)], 0).unwrap();
        assert!(said.starts_with("rank 1 (and 1 more like it) runs 4 commands at a time on 1 of the 2 processors of its host"), "{said}");
        // More workers than the host has processors are the user's choice; rank 0 may run nothing.
        assert_eq!(
            [
                bound_remark(&[4], &[rank(2, 2)], 0),
                bound_remark(&[1], &[rank(1, 8)], 0),
                bound_remark(&[4; 2], &[rank(1, 8), rank(8, 8)], 1)
            ],
            [None, None, None]
        );
        // Hosts with different numbers of ranks.
        assert!(bound_remark(&[1, 2], &[rank(1, 4), rank(1, 4)], 0).unwrap().starts_with("rank 1 runs 2 commands at a time on 1 of the 4"));
        assert_eq!([count("0-3,8\n"), count("0"), count(""), count("3-1"), count("0-4294967295")], [Some(5), Some(1), None, None, None]);
        let here = Processors::here();
        assert!(!here.allowed.is_empty() && here.all as usize >= here.allowed.len());
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
