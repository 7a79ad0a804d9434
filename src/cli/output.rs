//! Files that results are written to, besides what is printed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use equipoise::{Error, Result};

/// A file, opened before the work begins so that a wrong name costs no time.
pub struct Target {
    option: String,
    file: BufWriter<File>,
}

impl Target {
    /// Creates the file that an option names.
    ///
    /// # Errors
    /// Wrong usage if that is not possible.
    pub fn create(option: &str, path: &Path) -> Result<Target> {
        let named = format!("{option} {}", path.display());
        let file = File::create(path).map_err(|why| Error::usage(format!("{named}: it cannot be written: {why}")))?;
        Ok(Target { option: named, file: BufWriter::new(file) })
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn write(mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let failed = |why: io::Error| Error::Failed(format!("{}: it could not be written to the end: {why}", self.option));
        write(&mut self.file).and_then(|()| self.file.flush()).map_err(failed)
    }
}

/// The folder of `--report`: the table and the records.
pub struct Report {
    pub table: Target,
    pub records: Target,
}

impl Report {
    /// Creates the folder if need be, and the files in it.
    ///
    /// # Errors
    /// Wrong usage if that is not possible.
    pub fn create(folder: &Path) -> Result<Report> {
        let refused = |why| Error::usage(format!("--report {}: the folder cannot be made: {why}", folder.display()));
        fs::create_dir_all(folder).map_err(refused)?;
        let create = |name: &str| Target::create("--report", &folder.join(name));
        Ok(Report { table: create("table.csv")?, records: create("records.jsonl")? })
    }
}

/// What is to be written, where this process is the one that writes.
#[derive(Default)]
pub struct Files {
    pub csv: Option<Target>,
    pub report: Option<Report>,
}

impl Files {
    /// Creates all that were asked for.
    ///
    /// # Errors
    /// Wrong usage if one of them is not possible.
    pub fn create(csv: Option<&PathBuf>, report: Option<&PathBuf>) -> Result<Files> {
        let csv = csv.map(|path| Target::create("--csv", path)).transpose()?;
        let report = report.map(|folder| Report::create(folder)).transpose()?;
        Ok(Files { csv, report })
    }
}
