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

/// Refuses options that name the same file: the later one would overwrite what the earlier one is for. Devices and pipes take everything in turn.
///
/// # Errors
/// Wrong usage, with both options.
pub fn check_distinct(named: &[(&str, &Path)]) -> Result<()> {
    // What is not there yet has no other name than its folder's and its own.
    let place = |path: &Path| match path.canonicalize() {
        Ok(place) => fs::metadata(&place).is_ok_and(|about| about.is_file()).then_some(place),
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(folder.canonicalize().unwrap_or_else(|_| folder.into()).join(path.file_name()?))
        }
    };
    let places: Vec<_> = named.iter().map(|(option, path)| (option, path, place(path))).collect();
    for (at, (option, path, place)) in places.iter().enumerate() {
        if let Some((earlier, ..)) = places[..at].iter().find(|(.., other)| place.is_some() && other == place) {
            return Err(Error::usage(format!(
                "{earlier} and {option}: both name the file {}; each needs one of its own",
                names::shown(path)
            )));
        }
    }
    Ok(())
}

/// The files that `--report` writes into its folder.
pub fn of_report(folder: &Path) -> [PathBuf; 3] {
    ["table.csv", "records.jsonl", "report.html"].map(|name| folder.join(name))
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
        let [table, records, page] = of_report(folder);
        let create = |path: &Path| Target::create("--report", path);
        Ok(Report { table: create(&table)?, records: create(&records)?, page })
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
        let in_folder = report.map(|folder| of_report(folder));
        let in_folder: Vec<_> = in_folder.iter().flatten().map(|path| ("--report", path.as_path())).collect();
        let csv_named = csv.map(|path| ("--csv", path.as_path()));
        let trace_named = trace.map(|path| ("--trace", path.as_path()));
        // The table of the report is the one of --csv, so that the two may be one file.
        let (table, others) = in_folder.split_at(in_folder.len().min(1));
        check_distinct(&csv_named.into_iter().chain(trace_named).chain(others.iter().copied()).collect::<Vec<_>>())?;
        check_distinct(&trace_named.into_iter().chain(table.iter().copied()).collect::<Vec<_>>())?;
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
