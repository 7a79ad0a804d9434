//! The sentence that a comparison of schedulers ends with: which one to use, or that none is worth it.

use super::figures::{several, three};
use super::run_times::{percent, time};
use crate::experiment::RunRecord;
use crate::experiment::ranking::{self, Compared, Verdict};

/// One sentence that a person can act on.
pub fn sentence(records: &[RunRecord]) -> String {
    match records.iter().find_map(|record| record.interrupted.as_ref()) {
        Some(interruption) => format!("{} {}", interruption.sentence("runs"), recommendation(records)),
        None => recommendation(records),
    }
}

fn recommendation(records: &[RunRecord]) -> String {
    let Some(first) = records.first() else { return "Nothing was run.".into() };
    let times: Vec<Vec<f64>> = records.iter().map(times).collect();
    let order: Vec<usize> = records.iter().map(|record| record.simplicity).collect();
    let rounds = times.iter().map(Vec::len).min().unwrap_or(0);
    // One simulated round repeats exactly; several have seeds of their own.
    let is_exact = first.site.network.is_some() && rounds == 1;
    let verdict = if is_exact { ranking::rank_exact(&times, &order) } else { ranking::rank(&times, &order) };
    let ranking = match verdict {
        None => return "Nothing was run.".into(),
        Some(Verdict::Ranked(ranking)) => ranking,
        Some(Verdict::TooFew { rounds, needed }) => return too_few(records, &times, rounds, needed),
    };
    let Some(best) = records.get(ranking.best) else { return "Nothing was run.".into() };
    let names: Vec<&str> = ranking.tied.iter().filter_map(|tied| records.get(*tied)).map(|record| record.scheduler.as_str()).collect();
    let tied = match (names.as_slice(), is_exact) {
        ([], _) => String::new(),
        (names, true) => format!(" (as fast: {})", names.join(", ")),
        (names, false) => format!(" (statistically tied with: {})", names.join(", ")),
    };
    let ranks = several(first.site.ranks.into(), if first.site.network.is_some() { "simulated rank" } else { "rank" });
    let seed = if is_exact && records.len() > 1 { format!(" with seed {}", first.site.seed) } else { String::new() };
    if let Some(against) = one_worker(best)
        && records.iter().zip(&times).all(|(_, times)| over(times, &against, is_exact) != Some(Compared::Shorter))
    {
        let (alone, took) = (time(first, best.typical().sequential), time(best, judged(best)));
        let whom = if first.sequential_is_plain { "a plain program takes" } else { "it takes" };
        return match over(times.get(ranking.best).map_or(&[], Vec::as_slice), &against, is_exact) {
            Some(Compared::Longer) => format!(
                "No scheduler is faster than one worker on these {ranks}{seed}: {whom} {alone}, {} {took}{tied}. Take a larger problem, or fewer ranks.",
                best.scheduler
            ),
            _ => format!(
                "No scheduler is shown to be faster than one worker on these {ranks}{seed}: {whom} {alone}, {} {took}{tied}.",
                best.scheduler
            ),
        };
    }
    let advice = match records.len() {
        1 => format!("{} on these {ranks}", best.scheduler),
        _ => format!("On these {ranks} use {}{tied}{seed}", best.scheduler),
    };
    format!("{advice}: {}.", how_good(best, is_exact))
}

/// Times by which schedulers are judged, one per round: response times of a stream, otherwise makespans.
fn times(record: &RunRecord) -> Vec<f64> {
    match (&record.rounds, &record.responses) {
        (Some(rounds), Some(_)) => rounds.responses.clone(),
        (Some(rounds), None) => rounds.makespans.clone(),
        (None, Some(responses)) => vec![responses.response_mean],
        (None, None) => vec![record.makespan],
    }
}

fn judged(record: &RunRecord) -> f64 {
    match &record.responses {
        Some(responses) => responses.response_mean,
        None => record.typical().makespan,
    }
}

/// Time of one worker in each round. `None` if it is unknown: for streams, and where ranks differ and there is no plain program.
fn one_worker(record: &RunRecord) -> Option<Vec<f64>> {
    if record.responses.is_some() || (record.scheduling.is_some() && !record.sequential_is_plain) || record.tasks == 0 {
        return None;
    }
    Some(record.rounds.as_ref().map_or_else(|| vec![record.sequential], |rounds| rounds.sequentials.clone()))
}

fn over(times: &[f64], against: &[f64], is_exact: bool) -> Option<Compared> {
    match (is_exact, times, against) {
        (true, [time], [alone]) if time < alone => Some(Compared::Shorter),
        (true, [_], [_]) => Some(Compared::Longer),
        _ => ranking::compared(times, against),
    }
}

fn how_good(record: &RunRecord, is_exact: bool) -> String {
    let took = time(record, judged(record));
    if record.responses.is_some() {
        return format!("a graph is answered after {took} on average");
    }
    let typical = record.typical();
    let share = typical.bound_efficiency;
    let what = if record.scheduling.is_some() { "the lower bound" } else { "what the granularity bound allows" };
    let faster = one_worker(record).map(|against| {
        // Of the figures printed; the ranking is by ratios within rounds.
        let ratio = typical.sequential / typical.makespan;
        // One round on real ranks does not show how much times vary.
        if is_exact || against.len() > 1 { format!(", {} times as fast as one worker", three(ratio)) } else { String::new() }
    });
    format!("{took}, {} of {what}{}", percent(share), faster.unwrap_or_default())
}

/// The sentence for rounds that are too few to rank; it names no winner.
fn too_few(records: &[RunRecord], times: &[Vec<f64>], rounds: usize, needed: usize) -> String {
    let Some(first) = records.first() else { return String::new() };
    let few = format!(
        "{} {} too few to rank {}: use --repeat {needed} or more",
        several(rounds as u64, "round"),
        if rounds == 1 { "is" } else { "are" },
        several(records.len() as u64, "scheduler")
    );
    let against = one_worker(first);
    let all_lost =
        against.is_some_and(|against| times.iter().flat_map(|times| times.iter().zip(&against)).all(|(time, alone)| time >= alone));
    match all_lost {
        true => format!("{few}. None of them was faster than one worker, which takes {}.", time(first, first.typical().sequential)),
        false => format!("{few}."),
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::super::run_page::tests::{in_rounds, record, repeated};
    use super::*;

    fn simulated(mut record: RunRecord) -> RunRecord {
        record.site.network = Some("zero".into());
        record
    }

    #[test]
    fn the_fastest_is_named_with_what_it_gains() {
        let records = [repeated("static", 1.2, 9), repeated("steal", 1.0, 9)];
        assert_eq!(
            sentence(&records),
            "On these 2 ranks use steal: 1.00 s, 100% of what the granularity bound allows, 1.50 times as fast as one worker."
        );
        // Of those that are the same the simplest comes first, in whatever order they were requested.
        let records = [repeated("steal", 1.0, 9), repeated("random", 1.0, 9), repeated("static", 1.4, 9)];
        assert!(
            sentence(&records).starts_with("On these 2 ranks use random (statistically tied with: steal): 1.00 s"),
            "{}",
            sentence(&records)
        );
        let alone = sentence(&[repeated("steal", 1.0, 9)]);
        assert!(alone.starts_with("steal on these 2 ranks: 1.00 s, "), "{alone}");
    }

    #[test]
    fn that_one_worker_is_faster_is_said() {
        let plain = |mut record: RunRecord| {
            record.sequential_is_plain = true;
            record
        };
        assert_eq!(
            sentence(&[repeated("static", 4.0, 9), repeated("steal", 2.0, 9)].map(plain)),
            "No scheduler is faster than one worker on these 2 ranks: a plain program takes 1.50 s, steal 2.00 s. Take a larger problem, or fewer ranks."
        );
        assert_eq!(
            sentence(&[repeated("static", 4.0, 9), repeated("steal", 1.5, 9)].map(plain)),
            "No scheduler is shown to be faster than one worker on these 2 ranks: a plain program takes 1.50 s, steal 1.50 s."
        );
        assert!(
            sentence(&[simulated(record("steal", 2.0))])
                .starts_with("No scheduler is faster than one worker on these 2 simulated ranks: it takes 1.50 s")
        );
    }

    #[test]
    fn the_printed_figures_follow_from_each_other() {
        let of_rounds = |scheduler: &str, makespans: [f64; 2]| {
            let rounds = Some(in_rounds(makespans.to_vec(), vec![1.5, 2.5]));
            RunRecord { rounds, ..record(scheduler, makespans[0]) }
        };
        let records = [of_rounds("static", [8.0, 4.0]), of_rounds("steal", [3.0, 9.0])];
        let text = run::compare(&records, 200);
        // 2 s on one worker; 6 s on two are an efficiency of 2 / 12, and the bound is 1 s.
        for expected in [
            "2 rounds; times are medians with their 50 % confidence intervals\n",
            "sequential time 2.00 s",
            "6.00 s 4.00-8.00 s   16.7  16.7 none",
            "6.00 s 3.00-9.00 s   16.7  16.7 none",
            "None of them was faster than one worker, which takes 2.00 s.",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let alone = run::run(&records[1], 200);
        for expected in ["6.00 s, median of 2 rounds (50 %: 3.00-9.00 s); 3.00 s with seed 1", "2.00 s, all tasks", "16.7% of the ideal"] {
            assert!(alone.contains(expected), "{expected}: {alone}");
        }
        let rounds = serde_json::to_value(&records[1]).unwrap();
        assert_eq!(rounds["makespan_ci95"], serde_json::json!([3.0, 9.0]));
        assert!((rounds["makespan_coverage"].as_f64().unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn few_rounds_name_nobody() {
        for rounds in 1..6 {
            let few = sentence(&[repeated("static", 1.2, rounds), repeated("steal", 1.0, rounds)]);
            let are = if rounds == 1 { "1 round is" } else { &format!("{rounds} rounds are") };
            assert_eq!(few, format!("{are} too few to rank 2 schedulers: use --repeat 6 or more."));
        }
        assert_eq!(
            sentence(&[record("static", 4.0), record("steal", 2.0)]),
            "1 round is too few to rank 2 schedulers: use --repeat 6 or more. None of them was faster than one worker, which takes 1.50 s."
        );
        // A simulated round repeats exactly, with its seed.
        let simulated = sentence(&[record("static", 1.2), record("steal", 1.0)].map(simulated));
        assert!(simulated.starts_with("On these 2 simulated ranks use steal with seed 1: 1.00 s, "), "{simulated}");
        assert_eq!(sentence(&[]), "Nothing was run.");
    }
}
