//! The sentence that a comparison ends with: what to do about it.
//!
//! For tasks that last long only the imbalance left behind counts, for short ones the phase's own time. So the advice names, of the
//! balancers that balance best, the fastest, and from which task length on its phase pays.

use super::figures::{duration_us, of_real_tasks, ratio, several, three};
use crate::experiment::CompareRecord;

/// Results whose longest ranks differ by less than this are equally good.
const AS_GOOD: f64 = 1.01;

/// One sentence that a person can act on.
pub fn sentence(records: &[CompareRecord]) -> String {
    let Some(first) = records.first() else { return "Nothing was compared.".into() };
    let ranks = several(first.site.ranks.into(), if first.site.network.is_some() { "simulated rank" } else { "rank" });
    if first.site.ranks == 1 {
        return "There is one rank only, so there is nothing to balance: compare on more ranks, as in `mpirun -n 8 equipoise compare`."
            .into();
    }
    let cases: Vec<&[CompareRecord]> = records.chunk_by(|a, b| a.loads == b.loads && a.payload == b.payload).collect();
    let paying: Vec<&[CompareRecord]> = cases.iter().copied().filter(|case| case.iter().any(|r| r.break_even_us.is_some())).collect();
    if paying.is_empty() {
        return nothing_pays(records, &ranks);
    }
    let standings = standings(&paying);
    let Some(best) = standings.first() else { return nothing_pays(records, &ranks) };
    let rivals: Vec<&Standing> = standings[1..].iter().filter(|rival| rival.is_level_with(best)).collect();
    let several_compared = records.iter().any(|record| record.balancer != best.balancer);
    let mut advice =
        if several_compared { format!("On these {ranks} use {}", best.balancer) } else { format!("{} on these {ranks}", best.balancer) };
    if !rivals.is_empty() {
        let names: Vec<&str> = rivals.iter().map(|rival| rival.balancer).collect();
        let names = match names.len() {
            ..=3 => names.join(", "),
            others => format!("{others} others that balance as well"),
        };
        advice.push_str(&format!(" ({names} cannot be told from it)"));
    }
    advice.push_str(&format!(": {}", from_when(&best.records)));
    let idle = cases.len() - paying.len();
    if idle > 0 {
        advice.push_str(&format!(
            ", and on {} nothing pays",
            if idle == 1 { "one of the loads".into() } else { format!("{idle} of the loads") }
        ));
    }
    advice.push('.');
    advice
}

/// How a balancer did in the cases in which something pays.
struct Standing<'a> {
    balancer: &'a str,
    /// Its records in the cases in which it was among the best.
    records: Vec<&'a CompareRecord>,
    /// Sum over these of the logarithm of its time over that of the fastest of the best.
    slower: f64,
}

impl Standing<'_> {
    /// Whether the intervals of both overlap wherever they were measured.
    fn is_level_with(&self, other: &Standing) -> bool {
        let apart = |(a, b): (&&CompareRecord, &&CompareRecord)| a.ms_ci95[0] > b.ms_ci95[1] || b.ms_ci95[0] > a.ms_ci95[1];
        self.records.len() == other.records.len() && !self.records.iter().zip(&other.records).any(apart)
    }
}

/// All balancers that were among the best somewhere: first those that were so most often, then by their times.
fn standings<'a>(cases: &[&'a [CompareRecord]]) -> Vec<Standing<'a>> {
    let mut standings: Vec<Standing<'a>> = Vec::new();
    for case in cases {
        let most = case.iter().filter(|r| r.break_even_us.is_some()).map(|r| r.finish_after).fold(f64::INFINITY, f64::min);
        let good: Vec<&CompareRecord> = case.iter().filter(|r| r.break_even_us.is_some() && r.finish_after <= most * AS_GOOD).collect();
        let fastest = good.iter().map(|r| r.ms_median).fold(f64::INFINITY, f64::min);
        for record in good {
            let slower = if record.ms_median > fastest { (record.ms_median / fastest.max(1e-6)).ln() } else { 0.0 };
            match standings.iter_mut().find(|standing| standing.balancer == record.balancer) {
                Some(standing) => {
                    standing.records.push(record);
                    standing.slower += slower;
                }
                None => standings.push(Standing { balancer: &record.balancer, records: vec![record], slower }),
            }
        }
    }
    standings.sort_by(|a, b| b.records.len().cmp(&a.records.len()).then(a.slower.total_cmp(&b.slower)));
    standings
}

fn from_when(records: &[&CompareRecord]) -> String {
    let length = |record: &CompareRecord| record.break_even_us.unwrap_or(f64::INFINITY);
    let shortest = records.iter().copied().min_by(|a, b| length(a).total_cmp(&length(b)));
    let longest = records.iter().copied().max_by(|a, b| length(a).total_cmp(&length(b)));
    let (Some(shortest), Some(longest)) = (shortest, longest) else { return "it pays".into() };
    let what_it_does = |record: &CompareRecord| {
        format!(
            "it brings the imbalance from {} to {} in {} ms",
            ratio(record.imbalance_before),
            ratio(record.imbalance_after),
            three(record.ms_median)
        )
    };
    if records.len() == 1 || length(longest) <= length(shortest) {
        return format!("{}, which pays when {} lasts {} or more", what_it_does(shortest), unit(shortest), duration_us(length(shortest)));
    }
    format!(
        "it pays when {} lasts {} or more ({}), and at the worst from {} on ({})",
        unit(shortest),
        duration_us(length(shortest)),
        case(shortest),
        duration_us(length(longest)),
        case(longest)
    )
}

fn unit(record: &CompareRecord) -> &'static str {
    record.weighing.unit.one()
}

fn case(record: &CompareRecord) -> String {
    match record.payload {
        payload if payload > 0 && !of_real_tasks(&record.loads) => format!("{}, {payload} B", record.loads),
        _ => record.loads.clone(),
    }
}

fn nothing_pays(records: &[CompareRecord], ranks: &str) -> String {
    if records.iter().all(|record| record.tasks == 0) {
        return format!("There are no tasks on these {ranks}, so there is nothing to balance.");
    }
    let most = records.iter().map(|record| record.imbalance_before).fold(1.0, f64::max);
    if records.iter().all(|record| record.balancer == "none") {
        return format!(
            "No balancer was compared: the imbalance on these {ranks} is {}, see which one mends it with `--balancer`.",
            ratio(most)
        );
    }
    format!("Leave the tasks where they are: on these {ranks} no balancer makes the slowest rank faster (imbalance {}).", ratio(most))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiment::{Imbalances, LoadMap, Site, Weighing};
    use crate::judge::Imbalance;
    use crate::topology::{Placement, Topology};

    /// A record of four ranks with an imbalance of 2 before.
    pub(crate) fn record(balancer: &str, loads: &str, ms: f64, finish_after: f64) -> CompareRecord {
        let figures = |finish: f64| Imbalance {
            max_over_mean: finish / 10.0,
            max_over_mean_less_one: finish / 10.0 - 1.0,
            mean_over_max: 10.0 / finish,
        };
        CompareRecord {
            balancer: balancer.into(),
            topology: "complete:4".into(),
            native: true,
            site: Site { ranks: 4, hosts: 1, network: None, seed: 1 },
            nodes: 4,
            loads: loads.into(),
            payload: 64,
            tasks: 40,
            weighing: Weighing::default(),
            repeat: 5,
            imbalance_before: 2.0,
            imbalance_after: finish_after / 10.0,
            imbalance: Imbalances { before: figures(20.0), after: figures(finish_after) },
            moved: 10,
            least: 10,
            task_hops: 12,
            optimum_task_hops: Some(10),
            hops_ratio: Some(1.2),
            exact: true,
            declined: false,
            steps: 4,
            messages: 12,
            bytes: 1234,
            host_bytes: 0,
            ms_median: ms,
            ms_ci95: [ms * 0.9, ms * 1.1],
            ms_coverage: 0.95,
            ms_information: ms / 2.0,
            ms_decision: 0.0,
            ms_exchange: ms / 2.0,
            break_even_us: (finish_after < 20.0).then(|| ms * 1e3 / (20.0 - finish_after)),
            finish_before: 20.0,
            finish_after,
            map: LoadMap {
                topology: Topology::parse("complete:4", 4).unwrap(),
                placement: Placement::one_host(4, 4).unwrap(),
                before: vec![20, 5, 5, 10],
                quota: vec![10; 4],
                after: vec![10; 4],
            },
            trace: None,
        }
    }

    #[test]
    fn the_fastest_of_the_best_is_named() {
        let records = [
            record("none", "hot", 0.001, 20.0),
            record("cwa", "hot", 0.2, 10.0),
            record("direct", "hot", 0.1, 10.0),
            record("dem", "hot", 0.01, 12.0),
        ];
        assert_eq!(
            sentence(&records),
            "On these 4 ranks use direct: it brings the imbalance from 2.00 to 1.00 in 0.100 ms, which pays when a task lasts 10.0 us or more."
        );
    }

    #[test]
    fn over_several_cases_the_range_is_said() {
        let records = [
            record("cwa", "hot", 0.2, 10.0),
            record("direct", "hot", 0.1, 10.0),
            record("cwa", "uniform", 0.2, 10.0),
            record("direct", "uniform", 0.15, 10.0),
            record("cwa", "zero", 0.2, 20.0),
            record("direct", "zero", 0.15, 20.0),
        ];
        assert_eq!(
            sentence(&records),
            "On these 4 ranks use direct: it pays when a task lasts 10.0 us or more (hot, 64 B), and at the worst from 15.0 us on \
             (uniform, 64 B), and on one of the loads nothing pays."
        );
    }

    #[test]
    fn what_the_measurement_cannot_tell_apart_is_said() {
        let records = [record("cwa", "hot", 0.101, 10.0), record("direct", "hot", 0.1, 10.0)];
        assert!(sentence(&records).starts_with("On these 4 ranks use direct (cwa cannot be told from it): it brings"));
    }

    #[test]
    fn where_nothing_pays_the_advice_is_to_leave_it() {
        let same = [record("cwa", "even", 0.1, 20.0), record("none", "even", 0.0, 20.0)];
        assert_eq!(
            sentence(&same),
            "Leave the tasks where they are: on these 4 ranks no balancer makes the slowest rank faster (imbalance 2.00)."
        );
        let empty = [CompareRecord { tasks: 0, ..record("cwa", "zero", 0.1, 20.0) }];
        assert_eq!(sentence(&empty), "There are no tasks on these 4 ranks, so there is nothing to balance.");
        let mut alone = record("cwa", "hot", 0.1, 10.0);
        alone.site.ranks = 1;
        assert!(sentence(&[alone]).starts_with("There is one rank only"));
        assert!(sentence(&[record("none", "hot", 0.1, 20.0)]).starts_with("No balancer was compared"));
        assert_eq!(sentence(&[]), "Nothing was compared.");
    }

    #[test]
    fn a_single_balancer_is_not_recommended_but_judged() {
        let sentence = sentence(&[record("cwa", "hot", 0.1, 10.0)]);
        assert!(sentence.starts_with("cwa on these 4 ranks: it brings the imbalance from 2.00 to 1.00"), "{sentence}");
    }
}
