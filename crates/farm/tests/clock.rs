//! The lead under a clock of our own: tasks of known lengths on ranks of different speed, without a process or a second of waiting.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use equipoise::topology::RankId;
use equipoise_farm::lead::{Audience, Lead};
use equipoise_farm::limits::{Demand, SlotsGiven};
use equipoise_farm::list::sleep::{self, Sleep};
use equipoise_farm::list::{Origin, formats::Format};
use equipoise_farm::messages::{ToHand, ToLead};
use equipoise_farm::output::{self, Printer};
use equipoise_farm::prepare::prepare;
use equipoise_farm::scheduler::Scheduler;
use equipoise_farm::settings::{Settings, Shown, Walltime};
use equipoise_farm::task::{How, Needs, Outcome, State, Task};

struct Nobody;

impl Audience for Nobody {
    fn event(&mut self, _: &serde_json::Value) {}
    fn remark(&mut self, _: &str) {}
    fn joblog(&mut self, _: u64, _: &str, _: &Outcome, _: &[u8]) {}
}

/// Result of a run.
#[derive(Debug, Default)]
struct Course {
    /// End of the last task, in seconds since the beginning.
    end: f64,
    /// Seconds that tasks ran which ended.
    used: f64,
    ended: usize,
    /// Tasks that ran when the job was asked to end without grace.
    killed: usize,
    left: u64,
    /// End of the job, in seconds since the beginning.
    over: f64,
    /// Sequence numbers in the order in which tasks began.
    began: Vec<u64>,
    /// Largest number of tasks that a rank held at a time.
    most_held: usize,
}

/// A rank that runs its tasks in order, as its helper does.
#[derive(Default)]
struct Rank {
    queue: VecDeque<Task>,
    running: usize,
    cpus: u32,
}

/// Number of processors that a task takes.
fn cpus(task: &Task) -> u32 {
    task.needs.cpus.max(1)
}

/// Nanoseconds, so that times can be sorted.
fn ticks(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Plays a job; a task's length on a rank is its length divided by the rank's speed.
fn play(settings: &Settings, speeds: &[f64], length: impl Fn(&Task) -> f64) -> Course {
    let prepared = prepare(settings, speeds.len() as u32).unwrap();
    let hosts = vec!["host".to_string(); speeds.len()];
    let began = settings.walltime.map_or(0.0, |walltime| walltime.end - walltime.length);
    let mut lead = Lead::new(settings, prepared, hosts, Printer::new(output::standard(), false), Box::new(Nobody), began);
    let mut ranks: Vec<Rank> = speeds.iter().map(|_| Rank::default()).collect();
    let (mut course, mut now, mut deadline) = (Course { end: began, ..Course::default() }, began, f64::INFINITY);
    // When, a number that keeps them apart, rank, Seq, seconds, processors.
    type End = Reverse<(u64, u64, usize, u64, u64, u32)>;
    let mut ends: BinaryHeap<End> = BinaryHeap::new();
    let mut number = 0;
    lead.begin(1, now).unwrap();
    while !lead.is_over() {
        let mut says = Vec::new();
        for (to, message) in lead.take_sends() {
            let rank = &mut ranks[to.index()];
            match message {
                ToHand::Begin { deadline: at, .. } => deadline = at.unwrap_or(f64::INFINITY),
                ToHand::Tasks(tasks) => rank.queue.extend(tasks.into_iter().map(|(task, _)| task)),
                ToHand::Drain { grace } => {
                    if grace == 0.0 {
                        course.killed += rank.running;
                    }
                    let left: Vec<Outcome> = rank.queue.drain(..).map(|task| Outcome::without_run(task.seq, State::Left)).collect();
                    says.push((to, ToLead::Ended(left)));
                }
                ToHand::End => says.push((to, ToLead::Gone)),
                ToHand::Skip(_) | ToHand::Pull { .. } | ToHand::OnHost { .. } => {}
            }
        }
        for (to, rank) in ranks.iter_mut().enumerate() {
            course.most_held = course.most_held.max(rank.running + rank.queue.len());
            let all = settings.slots.as_ref().map_or(u32::MAX, |slots| slots.cpus);
            while rank.running < settings.workers as usize
                && let Some(at) = rank.queue.iter().position(|task| rank.cpus + cpus(task) <= all)
                && let Some(task) = rank.queue.remove(at)
            {
                assert!(now + task.least_time() <= deadline + 1e-6, "task {} cannot end in time", task.seq);
                let seconds = length(&task) / speeds[to];
                number += 1;
                rank.running += 1;
                rank.cpus += cpus(&task);
                course.began.push(task.seq);
                ends.push(Reverse((ticks(now + seconds), number, to, task.seq, ticks(seconds), cpus(&task))));
            }
        }
        if !says.is_empty() {
            says.into_iter().for_each(|(from, said)| lead.receive(from, said, now).unwrap());
            continue;
        }
        match ends.pop() {
            Some(Reverse((at, _, rank, seq, seconds, cpus))) => {
                now = at as f64 / 1e9;
                let runtime = seconds as f64 / 1e9;
                ranks[rank].running -= 1;
                ranks[rank].cpus -= cpus;
                let demand = Demand::of(Needs { cpus, ..Needs::default() });
                (course.end, course.used, course.ended) = (now, course.used + runtime, course.ended + 1);
                let outcome = Outcome { attempt: 1, runtime, ..Outcome::without_run(seq, State::Done) };
                let freed = ToLead::Freed { tasks: 1, failed: 0, time: runtime, squares: runtime * runtime, demand };
                lead.receive(RankId::new(rank as u32), freed, now).unwrap();
                lead.receive(RankId::new(rank as u32), ToLead::Ended(vec![outcome]), now).unwrap();
            }
            None if lead.is_over() => {}
            None => {
                now += 0.1;
                lead.tick(now).unwrap();
            }
        }
    }
    lead.end(now).unwrap();
    course.left = lead.counts.left;
    (course.end, course.over) = (course.end - began, now - began);
    course
}

/// The most seconds that two or three workers can use of `limit` each: whether each set of sums can be reached, task by task.
fn best_packing(lengths: &[usize], limit: usize, workers: usize) -> usize {
    let width = limit + 1;
    let states = width.pow(workers as u32);
    let mut reached = vec![false; states];
    reached[0] = true;
    for length in lengths {
        for state in (0..states).rev().filter(|state| reached[*state]).collect::<Vec<_>>() {
            for worker in 0..workers {
                let step = width.pow(worker as u32);
                if (state / step) % width + length <= limit {
                    reached[state + length * step] = true;
                }
            }
        }
    }
    let used = |state: usize| (0..workers).map(|worker| (state / width.pow(worker as u32)) % width).sum();
    (0..states).filter(|state| reached[*state]).map(used).max().unwrap_or(0)
}

fn listed(lengths: &[usize]) -> (tempfile::NamedTempFile, Settings) {
    let lines: String = lengths.iter().map(|length| format!("true {length} #EQ cost={length}\n")).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    let mut settings = Settings::new(Origin::Commands { file: file.path().to_path_buf(), format: Format::Plain });
    settings.output = Shown::Nothing;
    (file, settings)
}

/// Some lengths, scattered by a multiplicative generator.
fn scattered(number: usize, from: usize, to: usize, seed: usize) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        state = state * 16807 % 2_147_483_647;
        from + state % (to - from + 1)
    };
    (0..number).map(|_| next()).collect()
}

#[test]
fn a_limit_that_cuts_is_used_as_by_the_best_packing_and_kills_nothing() {
    let mut cases = vec![
        (scattered(100, 1, 30, 7), 100, 2),
        (scattered(100, 10, 60, 11), 120, 2),
        (scattered(100, 1, 12, 5), 40, 3),
        (scattered(100, 20, 45, 3), 100, 2),
    ];
    // One that is too long to be followed by another; the rest fills the time exactly.
    let mut trap = vec![50; 99];
    trap.push(60);
    cases.push((trap, 100, 2));
    cases.push(([vec![34; 60], vec![33; 40]].concat(), 100, 3));
    for (lengths, limit, workers) in cases {
        let best = best_packing(&lengths, limit, workers) as f64;
        let (_file, mut settings) = listed(&lengths);
        // A hundredth of the time is kept free: the limit is what is left of it.
        let whole = limit as f64 / 0.99 + 1e-3;
        settings.walltime = Some(Walltime { end: 1000.0 + whole, length: whole });
        let course = play(&settings, &vec![1.0; workers], |task| task.cost.unwrap());
        assert_eq!(course.killed, 0, "{course:?}");
        assert_eq!(course.left as usize, 100 - course.ended);
        assert!(course.used >= 0.95 * best, "of {best} s that can be used {course:?}");
    }
}

/// A list of commands, and a limit of 15 s.
fn cut(lines: &str) -> Course {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    let mut settings = Settings::new(Origin::Commands { file: file.path().to_path_buf(), format: Format::Plain });
    (settings.output, settings.walltime) = (Shown::Nothing, Some(Walltime { end: 1015.0, length: 15.0 }));
    play(&settings, &[1.0; 2], |task| task.cost.unwrap())
}

#[test]
fn what_comes_after_a_task_that_is_left_is_left_at_once() {
    for (lines, ended) in [
        ("a #EQ cost=100\n#EQ barrier\nb #EQ cost=1\n#EQ barrier\nc #EQ cost=1\n", 0),
        ("a #EQ cost=100\nb #EQ cost=1 after=1\nc #EQ cost=1 after=2\n", 0),
        ("a #EQ cost=2\nb #EQ cost=100\n#EQ barrier\nc #EQ cost=1\n", 1),
        ("a #EQ cost=2\nb #EQ cost=1 after=1\nc #EQ cost=14 after=1\n", 2),
    ] {
        let course = cut(lines);
        assert_eq!((course.ended, course.left, course.killed), (ended, 3 - ended as u64, 0), "{lines}");
        assert!(course.over < 5.0, "{lines}: idle until {} s", course.over);
    }
}

#[test]
fn what_can_all_end_in_time_does() {
    let lengths = scattered(100, 1, 30, 9);
    let sum: usize = lengths.iter().sum();
    let (_file, mut settings) = listed(&lengths);
    let whole = sum as f64 / 4.0 * 1.05 + 1.0;
    settings.walltime = Some(Walltime { end: 1000.0 + whole, length: whole });
    let course = play(&settings, &[1.0; 4], |task| task.cost.unwrap());
    assert_eq!((course.ended, course.left, course.killed), (100, 0, 0));
}

/// A job on ranks with eight processors, with a worker for each.
fn with_slots(lines: &str, ranks: usize, change: impl FnOnce(&mut Settings), length: impl Fn(&Task) -> f64) -> Course {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    let mut settings = Settings::new(Origin::Commands { file: file.path().to_path_buf(), format: Format::Plain });
    (settings.output, settings.workers, settings.slots) = (Shown::Nothing, 8, Some(SlotsGiven::parse("cpus=8").unwrap()));
    change(&mut settings);
    play(&settings, &vec![1.0; ranks], length)
}

/// Tasks that take all or half of a rank's resources: no rank gets more than it can run at a time.
#[test]
fn tasks_that_take_much_of_a_rank_run_on_all_ranks() {
    let sash = Scheduler::Sash { alike: false, most: 1000 };
    let rule = Scheduler::parse("selfsched:rule=ss").unwrap();
    for scheduler in [Scheduler::Adaptive, Scheduler::Dss, sash, rule] {
        for (cpus, tasks, at_a_time) in [(8, 16, 1), (4, 32, 2), (5, 16, 1)] {
            for cost in ["", " cost=10"] {
                let lines = format!("task #EQ cpus={cpus}{cost}\n").repeat(tasks);
                let course = with_slots(&lines, 8, |settings| settings.scheduler = scheduler, |_| 10.0);
                let said = format!("cpus={cpus}{cost}, {scheduler:?}: {course:?}");
                assert!(course.ended == tasks && (course.end - 20.0).abs() < 1e-6, "{said}");
                // Where a rank is about to end what it has, a search deals ahead.
                let ahead = if scheduler == sash { 2 } else { 1 };
                assert!(course.most_held <= ahead * at_a_time, "{said}");
            }
        }
    }
}

/// A limit that cuts, for tasks that take a whole rank each: what is dealt begins at once, and none is killed.
#[test]
fn a_limit_that_cuts_is_used_by_tasks_that_take_much_of_a_rank() {
    let lines = (1..=60).map(|seq| format!("task #EQ cpus=8 cost={}\n", [6, 5, 5][seq % 3])).collect::<String>();
    let limit = Walltime { end: 1020.21, length: 20.21 };
    let course = with_slots(&lines, 2, |settings| settings.walltime = Some(limit), |task| task.cost.unwrap());
    assert_eq!((course.killed, course.used, course.left as usize), (0, 40.0, 60 - course.ended), "{course:?}");
}

/// One that needs a whole rank is overtaken for a while by others that fit, and no longer.
#[test]
fn a_task_that_needs_much_begins_before_long() {
    let small = |tasks: usize| "small\n".repeat(tasks);
    let lines = format!("{}large #EQ cpus=8\n{}", small(16), small(2000));
    let course = with_slots(&lines, 2, |_| {}, |task| 1.0 + (task.seq % 7) as f64 / 10.0);
    assert_eq!(course.ended, 2017);
    let at = course.began.iter().position(|seq| *seq == 17).unwrap();
    assert!((17..=17 + 256).contains(&at), "it is number {at}");
    assert!(course.end < 1.5 * 2017.0 / 16.0, "{} s", course.end);
}

#[test]
fn ranks_of_different_speed_end_together() {
    let speeds = [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0];
    for seed in 1..=5 {
        for (known, most) in [(",costs=known", 1.10), ("", 1.15)] {
            let asked = Sleep::parse(&format!("uniform:min=5ms,max=500ms,tasks=500,seed={seed}{known}")).unwrap();
            let bound = (1..=500).map(|seq| asked.seconds(seq)).sum::<f64>() / speeds.iter().sum::<f64>();
            let mut settings = Settings::new(Origin::Sleep(asked));
            settings.output = Shown::Nothing;
            let schedulers: &[Scheduler] = match known {
                "" => &[Scheduler::Adaptive, Scheduler::Dss],
                _ => &[Scheduler::Adaptive, Scheduler::Sash { alike: false, most: 1000 }],
            };
            for scheduler in schedulers {
                settings.scheduler = *scheduler;
                let course = play(&settings, &speeds, |task| {
                    assert_eq!(task.how, How::Sleep);
                    sleep::seconds(&task.text)
                });
                assert_eq!(course.ended, 500);
                let end = course.end;
                assert!(end <= most * bound, "seed {seed}{known}, {scheduler:?}: {end} s, and no schedule ends before {bound} s");
            }
        }
    }
}
