//! Outputs of tasks on ours: each whole, never interleaved with another's, and if asked for in the order of the list.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use crate::lead::pool::Numbers;
use crate::messages::Stream;
use crate::task::{Capture, Kept};
use equipoise::topology::RankId;

/// Receiver of outputs.
pub type Sink = Box<dyn FnMut(Stream, &[u8]) -> io::Result<()>>;

/// Outputs that wait for their turn take no more memory than this; what is more is put aside in a file.
const IN_MEMORY: usize = 16 << 20;

/// Output of one task to be printed.
#[derive(Debug)]
struct Job {
    seq: u64,
    rank: RankId,
    /// Standard output, then standard error.
    parts: VecDeque<(Stream, Stored)>,
}

#[derive(Debug)]
enum Stored {
    Here(Vec<u8>),
    /// In the temporary file.
    Aside {
        at: u64,
        length: usize,
    },
    /// On the task's rank, and how much of it was printed.
    There {
        from: u64,
    },
}

/// A piece of a long output that is wanted of a rank.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    pub rank: RankId,
    pub seq: u64,
    pub stream: Stream,
    pub from: u64,
}

/// Prints outputs.
pub struct Printer {
    sink: Sink,
    keep_order: bool,
    /// Outputs that came before their turn, in order.
    early: BTreeMap<u64, Job>,
    /// Tasks that print nothing.
    silent: Numbers,
    next: u64,
    queue: VecDeque<Job>,
    /// Whether a piece was requested and has not come.
    is_waiting: bool,
    bytes: usize,
    aside: Option<(File, u64)>,
}

impl Printer {
    pub fn new(sink: Sink, keep_order: bool) -> Printer {
        let (early, queue) = (BTreeMap::new(), VecDeque::new());
        Printer { sink, keep_order, early, silent: Numbers::default(), next: 1, queue, is_waiting: false, bytes: 0, aside: None }
    }

    /// A task that prints nothing.
    pub fn skip(&mut self, seq: u64) {
        if self.keep_order {
            self.silent.insert(seq);
            self.advance();
        }
    }

    /// Adds the output of a task.
    ///
    /// # Errors
    /// If a long output cannot be written to the temporary file.
    pub fn add(&mut self, rank: RankId, seq: u64, out: Capture, err: Capture) -> io::Result<()> {
        let mut job = Job { seq, rank, parts: VecDeque::new() };
        for (stream, capture) in [(Stream::Out, out), (Stream::Err, err)] {
            let part = match capture.kept {
                Kept::Nowhere => continue,
                Kept::File(_) => Stored::There { from: 0 },
                Kept::Here(text) if self.keep_order && seq != self.next && self.bytes + text.len() > IN_MEMORY => self.put_aside(&text)?,
                Kept::Here(text) => {
                    self.bytes += text.len();
                    Stored::Here(text)
                }
            };
            job.parts.push_back((stream, part));
        }
        match self.keep_order {
            true => {
                self.early.insert(seq, job);
                self.advance();
            }
            false => self.queue.push_back(job),
        }
        Ok(())
    }

    fn put_aside(&mut self, text: &[u8]) -> io::Result<Stored> {
        if self.aside.is_none() {
            self.aside = Some((tempfile::tempfile()?, 0));
        }
        let Some((file, end)) = &mut self.aside else { return Err(io::Error::other("no file")) };
        file.write_all_at(text, *end)?;
        let at = *end;
        *end += text.len() as u64;
        Ok(Stored::Aside { at, length: text.len() })
    }

    fn advance(&mut self) {
        loop {
            if let Some(job) = self.early.remove(&self.next) {
                self.queue.push_back(job);
            } else if !self.silent.contains(self.next) {
                return;
            }
            self.next += 1;
        }
    }

    /// The order of tasks counts no more: the job ends before some of them.
    pub fn forget_order(&mut self) {
        self.keep_order = false;
        self.queue.extend(std::mem::take(&mut self.early).into_values());
    }

    /// Prints what can be printed now; returns the piece that has to come first, if one has.
    ///
    /// # Errors
    /// If our standard output does not take it.
    pub fn print(&mut self) -> io::Result<Option<Wanted>> {
        while let Some(job) = self.queue.front_mut() {
            if self.is_waiting {
                return Ok(None);
            }
            let (rank, seq) = (job.rank, job.seq);
            match job.parts.pop_front() {
                None => _ = self.queue.pop_front(),
                Some((stream, Stored::Here(text))) => {
                    self.bytes -= text.len();
                    (self.sink)(stream, &text)?;
                }
                Some((stream, Stored::Aside { at, length })) => {
                    let mut text = vec![0; length];
                    if let Some((file, _)) = &self.aside {
                        file.read_exact_at(&mut text, at)?;
                    }
                    (self.sink)(stream, &text)?;
                }
                Some((stream, Stored::There { from })) => {
                    job.parts.push_front((stream, Stored::There { from }));
                    self.is_waiting = true;
                    return Ok(Some(Wanted { rank, seq, stream, from }));
                }
            }
        }
        Ok(None)
    }

    /// The piece that was wanted; an empty one is behind the end.
    ///
    /// # Errors
    /// If our standard output does not take it.
    pub fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_waiting = false;
        let Some((stream, Stored::There { from })) = self.queue.front_mut().and_then(|job| job.parts.front_mut()) else { return Ok(()) };
        let stream = *stream;
        if bytes.is_empty() {
            self.queue.front_mut().map(|job| job.parts.pop_front());
            return Ok(());
        }
        *from += bytes.len() as u64;
        (self.sink)(stream, bytes)
    }

    /// Notes the loss of a rank, with the long outputs that were to be fetched from it. Returns the number of tasks with incomplete output.
    pub fn lose(&mut self, rank: RankId) -> usize {
        let is_waiting = self.is_waiting && self.queue.front().is_some_and(|job| job.rank == rank);
        self.is_waiting &= !is_waiting;
        let mut tasks = 0;
        for job in self.queue.iter_mut().chain(self.early.values_mut()).filter(|job| job.rank == rank) {
            let before = job.parts.len();
            job.parts.retain(|(_, part)| !matches!(part, Stored::There { .. }));
            tasks += usize::from(job.parts.len() < before);
        }
        tasks
    }

    /// Returns true if all is printed.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.early.is_empty()
    }
}

/// A sink that writes to our own standard output and standard error. Readers that went away early are no failure.
pub fn standard() -> Sink {
    let mut gone = false;
    Box::new(move |stream, bytes| {
        let written = match stream {
            Stream::Out if gone => Ok(()),
            Stream::Out => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Stream::Err => io::stderr().lock().write_all(bytes),
        };
        match written {
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => {
                gone = gone || stream == Stream::Out;
                Ok(())
            }
            written => written,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    fn printer(keep_order: bool) -> (Printer, Rc<RefCell<String>>) {
        let seen: Rc<RefCell<String>> = Rc::default();
        let kept = seen.clone();
        let sink = move |stream: Stream, bytes: &[u8]| {
            let mark = if stream == Stream::Out { "" } else { "!" };
            kept.borrow_mut().push_str(&format!("{mark}{} ", String::from_utf8_lossy(bytes)));
            Ok(())
        };
        (Printer::new(Box::new(sink), keep_order), seen)
    }

    fn here(text: &str) -> Capture {
        Capture { bytes: text.len() as u64, lines: 0, kept: Kept::Here(text.into()) }
    }

    #[test]
    fn outputs_are_whole() {
        let (mut printer, seen) = printer(false);
        let long = Capture { bytes: 6, lines: 0, kept: Kept::File(b"x".to_vec()) };
        printer.add(RankId::new(3), 2, long, here("e2")).unwrap();
        printer.add(RankId::FIRST, 1, here("o1"), Capture::default()).unwrap();
        assert_eq!(printer.print().unwrap(), Some(Wanted { rank: RankId::new(3), seq: 2, stream: Stream::Out, from: 0 }));
        assert_eq!(printer.print().unwrap(), None, "one piece at a time");
        printer.piece(b"abc").unwrap();
        assert_eq!(printer.print().unwrap().unwrap().from, 3);
        printer.piece(b"").unwrap();
        assert_eq!(printer.print().unwrap(), None);
        assert_eq!((seen.borrow().as_str(), printer.is_done()), ("abc !e2 o1 ", true));
    }

    #[test]
    fn a_lost_rank_holds_up_no_other_output() {
        let (mut printer, seen) = printer(false);
        let long = || Capture { bytes: 6, lines: 0, kept: Kept::File(b"x".to_vec()) };
        printer.add(RankId::new(3), 1, long(), here("e1")).unwrap();
        printer.add(RankId::new(1), 2, here("o2"), long()).unwrap();
        assert_eq!(printer.print().unwrap().map(|wanted| wanted.rank), Some(RankId::new(3)));
        assert_eq!(printer.lose(RankId::new(3)), 1);
        assert_eq!(printer.print().unwrap().map(|wanted| wanted.rank), Some(RankId::new(1)));
        assert_eq!(printer.lose(RankId::new(2)), 0);
        printer.piece(b"").unwrap();
        printer.print().unwrap();
        assert_eq!((seen.borrow().as_str(), printer.is_done()), ("!e1 o2 ", true));
    }

    #[test]
    fn they_come_in_order_if_asked_for() {
        let (mut printer, seen) = printer(true);
        for seq in [3, 2, 5] {
            printer.add(RankId::FIRST, seq, here(&seq.to_string()), Capture::default()).unwrap();
        }
        printer.print().unwrap();
        assert_eq!(seen.borrow().as_str(), "");
        printer.skip(1);
        printer.print().unwrap();
        assert_eq!(seen.borrow().as_str(), "2 3 ");
        printer.forget_order();
        printer.print().unwrap();
        assert_eq!((seen.borrow().as_str(), printer.is_done()), ("2 3 5 ", true));
    }

    #[test]
    fn what_waits_for_long_is_put_aside() {
        let (mut printer, seen) = printer(true);
        let long = "x".repeat(IN_MEMORY / 2);
        for seq in 2..=5 {
            printer.add(RankId::FIRST, seq, here(&format!("{seq}{long}")), Capture::default()).unwrap();
        }
        assert!(printer.bytes <= IN_MEMORY && printer.aside.is_some());
        printer.add(RankId::FIRST, 1, here("1"), Capture::default()).unwrap();
        printer.print().unwrap();
        let firsts: String = seen.borrow().split_whitespace().map(|text| &text[..1]).collect();
        assert_eq!(firsts, "12345");
    }
}
