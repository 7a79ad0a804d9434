//! Reports of reproductions, the papers' results next to ours: for people, and as the page of the documentation.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::figures::several;
use super::table::{self, lines};
use crate::experiment::papers::{Judged, Paper, Point, Verdict};

/// A line of `reproduce --output json`: a point or a claim. It has the keys common to both, and its own.
#[derive(Serialize)]
pub struct ReproductionLine<'a> {
    #[serde(flatten)]
    own: Own<'a>,
    /// The curve and the place on it, or the claim's name.
    point: String,
    /// A reference value other than the paper's; null for claims.
    expected: Option<f64>,
    /// 95 % interval of a point, or of the one figure that a claim compares; null where it compares several.
    ci95: Option<[f64; 2]>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Own<'a> {
    Point {
        #[serde(flatten)]
        point: &'a Point,
        ours: f64,
        verdict: Option<&'static str>,
        recorded: Option<()>,
        /// Allowed relative deviation of the point from what is expected, as a fraction; and whether it keeps to that, with the cases of a full run.
        tolerance: Option<f64>,
        as_expected: Option<bool>,
    },
    Claim {
        #[serde(flatten)]
        claim: &'a Judged,
        item: &'static str,
        printed: Option<&'static str>,
    },
}

impl<'a> ReproductionLine<'a> {
    /// Line of a point.
    pub fn point(point: &'a Point) -> ReproductionLine<'a> {
        let verdict = point.agrees.map(|agrees| if agrees { "agrees" } else { "differs" });
        ReproductionLine {
            point: format!("{} at {}", point.curve, point.x),
            expected: point.reference.map(|reference| reference.value),
            ci95: Some([point.low, point.high]),
            own: Own::Point {
                point,
                ours: point.value,
                verdict,
                recorded: None,
                tolerance: point.reference.map(|reference| reference.tolerance),
                as_expected: point.is_as_expected(),
            },
        }
    }

    /// Line of a claim.
    pub fn claim(claim: &'a Judged) -> ReproductionLine<'a> {
        let printed = Some(claim.number).filter(|number| !number.is_empty());
        ReproductionLine {
            point: claim.claim.into(),
            expected: None,
            ci95: claim.interval,
            own: Own::Claim { claim, item: claim.place, printed },
        }
    }
}

/// A table with a line for each point.
pub fn points(points: &[Point], width: u16) -> String {
    lines(&table::of(points, width))
}

/// The claims of one paper, each with both numbers and its verdict, and a sentence that counts them.
pub fn claims(paper: Paper, judged: &[Judged], width: u16) -> String {
    let mut out = format!("{}\n", paper.citation());
    for one in judged {
        let as_recorded = match (one.recorded, one.as_recorded) {
            (Some(recorded), false) => format!(" (RECORDED: {})", recorded.name()),
            (None, _) => " (NO VERDICT IS RECORDED)".into(),
            _ => String::new(),
        };
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        table.add_row(["", one.place, one.says]);
        for (name, text) in [("paper", one.number), ("ours", &with_cases(one)), ("reading", one.reading), ("why", one.why)] {
            if !text.is_empty() {
                table.add_row(["", name, text]);
            }
        }
        let verdict = format!("{}{as_recorded}", one.verdict.name());
        table.add_row(["", "verdict", &verdict]);
        // All tables alike, so that texts stand below each other.
        if let Some(column) = table.column_mut(1) {
            column.set_constraint(comfy_table::ColumnConstraint::Absolute(comfy_table::Width::Fixed(24)));
        }
        let _ = write!(out, "\n{}", lines(&table));
    }
    let _ = writeln!(out, "\n{}.", counted(judged));
    out
}

/// A claim as a row of a page.
pub(super) struct ClaimOfPage(pub Judged);

/// Number of claims by verdict, in words.
pub(super) fn counted<'a>(judged: impl IntoIterator<Item = &'a Judged>) -> String {
    let verdicts: Vec<Verdict> = judged.into_iter().map(|one| one.verdict).collect();
    let of = |verdict| verdicts.iter().filter(|one| **one == verdict).count();
    let parts = Verdict::ALL.map(|verdict| format!("{} {}", of(verdict), verdict.name()));
    format!("{}: {}", several(verdicts.len() as u64, "claim"), parts.join(", "))
}

fn with_cases(one: &Judged) -> String {
    match one.cases {
        0 | 1 => one.ours.clone(),
        cases => format!("{} ({})", one.ours, several(cases, "case")),
    }
}

/// The claims of all papers as Markdown, a table for each.
pub fn markdown(papers: &[(Paper, Vec<Judged>)]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}.", counted(papers.iter().flat_map(|(_, judged)| judged)));
    for (paper, judged) in papers {
        let _ = writeln!(out, "\n### `{}` ({}): {}\n\n{}.\n", paper.name(), paper.number(), paper.citation(), counted(judged));
        out.push_str("| where | the paper says | paper | ours | cases | verdict |\n|---|---|---|---|--:|---|\n");
        for one in judged {
            let because =
                [one.reading, one.why].into_iter().filter(|text| !text.is_empty()).map(|text| format!(": {text}")).collect::<String>();
            let cells =
                [one.place, one.says, one.number, &one.ours, &one.cases.to_string(), &format!("**{}**{because}", one.verdict.name())]
                    .map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    out
}
