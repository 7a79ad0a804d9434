//! One input divided layer by layer, as Blazewicz and Drozdowski 1995 have it, and from any rank: right answers, and over emulated links the model's
//! finish times.

use std::time::Duration;

use equipoise::topology::{Overlay, RankId, Topology};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::spread::{Distribution, LayeredForm, SpreadOutcome, SpreadSpec};
use equipoise_lab::workload::kernels::{Computation, OkStatus};

use crate::contract::Case;
use crate::divide::{check, divided, input, prose, same, spec, within};
use crate::files::file;
use crate::launch::{Book, Suite};

pub fn enter(book: &mut Book) {
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(60)));
    book.suite(Suite {
        name: "layers",
        ranks: &[1, 2, 4, 8],
        more: &[16],
        limit: Duration::from_secs(150),
        options: options.clone(),
        cases: vec![
            Case { name: "all kernels in layers", check: in_layers },
            Case { name: "failures in layers", check: failing_in_layers },
        ],
    });
    book.suite(Suite {
        name: "origins",
        ranks: &[1, 2, 3, 5, 8],
        more: &[],
        limit: Duration::from_secs(150),
        options,
        cases: vec![
            Case { name: "the load lies on any rank", check: from_any_rank },
            Case { name: "layers of a mesh", check: in_layers_of_a_mesh },
        ],
    });
    for ranks in [2, 4, 8, 16] {
        book.job(
            match ranks {
                2 => "2 ranks finish together over emulated links",
                4 => "4 ranks finish together over emulated links",
                8 => "8 ranks finish together over emulated links",
                _ => "16 ranks finish together over emulated links",
            },
            ranks,
            || within(over_emulated_links),
            |outcome| outcome.expect(0, Duration::MAX, &[]),
        );
    }
    book.job(
        "an originator that is not there",
        3,
        || within(|world| from_rank(world, RankId::new(3), "count", |_| {})),
        |outcome| outcome.expect(2, Duration::from_secs(60), &[("origin 3: there is no such rank; there are 3, counted from 0", 1)]),
    );
    for (name, ranks) in [("3 ranks have no layers", 3), ("5 ranks have no layers", 5)] {
        book.job(
            name,
            ranks,
            || within(in_layers),
            |outcome| outcome.expect(2, Duration::from_secs(60), &[("distribution hypercube: it needs a power of two of ranks", 1)]),
        );
    }
}

fn layered(spec: &mut SpreadSpec) {
    (spec.distribution, spec.room) = (Distribution::Layers(LayeredForm::Hypercube), 1 << 30);
}

/// Divides what lies on one rank, and compares with the tool there; the file is on that rank only.
fn from_rank(world: &mut World, origin: RankId, kernel: &str, change: impl Fn(&mut SpreadSpec)) -> Result<()> {
    let text = prose(300_000);
    let file = file(&text);
    if !world.held().contains(&origin) {
        std::fs::remove_file(&file).expect("a temporary file can be removed");
    }
    let ranks = world.ranks();
    check(world, &file, kernel, |spec| {
        spec.origin = origin;
        change(spec);
    })
    .map_err(|why| if origin.get() < ranks { Error::Failed(format!("{kernel} from rank {origin}: {why}")) } else { why })
}

/// The tree, the layers of a hypercube where there is one, and programs, from every rank.
fn from_any_rank(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    for origin in RankId::all(ranks) {
        from_rank(world, origin, "count", |spec| spec.baselines = origin.get() + 1 == ranks)?;
        from_rank(world, origin, "checksum", |spec| spec.installments = Some(3))?;
        if ranks.is_power_of_two() {
            from_rank(world, origin, "histogram=numbers", layered)?;
        }
    }
    let last = RankId::new(ranks - 1);
    let text = prose(200_000);
    let file = file(&text);
    let command = Computation::Command { command: "cat".into(), ok: OkStatus::default() };
    let mut spec = spec(world, &file, command)?;
    spec.origin = last;
    let (is_there, divided) = (world.held().contains(&last), divided(world, &spec)?);
    same("who has the output", divided.is_some(), is_there)?;
    let Some((outcome, output)) = divided else { return Ok(()) };
    same("the origin", outcome.record.origin, last)?;
    same("what the programs wrote", output == text, true)
}

/// A mesh of all ranks, from the corner and from the middle.
fn in_layers_of_a_mesh(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let overlay = Overlay::new(Topology::parse(&LayeredForm::Mesh.topology(ranks), ranks)?, world.hosts())?;
    for origin in [0, ranks / 2, ranks - 1].map(RankId::new) {
        for kernel in ["count", "grep=error", "histogram", "histogram=numbers", "checksum"] {
            from_rank(world, origin, kernel, |spec| {
                layered(spec);
                (spec.distribution, spec.overlay) = (Distribution::Layers(LayeredForm::Mesh), overlay.clone());
            })?;
        }
    }
    Ok(())
}

/// Ranks and links that all take five microseconds for a byte: finish times are those of the paper's model, 10 % at most away.
fn over_emulated_links(world: &mut World) -> Result<()> {
    /// Other load on the machine may disturb a run.
    const ATTEMPTS: usize = 4;
    const BYTES: usize = 1_000_000;
    const PER_BYTE: f64 = 5e-6;
    let ranks = world.ranks();
    let input = input(world, &if world.is_first() { prose(BYTES) } else { Vec::new() });
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut spec = spec(world, &input, Computation::Bytes)?;
        layered(&mut spec);
        (spec.pace, spec.link) = (Some(vec![PER_BYTE; ranks as usize]), Some(PER_BYTE));
        let held = divided(world, &spec)?.is_none_or(|(SpreadOutcome { record, .. }, _)| {
            let layers = record.layers.as_ref().expect("a layered distribution");
            // For w Tcp = z Tcm all finish after alpha_0 of what one rank takes.
            let model = layers.alpha[0] * PER_BYTE * record.bytes as f64;
            let off = record.finish.iter().map(|finish| (finish / model - 1.0).abs()).fold(0.0, f64::max);
            seen.push((off, record.spread));
            off <= 0.1 && record.spread <= 0.1
        });
        if equipoise_lab::experiment::settle::from_first(world, || Ok(held))? {
            return Ok(());
        }
    }
    Err(Error::Failed(format!("finish times against the model's, and their spread: {seen:?}")))
}

/// All kernels, on texts that are shorter than there are ranks, of a few records, and of a megabyte and a half.
fn in_layers(world: &mut World) -> Result<()> {
    let long = prose(if world.is_first() { 3 << 19 } else { 0 });
    let texts: [&[u8]; 5] = [b"", b"x", b"error\n\n1 \xff\nlast error", &b"1\n2\n2\n10\n010\n\n".repeat(500), &long];
    for (index, text) in texts.into_iter().enumerate() {
        let input = input(world, text);
        for kernel in ["count", "grep=error", "histogram", "histogram=numbers", "checksum"] {
            check(world, &input, kernel, layered).map_err(|why| match index {
                0 => why,
                _ => Error::Failed(format!("text {index}: {why}")),
            })?;
        }
    }
    let input = input(world, &long);
    let mut spec = spec(world, &input, Computation::Command { command: "cat".into(), ok: OkStatus::default() })?;
    layered(&mut spec);
    let Some((outcome, output)) = divided(world, &spec)? else { return Ok(()) };
    same("cat", output.len(), long.len())?;
    same("bytes of cat", output == long, true)?;
    // All ranks of a layer get as much, to a record.
    let shares = outcome.record.shares;
    let differ = |(node, share): (u32, &u64)| share.abs_diff(shares[(1usize << node.count_ones()) - 1]) > 1000;
    same("nodes whose share is not that of their layer", (0..).zip(&shares).filter(|share| differ(*share)).count(), 0)
}

/// A program that fails on one share fails the division on all ranks, and the ranks can go on.
fn failing_in_layers(world: &mut World) -> Result<()> {
    let input = input(world, &b"a line\n".repeat(2000));
    let mut spec = spec(world, &input, Computation::Command { command: "exit 7".into(), ok: OkStatus::default() })?;
    layered(&mut spec);
    let why = divided(world, &spec).map(|_| ()).err().map(|why| why.to_string()).unwrap_or_default();
    same("a status that is wrong", why.contains("status 7"), true)?;
    check(world, &input, "count", layered)
}
