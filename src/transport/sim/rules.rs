//! Rules that disturb a simulated run, so that tests can explore orders of events and failures by seed.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::topology::{NodeId, RankId};
use crate::transport::{Envelope, Signal, Tag, Ticks};

/// Disturbances of the messages and ranks of each run. Built up by its methods; the default disturbs nothing.
///
/// Whatever the rules, messages between two nodes arrive in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    seed: u64,
    delay: Delay,
    pub(super) shuffle: bool,
    slowed: Vec<(Messages, Ticks)>,
    withheld: Vec<Messages>,
    pub(super) losses: Vec<(Ticks, RankId)>,
    pub(super) signals: Vec<(Ticks, Signal)>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Delay {
    #[default]
    None,
    Uniform(Ticks),
    Heavy(Ticks),
}

/// Some of the messages of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Messages {
    tag: Option<Tag>,
    src: Option<NodeId>,
    dst: Option<NodeId>,
    nth: Option<u64>,
}

impl Messages {
    /// All messages.
    pub fn all() -> Messages {
        Messages::default()
    }

    /// Messages with this tag.
    pub fn tagged(tag: Tag) -> Messages {
        Messages { tag: Some(tag), ..Messages::default() }
    }

    /// Restricts these to messages sent by this node.
    pub fn from(self, src: NodeId) -> Messages {
        Messages { src: Some(src), ..self }
    }

    /// Restricts these to messages sent to this node.
    pub fn to(self, dst: NodeId) -> Messages {
        Messages { dst: Some(dst), ..self }
    }

    /// Restricts these to a single message: the first is 0, in the order of sending.
    pub fn nth(self, nth: u64) -> Messages {
        Messages { nth: Some(nth), ..self }
    }

    fn covers(&self, envelope: &Envelope, seen: &mut u64) -> bool {
        let covered = self.tag.is_none_or(|tag| tag.id() == envelope.tag)
            && self.src.is_none_or(|src| src == envelope.src)
            && self.dst.is_none_or(|dst| dst == envelope.dst);
        if !covered {
            return false;
        }
        let number = *seen;
        *seen += 1;
        self.nth.is_none_or(|nth| nth == number)
    }
}

impl Rules {
    /// Rules that draw from this seed, which has nothing to do with the seed that programs see.
    pub fn seeded(seed: u64) -> Rules {
        Rules { seed, ..Rules::default() }
    }

    /// Delays each message by a random time from 0 to `most` ticks.
    pub fn delay_up_to(self, most: Ticks) -> Rules {
        Rules { delay: Delay::Uniform(most), ..self }
    }

    /// Delays each message by a random time with a heavy tail: one in two by up to `scale` ticks, one in four by up to twice as much,
    /// and so on, to 65,536 times as much.
    pub fn delay_heavily(self, scale: Ticks) -> Rules {
        Rules { delay: Delay::Heavy(scale), ..self }
    }

    /// Lets messages of different pairs that arrive at the same instant arrive in random order.
    pub fn shuffle(self) -> Rules {
        Rules { shuffle: true, ..self }
    }

    /// Delays the messages by `ticks` ticks.
    pub fn delay(mut self, messages: Messages, ticks: Ticks) -> Rules {
        self.slowed.push((messages, ticks));
        self
    }

    /// Lets the messages never arrive. Later messages of the same pair do.
    pub fn withhold(mut self, messages: Messages) -> Rules {
        self.withheld.push(messages);
        self
    }

    /// Kills a rank at this time of each run, after the actions of its programs at that instant.
    pub fn lose(mut self, rank: RankId, at: Ticks) -> Rules {
        self.losses.push((at, rank));
        self
    }

    /// Sends a signal to every node at this time of each run.
    pub fn signal(mut self, signal: Signal, at: Ticks) -> Rules {
        self.signals.push((at, signal));
        self
    }

    fn delays(&self) -> bool {
        !self.slowed.is_empty() || !matches!(self.delay, Delay::None)
    }

    /// The tag of this number, if a rule names it.
    pub(super) fn tag(&self, id: u16) -> Option<Tag> {
        self.slowed.iter().map(|(messages, _)| messages).chain(&self.withheld).filter_map(|messages| messages.tag).find(|t| t.id() == id)
    }
}

/// Rules at work in one run.
pub(super) struct Disturbance {
    pub rules: Rules,
    rng: ChaCha8Rng,
    slowed_seen: Vec<u64>,
    withheld_seen: Vec<u64>,
    /// Withheld messages, with the time of sending.
    pub held: Vec<(Envelope, Ticks)>,
    pub delays: bool,
}

impl Disturbance {
    pub fn new(rules: Rules) -> Disturbance {
        Disturbance {
            rng: ChaCha8Rng::seed_from_u64(rules.seed),
            slowed_seen: vec![0; rules.slowed.len()],
            withheld_seen: vec![0; rules.withheld.len()],
            held: Vec::new(),
            delays: rules.delays(),
            rules,
        }
    }

    /// Returns true if the message, sent now, is never to arrive.
    pub fn withholds(&mut self, envelope: &Envelope, now: Ticks) -> bool {
        let mut withheld = false;
        for (messages, seen) in self.rules.withheld.iter().zip(&mut self.withheld_seen) {
            withheld |= messages.covers(envelope, seen);
        }
        if withheld {
            self.held.push((*envelope, now));
        }
        withheld
    }

    /// Delay of the message against an undisturbed network.
    pub fn delay(&mut self, envelope: &Envelope) -> Ticks {
        let mut delay = match self.rules.delay {
            Delay::None => 0,
            Delay::Uniform(most) => self.rng.random_range(0..=most),
            Delay::Heavy(scale) => {
                let octave = self.rng.random::<u32>().trailing_zeros().min(16);
                self.rng.random_range(0..=scale.saturating_mul(1 << octave))
            }
        };
        for ((messages, ticks), seen) in self.rules.slowed.iter().zip(&mut self.slowed_seen) {
            if messages.covers(envelope, seen) {
                delay = delay.saturating_add(*ticks);
            }
        }
        delay
    }

    /// A key by which messages of one instant are shuffled: the same for the messages of one pair.
    pub fn shuffle_key(&self, envelope: &Envelope, now: Ticks) -> u64 {
        let pair = u64::from(envelope.src) << 32 | u64::from(envelope.dst);
        mix(mix(mix(self.rules.seed) ^ now) ^ pair)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
