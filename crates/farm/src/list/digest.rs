//! Digest of a list: jobs on one journal compare theirs, and share only the same list.
//!
//! It covers what the commands do and what they wait for. Estimates, needs and the lines on which commands stand may differ. A list that is made by a
//! rule (a range of numbers, built-in tasks) is that rule, whatever its length. The hash is FNV-1a of 64 bits (Fowler, Noll, Vo and Eastlake, "The FNV
//! Non-Cryptographic Hash Algorithm", section 2), the same on all hosts and in all builds.

use std::os::unix::ffi::OsStrExt;

use super::Origin;
use crate::settings::Settings;
use crate::task::{How, Task};

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Digest of the tasks that were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(BASIS)
    }
}

impl Digest {
    /// The digest of a list that is made by a rule; `None` if its commands are in a file.
    pub fn of_rule(settings: &Settings) -> Option<Digest> {
        let rule = match &settings.origin {
            Origin::Commands { .. } | Origin::Arguments { .. } => return None,
            Origin::Array { first, step, template, .. } => format!("array {first} {step} {template:?}"),
            Origin::Empty(_) => "empty".into(),
            Origin::Sleep(sleep) => {
                let mut rule = sleep.clone();
                rule.tasks = 0;
                format!("{rule:?}")
            }
        };
        let mut digest = Digest::default();
        digest.field(rule.as_bytes());
        digest.number(settings.shell.into());
        settings.stdin.iter().for_each(|path| digest.field(path.as_os_str().as_bytes()));
        Some(digest)
    }

    /// Adds the next task of the list.
    pub fn add(&mut self, task: &Task) {
        self.field(task.text.trim_ascii());
        self.number(match task.how {
            How::Words => 0,
            How::Shell => 1,
            How::Empty => 2,
            How::Sleep => 3,
        });
        for path in [&task.dir, &task.stdin] {
            self.number(path.is_some().into());
            path.iter().for_each(|path| self.field(path));
        }
        self.number(task.after.len() as u64);
        task.after.iter().flat_map(|(first, last)| [*first, *last]).for_each(|seq| self.number(seq));
        self.number(task.variables.len() as u64);
        task.variables.iter().flat_map(|(name, value)| [name, value]).for_each(|text| self.field(text));
    }

    /// The number that stands for all.
    pub fn value(self) -> u64 {
        self.0
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn field(&mut self, text: &[u8]) {
        // With its length, so that no two sequences of fields look the same.
        self.number(text.len() as u64);
        self.bytes(text);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::template::Template;

    fn of(tasks: &[Task]) -> u64 {
        let mut digest = Digest::default();
        tasks.iter().for_each(|task| digest.add(task));
        digest.value()
    }

    #[test]
    fn it_is_that_of_the_publication() {
        let mut digest = Digest::default();
        digest.bytes(b"foobar");
        assert_eq!((Digest::default().value(), digest.value()), (0xcbf2_9ce4_8422_2325, 0x8594_4171_f739_67e8));
    }

    #[test]
    fn lists_that_do_other_things_differ() {
        let task = |text: &str| Task { text: text.into(), ..Task::default() };
        let one = task("a b");
        let same = [Task { cost: Some(3.0), line: 7, seq: 1, ..task(" a b ") }, Task { min: Some(1.0), ..one.clone() }];
        same.iter().for_each(|other| assert_eq!(of(std::slice::from_ref(&one)), of(std::slice::from_ref(other))));
        let shell = Task { how: How::Shell, ..one.clone() };
        let dir = Task { dir: Some(b"x".to_vec()), ..one.clone() };
        let stdin = Task { stdin: Some(b"x".to_vec()), ..one.clone() };
        let after = Task { after: vec![(1, 2)], ..one.clone() };
        let index = Task { variables: vec![(b"I".to_vec(), b"1".to_vec())], ..one.clone() };
        let lists = [
            vec![one.clone()],
            vec![one.clone(), task("c")],
            vec![task("c"), one.clone()],
            vec![task("a"), task("b")],
            vec![task("ab")],
            vec![shell],
            vec![dir],
            vec![stdin],
            vec![after],
            vec![index],
            vec![],
        ];
        let all: std::collections::BTreeSet<u64> = lists.iter().map(|list| of(list)).collect();
        assert_eq!(all.len(), lists.len());
    }

    #[test]
    fn a_rule_is_the_same_whatever_its_length() {
        let array = |first, last, word: &str| {
            let template = Template::new(vec![b"echo".to_vec(), word.into()]);
            Digest::of_rule(&Settings::new(Origin::Array { first, last, step: 1, template })).unwrap()
        };
        assert_eq!(array(1, 3, "{}"), array(1, 9, "{}"));
        let empty = |tasks| Digest::of_rule(&Settings::new(Origin::Empty(tasks))).unwrap();
        assert_eq!(empty(3), empty(4));
        let mut by_shell = Settings::new(Origin::Empty(3));
        by_shell.shell = true;
        let all = [array(1, 3, "{}"), array(2, 3, "{}"), array(1, 3, "{#}"), empty(3), Digest::of_rule(&by_shell).unwrap()];
        assert!((0..5).all(|at| !all[..at].contains(&all[at])));
        let file = Origin::Commands { file: "list".into(), format: crate::list::formats::Format::Plain };
        assert_eq!(Digest::of_rule(&Settings::new(file)), None);
    }
}
