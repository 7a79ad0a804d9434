//! Sentences on comparisons made up for them.

use super::*;
use crate::experiment::compare::{BalancerContender, Case};
use crate::experiment::{CompareSpec, Imbalances, LoadSource, Site, Tasks, compare};
use crate::workload::{Pins, TaskSource, Weights};
use equipoise::balance;
use equipoise::judge::Imbalance;
use equipoise::load::Powers;
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::{sim, world::World};
use std::rc::Rc;

/// Records of the same loads, which are displayed like this.
pub(crate) fn case(loads: &str, records: impl Into<Vec<CompareRecord>>) -> CaseResult {
    let loads = Rc::new(LoadSource::Tasks(TaskSource::Table { path: loads.into(), unit: None }));
    let numbered = records.into().into_iter().enumerate();
    let records = numbered.map(|(contender, record)| CompareRecord { loads: loads.clone(), contender, ..record }).collect();
    CaseResult { loads, records, left_out: Vec::new() }
}

/// The sentence on one case.
fn on_one(records: impl Into<Vec<CompareRecord>>) -> String {
    sentence(&[case("hot", records)])
}

/// A phase of four simulated ranks, with 40 tasks of 64 bytes.
fn measured() -> CompareRecord {
    let mut world = World::simulated(4, sim::Model::default());
    let tasks = Tasks::weighing(&mut world, vec![20, 5, 5, 10], 64, Weights::Unit, Pins::default()).unwrap();
    let overlay = Overlay::new(Topology::parse("complete:4", 4).unwrap(), world.hosts()).unwrap();
    let balancer = Rc::new(balance::find("direct").unwrap());
    let contenders = vec![BalancerContender { balancer, overlay, placement: None, powers: Powers::equal(4, 4) }];
    let cases = vec![Case { loads: LoadSource::Own, tasks }];
    let spec = CompareSpec::new(contenders, cases);
    compare(&mut world, &spec, |_, _, _| {}).unwrap().remove(0).records.remove(0)
}

/// A record of four ranks with an imbalance of 2 before.
pub(crate) fn record(balancer: &str, ms: f64, finish_after: f64) -> CompareRecord {
    let figures =
        |finish: f64| Imbalance { max_over_mean: finish / 10.0, max_over_mean_less_one: finish / 10.0 - 1.0, mean_over_max: 10.0 / finish };
    CompareRecord {
        balancer: balancer.into(),
        site: Site { ranks: 4, hosts: 1, seed: 1, ..Site::default() },
        repeat: 9,
        imbalance_before: 2.0,
        imbalance_after: finish_after / 10.0,
        imbalance: Imbalances { before: figures(20.0), after: figures(finish_after) },
        moved: 10,
        least: 10,
        task_hops: 12,
        optimum_task_hops: Some(10),
        hops_ratio: Some(1.2),
        collectives: None,
        columns: None,
        memory: None,
        steps: 4,
        messages: 12,
        bytes: 1234,
        ms_median: ms,
        ms_ci95: Some([ms * 0.9, ms * 1.1]),
        ms_coverage: 0.9921875,
        ms_rounds: [0.9, 1.0, 1.1, 0.9, 1.0, 1.1, 1.0, 1.0, 1.0].map(|part| ms * part).to_vec(),
        ms_information: ms / 2.0,
        ms_decision: 0.0,
        ms_exchange: ms / 2.0,
        break_even_us: (finish_after < 20.0).then(|| ms * 1e3 / (20.0 - finish_after)),
        finish_before: 20.0,
        finish_after,
        makespan_before: 20.0,
        makespan_after: finish_after,
        simplicity: ["none", "direct", "cwa", "dem", "mwa", "optimal"].iter().position(|name| *name == balancer).unwrap_or(9),
        ..measured()
    }
}

#[test]
fn the_fastest_of_the_best_is_named() {
    let records = [record("none", 0.001, 20.0), record("cwa", 0.2, 10.0), record("direct", 0.1, 10.0), record("dem", 0.01, 12.0)];
    assert_eq!(
        on_one(records),
        "On these 4 ranks use direct: it brings the imbalance from 2.00 to 1.00 in 100 us, which pays when a task lasts 10.0 us or more."
    );
}

#[test]
fn over_several_cases_the_range_is_said() {
    let results = [
        case("hot", [record("cwa", 0.2, 10.0), record("direct", 0.1, 10.0)]),
        case("uniform", [record("cwa", 0.2, 10.0), record("direct", 0.15, 10.0)]),
        case("zero", [record("cwa", 0.2, 20.0), record("direct", 0.15, 20.0)]),
    ];
    assert_eq!(
        sentence(&results),
        "On these 4 ranks use direct: it pays when a task lasts 10.0 us or more (hot, 64 B), and at the worst from 15.0 us on \
         (uniform, 64 B), and on one of the loads nothing pays."
    );
}

#[test]
fn what_the_measurement_cannot_tell_apart_is_said() {
    // The rounds go up and down for both, but not together.
    let shifted = |mut record: CompareRecord| {
        record.ms_rounds.rotate_left(1);
        record
    };
    let records = [record("cwa", 0.1, 10.0), shifted(record("direct", 0.101, 10.0)), record("mwa", 0.2, 10.0)];
    let advice = on_one(records);
    assert!(advice.starts_with("On these 4 ranks use direct (statistically tied with: cwa): it brings"), "{advice}");
    // Of two that are always the same, too, the simpler is named, in either order of the request.
    let same = [record("optimal", 0.1, 10.0), record("direct", 0.1, 10.0)];
    assert!(on_one(same.clone()).starts_with("On these 4 ranks use direct (statistically tied with: optimal): it brings"));
    let simulated = same.map(|mut record| {
        record.site.network = Some("zero".into());
        record
    });
    assert!(on_one(simulated).starts_with("On these 4 simulated ranks use direct (as fast: optimal): it brings"));
}

#[test]
fn of_steps_of_known_length_the_rounds_must_tell_which_are_best() {
    let lasting = |name: &str, ms: f64, finish_after: f64, seconds: f64| CompareRecord {
        task_seconds: Some(seconds),
        ..record(name, ms, finish_after)
    };
    // A step of 100 us and a phase of 200 us, over two steps: medians 2.5 % apart, in rounds that go up and down by more than that.
    let mut same = [lasting("cwa", 0.2, 10.0, 1e-5), lasting("direct", 0.21, 10.0, 1e-5)];
    same[1].ms_rounds.rotate_left(1);
    let advice = on_one(same.clone());
    assert!(advice.starts_with("On these 4 ranks use direct (statistically tied with: cwa): a step takes 200 us now"), "{advice}");
    for record in &mut same {
        record.ms_rounds.truncate(5);
    }
    assert!(on_one(same).starts_with("5 rounds are too few to tell"));
    // All rounds agree.
    let apart = [lasting("cwa", 0.2, 10.0, 1e-5), lasting("direct", 0.3, 10.0, 1e-5)];
    assert!(on_one(apart.clone()).starts_with("On these 4 ranks use cwa: "), "{}", on_one(apart));
    // A step that is longer than another with its phase: one round tells.
    let mut once = [lasting("cwa", 0.2, 10.0, 1e-3), lasting("direct", 0.1, 12.0, 1e-3)];
    for record in &mut once {
        record.ms_rounds.truncate(1);
    }
    assert!(on_one(once.clone()).starts_with("On these 4 ranks use cwa: "), "{}", on_one(once));
}

#[test]
fn few_rounds_name_nobody() {
    let few = |name: &str, ms: f64, rounds: usize| {
        let mut record = record(name, ms, 10.0);
        record.ms_rounds.truncate(rounds);
        record
    };
    assert_eq!(
        on_one([few("cwa", 0.2, 1), few("direct", 0.1, 1), CompareRecord { break_even_us: None, ..few("none", 0.0, 1) }]),
        "1 round is too few to tell which of those that balance best is the fastest (cwa, direct, in 100 us to 200 us): use --repeat 6 or more."
    );
    for rounds in 1..6 {
        assert!(on_one([few("cwa", 0.2, rounds), few("direct", 0.1, rounds)]).contains("too few"), "{rounds}");
    }
    assert!(on_one([few("cwa", 0.2, 6), few("direct", 0.1, 6)]).starts_with("On these 4 ranks use direct: "));
    // With a single balancer there is nothing to distinguish.
    assert!(on_one([few("cwa", 0.2, 1)]).starts_with("cwa on these 4 ranks: it brings"));
}

#[test]
fn where_loads_are_times_a_step_is_told() {
    let timed = |name: &str, ms: f64, after: f64| {
        let mut record = record(name, ms, after);
        record.weighing.unit = LoadUnit::Work;
        record.weighing.unit_seconds = Some(1e-3);
        record
    };
    assert_eq!(
        on_one([timed("direct", 0.34, 10.0), timed("cwa", 0.5, 10.0)]),
        "On these 4 ranks use direct: a step takes 20.0 ms now and 10.0 ms after; balancing costs 340 us (48 % less)."
    );
    // The cost of a phase counts, too: the better balance does not make up for it.
    assert!(on_one([timed("direct", 0.34, 10.5), timed("cwa", 5.0, 10.0)]).starts_with("On these 4 ranks use direct: "));
    assert!(
        on_one([timed("direct", 25.0, 10.0)]).ends_with("balancing costs 25.0 ms (it pays if the loads stay alike for 3 steps or more).")
    );
    assert_eq!(step_of([1.0, 1.0, 0.1]), "a step takes 1.00 s now and 1.00 s after; balancing costs 100 ms (it never pays)");
    // Over many steps the better balance does make up for it; a phase that pays after three steps is judged over three.
    let over = |steps: Option<u64>| {
        on_one([timed("direct", 0.34, 10.5), timed("cwa", 5.0, 10.0)].map(|record| CompareRecord { lasting: steps, ..record }))
    };
    assert!(over(Some(1)).starts_with("On these 4 ranks use direct: ") && over(Some(100)).starts_with("On these 4 ranks use cwa: "));
    assert_eq!(steps([timed("direct", 25.0, 10.0), timed("cwa", 90.0, 10.0)].iter()), 3);
    // Without a unit tiny lengths would be reported.
    let mut huge = timed("direct", 0.34, 10.0);
    (huge.weighing.unit_seconds, huge.makespan_before, huge.makespan_after) = (None, 3e9, 1e9);
    huge.break_even_us = Some(0.34e3 / 2e9);
    assert!(on_one([huge]).ends_with("in 340 us, which pays when 2,000,000,000 units of work last longer than that."));
}

#[test]
fn ranks_that_share_cores_are_told_so() {
    let crowded = |mut record: CompareRecord| {
        record.site.cores = Some(2);
        record.site.groups = vec![equipoise::judge::CoreGroup { ranks: equipoise::topology::RankId::all(4).collect(), cores: 2 }];
        record
    };
    let advice = on_one([record("cwa", 0.2, 10.0), record("direct", 0.1, 10.0)].map(crowded));
    assert!(advice.starts_with("On these 4 ranks, which share 2 cores, use direct: it brings"), "{advice}");
    assert_eq!(
        on_one([crowded(record("cwa", 0.1, 20.0))]),
        "Leave the tasks where they are: on these 4 ranks, which share 2 cores, no balancer ends the work of all ranks sooner (imbalance 2.00)."
    );
}

#[test]
fn two_that_look_the_same_are_two() {
    let twins = |first: f64, second: f64| [record("direct", first, 10.0), record("direct", second, 10.0)];
    assert!(on_one(twins(0.1, 0.1)).starts_with("On these 4 ranks use direct (statistically tied with: direct): "));
    assert!(on_one(twins(0.2, 0.1)).starts_with("On these 4 ranks use direct: "));
    // Two loads that look the same are two cases.
    let results = [0.1, 0.2].map(|ms| case("hot", [record("direct", ms, 10.0)]));
    assert!(sentence(&results).contains("and at the worst from 20.0 us on (hot, 64 B)"));
}

#[test]
fn where_nothing_pays_the_advice_is_to_leave_it() {
    let same = [record("cwa", 0.1, 20.0), record("none", 0.0, 20.0)];
    assert_eq!(
        on_one(same),
        "Leave the tasks where they are: on these 4 ranks no balancer makes the slowest rank faster (imbalance 2.00)."
    );
    let empty = [CompareRecord { tasks: 0, ..record("cwa", 0.1, 20.0) }];
    assert_eq!(on_one(empty), "There are no tasks on these 4 ranks, so there is nothing to balance.");
    let mut alone = record("cwa", 0.1, 10.0);
    alone.site.ranks = 1;
    assert!(on_one([alone]).starts_with("There is one rank only"));
    assert!(on_one([record("none", 0.1, 20.0)]).starts_with("No balancer was compared"));
    assert_eq!(sentence(&[]), "Nothing was compared.");
}

#[test]
fn a_single_balancer_is_not_recommended_but_judged() {
    let sentence = on_one([record("cwa", 0.1, 10.0)]);
    assert!(sentence.starts_with("cwa on these 4 ranks: it brings the imbalance from 2.00 to 1.00"), "{sentence}");
}

/// The same record with the largest ratio of its weights before and after.
fn with_ratios(record: CompareRecord, before: f64, after: f64) -> CompareRecord {
    let columns = serde_json::json!([{"name": "work", "before": 1.0, "after": 1.0}, {"name": "bytes", "before": before, "after": after}]);
    CompareRecord { columns: serde_json::from_value(columns).unwrap(), ..record }
}

/// The same record with bytes on two ranks that have room for 150 each.
fn with_bytes(record: CompareRecord, before: [u64; 2], after: [u64; 2]) -> CompareRecord {
    let placement = equipoise::topology::Placement::one_host(2, 2).unwrap();
    let bytes = [0, 1].map(|rank| [before[rank], after[rank]]);
    CompareRecord { memory: Some(equipoise::load::Occupancy::new(&[150; 2], &bytes, &placement)), ..record }
}

#[test]
fn where_tasks_have_several_weights_the_largest_ratio_counts() {
    // The work is even from the start, or is even made a little worse.
    let records = [
        with_ratios(record("greedy", 0.1, 20.0), 3.875, 1.5),
        with_ratios(record("refine", 0.3, 21.0), 3.875, 1.19),
        with_ratios(record("none", 0.0, 20.0), 3.875, 3.875),
    ];
    assert_eq!(
        on_one(records),
        "On these 4 ranks use refine: it brings the largest ratio of all weights from 3.88 to 1.19, and the imbalance of the work from 2.00 to \
         2.10, in 300 us."
    );
    let timed = CompareRecord { task_seconds: Some(1e-3), lasting: Some(1), ..with_ratios(record("refine", 0.3, 21.0), 3.875, 1.19) };
    assert!(
        on_one([timed]).ends_with("all weights from 3.88 to 1.19; a step takes 20.0 ms now and 21.0 ms after; balancing costs 300 us.")
    );
    // A phase that makes the work faster at the expense of another weight is none to advise.
    assert_eq!(
        on_one([with_ratios(record("greedy", 0.1, 10.0), 2.5, 3.0), with_ratios(record("none", 0.0, 20.0), 2.5, 2.5)]),
        "Leave the tasks where they are: on these 4 ranks no balancer makes the largest load over its fair share smaller (largest ratio of \
         all weights 2.50)."
    );
    assert_eq!(
        on_one([with_ratios(record("none", 0.0, 20.0), 2.5, 2.5)]),
        "No balancer was compared: the largest ratio of all weights on these 4 ranks is 2.50, see which one reduces it with `--balancer`."
    );
}

#[test]
fn beyond_the_capacity_tasks_must_move() {
    let (before, after) = ([200, 20], [110, 110]);
    let records = [
        with_bytes(record("greedy", 0.1, 24.0), before, after),
        with_bytes(record("refine", 0.3, 20.0), before, after),
        with_bytes(record("cwa", 0.1, 10.0), before, [160, 60]),
        with_bytes(record("none", 0.0, 20.0), before, before),
    ];
    assert_eq!(
        on_one(records.clone()),
        "On these 4 ranks use refine: rank 0 holds 200 B at first and has room for 150 B, so tasks must move; it brings the imbalance from \
         2.00 to 2.00 in 300 us."
    );
    // That no phase pays within the given steps is no reason to leave them either.
    let timed = records.map(|record| CompareRecord { task_seconds: Some(1e-9), lasting: Some(1), ..record });
    let advice = on_one(timed);
    assert!(advice.starts_with("On these 4 ranks use greedy: rank 0 holds 200 B at first"), "{advice}");
    assert!(advice.ends_with("so tasks must move; a step takes 20.0 ns now and 24.0 ns after; balancing costs 100 us."), "{advice}");
    // Nor is it one that the rounds do not tell who is the fastest.
    let few = ["refine", "kk"].map(|name| {
        let mut record = with_bytes(record(name, 0.1, 20.0), before, after);
        record.ms_rounds.truncate(2);
        record
    });
    let said = on_one(few);
    assert!(
        said.starts_with("Tasks must move, since rank 0 holds 200 B at first and has room for 150 B. 2 rounds are too few to tell"),
        "{said}"
    );
    let stays = |name: &str| with_bytes(record(name, 0.1, 10.0), before, before);
    assert_eq!(
        on_one([stays("cwa"), stays("none")]),
        "Tasks must move on these 4 ranks, and no balancer makes room: rank 0 holds 200 B at first and has room for 150 B."
    );
    assert!(on_one([stays("none")]).starts_with("No balancer was compared on these 4 ranks: rank 0 holds 200 B at first"));
    // Within the capacity the time counts, as always.
    let within = [with_bytes(record("refine", 0.1, 20.0), [150, 20], after), with_bytes(record("none", 0.0, 20.0), [150, 20], [150, 20])];
    assert!(on_one(within).starts_with("Leave the tasks where they are"));
}

#[test]
fn over_a_given_number_of_steps_a_phase_must_pay() {
    // A step becomes 10 ns shorter; the phases take 100 us and 200 us.
    let over = |steps: Option<u64>| {
        let known = |record: CompareRecord| CompareRecord { task_seconds: Some(1e-9), lasting: steps, ..record };
        on_one([record("cwa", 0.2, 10.0), record("direct", 0.1, 10.0), record("none", 0.0, 20.0)].map(known))
    };
    assert_eq!(
        over(Some(1)),
        "Leave the tasks where they are: on these 4 ranks no phase pays within 1 step; direct does so first, if the loads stay alike for \
         10,000 steps or more."
    );
    assert!(over(Some(10_000)).starts_with("Leave the tasks where they are"));
    assert!(over(Some(10_001)).starts_with("On these 4 ranks use direct: a step takes 20.0 ns now and 10.0 ns after"));
    assert!(over(None).ends_with("(it pays if the loads stay alike for 10,000 steps or more)."), "{}", over(None));
    // The given duration is that of a unit of work, whatever the source of the tasks says.
    let both = CompareRecord { task_seconds: Some(1e-9), ..record("direct", 0.1, 10.0) };
    let mut both = both;
    both.weighing.unit_seconds = Some(1.0);
    assert_eq!(both.steps_until_it_pays(), Some(10_000));
}
