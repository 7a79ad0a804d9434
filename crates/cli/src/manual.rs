//! Files that packages install with the program: manual pages and completions for shells, made from the options.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;
use equipoise::{Error, Result, names};

use crate::terminal;

/// Print completions for a shell: `equipoise completions bash > /etc/bash_completion.d/equipoise`.
#[derive(Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

/// Write the manual pages, one for each command, into a folder: `equipoise manual /usr/share/man/man1`.
#[derive(Args)]
pub struct Manual {
    /// The folder; it is made if it is not there.
    folder: PathBuf,
}

/// Prints completions.
pub fn complete(arguments: &Completions, mut command: clap::Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "equipoise", &mut script);
    terminal::print(|out| out.write_all(&script))
}

/// Writes the manual pages.
pub fn write(arguments: &Manual, command: clap::Command) -> Result<()> {
    let shown = names::shown(&arguments.folder);
    let cannot = |why: std::io::Error| Error::usage(format!("{shown}: {why}"));
    fs::create_dir_all(&arguments.folder).map_err(cannot)?;
    // Pages of the commands name the program, too.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    clap_mangen::generate_to(command, &arguments.folder).map_err(cannot)
}
