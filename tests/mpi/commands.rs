//! The program itself under `mpirun`, with commands: such as are MPI programs themselves, such as fail, and such as leave traces; and its standard
//! input.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

use crate::launch::{self, Outcome, Turn};

const LIMIT: Duration = Duration::from_secs(90);

/// A program that is a rank of its own job, whatever else it is started by; it reads its input to the end, as commands do.
pub const MPI_PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (getchar() != EOF) {}
    printf("size %d\n", size);
    MPI_Finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;

/// An end of MPI that never comes.
const NO_END: &str = "#include <unistd.h>\nint MPI_Finalize(void) { for (;;) pause(); }\n";

/// All of them.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for ranks in [1, 2, 3] {
        trials.push(launch::trial(Turn::Alone, format!("a command that is an MPI program is no rank, on {ranks} ranks"), move || {
            mpi_program(ranks)
        }));
    }
    trials.push(launch::trial(Turn::Alone, "a command that fails ends the job with its sentence", fails));
    trials.push(launch::trial(Turn::Alone, "a job that has failed ends even if MPI does not", ends));
    trials.push(launch::trial(Turn::Alone, "every line of a list of commands is executed once", once));
    // MPICH's hydra ends the job when ranks read slower than its buffer fills ("process reading stdin too slowly").
    if launch::is_open_mpi().unwrap_or(true) {
        trials.push(launch::trial(Turn::Alone, "standard input is divided", standard_input));
    }
    trials.push(launch::trial(Turn::Alone, "RUST_LOG=trace logs launch, phase and each message with rank and node", logs));
    trials.push(launch::trial(Turn::Alone, "an input that is rewritten in place ends the job", rewritten));
    for ranks in [1, 3, 5] {
        let name = format!("a balancer without a way within the capacity is left out of a comparison, on {ranks} ranks");
        trials.push(launch::trial(Turn::Alone, name, move || left_out(ranks)));
    }
    trials
}

struct Place(TempDir);

impl Place {
    fn new() -> Result<Place, Failed> {
        Ok(Place(tempfile::tempdir()?))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failed> {
        let path = self.0.path().join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    /// A program, built by the compiler of the MPI at hand.
    fn built(&self, source: &str, options: &[&str]) -> Result<PathBuf, Failed> {
        let source = self.write("source.c", source)?;
        let program = self.0.path().join("built");
        let compiler = std::env::var_os("MPICC").unwrap_or_else(|| "mpicc".into());
        let built = Command::new(&compiler).args(options).arg("-o").arg(&program).arg(source).output()?;
        match built.status.success() {
            true => Ok(program),
            false => Err(format!("{}: {}", compiler.display(), String::from_utf8_lossy(&built.stderr)).into()),
        }
    }
}

fn divide(ranks: u32, input: &Path, arguments: &[&str], stdin: Option<File>) -> Result<Outcome, String> {
    let input = input.to_string_lossy();
    let arguments = [&["divide", "--input", &input], arguments].concat();
    launch::under_mpirun(Path::new(env!("CARGO_BIN_EXE_equipoise")), &arguments, ranks, LIMIT, stdin)
}

fn judged(outcome: &Outcome, holds: Result<bool, String>) -> Result<(), Failed> {
    match holds {
        Ok(true) => Ok(()),
        Ok(false) => Err(outcome.told().into()),
        Err(why) => Err(format!("{why}\n{}", outcome.told()).into()),
    }
}

fn mpi_program(ranks: u32) -> Result<(), Failed> {
    let place = Place::new()?;
    let program = place.built(MPI_PROGRAM, &[])?;
    let input = place.write("input", &"a line\n".repeat(1000))?;
    let outcome = divide(ranks, &input, &["--command", &program.to_string_lossy()], None)?;
    judged(&outcome, outcome.expect(0, LIMIT, &[]).map(|()| outcome.stdout == "size 1\n".repeat(ranks as usize)))?;
    // One that fails, with its own end of MPI behind it.
    let outcome = divide(ranks, &input, &["--command", &format!("{} 7", program.display())], None)?;
    judged(&outcome, outcome.expect(1, Duration::from_secs(40), &[("it ended with status 7; there is no answer", 1)]).map(|()| true))?;
    let outcome =
        divide(ranks, &input, &["--command", "env | grep -E '^(OMPI_|PMIX_|PMI_|PRTE_|ORTE_|HYDRA|HYDI_|MPI_LOCAL)'; true"], None)?;
    judged(&outcome, outcome.expect(0, LIMIT, &[]).map(|()| outcome.stdout.is_empty()))
}

fn fails() -> Result<(), Failed> {
    let place = Place::new()?;
    let input = place.write("input", &"a line\n".repeat(1000))?;
    let outcome = divide(3, &input, &["--command", "cat >/dev/null; exit 3"], None)?;
    judged(
        &outcome,
        outcome
            .expect(1, Duration::from_secs(40), &[("it ended with status 3; there is no answer", 1)])
            .map(|()| outcome.stdout.is_empty()),
    )
}

fn ends() -> Result<(), Failed> {
    let place = Place::new()?;
    let input = place.write("input", &"a line\n".repeat(1000))?;
    let preload = format!("LD_PRELOAD={}", place.built(NO_END, &["-shared", "-fPIC"])?.display());
    let (program, input) = (env!("CARGO_BIN_EXE_equipoise"), input.to_string_lossy());
    let arguments = [&preload, program, "divide", "--input", &input, "--command", "exit 3"];
    let outcome = launch::under_mpirun(Path::new("/usr/bin/env"), &arguments, 2, LIMIT, None)?;
    judged(&outcome, outcome.expect(1, Duration::from_secs(40), &[("it ended with status 3; there is no answer", 1)]).map(|()| true))
}

fn once() -> Result<(), Failed> {
    let place = Place::new()?;
    let ran = place.0.path().join("ran");
    let lines: String = (1..=40).map(|line| format!("echo {line} >>'{}'; echo {line}\n", ran.display())).collect();
    let input = place.write("list", &lines)?;
    let outcome = divide(4, &input, &["--command", "sh"], None)?;
    let expected: String = (1..=40).map(|line| format!("{line}\n")).collect();
    judged(&outcome, outcome.expect(0, LIMIT, &[("(--sample)", 1)]).map(|()| outcome.stdout == expected))?;
    let mut executed: Vec<u32> = fs::read_to_string(&ran)?.lines().map(|line| line.parse().unwrap_or(0)).collect();
    executed.sort_unstable();
    if executed != (1..=40).collect::<Vec<_>>() {
        return Err(format!("executed: {executed:?}").into());
    }
    // With a sample some of them are, and the report says what was measured.
    let outcome = divide(2, &input, &["--command", "sh", "--sample"], None)?;
    judged(&outcome, outcome.expect(0, LIMIT, &[("measured, in", 1)]).map(|()| outcome.stdout == expected))?;
    if fs::read_to_string(&ran)?.lines().count() <= 80 {
        return Err("the sample was not executed".into());
    }
    Ok(())
}

/// On three ranks `refine` and `kk` find no order of moves within 16 bytes a rank, and `greedy` does. On five there is room enough, and on one nothing moves.
fn left_out(ranks: u32) -> Result<(), Failed> {
    const TASKS: [[u32; 3]; 7] = [[0, 6, 5], [1, 5, 3], [1, 1, 2], [2, 8, 4], [1, 1, 3], [1, 1, 8], [2, 9, 5]];
    let place = Place::new()?;
    let row = |[rank, work, bytes]: [u32; 3]| format!("{},{work},{bytes}\n", rank % ranks);
    let tasks = place.write("tasks.csv", &format!("rank,work,bytes\n{}", TASKS.map(row).concat()))?;
    let tasks = tasks.to_string_lossy();
    let capacity = if ranks == 1 { "30" } else { "16" };
    let line =
        ["compare", "--tasks", &tasks, "--balancer", "greedy,refine,kk", "--capacity", capacity, "--repeat", "6", "--output", "json"];
    let outcome = launch::under_mpirun(Path::new(env!("CARGO_BIN_EXE_equipoise")), &line, ranks, LIMIT, None)?;
    let all = ["greedy", "refine", "kk"];
    let (run, refused): (&[&str], &[&str]) = if ranks == 3 { (&all[..1], &all[1..]) } else { (&all, &[]) };
    outcome.expect(0, LIMIT, &[])?;
    let records = all.map(|name| outcome.stdout.matches(&format!("{{\"balancer\":\"{name}\",")).count());
    let remarks =
        all.map(|name| outcome.stderr.matches(&format!(".csv: {name}: capacity: it fits afterwards, not on the way: rank ")).count());
    let expected = all.map(|name| (usize::from(run.contains(&name)), usize::from(refused.contains(&name))));
    judged(&outcome, Ok(records == expected.map(|one| one.0) && remarks == expected.map(|one| one.1)))?;
    if ranks == 3 {
        // If all are, it is an error.
        let line = [&line[..4], &["refine,kk"], &line[5..]].concat();
        let outcome = launch::under_mpirun(Path::new(env!("CARGO_BIN_EXE_equipoise")), &line, ranks, LIMIT, None)?;
        judged(&outcome, outcome.expect(2, LIMIT, &[("capacity: it fits afterwards, not on the way: rank ", 1)]).map(|()| true))?;
    }
    Ok(())
}

fn logs() -> Result<(), Failed> {
    let balance = |filter: &str| {
        let filter = format!("RUST_LOG={filter}");
        let arguments = [&filter, env!("CARGO_BIN_EXE_equipoise"), "balance", "--balancer", "cwa", "--loads", "9,0", "--output", "quiet"];
        launch::under_mpirun(Path::new("/usr/bin/env"), &arguments, 2, LIMIT, None)
    };
    let outcome = balance("trace")?;
    outcome.expect(0, LIMIT, &[])?;
    for parts in [
        &["DEBUG", "rank 1 of 2 on "][..],
        &["DEBUG", "rank 1: run ", " begins on ", "nodes [1] are here"],
        &["DEBUG", "rank 0 node 0 at ", " begins a phase with 9 units of work"],
        &["TRACE", "rank 1 node 1 at ", " sends 'cwa sub-cube load' to node 0"],
        &["TRACE", "rank 0: 'cwa sub-cube load' from node 1 arrives for node 0"],
        &["DEBUG", "rank 0 node 0 at ", " sends 'tasks' to node 1", " 4 tasks"],
        &["DEBUG", "rank 1 closes its world"],
    ] {
        let holds = |line: &str| {
            let mut rest = line;
            parts.iter().all(|part| rest.split_once(part).map(|(_, after)| rest = after).is_some())
        };
        if !outcome.stderr.lines().any(holds) {
            return Err(format!("{parts:?} is not in the log\n{}", outcome.told()).into());
        }
    }
    let quiet = balance("error")?;
    judged(&quiet, quiet.expect(0, LIMIT, &[]).map(|()| !quiet.stderr.contains("rank ")))
}

fn standard_input() -> Result<(), Failed> {
    if !launch::ends_standard_input() {
        eprintln!("the launcher does not pass the end of standard input on: NOT TESTED with it");
        return Ok(());
    }
    let place = Place::new()?;
    let text = "some words\n".repeat(50_000);
    let input = place.write("input", &text)?;
    // As a file, and through a pipe that somebody writes slowly.
    let outcome = launch::despite_crashes(|| Ok(divide(3, Path::new("-"), &["--kernel", "count"], Some(File::open(&input)?))?))?;
    judged(&outcome, outcome.expect(0, LIMIT, &[("count of standard input", 1)]).map(|()| outcome.stdout == "50000 100000 550000\n"))?;
    let outcome = launch::despite_crashes(|| {
        let script = format!("sleep 3; cat '{}'", input.display());
        let mut slow = Command::new("sh").args(["-c", &script]).stdout(std::process::Stdio::piped()).spawn()?;
        let pipe = File::from(std::os::fd::OwnedFd::from(slow.stdout.take().ok_or("no pipe")?));
        let outcome = divide(3, Path::new("-"), &["--kernel", "grep=some", "--timeout", "1"], Some(pipe))?;
        slow.wait()?;
        Ok(outcome)
    })?;
    judged(&outcome, outcome.expect(0, LIMIT, &[]).map(|()| outcome.stdout == "50000\n"))
}

fn rewritten() -> Result<(), Failed> {
    let place = Place::new()?;
    let input = place.write("input", &"no y here at all\n".repeat(400_000))?;
    let path = input.clone();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(2500));
        let file = File::options().write(true).open(path)?;
        std::os::unix::fs::FileExt::write_all_at(&file, "yyyyyyyyyyyyyyyy\n".repeat(400_000).as_bytes(), 0)
    });
    let outcome = divide(3, &input, &["--kernel", "grep=yyy", "--speeds", "1,1,1", "--rate", "400k"], None)?;
    writer.join().map_err(|_| "the writer died")??;
    judged(&outcome, outcome.expect(1, LIMIT, &[("was written to while it was read", 1)]).map(|()| outcome.stdout.is_empty()))
}
