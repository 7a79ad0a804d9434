//! The sentence that a comparison ends with: a recommendation.
//!
//! For long tasks only the remaining imbalance counts, for short ones the time of the phase. So the advice names the fastest of the balancers
//! that balance best, as far as the rounds can tell them apart (see [`ranking`]), and from which task length its phase pays. Where loads are
//! times, it gives the length of a step before and after the phase.

use super::figures::{duration_us, ratio, several};
use crate::experiment::ranking::{self, Verdict};
use crate::experiment::{CaseResult, CompareRecord, LoadUnit, Site};

/// Results that differ by less than this are equally good.
const AS_GOOD: f64 = 1.01;

/// Shortest task length, in microseconds, that is reported.
pub(super) const SHORTEST_US: f64 = 1e-3;

/// One sentence that a person can act on.
pub fn sentence(results: &[CaseResult]) -> String {
    let interrupted = results.iter().flat_map(|result| &result.records).find_map(|record| record.interrupted.as_ref());
    match interrupted {
        Some(interruption) => format!("{} {}", interruption.sentence("phases"), recommendation(results)),
        None => recommendation(results),
    }
}

fn recommendation(results: &[CaseResult]) -> String {
    let records = || results.iter().flat_map(|result| &result.records);
    let Some(first) = records().next() else { return "Nothing was compared.".into() };
    let ranks = ranks(&first.site);
    if first.site.ranks == 1 {
        return "There is one rank only, so there is nothing to balance: compare on more ranks, as in `mpirun -n 8 equipoise compare`."
            .into();
    }
    let paying: Vec<&CaseResult> = results.iter().filter(|case| case.records.iter().any(|r| r.break_even_us.is_some())).collect();
    let best = best(&paying);
    let (Some(leader), Some(verdict)) = (best.first(), verdict(&best)) else { return nothing_pays(results, &ranks) };
    let ranking = match verdict {
        Verdict::Ranked(ranking) => ranking,
        Verdict::TooFew { rounds, needed } => return too_few(&best, rounds, needed),
    };
    let named = best.get(ranking.best).unwrap_or(leader);
    let several_compared = results.iter().any(|case| case.records.len() > 1);
    let mut advice =
        if several_compared { format!("On these {ranks} use {}", named.name()) } else { format!("{} on these {ranks}", named.name()) };
    if !ranking.tied.is_empty() {
        let names: Vec<String> = ranking.tied.iter().filter_map(|tied| best.get(*tied)).map(Standing::name).collect();
        let tied = if first.site.network.is_some() { "as fast" } else { "statistically tied with" };
        advice.push_str(&format!(" ({tied}: {})", names.join(", ")));
    }
    advice.push_str(&format!(": {}", when(&named.records)));
    let idle = results.len() - paying.len();
    if idle > 0 {
        advice.push_str(&format!(
            ", and on {} nothing pays",
            if idle == 1 { "one of the loads".into() } else { format!("{idle} of the loads") }
        ));
    }
    advice.push('.');
    advice
}

/// `8 ranks`, and on how many cores if they share them.
fn ranks(site: &Site) -> String {
    let ranks = several(site.ranks.into(), if site.network.is_some() { "simulated rank" } else { "rank" });
    match site.cores {
        Some(cores) if site.shares_cores() => format!("{ranks}, which share {},", several(cores.into(), "core")),
        _ => ranks,
    }
}

/// The records of one balancer in the cases in which some balancer pays and this one is among the best. There is at least one.
struct Standing<'a> {
    /// Index among the contenders.
    contender: usize,
    /// Indices of these cases.
    cases: Vec<usize>,
    records: Vec<&'a CompareRecord>,
}

impl Standing<'_> {
    fn name(&self) -> String {
        let name = |record: &&CompareRecord| match record.placement {
            Some(placement) => format!("{} with --placement {placement}", record.balancer),
            None => record.balancer.clone(),
        };
        self.records.first().map(name).unwrap_or_default()
    }

    /// By round, the geometric mean over the cases.
    fn times(&self) -> Vec<f64> {
        let rounds = self.records.iter().map(|record| record.ms_rounds.len()).min().unwrap_or(0);
        let log = |round: usize| self.records.iter().map(|record| record.ms_rounds[round].max(f64::MIN_POSITIVE).ln()).sum::<f64>();
        (0..rounds).map(|round| (log(round) / self.records.len() as f64).exp()).collect()
    }

    fn median(&self) -> f64 {
        let log = self.records.iter().map(|record| record.ms_median.max(f64::MIN_POSITIVE).ln()).sum::<f64>();
        (log / self.records.len().max(1) as f64).exp()
    }
}

/// The objective: time until all ranks are done after the phase; where loads are times, the time of the phase is added, spread over `steps` steps.
fn goal(record: &CompareRecord, steps: u64) -> f64 {
    match record.weighing.unit_seconds {
        Some(seconds) => record.makespan_after * seconds * 1e3 + record.ms_median / steps.max(1) as f64,
        None => record.makespan_after,
    }
}

/// Number of steps over which the cost of a phase is spread: the given number, or else until the first of these balancers pays.
fn steps<'a>(records: impl Iterator<Item = &'a CompareRecord>) -> u64 {
    let until_it_pays = |record: &CompareRecord| {
        let gained = (record.makespan_before - record.makespan_after) * record.weighing.unit_seconds? * 1e3;
        (gained > 0.0).then(|| (record.ms_median / gained).ceil().max(1.0) as u64)
    };
    let of = |record: &CompareRecord| record.lasting.or_else(|| until_it_pays(record));
    records.filter_map(of).min().unwrap_or(1)
}

/// The balancers that were among the best most often, all in the same cases.
fn best<'a>(cases: &[&'a CaseResult]) -> Vec<Standing<'a>> {
    let mut standings: Vec<Standing<'a>> = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let paying = || case.records.iter().filter(|record| record.break_even_us.is_some());
        let steps = steps(paying());
        let least = paying().map(|record| goal(record, steps)).fold(f64::INFINITY, f64::min);
        for record in paying().filter(|record| goal(record, steps) <= least * AS_GOOD) {
            let contender = record.contender;
            match standings.iter_mut().find(|standing| standing.contender == contender) {
                Some(standing) => {
                    standing.cases.push(number);
                    standing.records.push(record);
                }
                None => standings.push(Standing { contender, cases: vec![number], records: vec![record] }),
            }
        }
    }
    let first = |a: &Standing, b: &Standing| b.records.len().cmp(&a.records.len()).then(a.median().total_cmp(&b.median()));
    standings.sort_by(first);
    let cases = standings.first().map(|standing| standing.cases.clone()).unwrap_or_default();
    standings.retain(|standing| standing.cases == cases);
    standings.sort_by_key(|standing| standing.contender);
    standings
}

fn verdict(standings: &[Standing]) -> Option<Verdict> {
    let times: Vec<Vec<f64>> = standings.iter().map(Standing::times).collect();
    let order: Vec<usize> = standings.iter().map(|standing| standing.records.first().map_or(usize::MAX, |r| r.simplicity)).collect();
    let is_simulated = standings.iter().any(|standing| standing.records.iter().any(|record| record.site.network.is_some()));
    if is_simulated { ranking::rank_exact(&times, &order) } else { ranking::rank(&times, &order) }
}

/// The sentence for rounds that are too few to rank the best.
fn too_few(best: &[Standing], rounds: usize, needed: usize) -> String {
    let names: Vec<String> = best.iter().map(Standing::name).collect();
    let are = if rounds == 1 { "is" } else { "are" };
    let (least, most) = best.iter().map(Standing::median).fold((f64::INFINITY, 0.0f64), |(a, b), ms| (a.min(ms), b.max(ms)));
    format!(
        "{} {are} too few to tell which of those that balance best is the fastest ({}, in {} to {}): use --repeat {needed} or more.",
        several(rounds as u64, "round"),
        names.join(", "),
        duration_us(least * 1e3),
        duration_us(most * 1e3)
    )
}

/// The condition under which the phase pays.
fn when(records: &[&CompareRecord]) -> String {
    let (timed, others): (Vec<&CompareRecord>, Vec<&CompareRecord>) =
        records.iter().copied().partition(|record| record.weighing.unit_seconds.is_some());
    let of = |record: &CompareRecord, says: String| if records.len() > 1 { format!("{says} ({})", case(record)) } else { says };
    let timed = timed.iter().filter_map(|record| Some(of(record, step(record)?)));
    let others = (!others.is_empty()).then(|| from_when(&others));
    others.into_iter().chain(timed).collect::<Vec<_>>().join("; ")
}

/// Length of a step before and after the phase, where loads are times.
pub(super) fn step(record: &CompareRecord) -> Option<String> {
    let seconds = record.weighing.unit_seconds?;
    Some(step_of(record.makespan_before * seconds, record.makespan_after * seconds, record.ms_median / 1e3))
}

/// The same for given seconds of a step before and after, and of the phase.
pub(super) fn step_of(before: f64, after: f64, phase: f64) -> String {
    let shown = |seconds: f64| duration_us(seconds * 1e6);
    let (gained, less) = (before - after, 1.0 - (after + phase) / before);
    let pays = match less {
        _ if gained <= 0.0 => "it never pays".into(),
        less if less > 0.0 => format!("{} less", percent(less)),
        _ => format!("it pays if the loads stay alike for {} or more", several((phase / gained).ceil() as u64, "step")),
    };
    format!("a step takes {} now and {} after; balancing costs {} ({pays})", shown(before), shown(after), shown(phase))
}

/// A share in percent, rounded down so that it does not promise too much.
fn percent(share: f64) -> String {
    match share * 100.0 {
        less if less < 1.0 => "less than 1 %".into(),
        percent => format!("{percent:.0} %"),
    }
}

fn from_when(records: &[&CompareRecord]) -> String {
    let length = |record: &CompareRecord| record.break_even_us.unwrap_or(f64::INFINITY);
    let shortest = records.iter().copied().min_by(|a, b| length(a).total_cmp(&length(b)));
    let longest = records.iter().copied().max_by(|a, b| length(a).total_cmp(&length(b)));
    let (Some(shortest), Some(longest)) = (shortest, longest) else { return "it pays".into() };
    if records.len() == 1 || length(longest) <= length(shortest) {
        return format!(
            "it brings the imbalance from {} to {} in {}, {}",
            ratio(shortest.imbalance_before),
            ratio(shortest.imbalance_after),
            duration_us(shortest.ms_median * 1e3),
            pays(shortest)
        );
    }
    let lasting = |record: &CompareRecord| duration_us(length(record).max(SHORTEST_US));
    format!(
        "it pays when {} lasts {} or more ({}), and at the worst from {} on ({})",
        shortest.weighing.unit.one(),
        lasting(shortest),
        case(shortest),
        lasting(longest),
        case(longest)
    )
}

fn pays(record: &CompareRecord) -> String {
    let gained = record.makespan_before - record.makespan_after;
    match record.break_even_us {
        Some(us) if us < SHORTEST_US && record.weighing.unit == LoadUnit::Work && gained.is_finite() => {
            format!("which pays when {} of work last longer than that", several(gained as u64, "unit"))
        }
        us => format!("which pays when {} lasts {} or more", record.weighing.unit.one(), duration_us(us.unwrap_or(f64::INFINITY))),
    }
}

fn case(record: &CompareRecord) -> String {
    match record.payload {
        payload if payload > 0 && !record.weighing.payload_is_mean => format!("{}, {payload} B", record.loads),
        _ => record.loads.to_string(),
    }
}

fn nothing_pays(results: &[CaseResult], ranks: &str) -> String {
    let records = || results.iter().flat_map(|result| &result.records);
    if records().all(|record| record.tasks == 0) {
        return format!("There are no tasks on these {}, so there is nothing to balance.", ranks.trim_end_matches(','));
    }
    let most = records().map(|record| record.imbalance_before).fold(1.0, f64::max);
    if records().all(|record| record.balancer == "none") {
        return format!(
            "No balancer was compared: the imbalance on these {} is {}, see which one mends it with `--balancer`.",
            ranks.trim_end_matches(','),
            ratio(most)
        );
    }
    let in_vain = match records().next() {
        Some(record) if record.site.shares_cores() => "ends the work of all ranks sooner",
        _ => "makes the slowest rank faster",
    };
    format!("Leave the tasks where they are: on these {ranks} no balancer {in_vain} (imbalance {}).", ratio(most))
}

#[cfg(test)]
pub(crate) mod tests {
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
        CaseResult { loads, records }
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
        let figures = |finish: f64| Imbalance {
            max_over_mean: finish / 10.0,
            max_over_mean_less_one: finish / 10.0 - 1.0,
            mean_over_max: 10.0 / finish,
        };
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
            on_one([timed("direct", 25.0, 10.0)])
                .ends_with("balancing costs 25.0 ms (it pays if the loads stay alike for 3 steps or more).")
        );
        assert_eq!(step_of(1.0, 1.0, 0.1), "a step takes 1.00 s now and 1.00 s after; balancing costs 100 ms (it never pays)");
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
}
