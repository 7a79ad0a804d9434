//! `equipoise farm`: a list of commands over the ranks, each exactly once.

mod settings;

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use equipoise::names;
use equipoise::topology::{HostId, PlacementRule, RankId};
use equipoise::transport::launcher;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_farm::engine::{self, FarmRank};
use equipoise_farm::helper::Helper;
use equipoise_farm::helper::running::now;
use equipoise_farm::journal::joblog::Joblog;
use equipoise_farm::lead::{Audience, Lead, fitting};
use equipoise_farm::limits::{Processors, bound_remark};
use equipoise_farm::list::Origin;
use equipoise_farm::output::{self, Printer};
use equipoise_farm::prepare::{self, Prepared};
use equipoise_farm::settings::Settings;
use equipoise_farm::task::Outcome;
use equipoise_farm::{environment, status};
use equipoise_lab::experiment::settle;

use super::launch::{self, Ending};
use super::options::{Placements, WorldOptions};
use super::terminal;
use super::terminal::Output;

const EXAMPLES: &str = "\
Examples:
  equipoise farm jobs.txt                         on this machine, a command on every core
  mpirun -n 16 equipoise farm jobs.txt --journal run1
  mpirun -n 16 equipoise farm jobs.txt --journal run1 --resume
  equipoise farm --args names.txt -- convert {} {.}.png
  equipoise farm --array 1-10000:2 -- ./simulate --seed {} --out {#}.txt
  generate-commands | equipoise farm -
  mpirun -n 16 equipoise farm jobs.txt --walltime auto --slots cpus=8,gpus=2
  equipoise farm status run1                      while it runs, from another terminal

A list has one command a line; blank lines and # comments do not count; quotes have the meaning of a shell's. A command may be followed by
  #EQ cost=30 min=10 cpus=2 gpus=1 mem=4G after=12,15-20 dir=PATH stdin=FILE
A line `#EQ barrier` makes all later commands wait for all earlier ones. after= names commands by Seq: they count from 1.

A command has FARM_TASK, FARM_ATTEMPT, FARM_RANK and FARM_HOST in its environment, and none of the variables by which launchers number ranks.

Exit status: 0 all succeeded; 1 some failed or were skipped; 2 wrong usage; 4 work is left (--walltime, --halt, a signal).";

/// Run a list of commands over the ranks, each exactly once
///
/// Under mpirun or srun each rank runs commands, one at a time unless --workers says more; alone, this machine runs one on every core.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The list of commands; - for standard input. `status DIR` shows the progress of the job with this journal
    #[arg(value_name = "FILE | -", num_args = 0..=2)]
    list: Vec<PathBuf>,

    /// The program and its arguments, with places for a line of --args or a number of --array: {} the line, {#} Seq, {.} without extension,
    /// {/} the name, {//} the folder, {/.} the name without extension
    #[arg(last = true, value_name = "PROG")]
    command: Vec<OsString>,

    /// File with arguments of PROG, one line each; - for standard input
    #[arg(long, value_name = "FILE", requires = "command", conflicts_with_all = ["list", "array", "empty"], help_heading = "Input")]
    args: Option<PathBuf>,

    /// Run PROG for each of these numbers: A-B or A-B:STEP
    #[arg(long, value_name = "A-B[:S]", requires = "command", conflicts_with_all = ["list", "empty"], help_heading = "Input")]
    array: Option<String>,

    /// Run this number of tasks that do nothing, to measure overhead
    #[arg(long, value_name = "N", conflicts_with_all = ["list", "command"], help_heading = "Input")]
    empty: Option<u64>,

    /// Built-in tasks that sleep, to compare schedulers: exponential:mean=10ms,tasks=N | uniform:min=5ms,max=500ms,tasks=N |
    /// fixed:time=1s,tasks=N; optionally ,seed=N ,costs=known ,speeds=1/2/4 (of the ranks, repeated)
    #[arg(long, value_name = "LENGTHS", conflicts_with_all = ["list", "command", "args", "array", "empty"], help_heading = "Input")]
    sleep: Option<String>,

    /// Format of the list: plain | greasy | disbatch | parallel. In all but plain, commands are run by a shell [default: plain]
    #[arg(long, value_name = "FORMAT", help_heading = "Input")]
    format: Option<String>,

    /// Run each command by sh -c; without it a command is a program and its arguments
    #[arg(long, help_heading = "Input")]
    shell: bool,

    /// Standard input of each command that has no stdin= of its own [default: empty]
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    stdin: Option<PathBuf>,

    /// Keep waiting for further lines at the end of the list, which is a file, until a signal or --walltime
    #[arg(long, help_heading = "Input")]
    follow: bool,

    /// Print the commands that would run, without running them
    #[arg(long, help_heading = "Input")]
    dry_run: bool,

    /// Number of commands that a rank runs at a time; mpirun binds them to a core or two, unless it gets --bind-to none [default: 1; alone, the
    /// number of cores; with --slots, the cpus of a rank]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = "Scheduling")]
    workers: Option<u32>,

    /// Rule for the number and the order of commands that a rank gets: selfsched:rule=ss|fixed|gss|fac2|tss|awf|af|.. (self-scheduling by
    /// chunks), dss (one at a time, in the order of the list), sash, sads (ahead, by estimates and by the ranks' speeds) [default: about
    /// 0.1 s of work at a time; with estimates one at a time, the longest first]
    #[arg(long, value_name = "NAME", help_heading = "Scheduling")]
    scheduler: Option<String>,

    /// Duty of rank 0: working (it runs commands, too) | dedicated
    #[arg(long, value_name = "MODE", default_value = "working", help_heading = "Scheduling")]
    host: String,

    /// Estimated seconds: a file with a number for each task in order, or with Seq before it; or a journal or job log of an earlier run,
    /// from which they are learnt by program and arguments. With estimates the longest tasks run first
    #[arg(long, value_name = "FILE", help_heading = "Scheduling")]
    costs: Option<PathBuf>,

    /// Resources of each rank, or of each host with host: before them. Tasks get processors and devices (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES)
    /// of their own
    #[arg(long, value_name = "cpus=8,gpus=2,mem=64G", help_heading = "Scheduling")]
    slots: Option<String>,

    /// Command that runs once on each host before its tasks
    #[arg(long, value_name = "CMD", help_heading = "Hosts")]
    setup: Option<String>,

    /// Command that runs once on each host after its tasks
    #[arg(long, value_name = "CMD", help_heading = "Hosts")]
    teardown: Option<String>,

    /// Command that is called for each host that has no work left, with FARM_HOST, FARM_ACTIVE and FARM_RELEASED in its environment
    #[arg(long, value_name = "CMD", help_heading = "Hosts")]
    release: Option<String>,

    /// Folder of the records: one file a rank, on the disk before a task counts as done
    #[arg(long, value_name = "DIR", help_heading = "Records")]
    journal: Option<PathBuf>,

    /// Resume: run everything without a finished record in the journal (or in --joblog, or --resume-from)
    #[arg(long, help_heading = "Records")]
    resume: bool,

    /// Resume, and run failed commands again
    #[arg(long, help_heading = "Records")]
    retry_failed: bool,

    /// Log of GNU parallel, disBatch or GREASY, or a journal file, that names finished commands
    #[arg(long, value_name = "FILE", help_heading = "Records")]
    resume_from: Vec<PathBuf>,

    /// Also write GNU parallel's job log
    #[arg(long, value_name = "FILE", help_heading = "Records")]
    joblog: Option<PathBuf>,

    /// Number of further attempts at a command that fails
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Limits")]
    retries: u32,

    /// Stop a command after this time: seconds, 500ms or 1:30:00
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    timeout: Option<String>,

    /// Time limit of the job, 1:00:00 or seconds; auto asks Slurm or PBS. Commands that cannot end in time (cost=, min=) are not started
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    walltime: Option<String>,

    /// Grace for running commands after SIGTERM, SIGINT or SIGUSR1
    #[arg(long, value_name = "SECONDS", default_value = "10", help_heading = "Limits")]
    grace: String,

    /// End the job after N failures: now stops running commands, soon lets them end
    #[arg(long, value_name = "now|soon,fail=N", help_heading = "Limits")]
    halt: Option<String>,

    /// Print outputs in the order of the list
    #[arg(long, help_heading = "Results")]
    keep_order: bool,

    /// Write outputs only into this folder: rank-N.out and rank-N.err; with {#} in it, into the files DIR/{#}.out and .err of each task
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    results: Option<PathBuf>,

    /// Also write report.html (ranks over time, the tail, failures) and table.csv into this folder
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    report: Option<PathBuf>,

    /// Output format: human prints the commands' outputs, json events
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,
}

/// Longest time between two looks for messages. A rank of a farm always has a worker that waits for its helper, and looked every 0.2 ms for that: 64 ranks on two
/// processors took a tenth of them from the commands. What a rank asks for comes soon after, when it looks more often by itself.
const NAP: Duration = Duration::from_millis(2);

/// Runs the farm.
pub fn run(arguments: &Arguments) -> Result<(), Ending> {
    if let [word, folder] = arguments.list.as_slice() {
        if word.as_os_str() != "status" {
            return Err(Error::usage("farm: one list at a time, or `farm status DIR`").into());
        }
        let words = std::env::args_os().skip_while(|word| word != "farm");
        if let Some(option) = words.skip(1).find(|word| word.len() > 1 && word.as_encoded_bytes().starts_with(b"-")) {
            return Err(Error::usage(format!("{}: farm status has no options", names::shown(Path::new(&option)))).into());
        }
        launch::meet()?;
        let text = status::of(folder, now())?;
        return Ok(terminal::print(|out| out.write_all(text.as_bytes()))?);
    }
    let is_alone = !is_launched()?;
    let mut settings = settings::settings(arguments)?;
    if arguments.dry_run {
        launch::meet()?;
        if !launch::speaks() {
            return Ok(());
        }
        return Ok(prepare::dry_run(&settings, |task| terminal::print(|out| out.write_all(&[&task.text, &b"\n"[..]].concat())))?);
    }
    // Before MPI: from then on this process must not fork.
    let helper = match settings.origin {
        Origin::Empty(_) if settings.setup.is_none() && settings.teardown.is_none() && settings.release.is_none() => None,
        _ => Some(
            Helper::start().map_err(|why| Error::Failed(format!("farm: the helper that starts the commands cannot be started: {why}")))?,
        ),
    };
    let quiet = arguments.output == Output::Quiet;
    let status = match is_alone {
        true => {
            settings.workers = workers(arguments, &settings, 1).unwrap_or_else(|| Processors::here().allowed.len().max(1) as u32);
            alone(&settings, helper, quiet)?
        }
        false => {
            let world = WorldOptions {
                predicts: false,
                survives: true,
                nap: Some(NAP),
                sim: None,
                network: None,
                sim_hosts: None,
                placement: Placements::One(PlacementRule::Hosts),
                seed: 1,
                timeout: Duration::from_secs(300),
            };
            let (status, helper) = (Cell::new(0), Cell::new(helper));
            launch::within(&world, |world| {
                status.set(over(world, arguments, &settings, helper.take())?);
                Ok(())
            })?;
            status.get()
        }
    };
    if status == 0 { Ok(()) } else { Err(Ending::Said(status)) }
}

#[cfg(feature = "_ranks")]
fn is_launched() -> Result<bool> {
    launcher::started(&equipoise::transport::mpi::library(), launcher::variable)
}

#[cfg(not(feature = "_ranks"))]
fn is_launched() -> Result<bool> {
    match launcher::rank(launcher::variable) {
        Some(_) => Err(Error::usage("farm: this program was built without real ranks (feature `mpi`)")),
        None => Ok(false),
    }
}

fn alone(settings: &Settings, helper: Option<Helper>, quiet: bool) -> Result<i32> {
    let processors = Processors::here();
    let slots = settings.slots_of(0, &[&processors])?;
    settings.check_files()?;
    let prepared = prepare::prepare_and_say(settings, 1, &mut |text| say(text, quiet))?;
    let job = prepared.job;
    let lead = lead(settings, prepared, vec![environment::host()], quiet);
    engine::alone(FarmRank::new(settings, RankId::FIRST, slots, helper, Some(lead))?, job)
}

/// Number of commands that run at a time on each rank where hosts have this number of ranks, or more, if the options say it.
fn workers(arguments: &Arguments, settings: &Settings, ranks_of_host: u32) -> Option<u32> {
    arguments.workers.or_else(|| settings.slots.as_ref()?.workers(ranks_of_host))
}

fn over(world: &mut World, arguments: &Arguments, settings: &Settings, helper: Option<Helper>) -> Result<i32> {
    let hosts = world.hosts();
    let quiet = arguments.output == Output::Quiet;
    let fewest = HostId::all(hosts.count()).map(|host| hosts.ranks_on(host).len() as u32).min().unwrap_or(1);
    let workers = workers(arguments, settings, fewest).unwrap_or(1);
    let settings = &Settings { workers, survives: survives(world), hosts: hosts.count(), ..settings.clone() };
    let names: Vec<String> = RankId::all(hosts.ranks()).map(|rank| hosts.name(hosts.host_of(rank)).to_string()).collect();
    let (me, processors) = engine::meet(world)?;
    let mine = hosts.ranks_on(hosts.host_of(me));
    let index = mine.iter().position(|rank| *rank == me).unwrap_or(0) as u32;
    let of_host: Vec<&Processors> = mine.iter().map(|rank| &processors[rank.index()]).collect();
    let slots = settings.slots_of(index, &of_host).and_then(|slots| settings.check_files().map(|()| slots));
    let slots = settle::agree(world, slots)?;
    let prepared = match world.is_first() {
        true => prepare::prepare_and_say(settings, fewest, &mut |text| say(text, quiet)).map(Some),
        false => Ok(None),
    };
    let prepared = settle::agree(world, prepared)?;
    let job = prepared.as_ref().map_or(0, |prepared| prepared.job);
    let first_worker = usize::from(settings.dedicated && processors.len() > 1);
    if let Some(remark) = bound_remark(&fitting::workers(settings, &names), &processors, first_worker).filter(|_| world.is_first()) {
        say(&remark, quiet);
    }
    let lead = prepared.map(|prepared| lead(settings, prepared, names, quiet));
    let status = engine::over(world, FarmRank::new(settings, me, slots, helper, lead)?, job)?;
    leave(world, status);
    Ok(status)
}

/// Returns true if the job goes on when a rank dies.
#[cfg(feature = "_ranks")]
fn survives(world: &World) -> bool {
    world.as_real().is_some_and(equipoise::transport::mpi::World::survives)
}

#[cfg(not(feature = "_ranks"))]
fn survives(_: &World) -> bool {
    false
}

/// Ends this process where a rank may be lost, which MPI's own end could wait for.
#[cfg(feature = "_ranks")]
fn leave(world: &World, status: i32) {
    if let Some(real) = world.as_real().filter(|real| real.survives()) {
        real.leave(status);
    }
}

#[cfg(not(feature = "_ranks"))]
fn leave(_: &World, _: i32) {}

fn lead(settings: &Settings, mut prepared: Prepared, hosts: Vec<String>, quiet: bool) -> Lead {
    let printer = Printer::new(output::standard(), settings.keep_order);
    let joblog = prepared.joblog.take();
    Lead::new(settings, prepared, hosts, printer, Box::new(Terminal { quiet, joblog }), now())
}

fn say(text: &str, quiet: bool) {
    if !quiet {
        terminal::complain(text);
    }
}

/// Reports to people on standard error, and to programs on standard output.
struct Terminal {
    quiet: bool,
    joblog: Option<Joblog>,
}

impl Audience for Terminal {
    fn event(&mut self, event: &serde_json::Value) {
        // A reader that went away is no reason to end.
        let _ = terminal::print(|out| writeln!(out, "{event}"));
    }

    fn remark(&mut self, text: &str) {
        say(text, self.quiet);
    }

    fn joblog(&mut self, number: u64, host: &str, outcome: &Outcome, command: &[u8]) {
        let failed = self.joblog.as_mut().and_then(|joblog| joblog.write(number, host, outcome, command).err());
        if let Some(why) = failed {
            self.joblog = None;
            terminal::complain(&format!("--joblog: it cannot be written any further: {why}"));
        }
    }
}
