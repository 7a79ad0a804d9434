//! Holds the shape of the source: who may know whom, what is kept to one place, and how long files are. `docs/architecture.md` has the same
//! rules in words; whoever changes one changes the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::source::{self, Mentions};

/// A room, and the rooms that it may know beside itself. [`KNOWN_TO_ALL`] are known to all.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("names", &[]),
    ("error", &["topology"]),
    ("topology", &[]),
    ("load", &["topology"]),
    ("flow", &[]),
    ("options", &[]),
    ("transport", &["load", "topology"]),
    ("node", &["load", "topology", "transport"]),
    ("balance", &["load", "topology", "node", "flow", "options"]),
    ("schedule", &["load", "topology", "node", "balance", "options"]),
    ("divisible", &["load", "topology", "node"]),
    ("workload", &["load", "topology", "node", "schedule", "divisible"]),
    ("judge", &["load", "topology", "flow"]),
    ("experiment", &["load", "topology", "transport", "node", "balance", "schedule", "divisible", "workload", "judge"]),
    // The library's own balancing phase, for a program's tasks.
    ("redistribute", &["load", "topology", "transport", "node", "balance", "experiment"]),
    // Records of experiments only, and the types of their fields.
    ("report", &["experiment", "judge", "topology"]),
    (
        "cli",
        &["load", "topology", "transport", "node", "balance", "schedule", "divisible", "workload", "flow", "judge", "experiment", "report"],
    ),
];

/// Rooms that every other may know.
const KNOWN_TO_ALL: &[&str] = &["error", "names"];

/// Rooms of rank programs: they are the same in both worlds, so they may ask nothing but `Node` for time, threads or output.
const RANK_PROGRAMS: &[&str] = &["balance", "schedule", "divisible"];

/// Paths that rank programs may not mention, and macros.
const FOREIGN_TO_RANK_PROGRAMS: &[&str] = &["std::time", "std::thread", "std::io", "std::process", "rand::rng", "rand::random"];
const MACROS_OF_OUTPUT: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// What may be mentioned in one place only, or in two: the first segment of a path (or the word), the place, below src.
const KEPT_TO: &[(&str, &str)] = &[("unsafe", "transport/mpi, cli/streams.rs"), ("mpi", "transport/mpi"), ("bincode", "transport/wire.rs")];

/// Reading a whole file, which only one place does: it knows what has no end.
const READING: [&str; 2] = ["read", "read_to_string"];
const READS: &str = "workload/text.rs";

const LONGEST_FILE: usize = 500;
const LONGEST_MAIN: usize = 60;
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];

/// A file below src that is not for tests only.
struct File {
    /// Relative to src, with `/`.
    path: String,
    mentions: Mentions,
}

impl File {
    /// The room that it belongs to: `balance` for `balance/cwa.rs` and `error` for `error.rs`; none for lib.rs and main.rs.
    fn room(&self) -> Option<&str> {
        let room = self.path.split('/').next()?;
        let room = room.strip_suffix(".rs").unwrap_or(room);
        (room != "lib" && room != "main").then_some(room)
    }

    /// How many `super` lead from its module to the crate's root.
    fn depth(&self) -> usize {
        let parts = self.path.split('/').count();
        if self.path.ends_with("/mod.rs") { parts - 1 } else { parts }
    }

    /// Whether a name means a module of ours here, declared or imported.
    fn has_module(&self, name: &str) -> bool {
        let imports = |path: &source::Path| path.segments.len() > 1 && path.segments[path.segments.len() - 1] == name;
        self.mentions.modules.iter().any(|module| module == name) || self.mentions.paths.iter().any(imports)
    }

    fn is_below(&self, place: &str) -> bool {
        self.path == place || self.path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
    }
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder of the project, in order of their paths; none if there is no such folder.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![project().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The files below src that belong to the program, those for tests only left out.
fn program() -> Vec<File> {
    let src = project().join("src");
    let mut files: Vec<File> = rust_files("src")
        .iter()
        .map(|path| {
            let source = std::fs::read_to_string(path).expect("a source file can be read");
            let below = path.strip_prefix(&src).expect("a file below src");
            File { path: below.to_string_lossy().replace('\\', "/"), mentions: source::read(&source) }
        })
        .collect();
    let tests: Vec<String> = files.iter().flat_map(test_files).collect();
    files.retain(|file| !tests.iter().any(|test| file.is_below(test) || file.path == format!("{test}.rs")));
    files
}

/// The places, without `.rs`, of the modules that a file declares for tests only.
fn test_files(file: &File) -> Vec<String> {
    let stem = file.path.trim_end_matches(".rs");
    let folder = match stem.rsplit_once('/') {
        Some((folder, "mod")) => format!("{folder}/"),
        None if stem == "lib" || stem == "main" => String::new(),
        _ => format!("{stem}/"),
    };
    file.mentions.test_modules.iter().map(|module| format!("{folder}{module}")).collect()
}

/// What lib.rs re-exports at the crate's root: the name, and the room that it comes from.
fn root_names(files: &[File]) -> BTreeMap<String, String> {
    let lib = files.iter().find(|file| file.path == "lib.rs").expect("src/lib.rs");
    let rooms: BTreeSet<&str> = files.iter().filter_map(File::room).collect();
    let exported = lib.mentions.paths.iter().filter(|path| path.segments.len() > 1 && rooms.contains(path.segments[0].as_str()));
    exported.map(|path| (path.segments[path.segments.len() - 1].clone(), path.segments[0].clone())).collect()
}

/// What a file says that it may not say, a line each.
fn offences(file: &File, root_names: &BTreeMap<String, String>) -> Vec<String> {
    let mut offences = Vec::new();
    let Some(room) = file.room() else { return offences };
    let Some((_, known)) = MAY_KNOW.iter().find(|(name, _)| *name == room) else {
        return vec![format!("src/{}: room '{room}' has no line in MAY_KNOW", file.path)];
    };
    for path in &file.mentions.paths {
        let written = path.segments.join("::");
        let mut offend = |why: String| offences.push(format!("src/{}:{}: {written}: {why}", file.path, path.line));

        let supers = path.segments.iter().take_while(|segment| *segment == "super").count();
        let from_root = if path.segments[0] == "crate" && path.segments.len() > 1 {
            Some(&path.segments[1])
        } else {
            path.segments.get(supers).filter(|_| supers > 0 && supers >= file.depth())
        };
        if let Some(name) = from_root {
            let other = root_names.get(name).unwrap_or(name).as_str();
            if other != room && !KNOWN_TO_ALL.contains(&other) && !known.contains(&other) {
                offend(format!("'{room}' may know {known:?} and not '{other}'"));
            }
        }
        if RANK_PROGRAMS.contains(&room) {
            let begins = |foreign: &&&str| written == **foreign || written.starts_with(&format!("{foreign}::"));
            if let Some(foreign) = FOREIGN_TO_RANK_PROGRAMS.iter().find(begins) {
                offend(format!("a rank program doesn't know {foreign}: it asks its node"));
            }
            if path.is_macro && path.segments.last().is_some_and(|name| MACROS_OF_OUTPUT.contains(&name.as_str())) {
                offend("a rank program prints nothing".into());
            }
        }
        if let [.., module, function] = path.segments.as_slice()
            && module == "fs"
            && READING.contains(&function.as_str())
            && !file.is_below(READS)
        {
            offend(format!("whole files are read by src/{READS}"));
        }
        for (word, place) in KEPT_TO {
            let means_it = *word == "unsafe" || (path.segments.len() > 1 && !file.has_module(word));
            if path.segments[0] == *word && means_it && !place.split(", ").any(|place| file.is_below(place)) {
                offend(format!("is kept to src/{place}"));
            }
        }
    }
    offences
}

#[test]
fn rooms_know_only_whom_they_may() {
    let files = program();
    let root_names = root_names(&files);
    let found: Vec<String> = files.iter().flat_map(|file| offences(file, &root_names)).collect();
    assert!(files.len() > 20, "only {} files below src were found", files.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_room_comes_to_know_itself_through_others() {
    // Only `error` stands apart: it names topology's refusals and ranks, and is known to all.
    let know: BTreeMap<&str, &[&str]> = MAY_KNOW.iter().copied().collect();
    for (room, _) in MAY_KNOW {
        let (mut reached, mut next) = (BTreeSet::new(), know[room].to_vec());
        while let Some(other) = next.pop() {
            if reached.insert(other) {
                next.extend(know[other]);
            }
        }
        assert!(!reached.contains(room), "{room} knows itself through {reached:?}");
    }
}

#[test]
fn offences_are_seen() {
    let seen = |path: &str, text: &str| {
        let file = File { path: path.into(), mentions: source::read(text) };
        offences(&file, &BTreeMap::from([("Judge".into(), "judge".into()), ("Error".into(), "error".into())])).len()
    };
    for (path, text) in [
        ("balance/cwa.rs", "use crate::{error::Error, transport::Port};"),
        ("balance/cwa.rs", "fn f() { crate::judge::optimum() }"),
        ("balance/cwa.rs", "use crate::Judge;"),
        ("balance/cwa.rs", "use super::super::report::Table;"),
        ("balance/mod.rs", "use super::report::Table;"),
        ("balance/cwa.rs", "use std::{fmt, time::Instant};"),
        ("schedule/dss.rs", "fn f() { std::thread::yield_now() }"),
        ("divisible/model.rs", "fn f() { println!(\"here\") }"),
        ("report/table.rs", "use crate::balance::ALL;"),
        ("topology/line.rs", "use crate::load::Pile;"),
        ("node/mod.rs", "fn f() { unsafe { g() } }"),
        ("transport/sim/mod.rs", "use mpi::traits::*;"),
        ("node/mod.rs", "use bincode::config;"),
        ("kitchen/mod.rs", "fn f() {}"),
    ] {
        assert_eq!(seen(path, text), 1, "{path}: {text}");
    }
    for (path, text) in [
        ("balance/cwa.rs", "use crate::{error::Error, node::Node}; use super::Phase; use crate::Error;"),
        ("balance/cwa.rs", "//! See crate::judge. #[cfg(test)] mod tests { use crate::transport::sim::Sim; }"),
        ("balance/cwa.rs", "/// println!, unsafe, std::time\nfn f() { let mpi = 1; }"),
        ("transport/mpi/ffi.rs", "use mpi::ffi; fn f() { unsafe { ffi::g() } }"),
        ("transport/wire.rs", "use bincode::config;"),
        ("transport/world.rs", "use super::{mpi, sim}; type World = mpi::World;"),
        ("cli/launch.rs", "use equipoise::transport::mpi::{self, launcher}; fn f() { mpi::World::init() }"),
        ("lib.rs", "pub use error::Error;"),
    ] {
        assert_eq!(seen(path, text), 0, "{path}: {text}");
    }
}

#[test]
fn files_are_short() {
    for folder in ["src", "tests", "examples", "benches"] {
        for path in rust_files(folder) {
            let lines = std::fs::read_to_string(&path).expect("a source file can be read").lines().count();
            let limit = if path == project().join("src/main.rs") { LONGEST_MAIN } else { LONGEST_FILE };
            assert!(lines <= limit, "{} has {lines} lines, {limit} is the most", path.display());
        }
    }
}

/// What launchers leave in the environment. Whoever wants to know whether one started the process asks the file that judges it.
const LAUNCHERS: [&str; 7] = ["OMPI_COMM_WORLD_", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD", "SLURM_", "FLUX_TASK"];

#[test]
fn one_place_judges_launchers() {
    let files: Vec<PathBuf> = ["src/cli", "examples", "benches"].into_iter().flat_map(rust_files).collect();
    assert!(files.len() > 20 && project().join("src/transport/launcher.rs").is_file());
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a source file can be read");
        let found = LAUNCHERS.into_iter().find(|variable| text.contains(variable));
        assert_eq!(found, None, "{}: ask transport::launcher", path.display());
    }
}

#[test]
fn names_say_something() {
    for file in program() {
        let from_path = file.path.trim_end_matches(".rs").split('/').map(String::from);
        for name in from_path.chain(file.mentions.modules.iter().cloned()) {
            assert!(!EMPTY_NAMES.contains(&name.as_str()), "src/{}: a module named {name}", file.path);
        }
    }
}

#[test]
fn every_balancer_is_one_file_and_one_entry() {
    let mut in_folder: Vec<String> = program()
        .iter()
        .filter_map(|file| file.path.strip_prefix("balance/")?.split('/').next().map(|name| name.trim_end_matches(".rs").to_string()))
        // What all of them share.
        .filter(|name| !["mod", "no_harm"].contains(&name.as_str()))
        .collect();
    in_folder.sort();
    in_folder.dedup();
    let mut in_registry: Vec<String> = equipoise::balance::ALL.iter().map(|entry| entry.name.to_string()).collect();
    in_registry.sort();
    assert_eq!(in_folder, in_registry, "the files in src/balance, and the entries in its registry");
}

#[test]
fn every_workload_of_task_graphs_is_one_file_and_one_entry() {
    let mut in_folder: Vec<String> = program()
        .iter()
        .filter_map(|file| Some(file.path.strip_prefix("workload/graphs/")?.split('/').next()?.trim_end_matches(".rs").to_string()))
        .filter(|name| name != "mod")
        .collect();
    in_folder.sort();
    in_folder.dedup();
    let mut in_registry: Vec<String> = equipoise::workload::graphs::ALL.iter().map(|entry| entry.name.to_string()).collect();
    in_registry.sort();
    assert_eq!(in_folder, in_registry, "the files in src/workload/graphs, and the entries in its registry");
}
