//! The watchdog: detects that no rank makes progress.
//!
//! A rank without progress for the timeout asks all others for their time without progress. If all have had none for that long, or don't
//! answer within a grace, the job is stuck. Then the asker reports this and the silent ranks, requests a report from each rank on what it
//! waits for, and ends the job. Ranks ask with different delays, so usually one asks; of several the lowest reports.
//!
//! In a library, a rank that does not answer is taken for one that is outside of any run, where it computes ([`Watch::Runs`]): then
//! the job is stuck only if all have answered.
//!
//! This file has the decisions only, without clock and network.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::topology::RankId;

/// Condition on which a job counts as stuck, with the time without progress on any rank after which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Never: for a guest in a program that has its own idea of that.
    Off,
    /// Condition that all ranks have waited for this time within one run. A rank between two runs is assumed to compute, however long.
    Runs(Duration),
    /// The same, and also when a rank does not answer, between two runs or in one: for a program that does nothing but run.
    Always(Duration),
}

impl Watch {
    /// Timeout of the watchdog, if there is one.
    pub fn timeout(self) -> Option<Duration> {
        match self {
            Watch::Off => None,
            Watch::Runs(timeout) | Watch::Always(timeout) => Some(timeout),
        }
    }

    /// The same with a timeout of at most `most`.
    pub(super) fn at_most(self, most: Duration) -> Watch {
        match self {
            Watch::Off => Watch::Off,
            Watch::Runs(timeout) => Watch::Runs(timeout.min(most)),
            Watch::Always(timeout) => Watch::Always(timeout.min(most)),
        }
    }
}

/// Words between carriers. They are not counted, and no program sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ControlMessage {
    /// Asks for the time without progress.
    HowLong { round: u64 },
    /// Nanoseconds without progress, in reply to the question of this round.
    ThisLong { round: u64, nanos: u64 },
    /// Request for a report of what the rank waits for.
    Tell,
    /// My program failed; I will say why.
    Failing,
    /// I was asked to end by this signal, and the grace is over.
    Overdue { signal: i32 },
}

/// Next action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    /// Ask all others.
    Ask {
        round: u64,
    },
    /// Report that the job is stuck, and the silent ranks; request the same from all.
    Report {
        silent: Vec<RankId>,
    },
    /// End the job.
    End,
}

/// Time that the others have to report what they wait for before the job ends.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(super) struct Watchdog {
    me: RankId,
    ranks: u32,
    /// Lost ranks; their answers are not waited for.
    lost: Vec<RankId>,
    watch: Watch,
    timeout: Duration,
    grace: Duration,
    /// Delay of this rank's question after rank 0's.
    stagger: Duration,
    progress: Instant,
    /// Earliest time of this rank's next question.
    not_before: Instant,
    round: u64,
    phase: Phase,
}

enum Phase {
    Quiet,
    Asking { since: Instant, ages: Vec<Option<Duration>> },
    Stuck { end: Instant },
}

impl Watchdog {
    pub fn new(me: RankId, ranks: u32, watch: Watch, now: Instant) -> Watchdog {
        let timeout = watch.timeout().unwrap_or_default();
        let grace = (timeout / 5).clamp(Duration::from_secs(1), Duration::from_secs(10));
        let stagger = (timeout / 10 / ranks.max(1)).min(Duration::from_millis(10)) * me.get();
        let lost = Vec::new();
        Watchdog { me, ranks, lost, watch, timeout, grace, stagger, progress: now, not_before: now, round: 0, phase: Phase::Quiet }
    }

    /// Something that counts as progress happened.
    pub fn progressed(&mut self, now: Instant) {
        self.progress = now;
    }

    /// A rank is lost, and answers no more.
    pub fn lose(&mut self, rank: RankId) {
        self.lost.push(rank);
    }

    /// For how long there was none.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.progress)
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Looks at the clock. `working`: a task runs, which is progress.
    pub fn poll(&mut self, now: Instant, working: bool) -> Action {
        if working {
            self.progress = now;
        }
        match &self.phase {
            Phase::Quiet => {
                if self.watch == Watch::Off || now < self.not_before || self.age(now) < self.timeout + self.stagger {
                    return Action::Nothing;
                }
                self.round += 1;
                self.phase = Phase::Asking { since: now, ages: vec![None; self.ranks as usize] };
                Action::Ask { round: self.round }
            }
            Phase::Asking { since, ages } => {
                let others = || RankId::all(self.ranks).filter(|rank| *rank != self.me && !self.lost.contains(rank));
                let youngest = ages.iter().flatten().min().copied().unwrap_or(self.timeout);
                if self.progress > *since {
                    self.phase = Phase::Quiet;
                } else if youngest < self.timeout {
                    // A rank was at work when the question came; look again when that will be too long ago.
                    self.not_before = now + (self.timeout - youngest) + self.stagger;
                    self.phase = Phase::Quiet;
                } else if others().all(|rank| ages[rank.index()].is_some()) || now.duration_since(*since) >= self.grace {
                    let silent: Vec<RankId> = others().filter(|&rank| ages[rank.index()].is_none()).collect();
                    if matches!(self.watch, Watch::Runs(_)) && !silent.is_empty() {
                        self.not_before = now + self.timeout + self.stagger;
                        self.phase = Phase::Quiet;
                        return Action::Nothing;
                    }
                    self.phase = Phase::Stuck { end: now + LAST_WORDS };
                    return Action::Report { silent };
                }
                Action::Nothing
            }
            Phase::Stuck { end } if now >= *end => Action::End,
            Phase::Stuck { .. } => Action::Nothing,
        }
    }

    /// Another rank asks. A lower one takes over; a higher one will hear from us.
    pub fn asked(&mut self, by: RankId, now: Instant) {
        match self.phase {
            Phase::Stuck { .. } => {}
            Phase::Asking { .. } if by > self.me => {}
            _ => self.postpone(now),
        }
    }

    /// Another rank answers.
    pub fn answered(&mut self, by: RankId, round: u64, age: Duration) {
        if let Phase::Asking { ages, .. } = &mut self.phase
            && round == self.round
            && let Some(slot) = ages.get_mut(by.index())
        {
            *slot = Some(age);
        }
    }

    /// Another rank found that the job is stuck, and will end it.
    pub fn noted(&mut self, now: Instant) {
        // If two have found it, each must not leave it to the other.
        if !matches!(self.phase, Phase::Stuck { .. }) {
            self.postpone(now);
        }
    }

    /// Leaves the next question to another rank for a while.
    fn postpone(&mut self, now: Instant) {
        self.phase = Phase::Quiet;
        self.not_before = now + 2 * self.grace + self.stagger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn dogs(ranks: u32, start: Instant) -> Vec<Watchdog> {
        RankId::all(ranks).map(|rank| Watchdog::new(rank, ranks, Watch::Always(10 * SECOND), start)).collect()
    }

    #[test]
    fn the_lowest_rank_asks_first_and_reports_when_all_have_waited_as_long() {
        let start = Instant::now();
        let mut dogs = dogs(3, start);
        assert_eq!(dogs[0].poll(start + 9 * SECOND, false), Action::Nothing);
        let now = start + 10 * SECOND;
        assert_eq!(dogs[0].poll(now, false), Action::Ask { round: 1 });
        assert_eq!(dogs[1].poll(now, false), Action::Nothing);
        for rank in 1..3 {
            dogs[rank].asked(RankId::FIRST, now);
            assert_eq!(dogs[rank].poll(now + SECOND, false), Action::Nothing);
            let age = dogs[rank].age(now);
            dogs[0].answered(RankId::new(rank as u32), 1, age);
        }
        assert_eq!(dogs[0].poll(now, false), Action::Report { silent: vec![] });
        assert_eq!(dogs[0].poll(now, false), Action::Nothing);
        assert_eq!(dogs[0].poll(now + SECOND, false), Action::End);
    }

    #[test]
    fn a_rank_that_works_makes_the_asker_wait_as_long_as_needed() {
        let start = Instant::now();
        let mut dogs = dogs(2, start);
        let mut now = start + 10 * SECOND;
        assert_eq!(dogs[0].poll(now, false), Action::Ask { round: 1 });
        dogs[0].answered(RankId::new(1), 1, 4 * SECOND);
        assert_eq!(dogs[0].poll(now, false), Action::Nothing);
        now += 5 * SECOND;
        assert_eq!(dogs[0].poll(now, false), Action::Nothing);
        now += SECOND;
        assert_eq!(dogs[0].poll(now, false), Action::Ask { round: 2 });
        // An answer to an earlier question counts for nothing.
        dogs[0].answered(RankId::new(1), 1, 10 * SECOND);
        assert_eq!(dogs[0].poll(now, false), Action::Nothing);
        dogs[0].answered(RankId::new(1), 2, 10 * SECOND);
        assert_eq!(dogs[0].poll(now, false), Action::Report { silent: vec![] });
    }

    #[test]
    fn silent_ranks_are_named_even_rank_0() {
        let start = Instant::now();
        let mut dogs = dogs(3, start);
        let now = start + 11 * SECOND;
        assert_eq!(dogs[1].poll(now, false), Action::Ask { round: 1 });
        dogs[1].answered(RankId::new(2), 1, 11 * SECOND);
        assert_eq!(dogs[1].poll(now + SECOND, false), Action::Nothing);
        assert_eq!(dogs[1].poll(now + 2 * SECOND, false), Action::Report { silent: vec![RankId::FIRST] });
    }

    #[test]
    fn of_two_that_ask_the_lower_goes_on() {
        let start = Instant::now();
        let mut dogs = dogs(2, start);
        let now = start + 11 * SECOND;
        assert_eq!(dogs[0].poll(now, false), Action::Ask { round: 1 });
        assert_eq!(dogs[1].poll(now, false), Action::Ask { round: 1 });
        dogs[0].asked(RankId::new(1), now);
        dogs[1].asked(RankId::FIRST, now);
        dogs[0].answered(RankId::new(1), 1, 11 * SECOND);
        dogs[1].answered(RankId::FIRST, 1, 11 * SECOND);
        assert_eq!(dogs[0].poll(now, false), Action::Report { silent: vec![] });
        assert_eq!(dogs[1].poll(now, false), Action::Nothing);
    }

    #[test]
    fn of_two_that_found_it_neither_leaves_the_end_to_the_other() {
        let start = Instant::now();
        let mut dogs = dogs(3, start);
        let mut now = start + 11 * SECOND;
        for dog in &mut dogs[1..] {
            assert!(matches!(dog.poll(now, false), Action::Ask { .. }));
        }
        now += 2 * SECOND;
        for dog in &mut dogs[1..] {
            assert!(matches!(dog.poll(now, false), Action::Report { .. }));
        }
        for dog in &mut dogs[1..] {
            dog.noted(now);
            assert_eq!(dog.poll(now + SECOND, false), Action::End);
        }
    }

    #[test]
    fn work_is_progress_and_one_rank_alone_needs_nobody() {
        let start = Instant::now();
        let mut dogs = dogs(1, start);
        assert_eq!(dogs[0].poll(start + 100 * SECOND, true), Action::Nothing);
        let now = start + 110 * SECOND;
        assert_eq!(dogs[0].poll(now, false), Action::Ask { round: 1 });
        assert_eq!(dogs[0].poll(now, false), Action::Report { silent: vec![] });
    }

    #[test]
    fn in_a_library_a_rank_without_an_answer_computes() {
        let start = Instant::now();
        let mut dog = Watchdog::new(RankId::FIRST, 2, Watch::Runs(10 * SECOND), start);
        let mut now = start + 10 * SECOND;
        assert_eq!(dog.poll(now, false), Action::Ask { round: 1 });
        now += 2 * SECOND;
        assert_eq!(dog.poll(now, false), Action::Nothing);
        // It asks again, but not at once, and ends the job when the other rank is there and waits, too.
        assert_eq!(dog.poll(now + 9 * SECOND, false), Action::Nothing);
        now += 10 * SECOND;
        assert_eq!(dog.poll(now, false), Action::Ask { round: 2 });
        dog.answered(RankId::new(1), 2, 10 * SECOND);
        assert_eq!(dog.poll(now, false), Action::Report { silent: vec![] });
    }

    #[test]
    fn a_watchdog_that_is_off_asks_nobody() {
        let start = Instant::now();
        let mut dog = Watchdog::new(RankId::FIRST, 2, Watch::Off, start);
        assert_eq!(dog.poll(start + 1_000_000 * SECOND, false), Action::Nothing);
    }
}
