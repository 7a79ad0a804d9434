use super::course::{is_same, sound};
use super::*;
use equipoise::schedule::NodeReport;
use equipoise::topology::Topology;
use equipoise::transport::sim::{Model, Network, Speed};

/// The records of a workload on simulated ranks, one for each scheduler.
pub(crate) fn simulated(workload: &str, schedulers: &[&str], ranks: u32, repeat: Option<u32>, trace: bool) -> Result<Vec<RunRecord>> {
    simulated_on(Model { network: Network::Zero, ..Model::default() }, workload, schedulers, ranks, repeat, trace)
}

fn simulated_on(model: Model, workload: &str, schedulers: &[&str], ranks: u32, repeat: Option<u32>, trace: bool) -> Result<Vec<RunRecord>> {
    let mut world = World::simulated(ranks, model);
    let contender = |name: &&str| {
        let scheduler = schedule::find(name)?;
        let topology: Topology = scheduler.default_topology(ranks);
        SchedulerContender::new(scheduler, Overlay::one_host(topology, ranks)?)
    };
    let contenders = schedulers.iter().map(contender).collect::<Result<_>>()?;
    let spec = RunSpec { contenders, workload: graphs::find(workload)?, workers: 1, repeat, seed: 1, trace };
    run(&mut world, &spec, |_, _, _| {})
}

#[test]
fn a_chain_of_tasks_takes_its_length_whoever_schedules_it() {
    let names: Vec<&str> = schedule::ALL.iter().map(|entry| entry.name).collect();
    for record in simulated("tree:levels=4,children=1,least=1,time=10ms", &names, 4, None, false).unwrap() {
        assert_eq!((record.tasks, record.answer, record.known), (5, Number::Whole(5), Some(Number::Whole(5))), "{}", record.scheduler);
        assert!((record.sequential - 0.01).abs() < 1e-9 && (record.bound - 0.01).abs() < 1e-9);
        assert!(record.makespan >= 0.01 && record.makespan < 0.0101, "{}: {}", record.scheduler, record.makespan);
        assert_eq!(record.gain, None);
        assert!((record.busy.iter().sum::<f64>() - 0.01).abs() < 1e-9);
        assert!((record.efficiency - 0.25).abs() < 0.003);
    }
}

#[test]
fn ranks_of_unequal_speeds_have_one_bound_that_none_undercuts() {
    let names: Vec<&str> = schedule::ALL.iter().map(|entry| entry.name).collect();
    let workload = "tree:levels=6,children=3,least=1,task=1ms,cost=spin";
    let work = simulated(workload, &["static"], 4, None, false).unwrap()[0].work;
    for speeds in [[8.0, 1.0, 1.0, 0.125], [1.0, 1.0, 1.0, 100.0], [0.5, 0.5, 0.5, 0.5]] {
        let model =
            Model { network: Network::Zero, speeds: speeds.iter().map(|speed| Speed::new(*speed).unwrap()).collect(), ..Model::default() };
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let shared = work / speeds.iter().sum::<f64>();
        for record in simulated_on(model, workload, &names, 4, None, false).unwrap() {
            let name = &record.scheduler;
            assert!((record.work - work / fastest).abs() < 1e-6 && record.sequential == record.work, "{name}: {} {work}", record.work);
            assert!(record.bound >= shared * 0.999 && record.bound <= record.makespan, "{name}: {} {}", record.bound, record.makespan);
            assert!((record.efficiency - shared / record.makespan).abs() < 1e-6 && record.bound_efficiency <= 1.0, "{name}");
        }
    }
}

#[test]
fn rounds_have_seeds_of_their_own() {
    let workload = "tree:levels=4,children=3,least=1,task=1ms";
    let records = simulated(workload, &["steal"], 4, Some(3), false).unwrap();
    let rounds = records[0].rounds.clone().unwrap();
    assert_eq!((rounds.repeat, rounds.makespans.len()), (3, 3));
    assert_eq!(rounds.makespans[0], records[0].makespan);
    assert!(rounds.makespans[1] != rounds.makespans[0] || rounds.makespans[2] != rounds.makespans[0]);
    // Three rounds have no interval of 95 %: it is their range.
    let mut sorted = rounds.makespans.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!((rounds.typical.makespan, rounds.makespan_ci95), (sorted[1], Some([sorted[0], sorted[2]])));
    assert!(rounds.makespan_coverage.is_some_and(|coverage| (coverage - 0.75).abs() < 1e-9));
    assert_eq!(rounds.sequentials.len(), 3);
    let once = simulated(workload, &["steal"], 4, Some(1), false).unwrap();
    assert_eq!(once[0].rounds.as_ref().unwrap().makespan_ci95, None, "one round has no interval");
    assert_eq!(simulated(workload, &["steal"], 4, None, false).unwrap()[0].rounds, None);
}

#[test]
fn streams_are_told_in_their_own_unit() {
    let stream = "stream:graphs=200,warmup=20,utilisation=0.3,levels=0,rate=none,unit=10ms";
    let records = simulated(stream, &["static"], 8, Some(2), true).unwrap();
    let responses = records[0].responses.unwrap();
    assert_eq!((responses.graphs, records[0].unit_seconds), (400, 0.01));
    // M/M/1: 1 / (1 - 0.3), with 400 samples.
    assert!((responses.response_mean - 1.0 / 0.7).abs() < 0.5, "{responses:?}");
    let [low, high] = responses.response_ci95;
    assert!(low < responses.response_mean && responses.response_mean < high && responses.response_p99 <= responses.response_max);
    assert!(records[0].timeline.len() == 8 && records[0].timeline.iter().all(|node| !node.entries.is_empty()));
}

#[test]
fn regions_are_told() {
    let records = simulated("fibonacci:n=15,cutoff=5", &["hierarchical", "random"], 16, None, false).unwrap();
    let members: Vec<usize> = records[0].regions.iter().map(|region| region.members.len()).collect();
    assert_eq!(members.iter().sum::<usize>(), 16);
    assert!(members.len() > 1 && records[1].regions.is_empty());
    assert_eq!(records[0].answer, Number::Whole(610));
}

#[test]
fn what_is_lost_or_wrong_is_said() {
    let node = |born, tasks, out, arrived| {
        let mut report = NodeReport::default();
        (report.born, report.tasks, report.migrated_out, report.migrated_in) = (born, tasks, out, arrived);
        report
    };
    let outcome = |answer, nodes| RunResult::new(Number::Whole(answer), nodes, 1);
    let said = |answer, nodes, known, is_tasks| sound(&outcome(answer, nodes), known, None, is_tasks).unwrap_err();
    assert_eq!(said(3, vec![node(3, 1, 1, 0), node(0, 1, 0, 1)], None, false), "3 tasks were born, and 2 ended");
    assert_eq!(said(3, vec![node(3, 3, 1, 0)], None, false), "1 migrations left, and 0 arrived");
    assert_eq!(said(91, vec![node(3, 3, 0, 0)], Some((Number::Whole(92), 0.0)), false), "the answer is 91, the known one is 92");
    assert_eq!(said(4, vec![node(3, 3, 0, 0)], None, true), "the answers add up to 4 tasks, and 3 were executed");
    assert!(sound(&outcome(3, vec![node(3, 3, 0, 0)]), Some((Number::Whole(3), 0.0)), Some(Number::Whole(3)), true).is_ok());
    let real = |a: f64, b: f64, within| is_same(Number::Real(a), Number::Real(b), within);
    assert!(real(0.1 + 0.2, 0.3, 0.0) && !real(0.3, 0.31, 0.0) && real(0.3, 0.31, 0.02) && !real(0.3, 0.31, 0.005));
    assert!(!is_same(Number::Whole(3), Number::Whole(4), 10.0));
}

/// A wrong answer where strips saw the same phase of every wave: the plain program agreed, calculus does not.
#[test]
fn an_integral_is_judged_by_calculus() {
    for from in ["0.00001", "0.00001001", "0.0000105", "0.000011", "0.000013", "0.000014", "0.000017"] {
        let records = simulated(&format!("romberg:f=wave,from={from}"), &["steal"], 4, None, false).unwrap();
        let right = from.parse::<f64>().unwrap().recip().sin() - 1f64.sin();
        assert_eq!(records[0].known, Some(Number::Real(right)), "from {from}");
        let Number::Real(answer) = records[0].answer else { panic!("{:?}", records[0].answer) };
        assert!((answer - right).abs() < 1.01e-4, "from {from}: {answer}, and calculus says {right}");
    }
}

#[test]
fn all_schedulers_are_judged_by_one_bound() {
    let names: Vec<&str> = schedule::ALL.iter().map(|entry| entry.name).collect();
    for workload in ["tree:levels=4,children=3,least=3,time=5ms", "uts:kind=geometric,shape=fixed,b0=4,depth=5,seed=19"] {
        let records = simulated(workload, &names, 4, None, false).unwrap();
        for record in &records {
            assert_eq!((record.bound, record.sequential), (records[0].bound, records[0].sequential), "{}", record.scheduler);
            assert!((record.bound_efficiency - record.bound / record.makespan).abs() < 1e-9);
            assert!(record.bound <= record.sequential && record.bound <= record.makespan, "{}: {record:?}", record.scheduler);
        }
        // A scheduler that runs alone has no better bound: a tree that can be split is no longer than its parts.
        let alone = simulated(workload, &["static"], 4, None, false).unwrap();
        assert!((alone[0].bound - records[0].bound).abs() <= 1e-9 * alone[0].bound);
    }
}
