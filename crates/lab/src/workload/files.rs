//! Real files as tasks: `--tasks files:DIR`.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};

use super::measured::{TASKS, zeros};
use equipoise::error::{Error, Result};
use equipoise::load::{Segment, Task, WorkQueue};
use equipoise::memory;
use equipoise::names;
use equipoise::topology::RankId;

/// The files below a folder, each of them a task whose payload is its content. Rank 0 scans and tells the others.
///
/// Files are ordered by top-level folder (those directly in the folder come first, as a top-level folder without name), then by path; a
/// task's id is its index in this order. Of F top-level folders, folder f is first held by rank `f * ranks / F`: the ranks get whole
/// folders, in blocks, as a data set that was never balanced lies on disks.
///
/// Files ignored by `.gitignore` are left out, with git's rules: those in and below the folder count, and within a repository those above
/// it up to the repository's top. `.git` itself is left out too, other hidden files are not. Symbolic links below the folder are not
/// followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTasks {
    folder: OsString,
    files: Vec<FileTask>,
    /// `first[f]` is the index of the first file of top-level folder f; one more entry ends the last folder's.
    first: Vec<u64>,
}

/// A file that is a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTask {
    /// Below the folder. Names need not be UTF-8.
    path: OsString,
    /// Its length when the folder was scanned.
    pub bytes: u64,
}

impl FileTask {
    /// The path below the folder.
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }
}

impl FileTasks {
    /// Lists the files, without reading them. An empty folder gives no tasks.
    ///
    /// # Errors
    /// If the folder, a folder in it or one of the files cannot be opened.
    pub fn scan(folder: &Path) -> Result<FileTasks> {
        let wrong = |why: &dyn fmt::Display| Error::input(TASKS, format!(" files:{}: {why}", names::shown(folder)));
        // The walk begins at the real folder, so that a link to it is one that is followed.
        let top = folder.canonicalize().map_err(|why| wrong(&why))?;
        if !top.is_dir() {
            return Err(wrong(&"this is not a folder"));
        }
        let in_repository = top.ancestors().any(|above| above.join(".git").exists());
        let walk = WalkBuilder::new(&top)
            .standard_filters(false)
            .git_ignore(true)
            .parents(in_repository)
            .require_git(in_repository)
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
            .build();
        let mut files = Vec::new();
        for entry in walk {
            let entry = entry.map_err(|why| wrong(&why))?;
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path().strip_prefix(&top).unwrap_or(entry.path()).to_path_buf();
            let readable = File::open(entry.path()).and_then(|file| file.metadata());
            let bytes = readable.map_err(|why| wrong(&format!("{}: {why}", names::shown(&path))))?.len();
            files.push((path, bytes));
        }
        files.sort_by(|(a, _), (b, _)| (top_level(a), a).cmp(&(top_level(b), b)));
        Ok(FileTasks::of(folder, files))
    }

    /// Builds the tasks from files in their order.
    fn of(folder: &Path, files: Vec<(PathBuf, u64)>) -> FileTasks {
        let begins = |index: &usize| *index == 0 || top_level(&files[*index - 1].0) != top_level(&files[*index].0);
        let mut first: Vec<u64> = (0..files.len()).filter(begins).map(|index| index as u64).collect();
        first.push(files.len() as u64);
        let files = files.into_iter().map(|(path, bytes)| FileTask { path: path.into(), bytes }).collect();
        FileTasks { folder: folder.into(), files, first }
    }

    /// Number of tasks.
    pub fn len(&self) -> u64 {
        self.files.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// All files, by task id.
    pub fn files(&self) -> &[FileTask] {
        &self.files
    }

    /// The folder, as it was given.
    pub fn folder(&self) -> &Path {
        Path::new(&self.folder)
    }

    /// Number of top-level folders that hold files, that without name included.
    pub fn folders(&self) -> u64 {
        self.first.len() as u64 - 1
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        bytes_of(&self.files)
    }

    /// Number of tasks that each of `ranks` ranks holds at first.
    pub fn loads(&self, ranks: u32) -> Vec<u64> {
        RankId::all(ranks).map(|rank| self.ids(rank, ranks).len() as u64).collect()
    }

    /// Bytes of the files that a rank holds at first.
    pub fn bytes_on(&self, rank: RankId, ranks: u32) -> u64 {
        bytes_of(&self.files[self.ids(rank, ranks)])
    }

    /// Initial work queue of a rank. Reads this rank's files and no others, all into one buffer.
    ///
    /// # Errors
    /// If one of them can no longer be read.
    pub fn queue(&self, rank: RankId, ranks: u32) -> Result<WorkQueue> {
        let ids = self.ids(rank, ranks);
        let mut flat: Vec<u8> = Vec::new();
        let expected = usize::try_from(bytes_of(&self.files[ids.clone()])).ok();
        if expected.is_none_or(|bytes| !memory::reserve(&mut flat, bytes)) {
            return Err(Error::input(
                TASKS,
                format!(" files:{}: there is no memory for the files of rank {rank}", names::shown(self.folder())),
            ));
        }
        let mut ends = Vec::with_capacity(ids.len());
        for file in &self.files[ids.clone()] {
            let path = self.folder().join(&file.path);
            let read = File::open(&path).and_then(|mut open| open.read_to_end(&mut flat));
            read.map_err(|why| {
                Error::input(TASKS, format!(" files:{}: {}: {why}", names::shown(self.folder()), names::shown(file.path())))
            })?;
            ends.push(flat.len());
        }
        let flat = Bytes::from(flat);
        let mut start = 0;
        let tasks = ids.zip(ends).map(|(id, end)| {
            let payload = flat.slice(start..end);
            start = end;
            Segment::from(Task { id: id as u64, weight: 1, payload })
        });
        Ok(WorkQueue::new(tasks.collect()))
    }

    /// The same queue with zeros for what the files contain, cut out of one buffer. Nothing is read.
    ///
    /// # Errors
    /// If there is no memory for the longest file's bytes.
    pub fn blank_queue(&self, rank: RankId, ranks: u32) -> Result<WorkQueue> {
        let ids = self.ids(rank, ranks);
        let zeros = zeros(self.files[ids.clone()].iter().map(|file| file.bytes).max().unwrap_or(0))?;
        let task = |id: usize| Task { id: id as u64, weight: 1, payload: zeros.slice(..self.files[id].bytes as usize) };
        Ok(WorkQueue::new(ids.map(|id| Segment::from(task(id))).collect()))
    }

    /// Returns true if a task is one of the files, with the length that it had when the folder was scanned.
    pub fn is_intact(&self, segment: &Segment) -> bool {
        let size = segment.size() as u64;
        let file = |id: u64| usize::try_from(id).ok().and_then(|id| self.files.get(id));
        (0..segment.len()).all(|at| segment.first().checked_add(at).and_then(file).is_some_and(|file| file.bytes == size))
    }

    /// The ids that a rank holds at first.
    fn ids(&self, rank: RankId, ranks: u32) -> Range<usize> {
        // Folder f is on rank floor(f * ranks / F), so the first folder on rank n or beyond is ceil(n * F / ranks).
        let folder = |rank: u64| (rank * self.folders()).div_ceil(u64::from(ranks)) as usize;
        let rank = u64::from(rank.get());
        self.first[folder(rank)] as usize..self.first[folder(rank + 1)] as usize
    }
}

fn bytes_of(files: &[FileTask]) -> u64 {
    files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
}

/// The top-level folder of a path; nothing for a file that lies in none.
fn top_level(path: &Path) -> Option<Component<'_>> {
    let mut components = path.components();
    let first = components.next();
    first.filter(|_| components.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing;
    use proptest::prelude::*;

    fn shown(tasks: &FileTasks) -> Vec<String> {
        tasks.files().iter().map(|file| file.path().display().to_string()).collect()
    }

    #[test]
    fn ranks_hold_whole_folders_in_blocks() {
        let folder = testing::folder(&[
            ("b/2", "22"),
            ("b/1", "1"),
            ("zz", ""),
            ("a/x/deep", "deep"),
            ("c/3", "333"),
            ("a/x.txt", "x"),
            ("aa", "top"),
        ]);
        let tasks = FileTasks::scan(folder.path()).unwrap();
        assert_eq!(shown(&tasks), ["aa", "zz", "a/x/deep", "a/x.txt", "b/1", "b/2", "c/3"]);
        assert_eq!((tasks.len(), tasks.folders(), tasks.bytes()), (7, 4, 14));
        assert_eq!(tasks.loads(2), [4, 3]);
        assert_eq!(tasks.loads(3), [4, 2, 1]);
        assert_eq!(tasks.loads(6), [2, 2, 0, 2, 1, 0]);
        assert_eq!((tasks.bytes_on(RankId::new(0), 2), tasks.bytes_on(RankId::new(1), 2)), (8, 6));
        let queue = tasks.queue(RankId::new(1), 2).unwrap();
        let held = queue.segments().flat_map(Segment::tasks).map(|task| (task.id, task.payload));
        assert_eq!(held.collect::<Vec<_>>(), [(4, "1".into()), (5, "22".into()), (6, "333".into())]);
        let blank = tasks.blank_queue(RankId::new(1), 2).unwrap();
        let held = blank.segments().flat_map(Segment::tasks).map(|task| (task.id, task.payload));
        assert_eq!(held.collect::<Vec<_>>(), [(4, "\0".into()), (5, "\0\0".into()), (6, "\0\0\0".into())]);
        assert!(queue.segments().all(|segment| tasks.is_intact(segment)));
        let other = Segment::from(Task { id: 4, weight: 1, payload: "22".into() });
        assert!(!tasks.is_intact(&other));
        let sent = serde_json::to_vec(&tasks).unwrap();
        let arrived: FileTasks = serde_json::from_slice(&sent).unwrap();
        assert_eq!(arrived, tasks);
    }

    #[test]
    fn what_git_ignores_is_left_out_and_hidden_files_are_not() {
        let files = [
            (".gitignore", "*.o\n/target\n!keep.o\n"),
            ("target/big", "x"),
            ("src/a.o", "x"),
            ("src/keep.o", "x"),
            ("src/.hidden", "x"),
            ("src/.gitignore", "local\n"),
            ("src/local", "x"),
            ("local", "x"),
            ("src/target/in", "x"),
            (".ignore", "main.c"),
            ("main.c", "x"),
            ("src/.git/config", "x"),
        ];
        let kept = [".gitignore", ".ignore", "local", "main.c", "src/.gitignore", "src/.hidden", "src/keep.o", "src/target/in"];
        let folder = testing::folder(&files);
        assert_eq!(shown(&FileTasks::scan(folder.path()).unwrap()), kept);
        // A folder within a repository is under the rules of the folders above it, up to the repository's top; without a repository it is
        // not.
        let below = folder.path().join("src/target");
        std::fs::write(below.join("in.o"), "x").unwrap();
        assert_eq!(shown(&FileTasks::scan(&below).unwrap()), ["in", "in.o"]);
        std::fs::remove_dir_all(folder.path().join("src/.git")).unwrap();
        assert_eq!(shown(&FileTasks::scan(&below).unwrap()), ["in", "in.o"]);
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(shown(&FileTasks::scan(&below).unwrap()), ["in"]);
        assert_eq!(shown(&FileTasks::scan(folder.path()).unwrap()), kept);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed_and_names_need_not_be_text() {
        use std::os::unix::ffi::OsStringExt;
        let folder = testing::folder(&[("real/file", "x"), ("outside", "y")]);
        let odd = OsString::from_vec(vec![b'z', 0xff]);
        std::fs::write(folder.path().join(&odd), "odd").unwrap();
        std::os::unix::fs::symlink("..", folder.path().join("real/loop")).unwrap();
        std::os::unix::fs::symlink("../outside", folder.path().join("real/link")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
        let tasks = FileTasks::scan(folder.path()).unwrap();
        assert_eq!(
            tasks.files().iter().map(FileTask::path).collect::<Vec<_>>(),
            [Path::new("outside"), Path::new(&odd), Path::new("real/file")]
        );
        let sent = serde_json::to_vec(&tasks).unwrap();
        let arrived: FileTasks = serde_json::from_slice(&sent).unwrap();
        assert_eq!(arrived.queue(RankId::new(0), 1).unwrap().checksum().payload, 5);
        // A link given as the folder itself stands for the folder.
        assert_eq!(
            FileTasks::scan(&{
                std::os::unix::fs::symlink("real", folder.path().join("alias")).unwrap();
                folder.path().join("alias")
            })
            .unwrap()
            .len(),
            1
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let missing = FileTasks::scan(Path::new("/no/such/folder")).unwrap_err().to_string();
        assert!(missing.starts_with("tasks files:/no/such/folder: No such file"), "{missing}");
        let folder = testing::folder(&[("a/1", "x"), ("b/2", "x")]);
        let at = folder.path().join("a/1");
        assert_eq!(FileTasks::scan(&at).unwrap_err().to_string(), format!("tasks files:{}: this is not a folder", at.display()));
        let tasks = FileTasks::scan(folder.path()).unwrap();
        std::fs::remove_file(&at).unwrap();
        let why = tasks.queue(RankId::new(0), 2).unwrap_err().to_string();
        assert!(why.starts_with(&format!("tasks files:{}: a/1: No such file", folder.path().display())), "{why}");
        // The other rank does not read what it does not hold.
        assert_eq!(tasks.queue(RankId::new(1), 2).unwrap().len(), 1);
        let empty = testing::folder(&[]);
        let tasks = FileTasks::scan(empty.path()).unwrap();
        assert_eq!((tasks.loads(3), tasks.queue(RankId::new(2), 3).unwrap().len()), (vec![0, 0, 0], 0));
    }

    proptest! {
        #[test]
        fn folder_f_goes_to_rank_f_ranks_over_folders(sizes in prop::collection::vec(1u64..5, 0..12), ranks in 1u32..20) {
            let file = |folder: usize, index: u64| (PathBuf::from(format!("{folder:02}/{index}")), 1);
            let files = sizes.iter().enumerate().flat_map(|(folder, size)| (0..*size).map(move |index| file(folder, index)));
            let tasks = FileTasks::of(Path::new("."), files.collect());
            let mut loads = vec![0; ranks as usize];
            for (folder, size) in sizes.iter().enumerate() {
                loads[folder * ranks as usize / sizes.len()] += size;
            }
            prop_assert_eq!(tasks.loads(ranks), loads);
        }
    }
}
