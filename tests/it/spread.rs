//! One input divided over simulated ranks: the answers do not depend on ranks, topology, installments or memory, and the plan holds.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use equipoise::Result;
use equipoise::topology::{Overlay, RankId, Topology};
use equipoise::transport::{sim, world::World};
use equipoise_lab::divisible::spread::Records;
use equipoise_lab::experiment::spread::{Answer, Distribution, LayeredForm, SpreadOutcome, SpreadSpec, spread};
use equipoise_lab::workload::kernels::{Computation, OkStatus, Reduce};

use crate::files::file;

fn spec(input: &Path, computation: &str, topology: &str, ranks: u32) -> SpreadSpec {
    SpreadSpec {
        input: input.into(),
        raw: false,
        computation: Computation::parse(computation, false).unwrap(),
        reduce: Reduce::Concat,
        records: Records::Lines,
        overlay: Overlay::one_host(Topology::parse(topology, ranks).unwrap(), ranks).unwrap(),
        distribution: Distribution::Tree,
        origin: RankId::FIRST,
        link: None,
        installments: None,
        calibration: None,
        pace: Some(vec![100e-9; ranks as usize]),
        room: 1 << 30,
        patience: std::time::Duration::from_secs(60),
        baselines: false,
        sample: false,
        seed: 1,
    }
}

fn divided(spec: &SpreadSpec) -> Result<(SpreadOutcome, Vec<u8>)> {
    // A rank has one port, as on real networks.
    let network = sim::Network::parse("switched:contention").unwrap();
    let mut world = World::simulated(spec.overlay.placement.ranks(), sim::Model { network, ..sim::Model::default() });
    let output = Rc::new(RefCell::new(Vec::new()));
    let sink = output.clone();
    let take = move |bytes: &[u8]| {
        sink.borrow_mut().extend_from_slice(bytes);
        Ok(())
    };
    let outcome = spread(&mut world, spec, Box::new(take), Arc::new(|_, _| {}))?.expect("rank 0 is here");
    Ok((outcome, output.take()))
}

fn text(lines: usize) -> Vec<u8> {
    (0..lines).flat_map(|line| format!("line {line} {}\n", "x".repeat(line * 7 % 90)).into_bytes()).collect()
}

#[test]
fn the_answer_is_the_same_however_it_is_divided() {
    let text = text(6_000);
    let input = file(&text);
    for topology in ["hypercube", "mesh", "torus", "tree:binary", "tree:kary=3", "grid", "line", "ring", "complete"] {
        for ranks in [1, 2, 3, 7, 12] {
            let mut spec = spec(&input, "checksum", topology, ranks);
            spec.installments = Some(1 + ranks % 4);
            let (outcome, _) = divided(&spec).unwrap();
            assert_eq!(outcome.answer, Answer::Checksum(blake3::hash(&text).to_hex().to_string()), "{topology} of {ranks}");
            assert_eq!(outcome.record.shares.iter().sum::<u64>(), text.len() as u64);
        }
    }
}

#[test]
fn the_plan_holds_in_simulation() {
    let input = file(text(50_000));
    for (ranks, topology) in
        [(2, "hypercube"), (5, "hypercube"), (8, "hypercube"), (16, "hypercube"), (9, "mesh"), (6, "line"), (8, "complete")]
    {
        for installments in [None, Some(1), Some(4)] {
            let mut spec = spec(&input, "count", topology, ranks);
            spec.installments = installments;
            spec.pace = Some((0..ranks).map(|rank| 50e-9 * f64::from(1 + rank % 3)).collect());
            let record = divided(&spec).unwrap().0.record;
            let case = format!(
                "{topology} of {ranks} in {}: spread {}, makespan {} instead of {}",
                record.installments, record.spread, record.makespan, record.predicted
            );
            assert!((record.makespan / record.predicted - 1.0).abs() < 0.05, "{case}");
            assert!(record.spread < 0.05, "{case}");
            assert!(record.speedup > 1.0 && record.links.len() as u32 == ranks - 1, "{case}");
        }
    }
}

#[test]
fn a_prediction_includes_the_way_home_of_the_answers() {
    let input = file(text(2_000));
    // Beginning to send takes longer than all else.
    let network = sim::Network::parse("hops:latency=50ms,per_byte=1ns,contention").unwrap();
    for (ranks, topology) in [(2, "line"), (5, "line"), (8, "hypercube")] {
        let mut spec = spec(&input, "count", topology, ranks);
        spec.pace = Some(vec![20e-6; ranks as usize]);
        let mut world = World::simulated(ranks, sim::Model { network: network.clone(), ..sim::Model::default() });
        let record = spread(&mut world, &spec, Box::new(|_| Ok(())), Arc::new(|_, _| {})).unwrap().expect("rank 0 is here").record;
        let case = format!("{topology} of {ranks}: {} instead of {}", record.makespan, record.predicted);
        assert!(
            record.shares.iter().filter(|share| **share > 0).count() > 1 && (record.makespan / record.predicted - 1.0).abs() < 0.02,
            "{case}"
        );
    }
}

#[test]
fn times_that_cannot_be_counted_are_refused() {
    let input = file(text(100));
    let mut spec = spec(&input, "count", "complete", 2);
    spec.pace = Some(vec![100e-9, 1e8]);
    let why = divided(&spec).map(|_| ()).unwrap_err();
    assert!(why.exit_status() == 2 && why.to_string().starts_with("--rate and --speeds: at 1.000e8 s a byte"), "{why}");
}

#[test]
fn little_memory_is_enough() {
    let text = text(150_000);
    let input = file(&text);
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("costs");
    let mut spec = spec(&input, "count", "hypercube", 4);
    spec.calibration = Some(kept.clone());
    divided(&spec).unwrap();
    // Rank 3 is far slower than it was when it was measured: its sender must wait for it. That is refused if the calibration shows it.
    spec.pace = Some(vec![100e-9, 100e-9, 100e-9, 5e-6]);
    let refused = divided(&spec).map(|_| ()).unwrap_err();
    assert!(refused.exit_status() == 2 && refused.to_string().contains("it was measured with --rate and --speeds 0.0000001,"), "{refused}");
    let text_of_costs = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, text_of_costs.replace("0.0000001 s a byte", "0.000005 s a byte")).unwrap();
    spec.room = 300_000;
    spec.installments = Some(1);
    spec.baselines = true;
    let (outcome, _) = divided(&spec).unwrap();
    let why = outcome.record.why.as_deref().unwrap_or_default();
    assert!(why.starts_with("chunks on demand was ") && why.contains("rank 3 computed 4900 % slower than when it was measured"), "{why}");
    let most = outcome.record.split.iter().map(|split| split.most_waiting).max().unwrap();
    assert!(most > 300_000 && most <= 300_000 + (1 << 20), "{most}");
    assert!(outcome.record.installments > 1 && outcome.record.bytes == text.len() as u64);
    assert!(matches!(outcome.answer, Answer::Counts(counts) if counts.bytes == text.len() as u64));
}

#[test]
fn every_way_gives_the_same_answer_and_division_is_the_fastest() {
    let input = file(text(40_000));
    let mut spec = spec(&input, "grep=x{60}", "hypercube", 8);
    spec.pace = Some(vec![100e-9, 400e-9, 100e-9, 200e-9, 100e-9, 100e-9, 300e-9, 100e-9]);
    spec.baselines = true;
    let record = divided(&spec).unwrap().0.record;
    assert_eq!(record.baselines.len(), 3);
    assert!(record.sequential_is_measured && record.baselines.iter().all(|baseline| baseline.ratio >= 1.0), "{record:?}");
    assert_eq!(record.why, None);
}

#[test]
fn programs_run_on_simulated_ranks() {
    let text = text(3_000);
    let input = file(&text);
    let mut spec = spec(&input, "count", "hypercube", 5);
    spec.computation = Computation::Command { command: "cat".into(), ok: OkStatus::default() };
    let (outcome, output) = divided(&spec).unwrap();
    assert!(output == text && matches!(outcome.answer, Answer::Written { status: 0, silent: 0, shares: 5 }), "{:?}", outcome.answer);
    spec.computation = Computation::Command { command: "exit 7".into(), ok: OkStatus::default() };
    let why = divided(&spec).map(|_| ()).unwrap_err();
    assert!(why.exit_status() == 1 && why.to_string().contains("status 7"), "{why}");
}

#[test]
fn a_calibration_is_kept_and_judged() {
    let input = file(text(1_000));
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("costs");
    let mut spec = spec(&input, "count", "hypercube", 4);
    spec.calibration = Some(kept.clone());
    let first = divided(&spec).unwrap().0.record;
    assert!(first.calibration.starts_with("measured, and written to "), "{}", first.calibration);
    let again = divided(&spec).unwrap().0.record;
    assert!(again.calibration.starts_with("read from "), "{}", again.calibration);
    assert_eq!((again.shares, again.makespan), (first.shares, first.makespan));
    spec.computation = Computation::parse("histogram", false).unwrap();
    let why = divided(&spec).map(|_| ()).unwrap_err();
    assert!(why.exit_status() == 2 && why.to_string().contains("kernel count, now it is histogram"), "{why}");
    std::fs::write(&kept, "{}").unwrap();
    let why = divided(&spec).map(|_| ()).unwrap_err().to_string();
    assert!(why.contains("no calibration that was written here"), "{why}");
}

/// Divides by the layered distribution, on a hypercube whose every directed link takes 200 ns a byte, as a node does to compute.
fn in_layers(input: &Path, computation: &str, dimension: u32, records: Records) -> SpreadOutcome {
    let ranks = 1 << dimension;
    let mut spec = spec(input, computation, "hypercube", ranks);
    (spec.distribution, spec.records, spec.pace) =
        (Distribution::Layers(LayeredForm::Hypercube), records, Some(vec![200e-9; ranks as usize]));
    let network = sim::Network::parse("hops:latency=1us,per_byte=200ns,contention").unwrap();
    let mut world = World::simulated(ranks, sim::Model { network, ..sim::Model::default() });
    spread(&mut world, &spec, Box::new(|_| Ok(())), Arc::new(|_, _| {})).unwrap().expect("rank 0 is here")
}

#[test]
fn the_layered_distribution_is_as_fast_as_the_papers_equations_say() {
    let text = text(45_000);
    let input = file(&text);
    // For w Tcp = z Tcm.
    let speedups = [1.0, 3.0 / 2.0, 15.0 / 7.0, 35.0 / 12.0, 315.0 / 83.0, 693.0 / 146.0];
    for (dimension, speedup) in (0..).zip(speedups) {
        let SpreadOutcome { answer, record } = in_layers(&input, "count", dimension, Records::Lines);
        let layers = record.layers.as_ref().unwrap();
        let case = format!("dimension {dimension}: {layers:?}, spread {}, {} against {}", record.spread, record.makespan, record.predicted);
        assert!((layers.speedup / speedup - 1.0).abs() < 0.03 && (layers.model_speedup / speedup - 1.0).abs() < 0.01, "{case}");
        assert!((layers.utilisation / (speedup / f64::from(1 << dimension)) - 1.0).abs() < 0.03, "{case}");
        // All ranks finish together, when it was predicted.
        assert!(record.spread < 0.02 && (record.predicted / record.makespan - 1.0).abs() < 0.02, "{case}");
        // Answers are short: they cost some microseconds.
        assert!(record.speedup <= layers.speedup && record.speedup > 0.99 * layers.speedup, "{case}");
        assert!(matches!(answer, Answer::Counts(counts) if counts.bytes == text.len() as u64));
        // Each rank sends over all its links to the next layer, and each layer's shares are alike.
        assert_eq!(record.links.len(), (dimension << dimension >> 1) as usize, "{case}");
    }
}

#[test]
fn the_layered_distribution_gives_the_same_answers() {
    let text = text(3_000);
    let input = file(&text);
    let expected = Answer::Checksum(blake3::hash(&text).to_hex().to_string());
    for dimension in 0..=5 {
        assert_eq!(in_layers(&input, "checksum", dimension, Records::Lines).answer, expected, "{dimension}");
    }
    for input in [file(""), file("no newline"), file("\n"), file("a\nb\nc\n")] {
        for kernel in ["count", "checksum", "histogram", "histogram=numbers", "grep=b"] {
            let layered = in_layers(&input, kernel, 3, Records::Lines).answer;
            assert_eq!(layered, divided(&spec(&input, kernel, "hypercube", 8)).unwrap().0.answer, "{kernel}");
        }
    }
}

#[test]
fn the_load_may_lie_on_any_rank() {
    let text = text(6_000);
    let input = file(&text);
    let expected = Answer::Checksum(blake3::hash(&text).to_hex().to_string());
    for (topology, ranks, distribution) in [
        ("hypercube", 8, Distribution::Tree),
        ("hypercube", 5, Distribution::Tree),
        ("mesh", 6, Distribution::Tree),
        ("tree:binary", 7, Distribution::Tree),
        ("complete", 3, Distribution::Tree),
        ("hypercube", 8, Distribution::Layers(LayeredForm::Hypercube)),
        ("mesh:4x3", 12, Distribution::Layers(LayeredForm::Mesh)),
        ("mesh:2x2x2", 8, Distribution::Layers(LayeredForm::Mesh)),
        ("mesh:5", 5, Distribution::Layers(LayeredForm::Mesh)),
    ] {
        for origin in RankId::all(ranks) {
            let mut spec = spec(&input, "checksum", topology, ranks);
            (spec.distribution, spec.origin, spec.baselines) = (distribution, origin, origin.get() == 1);
            let outcome = divided(&spec).unwrap().0;
            assert_eq!(outcome.answer, expected, "{topology} of {ranks} from {origin}");
            assert_eq!((outcome.record.origin, outcome.record.shares.iter().sum::<u64>()), (origin, text.len() as u64));
        }
    }
    let mut spec = spec(&input, "count", "hypercube", 3);
    spec.origin = RankId::new(3);
    let why = divided(&spec).map(|_| ()).unwrap_err();
    assert_eq!((why.to_string(), why.exit_status()), ("origin 3: there is no such rank; there are 3, counted from 0".into(), 2));
}

#[test]
fn an_empty_input_leaves_no_calibration() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("calibration.json");
    let empty = file("");
    let mut spec = spec(&empty, "count", "hypercube", 2);
    spec.calibration = Some(kept.clone());
    assert_eq!(divided(&spec).unwrap().0.record.calibration, "measured");
    assert!(!kept.exists());
}

#[test]
fn the_progress_rises_to_the_whole() {
    let input = file(text(20_000));
    let length = std::fs::metadata(&input).unwrap().len();
    for layered in [false, true] {
        let mut spec = spec(&input, "count", "hypercube", 4);
        if layered {
            spec.distribution = Distribution::Layers(LayeredForm::Hypercube);
        }
        let reported = Arc::new(Mutex::new(Vec::new()));
        let sink = reported.clone();
        let mut world = World::simulated(4, sim::Model::default());
        spread(&mut world, &spec, Box::new(|_| Ok(())), Arc::new(move |done, of| sink.lock().unwrap().push((done, of)))).unwrap();
        let reported = reported.lock().unwrap();
        assert!(reported.len() > 4 && reported.is_sorted() && reported.iter().all(|(_, of)| *of == length), "{reported:?}");
        assert_eq!(reported.last(), Some(&(length, length)));
    }
}

#[test]
fn a_hypercube_divides_alike_from_every_rank() {
    let input = file(text(20_000));
    for origin in [0, 5, 7].map(RankId::new) {
        let mut spec = spec(&input, "count", "hypercube", 8);
        let pace = Some(vec![200e-9; 8]);
        (spec.distribution, spec.origin, spec.pace) = (Distribution::Layers(LayeredForm::Hypercube), origin, pace);
        let network = sim::Network::parse("hops:latency=1us,per_byte=200ns,contention").unwrap();
        let mut world = World::simulated(8, sim::Model { network, ..sim::Model::default() });
        let record = spread(&mut world, &spec, Box::new(|_| Ok(())), Arc::new(|_, _| {})).unwrap().expect("all ranks are here").record;
        let speedup = record.layers.as_ref().unwrap().speedup;
        assert!((speedup / (35.0 / 12.0) - 1.0).abs() < 0.03 && record.spread < 0.02, "{origin}: {speedup}, {}", record.spread);
        // The originator's share is the largest.
        assert_eq!(record.shares.iter().max(), Some(&record.shares[origin.index()]));
    }
}

#[test]
fn the_layers_of_a_mesh_take_what_is_predicted() {
    let input = file(text(45_000));
    for (topology, ranks, origin, least) in
        [("mesh:3x1", 3, 0, 1.58), ("mesh:3x1", 3, 1, 1.98), ("mesh:4x4", 16, 0, 2.0), ("mesh:4x4", 16, 5, 3.0)]
    {
        let mut spec = spec(&input, "count", topology, ranks);
        let pace = Some(vec![200e-9; ranks as usize]);
        (spec.distribution, spec.origin, spec.pace) = (Distribution::Layers(LayeredForm::Mesh), RankId::new(origin), pace);
        let network = sim::Network::parse("hops:latency=1us,per_byte=200ns,contention").unwrap();
        let mut world = World::simulated(ranks, sim::Model { network, ..sim::Model::default() });
        let record = spread(&mut world, &spec, Box::new(|_| Ok(())), Arc::new(|_, _| {})).unwrap().expect("all ranks are here").record;
        let layers = record.layers.as_ref().unwrap();
        let case = format!("{topology} from {origin}: {layers:?}, {} against {}", record.makespan, record.predicted);
        assert!((record.makespan / record.predicted - 1.0).abs() < 0.02, "{case}");
        assert!((layers.speedup / layers.model_speedup - 1.0).abs() < 0.03 && layers.speedup > least, "{case}");
    }
}

#[test]
fn the_layered_distribution_says_what_it_needs() {
    let input = file(text(1_000));
    let refused = |topology: &str, ranks: u32, room: u64| {
        let mut spec = spec(&input, "count", topology, ranks);
        (spec.distribution, spec.room) = (Distribution::Layers(LayeredForm::Hypercube), room);
        divided(&spec).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused("hypercube", 6, 1 << 30).starts_with("distribution hypercube: it needs a power of two of ranks"));
    assert!(refused("mesh", 4, 1 << 30).starts_with("distribution hypercube: it needs a hypercube, not mesh:2x2"));
    let why = refused("hypercube", 4, 5_000);
    assert!(why.starts_with("memory: rank ") && why.contains(" bytes until it has sent them on"), "{why}");
}
