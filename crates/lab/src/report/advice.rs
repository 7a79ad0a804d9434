//! The sentence that a comparison ends with: a recommendation.
//!
//! For long tasks only the remaining imbalance counts, for short ones the time of the phase. So the advice names the fastest of the balancers
//! that balance best, as far as the rounds can tell them apart (see [`ranking`]), and from which task length its phase pays. Where the duration
//! of tasks is known, those that are best are best by the step and the phase together, and which these are the rounds must tell, too; it gives the
//! length of a step before and after the phase. Where tasks have several weights, it gives their largest ratio. Where a
//! rank holds more than it has room for, tasks must move. What a phase is worth is defined in [`CompareRecord::is_worth_it`] and
//! [`CompareRecord::goal`].

use super::figures::{bytes, duration_us, ratio, several};
use crate::experiment::ranking::{self, Verdict};
use crate::experiment::{CaseResult, CompareRecord, LoadUnit, Site};
use equipoise::load::Holding;

/// Results that differ by less than this factor are equally good.
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
    let paying: Vec<&CaseResult> = results.iter().filter(|case| case.records.iter().any(CompareRecord::is_worth_it)).collect();
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
    /// Figures of each record by round, in which the smaller is the better.
    rounds: Vec<Vec<f64>>,
}

impl Standing<'_> {
    fn name(&self) -> String {
        let name = |record: &&CompareRecord| match record.placement {
            Some(placement) => format!("{} with --placement {placement}", record.balancer),
            None => record.balancer.clone(),
        };
        self.records.first().map(name).unwrap_or_default()
    }

    /// Figure of each round: the geometric mean over the cases.
    fn figures(&self) -> Vec<f64> {
        let rounds = self.rounds.iter().map(Vec::len).min().unwrap_or(0);
        let log = |round: usize| self.rounds.iter().map(|figures| figures[round].max(f64::MIN_POSITIVE).ln()).sum::<f64>();
        (0..rounds).map(|round| (log(round) / self.rounds.len() as f64).exp()).collect()
    }

    fn median(&self) -> f64 {
        let log = self.records.iter().map(|record| record.ms_median.max(f64::MIN_POSITIVE).ln()).sum::<f64>();
        (log / self.records.len().max(1) as f64).exp()
    }
}

/// Number of steps over which the cost of a phase is spread: the given number, or else until the first of these balancers pays.
fn steps<'a>(records: impl Iterator<Item = &'a CompareRecord>) -> u64 {
    records.filter_map(|record| record.lasting.or_else(|| record.steps_until_it_pays())).min().unwrap_or(1)
}

/// The records of a case that pay and are as good as the best, as far as the rounds can tell, each with the figures by which these are ranked. Those
/// are the times of the phases; or, where noise in these leaves open who is as good, the goals.
fn as_good_as_the_best(case: &CaseResult) -> Vec<(&CompareRecord, Vec<f64>)> {
    let paying: Vec<&CompareRecord> = case.records.iter().filter(|record| record.is_worth_it()).collect();
    let steps = steps(paying.iter().copied());
    let Some(best) = paying.iter().copied().min_by(|a, b| a.goal(steps).total_cmp(&b.goal(steps))) else { return Vec::new() };
    let (least, goals_of_best) = (best.goal(steps), best.measured_goals(steps));
    let is_within = |record: &CompareRecord| record.goal(steps) <= least * AS_GOOD;
    let is_as_good = |record: &CompareRecord| match (record.measured_goals(steps), &goals_of_best) {
        // Whatever its phase takes, its step alone is longer.
        (Some(_), Some(_)) if record.goal(u64::MAX) > least * AS_GOOD => false,
        (Some(own), Some(others)) => !ranking::is_known_longer(&own, others, AS_GOOD, paying.len()),
        _ => is_within(record),
    };
    let good: Vec<&CompareRecord> = paying.iter().copied().filter(|record| is_as_good(record)).collect();
    let is_open = !good.iter().all(|record| is_within(record));
    let figures = |record: &CompareRecord| record.measured_goals(steps).filter(|_| is_open).unwrap_or_else(|| record.ms_rounds.clone());
    good.into_iter().map(|record| (record, figures(record))).collect()
}

/// The balancers that were among the best most often, all in the same cases.
fn best<'a>(cases: &[&'a CaseResult]) -> Vec<Standing<'a>> {
    let mut standings: Vec<Standing<'a>> = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        for (record, figures) in as_good_as_the_best(case) {
            let contender = record.contender;
            let at = standings.iter().position(|standing| standing.contender == contender).unwrap_or_else(|| {
                standings.push(Standing { contender, cases: Vec::new(), records: Vec::new(), rounds: Vec::new() });
                standings.len() - 1
            });
            standings[at].cases.push(number);
            standings[at].records.push(record);
            standings[at].rounds.push(figures);
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
    let figures: Vec<Vec<f64>> = standings.iter().map(Standing::figures).collect();
    let order: Vec<usize> = standings.iter().map(|standing| standing.records.first().map_or(usize::MAX, |r| r.simplicity)).collect();
    let is_simulated = standings.iter().any(|standing| standing.records.iter().any(|record| record.site.network.is_some()));
    if is_simulated { ranking::rank_exact(&figures, &order) } else { ranking::rank(&figures, &order) }
}

/// The sentence for rounds that are too few to rank the best.
fn too_few(best: &[Standing], rounds: usize, needed: usize) -> String {
    let names: Vec<String> = best.iter().map(Standing::name).collect();
    let are = if rounds == 1 { "is" } else { "are" };
    let must = best.iter().flat_map(|standing| &standing.records).find_map(|record| record.beyond_capacity());
    let must = must.map(|fullest| format!("Tasks must move, since {}. ", beyond(fullest))).unwrap_or_default();
    let (least, most) = best.iter().map(Standing::median).fold((f64::INFINITY, 0.0f64), |(a, b), ms| (a.min(ms), b.max(ms)));
    format!(
        "{must}{} {are} too few to tell which of those that balance best is the fastest ({}, in {} to {}): use --repeat {needed} or more.",
        several(rounds as u64, "round"),
        names.join(", "),
        duration_us(least * 1e3),
        duration_us(most * 1e3)
    )
}

/// The condition under which the phase pays.
fn when(records: &[&CompareRecord]) -> String {
    let of = |record: &CompareRecord, says: String| if records.len() > 1 { format!("{says} ({})", case(record)) } else { says };
    let known: Vec<String> = records.iter().filter_map(|record| Some(of(record, result(record)?))).collect();
    let others: Vec<&CompareRecord> = records.iter().copied().filter(|record| result(record).is_none()).collect();
    let others = (!others.is_empty()).then(|| from_when(&others));
    others.into_iter().chain(known).collect::<Vec<_>>().join("; ")
}

/// Result of a phase, where that is more than that it pays from some length of tasks.
pub(super) fn result(record: &CompareRecord) -> Option<String> {
    let imbalance = || format!("from {} to {}", ratio(record.imbalance_before), ratio(record.imbalance_after));
    let time = || duration_us(record.ms_median * 1e3);
    let steps = steps_of(record);
    if let Some(fullest) = record.beyond_capacity() {
        let effect = steps.map_or_else(|| format!("it brings the imbalance {} in {}", imbalance(), time()), lengths_of);
        return Some(format!("{}, so tasks must move; {effect}", beyond(fullest)));
    }
    if let Some([before, after]) = record.largest_ratios() {
        let brings = format!("it brings the largest ratio of all weights from {} to {}", ratio(before), ratio(after));
        let work = || format!("{brings}, and the imbalance of the work {}, in {}", imbalance(), time());
        return Some(steps.map_or_else(work, |steps| format!("{brings}; {}", lengths_of(steps))));
    }
    steps.map(step_of)
}

/// A rank that holds more than it has room for.
fn beyond(Holding { rank, held, capacity, .. }: Holding) -> String {
    format!("rank {rank} holds {} at first and has room for {}", bytes(held), bytes(capacity))
}

/// Seconds of a step before and after the phase, and of the phase, where the duration of tasks is known.
fn steps_of(record: &CompareRecord) -> Option<[f64; 3]> {
    let seconds = record.unit_seconds()?;
    Some([record.makespan_before * seconds, record.makespan_after * seconds, record.ms_median / 1e3])
}

/// The seconds of a step before and after a phase, and of the phase, in words.
fn lengths_of(seconds: [f64; 3]) -> String {
    let [before, after, phase] = seconds.map(|seconds| duration_us(seconds * 1e6));
    format!("a step takes {before} now and {after} after; balancing costs {phase}")
}

/// The same, and whether that pays.
fn step_of([before, after, phase]: [f64; 3]) -> String {
    let (gained, less) = (before - after, 1.0 - (after + phase) / before);
    let pays = match less {
        _ if gained <= 0.0 => "it never pays".into(),
        less if less > 0.0 => format!("{} less", percent(less)),
        _ => format!("it pays if the loads stay alike for {} or more", several((phase / gained).ceil() as u64, "step")),
    };
    format!("{} ({pays})", lengths_of([before, after, phase]))
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
    let on_these = ranks.trim_end_matches(',');
    if records().all(|record| record.tasks == 0) {
        return format!("There are no tasks on these {on_these}, so there is nothing to balance.");
    }
    let is_compared = records().any(|record| record.balancer != "none");
    if let Some(fullest) = records().find_map(CompareRecord::beyond_capacity) {
        return match is_compared {
            true => format!("Tasks must move on these {on_these}, and no balancer makes room: {}.", beyond(fullest)),
            false => {
                format!("No balancer was compared on these {on_these}: {}, see which one reduces it with `--balancer`.", beyond(fullest))
            }
        };
    }
    let most = records().map(|record| record.imbalance_before).fold(1.0, f64::max);
    let ratios = records().filter_map(CompareRecord::largest_ratios).map(|[before, _]| before).reduce(f64::max);
    let (figure, most) = ratios.map_or(("imbalance", most), |most| ("largest ratio of all weights", most));
    if !is_compared {
        return format!(
            "No balancer was compared: the {figure} on these {on_these} is {}, see which one reduces it with `--balancer`.",
            ratio(most)
        );
    }
    let leave = format!("Leave the tasks where they are: on these {ranks} no");
    let gaining = records().filter_map(|record| Some((record, record.lasting?, record.steps_until_it_pays()?)));
    if let Some((record, lasting, pays)) = gaining.min_by_key(|(.., pays)| *pays).filter(|_| ratios.is_none()) {
        let (lasting, pays) = (several(lasting, "step"), several(pays, "step"));
        return format!(
            "{leave} phase pays within {lasting}; {} does so first, if the loads stay alike for {pays} or more.",
            record.balancer
        );
    }
    let in_vain = match records().next() {
        _ if ratios.is_some() => "balancer makes the largest load over its fair share smaller",
        Some(record) if record.site.shares_cores() => "balancer ends the work of all ranks sooner",
        _ => "balancer makes the slowest rank faster",
    };
    format!("{leave} {in_vain} ({figure} {}).", ratio(most))
}

#[cfg(test)]
pub(crate) mod tests;
