//! How tasks spread over ranks in a run, and how its end is found.
//!
//! A rank without tasks asks a random other rank, which gives the oldest of its tasks of the highest priority, half of
//! their work, or declines. Termination is
//! detected by a token that goes round and adds up messages sent and received (Mattern 1987): nothing is left when in two successive rounds all
//! ranks were idle and the totals of messages sent and received were equal and the same.

use super::call::State;
use super::letters::{kinds, read};
use super::run::{ASK, Counts, DONE, Item, RESULT, STOP, TASKS, TOKEN, Token};
use super::status::{Failure, Result, Status};
use crate::topology::RankId;
use crate::transport::mpi::guest::Received;
use crate::transport::wire;

impl State {
    /// Letters of runs that are over go.
    pub fn purge(&mut self) {
        let run = self.run.as_ref().map(|run| run.number);
        if let Some(link) = &mut self.link {
            while link.take(|word| word.kind >= kinds::RUN && Some(word.call) != run && word.call <= self.made).is_some() {}
        }
    }

    /// Serves requests of other ranks in a run. Returns true if there was one.
    pub fn serve(&mut self) -> Result<bool> {
        let Some(number) = self.run.as_ref().map(|run| run.number) else { return Ok(false) };
        let mut happened = false;
        while let Some(word) = self.link()?.take(|word| word.kind >= kinds::RUN && word.call == number) {
            happened = true;
            self.has_progressed();
            self.hear(&word)?;
        }
        Ok(happened)
    }

    fn hear(&mut self, word: &Received) -> Result<()> {
        let Some(run) = &mut self.run else { return Ok(()) };
        let number = run.number;
        match word.kind {
            ASK => {
                let gift = run.spare();
                run.counts.sent += u64::from(!gift.is_empty());
                let body = wire::write(&gift);
                self.link()?.send(word.from, TASKS, number, &body)?;
            }
            TASKS => {
                let gift: Vec<Item> = read(&word.body)?;
                run.asked = None;
                run.counts.received += u64::from(!gift.is_empty());
                gift.into_iter().for_each(|item| run.queue_up(item));
            }
            RESULT => {
                let mut index = [0; 8];
                let Some((head, _)) = word.body.split_at_checked(8) else {
                    return Err(Failure::new(Status::Failed, "a result is cut off"));
                };
                index.copy_from_slice(head);
                run.counts.received += 1;
                run.results.push((word.from, u64::from_le_bytes(index), word.body.slice(8..)));
            }
            STOP => _ = run.halt(),
            TOKEN => run.wave.token = Some(read(&word.body)?),
            DONE => run.done = true,
            _ => {}
        }
        Ok(())
    }

    /// Step of a rank without tasks: it passes the token on, and asks for tasks.
    pub fn when_idle(&mut self) -> Result<()> {
        let Some(run) = &mut self.run else { return Ok(()) };
        if !run.is_idle() || run.done {
            return Ok(());
        }
        let (number, ranks) = (run.number, run.ranks);
        if let Some(token) = run.wave.token.take() {
            let counts = Counts { sent: token.counts.sent + run.counts.sent, received: token.counts.received + run.counts.received };
            let mut to = run.rank.get() + 1;
            let mut next = Token { counts, was_busy: token.was_busy };
            if run.rank == RankId::FIRST {
                // It has been round: the others' sums are in it.
                let all = counts;
                let is_quiet = !token.was_busy && all.sent == all.received;
                if ranks == 1 || (is_quiet && run.wave.last == Some(all)) {
                    run.done = true;
                    let link = self.link()?;
                    for rank in RankId::all(ranks).skip(1) {
                        link.send(rank, DONE, number, &[])?;
                    }
                    return Ok(());
                }
                run.wave.last = is_quiet.then_some(all);
                to = 1;
                next = Token { counts: Counts::default(), was_busy: false };
            }
            let to = to % ranks;
            self.link()?.send(RankId::new(to), TOKEN, number, &wire::write(&next))?;
        }
        let Some(run) = &mut self.run else { return Ok(()) };
        if run.steals && run.asked.is_none() && !run.stop.is_known {
            let victim = run.victim();
            run.asked = Some(victim);
            self.link()?.send(victim, ASK, number, &[])?;
        }
        Ok(())
    }
}
