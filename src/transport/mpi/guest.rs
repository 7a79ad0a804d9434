//! The carrier of a guest: messages between ranks while a rank waits for them, transfers between callers' arrays, and shared numbers.
//!
//! Nothing runs between calls: no thread, no handler. A letter is short and comes through one posted receive, or it announces a body that
//! follows on a second communicator.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};

use super::ffi::{self, Comm, Letter, MOST_BODIES, Mailbox, Outgoing, Receiving};
use super::foreign::{Arriving, Foreign, Leaving, Transfers, Window};
use super::pool::Pool;
use super::sends::Sends;
use super::shared_memory::{self, Memory};
use crate::error::{Error, Result};
use crate::topology::RankId;
use crate::transport::world;

/// Number of call and length of the body.
const HEADER: usize = 16;

/// Longest body that travels with its header.
const INLINE: usize = 4000;

/// Long bodies and parts of arrays travel in pieces of this many bytes: MPI counts in C ints.
const PIECE: usize = 1 << 30;

/// Bytes of buffers that are kept to be used again.
const SPARE: usize = 16 << 20;

/// Tags on the second communicator.
const BODY: i32 = 1;
const ARRAY: i32 = 2;

/// Numbers that all ranks share, for loops.
pub(crate) const SHARED: usize = 64;

/// Storage of the shared numbers.
enum Shared {
    Memory(Memory),
    Window(Window),
}

/// A message from another rank.
pub(crate) struct Received {
    pub from: RankId,
    pub kind: i32,
    pub call: u64,
    pub body: Bytes,
}

/// The ranks of a guest's world.
pub(crate) struct Link {
    pub rank: RankId,
    pub ranks: u32,
    control: Comm,
    data: Comm,
    mailbox: Mailbox,
    sends: Sends,
    pool: Pool,
    /// Bodies that are on their way.
    bodies: Vec<(Received, Receiving)>,
    /// Messages that have arrived and were not asked for yet.
    ready: VecDeque<Received>,
    shared: Option<Shared>,
}

/// Returns true if MPI is active in this process.
pub(crate) fn is_active() -> bool {
    ffi::is_active()
}

/// Returns true if this thread may call MPI.
pub(crate) fn may_call() -> Result<bool> {
    ffi::may_call()
}

/// Ends the whole job, because that was asked for.
pub(crate) fn abort(status: i32) -> ! {
    ffi::abort(status)
}

impl Link {
    /// Duplicates a communicator. All its ranks must take part.
    pub fn open(comm: Foreign) -> Result<Link> {
        let control = Comm::duplicate(comm.0)?;
        let data = control.another()?;
        let mailbox = Mailbox::open(&control, HEADER + INLINE)?;
        Ok(Link {
            rank: control.rank()?,
            ranks: control.size()?,
            control,
            data,
            mailbox,
            sends: Sends::default(),
            pool: Pool::new(SPARE),
            bodies: Vec::new(),
            ready: VecDeque::new(),
            shared: None,
        })
    }

    /// Sends a letter to another rank (not to this one).
    pub fn send(&mut self, to: RankId, kind: i32, call: u64, body: &[u8]) -> Result<()> {
        let mut letter = Vec::with_capacity(HEADER + body.len().min(INLINE));
        letter.extend_from_slice(&call.to_le_bytes());
        letter.extend_from_slice(&(body.len() as u64).to_le_bytes());
        let is_short = body.len() <= INLINE;
        if is_short {
            letter.extend_from_slice(body);
        }
        self.sends.start(&self.control, to, kind, Outgoing::Own(letter))?;
        if !is_short {
            let body = Bytes::copy_from_slice(body);
            for start in (0..body.len()).step_by(PIECE) {
                let end = body.len().min(start + PIECE);
                self.sends.start(&self.data, to, BODY, Outgoing::Shared(body.slice(start..end)))?;
            }
        }
        Ok(())
    }

    /// All other ranks.
    pub fn others(&self) -> impl Iterator<Item = RankId> + use<> {
        let me = self.rank;
        RankId::all(self.ranks).filter(move |rank| *rank != me)
    }

    /// Looks at the network once; whether something has happened.
    pub fn poll(&mut self) -> Result<bool> {
        let mut happened = false;
        let before = self.sends.len();
        self.sends.collect(drop)?;
        happened |= self.sends.len() < before;
        while let Some(letter) = self.letter()? {
            happened = true;
            let mut bytes = letter.bytes;
            if bytes.len() < HEADER {
                return Err(garbled(letter.source));
            }
            let (call, length) = (bytes.get_u64_le(), bytes.get_u64_le());
            let mut word = Received { from: letter.source, kind: letter.tag, call, body: bytes };
            if length > INLINE as u64 {
                let receiving = self.data.receive_pieces(&self.pool, letter.source, BODY, length, &[], PIECE)?;
                self.bodies.push((word, receiving));
            } else if word.body.len() as u64 == length {
                self.ready.push_back(word);
            } else {
                word.body.clear();
                return Err(garbled(letter.source));
            }
        }
        let mut at = 0;
        while let Some((_, receiving)) = self.bodies.get_mut(at) {
            if receiving.is_complete()? {
                let (mut word, receiving) = self.bodies.remove(at);
                word.body = receiving.into_bytes(&self.pool);
                self.ready.push_back(word);
                happened = true;
            } else {
                at += 1;
            }
        }
        Ok(happened)
    }

    /// The next letter, if one has come. Notes what has come of the bodies, too.
    fn letter(&mut self) -> Result<Option<Letter>> {
        if self.bodies.is_empty() {
            return self.mailbox.poll(&self.control);
        }
        let mut awaited: Vec<_> = self.bodies.iter().take(MOST_BODIES).map(|(word, body)| (word.from, body.awaited())).collect();
        let letter = self.mailbox.look_with(&self.control, &mut awaited)?;
        for ((_, body), (_, awaited)) in self.bodies.iter_mut().zip(awaited) {
            body.note(awaited);
        }
        Ok(letter)
    }

    /// Takes the oldest letter that is wanted.
    pub fn take(&mut self, wanted: impl Fn(&Received) -> bool) -> Option<Received> {
        let at = self.ready.iter().position(wanted)?;
        self.ready.remove(at)
    }

    /// Returns true if all letters have left.
    pub fn has_sent(&self) -> bool {
        self.sends.len() == 0
    }

    /// Begins to move bytes between arrays. Dropped before it is over, the transfer goes on.
    ///
    /// # Safety
    /// The arrays stay until the transfer is over.
    #[allow(unsafe_code, reason = "hands on the promise of its caller")]
    pub unsafe fn begin(&self, arriving: &[Arriving], leaving: &[Leaving]) -> Result<Moving> {
        // SAFETY: the caller's promise.
        Ok(Moving(unsafe { Transfers::begin(&self.data, ARRAY, PIECE, arriving, leaving)? }))
    }

    /// Returns true if there are shared numbers.
    pub fn shares(&self) -> bool {
        self.shared.is_some()
    }

    /// Makes the numbers that all ranks share, if there are none: in memory where all are on one host, otherwise by one-sided calls. All ranks
    /// must take part, and wait for each other.
    pub fn share(&mut self) -> Result<()> {
        if self.shared.is_some() {
            return Ok(());
        }
        let made = if self.rank == RankId::FIRST { Memory::create(SHARED) } else { None };
        let mut mine = [0u8; shared_memory::NAME];
        if let Some((_, name)) = &made {
            mine[..name.len()].copy_from_slice(name.as_bytes());
        }
        let names = self.data.all_gather(&mine)?;
        let name = String::from_utf8_lossy(&names[..shared_memory::NAME]).trim_end_matches('\0').to_string();
        let memory = match made {
            Some((memory, _)) => Some(memory),
            None if self.rank != RankId::FIRST && !name.is_empty() => Memory::open(&name, SHARED),
            None => None,
        };
        let all_have = self.data.all_gather(&[u8::from(memory.is_some())])?.iter().all(|has| *has == 1);
        if self.rank == RankId::FIRST && !name.is_empty() {
            shared_memory::remove(&name);
        }
        self.shared = Some(match memory {
            Some(memory) if all_have => Shared::Memory(memory),
            _ => Shared::Window(Window::allocate(&self.data, SHARED)?),
        });
        Ok(())
    }

    /// Adds to a shared number, and returns its previous value. On one host no other rank has to take part; between hosts rank 0 may have
    /// to call MPI.
    pub fn add(&self, at: usize, value: u64) -> Result<u64> {
        match self.shared()? {
            Shared::Memory(memory) => Ok(memory.add(at, value)),
            Shared::Window(window) => window.add(at, value),
        }
    }

    /// Sets a shared number that no other rank changes at the same time.
    pub fn set(&self, at: usize, value: u64) -> Result<()> {
        match self.shared()? {
            Shared::Memory(memory) => memory.set(at, value),
            Shared::Window(window) => _ = window.set(at, value)?,
        }
        Ok(())
    }

    fn shared(&self) -> Result<&Shared> {
        self.shared.as_ref().ok_or_else(|| Error::Failed("no numbers are shared".into()))
    }

    /// The same ranks as a world that runs programs of nodes, on its own duplicates. Collective, and so is dropping it.
    pub fn nodes(&self) -> Result<world::World> {
        super::World::over(self.control.raw(), None, super::Options::default()).map(world::World::from)
    }

    /// Gives everything back to MPI. All ranks must take part, and no letter may be on its way.
    pub fn close(self) -> Result<()> {
        self.mailbox.close()?;
        if let Some(Shared::Window(window)) = self.shared {
            window.free()?;
        }
        self.data.free()?;
        self.control.free()
    }
}

/// Transfers that are going on.
pub(crate) struct Moving(Transfers);

impl Moving {
    /// Returns true if all bytes have arrived.
    pub fn is_over(&mut self) -> Result<bool> {
        self.0.are_over()
    }

    /// Number of pieces that are under way.
    pub fn pieces(&self) -> usize {
        self.0.len()
    }
}

fn garbled(rank: RankId) -> Error {
    Error::GarbledByRank { rank, what: "of a guest".into(), why: "its length is not what it announces".into() }
}

/// Waiting strategy of a rank: it yields for a moment, and then sleeps longer and longer, so that ranks that share cores get them. A nap is
/// a small part of the wait so far, so the delay of a message stays small in comparison.
pub(crate) struct Patience {
    polls: u32,
    /// Time for which it only yields the processor.
    awake: Duration,
    since: Instant,
}

impl Patience {
    pub fn new() -> Patience {
        Patience { polls: 0, awake: Duration::from_micros(100), since: Instant::now() }
    }

    /// Strategy of a rank whose partners are known to be in the same operation; it yields longer.
    pub fn eager() -> Patience {
        Patience { awake: Duration::from_millis(2), ..Patience::new() }
    }

    /// Starts anew, after an event.
    pub fn reset(&mut self) {
        *self = Patience { awake: self.awake, ..Patience::new() };
    }

    /// Waits for a moment, after a poll without an event.
    pub fn pause(&mut self) {
        const SHORTEST: Duration = Duration::from_micros(20);
        const LONGEST: Duration = Duration::from_micros(500);
        self.polls += 1;
        let waited = self.since.elapsed();
        if self.polls < 20 || waited < self.awake {
            std::thread::yield_now();
            return;
        }
        std::thread::sleep((waited / 32).clamp(SHORTEST, LONGEST));
    }
}
