//! Task times of real runs, in the form in which DARMA's vt writes them and its Load Balancing Analysis Framework (LBAF) reads them.
//!
//! A folder holds a file for each rank, `NAME.RANK.json` or, packed with brotli, `NAME.RANK.json.br`:
//!
//! ```json
//! {"metadata": {"type": "LBDatafile", "rank": 0},
//!  "phases": [{"id": 0,
//!              "tasks": [{"entity": {"type": "object", "id": 3145731, "migratable": true}, "time": 0.0017,
//!                         "user_defined": {"task_serialized_bytes": 1024}}],
//!              "communications": [{"from": {"id": 3145731}, "to": {"id": 7}, "messages": 1, "bytes": 2.0}]}]}
//! ```
//!
//! A phase that the metadata lists as identical to the previous one has the tasks of the last phase before it that is there. One that it lists
//! as skipped was not recorded. Several sets of files, each with its NAME, may lie in a folder.
//!
//! Times are seconds and become work units of a nanosecond. A task that is not migratable is pinned. Its payload is as large as
//! `task_serialized_bytes` says, nothing if it says nothing. Entities are named by `id` or `seq_id`. Communications of entities that are no
//! tasks of the phase are left out; such are common in real files.

mod phases;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::links;
use super::measured::TASKS;
use super::measured::{Communication, MeasuredTask, MeasuredTasks};
use super::text::{self, MOST_BYTES};
use equipoise::error::{Error, Result};
use equipoise::names;
use equipoise::topology::RankId;

pub use phases::series;

#[derive(Deserialize)]
struct DataFile {
    metadata: Option<Metadata>,
    phases: Vec<Phase>,
}

#[derive(Deserialize)]
struct Metadata {
    rank: Option<u64>,
    phases: Option<PhasesOfRun>,
}

/// Metadata on phases that are not in the file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PhasesOfRun {
    skipped: PhaseIds,
    identical_to_previous: PhaseIds,
}

/// Phases one by one, and in ranges, whose ends belong to them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PhaseIds {
    list: Vec<u64>,
    range: Vec<(u64, u64)>,
}

impl PhaseIds {
    fn contains(&self, id: u64) -> bool {
        self.list.contains(&id) || self.range.iter().any(|(first, last)| (*first..=*last).contains(&id))
    }

    fn shown(&self) -> Vec<String> {
        let ranges = self.range.iter().map(|(first, last)| format!("{first} to {last}"));
        self.list.iter().map(u64::to_string).chain(ranges).collect()
    }
}

impl DataFile {
    /// The phase of this number, or of the first in the file, or why there is none.
    fn phase(self, wanted: Option<u64>) -> Result<Phase, String> {
        let phases = self.metadata.and_then(|metadata| metadata.phases).unwrap_or_default();
        let mut ids = BTreeSet::new();
        if let Some(twice) = self.phases.iter().find(|phase| !ids.insert(phase.id)) {
            return Err(format!("phase {} is there twice", twice.id));
        }
        let Some(wanted) = wanted else { return self.phases.into_iter().next().ok_or_else(|| "there is no phase in it".into()) };
        let known: Vec<String> = self.phases.iter().map(|phase| phase.id.to_string()).collect();
        let mut before = self.phases.into_iter().filter(|phase| phase.id <= wanted).collect::<Vec<_>>();
        before.sort_by_key(|phase| phase.id);
        match before.pop() {
            Some(phase) if phase.id == wanted => Ok(phase),
            _ if phases.skipped.contains(wanted) => Err(format!("phase {wanted} was skipped when the run was recorded")),
            Some(phase) if phases.identical_to_previous.contains(wanted) => Ok(phase),
            None if phases.identical_to_previous.contains(wanted) => {
                Err(format!("phase {wanted} is to be identical to the previous one, and there is none before it"))
            }
            _ => {
                let also = phases.identical_to_previous.shown();
                let also =
                    if also.is_empty() { String::new() } else { format!("; identical to those before them are {}", also.join(", ")) };
                Err(format!("there is no phase {wanted}; its phases are {}{also}", known.join(", ")))
            }
        }
    }
}

#[derive(Deserialize)]
struct Phase {
    id: u64,
    #[serde(default)]
    tasks: Vec<TimedTask>,
    #[serde(default)]
    communications: Vec<Messages>,
}

#[derive(Deserialize)]
struct TimedTask {
    entity: Entity,
    time: f64,
    #[serde(default)]
    user_defined: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Entity {
    id: Option<u64>,
    seq_id: Option<u64>,
    migratable: Option<bool>,
}

#[derive(Deserialize)]
struct Messages {
    from: Entity,
    to: Entity,
    #[serde(default)]
    bytes: f64,
}

impl Entity {
    fn name(&self) -> Option<u64> {
        self.id.or(self.seq_id)
    }
}

/// Reads one phase of a run, the first of rank 0 if none is named, from the set of files of this name, or from the only one.
///
/// # Errors
/// If a file can't be read or is not as above, a rank is missing or there twice, a rank lacks the phase, or a time is negative; the sentence
/// names the file. If there are several sets and none is named, or not that one: the sentence lists them. If bytes are negative or together
/// beyond 2^64 - 1, or communications name one of several tasks of one name.
pub fn read(folder: &Path, set: Option<&OsStr>, phase: Option<u64>) -> Result<MeasuredTasks> {
    let wrong = |why: String| Error::input(TASKS, format!(" lbaf:{}: {why}", names::shown(folder)));
    let files = files_by_rank(folder, set).map_err(wrong)?;
    let (mut tasks, mut messages, mut phase) = (Vec::new(), Vec::new(), phase);
    for (rank, path) in (0..).map(RankId::new).zip(&files) {
        let in_file = |why: String| wrong(format!("{}: {why}", names::shown_argument(path.file_name().unwrap_or_default())));
        let file = parse(path).map_err(in_file)?;
        if let Some(claimed) = file.metadata.as_ref().and_then(|metadata| metadata.rank).filter(|claimed| *claimed != u64::from(rank.get()))
        {
            return Err(in_file(format!("by its name it is of rank {rank}, by its metadata of rank {claimed}")));
        }
        let found = file.phase(phase).map_err(in_file)?;
        phase = phase.or(Some(found.id));
        for (index, task) in found.tasks.iter().enumerate() {
            tasks.push(measured(rank, task).map_err(|why| in_file(format!("phase {}, task {index}: {why}", found.id)))?);
        }
        for (index, Messages { bytes, .. }) in found.communications.iter().enumerate() {
            if *bytes < 0.0 {
                return Err(in_file(format!("phase {}, communication {index}: its bytes, {bytes}, are negative", found.id)));
            }
        }
        messages.extend(found.communications);
    }
    let mut run = MeasuredTasks {
        ranks: files.len() as u32,
        tasks,
        places: Vec::new(),
        communications: Vec::new(),
        columns: Vec::new(),
        left_out: 0,
        seconds_per_unit: Some(1e-9),
    };
    join(&mut run, &messages).map_err(wrong)?;
    Ok(run)
}

/// The files of ranks 0, 1, .. of a set, or why there are none.
fn files_by_rank(folder: &Path, set: Option<&OsStr>) -> Result<Vec<PathBuf>, String> {
    let mut sets: BTreeMap<OsString, BTreeMap<u32, PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|why| why.to_string())? {
        let path = entry.map_err(|why| why.to_string())?.path();
        let Some((name, rank)) = path.file_name().and_then(set_and_rank) else { continue };
        if let Some(other) = sets.entry(name.to_os_string()).or_default().insert(rank, path.clone()) {
            let mut names = [&other, &path].map(|path| names::shown_argument(path.file_name().unwrap_or_default()));
            names.sort();
            return Err(format!("{} and {} are both of rank {rank}", names[0], names[1]));
        }
    }
    let files = chosen(sets, set)?;
    let last = files.keys().next_back().copied().unwrap_or(0);
    match (0..last).find(|rank| !files.contains_key(rank)) {
        Some(missing) => Err(format!("the file of rank {missing} is missing, though there is one of rank {last}")),
        None => Ok(files.into_values().collect()),
    }
}

/// The set of this name; if none is named, the only one, or the only one with a rank 0: what else a run leaves may look like a rank's file.
fn chosen(mut sets: BTreeMap<OsString, BTreeMap<u32, PathBuf>>, set: Option<&OsStr>) -> Result<BTreeMap<u32, PathBuf>, String> {
    let list = |sets: &BTreeMap<OsString, _>| sets.keys().map(|name| names::shown_argument(name)).collect::<Vec<_>>().join(", ");
    if sets.is_empty() {
        return Err("there is no file NAME.RANK.json or NAME.RANK.json.br in it".into());
    }
    if let Some(set) = set {
        let known = list(&sets);
        return sets.remove(set).ok_or_else(|| format!("there is no set of files {}; there are {known}", names::shown_argument(set)));
    }
    if sets.len() > 1 && sets.values().any(|files| files.contains_key(&0)) {
        sets.retain(|_, files| files.contains_key(&0));
    }
    match sets.len() {
        1 => Ok(sets.pop_first().map(|(_, files)| files).unwrap_or_default()),
        count => Err(format!("there are {count} sets of files in it: {}; choose one with ,set=NAME", list(&sets))),
    }
}

/// `data.12.json.br` is of set `data` and of rank 12.
fn set_and_rank(name: &OsStr) -> Option<(&OsStr, u32)> {
    let name = name.as_bytes();
    let stem = name.strip_suffix(b".br").unwrap_or(name).strip_suffix(b".json")?;
    let dot = stem.iter().rposition(|byte| *byte == b'.')?;
    let rank = std::str::from_utf8(&stem[dot + 1..]).ok()?;
    let rank = rank.bytes().all(|byte| byte.is_ascii_digit()).then(|| rank.parse().ok())??;
    Some((OsStr::from_bytes(&stem[..dot]), rank))
}

/// Reads a file: as JSON, and if it is none, as packed JSON, since brotli has no mark by which to know it.
fn parse(path: &Path) -> Result<DataFile, String> {
    let bytes = text::bytes(path).map_err(|why| why.to_string())?;
    let why = match serde_json::from_slice(&bytes) {
        Ok(file) => return Ok(file),
        Err(why) => why,
    };
    if let Some((packer, _)) = text::packing(&bytes) {
        return Err(format!("it is packed with {packer}; files are read as they are, or packed with brotli"));
    }
    // It may not become larger than a file may be: what claims to be small may be a bomb.
    let mut unpacked = Vec::new();
    let mut packed = brotli_decompressor::Decompressor::new(bytes.as_slice(), 1 << 16).take(MOST_BYTES);
    match packed.read_to_end(&mut unpacked) {
        Ok(_) if unpacked.len() as u64 == MOST_BYTES => Err(format!("unpacked it has more than {MOST_BYTES} bytes")),
        Ok(_) if !unpacked.is_empty() => {
            serde_json::from_slice(text::behind_mark(&unpacked)).map_err(|why| format!("what is packed in it is not as expected: {why}"))
        }
        _ if path.extension().is_some_and(|extension| extension == "br") => Err("it is neither packed with brotli nor JSON".into()),
        _ => Err(format!("it is not as expected: {why}")),
    }
}

fn measured(rank: RankId, task: &TimedTask) -> Result<MeasuredTask, String> {
    Ok(MeasuredTask {
        rank,
        name: task.entity.name(),
        work: nanoseconds(task.time)?,
        bytes: match task.user_defined.get("task_serialized_bytes") {
            None | Some(serde_json::Value::Null) => 0,
            Some(said) => match said.as_f64() {
                // From a number of this size on the nearest one is 2^64.
                Some(bytes) if (0.0..u64::MAX as f64).contains(&bytes) => bytes as u64,
                _ => return Err(format!("its task_serialized_bytes, {said}, are no number of bytes")),
            },
        },
        pinned: task.entity.migratable == Some(false),
    })
}

fn nanoseconds(seconds: f64) -> Result<u64, String> {
    let nanoseconds = (seconds * 1e9).round();
    match nanoseconds {
        _ if seconds < 0.0 => Err(format!("its time, {seconds} s, is negative")),
        _ if nanoseconds < u64::MAX as f64 => Ok(nanoseconds as u64),
        _ => Err(format!("its time, {seconds} s, is beyond 2^64 - 1 ns")),
    }
}

/// Adds the communications between tasks of the run, or says why that cannot be done.
fn join(run: &mut MeasuredTasks, messages: &[Messages]) -> Result<(), String> {
    let mut index: BTreeMap<u64, u64> = BTreeMap::new();
    let mut twice: BTreeSet<u64> = BTreeSet::new();
    for (number, name) in (0u64..).zip(run.tasks.iter().map(|task| task.name)).filter_map(|(number, name)| Some((number, name?))) {
        if index.insert(name, number).is_some() {
            twice.insert(name);
        }
    }
    let task = |entity: &Entity| match entity.name() {
        Some(name) if twice.contains(&name) => Err(format!("communications name task {name}, and there are several of that name")),
        name => Ok(name.and_then(|name| index.get(&name).copied())),
    };
    for Messages { from, to, bytes } in messages {
        match (task(from)?, task(to)?) {
            (Some(from), Some(to)) => run.communications.push(Communication { from, to, bytes: *bytes }),
            _ => run.left_out += 1,
        }
    }
    links::check_sum(run.communications.iter().map(|communication| communication.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing;

    const EMPTY: &str = r#"{"phases":[{"id":0,"tasks":[]}]}"#;

    fn one_task(time: &str) -> String {
        format!(r#"{{"type":"LBDatafile","phases":[{{"id":3,"tasks":[{{"entity":{{"id":1}},"time":{time}}}]}}]}}"#)
    }

    #[test]
    fn names_may_be_of_any_size_and_communications_with_strangers_are_left_out() {
        let tasks = r#"{"phases":[{"id":0,"tasks":[
            {"entity":{"id":18446744073709551615,"migratable":false},"time":0.5},
            {"entity":{"seq_id":4294967297,"migratable":true},"time":1.5e-9,"user_defined":{"task_serialized_bytes":1024.0,"x":"y"}}],
            "communications":[
            {"type":"SendRecv","from":{"id":18446744073709551615},"to":{"id":4294967297},"messages":1,"bytes":2.5},
            {"type":"SendRecv","from":{"id":1},"to":{"id":4294967297},"messages":1,"bytes":2},
            {"type":"Broadcast","from":{"type":"node"},"to":{"id":4294967297},"messages":1,"bytes":2}]}]}"#;
        let folder = testing::folder(&[("a.0.json", tasks), ("a.1.json", EMPTY), ("readme.txt", "no data"), ("x.json", "none")]);
        let run = read(folder.path(), None, None).unwrap();
        let task = |name, work, bytes, pinned| MeasuredTask { rank: RankId::FIRST, name: Some(name), work, bytes, pinned };
        assert_eq!(run.tasks, [task(u64::MAX, 500_000_000, 0, true), task(4_294_967_297, 2, 1024, false)]);
        assert_eq!((run.ranks, run.left_out), (2, 2));
        assert_eq!(run.communications, [Communication { from: 0, to: 1, bytes: 2.5 }]);
    }

    /// Two tasks, named 1 and as given, that send each other this number of bytes.
    fn talking(bytes: &str, name: u64) -> String {
        let task = |name: u64| format!(r#"{{"entity":{{"id":{name}}},"time":1}}"#);
        let message = |from: u64, to: u64| format!(r#"{{"from":{{"id":{from}}},"to":{{"id":{to}}},"bytes":{bytes}}}"#);
        let (one, other) = (task(1), task(name));
        format!(r#"{{"phases":[{{"id":0,"tasks":[{one},{other}],"communications":[{},{}]}}]}}"#, message(1, name), message(name, 1))
    }

    /// One task that claims this number of bytes.
    fn with_bytes(bytes: &str) -> String {
        let task = format!(r#"{{"entity":{{"id":1}},"time":1,"user_defined":{{"task_serialized_bytes":{bytes}}}}}"#);
        format!(r#"{{"phases":[{{"id":0,"tasks":[{task}]}}]}}"#)
    }

    #[test]
    fn bytes_may_be_left_out() {
        for (bytes, read_as) in [("null", 0), ("7.9", 7), ("0", 0)] {
            let folder = testing::folder(&[("a.0.json", &with_bytes(bytes))]);
            assert_eq!(read(folder.path(), None, None).unwrap().tasks[0].bytes, read_as, "{bytes}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_sentence_with_the_file() {
        let negative = one_task("-0.25");
        let huge = one_task("1e12");
        let fine = one_task("1");
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[], "there is no file NAME.RANK.json or NAME.RANK.json.br in it"),
            (&[("a.0.json", EMPTY), ("a.2.json", EMPTY)], "the file of rank 1 is missing, though there is one of rank 2"),
            (&[("a.1.json", EMPTY)], "the file of rank 0 is missing, though there is one of rank 1"),
            (&[("a.0.json", EMPTY), ("a.0.json.br", EMPTY)], "a.0.json and a.0.json.br are both of rank 0"),
            (&[("a.0.json", EMPTY), ("b.0.json", EMPTY)], "there are 2 sets of files in it: a, b; choose one with ,set=NAME"),
            (&[("a.0.json", &negative)], "a.0.json: phase 3, task 0: its time, -0.25 s, is negative"),
            (&[("a.0.json", &huge)], "a.0.json: phase 3, task 0: its time, 1000000000000 s, is beyond 2^64 - 1 ns"),
            (&[("a.0.json", &fine), ("a.1.json", EMPTY)], "a.1.json: there is no phase 3; its phases are 0"),
            (&[("a.0.json", r#"{"phases":[]}"#)], "a.0.json: there is no phase in it"),
            (&[("a.0.json", r#"{"metadata":{"rank":4},"phases":[]}"#)], "a.0.json: by its name it is of rank 0, by its metadata of rank 4"),
            (
                &[("a.0.json", "{\"phases\":\n[1")],
                "a.0.json: it is not as expected: invalid type: integer `1`, expected struct Phase at line 2 column 2",
            ),
            (&[("a.0.json", r#"{"phase":[]}"#)], "a.0.json: it is not as expected: missing field `phases` at line 1 column 12"),
            (&[("a.0.json.br", "neither")], "a.0.json.br: it is neither packed with brotli nor JSON"),
            (&[("a.0.json", &talking("-7", 2))], "a.0.json: phase 0, communication 0: its bytes, -7, are negative"),
            (&[("a.0.json", &talking("1e308", 2))], "the bytes of all communications together are beyond 2^64 - 1"),
            (&[("a.0.json", &talking("1", 1))], "communications name task 1, and there are several of that name"),
            (
                &[("a.0.json", &with_bytes(r#""1024""#))],
                "a.0.json: phase 0, task 0: its task_serialized_bytes, \"1024\", are no number of bytes",
            ),
            (&[("a.0.json", &with_bytes("-1"))], "a.0.json: phase 0, task 0: its task_serialized_bytes, -1, are no number of bytes"),
            (&[("a.0.json", r#"{"phases":[{"id":0},{"id":1},{"id":0}]}"#)], "a.0.json: phase 0 is there twice"),
        ];
        for (files, why) in cases {
            let folder = testing::folder(files);
            assert_eq!(read(folder.path(), None, None).unwrap_err().to_string(), format!("tasks lbaf:{}: {why}", folder.path().display()));
        }
        let folder = testing::folder(&[("a.0.json", &fine)]);
        let why = read(folder.path(), None, Some(9)).unwrap_err().to_string();
        assert!(why.ends_with("a.0.json: there is no phase 9; its phases are 3"), "{why}");
        assert!(read(Path::new("/no/such"), None, None).unwrap_err().to_string().starts_with("tasks lbaf:/no/such: No such file"));
    }

    #[test]
    fn phases_that_were_not_written_are_known_by_the_metadata() {
        let file = r#"{"metadata":{"rank":0,"phases":{"count":9,
            "skipped":{"list":[4],"range":[]},"identical_to_previous":{"list":[1,3],"range":[[5,7]]}}},
            "phases":[{"id":2,"tasks":[{"entity":{"id":1},"time":2e-9}]},{"id":8,"tasks":[]}]}"#;
        let folder = testing::folder(&[("a.0.json", file)]);
        let work = |phase| read(folder.path(), None, Some(phase)).map(|run| run.tasks.iter().map(|task| task.work).collect::<Vec<_>>());
        for phase in [2, 3, 5, 6, 7] {
            assert_eq!(work(phase).unwrap(), [2], "{phase}");
        }
        assert_eq!(work(8).unwrap(), Vec::<u64>::new());
        for (phase, why) in [
            (4, "phase 4 was skipped when the run was recorded"),
            (1, "phase 1 is to be identical to the previous one, and there is none before it"),
            (9, "there is no phase 9; its phases are 2, 8; identical to those before them are 1, 3, 5 to 7"),
        ] {
            assert!(work(phase).unwrap_err().to_string().ends_with(&format!("a.0.json: {why}")), "{phase}");
        }
    }

    #[test]
    fn one_of_several_sets_is_chosen() {
        let (one, two) = (one_task("1e-9"), one_task("2e-9"));
        let folder = testing::folder(&[("a.0.json", &one), ("b.c.0.json", &two), ("statistics.1234.json", "{}")]);
        let work = |set: Option<&str>| read(folder.path(), set.map(OsStr::new), None).map(|run| run.tasks[0].work);
        assert_eq!((work(Some("a")).unwrap(), work(Some("b.c")).unwrap()), (1, 2));
        assert!(work(None).unwrap_err().to_string().ends_with(": there are 2 sets of files in it: a, b.c; choose one with ,set=NAME"));
        assert!(work(Some("c")).unwrap_err().to_string().ends_with(": there is no set of files c; there are a, b.c, statistics"));
        // A name without a file of rank 0 is no set, and is not offered.
        std::fs::remove_file(folder.path().join("b.c.0.json")).unwrap();
        assert_eq!(work(None).unwrap(), 1);
    }

    #[test]
    fn marks_and_other_packers_are_known() {
        let mark = "\u{feff}".to_string() + &one_task("1e-9");
        let folder = testing::folder(&[("a.0.json", &mark)]);
        assert_eq!(read(folder.path(), None, None).unwrap().tasks.len(), 1);
        std::fs::write(folder.path().join("a.0.json"), b"\x1f\x8b\x08\0").unwrap();
        let why = read(folder.path(), None, None).unwrap_err().to_string();
        assert!(why.ends_with("a.0.json: it is packed with gzip; files are read as they are, or packed with brotli"), "{why}");
    }
}
