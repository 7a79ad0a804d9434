//! Answers to one node travel together where tasks are short, and none waits behind a long task or while its node waits.

use rand::rngs::ChaCha8Rng;

use super::*;
use crate::schedule::accounting::{Happening, Name};
use crate::schedule::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use crate::schedule::runtime::IN_A_ROW;
use crate::topology::Kind;

/// Sends whatever is spawned to the next node.
struct Next {
    next: u32,
}

impl Policy for Next {
    type Message = ();

    fn on_new(&mut self, items: &[New], origin: Origin, _: &View, act: &mut Actions<()>) {
        for new in items {
            if origin == Origin::Spawned { act.migrate(new.item, self.next) } else { act.queue(new.item) }
        }
    }
}

struct ToTheNext;

impl Scheduler for ToTheNext {
    fn policy(&self, place: Place, _: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        Ok(erase(Next { next: (place.me + 1) % place.real_nodes() }))
    }
}

static NEXT: Entry = Entry {
    name: "next",
    title: "every spawned task goes to the next node",
    source: "this test",
    options: "",
    examples: &["next"],
    build: |_| Ok(Arc::new(ToTheNext)),
    facts: Facts { kinds: &[Kind::Complete] },
};

/// A parent of children, each with the time it takes and the size of its answer in bytes.
struct Fan {
    children: Vec<(Ticks, usize)>,
}

impl Computation for Fan {
    type Task = Option<u32>;
    type Answer = Vec<u8>;
    type Waiting = ();
    const STYLE: Style = Style::Inline;

    fn execute(&self, child: Option<u32>, worker: &mut dyn Worker) -> Yield<Self> {
        let Some(child) = child else {
            return Yield::Children { tasks: (0..self.children.len() as u32).map(Some).collect(), waiting: () };
        };
        let (cost, bytes) = self.children[child as usize];
        worker.spin(cost);
        Yield::Answer(vec![child as u8; bytes])
    }

    fn join(&self, (): (), answers: Vec<Vec<u8>>) -> Yield<Self> {
        Yield::Answer(answers.concat())
    }

    fn combine(&self, mut into: Vec<u8>, more: Vec<u8>) -> Vec<u8> {
        into.extend(more);
        into
    }
}

fn try_fan(children: &[(Ticks, usize)], options: &Options) -> Result<RunResult<Vec<u8>>> {
    let chosen = Chosen { name: NEXT.name.into(), entry: &NEXT, made: Arc::new(ToTheNext) };
    let computation = Fan { children: children.to_vec() };
    run_under(&chosen, &overlay("complete:2", 2), Model::default(), options, computation, &|| Roots::One(None))
}

/// Course of a child's answer, in ticks of the nodes' own clocks: its task ended on node 1, it left there, it arrived on node 0.
struct Course {
    ended: Ticks,
    left: Ticks,
    arrived: Ticks,
}

/// The children's answers, in the order in which they left, and in how many messages.
fn fan(children: &[(Ticks, usize)], options: &Options) -> (Vec<Course>, u64) {
    let outcome = try_fan(children, &Options { trace: true, ..options.clone() }).unwrap();
    let expected: Vec<u8> = (0..).zip(children).flat_map(|(child, (_, bytes))| vec![child as u8; *bytes]).collect();
    assert_eq!(outcome.answer, Some(expected));
    let [host, other] = &outcome.nodes[..] else { panic!("{} nodes", outcome.nodes.len()) };
    let ended = |of: Name| {
        let found = other.trace.iter().find_map(|entry| match entry.what {
            Happening::Executed { ticks } if entry.task == Some(of) => Some(entry.at + ticks),
            _ => None,
        });
        found.unwrap()
    };
    let left = other.trace.iter().filter(|entry| entry.what == Happening::AnswerLeft { to: 0 });
    let arrived = host.trace.iter().filter(|entry| entry.what == Happening::AnswerArrived { from: 1 });
    let courses: Vec<Course> = left
        .zip(arrived)
        .map(|(left, arrived)| {
            assert_eq!(left.task, arrived.task, "answers arrive in the order in which they left");
            Course { ended: ended(left.task.unwrap()), left: left.at, arrived: arrived.at }
        })
        .collect();
    assert_eq!(courses.len(), children.len());
    assert!(courses.iter().all(|course| course.ended <= course.left && course.left < course.arrived));
    assert!(courses.is_sorted_by_key(|course| course.ended));
    // Node 1 sends nothing but answers.
    (courses, other.messages - other.control)
}

const SHORT: Ticks = 10;
/// Answers that leave by themselves before those of short tasks wait for each other.
const SINGLE: u64 = IN_A_ROW as u64 - 1;

#[test]
fn answers_of_short_tasks_travel_together() {
    let children = vec![(SHORT, 1); 300];
    let (courses, messages) = fan(&children, &Options::default());
    // Of 256 tasks between two polls of the network, and of the rest.
    assert_eq!(messages, SINGLE + 2);
    for (child, course) in courses.iter().enumerate() {
        let end = if child < 256 { &courses[255] } else { &courses[299] };
        assert_eq!(course.left, if child < SINGLE as usize { course.ended } else { end.ended }, "child {child}");
    }
    let (courses, messages) = fan(&children, &Options { gather_below: 0, ..Options::default() });
    assert_eq!(messages, 300);
    assert!(courses.iter().all(|course| course.left == course.ended));
}

#[test]
fn no_answer_waits_longer_than_a_slice_of_short_tasks() {
    let options = Options { slice: 20_000, ..Options::default() };
    let (courses, messages) = fan(&[(1_000, 1); 500], &options);
    assert!(courses.iter().all(|course| course.left - course.ended < options.slice));
    assert!((SINGLE + 20..SINGLE + 30).contains(&messages), "{messages}");
}

#[test]
fn an_answer_does_not_wait_behind_a_long_task() {
    const LONG: Ticks = 1_000_000;
    // Long ones among short ones, again and again: each answer leaves as soon as its task has ended.
    let children: Vec<_> = (0..400).map(|child| (if child % 40 == 39 { LONG } else { SHORT }, 1)).collect();
    let (courses, messages) = fan(&children, &Options::default());
    assert_eq!(messages, 400);
    assert!(courses.iter().all(|course| course.left == course.ended));
    // Where all were short for long, one that is not holds up those that wait, and no others: the answers after it leave at once.
    let mut children = vec![(SHORT, 1); 200];
    children[100].0 = LONG;
    let (courses, messages) = fan(&children, &Options::default());
    let late: Vec<usize> = (0..200).filter(|child| courses[*child].left - courses[*child].ended > 200 * SHORT).collect();
    assert_eq!(late, (SINGLE as usize..100).collect::<Vec<_>>());
    assert_eq!(messages, SINGLE + 1 + SINGLE + 1);
}

#[test]
fn answers_are_parted_where_they_are_too_large_for_one_message() {
    let largest_answer = 40_000;
    let options = Options { largest_answer, ..Options::default() };
    let mut children = vec![(SHORT, 5_000); 200];
    let (_, messages) = fan(&children, &options);
    let together = 200 - SINGLE;
    assert!(messages > SINGLE + together * 5_000 / largest_answer as u64, "{messages}");
    assert!(messages < SINGLE + together / 3, "{messages}");
    // One that is too large by itself is named, wherever it lies among the others.
    for child in [70, 130, 199] {
        children[child].1 = 50_000;
        let why = try_fan(&children, &options).unwrap_err().to_string();
        let (begin, end) = (format!("the answer of task {} of node 0 takes 50", child + 1), "no more than 40000 can be sent");
        assert!(why.starts_with(&begin) && why.ends_with(end), "{why}");
        children[child].1 = 5_000;
    }
}

#[test]
fn a_seed_repeats_a_run_in_which_answers_travel_together() {
    for scheduler in ["random", "steal", "hierarchical", "rid"] {
        let again = |seed, gather_below| {
            let options = Options { style: Some(Style::Inline), trace: true, gather_below, ..Options::default() };
            let model = Model { seed, ..Model::default() };
            let outcome = run(scheduler, &fitted(scheduler, 4), model, &options, Fibonacci { cost: 500 }, &|| Roots::One(16));
            let outcome = outcome.unwrap();
            assert_eq!(outcome.answer, Some(fibonacci(16)));
            (outcome.nodes, outcome.makespan)
        };
        let first = again(7, 2_000);
        assert_eq!(first, again(7, 2_000), "{scheduler}");
        assert_ne!(first, again(7, 0), "{scheduler}: no answers travelled together");
    }
}
