//! Tasks of lost ranks: those that have their record count, the others are dealt again.

use std::collections::HashMap;

use equipoise::topology::RankId;
use equipoise::{Error, Result, names};
use log::debug;

use super::Lead;
use crate::journal;
use crate::journal::record::Record;
use crate::task::{Capture, Kept, Outcome, Task};

/// Seconds after which a lost rank's tasks are dealt again: what it had started is gone by then, and its last records can be read on other hosts.
const SETTLES: f64 = 1.0;

impl Lead {
    /// A rank other than 0 is lost.
    ///
    /// # Errors
    /// If the job cannot go on.
    pub fn lost(&mut self, rank: RankId, now: f64) -> Result<()> {
        let state = &mut self.ranks[rank.index()];
        let had_ended = state.gone;
        (state.gone, state.lost) = (true, true);
        state.room.clear();
        if had_ended {
            return Ok(());
        }
        // Shares by a rule are made for all ranks.
        self.chunks = None;
        self.hosts.lose(rank);
        let outputs = self.printer.lose(rank);
        let tasks = self.out.values().filter(|out| out.rank == rank).count();
        self.inheritances.push((rank, now + SETTLES));
        debug!("rank 0, lead: rank {rank} is lost; its tasks are looked at again in {SETTLES} s");
        let mut said = format!("rank {rank} on {} is lost; the others take over its {tasks} tasks", self.hosts.name(rank));
        if outputs > 0 {
            said += &format!("; long outputs of {outputs} tasks are lost with it");
        }
        self.audience.remark(&said);
        if self.hosts.has_failed_to_start() && !self.draining {
            self.drain(0.0, now);
        }
        self.go_on(now)
    }

    /// Takes over the tasks of ranks that were lost some time ago.
    pub(super) fn inherit(&mut self, now: f64) -> Result<()> {
        let due: Vec<RankId> = self.inheritances.extract_if(.., |(_, at)| now >= *at).map(|(rank, _)| rank).collect();
        for rank in due {
            self.count_records(rank)?;
            let mut left: Vec<u64> = self.out.iter().filter(|(_, out)| out.rank == rank).map(|(seq, _)| *seq).collect();
            left.sort_unstable();
            for seq in left {
                let Some(out) = self.out.remove(&seq) else { continue };
                let Some(rest) = out.rest.filter(|_| !self.draining) else {
                    self.leave(seq);
                    continue;
                };
                debug!("rank 0, lead: task {seq} of lost rank {rank} is to be dealt again");
                self.pool((Task { text: out.text, ..*rest }, out.attempts));
            }
        }
        Ok(())
    }

    /// Counts what a lost rank has on the disk and did not report any more.
    fn count_records(&mut self, rank: RankId) -> Result<()> {
        let Some(folder) = &self.settings.journal else { return Ok(()) };
        let path = journal::file(folder, rank, self.job);
        let unreadable = |why| Error::Failed(format!("--journal {}: it cannot be read: {why}", names::shown(&path)));
        let mut records: HashMap<u64, Record> = HashMap::new();
        if path.exists() {
            let take = |record: Record| {
                let Some(out) = self.out.get_mut(&record.seq).filter(|out| out.rank == rank) else { return };
                out.attempts = out.attempts.max(record.attempt);
                if record.state.is_final() {
                    records.insert(record.seq, record);
                }
            };
            journal::past::records(&path, take).map_err(unreadable)?;
        }
        let mut records: Vec<Record> = records.into_values().collect();
        records.sort_by_key(|record| record.seq);
        records.into_iter().try_for_each(|record| self.ended(rank, outcome(&record)))
    }
}

/// Outcome from a record. The outputs are lost.
fn outcome(record: &Record) -> Outcome {
    let capture = |bytes| Capture { bytes, lines: 0, kept: Kept::Nowhere };
    Outcome {
        attempt: record.attempt,
        exit: record.exit,
        signal: record.signal,
        start: record.start,
        runtime: record.runtime,
        cpu: record.cpu,
        memory: record.memory,
        out: capture(record.out_bytes),
        err: capture(record.err_bytes),
        ..Outcome::without_run(record.seq, record.state)
    }
}
