//! The writer of records: a thread that syncs them in groups, so that a slow disk holds up no rank.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::{record, sync_folder};

/// Syncs are at least this far apart, so that many records share one; a record waits no longer than that for its sync to begin.
const GROUP: Duration = Duration::from_millis(40);

/// Appends records to one file.
pub struct Writer {
    /// Closed at the end.
    records: Option<Sender<(Vec<u8>, u64)>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Creates the file. With each sync `synced` receives the number of records on the disk, or the reason why they are not.
    ///
    /// # Errors
    /// If the file cannot be created, or exists.
    pub fn create(path: &Path, synced: impl Fn(io::Result<u64>) + Send + 'static) -> io::Result<Writer> {
        let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
        file.write_all(record::header().as_bytes())?;
        file.sync_data()?;
        if let Some(folder) = path.parent() {
            sync_folder(folder)?;
        }
        let (entry, exit) = bounded(1024);
        let thread = std::thread::Builder::new().name("journal".into()).spawn(move || write(&mut file, &exit, &synced))?;
        Ok(Writer { records: Some(entry), thread: Some(thread) })
    }

    /// Appends the bytes of this number of records.
    pub fn append(&self, bytes: Vec<u8>, records: u64) {
        if let Some(entry) = &self.records {
            // A writer that failed has said so.
            let _ = entry.send((bytes, records));
        }
    }
}

impl Drop for Writer {
    /// Waits until all that was appended is on the disk.
    fn drop(&mut self) {
        self.records = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(file: &mut File, exit: &Receiver<(Vec<u8>, u64)>, synced: &impl Fn(io::Result<u64>)) {
    let mut last = Instant::now();
    while let Ok((mut bytes, mut records)) = exit.recv() {
        // More may come until the next sync is due.
        let left = |last: Instant| (last + GROUP).saturating_duration_since(Instant::now());
        while let Ok((more, number)) = exit.recv_timeout(left(last)) {
            bytes.extend(more);
            records += number;
        }
        let written = file.write_all(&bytes).and_then(|()| file.sync_data());
        last = Instant::now();
        let failed = written.is_err();
        synced(written.map(|()| records));
        if failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn all_records_are_on_the_disk_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rank-0.log");
        let (synced, syncs) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (all, groups) = (synced.clone(), syncs.clone());
        let writer = Writer::create(&path, move |records| {
            all.fetch_add(records.unwrap(), Ordering::Relaxed);
            groups.fetch_add(1, Ordering::Relaxed);
        });
        let writer = writer.unwrap();
        for number in 0..1000 {
            writer.append(format!("{number}\n").into_bytes(), 1);
        }
        drop(writer);
        assert_eq!(synced.load(Ordering::Relaxed), 1000);
        assert!(syncs.load(Ordering::Relaxed) < 500, "{syncs:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1001);
        assert!(Writer::create(&path, |_| ()).is_err(), "records are never overwritten");
    }

    #[test]
    fn a_full_disk_is_told() {
        let Ok(mut full) = OpenOptions::new().append(true).open("/dev/full") else { return };
        let (entry, exit) = bounded(1);
        entry.send((b"x\n".to_vec(), 1)).unwrap();
        drop(entry);
        let (told, seen) = bounded(1);
        write(&mut full, &exit, &|result| told.send(result.map_err(|why| why.kind())).unwrap());
        assert_eq!(seen.recv().unwrap(), Err(io::ErrorKind::StorageFull));
    }
}
