//! Failures end with one sentence, and nothing hangs.

use super::*;
use crate::topology::RankId;

/// The answer of its only child is large.
struct Large;

impl Computation for Large {
    type Task = bool;
    type Answer = Vec<u8>;
    type Waiting = ();

    fn execute(&self, root: bool, worker: &mut dyn Worker) -> Yield<Self> {
        worker.spin(10);
        if root { Yield::Children { tasks: vec![false; 20], waiting: () } } else { Yield::Answer(vec![1; 5_000]) }
    }

    fn join(&self, (): (), answers: Vec<Vec<u8>>) -> Yield<Self> {
        Yield::Answer(answers.concat())
    }

    fn combine(&self, mut into: Vec<u8>, more: Vec<u8>) -> Vec<u8> {
        into.extend(more);
        into
    }
}

#[test]
fn an_answer_too_large_to_be_sent_is_an_error_that_names_it() {
    let options = Options { largest_answer: 4_000, ..Options::default() };
    let why = run("random", &fitted("random", 4), Model::default(), &options, Large, &|| Roots::One(true)).unwrap_err();
    let sentence = why.to_string();
    assert!(sentence.starts_with("the answer of task ") && sentence.ends_with("no more than 4000 can be sent"), "{sentence}");
    assert_eq!(why.exit_status(), 1);
    // Where it need not be sent it may be as large as it likes.
    let outcome = run("static", &fitted("static", 4), Model::default(), &options, Large, &|| Roots::One(true)).unwrap();
    assert_eq!(outcome.answer.map(|answer| answer.len()), Some(100_000));
}

#[test]
fn a_trace_longer_than_a_message_comes_in_pieces() {
    let trace = |largest_answer| {
        let options = Options { largest_answer, trace: true, ..Options::default() };
        let outcome = run("steal", &fitted("steal", 5), Model::default(), &options, Fibonacci { cost: 1_000_000 }, &|| Roots::One(12));
        outcome.unwrap().nodes.into_iter().map(|node| node.trace).collect::<Vec<_>>()
    };
    let whole = trace(Options::default().largest_answer);
    assert!(whole.iter().all(|trace| trace.len() > 20), "{:?}", whole.iter().map(Vec::len).collect::<Vec<_>>());
    // Reports must fit, in which a trace was before.
    assert_eq!(trace(2_000), whole);
}

#[test]
fn the_loss_of_a_rank_ends_the_run() {
    for scheduler in schedulers() {
        let model = Model { rules: Rules::seeded(1).lose(RankId::new(2), 3_000_000), ..Model::default() };
        let why = run(scheduler, &fitted(scheduler, 5), model, &Options::default(), Fibonacci { cost: 1_000_000 }, &|| Roots::One(12));
        assert_eq!(why.unwrap_err(), Error::RankLost { rank: RankId::new(2) }, "{scheduler}");
    }
}

#[test]
fn lost_tasks_and_answers_are_noticed_by_the_watchdog() {
    for tag in [runtime::TASKS, runtime::ANSWERS] {
        let rules = Rules::seeded(1).withhold(sim::Messages::tagged(tag).nth(3));
        let model = Model { rules, timeout: 1_000_000_000, ..Model::default() };
        let why =
            run("steal", &fitted("steal", 4), model, &Options::default(), Fibonacci { cost: 1_000_000 }, &|| Roots::One(12)).unwrap_err();
        assert!(matches!(&why, Error::Stuck { report } if report.contains("withheld by rule")), "{why}");
    }
}

#[test]
fn wrong_usage_names_the_option() {
    for (spec, sentence) in [
        ("foo", "scheduler 'foo' is unknown; known are "),
        ("steal,victim=topology", "scheduler steal: options follow a colon, as in steal:victim=topology"),
        ("static:x=1", "scheduler static takes no options, 'x' was given"),
        ("steal:victim=me", "scheduler steal: victim is random or topology, not 'me'"),
        ("steal:victims=random", "scheduler steal has no option 'victims'; it has victim"),
        ("neighbour:age=-1", "scheduler neighbour: age is a number of time units, 0 or more, not '-1'"),
        ("neighbour:age", "scheduler neighbour: age needs a value, age=.."),
    ] {
        let why = find(spec).err().unwrap();
        assert!(why.to_string().starts_with(sentence), "{spec}: {why}");
        assert_eq!(why.exit_status(), 2);
    }
}
