//! The MPI calls that the carrier makes, each with its return code checked, and all of the project's unsafe code.
//!
//! The safe layer of `mpi` drops return codes and ties immediate operations to scopes on the stack. Here an immediate operation owns the
//! buffer that MPI reads or writes, and a buffer whose operation is not over is never freed: it is leaked instead.

use std::ffi::{c_int, c_void};
use std::mem::{self, MaybeUninit};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::abandoned;
use super::binding::{self as mpi, MPI_Request, MPI_Status, byte, no_request};
pub(super) use super::outgoing::Outgoing;
use super::pool::Pool;
use crate::error::{Error, Result};
use crate::topology::RankId;

/// Turns the return code of a call into an error that names the call.
pub(super) fn check(call: &'static str, code: c_int) -> Result<()> {
    // MPI_SUCCESS is 0 in every MPI, by the standard.
    if code == 0 {
        return Ok(());
    }
    // No MPI has a longer MPI_MAX_ERROR_STRING than 1024.
    let mut text = vec![0u8; 2048];
    let mut length: c_int = 0;
    // SAFETY: the buffer is longer than any error string, and both pointers are valid for the call.
    let told = unsafe { mpi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    let why = match usize::try_from(length) {
        Ok(length) if told == 0 && length <= text.len() => String::from_utf8_lossy(&text[..length]).into_owned(),
        _ => format!("error {code}"),
    };
    Err(Error::Mpi { call: call.into(), why })
}

/// Whether losses of ranks are handled on this rank.
static SURVIVES: AtomicBool = AtomicBool::new(false);
/// A call has come to nothing because a rank is lost.
static LOSS: AtomicBool = AtomicBool::new(false);

/// Lets calls that come to nothing because a rank is lost be no errors from now on, if this MPI and its launcher go on then; returns true if they do.
/// Whoever asks for this looks after losses ([`take_loss`]).
pub(super) fn survive() -> bool {
    SURVIVES.store(mpi::survives_losses(), Ordering::Relaxed);
    survives()
}

pub(super) fn survives() -> bool {
    SURVIVES.load(Ordering::Relaxed)
}

/// Returns true if a call has failed since the last time because a rank is lost.
pub(super) fn take_loss() -> bool {
    survives() && LOSS.swap(false, Ordering::Relaxed)
}

/// As [`check`], but a call that came to nothing because a rank is lost is noted, and no error: false then.
pub(super) fn passed(call: &'static str, code: c_int) -> Result<bool> {
    if survives() && mpi::is_loss(code) {
        LOSS.store(true, Ordering::Relaxed);
        return Ok(false);
    }
    check(call, code).map(|()| true)
}

/// Returns true if MPI is active in this process: initialised and not finalised.
pub(super) fn is_active() -> bool {
    mpi::is_initialized() && !mpi::is_finalized()
}

/// Ends the whole job with a status, from any thread. Never returns.
pub(super) fn abort(status: i32) -> ! {
    if is_active() {
        // SAFETY: MPI is initialised and not finalised. Aborting from a thread that did not initialise MPI is outside what `funneled`
        // promises; there is nothing left to damage, it was measured to work also while another thread is inside MPI, and if it does
        // not, the next line ends the process and the launcher the job.
        unsafe { mpi::MPI_Abort(mpi::world(), status) };
    }
    std::process::abort()
}

/// Ends this process, and nothing else: neither MPI nor any library is asked whether it agrees.
pub(super) fn exit_at_once(status: i32) -> ! {
    unsafe extern "C" {
        fn _exit(status: c_int) -> !;
    }
    // SAFETY: a call without conditions.
    unsafe { _exit(status) }
}

/// Returns true if this thread may call MPI.
pub(super) fn may_call() -> Result<bool> {
    let mut main: c_int = 0;
    // SAFETY: MPI is initialised (the callers see to it), and the pointer is valid for the call.
    check("MPI_Is_thread_main", unsafe { mpi::MPI_Is_thread_main(&raw mut main) })?;
    Ok(main != 0 || mpi::other_threads_may_call())
}

/// A communicator of our own. Freed by [`free`](Comm::free) only: a dropped one is left to MPI.
pub(super) struct Comm {
    pub(super) raw: mpi::MPI_Comm,
    /// MPI calls stay on the thread that made the communicator, also where the raw handle is a plain integer.
    pub(super) _here: std::marker::PhantomData<*const ()>,
}

impl Comm {
    /// Duplicates a communicator, without its hints: those may forbid receives from any rank. Errors on the duplicate are returned instead of ending
    /// the job. All its ranks must take part.
    pub fn duplicate(raw: mpi::MPI_Comm) -> Result<Comm> {
        let mut duplicate = MaybeUninit::uninit();
        // SAFETY: `raw` is a communicator that its owner keeps during the call; MPI writes the duplicate if it returns success, and
        // only then it is read.
        let raw = unsafe {
            check("MPI_Comm_dup_with_info", mpi::MPI_Comm_dup_with_info(raw, mpi::no_info(), duplicate.as_mut_ptr()))?;
            duplicate.assume_init()
        };
        // SAFETY: `raw` is the valid communicator made above.
        check("MPI_Comm_set_errhandler", unsafe { mpi::MPI_Comm_set_errhandler(raw, mpi::errors_return()) })?;
        Ok(Comm { raw, _here: std::marker::PhantomData })
    }

    pub(super) fn raw(&self) -> mpi::MPI_Comm {
        self.raw
    }

    /// A second communicator over the same ranks.
    pub fn another(&self) -> Result<Comm> {
        Comm::duplicate(self.raw)
    }

    pub fn rank(&self) -> Result<RankId> {
        let mut rank: c_int = 0;
        // SAFETY: the communicator is valid, and so is the pointer.
        check("MPI_Comm_rank", unsafe { mpi::MPI_Comm_rank(self.raw, &raw mut rank) })?;
        Ok(RankId::new(rank as u32))
    }

    pub fn size(&self) -> Result<u32> {
        let mut size: c_int = 0;
        // SAFETY: the communicator is valid, and so is the pointer.
        check("MPI_Comm_size", unsafe { mpi::MPI_Comm_size(self.raw, &raw mut size) })?;
        Ok(size as u32)
    }

    /// Everybody's block of bytes, by rank. All ranks must take part, with blocks of one length. Waits.
    pub fn all_gather(&self, mine: &[u8]) -> Result<Vec<u8>> {
        let mut all = vec![0u8; mine.len() * self.size()? as usize];
        let count = count(mine.len())?;
        // SAFETY: both buffers are valid for the call, and the second has room for one block of each rank.
        check("MPI_Allgather", unsafe {
            mpi::MPI_Allgather(mine.as_ptr().cast(), count, byte(), all.as_mut_ptr().cast(), count, byte(), self.raw)
        })?;
        Ok(all)
    }

    /// Starts to receive a body of this length from one rank. Its front is here already; the rest comes in pieces of at most `piece` bytes,
    /// straight into its buffer.
    pub fn receive_pieces(&self, pool: &Pool, source: RankId, tag: c_int, length: u64, front: &[u8], piece: usize) -> Result<Receiving> {
        let mut receiving = Receiving::with_room_for(length, front.len(), pool)?;
        receiving.buffer.extend_from_slice(front);
        let mut offset = receiving.buffer.len();
        while offset < receiving.end {
            let size = piece.min(receiving.end - offset);
            let mut request = no_request();
            // SAFETY: the buffer has `end` bytes of capacity, so the piece lies within it; `receiving` owns the buffer until the
            // request is over, and leaks it if it is dropped before. The heap block does not move when `receiving` moves.
            passed("MPI_Irecv", unsafe {
                let start = receiving.buffer.as_mut_ptr().add(offset).cast::<c_void>();
                mpi::MPI_Irecv(start, count(size)?, byte(), source.get() as c_int, tag, self.raw, &raw mut request)
            })?;
            receiving.pieces.push((request, size));
            offset += size;
        }
        // Tested from the back: the first piece, which comes first, must be the last of the list.
        receiving.pieces.reverse();
        // A piece that was sent already is here when its receive begins.
        receiving.look()?;
        Ok(receiving)
    }

    /// Starts the sum over all ranks of their messages to this rank: `sent[r]` is the number sent to rank `r`. Collective.
    pub fn sum_for_me(&self, sent: Vec<u64>) -> Result<Summing> {
        let mut summing = Summing { request: no_request(), sent, sum: vec![0] };
        // SAFETY: one u64 per rank is read from `sent`, and one is written to `sum`; `summing` owns both until the request is over,
        // and leaks them if it is dropped before. Both are vectors, which may be moved while MPI holds a pointer into their heap block; a
        // moved box claims to be the only way to its value, which ends the validity of such a pointer.
        passed("MPI_Ireduce_scatter_block", unsafe {
            let (from, to) = (summing.sent.as_ptr().cast(), summing.sum.as_mut_ptr().cast());
            mpi::MPI_Ireduce_scatter_block(from, to, 1, mpi::unsigned_64(), mpi::sum(), self.raw, &raw mut summing.request)
        })?;
        Ok(summing)
    }

    /// The ranks that are lost so far. From now on receives from any rank leave them out.
    pub fn lost_ranks(&self) -> Result<Vec<RankId>> {
        let ranks = mpi::lost_ranks(self.raw).or_else(|code| check("MPIX_Comm_get_failed", code).map(|()| Vec::new()))?;
        Ok(ranks.into_iter().map(|rank| RankId::new(rank as u32)).collect())
    }

    /// Waits until all ranks that are left have called this.
    pub fn agree(&self) -> Result<()> {
        mpi::agree(self.raw).or_else(|code| check("MPIX_Comm_agree", code))
    }

    /// Gives the communicator back to MPI. All ranks must take part.
    pub fn free(mut self) -> Result<()> {
        // SAFETY: the communicator is ours, valid, and not used any more since `self` is consumed.
        check("MPI_Comm_free", unsafe { mpi::MPI_Comm_free(&raw mut self.raw) })
    }
}

/// A length as MPI counts.
pub(super) fn count(length: usize) -> Result<c_int> {
    c_int::try_from(length).map_err(|_| Error::Failed(format!("a message of {length} bytes is more than MPI can count")))
}

/// Number of bytes that a status tells of.
fn received(status: &MPI_Status) -> Result<usize> {
    let mut length: c_int = 0;
    // SAFETY: the status was written by MPI, and both pointers are valid for the call.
    check("MPI_Get_count", unsafe { mpi::MPI_Get_count(status, byte(), &raw mut length) })?;
    usize::try_from(length).map_err(|_| Error::Failed("MPI delivered part of a byte".into()))
}

/// Status of a request that is over, else `None`. A request that is over without a status has failed, and is null.
pub(super) fn test(request: &mut MPI_Request) -> Result<Option<MPI_Status>> {
    let mut over: c_int = 0;
    let mut status = MaybeUninit::<MPI_Status>::zeroed();
    // SAFETY: the request is one that MPI gave (or null, which is over at once); all pointers are valid; a zeroed status is a valid one.
    unsafe {
        let passed = passed("MPI_Test", mpi::MPI_Test(request, &raw mut over, status.as_mut_ptr()))?;
        Ok((passed && over != 0).then(|| status.assume_init()))
    }
}

/// Mailbox for short messages from any rank with any tag: one receive that is always posted, so that MPI writes them to their place at
/// once.
///
/// One at a time keeps the order per source. (A matched probe costs 10 to 20 % more per message, and a poll at every source's queue.)
pub(super) struct Mailbox {
    request: MPI_Request,
    buffer: Vec<u8>,
    /// No message is longer.
    size: usize,
    /// Status of the message that has arrived and was not taken yet.
    arrived: Option<MPI_Status>,
}

/// A message that came through the mailbox.
pub(super) struct Letter {
    pub source: RankId,
    pub tag: c_int,
    pub bytes: Bytes,
}

impl Mailbox {
    pub fn open(comm: &Comm, size: usize) -> Result<Mailbox> {
        let mut mailbox = Mailbox { request: no_request(), buffer: Vec::new(), size, arrived: None };
        mailbox.post(comm)?;
        Ok(mailbox)
    }

    /// Takes an arrived message, if there is one.
    pub fn poll(&mut self, comm: &Comm) -> Result<Option<Letter>> {
        let arrived = match self.arrived.take() {
            None => self.look(comm)?,
            arrived => arrived,
        };
        self.take(comm, arrived)
    }

    fn look(&mut self, comm: &Comm) -> Result<Option<MPI_Status>> {
        let arrived = test(&mut self.request)?;
        if arrived.is_none() && self.request == no_request() {
            // A message in transit is lost with its sender.
            self.post(comm)?;
        }
        Ok(arrived)
    }

    /// As [`poll`](Mailbox::poll), together with up to [`MOST_BODIES`] of the awaited bodies: MPI polls the network once for all of it.
    pub fn look_with(&mut self, comm: &Comm, bodies: &mut [(RankId, Awaited)]) -> Result<Option<Letter>> {
        const ROOM: usize = MOST_BODIES + 1;
        if survives() {
            // A poll of many does not say clearly which of them a loss has ended.
            for (_, body) in bodies.iter_mut().filter(|(_, body)| body.request != no_request()) {
                body.over = test(&mut body.request)?;
            }
            return self.poll(comm);
        }
        let mut requests = [no_request(); ROOM];
        let mut statuses = [MaybeUninit::<MPI_Status>::zeroed(); ROOM];
        let mut indices = [0 as c_int; ROOM];
        let mut over: c_int = 0;
        requests[0] = self.request;
        requests[1..].iter_mut().zip(&*bodies).for_each(|(request, (_, body))| *request = body.request);
        // SAFETY: these are requests that MPI gave, or null ones, which it passes over, and there is room for one index and one status per request.
        // The handles are copies: those that are over are set to null where they came from, below and by `note`; the buffers stay with
        // their owners meanwhile.
        check("MPI_Testsome", unsafe {
            let count = bodies.len().min(MOST_BODIES) as c_int + 1;
            mpi::MPI_Testsome(count, requests.as_mut_ptr(), &raw mut over, indices.as_mut_ptr(), statuses.as_mut_ptr().cast())
        })?;
        let mut arrived = self.arrived.take();
        // MPI_UNDEFINED (negative) says that there was nothing active, which cannot be here.
        let over = usize::try_from(over).unwrap_or(0);
        for (&index, status) in indices.iter().zip(&statuses).take(over) {
            // SAFETY: a status is plain numbers, which were zero before MPI wrote them.
            let status = unsafe { status.assume_init() };
            match index {
                0 => {
                    self.request = no_request();
                    arrived = Some(status);
                }
                at => bodies[at as usize - 1].1.over = Some(status),
            }
        }
        self.take(comm, arrived)
    }

    fn take(&mut self, comm: &Comm, arrived: Option<MPI_Status>) -> Result<Option<Letter>> {
        let Some(status) = arrived else { return Ok(None) };
        let length = received(&status)?;
        // SAFETY: the request is over, so MPI has written this many bytes, which is at most what was posted: the buffer's capacity.
        unsafe { self.buffer.set_len(length) };
        // A long one keeps the buffer; of a short one a copy is made, so that it does not hold much more memory than its own.
        let bytes = if length > self.size / 8 { Bytes::from(mem::take(&mut self.buffer)) } else { Bytes::copy_from_slice(&self.buffer) };
        self.post(comm)?;
        Ok(Some(Letter { source: RankId::new(mpi::source(&status) as u32), tag: mpi::tag(&status), bytes }))
    }

    /// Takes the receive back. Nothing may be on its way to it.
    pub fn close(mut self) -> Result<()> {
        // SAFETY: the request is one that MPI gave; waiting for a cancelled receive is a local matter and ends. Both null it.
        unsafe {
            check("MPI_Cancel", mpi::MPI_Cancel(&raw mut self.request))?;
            check("MPI_Wait", mpi::MPI_Wait(&raw mut self.request, mpi::status_ignore()))
        }
    }

    fn post(&mut self, comm: &Comm) -> Result<()> {
        self.buffer.clear();
        self.buffer.reserve_exact(self.size);
        // SAFETY: the buffer has `size` bytes of capacity; `self` owns it until the request is over, and leaks it if it is dropped
        // before. The heap block does not move when `self` moves.
        check("MPI_Irecv", unsafe {
            let (source, tag) = (mpi::any_source(), mpi::any_tag());
            mpi::MPI_Irecv(self.buffer.as_mut_ptr().cast(), count(self.size)?, byte(), source, tag, comm.raw, &raw mut self.request)
        })
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        if self.request != no_request() {
            // MPI may still write into it.
            abandoned::keep(mem::take(&mut self.buffer));
        }
    }
}

/// Maximum number of bodies in one poll; the others have their turn when the first ones are there.
pub(super) const MOST_BODIES: usize = 32;

/// The first piece of a body that is not there yet, as a poll of the network sees it.
pub(super) struct Awaited {
    request: MPI_Request,
    over: Option<MPI_Status>,
}

/// A body on its way into its buffer.
pub(super) struct Receiving {
    /// The requests of its pieces and the length of each, the last piece first.
    pieces: Vec<(MPI_Request, usize)>,
    /// The status of the first piece, if it is over.
    over: Option<MPI_Status>,
    buffer: Vec<u8>,
    /// Range of the body in the buffer.
    start: usize,
    end: usize,
}

impl Receiving {
    /// Alignment of the part of a body that arrives in pieces. Between processes of a host the kernel copies it, page by page, with `rep movsb`. On
    /// AMD's EPYC that takes five times as long if the destination's offset within its page is 1 to 31 bytes more than the source's. Large buffers
    /// begin with a page, so a body behind a front of 16 bytes would land just there.
    const ALIGNED: usize = 64;

    /// Room for a body of this length, the front of which is here: the rest begins at a multiple of [`Receiving::ALIGNED`].
    fn with_room_for(length: u64, front: usize, pool: &Pool) -> Result<Receiving> {
        let taken = |length: usize| Some((length, pool.take(length.checked_add(Receiving::ALIGNED)?)?));
        let found = usize::try_from(length).ok().and_then(taken);
        let (length, mut buffer) = found.ok_or_else(|| Error::Failed(format!("there is no memory for a message of {length} bytes")))?;
        if front > length {
            return Err(Error::Failed(format!("a message of {length} bytes brings {front} ahead")));
        }
        let start = buffer.as_ptr().addr().wrapping_add(front).wrapping_neg() % Receiving::ALIGNED;
        buffer.resize(start, 0);
        Ok(Receiving { pieces: Vec::new(), over: None, buffer, start, end: start + length })
    }

    /// The piece that comes next, for a poll at it.
    pub fn awaited(&self) -> Awaited {
        Awaited { request: self.pieces.last().map_or_else(no_request, |(request, _)| *request), over: None }
    }

    /// Notes the result of a poll of the next piece.
    pub fn note(&mut self, awaited: Awaited) {
        if let Some((request, _)) = self.pieces.last_mut() {
            *request = if awaited.over.is_some() { no_request() } else { awaited.request };
            self.over = self.over.or(awaited.over);
        }
    }

    /// Looks whether the piece that comes next is here. One without a request never comes: its sender is lost.
    fn look(&mut self) -> Result<()> {
        if let Some((request, _)) = self.pieces.last_mut().filter(|(request, _)| *request != no_request()) {
            self.over = test(request)?;
        }
        Ok(())
    }

    /// Returns true if all pieces have arrived, as far as polls have shown. After that, the bytes can be taken.
    pub fn is_complete(&mut self) -> Result<bool> {
        while let Some(status) = self.over.take() {
            if let Some((_, size)) = self.pieces.last() {
                expect_length(*size, received(&status)?)?;
                self.pieces.pop();
            }
            // The next one may be here, too.
            self.look()?;
        }
        Ok(self.pieces.is_empty())
    }

    /// The bytes, once complete; nothing before that. Their buffer goes back to the pool when the last slice of it is dropped.
    pub fn into_bytes(mut self, pool: &Pool) -> Bytes {
        if !self.pieces.is_empty() {
            return Bytes::new();
        }
        // SAFETY: the capacity is at least `end`; what is before the pieces was written, and all requests are over with the expected counts, so MPI
        // has written the bytes from there to the end.
        unsafe { self.buffer.set_len(self.end) };
        pool.lend(mem::take(&mut self.buffer)).slice(self.start..)
    }
}

fn expect_length(expected: usize, got: usize) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Failed(format!("{got} bytes of a message arrived instead of {expected}: do all ranks have the same options?")))
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if !self.pieces.is_empty() {
            // MPI may still write into it.
            abandoned::keep(mem::take(&mut self.buffer));
        }
    }
}

/// A sum over all ranks that is being made.
pub(super) struct Summing {
    request: MPI_Request,
    sent: Vec<u64>,
    /// One number. Not a box: see [`sum_for_me`](Comm::sum_for_me).
    sum: Vec<u64>,
}

impl Summing {
    /// The sum, once it is complete.
    pub fn result(&mut self) -> Result<Option<u64>> {
        Ok(test(&mut self.request)?.map(|_| self.sum[0]))
    }
}

impl Drop for Summing {
    fn drop(&mut self) {
        if self.request != no_request() {
            // MPI may still read the one and write the other.
            abandoned::keep((mem::take(&mut self.sent), mem::take(&mut self.sum)));
        }
    }
}

/// The raw world communicator.
pub(super) fn world() -> mpi::MPI_Comm {
    mpi::world()
}
