//! Points that are finished, in a file that a later run reads: what takes long may stop and go on.
//!
//! The file has a line for each job, which is written when the job is done. Numbers are written so that they are read as the same bits.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::Value;
use super::evidence::Mean;
use equipoise::error::{Error, Result};
use equipoise::names;

/// A file of finished jobs.
pub struct Kept {
    path: PathBuf,
    done: BTreeMap<String, Vec<KeptValue>>,
    file: Mutex<File>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    version: String,
    /// Everything that the values depend on.
    job: String,
    values: Vec<KeptValue>,
}

/// A value, its numbers as the shortest text that is read as the same.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptValue {
    curve: String,
    x: Option<String>,
    /// Value, standard error, degrees of freedom.
    mean: [String; 3],
    cases: u64,
    printed: Option<[String; 2]>,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Kept {
    /// Opens the file; makes it if it is not there. A last line without an end, which was being written when a run ended, is cut off.
    ///
    /// # Errors
    /// Wrong usage if it cannot be read and written, or a line is not of this version of the program.
    pub fn open(path: &Path) -> Result<Kept> {
        let wrong = |why: String| Error::usage(format!("--resume {}: {why}", names::shown(path)));
        let refused = |why: std::io::Error| wrong(format!("it cannot be read and written: {why}"));
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(refused)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(refused)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut done = BTreeMap::new();
        for (number, line) in (1..).zip(bytes[..whole].split_inclusive(|byte| *byte == b'\n')) {
            let line: Line = serde_json::from_slice(line)
                .map_err(|why| wrong(format!("line {number} is no finished point of `equipoise reproduce`: {why}")))?;
            if line.version != VERSION {
                return Err(wrong(format!("line {number} was measured by version {}, this is {VERSION}; give another file", line.version)));
            }
            if let Some(value) = line.values.iter().find(|value| value.value().is_none()) {
                return Err(wrong(format!("line {number}: the numbers of curve '{}' cannot be read", value.curve)));
            }
            done.insert(line.job, line.values);
        }
        // A file that is not this program's is not touched: where it has no whole line, it must be the beginning of one.
        if whole == 0 && !bytes.is_empty() && !bytes.starts_with(&br#"{"version":"#[..bytes.len().min(11)]) {
            return Err(wrong("line 1 is no finished point of `equipoise reproduce`".into()));
        }
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(refused)?;
        Ok(Kept { path: path.into(), done, file: Mutex::new(file) })
    }

    /// Whether this job is there.
    pub(super) fn has(&self, job: &str) -> bool {
        self.done.contains_key(job)
    }

    /// What it measured.
    pub(super) fn find(&self, job: &str) -> Option<Vec<Value>> {
        self.done.get(job)?.iter().map(KeptValue::value).collect()
    }

    /// Adds a job.
    pub(super) fn add(&self, job: &str, values: &[Value]) -> Result<()> {
        let failed = |why: String| Error::Failed(format!("--resume {}: it could not be written: {why}", names::shown(&self.path)));
        let line = Line { version: VERSION.into(), job: job.into(), values: values.iter().map(KeptValue::of).collect() };
        let mut text = serde_json::to_vec(&line).map_err(|why| failed(why.to_string()))?;
        text.push(b'\n');
        let mut file = self.file.lock().map_err(|_| failed("a thread ended in a panic".into()))?;
        file.write_all(&text).and_then(|()| file.flush()).map_err(|why| failed(why.to_string()))
    }
}

impl KeptValue {
    fn of(value: &Value) -> KeptValue {
        let Mean { value: mean, error, freedom, cases } = value.mean;
        KeptValue {
            curve: value.curve.clone(),
            x: value.x.map(|x| x.to_string()),
            mean: [mean, error, freedom].map(|number| number.to_string()),
            cases,
            printed: value.printed.map(|(printed, p)| [printed, p].map(|number| number.to_string())),
        }
    }

    fn value(&self) -> Option<Value> {
        let number = |text: &String| text.parse::<f64>().ok();
        let [value, error, freedom] = self.mean.each_ref().map(number);
        Some(Value {
            curve: self.curve.clone(),
            x: self.x.as_ref().map(|x| number(x).ok_or(())).transpose().ok()?,
            mean: Mean { value: value?, error: error?, freedom: freedom?, cases: self.cases },
            printed: self.printed.as_ref().map(|[printed, p]| number(printed).zip(number(p)).ok_or(())).transpose().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(x: f64) -> Value {
        let mean = Mean { value: x / 3.0, error: 1e-300, freedom: f64::INFINITY, cases: 7 };
        Value { curve: "a \"curve\"\n".into(), x: Some(x), mean, printed: Some((0.1 + 0.2, 0.05)) }
    }

    #[test]
    fn what_is_kept_comes_back_bit_by_bit_and_half_a_line_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        Kept::open(&path).unwrap().add("a", &[value(0.7), value(-0.1)]).unwrap();
        Kept::open(&path).unwrap().add("b", &[value(1e-7)]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"version\":\"0")).unwrap();
        let kept = Kept::open(&path).unwrap();
        assert!(kept.has("a") && kept.has("b") && !kept.has("c"));
        let found = kept.find("a").unwrap();
        for (found, given) in found.iter().zip([value(0.7), value(-0.1)]) {
            assert_eq!((&found.curve, found.x, found.mean, found.printed), (&given.curve, given.x, given.mean, given.printed));
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn other_files_are_refused_and_left_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        for (text, why) in [
            ("something\n", "line 1 is no finished point"),
            ("something", "line 1 is no finished point"),
            ("{\"version\":\"0.0.0\",\"job\":\"a\",\"values\":[]}\n", "line 1 was measured by version 0.0.0"),
        ] {
            std::fs::write(&path, text).unwrap();
            let refused = Kept::open(&path).err().unwrap();
            assert!(refused.exit_status() == 2 && refused.to_string().contains(why), "{refused}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
