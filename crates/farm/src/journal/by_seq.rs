//! Records of tasks by their number. A journal may have a million of them: each takes 24 bytes.

use std::collections::BTreeMap;

use super::known::Known;
use crate::task::State;

/// Tasks of a page. Numbers that are far apart take a page each.
const PAGE: usize = 64;

/// A task's record; without a state there is none.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    text: u64,
    start: f64,
    attempts: u32,
    state: Option<State>,
    is_ours: bool,
}

/// The tasks that have records.
#[derive(Debug, Default)]
pub struct BySeq {
    pages: BTreeMap<u64, Box<[Entry; PAGE]>>,
}

fn place(seq: u64) -> (u64, usize) {
    (seq / PAGE as u64, (seq % PAGE as u64) as usize)
}

impl BySeq {
    pub fn get(&self, seq: u64) -> Option<Known> {
        let (page, at) = place(seq);
        let Entry { text, start, attempts, state, is_ours } = self.pages.get(&page)?[at];
        // Commands in logs of others are compared by their words.
        Some(Known { texts: [Some(text), None], by_words: !is_ours, state: state?, start, attempts, is_ours })
    }

    /// Keeps what is known of a task, with the first of its texts.
    pub fn set(&mut self, seq: u64, known: Known) {
        let (page, at) = place(seq);
        let Known { texts: [text, _], state, start, attempts, is_ours, .. } = known;
        let page = self.pages.entry(page).or_insert_with(|| Box::new([Entry::default(); PAGE]));
        page[at] = Entry { text: text.unwrap_or_default(), start, attempts, state: Some(state), is_ours };
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Number of tasks with a greater number than this, and the last of them.
    pub fn behind(&self, seq: u64) -> Option<(u64, u64)> {
        let pages = self.pages.range(place(seq).0..);
        let all =
            pages.flat_map(|(page, entries)| (0..).zip(entries.iter()).map(move |(at, entry): (u64, _)| (page * PAGE as u64 + at, entry)));
        let behind = all.filter(|(other, entry)| *other > seq && entry.state.is_some());
        behind.fold(None, |found, (other, _)| Some((found.map_or(0, |(number, _)| number) + 1, other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(state: State, start: f64) -> Known {
        Known { texts: [Some(start.to_bits()), None], by_words: false, state, start, attempts: 3, is_ours: true }
    }

    #[test]
    fn what_is_kept_is_found() {
        let mut tasks = BySeq::default();
        assert!(tasks.is_empty() && tasks.behind(0).is_none());
        for seq in [1, 63, 64, 1000, u64::MAX] {
            tasks.set(seq, known(State::Failed, 1.0));
            tasks.set(seq, known(State::Done, seq as f64));
        }
        for seq in [1, 63, 64, 1000, u64::MAX] {
            let found = tasks.get(seq).unwrap();
            assert_eq!((found.state, found.start, found.attempts, found.is_ours), (State::Done, seq as f64, 3, true));
            assert_eq!(found.texts, [Some((seq as f64).to_bits()), None]);
        }
        assert_eq!(tasks.behind(64), Some((2, u64::MAX)));
        assert!([0, 2, 65, 999, u64::MAX - 1].iter().all(|seq| tasks.get(*seq).is_none()) && !tasks.is_empty());
    }

    #[test]
    fn tasks_behind_the_end_are_counted() {
        let mut tasks = BySeq::default();
        (1..=200).for_each(|seq| tasks.set(seq, known(State::Done, 1.0)));
        assert_eq!(
            [tasks.behind(0), tasks.behind(70), tasks.behind(199), tasks.behind(200)],
            [Some((200, 200)), Some((130, 200)), Some((1, 200)), None]
        );
    }

    #[test]
    fn each_task_takes_little() {
        assert_eq!(size_of::<Entry>(), 24);
    }
}
