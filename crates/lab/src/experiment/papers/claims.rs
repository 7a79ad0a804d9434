//! Claims of a paper, and whether they came out.

use serde::Serialize;

use super::evidence::{Decision, Mean, difference};
use super::records::{Record, Records, Verdict};
use super::{Item, Paper, Point, Points};
use equipoise::error::Result;

/// A checkable sentence of a paper.
pub struct Claim {
    /// Its key among the records.
    pub id: &'static str,
    /// Place in the paper, such as its section.
    pub place: &'static str,
    /// Items that are measured to judge it. All of them are needed.
    pub items: &'static [Item],
    /// The paper's statement, in our words.
    pub says: &'static str,
    /// The number that it gives; empty if it gives none.
    pub number: &'static str,
    /// The reading under which it is judged; empty if the text says all.
    pub reading: &'static str,
    /// Why it is not so; empty for what is.
    pub why: &'static str,
    pub judge: fn(&Points) -> Option<Finding>,
}

/// Result of the points for a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub holds: Decision,
    /// Our numbers.
    pub ours: String,
    /// Random cases behind the weakest of them.
    pub cases: u64,
    /// The 95 % interval of the one figure that is compared; the figure itself where nothing is random.
    pub interval: Option<[f64; 2]>,
}

/// A claim with what was found, and the record that it is compared with.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    pub paper: Paper,
    pub claim: &'static str,
    pub place: &'static str,
    pub says: &'static str,
    pub number: &'static str,
    pub ours: String,
    pub cases: u64,
    /// See [`Finding::interval`]; not recorded.
    #[serde(skip)]
    pub interval: Option<[f64; 2]>,
    pub verdict: Verdict,
    pub reading: &'static str,
    /// Why it is not reproduced; empty if it is.
    pub why: &'static str,
    pub recorded: Option<Verdict>,
    /// Whether this verdict is recorded, or one that does not contradict it: fewer cases may leave open what more of them decide.
    pub as_recorded: bool,
}

impl Judged {
    /// The record that says this of the claim.
    pub fn record(&self) -> Record {
        Record { verdict: self.verdict, ours: self.ours.clone(), cases: self.cases }
    }
}

/// Judges the claims for which all is measured.
///
/// # Errors
/// If the records cannot be read.
pub fn judge(paper: Paper, claims: &[Claim], points: &Points, records: &Records) -> Result<Vec<Judged>> {
    let measured = |item: &Item| points.0.iter().any(|point| point.item == *item);
    let ready = claims.iter().filter(|claim| claim.items.iter().all(measured));
    Ok(ready.filter_map(|claim| Some(claim.found(paper, (claim.judge)(points)?, records.find(claim.id)))).collect())
}

impl Claim {
    fn found(&self, paper: Paper, finding: Finding, recorded: Option<&Record>) -> Judged {
        let verdict = match (finding.holds, self.reading) {
            (Decision::Yes, "") => Verdict::Reproduced,
            (Decision::Yes, _) => Verdict::UnderReading,
            (Decision::No, _) => Verdict::NotReproduced,
            (Decision::Open, _) => Verdict::Undecided,
        };
        let as_recorded = recorded.is_some_and(|record| {
            record.verdict == verdict
                || (record.verdict == Verdict::Undecided && finding.cases > record.cases)
                || (verdict == Verdict::Undecided && finding.cases < record.cases)
        });
        Judged {
            paper,
            claim: self.id,
            place: self.place,
            says: self.says,
            number: self.number,
            ours: finding.ours,
            cases: finding.cases,
            interval: finding.interval,
            verdict,
            reading: self.reading,
            why: if verdict == Verdict::NotReproduced { self.why } else { "" },
            recorded: recorded.map(|record| record.verdict),
            as_recorded,
        }
    }

    /// The claim as it is recorded, without measuring.
    pub fn recorded(&self, paper: Paper, records: &Records) -> Option<Judged> {
        let record = records.find(self.id)?;
        let holds = match record.verdict {
            Verdict::Reproduced | Verdict::UnderReading => Decision::Yes,
            Verdict::NotReproduced => Decision::No,
            Verdict::Undecided => Decision::Open,
        };
        let finding = Finding { holds, ours: record.ours.clone(), cases: record.cases, interval: None };
        Some(self.found(paper, finding, Some(record)))
    }
}

impl Finding {
    /// The finding with the numbers of some points.
    pub(super) fn new(holds: Decision, points: &[&Point], ours: impl Into<String>) -> Option<Finding> {
        let cases = points.iter().map(|point| point.cases).min()?;
        Some(Finding { holds, ours: ours.into(), cases, interval: None })
    }

    /// The same, where the claim compares one figure.
    pub(super) fn of_one(self, low: f64, high: f64) -> Finding {
        Finding { interval: Some([low, high]), ..self }
    }
}

/// Whether the paper's printed numbers of these points are ours, too; `None` if there are no points. `cases` is the number of random cases behind the
/// paper's: with fewer cases than these it is open, since few samples agree with anything.
pub(super) fn agreeing(points: &[&Point], cases: u64) -> Option<Finding> {
    let printed: Vec<&Point> = points.iter().copied().filter(|point| point.printed.is_some()).collect();
    let agree = printed.iter().all(|point| point.agrees == Some(true));
    let enough = printed.iter().all(|point| point.cases >= cases);
    let holds = if agree && !enough { Decision::Open } else { Decision::of(agree) };
    let found = Finding::new(holds, &printed, numbers(&printed))?;
    Some(if let [one] = printed[..] { found.of_one(one.low, one.high) } else { found })
}

/// All values of some points in their order: equal ones once if all are equal.
pub(super) fn numbers(points: &[&Point]) -> String {
    let texts: Vec<String> = points.iter().map(|point| number(point)).collect();
    match texts.first() {
        Some(first) if texts.iter().all(|text| text == first) => first.clone(),
        _ => texts.join(", "),
    }
}

/// A point's value with half the width of its interval: `0.25 ± 0.01`; without where nothing is random.
pub(super) fn number(point: &Point) -> String {
    with_interval(&point.mean)
}

/// The same of any mean.
pub(super) fn with_interval(mean: &Mean) -> String {
    let half = mean.interval().1 - mean.value;
    if half <= 0.0 {
        return short(mean.value);
    }
    // One digit of the half width more than the first, and the value to the same place.
    let decimals = (1 - half.log10().floor() as i32).clamp(0, 12) as usize;
    format!("{:.decimals$} ± {half:.decimals$}", mean.value)
}

/// The points with the smallest and the largest value.
pub(super) fn ends<'a>(points: &[&'a Point]) -> Option<[&'a Point; 2]> {
    let by_value = |a: &&&Point, b: &&&Point| a.value.total_cmp(&b.value);
    Some([*points.iter().min_by(by_value)?, *points.iter().max_by(by_value)?])
}

/// Up to four significant digits, without zeros at the end.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Means and bounds of the points.
pub(super) fn against(points: &[&Point], bound: f64) -> Vec<(Mean, f64)> {
    points.iter().map(|point| (point.mean, bound)).collect()
}

/// How much each later point of a curve lies above the one before it.
pub(super) fn rises(points: &[&Point]) -> Vec<(Mean, f64)> {
    points.windows(2).map(|pair| (difference(&pair[1].mean, &pair[0].mean), 0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_they_deserve() {
        assert_eq!([0.0, 21.0, 0.466_666_7, 4.75, 1_234_567.5, 0.094_01].map(short), ["0", "21", "0.4667", "4.75", "1234568", "0.09401"]);
        // 95 % of Student's distribution with 40 degrees of freedom lie within 2.02 standard errors.
        let mean = |value, error| with_interval(&Mean { value, error, freedom: 40.0, cases: 41 });
        assert_eq!([mean(0.8912, 0.002), mean(1.5, 0.1), mean(125_316.4, 90.0)], ["0.8912 ± 0.0040", "1.50 ± 0.20", "125316 ± 182"]);
        // What is alike in all cases, or no sample, has none.
        assert_eq!([mean(2.0, 0.0), with_interval(&Mean::exact(0.25))], ["2", "0.25"]);
    }
}
