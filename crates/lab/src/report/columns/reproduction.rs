//! The columns of a paper's points and of the verdicts on its claims.

use super::{Column, Tabular, Value};
use crate::experiment::papers::claims::short;
use crate::experiment::papers::{Judged, Point, Reference};
use crate::report::printed::{PrintedRow, as_printed};
use crate::report::reproduction::ClaimOfPage;

impl Tabular for Point {
    fn columns() -> Vec<Column<Point>> {
        let new = Column::<Point>::new;
        vec![
            new("paper", |point| point.paper.name().into()),
            new("item", |point| point.item.to_string()).heading("item").left(),
            new("curve", |point| point.curve.clone()).heading("curve").left(),
            new("x", |point| point.x.csv()).heading("at").reads(|point| short(point.x)),
            new("cases", |point| point.cases.csv()).heading("cases"),
            new("value", |point| point.value.csv()).heading("ours").reads(|point| short(point.value)),
            new("low", |point| point.low.csv()),
            new("high", |point| point.high.csv()),
            Column::shown("95 % CI", |point: &Point| match point.low == point.high {
                true => "-".into(),
                false => format!("{}-{}", short(point.low), short(point.high)),
            }),
            new("printed", |point| point.printed.csv())
                .heading("paper")
                .reads(|point| point.printed.map(as_printed).unwrap_or_default())
                .when(|points| points.iter().any(|point| point.printed.is_some())),
            new("p", |point| point.p.csv()),
            new("agrees", |point| point.agrees.csv())
                .heading("verdict")
                .reads(|point| point.agrees.map(|agrees| if agrees { "agrees" } else { "DIFFERS" }).unwrap_or_default().into())
                .when(|points| points.iter().any(|point| point.agrees.is_some())),
            new("expected", |point| point.reference.map(|reference| reference.value).csv())
                .heading("expected")
                .reads(expected)
                .when(|points| points.iter().any(|point| point.reference.is_some())),
            new("tolerance", |point| point.reference.map(|reference| reference.tolerance).csv()),
            new("as_expected", |point| point.is_as_expected().csv()),
        ]
    }
}

/// The reference value with its tolerance, and whether the point is off.
fn expected(point: &Point) -> String {
    let Some(Reference { value, tolerance, .. }) = point.reference else { return String::new() };
    let off = if point.is_as_expected() == Some(false) { ", OFF" } else { "" };
    format!("{} ± {} %{off}", short(value), short(100.0 * tolerance))
}

impl Tabular for Judged {
    fn columns() -> Vec<Column<Judged>> {
        let new = Column::<Judged>::new;
        vec![
            new("paper", |judged| judged.paper.name().into()),
            new("claim", |judged| judged.claim.into()),
            new("place", |judged| judged.place.into()),
            new("says", |judged| judged.says.into()),
            new("number", |judged| judged.number.into()),
            new("ours", |judged| judged.ours.clone()),
            new("cases", |judged| judged.cases.csv()),
            new("verdict", |judged| judged.verdict.name().into()),
            new("reading", |judged| judged.reading.into()),
            new("why", |judged| judged.why.into()),
            new("as_recorded", |judged| judged.as_recorded.csv()),
            new("low", |judged| judged.interval.map(|[low, _]| low).csv()),
            new("high", |judged| judged.interval.map(|[_, high]| high).csv()),
        ]
    }
}

impl Tabular for PrintedRow {
    fn columns() -> Vec<Column<PrintedRow>> {
        vec![
            Column::shown("where", |row: &PrintedRow| row.item.to_string()).left(),
            Column::shown("what", |row: &PrintedRow| row.what.clone()).left(),
            Column::shown("paper", |row: &PrintedRow| row.paper.clone()).left(),
            Column::shown("ours", |row: &PrintedRow| row.ours.clone()).left(),
        ]
    }
}

impl Tabular for ClaimOfPage {
    fn columns() -> Vec<Column<ClaimOfPage>> {
        vec![
            Column::shown("where", |ClaimOfPage(one): &ClaimOfPage| one.place.into()).left(),
            Column::shown("the paper says", |ClaimOfPage(one): &ClaimOfPage| one.says.into()).left(),
            Column::shown("paper", |ClaimOfPage(one): &ClaimOfPage| one.number.into()).left(),
            Column::shown("ours", |ClaimOfPage(one): &ClaimOfPage| one.ours.clone()).left(),
            Column::shown("cases", |ClaimOfPage(one): &ClaimOfPage| one.cases.to_string()),
            Column::shown("verdict", |ClaimOfPage(one): &ClaimOfPage| {
                let recorded = match (one.recorded, one.as_recorded) {
                    (Some(recorded), false) => format!(" (RECORDED: {})", recorded.name()),
                    (None, _) => " (NO VERDICT IS RECORDED)".into(),
                    _ => String::new(),
                };
                let because = [one.reading, one.why].into_iter().filter(|text| !text.is_empty()).map(|text| format!(": {text}"));
                format!("{}{recorded}{}", one.verdict.name(), because.collect::<String>())
            })
            .left(),
        ]
    }
}
