//! Comparison of how the ranks' processes were started. It must be the same: a rank with another command or another option would wait for
//! messages that never come, or take part in another computation.

use std::sync::{Mutex, PoisonError};

use clap::{Arg, ArgAction, ArgMatches, Command};
#[cfg(any(feature = "_ranks", test))]
use equipoise::topology::RankId;
use serde::{Deserialize, Serialize};

/// Files that rank 0 alone writes: other ranks may name others, but not none.
const WRITTEN_BY_RANK_0: [&str; 7] = ["csv", "report", "trace", "to", "gantt", "write", "simgrid"];

/// Number of characters of a value that are shown.
#[cfg(any(feature = "_ranks", test))]
const SHOWN: usize = 60;

/// Version, command and options of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    version: String,
    /// The command, or the option that stands in its place.
    command: String,
    /// Its options, and the given or default value of each; `None` for a flag.
    options: Vec<(String, Option<String>)>,
    /// Why this process will not begin.
    refused: Option<String>,
}

static START: Mutex<Option<Start>> = Mutex::new(None);

fn with<T>(look: impl FnOnce(&mut Start) -> T) -> T {
    let mut start = START.lock().unwrap_or_else(PoisonError::into_inner);
    look(start.get_or_insert_with(|| Start { version: env!("CARGO_PKG_VERSION").into(), ..Start::default() }))
}

/// Notes the command and its options.
pub fn note(parser: &Command, matches: &ArgMatches) {
    let Some((name, given)) = matches.subcommand() else { return };
    let arguments = parser.find_subcommand(name).into_iter().flat_map(Command::get_arguments);
    let options = arguments.filter_map(|argument| Some((argument.get_long()?.to_string(), value(argument, given)))).collect();
    with(|start| (start.command, start.options) = (name.to_string(), options));
}

/// Notes the option that stands in the place of a command.
pub fn note_instead(what: &str) {
    with(|start| start.command = what.into());
}

/// Notes that this process will not begin, and why.
pub fn note_refusal(why: &str) {
    with(|start| start.refused = Some(why.into()));
}

/// Returns true if this process will not begin.
#[cfg(feature = "_ranks")]
pub fn is_refused() -> bool {
    with(|start| start.refused.is_some())
}

fn value(argument: &Arg, given: &ArgMatches) -> Option<String> {
    let values = given.try_get_raw(argument.get_id().as_str()).ok().flatten()?;
    let values: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
    match argument.get_action() {
        ArgAction::SetTrue => values.contains(&"true".to_string()).then(String::new),
        _ if WRITTEN_BY_RANK_0.contains(&argument.get_id().as_str()) => Some(String::new()),
        _ => Some(values.join(" ")),
    }
}

/// Compares how the ranks of a world were started.
///
/// # Errors
/// Wrong usage on every rank if they were not started alike, with a sentence that names what differs.
#[cfg(feature = "_ranks")]
pub fn compare(world: &mut equipoise::transport::world::World) -> equipoise::Result<()> {
    let mine = with(|start| start.clone());
    match equipoise_lab::experiment::settle::difference(world, &mine)? {
        None => Ok(()),
        Some((rank, first, other)) => Err(equipoise::Error::usage(sentence(rank, &first, &other))),
    }
}

/// Difference between rank 0 and another rank, as a sentence.
#[cfg(any(feature = "_ranks", test))]
fn sentence(rank: RankId, first: &Start, other: &Start) -> String {
    if first.version != other.version {
        return format!("rank {rank} is version {}, rank 0 version {}; all ranks need the same program", other.version, first.version);
    }
    match (&first.refused, &other.refused) {
        (None, Some(why)) => return format!("rank {rank}: {why}"),
        (Some(why), _) => return format!("rank 0: {why}"),
        (None, None) => {}
    }
    let mut options = first.options.iter().zip(&other.options);
    let (first, other) = match options.find(|(first, other)| first != other) {
        Some((one, another)) if first.command == other.command => (option(one), option(another)),
        _ => (format!("with `{}`", first.command), format!("with `{}`", other.command)),
    };
    format!("rank {rank} was started {other}, rank 0 {first}; all ranks must be started alike")
}

/// An option as it was given.
#[cfg(any(feature = "_ranks", test))]
fn option((name, value): &(String, Option<String>)) -> String {
    match value.as_deref() {
        None => format!("without --{name}"),
        Some("") => format!("with --{name}"),
        Some(value) if value.chars().count() > SHOWN => format!("with --{name} {}..", value.chars().take(SHOWN).collect::<String>()),
        Some(value) => format!("with --{name} {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(command: &str, options: &[(&str, Option<&str>)]) -> Start {
        let options = options.iter().map(|(name, value)| (name.to_string(), value.map(str::to_string))).collect();
        Start { command: command.into(), options, ..Start::default() }
    }

    #[test]
    fn what_differs_is_named() {
        let (workload, topology) = (("workload", Some("queens:n=8")), ("topology", None));
        let first = start("run", &[workload, topology]);
        let said = |other: Start| sentence(RankId::new(1), &first, &other);
        let end = "; all ranks must be started alike";
        assert_eq!(
            said(start("run", &[("workload", Some("queens:n=9")), topology])),
            format!("rank 1 was started with --workload queens:n=9, rank 0 with --workload queens:n=8{end}")
        );
        assert_eq!(
            said(start("run", &[workload, ("topology", Some("ring"))])),
            format!("rank 1 was started with --topology ring, rank 0 without --topology{end}")
        );
        assert_eq!(
            said(start("balance", &[("balancer", Some("cwa"))])),
            format!("rank 1 was started with `balance`, rank 0 with `run`{end}")
        );
        assert_eq!(said(start("list", &[])), format!("rank 1 was started with `list`, rank 0 with `run`{end}"));
        assert_eq!(said(start("--help", &[])), format!("rank 1 was started with `--help`, rank 0 with `run`{end}"));
        let long = "1,".repeat(100);
        assert!(said(start("run", &[("workload", Some(&long)), topology])).contains(&format!("--workload {}.., rank 0", &long[..60])));
    }

    #[test]
    fn a_refusal_is_said_for_the_rank_that_has_it() {
        let refused = |why: &str| Start { refused: Some(why.into()), ..start("", &[]) };
        assert_eq!(sentence(RankId::new(3), &start("run", &[]), &refused("--lods: what?")), "rank 3: --lods: what?");
        let newer = Start { version: "2.0.0".into(), ..start("run", &[]) };
        assert!(sentence(RankId::new(1), &start("run", &[]), &newer).starts_with("rank 1 is version 2.0.0, "));
    }
}
