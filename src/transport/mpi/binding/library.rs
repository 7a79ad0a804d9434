//! Finds the `libmpi` of this process, once.
//!
//! It takes the first one found of: a library that the process has loaded already (a program in C, Python or Julia that uses MPI), the file
//! that `EQUIPOISE_MPI` names, the library of the launcher that started this process (or else of the `mpirun` in the path), and the usual
//! names in the loader's path.

use std::env;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::family::Family;

/// Names under which MPI libraries are loaded, by family and version.
const NAMES: [&str; 4] = ["libmpi.so.40", "libmpi_abi.so.1", "libmpi.so.12", "libmpich.so.12"];

/// The variable that names the library to use.
pub const VARIABLE: &str = "EQUIPOISE_MPI";

/// An MPI library, loaded. It stays loaded: MPI does not survive being unloaded.
pub struct Loaded {
    pub family: Family,
    /// The file, and how it was found.
    pub found: String,
    pub library: Library,
    /// Whether the process had loaded it already.
    is_the_program_s: bool,
}

/// A place to look for the library, and the description of a library found there.
struct Candidate {
    file: String,
    how: &'static str,
    /// Only if the process has it already.
    loaded_only: bool,
}

/// The library of this process; the sentence why there is none.
pub fn loaded() -> Result<&'static Loaded, &'static str> {
    static LOADED: OnceLock<Result<Loaded, String>> = OnceLock::new();
    LOADED.get_or_init(find).as_ref().map_err(String::as_str)
}

/// Returns true if this process has an MPI library. Loads none: the program around may load its own later.
pub fn is_here() -> bool {
    let in_process = |file: &str| open(&Candidate { file: file.into(), how: "in this process already", loaded_only: true }).is_ok();
    NAMES.into_iter().any(in_process) || named().is_some_and(|file| in_process(&file))
}

/// The library that the user names.
fn named() -> Option<String> {
    env::var(VARIABLE).ok().filter(|name| !name.is_empty())
}

fn find() -> Result<Loaded, String> {
    let named = named();
    let launcher = launcher().or_else(launcher_on_path);
    let by_open_mpi = env::var_os("OMPI_COMM_WORLD_SIZE").is_some() || launcher.as_deref().is_some_and(is_open_mpi);
    let folder = launcher.as_deref().and_then(|program| program.parent()?.parent());
    let mut failures = Vec::new();
    for candidate in candidates(named.as_deref(), folder, by_open_mpi) {
        match open(&candidate) {
            Ok(library) => return Ok(library),
            Err(_) if candidate.loaded_only => {}
            // A library that the user names is not replaced by another.
            Err(why) if named.as_ref() == Some(&candidate.file) => return Err(format!("{VARIABLE}={}: {why}", candidate.file)),
            Err(why) => failures.push(why),
        }
    }
    let last = failures.last().map_or_else(String::new, |why| format!(" ({why})"));
    Err(format!(
        "no MPI library was found: neither in this process, nor with a launcher, nor as {}{last}; {VARIABLE}=FILE names one",
        NAMES.join(", ")
    ))
}

/// All places to look at, in order; `launcher` is the folder above the launcher's `bin`.
fn candidates(named: Option<&str>, launcher: Option<&Path>, by_open_mpi: bool) -> Vec<Candidate> {
    let candidate = |file: &str, how, loaded_only| Candidate { file: file.into(), how, loaded_only };
    let mut all: Vec<_> = NAMES.iter().map(|name| candidate(name, "in this process already", true)).collect();
    all.extend(named.map(|file| candidate(file, "named by EQUIPOISE_MPI", false)));
    // The launcher of one MPI makes singletons of a program with another.
    let order: [usize; 4] = if by_open_mpi { [0, 1, 2, 3] } else { [2, 3, 1, 0] };
    let names = order.map(|at| NAMES[at]);
    if let Some(folder) = launcher {
        let files = names.iter().flat_map(|name| ["lib", "lib64"].map(|lib| folder.join(lib).join(name)));
        all.extend(files.filter(|file| file.exists()).map(|file| candidate(&file.to_string_lossy(), "belongs to the launcher", false)));
    }
    all.extend(names.iter().map(|name| candidate(name, "by its name", false)));
    all
}

/// `RTLD_NOLOAD` on Linux.
const NO_LOAD: i32 = 0x4;

fn open(candidate: &Candidate) -> Result<Loaded, String> {
    let flags = RTLD_NOW | RTLD_GLOBAL | if candidate.loaded_only { NO_LOAD } else { 0 };
    // SAFETY: loading an MPI library runs its constructors, which every program that is linked with it runs, too. Its plugins want to find its
    // symbols, so they are global.
    let library = unsafe { Library::open(Some(&candidate.file), flags) }.map_err(|why| why.to_string())?;
    let family = Family::of(&candidate.file, |symbol| has(&library, symbol));
    if !has(&library, "MPI_Init_thread") {
        return Err(format!("{} is no MPI library: it has no MPI_Init_thread", candidate.file));
    }
    let found = format!("{}, {}, {}", candidate.file, candidate.how, family.name());
    Ok(Loaded { family, found, library, is_the_program_s: candidate.loaded_only })
}

fn has(library: &Library, symbol: &str) -> bool {
    address(library, symbol).is_some()
}

/// The address of one of the library's objects. A program that is linked with the library may have a copy of it, which all code uses then (a copy
/// relocation), so the program is asked first.
pub fn object(loaded: &Loaded, symbol: &str) -> Option<usize> {
    let of_program = loaded.is_the_program_s.then(|| address(&Library::this(), symbol)).flatten();
    of_program.or_else(|| address(&loaded.library, symbol))
}

/// The address of a symbol.
pub fn address(library: &Library, symbol: &str) -> Option<usize> {
    let name = CString::new(symbol).ok()?;
    // SAFETY: only the address is taken; nothing is called or read through it here.
    let symbol = unsafe { library.get::<*const ()>(name.as_bytes_with_nul()) }.ok()?;
    let address = symbol.into_raw() as usize;
    (address != 0).then_some(address)
}

/// The nearest launcher among this process's ancestors: Open MPI's `prted`, MPICH's `hydra_pmi_proxy`.
fn launcher() -> Option<PathBuf> {
    const LAUNCHERS: [&str; 9] = ["mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy", "prted", "prterun", "prte", "orted", "orterun"];
    let mut process = std::process::id();
    // A shell or a script may stand between.
    for _ in 0..6 {
        process = parent(process)?;
        let program = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
        if program.file_name().and_then(|name| name.to_str()).is_some_and(|name| LAUNCHERS.contains(&name)) {
            return Some(program);
        }
    }
    None
}

/// The `mpirun` that this user would type, its links followed.
fn launcher_on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path).map(|folder| folder.join("mpirun")).find(|program| program.is_file())?;
    found.canonicalize().ok()
}

/// Returns true if a launcher is Open MPI's, by its name or by the files in its directory.
fn is_open_mpi(launcher: &Path) -> bool {
    let name = launcher.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let own = ["orted", "orterun", "prted", "prterun", "prte"].contains(&name) || name.contains("openmpi");
    own || launcher.parent().is_some_and(|folder| folder.join("ompi_info").exists() && !name.contains("mpich") && !name.contains("hydra"))
}

fn parent(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything; state and parent follow it.
    status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_has_comes_first_and_then_what_the_user_names() {
        let all = candidates(Some("/site/libmpi.so"), None, true);
        assert!(all[..NAMES.len()].iter().all(|candidate| candidate.loaded_only));
        assert_eq!(all[NAMES.len()].file, "/site/libmpi.so");
        assert_eq!(all[NAMES.len() + 1].file, "libmpi.so.40");
    }

    #[test]
    fn a_launcher_that_is_not_open_mpi_s_gets_another_library_first() {
        let all = candidates(None, None, false);
        assert_eq!(all[NAMES.len()].file, "libmpi.so.12");
        assert_eq!(all.last().map(|candidate| candidate.file.as_str()), Some("libmpi.so.40"));
    }

    #[test]
    fn this_process_has_a_parent() {
        assert!(parent(std::process::id()).is_some());
    }
}
