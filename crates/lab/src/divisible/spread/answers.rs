//! The answers of all shares, as the originator collects them.

use super::order::{DONE, SpreadEnding, SpreadNodeReport, SpreadOrder, unexpected};
use equipoise::error::{Error, Result, Travelling};
use equipoise::node::{Message, Node, Ticks, open};

/// Time that the other shares have to end once one has failed: those that fail for the same reason soon after it are compared with it, and
/// the first in the input is reported. A program that would go on for hours does not keep the job.
const GRACE: Ticks = 2_000_000_000;

/// Answers and reports that have arrived from the nodes, and the number still missing.
pub(super) struct Answers<'a> {
    order: &'a SpreadOrder,
    /// Report and answer of each node.
    reports: Vec<SpreadNodeReport>,
    answers: Vec<Option<Result<Vec<u8>>>>,
    /// Number of shares, other than the originator's, whose answers have not arrived.
    missing: usize,
    /// Time at which the originator stops waiting, since a share has failed.
    given_up: Option<Ticks>,
}

impl<'a> Answers<'a> {
    /// Expects one of every other node that has a share.
    pub fn new(order: &'a SpreadOrder) -> Answers<'a> {
        let nodes = order.ranges.len();
        let missing = (0..).zip(&order.ranges).filter(|(node, range)| *node != order.origin && !range.is_empty()).count();
        Answers { order, reports: vec![SpreadNodeReport::default(); nodes], answers: vec![None; nodes], missing, given_up: None }
    }

    /// Returns true if all have come.
    pub fn are_complete(&self) -> bool {
        self.missing == 0
    }

    /// Takes one.
    ///
    /// # Errors
    /// If the message is something else.
    pub fn take(&mut self, message: &Message) -> Result<()> {
        let from = message.envelope.src as usize;
        if message.envelope.tag != DONE.id() || from >= self.answers.len() {
            return Err(unexpected(message));
        }
        let (report, answer): (_, Result<_, Travelling>) = open(message, DONE)?;
        self.reports[from] = report;
        self.answers[from] = Some(answer.map_err(Error::from));
        self.missing -= 1;
        Ok(())
    }

    /// To be called before each wait; `own` is what went wrong with the originator's share. Once a share has failed, a timer ends the wait in time.
    ///
    /// # Errors
    /// The failure, if the others have had their time.
    pub fn await_failed(&mut self, node: &Node, own: Option<&Error>) -> Result<()> {
        let failure = own.or_else(|| self.answers.iter().flatten().find_map(|answer| answer.as_ref().err()));
        let Some(why) = failure else { return Ok(()) };
        let end = *self.given_up.get_or_insert_with(|| {
            let end = node.now() + GRACE;
            node.set_timer(end);
            end
        });
        if node.now() >= end { Err(why.clone()) } else { Ok(()) }
    }

    /// The ending, with the result of the originator's own share.
    pub fn ending(mut self, node: &Node, began: Ticks, report: SpreadNodeReport, answer: Option<Result<Vec<u8>>>) -> SpreadEnding {
        let origin = self.order.origin;
        self.reports[origin as usize] = report;
        self.answers[origin as usize] = answer;
        let owners = std::iter::once(origin).chain(self.order.order.iter().copied());
        let answers = owners.filter_map(|owner| Some((owner, self.order.ranges[owner as usize], self.answers[owner as usize].take()?)));
        let answers = answers.map(|(owner, range, answer)| Ok((owner, range, answer?))).collect();
        SpreadEnding { began, ended: node.now(), reports: self.reports, answers }
    }
}
