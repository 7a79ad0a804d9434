//! Tests of advice.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::*;

fn question(loads: &[u64]) -> Question {
    Question::new(loads, 64, 1e-3, &Network::default())
}

#[test]
fn it_pays_beyond_the_crossovers_and_not_before() {
    let loads = [40, 12, 9, 11, 8, 10, 9, 13];
    let at = |task: f64, loads: &[u64]| Question { unit_seconds: task, ..question(loads) }.answer().unwrap();
    let advice = at(1e-3, &loads);
    assert!(advice.pays && advice.certainty > 0.9 && !advice.about_even, "{advice:?}");
    assert_eq!((advice.gain_seconds * 1e3).round(), 26.0);
    let task = advice.crossover_task_seconds.unwrap();
    assert!(at(task * 1.02, &loads).pays && !at(task * 0.9, &loads).pays);
    assert!(at(task, &loads).about_even);
    // Just above the crossover in imbalance it pays, well below it does not.
    let short = at(4.0 * task, &loads);
    let least = short.crossover_imbalance.unwrap();
    assert!(least > 1.0 && least < short.imbalance, "{short:?}");
    let spread = |most: u64| {
        let rest = (112 - most) / 7;
        let mut loads = vec![rest; 8];
        loads[0] = 112 - 7 * rest;
        loads
    };
    for most in 14..41 {
        let loads = spread(most);
        let ratio = *loads.iter().max().unwrap() as f64 / 14.0;
        if (ratio / least - 1.0).abs() > 0.25 {
            assert_eq!(at(4.0 * task, &loads).pays, ratio > least, "{loads:?}: {ratio} against {least}");
        }
    }
}

#[test]
fn more_steps_earn_what_one_does_not() {
    let one = Question { unit_seconds: 2e-7, ..question(&[100, 0, 0, 0]) };
    let advice = one.answer().unwrap();
    assert!(!advice.pays);
    let steps = advice.crossover_steps.unwrap();
    assert!(steps > 1 && Question { steps, ..one.clone() }.answer().unwrap().pays);
    assert!(!Question { steps: steps - 1, ..one }.answer().unwrap().pays);
}

#[test]
fn even_loads_need_nothing() {
    let advice = question(&[10; 8]).answer().unwrap();
    assert!(!advice.pays && advice.gain_seconds == 0.0 && advice.certainty == 1.0);
    assert_eq!((advice.crossover_task_seconds, advice.crossover_steps, advice.imbalance), (None, None, 1.0));
    let least = advice.crossover_imbalance.unwrap();
    // One task more than the mean is ten times what balancing costs.
    assert!(least > 1.0 && (least - 1.0 - advice.cost_seconds / 0.01).abs() < 1e-3, "{advice:?}");
    for loads in [&[0, 0][..], &[5]] {
        let advice = question(loads).answer().unwrap();
        assert!(!advice.pays, "{advice:?}");
    }
    assert_eq!(question(&[0, 0]).answer().unwrap().crossover_imbalance, None);
}

#[test]
fn large_payloads_can_cost_more_than_they_gain() {
    let pays = |payload| Question { payload, ..question(&[64, 0]) }.answer().unwrap();
    assert!(pays(0).pays && pays(64).pays && !pays(1 << 20).pays);
    assert!(pays(1 << 20).cost_seconds > 32.0 * 1.048_576 * 2.7e-3);
    // A request and a message with the task.
    let one = pays(1_000_000).crossover_arriving_seconds;
    assert!((one - (2.0 * 20e-6 + 2.7e-3)).abs() < 1e-6, "{one}");
}

#[test]
fn a_choice_of_balancers_is_kept_to() {
    let advice = Question { balancers: vec!["twa".into(), "dem".into()], ..question(&[80, 0, 0, 0, 0, 0, 0, 0]) }.answer().unwrap();
    assert_eq!(advice.choices.iter().map(|choice| choice.balancer.as_str()).collect::<Vec<_>>(), ["twa", "dem"]);
    assert!(["twa", "dem"].contains(&advice.balancer.as_str()));
    let all = question(&[80, 0, 0, 0, 0, 0, 0, 0]).answer().unwrap();
    assert_eq!(all.choices.len(), balance::without_places().count() - 1);
    let net = |choice: &Choice| choice.gain_seconds - choice.cost_seconds;
    let most = all.choices.iter().map(net).fold(f64::NEG_INFINITY, f64::max);
    assert!(all.gain_seconds - all.cost_seconds >= most - TIED * all.gain_seconds);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let said = |question: Question| question.answer().unwrap_err().to_string();
    assert_eq!(said(question(&[])), "loads: there must be at least one rank, and fewer than 2^32");
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let why = said(Question { unit_seconds: seconds, ..question(&[1]) });
        assert_eq!(why, format!("task-seconds: it must be a number of seconds above 0, not {seconds}"));
    }
    assert_eq!(said(Question { steps: 0, ..question(&[1]) }), "steps: it must be 1 or more");
    assert!(said(question(&[u64::MAX, 1])).starts_with("loads: the tasks of all ranks together"));
    assert!(said(Question { payload: u64::MAX, ..question(&[3]) }).starts_with("payload 18446744073709551615: 3 tasks"));
    assert!(said(Question { balancers: vec!["magic".into()], ..question(&[1]) }).contains("'magic' is unknown"));
}

#[test]
fn certainty_grows_with_the_margin() {
    assert!((certainty(1.0, 0.1) - 0.5).abs() < 1e-12);
    assert!(certainty(2.0, 0.1) > 0.99 && certainty(2.0, 1.0) < 0.9 && certainty(0.5, 0.1) > 0.99);
    assert_eq!((certainty(0.0, 0.1), certainty(f64::INFINITY, 0.1)), (1.0, 1.0));
}

fn drawn(rng: &mut ChaCha8Rng) -> Question {
    let ranks = rng.random_range(1..=6);
    let loads: Vec<u64> = (0..ranks).map(|_| rng.random_range(0..=25)).collect();
    Question { unit_seconds: 10f64.powf(rng.random_range(-7.5..-3.5)), seed: rng.random(), ..question(&loads) }
}

#[test]
fn the_crossover_in_imbalance_is_between_even_loads_and_all_on_one_rank() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut none = 0;
    let fixed = [(&[16, 19, 15, 17][..], 1.1456e-6), (&[22, 10, 12, 12], 1.147e-7)];
    let fixed = fixed.map(|(loads, unit_seconds)| Question { unit_seconds, ..question(loads) });
    let random: Vec<Question> = (0..40).map(|_| drawn(&mut rng)).collect();
    for mut question in fixed.into_iter().chain(random) {
        question.balancers = ["direct", "cwa", "twa", "dem", "psts"].map(String::from).to_vec();
        let (ranks, total) = (question.loads.len(), question.loads.iter().sum::<u64>());
        let least = question.answer().unwrap().crossover_imbalance;
        let mut hot = vec![0; ranks];
        hot[0] = total;
        let pays = Question { loads: hot, ..question.clone() }.answer().unwrap().pays;
        match least {
            None => assert!(!pays, "{question:?}"),
            Some(least) => assert!((1.0..=ranks as f64).contains(&least), "{least} {question:?}"),
        }
        none += usize::from(least.is_none());
    }
    assert!((5..35).contains(&none), "{none} questions without a crossover are no test");
}

#[test]
fn what_never_pays_has_no_crossover() {
    for question in [question(&[50]), Question { balancers: vec!["none".into()], ..question(&[40, 2, 9]) }] {
        let advice = question.answer().unwrap();
        assert_eq!((advice.crossover_imbalance, advice.crossover_task_seconds, advice.crossover_steps), (None, None, None), "{advice:?}");
    }
}

#[test]
fn figures_stay_far_from_the_bounds_of_numbers() {
    let said =
        |seconds: f64, steps| Question { unit_seconds: seconds, steps, ..question(&[19, 11, 2, 9]) }.answer().unwrap_err().to_string();
    assert_eq!(said(1e-300, 1), "task-seconds 1e-300: a task takes 1e-18 s or more");
    for (seconds, steps) in [(1e308, 1), (f64::MAX, u64::MAX), (1.0, u64::MAX)] {
        assert_eq!(said(seconds, steps), format!("task-seconds {seconds:e}: all steps of these loads take more than 1e18 s on one rank"));
    }
    for (seconds, steps) in [(1e-18, 1), (1e16, 1), (1e-3, 1 << 60)] {
        let advice =
            Question { unit_seconds: seconds, steps, balancers: vec!["cwa".into()], ..question(&[19, 11, 2, 9]) }.answer().unwrap();
        assert_eq!(advice.pays, seconds * steps as f64 > 1.0, "{advice:?}");
        assert!(advice.crossover_task_seconds.unwrap() > 0.0 && advice.crossover_steps.unwrap() >= 1);
        assert!(advice.gain_seconds > 0.0 && advice.gain_seconds.is_finite() && (0.5..=1.0).contains(&advice.certainty));
    }
    // The needed steps are not below 2^64.
    assert_eq!((steps_beyond(1e19), steps_beyond(2e19), steps_beyond(2.5)), (Some(10_000_000_000_000_000_001), None, Some(3)));
    assert_eq!((steps_beyond(f64::NAN), steps_beyond(f64::INFINITY)), (None, None));
}

/// Two fast ranks and two that take twice as long, dealt out to two hosts in turn.
#[test]
fn ranks_share_the_tasks_by_their_speeds() {
    let speeds = |speeds: &[f64]| speeds.iter().map(|speed| Speed::new(*speed).unwrap()).collect::<Vec<_>>();
    let ask = |loads: &[u64], of: &[f64], hosts: &[&str]| {
        let hosts = Some(Hosts::from_names(&hosts.iter().map(ToString::to_string).collect::<Vec<_>>()));
        Question { unit_seconds: 0.01, speeds: speeds(of), hosts, ..question(loads) }.answer().unwrap()
    };
    let (blocks, in_turn) = (["a", "a", "b", "b"], ["a", "b", "a", "b"]);
    for hosts in [blocks, in_turn] {
        for fast in [[2.0, 2.0, 1.0, 1.0], [2.0, 1.0, 2.0, 1.0], [1.0, 2.0, 2.0, 1.0]] {
            let advice = ask(&[30; 4], &fast, &hosts);
            assert!(advice.pays && (advice.imbalance - 1.5).abs() < 1e-9, "{advice:?}");
            // 0.3 s before, and 40 tasks at speed 2 or 20 at speed 1 after.
            assert!((advice.gain_seconds - 0.1).abs() < 1e-9, "{hosts:?}, {fast:?}: {advice:?}");
            let least = advice.crossover_imbalance.unwrap();
            assert!((1.0..1.5).contains(&least), "{least}");
            let shared = [fast[0], fast[1], fast[2], fast[3]].map(|speed| 20 * speed as u64);
            let advice = ask(&shared, &fast, &hosts);
            assert!(!advice.pays && advice.gain_seconds == 0.0 && (advice.imbalance - 1.0).abs() < 1e-9, "{advice:?}");
            // All on a slow rank is three times the mean of six speeds, twice that; nothing is beyond.
            assert!(advice.crossover_imbalance.is_some_and(|least| (1.0..=6.0).contains(&least)), "{advice:?}");
        }
    }
    // What is on the one rank of a host moves, wherever its node is.
    assert!(ask(&[0, 0, 80, 0], &[1.0; 4], &in_turn).gain_seconds > 0.59);
    assert!((ask(&[0, 60, 0, 0], &[1.0, 0.25, 1.0, 1.0], &in_turn).imbalance - 13.0).abs() < 1e-9);
}

#[test]
fn powers_are_the_speeds_ratios() {
    let powers = |speeds: &[f64]| {
        let speeds = speeds.iter().map(|speed| Speed::new(*speed).unwrap()).collect();
        Question { speeds, ..question(&[1; 3]) }.powers()
    };
    assert_eq!(powers(&[2.0, 2.0, 1.0]), [2, 2, 1]);
    assert_eq!(powers(&[1.5, 0.5, 3.0]), [3, 1, 6]);
    assert_eq!((powers(&[]), powers(&[7.0; 3])), (vec![1; 3], vec![1; 3]));
    assert_eq!(powers(&[1e12, 1e-6, 1.0]), [1_000_000_000, 1, 1]);
    assert_eq!(powers(&[1.0, 1.0]), [1; 3]);
}

/// The network file also has a link between hosts, even where all ranks are on one host.
#[test]
fn the_arriving_task_takes_a_link_that_there_is() {
    use crate::transport::sim::{Measured, MeasuredLink};

    let link = |latency, error| MeasuredLink { latency, per_byte: 400, error, ..MeasuredLink::default() };
    let measured = |hosts: [&str; 4]| Measured {
        name: "x.toml".into(),
        hosts: Hosts::from_names(&hosts.map(String::from)),
        speeds: Vec::new(),
        within: link(600, 0.01),
        between: Some(link(21_000, 3.0)),
        pairs: std::collections::BTreeMap::new(),
    };
    let ask = |hosts| Question::new(&[9, 0, 0, 0], 64, 1.0, &Network::Measured(measured(hosts).into()));
    let at = |hosts| {
        let question = Question { balancers: vec!["direct".into()], ..ask(hosts) };
        let advice = question.answer().unwrap();
        ((advice.crossover_arriving_seconds * 1e9).round(), (question.error() * 100.0).round())
    };
    // Twice the start-up, the header twice and the task once, each rounded up.
    let expected = |latency: f64| 2.0 * latency + 0.4 * (2.0 * HEADER_BYTES as f64 + 64.0);
    let (one_host, two_hosts) = (at(["a"; 4]), at(["a", "a", "b", "b"]));
    assert!((one_host.0 - expected(600.0)).abs() < 2.0 && one_host.1 == 11.0, "{one_host:?}");
    assert!((two_hosts.0 - expected(21_000.0)).abs() < 2.0 && two_hosts.1 == 310.0, "{two_hosts:?}");
}

#[test]
fn a_topology_is_that_of_all_balancers_that_run_on_it() {
    let on = |topology| Question { topology: Some(topology), ..question(&[80, 0, 0, 0, 0, 0, 0, 0]) };
    let advice = on(Topology::parse("line", 8).unwrap()).answer().unwrap();
    assert!(advice.choices.iter().all(|choice| choice.topology == "line:8"), "{advice:?}");
    let names: Vec<&str> = advice.choices.iter().map(|choice| choice.balancer.as_str()).collect();
    assert!(names.contains(&"pslb") && !names.contains(&"cwa"), "{names:?}");
    let why = Question { balancers: vec!["cwa".into()], ..on(Topology::parse("ring", 8).unwrap()) }.answer().unwrap_err().to_string();
    assert!(why.starts_with("balancer cwa runs on hypercube, not on ring"), "{why}");
}
