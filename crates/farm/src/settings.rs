//! Settings of a farm, the same on all ranks.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use crate::helper::protocol::Slots;
use crate::limits::{Capacity, Halt, Processors, SlotsGiven};
use crate::list::Origin;
use crate::scheduler::Scheduler;
use equipoise::topology::RankId;
use equipoise::{Error, Result, names};

/// All options.
#[derive(Clone, Debug)]
pub struct Settings {
    pub origin: Origin,
    /// Commands run by `sh -c`.
    pub shell: bool,
    /// Standard input of each command that has none of its own.
    pub stdin: Option<PathBuf>,
    /// The list may grow.
    pub follow: bool,
    /// Tasks that run at a time on each rank.
    pub workers: u32,
    /// Rank 0 runs none, if there are others.
    pub dedicated: bool,
    pub journal: Option<PathBuf>,
    pub resume: bool,
    pub retry_failed: bool,
    /// Logs of other farms that name finished commands.
    pub logs: Vec<PathBuf>,
    /// GNU parallel's job log, to be written.
    pub joblog: Option<PathBuf>,
    pub retries: u32,
    /// Seconds that a task may take.
    pub timeout: Option<f64>,
    /// Seconds that running tasks have to end when the job is asked to.
    pub grace: f64,
    /// End of the job's time, in seconds since 1970, and its length from the beginning.
    pub walltime: Option<Walltime>,
    pub halt: Option<Halt>,
    pub slots: Option<SlotsGiven>,
    pub setup: Option<String>,
    pub teardown: Option<String>,
    pub release: Option<String>,
    pub keep_order: bool,
    /// A folder, or with `{#}` in it the beginning of a file's name for each task.
    pub results: Option<PathBuf>,
    /// Folder of a page and a table about the run.
    pub report: Option<PathBuf>,
    /// Estimated seconds by Seq, from a file.
    pub costs: Option<PathBuf>,
    pub scheduler: Scheduler,
    /// Content of standard output.
    pub output: Shown,
    /// The job goes on when a rank dies.
    pub survives: bool,
    /// Number of hosts that it runs on.
    pub hosts: u32,
}

/// A limit of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Walltime {
    /// Seconds since 1970.
    pub end: f64,
    /// Seconds.
    pub length: f64,
}

impl Walltime {
    /// Time by which a task has to have ended by its estimate: a hundredth of the time before the end, since estimates are never exact.
    pub fn last(&self) -> f64 {
        self.end - (self.length / 100.0).clamp(0.05, 60.0)
    }
}

/// Content of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The outputs of tasks.
    Outputs,
    /// An event a line.
    Events,
    Nothing,
}

impl Settings {
    /// Options that ask for nothing special.
    pub fn new(origin: Origin) -> Settings {
        Settings {
            origin,
            shell: false,
            stdin: None,
            follow: false,
            workers: 1,
            dedicated: false,
            journal: None,
            resume: false,
            retry_failed: false,
            logs: Vec::new(),
            joblog: None,
            retries: 0,
            timeout: None,
            grace: 10.0,
            walltime: None,
            halt: None,
            slots: None,
            setup: None,
            teardown: None,
            release: None,
            keep_order: false,
            results: None,
            report: None,
            costs: None,
            scheduler: Scheduler::Adaptive,
            output: Shown::Outputs,
            survives: false,
            hosts: 1,
        }
    }

    /// Checks on this rank that `--stdin` can be read and `--results` written, before anything begins.
    ///
    /// # Errors
    /// Wrong usage if not.
    pub fn check_files(&self) -> Result<()> {
        if let Some(path) = &self.stdin {
            let refused = |why: &str| Error::usage(format!("--stdin {}: it cannot be read: {why}", names::shown(path)));
            // It is not opened, since that waits for a writer if it is a pipe with a name.
            if fs::metadata(path).map_err(|why| refused(&why.to_string()))?.is_dir() {
                return Err(refused("it is a folder"));
            }
            access(path, Access::READ_OK).map_err(|why| refused(&std::io::Error::from(why).to_string()))?;
        }
        if let Some(results) = &self.results {
            let folder = results_folder(results);
            let refused = |why| Error::usage(format!("--results {}: it cannot be written to: {why}", names::shown(results)));
            fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder)).map_err(refused)?;
        }
        Ok(())
    }

    /// Speed of a rank in built-in tasks that sleep.
    pub fn speed(&self, rank: RankId) -> f64 {
        match &self.origin {
            Origin::Sleep(sleep) => sleep.speed(rank),
            _ => 1.0,
        }
    }

    /// The most that a task can have on rank number `index` of the `ranks` of a host.
    pub fn capacity(&self, index: u32, ranks: u32) -> Capacity {
        self.slots.as_ref().map_or_else(Capacity::default, |given| given.capacity(index, ranks))
    }

    /// The slots of a rank that is number `index` on its host, whose ranks have these processors.
    ///
    /// # Errors
    /// Wrong usage if the rank does not see as many devices as it should have.
    pub fn slots_of(&self, index: u32, host: &[&Processors]) -> Result<Slots> {
        let slots = self.slots.as_ref().map_or_else(|| Ok(Slots::default()), |given| given.of(index, host));
        slots.map_err(|why| Error::usage(format!("--slots: {why}")))
    }
}

/// The folder of `--results`, or where `{#}` is in the name the one above that is the same for all tasks.
fn results_folder(results: &Path) -> &Path {
    let is_common = |path: &&Path| !path.to_string_lossy().contains("{#}");
    match results.ancestors().find(is_common) {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_a_folder_that_is_there_before() {
        for (results, folder) in [("d", "d"), ("d/{#}", "d"), ("{#}", "."), ("a/b{#}c/{#}/x", "a"), ("/d/e/{#}.txt", "/d/e"), ("/{#}", "/")]
        {
            assert_eq!(results_folder(Path::new(results)), Path::new(folder), "{results}");
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_told() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "").unwrap();
        let said = |stdin: Option<&str>, results: Option<&str>| {
            let mut settings = Settings::new(Origin::Empty(0));
            (settings.stdin, settings.results) = (stdin.map(path), results.map(path));
            settings.check_files().map_err(|why| (why.exit_status(), why.to_string().contains("it cannot be ")))
        };
        assert_eq!(said(Some("file"), Some("new/{#}/out")), Ok(()));
        assert!(path("new").is_dir());
        assert_eq!(
            [said(Some("none"), None), said(Some("new"), None), said(None, Some("file"))],
            [Err((2, true)), Err((2, true)), Err((2, true))]
        );
        assert_eq!(said(None, Some("file/{#}")), Err((2, true)));
    }
}
