//! A lead and hands put together: in this process alone, or over the ranks of a world.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use equipoise::node::{self, Event, Node};
use equipoise::topology::{Overlay, RankId, Topology};
use equipoise::transport::world::World;
use equipoise::{Error, Result};

use crate::environment;
use crate::hand::Hand;
use crate::helper::Helper;
use crate::helper::protocol::{News, Slots};
use crate::helper::running::now;
use crate::helper::verdict::ENDING;
use crate::lead::Lead;
use crate::limits::Processors;
use crate::messages::{ToHand, ToLead};
use crate::settings::Settings;
use crate::tags::{TO_HAND, TO_LEAD};

/// Messages of a rank's lead to other hands, and of its hand to a lead elsewhere.
type ForOthers = (Vec<(RankId, ToHand)>, Vec<ToLead>);

/// Interval at which a rank looks at the clock.
const TICK: Duration = Duration::from_millis(100);

/// Events of a rank other than messages.
pub enum Happening {
    News(Option<News>),
    Synced(io::Result<u64>),
    Signal,
    Tick,
}

/// One rank's part: its hand, and on rank 0 the lead.
pub struct FarmRank {
    lead: Option<Lead>,
    hand: Hand,
    /// The job goes on when a rank other than 0 dies.
    survives: bool,
    happenings: Receiver<Happening>,
}

impl FarmRank {
    /// Rank `rank`'s part. The helper was started before MPI; there is none where all tasks are empty.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn new(settings: &Settings, rank: RankId, slots: Slots, helper: Option<Helper>, lead: Option<Lead>) -> Result<FarmRank> {
        let refused = |why: io::Error| Error::Failed(format!("rank {rank}: no thread can be started: {why}"));
        let (happen, happenings) = unbounded();
        if let Some(helper) = &helper {
            let happen = happen.clone();
            helper.listen(move |news| drop(happen.send(Happening::News(news)))).map_err(refused)?;
        }
        let synced = happen.clone();
        let hand = Hand::new(settings, rank, slots, helper, Box::new(move |records| drop(synced.send(Happening::Synced(records)))));
        listen_to_signals(happen).map_err(refused)?;
        Ok(FarmRank { lead, hand, survives: settings.survives, happenings })
    }

    fn happen(&mut self, what: Happening) -> Result<()> {
        match what {
            Happening::News(news) => self.hand.hear(news),
            Happening::Synced(records) => self.hand.synced(records),
            Happening::Signal => {
                self.hand.signalled();
                Ok(())
            }
            Happening::Tick => match &mut self.lead {
                Some(lead) => lead.tick(now()),
                None => Ok(()),
            },
        }
    }

    /// Passes on what lead and hand of this rank say to each other, until they have nothing more to say; the rest is for others.
    fn settle(&mut self, me: RankId) -> Result<ForOthers> {
        let (mut to_hands, mut to_lead) = (Vec::new(), Vec::new());
        loop {
            let says = self.hand.take_says();
            let mut is_quiet = says.is_empty();
            match &mut self.lead {
                None => to_lead.extend(says),
                Some(lead) => {
                    for message in says {
                        lead.receive(me, message, now())?;
                    }
                    let sends = lead.take_sends();
                    is_quiet &= sends.is_empty();
                    for (to, message) in sends {
                        match to == me {
                            true => self.hand.receive(message)?,
                            false => to_hands.push((to, message)),
                        }
                    }
                }
            }
            if is_quiet {
                return Ok((to_hands, to_lead));
            }
        }
    }

    /// Returns true if this rank has nothing more to do.
    fn is_over(&self) -> bool {
        self.hand.is_over() && self.lead.as_ref().is_none_or(Lead::is_over)
    }

    fn begin(&mut self, job: u32) -> Result<()> {
        self.lead.as_mut().map_or(Ok(()), |lead| lead.begin(job, now()))
    }

    fn end(&mut self) -> Result<i32> {
        self.lead.as_mut().map_or(Ok(0), |lead| lead.end(now()))
    }
}

/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 end the job in an orderly way, but for those that are ignored.
fn listen_to_signals(happen: Sender<Happening>) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new(ENDING.into_iter().filter(|signal| !environment::ignores(*signal)))?;
    let listen = move || {
        for _ in signals.forever() {
            if happen.send(Happening::Signal).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(listen).map(|_| ())
}

/// Waits for the next event, or for a tick if there is none for a while, and returns it with all further events that have happened.
fn next(happenings: &Receiver<Happening>) -> Vec<Happening> {
    let first = match happenings.recv_timeout(TICK) {
        Ok(first) => first,
        Err(RecvTimeoutError::Timeout) => return vec![Happening::Tick],
        Err(RecvTimeoutError::Disconnected) => {
            std::thread::sleep(TICK);
            Happening::Tick
        }
    };
    let mut all = vec![first];
    all.extend(happenings.try_iter().take(1024));
    all
}

/// Runs the farm in this process alone. Returns the exit status.
///
/// # Errors
/// If the job cannot go on.
pub fn alone(mut farm_rank: FarmRank, job: u32) -> Result<i32> {
    farm_rank.begin(job)?;
    let mut ticked = now();
    loop {
        farm_rank.settle(RankId::FIRST)?;
        if farm_rank.is_over() {
            return farm_rank.end();
        }
        for what in next(&farm_rank.happenings) {
            farm_rank.happen(what)?;
        }
        if now() - ticked >= TICK.as_secs_f64() {
            ticked = now();
            farm_rank.happen(Happening::Tick)?;
        }
    }
}

/// This process's rank in a world, and the processors of all ranks.
///
/// # Errors
/// If the world has too many ranks for a topology.
pub fn meet(world: &mut World) -> Result<(RankId, Vec<Processors>)> {
    let ranks = world.ranks();
    let overlay = Overlay::one_host(Topology::parse("complete", ranks)?, ranks)?;
    let met = node::run(world, &overlay, |node| async move {
        let me = node.rank_of(node.me());
        let all = node.everyone().all_gather(&node, (me, Processors::here())).await?;
        let by_rank: BTreeMap<RankId, Processors> = all.iter().cloned().collect();
        Ok((me, by_rank.into_values().collect()))
    })?;
    met.into_iter().next().map(|(_, met)| met).ok_or_else(|| Error::Failed("a farm runs on real ranks".into()))
}

/// Runs the farm over the ranks of a world, this rank with its farm_rank. Returns the exit status on rank 0, and 0 elsewhere.
///
/// # Errors
/// If the job cannot go on.
pub fn over(world: &mut World, farm_rank: FarmRank, job: u32) -> Result<i32> {
    let ranks = world.ranks();
    let overlay = Overlay::one_host(Topology::parse("complete", ranks)?, ranks)?;
    let mut farm_rank = Some(farm_rank);
    let statuses = node::run(world, &overlay, |node| {
        // A real rank hosts one node.
        let farm_rank = farm_rank.take();
        async move {
            match farm_rank {
                Some(farm_rank) => run_on(node, farm_rank, job).await,
                None => Err(Error::Failed("a farm runs on real ranks".into())),
            }
        }
    })?;
    Ok(statuses.first().map_or(0, |(_, status)| *status))
}

async fn run_on(node: Node, mut farm_rank: FarmRank, job: u32) -> Result<i32> {
    // A rank has one node.
    let node_of = |rank| node.overlay().placement.real_node_of(rank);
    let (me, survives) = (node.rank_of(node.me()), farm_rank.survives);
    farm_rank.begin(job)?;
    let wait = |happenings: &Receiver<Happening>| {
        let happenings = happenings.clone();
        node.start(move |_| next(&happenings));
    };
    wait(&farm_rank.happenings);
    let mut ticked = now();
    loop {
        let (to_hands, to_lead) = farm_rank.settle(me)?;
        to_hands.iter().for_each(|(to, message)| node.send(node_of(*to), TO_HAND, message));
        to_lead.iter().for_each(|message| node.send(0, TO_LEAD, message));
        let is_over = farm_rank.is_over();
        match node.next_event().await {
            Event::Finished { finished, .. } => {
                let happened = finished.output.downcast::<Vec<Happening>>();
                for what in happened.map(|happened| *happened).unwrap_or_default() {
                    farm_rank.happen(what)?;
                }
                if is_over {
                    return farm_rank.end();
                }
                wait(&farm_rank.happenings);
            }
            Event::Message(message) if message.envelope.tag == TO_HAND.id() => farm_rank.hand.receive(node::open(&message, TO_HAND)?)?,
            Event::Message(message) => {
                let from = node.rank_of(message.envelope.src);
                if let Some(lead) = &mut farm_rank.lead {
                    lead.receive(from, node::open(&message, TO_LEAD)?, now())?;
                }
            }
            Event::RankLost(rank) if rank == RankId::FIRST || !survives => return Err(Error::RankLost { rank }),
            Event::RankLost(rank) => farm_rank.lead.as_mut().map_or(Ok(()), |lead| lead.lost(rank, now()))?,
            _ => {}
        }
        if farm_rank.lead.is_some() && now() - ticked >= TICK.as_secs_f64() {
            ticked = now();
            farm_rank.happen(Happening::Tick)?;
        }
    }
}
