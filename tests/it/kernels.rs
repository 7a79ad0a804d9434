//! Independent tasks that really compute, and tasks that arrive over time, in simulation.

use equipoise::load::{CYCLE, Cost};
use equipoise_lab::workload::graphs::Number;
use equipoise_lab::workload::independent::{self as workloads, Setting};

use crate::files::file;
use crate::independent::records;

const SOME: [&str; 6] = ["sash", "sash:end=join", "dss", "dss:affinity", "selfsched:rule=gss", "selfsched:rule=awf"];

fn answers(workload: &str) -> Vec<(u64, Number)> {
    let mut answers = Vec::new();
    for (ranks, network, speeds) in [(1, "zero", &[][..]), (5, "zero", &[]), (3, "switched", &[1.0, 2.0, 0.5])] {
        for record in records(ranks, &SOME, workload, network, speeds) {
            assert!(record.makespan + 1.0 >= record.bound, "{record:?}");
            answers.push((record.tasks, record.answer));
        }
    }
    answers.dedup();
    answers
}

#[test]
fn a_picture_has_the_same_points_whoever_computes_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("set.pgm");
    let workload = format!("mandelbrot:width=40,height=30,limit=50,picture={}", file.display());
    // Counted by a program of a few lines in another language.
    assert_eq!(answers(&workload), [(30, Number::Whole(ITERATIONS))]);
    let picture = std::fs::read(&file).expect("the picture");
    assert!(picture.starts_with(b"P5\n40 30\n255\n"));
    let points = &picture[13..];
    assert_eq!(points.len(), 1200);
    // The set is black and lies symmetrically, its inside in the middle.
    assert!((0..30).all(|row| points[40 * row..][..40] == points[40 * (29 - row)..][..40]));
    assert_eq!((points[15 * 40 + 22], points[0] > 0), (0, true));
}

/// Iterations of 40 x 30 points around -0.5, 3 wide, at most 50 each.
const ITERATIONS: u64 = 18_882;

#[test]
fn products_of_matrices_do_not_depend_on_who_computes_them() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/loops");
    let karate = answers(&format!("spmm:file={folder}/karate.mtx"));
    assert_eq!((karate.len(), karate[0].0), (1, 34));
    assert_eq!(karate, answers(&format!("spmm:file={folder}/karate.mtx,times={folder}/karate.mtx")));
    let skewed = answers(&format!("spmm:file={folder}/lp_e226.mtx"));
    assert_eq!((skewed.len(), skewed[0].0), (1, 223));
    assert_eq!(answers("spmm:rows=60,entries=3").len(), 1);
}

#[test]
fn a_loop_takes_what_its_file_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/loops");
    let workload = format!("loop:file={folder}/lp_e226.mtx,unit=10us");
    assert_eq!(answers(&workload), [(223, Number::Whole(27_680))]);
    let alone = records(1, &["dss"], &workload, "zero", &[]);
    assert_eq!((alone[0].makespan, alone[0].sequential), (27_680.0, 27_680.0));
}

/// Tasks that arrive while others are executed, by hand: whoever has been idle longest takes the next.
#[test]
fn arriving_tasks_go_to_whoever_has_been_idle_longest() {
    for (rate, ranks) in [(1.5, 3u32), (8.0, 3), (2.0, 1)] {
        let workload = format!("costs:tasks=300,sigma_cc=100,arrival={rate}");
        let chosen = workloads::find(&workload).expect("right options").expect("a workload");
        let problem = chosen.problem(&Setting { seed: 11, ranks, is_simulated: true }).expect("a problem");
        let mut free = vec![0; ranks as usize];
        let (mut response, mut last) = (0, 0);
        for (task, arrival) in problem.arrivals.iter().enumerate() {
            let rank = (0..free.len()).min_by_key(|rank| (free[*rank], *rank)).expect("a rank");
            free[rank] = free[rank].max(*arrival) + problem.costs.of(task, rank);
            response += free[rank] - arrival;
            last = last.max(free[rank]);
        }
        let record = &records(ranks, &["dss"], &workload, "zero", &[])[0];
        assert_eq!(record.makespan, (last as f64 / CYCLE as f64).round(), "{rate}");
        let expected = response as f64 / CYCLE as f64 / 300.0;
        let mean = record.scheduling.and_then(|scheduling| scheduling.task_response_mean).expect("a response time");
        assert!((mean - expected).abs() < 1e-3, "{rate}: {mean} instead of {expected}");
    }
}

#[test]
fn every_scheduler_that_can_waits_for_what_arrives() {
    let all =
        ["sash", "sash:reading=r3,end=join", "sash:reading=r4", "sads", "dss", "dss:affinity", "selfsched:rule=fac2", "selfsched:rule=af"];
    for network in ["zero", "switched"] {
        for rate in [0.4, 50.0] {
            for record in records(5, &all, &format!("costs:tasks=120,arrival={rate}"), network, &[]) {
                let mean = record.scheduling.and_then(|scheduling| scheduling.task_response_mean).expect("a response time");
                assert_eq!(record.answer, Number::Whole(120));
                assert!(record.makespan + 1.0 >= record.bound && mean >= 800.0, "{record:?}");
                // At a low rate nobody waits long.
                assert!(rate > 1.0 || mean < 2_500.0, "{}: {mean}", record.scheduler);
            }
        }
    }
}

#[test]
fn arrivals_come_from_a_column() {
    let file = file("1000, 5, inf\n0, 10, 10\n20, inf, 7\n");
    for name in ["dss", "dss:affinity"] {
        let record = &records(2, &[name], &format!("costs:file={},arrival=file", file.display()), "zero", &[])[0];
        let mean = record.scheduling.and_then(|scheduling| scheduling.task_response_mean);
        assert_eq!(
            (record.makespan, mean.map(|mean| (mean * 1e3).round() as Cost)),
            (1005.0, Some((22.0e3f64 / 3.0).round() as Cost)),
            "{name}"
        );
    }
}
