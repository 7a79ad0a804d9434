//! Points that are finished, in a file that a later run reads: what takes long may stop and go on.
//!
//! The file has a line for each job, which is written when the job is done. Numbers are written so that they are read as the same bits.
//!
//! A line is used again by the same build of the program only, which is the same file of the program, wherever it lies: another build may measure
//! something else under the same name.

use std::collections::BTreeMap;
use std::env;
use std::fs::{File, OpenOptions, TryLockError};
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
    /// Identity of this program's build.
    build: String,
    /// Lines of other builds.
    ignored: usize,
    done: BTreeMap<String, Vec<KeptValue>>,
    file: Mutex<File>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    version: String,
    /// Which build of that version measured it; empty where that was not kept.
    #[serde(default)]
    build: String,
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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_helper: bool,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Identity of this build: a hash of the program's file.
fn build() -> std::io::Result<String> {
    let mut hash = blake3::Hasher::new();
    hash.update_reader(File::open(env::current_exe()?)?)?;
    Ok(hash.finalize().to_hex().as_str()[..16].into())
}

impl Kept {
    /// Opens the file; makes it if it is not there. A last line without an end, which was being written when a run ended, is cut off. Points of other
    /// builds of the program stay in the file and are not used. The file is locked until this value ends, where its file system can do that.
    ///
    /// # Errors
    /// Wrong usage if it cannot be read and written, another run has it, or a line is no finished point.
    pub fn open(path: &Path) -> Result<Kept> {
        let build = build().map_err(|why| Error::Failed(format!("--resume: this program's file cannot be read: {why}")))?;
        Kept::of_build(path, build)
    }

    fn of_build(path: &Path, build: String) -> Result<Kept> {
        let wrong = |why: String| Error::usage(format!("--resume {}: {why}", names::shown(path)));
        let refused = |why: std::io::Error| wrong(format!("it cannot be read and written: {why}"));
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(refused)?;
        if !file.metadata().map_err(refused)?.is_file() {
            return Err(wrong("it is no file".into()));
        }
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(wrong("another run is writing to it".into()));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(refused)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let (mut done, mut ignored) = (BTreeMap::new(), 0);
        for (number, line) in (1..).zip(bytes[..whole].split_inclusive(|byte| *byte == b'\n')) {
            let line: Line = serde_json::from_slice(line)
                .map_err(|why| wrong(format!("line {number} is no finished point of `equipoise reproduce`: {why}")))?;
            if let Some(value) = line.values.iter().find(|value| value.value().is_none()) {
                return Err(wrong(format!("line {number}: the numbers of curve '{}' cannot be read", value.curve)));
            }
            if line.version == VERSION && line.build == build {
                done.insert(line.job, line.values);
            } else {
                ignored += 1;
            }
        }
        // A file that is not this program's is not touched: where it has no whole line, it must be the beginning of one.
        if whole == 0 && !bytes.is_empty() && !bytes.starts_with(&br#"{"version":"#[..bytes.len().min(11)]) {
            return Err(wrong("line 1 is no finished point of `equipoise reproduce`".into()));
        }
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(refused)?;
        Ok(Kept { path: path.into(), build, ignored, done, file: Mutex::new(file) })
    }

    /// Remark on the part of the file that is not used, and why; `None` if all of it is.
    pub fn remark(&self) -> Option<String> {
        let points = match self.ignored {
            0 => return None,
            1 => "1 finished point".into(),
            ignored => format!("{ignored} finished points"),
        };
        let path = names::shown(&self.path);
        Some(format!("--resume {path}: ignored {points} of another build of this program, which may have measured something else"))
    }

    /// Whether this job is there.
    pub(super) fn has(&self, job: &str) -> bool {
        self.done.contains_key(job)
    }

    /// Values that a job measured.
    pub(super) fn find(&self, job: &str) -> Option<Vec<Value>> {
        self.done.get(job)?.iter().map(KeptValue::value).collect()
    }

    /// Adds a job.
    pub(super) fn add(&self, job: &str, values: &[Value]) -> Result<()> {
        let failed = |why: String| Error::Failed(format!("--resume {}: it could not be written: {why}", names::shown(&self.path)));
        let (version, build) = (VERSION.into(), self.build.clone());
        let line = Line { version, build, job: job.into(), values: values.iter().map(KeptValue::of).collect() };
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
            is_helper: value.is_helper,
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
            is_helper: self.is_helper,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(x: f64) -> Value {
        let mean = Mean { value: x / 3.0, error: 1e-300, freedom: f64::INFINITY, cases: 7 };
        Value { curve: "a \"curve\"\n".into(), x: Some(x), mean, printed: Some((0.1 + 0.2, 0.05)), is_helper: x < 0.0 }
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
            assert_eq!(found.is_helper, given.is_helper);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn points_of_another_build_are_ignored_and_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        let of = |build: &str| Kept::of_build(&path, build.into()).unwrap();
        of("first").add("a", &[value(0.5)]).unwrap();
        of("first").add("b", &[value(0.5)]).unwrap();
        // Before builds were kept, and by another version.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(&format!("{{\"version\":\"{VERSION}\",\"job\":\"c\",\"values\":[]}}\n"));
        text.push_str("{\"version\":\"0.0.0\",\"build\":\"first\",\"job\":\"d\",\"values\":[]}\n");
        std::fs::write(&path, &text).unwrap();
        let same = of("first");
        assert!(same.has("a") && same.has("b") && !same.has("c") && !same.has("d"));
        assert!(same.remark().unwrap().contains("ignored 2 finished points of another build of this program"));
        drop(same);
        let other = of("second");
        assert!(!other.has("a") && other.remark().unwrap().contains("4 finished points"));
        other.add("a", &[value(0.25)]).unwrap();
        drop(other);
        // Nothing of the first is lost.
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(&text));
        let found = |build: &str| of(build).find("a").unwrap()[0].x;
        assert_eq!((found("first"), found("second")), (Some(0.5), Some(0.25)));
        // A build knows itself, also when it runs a second time.
        Kept::open(&path).unwrap().add("e", &[value(0.5)]).unwrap();
        assert!(Kept::open(&path).unwrap().has("e") && build().unwrap().len() == 16);
    }

    #[test]
    fn two_runs_do_not_write_to_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        let first = Kept::open(&path).unwrap();
        let refused = Kept::open(&path).err().unwrap();
        assert!(refused.exit_status() == 2 && refused.to_string().ends_with("another run is writing to it"), "{refused}");
        drop(first);
        assert!(Kept::open(&path).is_ok());
        let device = Kept::open(Path::new("/dev/null")).err().unwrap();
        assert!(device.to_string().contains("it is no file"), "{device}");
    }

    #[test]
    fn other_files_are_refused_and_left_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        for (text, why) in [
            ("something\n", "line 1 is no finished point"),
            ("something", "line 1 is no finished point"),
            ("{\"version\":\"0.0.0\",\"job\":\"a\"}\n", "line 1 is no finished point"),
        ] {
            std::fs::write(&path, text).unwrap();
            let refused = Kept::open(&path).err().unwrap();
            assert!(refused.exit_status() == 2 && refused.to_string().contains(why), "{refused}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
