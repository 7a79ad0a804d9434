//! From the options of `farm` to the settings of a job.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use equipoise::names;
use equipoise::spec::quantity::{self, SECONDS};
use equipoise::transport::launcher;
use equipoise::{Error, Result};
use equipoise_farm::helper::running::now;
use equipoise_farm::limits::{Halt, SlotsGiven, end_of_allocation};
use equipoise_farm::list::Origin;
use equipoise_farm::list::formats::Format;
use equipoise_farm::list::sleep::Sleep;
use equipoise_farm::list::template::{Template, array};
use equipoise_farm::scheduler::Scheduler;
use equipoise_farm::settings::{Settings, Shown, Walltime};

use super::Arguments;
use crate::launch;
use crate::streams;
use crate::terminal::Output;

/// Settings of a job.
///
/// # Errors
/// Wrong usage.
pub(super) fn settings(arguments: &Arguments) -> Result<Settings> {
    let mut settings = Settings::new(origin(arguments)?);
    let usage = |option: &str, text: &str, why: &str| Error::usage(format!("{option} {text}: {why}"));
    settings.slots =
        arguments.slots.as_deref().map(|text| SlotsGiven::parse(text).map_err(|why| usage("--slots", text, &why))).transpose()?;
    settings.dedicated = match arguments.host.as_str() {
        "working" => false,
        "dedicated" => true,
        other => return Err(usage("--host", other, "unknown; known are working, dedicated")),
    };
    let time = |option: &str, text: &str| quantity::seconds(text).ok_or_else(|| usage(option, text, &format!("it must be {SECONDS}")));
    settings.timeout = arguments.timeout.as_deref().map(|text| time("--timeout", text)).transpose()?;
    if settings.timeout == Some(0.0) {
        return Err(usage("--timeout", "0", "it must be above 0"));
    }
    settings.grace = time("--grace", &arguments.grace)?;
    settings.walltime = match arguments.walltime.as_deref() {
        // The batch system may tell it to the first rank only, whose clock counts.
        Some("auto") if !launch::speaks() => None,
        text => text.map(|text| walltime(text, &time)).transpose()?,
    };
    settings.halt = arguments.halt.as_deref().map(|text| Halt::parse(text).map_err(|why| usage("--halt", text, &why))).transpose()?;
    if let Some(text) = &arguments.scheduler {
        settings.scheduler = Scheduler::parse(text)?;
    }
    settings.shell = arguments.shell;
    // Seen from here, not from the folders of commands.
    let seen_from_here = |path: &PathBuf| {
        std::path::absolute(path).map_err(|why| Error::usage(format!("--stdin {}: it cannot be read: {why}", names::shown(path))))
    };
    settings.stdin = arguments.stdin.as_ref().map(seen_from_here).transpose()?;
    settings.follow = arguments.follow;
    if settings.follow {
        check_followed(&settings.origin)?;
    }
    settings.journal.clone_from(&arguments.journal);
    settings.resume = arguments.resume || arguments.retry_failed || !arguments.resume_from.is_empty();
    settings.retry_failed = arguments.retry_failed;
    settings.logs.clone_from(&arguments.resume_from);
    settings.joblog.clone_from(&arguments.joblog);
    if settings.resume && settings.journal.is_none() && settings.joblog.is_none() && settings.logs.is_empty() {
        let option = if arguments.retry_failed { "--retry-failed" } else { "--resume" };
        return Err(Error::usage(format!("{option}: what is finished is in the journal; say --journal DIR too")));
    }
    settings.retries = arguments.retries;
    (settings.setup, settings.teardown, settings.release) =
        (arguments.setup.clone(), arguments.teardown.clone(), arguments.release.clone());
    settings.keep_order = arguments.keep_order;
    if settings.keep_order && (arguments.results.is_some() || arguments.output != Output::Human) {
        let why = "it orders the outputs that are printed, and with --results, --output json or --output quiet none is";
        return Err(Error::usage(format!("--keep-order: {why}")));
    }
    if let Some(folder) =
        arguments.results.as_ref().filter(|folder| folder.as_os_str().as_encoded_bytes().windows(2).any(|two| two == b"{}"))
    {
        return Err(Error::usage(format!("--results {}: only {{#}} is replaced in it, by a task's number", names::shown(folder))));
    }
    settings.results.clone_from(&arguments.results);
    settings.report.clone_from(&arguments.report);
    settings.costs.clone_from(&arguments.costs);
    settings.output = match arguments.output {
        Output::Human => Shown::Outputs,
        Output::Json => Shown::Events,
        Output::Quiet => Shown::Nothing,
    };
    Ok(settings)
}

/// Checks that a list that is to be followed is a file.
///
/// # Errors
/// Wrong usage if it is something else, which cannot grow or whose end is known.
fn check_followed(origin: &Origin) -> Result<()> {
    let is_stream = |file: &Path| file.as_os_str() == "-" || std::fs::metadata(file).is_ok_and(|data| !data.is_file() && !data.is_dir());
    let what = match origin {
        Origin::Array { .. } => "the numbers of --array are all known",
        Origin::Empty(_) => "the tasks of --empty are all known",
        Origin::Sleep(_) => "the tasks of --sleep are all known",
        Origin::Commands { file, .. } | Origin::Arguments { file, .. } if is_stream(file) => {
            "standard input and pipes are read until their writers close them in any case"
        }
        Origin::Commands { .. } | Origin::Arguments { .. } => return Ok(()),
    };
    Err(Error::usage(format!("--follow: {what}; it waits for further lines of a file")))
}

fn walltime(text: &str, time: &dyn Fn(&str, &str) -> Result<f64>) -> Result<Walltime> {
    let began = now();
    let end = match text {
        "auto" => end_of_allocation(launcher::variable, began).map_err(|why| Error::usage(format!("--walltime {text}: {why}")))?,
        text => began + time("--walltime", text)?,
    };
    Ok(Walltime { end, length: (end - began).max(0.0) })
}

fn origin(arguments: &Arguments) -> Result<Origin> {
    let named = arguments.format.as_deref().unwrap_or("plain");
    let format = Format::parse(named).ok_or_else(|| {
        let known = Format::NAMES.join(", ");
        Error::usage(format!("--format {}: unknown; known are {known}", names::one_line(named.to_string())))
    })?;
    // Not by clap, which drops the requirement where another option conflicts with a list.
    if arguments.format.is_some() && arguments.list.is_empty() {
        return Err(Error::usage(format!("--format {named}: it is the format of a list, and there is none; say FILE or -, too")));
    }
    let template = || Template::new(arguments.command.iter().map(|word| word.as_bytes().to_vec()).collect());
    let readable = |file: &Path| {
        let is_closed = file.as_os_str() == "-" && launch::speaks() && streams::input_was_closed();
        if is_closed { Err(Error::usage("farm -: standard input is closed")) } else { Ok(file.to_path_buf()) }
    };
    if let Some(text) = &arguments.sleep {
        return Ok(Origin::Sleep(Sleep::parse(text)?));
    }
    match (&arguments.list.first(), &arguments.args, &arguments.array, arguments.empty) {
        (Some(_), ..) if !arguments.command.is_empty() => {
            Err(Error::usage("farm: -- PROG needs --args FILE or --array A-B; a list has whole commands"))
        }
        (Some(file), ..) => Ok(Origin::Commands { file: readable(file)?, format }),
        (None, Some(file), ..) => Ok(Origin::Arguments { file: readable(file)?, template: template() }),
        (None, None, Some(text), _) => {
            let (first, last, step) = array(text).map_err(|why| Error::usage(format!("--array {text}: {why}")))?;
            Ok(Origin::Array { first, last, step, template: template() })
        }
        (None, None, None, Some(tasks)) => Ok(Origin::Empty(tasks)),
        (None, None, None, None) => {
            Err(Error::usage("farm: which commands? Say FILE or - for a list, or --args FILE -- PROG, or --array A-B -- PROG"))
        }
    }
}
