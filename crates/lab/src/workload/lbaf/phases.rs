//! All phases of a run in a row: how long the tasks of each rank took in each.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use super::super::steps::{MOST_TIMES, SERIES, Steps};
use super::{DataFile, PhaseIds, files_by_rank, parse};
use equipoise::error::{Error, Result};
use equipoise::names;

/// A rank's phases in a file: the time of the tasks in each, and phases that were not recorded.
struct Course {
    times: BTreeMap<u64, f64>,
    skipped: BTreeSet<u64>,
}

/// Reads the phases of a run, in seconds, from the set of files of this name, or from the only one. A phase that is identical to the previous one
/// has its times; one that was not recorded is left out.
///
/// # Errors
/// As [`read`](super::read), and if ranks have different phases; the sentence names the file.
pub fn series(folder: &Path, set: Option<&OsStr>) -> Result<Steps> {
    let wrong = |why: String| Error::input(SERIES, format!(" lbaf:{}: {why}", names::shown(folder)));
    let files = files_by_rank(folder, set).map_err(wrong)?;
    let mut courses: Vec<Course> = Vec::new();
    for path in &files {
        let in_file = |why: String| wrong(format!("{}: {why}", names::shown_argument(path.file_name().unwrap_or_default())));
        let course = parse(path).and_then(|file| course(file, MOST_TIMES / files.len())).map_err(in_file)?;
        if let Some(first) = courses.first() {
            let difference = |one: &Course, other: &Course| one.times.keys().copied().find(|phase| !other.times.contains_key(phase));
            if let Some(missing) = difference(first, &course) {
                return Err(in_file(format!("there is no phase {missing}, and rank 0 has one")));
            }
            if let Some(extra) = difference(&course, first) {
                return Err(in_file(format!("there is a phase {extra}, and rank 0 has none")));
            }
        }
        courses.push(course);
    }
    let numbers: Vec<u64> = courses.first().map(|first| first.times.keys().copied().collect()).unwrap_or_default();
    if numbers.is_empty() {
        return Err(wrong("there is no phase in it".into()));
    }
    let work = numbers.iter().map(|phase| courses.iter().map(|course| course.times.get(phase).copied().unwrap_or(0.0)).collect()).collect();
    let skipped: BTreeSet<u64> = courses.into_iter().flat_map(|course| course.skipped).collect();
    Ok(Steps { work, numbers, skipped: skipped.into_iter().collect() })
}

fn course(file: DataFile, most: usize) -> std::result::Result<Course, String> {
    let listed = file.metadata.and_then(|metadata| metadata.phases).unwrap_or_default();
    let mut times = BTreeMap::new();
    for phase in file.phases {
        let mut sum = 0.0;
        for (index, task) in phase.tasks.iter().enumerate() {
            if !task.time.is_finite() || task.time < 0.0 {
                return Err(format!("phase {}, task {index}: its time, {} s, is negative", phase.id, task.time));
            }
            sum += task.time;
        }
        if times.insert(phase.id, sum).is_some() {
            return Err(format!("phase {} is there twice", phase.id));
        }
    }
    let skipped = ids(&listed.skipped, most)?;
    for id in ids(&listed.identical_to_previous, most)? {
        let before = times.range(..=id).next_back().map(|(_, time)| *time);
        let before = before.ok_or_else(|| format!("phase {id} is to be identical to the previous one, and there is none before it"))?;
        times.entry(id).or_insert(before);
    }
    Ok(Course { skipped: skipped.into_iter().filter(|id| !times.contains_key(id)).collect(), times })
}

/// The phases of a list and its ranges.
fn ids(ids: &PhaseIds, most: usize) -> std::result::Result<BTreeSet<u64>, String> {
    let mut all: BTreeSet<u64> = ids.list.iter().copied().collect();
    for (first, last) in &ids.range {
        if last.saturating_sub(*first) >= most as u64 {
            return Err(format!("its metadata has more phases than can be read: {first} to {last}"));
        }
        all.extend(*first..=*last);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing;

    fn file(phases: &str, metadata: &str) -> String {
        format!(r#"{{"metadata":{{{metadata}}},"phases":[{phases}]}}"#)
    }

    fn phase(id: u64, times: &str) -> String {
        let tasks: Vec<String> =
            times.split_whitespace().enumerate().map(|(task, time)| format!(r#"{{"entity":{{"id":{task}}},"time":{time}}}"#)).collect();
        format!(r#"{{"id":{id},"tasks":[{}]}}"#, tasks.join(","))
    }

    #[test]
    fn phases_become_steps() {
        let metadata = r#""phases":{"count":6,"skipped":{"list":[4],"range":[]},"identical_to_previous":{"list":[],"range":[[1,2]]}}"#;
        let zero = file(&[phase(0, "0.5 0.25"), phase(3, "1")].join(","), metadata);
        let one = file(&[phase(3, "2 2"), phase(0, "")].join(","), metadata);
        let folder = testing::folder(&[("a.0.json", &zero), ("a.1.json", &one)]);
        let steps = series(folder.path(), None).unwrap();
        assert_eq!(steps.numbers, [0, 1, 2, 3]);
        assert_eq!(steps.work, [[0.75, 0.0], [0.75, 0.0], [0.75, 0.0], [1.0, 4.0]]);
        assert_eq!(steps.skipped, [4]);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_file() {
        let both = file(&[phase(0, "1"), phase(1, "1")].join(","), "");
        let first = file(&phase(0, "1"), "");
        let negative = file(&phase(0, "1 -0.5"), "");
        let twice = file(&[phase(0, "1"), phase(0, "1")].join(","), "");
        let endless = file(&phase(0, "1"), r#""phases":{"identical_to_previous":{"range":[[1,18446744073709551615]]}}"#);
        let none = file("", "");
        for (zero, one, why) in [
            (&both, &first, "a.1.json: there is no phase 1, and rank 0 has one"),
            (&first, &both, "a.1.json: there is a phase 1, and rank 0 has none"),
            (&negative, &first, "a.0.json: phase 0, task 1: its time, -0.5 s, is negative"),
            (&twice, &first, "a.0.json: phase 0 is there twice"),
            (&endless, &first, "a.0.json: its metadata has more phases than can be read: 1 to 18446744073709551615"),
            (&none, &none, "there is no phase in it"),
        ] {
            let folder = testing::folder(&[("a.0.json", zero), ("a.1.json", one)]);
            let said = series(folder.path(), None).unwrap_err().to_string();
            assert_eq!(said, format!("series lbaf:{}: {why}", folder.path().display()));
        }
    }
}
