//! MPI's own collective operations: begun by programs, polled with everything else, so that a rank goes on answering others meanwhile.
//!
//! Each set of ranks has a communicator, whose ranks are the set's members in their order. That of all ranks is made first; those of others are made
//! from it when they are first used, which is the one call here that waits for the others: they are on their way to the same operation. (They are not
//! made from the communicator of the messages: Open MPI 4 sends under the caller's tag meanwhile, which a receive of any tag there would take.)

use std::ffi::c_int;
use std::mem::{self, MaybeUninit};

use super::abandoned;
use super::binding::{self as mpi, MPI_Group, MPI_Request, byte, no_request};
use super::ffi::{Comm, check, count, test};
use crate::error::{Error, Result};
use crate::topology::RankId;
use crate::transport::native::{Collected, Collective, CollectiveId};

/// The communicators of sets of ranks, and the operations that are under way.
#[derive(Default)]
pub(super) struct Collectives {
    /// All ranks first, then in the order in which they were made, which is the same on all members of a set.
    comms: Vec<(Vec<RankId>, Comm)>,
    under_way: Vec<UnderWay>,
    done: Vec<(CollectiveId, Collected)>,
    /// Number of the last operation.
    last: u64,
}

struct UnderWay {
    id: CollectiveId,
    run: u32,
    local_node: usize,
    operation: Operation,
}

impl Collectives {
    /// Makes the communicator of all ranks if there is none. All must take part. Waits for them.
    pub fn open(&mut self, world: &Comm) -> Result<()> {
        if self.comms.is_empty() {
            self.comms.push((RankId::all(world.size()?).collect(), world.another()?));
        }
        Ok(())
    }

    /// The communicator of these ranks, made if there is none: then all of them must take part, and it waits for them.
    fn of(&mut self, members: Vec<RankId>) -> Result<&Comm> {
        let at = match self.comms.iter().position(|(known, _)| *known == members) {
            Some(at) => at,
            None => {
                let all = self.comms.first().ok_or_else(|| Error::Failed("collective operations of MPI's were not asked for".into()))?;
                let comm = all.1.of_ranks(&members)?;
                self.comms.push((members, comm));
                self.comms.len() - 1
            }
        };
        Ok(&self.comms[at].1)
    }

    /// Begins an operation for a node of a run.
    pub fn begin(&mut self, (run, local_node): (u32, usize), members: Vec<RankId>, operation: Collective) -> Result<CollectiveId> {
        let operation = Operation::begin(self.of(members)?, operation)?;
        self.last += 1;
        let id = CollectiveId(self.last);
        self.under_way.push(UnderWay { id, run, local_node, operation });
        Ok(id)
    }

    /// Polls the operations in progress, and calls `over` for each finished one with its run and local node.
    pub fn poll(&mut self, mut over: impl FnMut(u32, usize)) -> Result<()> {
        let mut at = 0;
        while let Some(under_way) = self.under_way.get_mut(at) {
            if under_way.operation.is_over()? {
                let UnderWay { id, run, local_node, operation } = self.under_way.remove(at);
                self.done.push((id, operation.into_result()));
                over(run, local_node);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Takes the result of an operation; returned once.
    pub fn take(&mut self, id: CollectiveId) -> Option<Collected> {
        let at = self.done.iter().position(|(done, _)| *done == id)?;
        Some(self.done.swap_remove(at).1)
    }

    /// Number of operations begun so far.
    pub fn begun(&self) -> u64 {
        self.last
    }

    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Forgets results that nobody has taken.
    pub fn end_run(&mut self) {
        self.done.clear();
    }

    /// Gives the communicators back. All ranks must take part.
    pub fn close(&mut self) -> Result<()> {
        self.comms.drain(..).try_for_each(|(_, comm)| comm.free())
    }
}

impl Comm {
    /// A communicator of these ranks, in this order. All of them must take part; no others. Waits.
    fn of_ranks(&self, members: &[RankId]) -> Result<Comm> {
        /// No message has this communicator and a tag.
        const MAKING: c_int = 1;
        let ranks: Vec<c_int> = members.iter().map(|rank| rank.get() as c_int).collect();
        let mut all = MaybeUninit::<MPI_Group>::zeroed();
        // SAFETY: the communicator is valid; MPI writes the group if it returns success, and only then it is read.
        let mut all = unsafe {
            check("MPI_Comm_group", mpi::MPI_Comm_group(self.raw, all.as_mut_ptr()))?;
            all.assume_init()
        };
        let mut group = MaybeUninit::<MPI_Group>::zeroed();
        // SAFETY: the group is the one of above; `ranks` holds `ranks.len()` ranks, all different and of the group; MPI writes the new
        // group if it returns success.
        let mut group = unsafe {
            check("MPI_Group_incl", mpi::MPI_Group_incl(all, count(ranks.len())?, ranks.as_ptr(), group.as_mut_ptr()))?;
            group.assume_init()
        };
        let mut raw = MaybeUninit::zeroed();
        // SAFETY: communicator and group are valid, this rank is of the group, and all its ranks call this; MPI writes the communicator if it returns
        // success. Both groups are ours, and not used afterwards.
        let raw = unsafe {
            check("MPI_Comm_create_group", mpi::MPI_Comm_create_group(self.raw, group, MAKING, raw.as_mut_ptr()))?;
            check("MPI_Group_free", mpi::MPI_Group_free(&raw mut group))?;
            check("MPI_Group_free", mpi::MPI_Group_free(&raw mut all))?;
            raw.assume_init()
        };
        // SAFETY: `raw` is the valid communicator made above.
        check("MPI_Comm_set_errhandler", unsafe { mpi::MPI_Comm_set_errhandler(raw, mpi::errors_return()) })?;
        Ok(Comm { raw, _here: std::marker::PhantomData })
    }
}

/// An operation that MPI carries out, with what it reads and writes.
struct Operation {
    request: MPI_Request,
    buffers: Buffers,
}

/// All are vectors, whose heap blocks stay where they are when these values move.
enum Buffers {
    Bytes {
        from: Vec<u8>,
        to: Vec<u8>,
        /// Number of bytes from each member, and where they go.
        counts: Vec<c_int>,
        places: Vec<c_int>,
    },
    Numbers {
        from: Vec<u64>,
        to: Vec<u64>,
    },
}

impl Operation {
    fn begin(comm: &Comm, what: Collective) -> Result<Operation> {
        match what {
            Collective::AllGather { mine, lengths } => Operation::all_gather(comm, mine, &lengths),
            Collective::Sum(numbers) => Operation::sum(comm, numbers, false),
            Collective::SumBefore(numbers) => Operation::sum(comm, numbers, true),
        }
    }

    fn all_gather(comm: &Comm, mine: Vec<u8>, lengths: &[usize]) -> Result<Operation> {
        let mut all = 0;
        let mut places = Vec::with_capacity(lengths.len());
        for length in lengths {
            places.push(count(all)?);
            all += length;
        }
        count(all)?;
        let counts = lengths.iter().map(|length| count(*length)).collect::<Result<Vec<_>>>()?;
        let alike = lengths.iter().all(|length| *length == mine.len());
        let sent = count(mine.len())?;
        let mut operation = Operation { request: no_request(), buffers: Buffers::Bytes { from: mine, to: vec![0; all], counts, places } };
        let Operation { request, buffers: Buffers::Bytes { from, to, counts, places } } = &mut operation else { return Ok(operation) };
        let (from, to) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
        // SAFETY: `sent` bytes are read from `from`, and from each member the given number of bytes is written at the given place, all
        // within `to`; counts and places are read, too. `operation` owns all four until the request is over, and leaks them if it is
        // dropped before.
        if alike {
            check("MPI_Iallgather", unsafe { mpi::MPI_Iallgather(from, sent, byte(), to, sent, byte(), comm.raw, request) })?;
        } else {
            check("MPI_Iallgatherv", unsafe {
                mpi::MPI_Iallgatherv(from, sent, byte(), to, counts.as_ptr(), places.as_ptr(), byte(), comm.raw, request)
            })?;
        }
        Ok(operation)
    }

    /// Numbers added up over all members, or over those before this one. (MPI leaves the first member's sums of those before it as they were.)
    fn sum(comm: &Comm, from: Vec<u64>, before: bool) -> Result<Operation> {
        let number = count(from.len())?;
        let to = vec![0; from.len()];
        let mut operation = Operation { request: no_request(), buffers: Buffers::Numbers { from, to } };
        let Operation { request, buffers: Buffers::Numbers { from, to } } = &mut operation else { return Ok(operation) };
        let (from, to) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
        let (kind, add) = (mpi::unsigned_64(), mpi::sum());
        // SAFETY: `number` numbers are read from `from` and written to `to`; `operation` owns both until the request is over, and leaks them if it is
        // dropped before.
        if before {
            check("MPI_Iexscan", unsafe { mpi::MPI_Iexscan(from, to, number, kind, add, comm.raw, request) })?;
        } else {
            check("MPI_Iallreduce", unsafe { mpi::MPI_Iallreduce(from, to, number, kind, add, comm.raw, request) })?;
        }
        Ok(operation)
    }

    fn is_over(&mut self) -> Result<bool> {
        Ok(test(&mut self.request)?.is_some())
    }

    /// Result of the operation, once it is over.
    fn into_result(mut self) -> Collected {
        match &mut self.buffers {
            Buffers::Bytes { to, .. } => Collected::Bytes(mem::take(to)),
            Buffers::Numbers { to, .. } => Collected::Numbers(mem::take(to)),
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.request == no_request() {
            return;
        }
        // MPI may still read and write them.
        match &mut self.buffers {
            Buffers::Bytes { from, to, counts, places } => {
                abandoned::keep((mem::take(from), mem::take(to), mem::take(counts), mem::take(places)));
            }
            Buffers::Numbers { from, to } => abandoned::keep((mem::take(from), mem::take(to))),
        }
    }
}
