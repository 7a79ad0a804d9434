//! Output files, in addition to the printed results.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use equipoise::names;
use equipoise::phase::trace::MOST_NODES;
use equipoise::topology::Topology;
use equipoise::{Error, Result};
use equipoise_lab::whole_file::WholeFile;

/// A file that an option names. It is tried before the work begins, so that a wrong name costs no time, and gets its name when it is complete.
pub struct Target {
    option: String,
    file: WholeFile,
}

impl Target {
    /// Prepares to write the file that an option names.
    ///
    /// # Errors
    /// Wrong usage if that is not possible.
    pub fn create(option: &str, path: &Path) -> Result<Target> {
        let named = format!("{option} {}", names::shown(path));
        let file = WholeFile::create(path).map_err(|why| Error::usage(format!("{named}: it cannot be written: {why}")))?;
        Ok(Target { option: named, file })
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        self.file.complete(write).map_err(|why| Error::Failed(format!("{}: it could not be written to the end: {why}", self.option)))
    }
}

/// Folder of `--report`: the table, the records, and the page.
pub struct Report {
    pub table: Target,
    pub records: Target,
    /// Made when it is written: not every command draws one.
    pub page: PathBuf,
}

impl Report {
    /// Creates the folder if need be, and the files in it.
    ///
    /// # Errors
    /// Wrong usage if that is not possible.
    pub fn create(folder: &Path) -> Result<Report> {
        let refused = |why| Error::usage(format!("--report {}: the folder cannot be made: {why}", names::shown(folder)));
        fs::create_dir_all(folder).map_err(refused)?;
        let create = |name: &str| Target::create("--report", &folder.join(name));
        Ok(Report { table: create("table.csv")?, records: create("records.jsonl")?, page: folder.join("report.html") })
    }
}

/// Files to be written; empty where another process writes.
#[derive(Default)]
pub struct Files {
    pub csv: Option<Target>,
    pub report: Option<Report>,
    pub trace: Option<Target>,
}

impl Files {
    /// Creates all that were asked for.
    ///
    /// # Errors
    /// Wrong usage if one of them is not possible.
    pub fn create(csv: Option<&PathBuf>, report: Option<&PathBuf>, trace: Option<&PathBuf>) -> Result<Files> {
        let csv = csv.map(|path| Target::create("--csv", path)).transpose()?;
        let report = report.map(|folder| Report::create(folder)).transpose()?;
        let trace = trace.map(|path| Target::create("--trace", path)).transpose()?;
        Ok(Files { csv, report, trace })
    }
}

/// Refuses a trace with more rows than a reader can look at.
///
/// # Errors
/// Wrong usage.
pub fn check_trace(topology: &Topology) -> Result<()> {
    if topology.nodes() <= MOST_NODES {
        return Ok(());
    }
    Err(Error::usage(format!("--trace: {} has {} nodes, a trace shows at most {MOST_NODES}", topology.name(), topology.nodes())))
}
