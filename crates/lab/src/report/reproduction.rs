//! The figures of a paper against ours, for people.

use super::columns::Tabular;
use super::table::{self, lines};
use crate::experiment::ahmad1994::AhmadPoint;
use crate::experiment::hamidzadeh1995::HamidzadehPoint;
use crate::experiment::wu1997::WuPoint;

/// Wu 1997: a table with a line for each point, and a sentence.
pub fn points(points: &[WuPoint], width: u16) -> String {
    judged(points, |point| point.agrees, width)
}

/// Hamidzadeh, Lilja and Atif 1995: the same of the points for which something is expected.
pub fn totals(points: &[HamidzadehPoint], width: u16) -> String {
    let compared: Vec<HamidzadehPoint> = points.iter().filter(|point| point.expected.is_some()).cloned().collect();
    judged(&compared, |point| point.agrees, width)
}

/// Ahmad, Ghafoor and Fox 1994: the same of response times.
pub fn responses(points: &[AhmadPoint], width: u16) -> String {
    judged(points, |point| point.agrees, width)
}

fn judged<P: Tabular>(points: &[P], agrees: fn(&P) -> bool, width: u16) -> String {
    let number = points.len();
    let sentence = match points.iter().filter(|point| !agrees(point)).count() {
        0 => format!("All {number} points agree with the expected values."),
        off => format!("{off} of {number} points differ from the expected values by more than chance explains."),
    };
    format!("{}\n{sentence}\n", lines(&table::of(points, width)))
}
