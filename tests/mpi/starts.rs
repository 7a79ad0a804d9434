//! The program, started with different arguments on different ranks: nobody waits, and one sentence says what differs.

use std::time::Duration;

use crate::launch::{Book, Outcome, equipoise};

pub fn enter(book: &mut Book) {
    book.check("ranks with different arguments are refused", different);
    book.check("ranks with different commands are refused, whether they need ranks or not", commands);
    book.check("what is wrong on one rank is said once", refusals);
    book.check("ranks that are started alike go on", alike);
}

fn judged(parts: &[(u32, &str)], judge: impl Fn(&Outcome) -> Result<(), String>) -> Result<(), String> {
    let outcome = equipoise(parts)?;
    judge(&outcome).map_err(|why| format!("{parts:?}: {why}\n{}", outcome.told()))
}

/// Refused within seconds, with this sentence, in the only line that is ours.
fn refused(parts: &[(u32, &str)], sentence: &str) -> Result<(), String> {
    judged(parts, |outcome| {
        outcome.expect(2, Duration::from_secs(30), &[(&format!("equipoise: {sentence}"), 1), ("equipoise: ", 1), ("panicked", 0)])
    })
}

fn different() -> Result<(), String> {
    let end = "; all ranks must be started alike\n";
    for (first, other, sentence) in [
        (
            "run --workload queens:n=8",
            "run --workload queens:n=9",
            "rank 1 was started with --workload queens:n=9, rank 0 with --workload queens:n=8",
        ),
        ("run --scheduler steal", "run --scheduler random", "rank 1 was started with --scheduler random, rank 0 with --scheduler steal"),
        ("run --workers 1", "run --workers 2", "rank 1 was started with --workers 2, rank 0 with --workers 1"),
        ("balance --balancer cwa", "balance --balancer mwa", "rank 1 was started with --balancer mwa, rank 0 with --balancer cwa"),
        ("balance", "balance --seed 2", "rank 1 was started with --seed 2, rank 0 with --seed 1"),
        ("balance", "balance --payload 100", "rank 1 was started with --payload 100, rank 0 with --payload 0"),
        ("balance --judge", "balance", "rank 1 was started without --judge, rank 0 with --judge"),
        ("compare --repeat 2", "compare --repeat 3", "rank 1 was started with --repeat 3, rank 0 with --repeat 2"),
        (
            "compare --loads 1,2,3 --loads zero",
            "compare --loads 1,2,3",
            "rank 1 was started with --loads 1,2,3, rank 0 with --loads 1,2,3 zero",
        ),
        (
            "divide --input Cargo.toml --kernel count",
            "divide --input Cargo.toml --kernel histogram",
            "rank 1 was started with --kernel histogram, rank 0 with --kernel count",
        ),
        ("divide --model --topology ring:4", "divide --model --topology ring:5", "rank 1 was started with --topology ring:5"),
        ("reproduce --figure 14", "reproduce --figure 15", "rank 1 was started with --figure 15, rank 0 with --figure 14"),
        ("list --ranks 4", "list", "rank 1 was started with --ranks 8, rank 0 with --ranks 4"),
        ("balance --sim 4", "balance --sim 5", "rank 1 was started with --sim 5, rank 0 with --sim 4"),
        ("balance", "balance --sim 4", "rank 1 was started with --sim 4, rank 0 without --sim"),
    ] {
        // A sentence without its second half is the beginning.
        let sentence = if sentence.contains("rank 0") { format!("{sentence}{end}") } else { sentence.to_string() };
        refused(&[(1, first), (1, other)], &sentence)?;
    }
    // Of several the first is named, and nobody is left waiting.
    refused(
        &[(3, "balance"), (1, "balance --seed 7"), (1, "balance --seed 9")],
        "rank 3 was started with --seed 7, rank 0 with --seed 1; all ranks must be started alike\n",
    )
}

fn commands() -> Result<(), String> {
    for (first, other) in [
        ("balance", "compare"),
        ("run", "balance"),
        ("list", "balance --timeout 5"),
        ("balance", "list"),
        ("compare", "reproduce --figure 14 --cases 2"),
        ("divide --model --topology ring:4", "run"),
        ("run", "--version"),
    ] {
        let command = |arguments: &str| arguments.split(' ').next().unwrap_or_default().to_string();
        let sentence =
            format!("rank 1 was started with `{}`, rank 0 with `{}`; all ranks must be started alike\n", command(other), command(first));
        refused(&[(1, first), (1, other)], &sentence)?;
    }
    Ok(())
}

fn refusals() -> Result<(), String> {
    let unexpected = "unexpected argument '--lods' found";
    refused(&[(3, "balance --lods 3")], unexpected)?;
    refused(&[(1, "balance"), (2, "balance --lods 3")], &format!("rank 1: {unexpected}"))?;
    refused(&[(1, "balance --lods 3"), (2, "balance")], unexpected)?;
    refused(&[(3, "balance --balancer magic")], "--balancer 'magic' is unknown")?;
    refused(&[(2, "run"), (1, "run --scheduler magic")], "rank 2: --scheduler 'magic' is unknown")?;
    refused(&[(1, "list"), (1, "list --ranks 0")], "rank 1: invalid value '0' for '--ranks <RANKS>'")
}

fn alike() -> Result<(), String> {
    let minute = Duration::from_secs(60);
    judged(&[(2, "list --output json"), (1, "list --output json")], |outcome| match outcome.stdout.lines().count() {
        1 => outcome.expect(0, minute, &[("equipoise", 0)]),
        lines => Err(format!("{lines} lines instead of 1")),
    })?;
    judged(&[(3, "balance --sim 4 --output json")], |outcome| match outcome.stdout.lines().count() {
        1 => outcome.expect(0, minute, &[("equipoise", 0)]),
        lines => Err(format!("{lines} lines instead of 1")),
    })?;
    judged(&[(2, "--version")], |outcome| match outcome.stdout.matches("equipoise ").count() {
        1 if outcome.stdout.contains("\nMPI ") => outcome.expect(0, minute, &[]),
        _ => Err("it should say the version once, and which MPI".into()),
    })?;
    // Rank 0 writes the file; that others would write another one is no matter.
    judged(&[(1, "compare --repeat 1 --csv /dev/null"), (2, "compare --repeat 1 --csv /no/such/folder/x")], |outcome| {
        outcome.expect(0, minute, &[("equipoise", 0)])
    })?;
    // A list for the ranks, where the topology has virtual nodes.
    judged(&[(6, "balance --loads 30,0,0,0,10,2 --output json")], |outcome| {
        match outcome.stdout.contains("\"loads\":[30,0,0,0,10,2,0,0]") {
            true => outcome.expect(0, minute, &[("equipoise", 0)]),
            false => Err("the real nodes should have the loads".into()),
        }
    })
}
