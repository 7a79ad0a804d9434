//! The command line: one file per command, and a few files that they share.
//!
//! A command reads its options, opens a world ([`launch`]), lets the library do the work, and prints on the rank that speaks
//! ([`terminal`]). Options are judged before the world is opened where that is possible; what only one rank knows is agreed on after.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::launch::{self, Ending};
use crate::{advise, balance, compare, divide, farm, list, manual, probe, reproduce, run, start, terminal, when};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use equipoise::names;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 8 equipoise compare                   every balancer on 8 real ranks
  mpirun -n 8 equipoise compare --tasks files:.   the files below this folder as tasks
  mpirun -n 8 equipoise run --workload queens     tasks that spawn tasks
  equipoise compare --sim 64                      on 64 simulated ranks, without MPI
  equipoise balance --sim 8 --loads 19,11,2,9,0,9,10,4
  mpirun -n 8 equipoise divide --input FILE --kernel count
                                                  one file, so that all ranks finish together
  equipoise farm jobs.txt                         a list of commands, each once; also on ranks
  equipoise divide --model --topology hypercube:4 one load that can be cut anywhere
  equipoise when --series FILE --cost 12          the best times to balance, afterwards
  mpirun -n 8 equipoise probe                     latency, bandwidth and speeds
  equipoise advise --loads 19,11,2,9 --task-seconds 0.001
                                                  whether balancing pays
  equipoise list                                  balancers, schedulers, workloads, ..
  equipoise reproduce                             a paper's figures, and ours

Exit status: 0 done; 1 a run failed or lost something; 2 wrong usage; 3 no progress (see --timeout);
4 ended early by a signal or by farm's --walltime or --halt, with what was finished;
101 a rank panicked; a killed rank gives the launcher's status.
RUST_LOG=debug logs phases, decisions and the watchdog; RUST_LOG=trace also every message.";

/// Balances dynamic, irregular work over MPI ranks, and measures what it costs and when it pays.
///
/// Commands that need ranks run on real ones under mpirun, and with --sim RANKS on simulated ones: the same program on both.
#[derive(Parser)]
#[command(name = "equipoise", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Balance(balance::Arguments),
    Compare(compare::Arguments),
    Run(run::Arguments),
    Divide(Box<divide::Arguments>),
    When(when::Arguments),
    Farm(Box<farm::Arguments>),
    Probe(probe::Arguments),
    Advise(advise::Arguments),
    List(list::Arguments),
    Reproduce(reproduce::Arguments),
    #[command(hide = true)]
    Completions(manual::Completions),
    #[command(hide = true)]
    Manual(manual::Manual),
}

/// Runs the command that the process was called with, and returns its exit status.
pub fn run() -> ExitCode {
    if let Some(ended) = equipoise_farm::helper::serve_if_called() {
        return ended;
    }
    launch::begin();
    let mut parser = Cli::command();
    // The version names the MPI, which may have to be loaded for that.
    if std::env::args_os().any(|argument| argument == "--version") {
        parser = parser.long_version(&*launch::version().leak());
    }
    let matches = match parser.try_get_matches_from_mut(with_negative_values(std::env::args_os())) {
        Ok(matches) => matches,
        Err(why) => return refused(&why),
    };
    start::note(&parser, &matches);
    let command = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.command,
        Err(why) => return refused(&why.format(&mut parser)),
    };
    env_logger::init();
    equipoise::transport::name_in_logs(&equipoise_lab::tags::ALL);
    equipoise::transport::name_in_logs(&equipoise_farm::tags::ALL);
    match command.carry_out() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ending::Said(status)) => status_of(status),
        Err(Ending::Unsaid(why)) => {
            let sentence = launch::sentence(&why);
            terminal::complain(&sentence);
            launch::refuse(&sentence);
            status_of(why.exit_status())
        }
    }
}

/// Joins an option and a value that begins with a minus sign and a digit or a comma, `--loads -5,1` to `--loads=-5,1` and `--tasks
/// -,unit=us` to `--tasks=-,unit=us`. No option has such a name, and the parser of the value gives the better message.
fn with_negative_values(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut is_command = false;
    for argument in arguments {
        // Arguments after `--` are another program's command line.
        is_command |= argument == "--";
        let negative = argument
            .to_str()
            .and_then(|text| text.strip_prefix('-'))
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == ','));
        match joined.last_mut().filter(|_| negative && !is_command) {
            Some(option) if option.to_str().is_some_and(|text| text.len() > 2 && text.starts_with("--") && !text.contains('=')) => {
                option.push("=");
                option.push(&argument);
            }
            _ => joined.push(argument),
        }
    }
    joined
}

fn status_of(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

impl Command {
    fn carry_out(self) -> Result<(), Ending> {
        match self {
            Command::Balance(arguments) => balance::run(&arguments),
            Command::Compare(arguments) => compare::run(&arguments),
            Command::Run(arguments) => run::run(&arguments),
            Command::Divide(arguments) => divide::run(&arguments),
            Command::When(arguments) => launch::meet().and_then(|()| Ok(when::run(&arguments)?)),
            Command::Farm(arguments) => farm::run(&arguments),
            Command::Probe(arguments) => probe::run(&arguments),
            Command::Advise(arguments) => advise::run(&arguments),
            Command::List(arguments) => launch::meet().and_then(|()| Ok(list::run(&arguments)?)),
            Command::Reproduce(arguments) => launch::meet().and_then(|()| Ok(reproduce::run(&arguments)?)),
            Command::Completions(arguments) => launch::meet().and_then(|()| Ok(manual::complete(&arguments, Cli::command())?)),
            Command::Manual(arguments) => launch::meet().and_then(|()| Ok(manual::write(&arguments, Cli::command())?)),
        }
    }
}

/// Prints help and version as they are, and an error as one sentence.
fn refused(why: &clap::Error) -> ExitCode {
    match why.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            start::note_instead(if why.kind() == ErrorKind::DisplayHelp { "--help" } else { "--version" });
            let printed = terminal::print(|out| write!(out, "{}", why.render())).map_err(Ending::from);
            match printed.and_then(|()| launch::meet()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(Ending::Said(status)) => status_of(status),
                Err(Ending::Unsaid(why)) => {
                    terminal::complain(&launch::sentence(&why));
                    status_of(why.exit_status())
                }
            }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            terminal::remark(&why.render().to_string());
            launch::refuse("a command is missing");
            ExitCode::from(2)
        }
        kind => {
            let said = match kind {
                ErrorKind::InvalidUtf8 => not_text(std::env::args_os()),
                _ => None,
            };
            let why = said.unwrap_or_else(|| sentence(&why.render().to_string()));
            terminal::complain(&why);
            launch::refuse(&why);
            ExitCode::from(2)
        }
    }
}

/// Options that take names of files, which need be no text.
const ANY_BYTES: [&str; 18] = [
    "--input",
    "--to",
    "--calibration",
    "--report",
    "--trace",
    "--csv",
    "--gantt",
    "--curves",
    "--loads",
    "--tasks",
    "--powers",
    "--weights",
    "--topology",
    "--workload",
    "--series",
    "--network",
    "--write",
    "--simgrid",
];

/// Error for the first argument that is not UTF-8, where the option requires it.
fn not_text(arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let mut option = String::new();
    for argument in arguments {
        let shown = names::shown_argument(&argument);
        let named = shown.split_once('=').map_or(shown.as_str(), |(name, _)| name);
        if named.starts_with("--") {
            option = named.to_string();
        }
        if argument.to_str().is_none() && !ANY_BYTES.contains(&option.as_str()) {
            let named = if shown.starts_with("--") { shown } else { format!("{option} {shown}") };
            return Some(format!("{}: this argument is no text in UTF-8", named.trim()));
        }
    }
    None
}

/// First paragraph of clap's message, with its tips, on one line.
fn sentence(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let said = text.split("\n\nUsage:").next().unwrap_or(text).split("\n\nFor more").next().unwrap_or(text);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ").replace(" tip: ", "; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_no_text_is_named_with_its_option() {
        use std::os::unix::ffi::OsStringExt;
        let said = |words: &[&[u8]]| not_text(words.iter().map(|word| OsString::from_vec(word.to_vec()))).unwrap_or_default();
        assert_eq!(
            said(&[b"equipoise", b"run", b"--workload", b"costs:file=\xff", b"--scheduler", b"\xfe", b"--seed=1"]),
            "--scheduler \\xfe: this argument is no text in UTF-8"
        );
        assert_eq!(said(&[b"equipoise", b"--seed=\xfe"]), "--seed=\\xfe: this argument is no text in UTF-8");
        assert_eq!(said(&[b"equipoise", b"\xfe"]), "\\xfe: this argument is no text in UTF-8");
    }

    #[test]
    fn a_negative_value_belongs_to_the_option_before_it() {
        let joined = |words: &[&str]| with_negative_values(words.iter().map(OsString::from)).join(" ".as_ref());
        assert_eq!(joined(&["equipoise", "balance", "--loads", "-5,1", "--sim", "2"]), "equipoise balance --loads=-5,1 --sim 2");
        assert_eq!(joined(&["equipoise", "--", "-5"]), "equipoise -- -5");
        assert_eq!(joined(&["equipoise", "farm", "--", "run", "--x", "-5"]), "equipoise farm -- run --x -5");
        assert_eq!(joined(&["equipoise", "--loads=3", "-5", "-h", "--sim"]), "equipoise --loads=3 -5 -h --sim");
    }

    #[test]
    fn a_refusal_is_one_line_that_names_the_option() {
        let said = |arguments: &[&str]| match Cli::try_parse_from(arguments) {
            Ok(_) => String::new(),
            Err(why) => sentence(&why.render().to_string()),
        };
        let wrong = said(&["equipoise", "balance", "--sim", "eight"]);
        assert!(wrong.contains("'eight' for '--sim <RANKS>'") && !wrong.contains('\n'), "{wrong}");
        let unknown = said(&["equipoise", "balance", "--lods", "1"]);
        assert!(
            unknown.contains("'--lods'") && unknown.contains("; a similar argument exists: '--loads'") && !unknown.contains('\n'),
            "{unknown}"
        );
        assert_eq!(said(&["equipoise", "list"]), "");
    }
}
