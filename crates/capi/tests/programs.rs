//! Programs in C and Fortran, compiled as a user would and run on ranks of this machine; and what the library shows to its linker.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Numbers of ranks.
const RANKS: [u32; 5] = [1, 2, 3, 5, 8];

/// The library under the name that it is installed as.
fn library() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let built = std::env::current_exe().unwrap().with_file_name("libequipoise_capi.so");
        assert!(built.exists(), "{} is missing", built.display());
        for name in ["libequipoise.so", "libequipoise.so.1"] {
            symlink(&built, folder.path().join(name)).unwrap();
        }
        folder
    });
    folder.path()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}

fn link(command: &mut Command) -> &mut Command {
    let folder = library().display().to_string();
    command.args(["-L", &folder, "-lequipoise", "-lm", &format!("-Wl,-rpath,{folder}")])
}

/// Compiles a program in C.
fn compiled(source: &str, into: &Path) -> PathBuf {
    let name = Path::new(source).file_stem().unwrap();
    let program = into.join(name);
    let mut cc = tool("mpicc");
    cc.args(["-std=c11", "-D_DEFAULT_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-I"]).arg(format!("{HERE}/include"));
    run(link(cc.arg(format!("{HERE}/{source}")).arg("-o").arg(&program)));
    program
}

/// A tool of the MPI that is tested: `MPICC`, `MPICXX`, `MPIF90` and `MPIRUN` name those of another.
fn tool(name: &str) -> Command {
    Command::new(std::env::var_os(name.to_uppercase()).unwrap_or_else(|| name.into()))
}

/// Returns true if the launcher is Open MPI's, which needs options to start more ranks than there are cores.
fn is_open_mpi() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let output = tool("mpirun").arg("--version").output().expect("mpirun, which the tests need");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ["Open MPI", "OpenRTE", "PRRTE"].iter().any(|name| said.contains(name))
    })
}

/// Runs a program on this number of ranks, and returns what it prints.
fn on_ranks(ranks: u32, program: &Path, arguments: &[&str]) -> String {
    let mut mpirun = tool("mpirun");
    mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if is_open_mpi() {
        mpirun.args(["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
    }
    let output = run(mpirun.args(["-n", &ranks.to_string()]).arg(program).args(arguments));
    // MPICH's UCX says what a lost world has left to it.
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.contains(" UCX ")).map(|line| format!("{line}\n")).collect()
}

fn passes(name: &str, ranks: &[u32], arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(&format!("tests/c/{name}.c"), folder.path());
    for ranks in ranks {
        assert_eq!(on_ranks(*ranks, &program, arguments), format!("{name} passes on {ranks}\n"));
    }
}

#[test]
fn plans_in_c() {
    passes("plans", &RANKS, &[]);
    // Beyond 16 ranks calls are agreed on by a tree.
    passes("plans", &[18], &[]);
}

#[test]
fn wrong_arguments_in_c() {
    passes("errors", &RANKS, &[]);
}

#[test]
fn loops_and_steps_in_c() {
    passes("loops", &RANKS, &[]);
}

#[test]
fn tasks_in_c() {
    passes("tasks", &RANKS, &[]);
}

#[test]
fn manners_in_c() {
    passes("manners", &RANKS, &[]);
}

#[test]
fn waits_in_c() {
    passes("waits", &RANKS, &[]);
}

/// EQUIPOISE_GROWTH says how many plans are made, moved and freed instead of 1000.
#[test]
fn nothing_grows_in_c() {
    let times = std::env::var("EQUIPOISE_GROWTH").unwrap_or_else(|_| "1000".into());
    passes("growth", &[1, 3], &[&times]);
}

#[test]
fn everything_in_fortran() {
    let folder = tempfile::tempdir().unwrap();
    let (module, program) = (folder.path().join("equipoise.o"), folder.path().join("program"));
    let checks = ["-g", "-Wall", "-fcheck=all,no-array-temps"];
    // The module needs no MPI, and is standard Fortran.
    let mut gfortran = Command::new("gfortran");
    gfortran.current_dir(folder.path()).args(checks).args(["-std=f2018", "-Werror", "-c"]);
    run(gfortran.arg(format!("{HERE}/fortran/equipoise.f90")).arg("-o").arg(&module));
    let mut mpif90 = tool("mpif90");
    mpif90.current_dir(folder.path()).args(checks).arg(format!("{HERE}/tests/fortran.f90")).arg(&module);
    run(link(mpif90.arg("-o").arg(&program)));
    for ranks in RANKS {
        assert_eq!(on_ranks(ranks, &program, &[]), format!("fortran passes on {ranks}\n"));
    }
}

/// They verify themselves; their times are printed.
#[test]
fn examples_in_c_and_fortran() {
    let folder = tempfile::tempdir().unwrap();
    for source in ["../../examples/c/uneven_cells.c", "../../examples/columns/columns.c"] {
        let program = compiled(source, folder.path());
        for ranks in [1, 3, 8] {
            assert!(on_ranks(ranks, &program, &[]).contains("ms per step"), "{source}");
        }
    }
    for (name, says) in [("zoltan_block", "after migration"), ("put_get", "rank 0")] {
        let program = compiled(&format!("../../examples/c/{name}.c"), folder.path());
        for ranks in [1, 3, 8] {
            assert!(on_ranks(ranks, &program, &[]).contains(says), "{name}");
        }
    }
    let program = folder.path().join("columns_in_fortran");
    let mut mpif90 = tool("mpif90");
    mpif90
        .current_dir(folder.path())
        .arg(format!("{HERE}/fortran/equipoise.f90"))
        .arg(format!("{HERE}/../../examples/columns/columns.f90"));
    run(link(mpif90.arg("-o").arg(&program)));
    for ranks in [1, 3, 8] {
        assert!(on_ranks(ranks, &program, &[]).contains("ms per step"));
    }
}

/// Every run of the particles verifies itself.
#[test]
fn particles_are_where_they_must_be() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled("../../examples/pic/pic.c", folder.path());
    for distribution in ["geometric:0.9", "sinusoidal", "linear:1:3", "patch:5:20:3:30"] {
        for ranks in [1, 2, 4, 7, 8] {
            let arguments = ["-n", "5011", "-c", "40", "-s", "21", "-k", "1", "-m", "-2", "-d", distribution];
            let said = on_ranks(ranks, &program, &arguments);
            assert_eq!(said.matches("; verified").count(), 3, "{said}");
        }
    }
}

/// A program may load its MPI after this library, as Python does: no other one may be in the process then.
#[test]
fn no_mpi_is_loaded_for_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("early.c"), folder.path().join("early"));
    let text = "#include <stdio.h>\n#include \"equipoise.h\"\nint main(void) { int comm = 0; eqp_world *w = NULL; puts(eqp_version());\n\
                int status = eqp_open(&comm, sizeof comm, \"\", &w); printf(\"%d %s\\n\", status, eqp_error(NULL));\n\
                char line[4096]; FILE *maps = fopen(\"/proc/self/maps\", \"r\");\n\
                while (fgets(line, sizeof line, maps)) fputs(line, stdout); return 0; }\n";
    fs::write(&source, text).unwrap();
    run(link(Command::new("cc").args(["-I"]).arg(format!("{HERE}/include")).arg(&source).arg("-o").arg(&program)));
    let output = run(&mut Command::new(&program));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with(&format!("equipoise {}, no MPI in this process yet\n2 MPI is not init", env!("CARGO_PKG_VERSION"))), "{said}");
    assert!(said.contains("libequipoise") && !said.contains("libmpi"), "{said}");
}

/// Names of functions in the header.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(format!("{HERE}/include/equipoise.h")).unwrap();
    let is_name = |word: &&str| word.starts_with("eqp_") && !word.ends_with("_fn") && !word.ends_with('_');
    let lines = header.lines().filter(|line| !line.starts_with(['#', ' ', '/']) && line.contains('('));
    let names = lines.filter_map(|line| line.split(['(']).next()?.rsplit([' ', '*']).next());
    names.filter(is_name).map(String::from).collect()
}

#[test]
fn only_what_the_header_declares_is_exported() {
    let nm = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library().join("libequipoise.so")));
    let text = String::from_utf8(nm.stdout).unwrap();
    let exported: BTreeSet<String> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(String::from).collect();
    let declared = declared();
    assert_eq!(declared.len(), 28, "{declared:?}");
    assert_eq!(exported, declared);
    let dynamic = run(Command::new("readelf").arg("-d").arg(library().join("libequipoise.so")));
    assert!(String::from_utf8_lossy(&dynamic.stdout).contains("[libequipoise.so.1]"));
}

#[test]
fn the_header_is_cpp_too() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.cpp");
    let text = "#include <mpi.h>\n#include \"equipoise.h\"\nint main(int n, char **v) { MPI_Init(&n, &v); eqp_world *w = nullptr;\n\
                int s = EQP_OPEN(MPI_COMM_WORLD, \"\", &w); s += eqp_close(&w); MPI_Finalize(); return s; }\n";
    fs::write(&source, text).unwrap();
    let program = folder.path().join("program");
    let mut cpp = tool("mpicxx");
    cpp.args(["-std=c++11", "-Wall", "-Werror", "-I"]).arg(format!("{HERE}/include")).arg(&source);
    run(link(cpp.arg("-o").arg(&program)));
    on_ranks(2, &program, &[]);
}
