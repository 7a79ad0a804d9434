//! As much of the crate `mpi` as src/transport/mpi/ffi.rs uses, with one rank and without a network. What an operation was given is kept as
//! the raw pointer that it is, and read or written when the operation ends: some calls later, as in a real MPI.

#[derive(PartialEq, PartialOrd)]
pub enum Threading {
    Single,
    Funneled,
    Serialized,
    Multiple,
}

pub fn initialize_with_threading(_: Threading) -> Option<(environment::Universe, Threading)> {
    None
}

pub mod environment {
    pub struct Universe;

    pub fn library_version() -> Result<String, std::string::FromUtf8Error> {
        Ok("an MPI for Miri".into())
    }

    pub fn version() -> (i32, i32) {
        (3, 1)
    }

    pub fn processor_name() -> Result<String, std::string::FromUtf8Error> {
        Ok("here".into())
    }

    pub fn is_initialized() -> bool {
        true
    }

    pub fn is_finalized() -> bool {
        false
    }

    pub fn threading_support() -> super::Threading {
        super::Threading::Funneled
    }
}

#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals, clippy::missing_safety_doc)]
pub mod ffi {
    use std::cell::RefCell;
    use std::ffi::{c_char, c_int, c_void};

    pub type MPI_Comm = c_int;
    pub type MPI_Datatype = c_int;
    pub type MPI_Request = c_int;
    pub type MPI_Op = c_int;
    pub type MPI_Errhandler = c_int;
    pub type MPI_Info = c_int;
    pub type MPI_Group = c_int;
    pub type MPI_Win = c_int;
    pub type MPI_Aint = isize;

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct MPI_Status {
        pub MPI_SOURCE: c_int,
        pub MPI_TAG: c_int,
        pub MPI_ERROR: c_int,
        pub count: c_int,
    }

    pub static mut RSMPI_COMM_WORLD: MPI_Comm = 0;
    pub static mut RSMPI_UINT8_T: MPI_Datatype = 1;
    pub static mut RSMPI_UINT64_T: MPI_Datatype = 8;
    pub static mut RSMPI_REQUEST_NULL: MPI_Request = -1;
    pub static mut RSMPI_SUM: MPI_Op = 0;
    pub static mut RSMPI_INFO_NULL: MPI_Info = 0;
    pub static mut RSMPI_COMM_NULL: MPI_Comm = -1;
    pub static mut RSMPI_ERRORS_RETURN: MPI_Errhandler = 0;
    pub const RSMPI_ANY_SOURCE: c_int = -1;
    pub const RSMPI_ANY_TAG: c_int = -1;
    pub const RSMPI_STATUS_IGNORE: *mut MPI_Status = std::ptr::null_mut();
    pub const RSMPI_STATUSES_IGNORE: *mut MPI_Status = std::ptr::null_mut();

    /// An operation ends at the earliest after so many looks.
    const PATIENCE: u32 = 3;
    const NOT_OVER: c_int = 77;

    enum What {
        Send { from: *const u8, length: usize, tag: c_int, comm: MPI_Comm },
        Receive { to: *mut u8, room: usize, tag: c_int, comm: MPI_Comm },
        Sum { from: *const u64, to: *mut u64, count: usize },
        Copy { from: *const u8, to: *mut u8, length: usize, counts: *const c_int, places: *const c_int },
        Nothing,
    }

    struct Operation {
        what: What,
        looks: u32,
        over: Option<MPI_Status>,
    }

    #[derive(Default)]
    struct Engine {
        /// State of each request; ended and told ones are gone.
        operations: Vec<Option<Operation>>,
        communicators: c_int,
    }

    thread_local! {
        static ENGINE: RefCell<Engine> = RefCell::default();
    }

    fn engine<T>(work: impl FnOnce(&mut Engine) -> T) -> T {
        ENGINE.with(|engine| work(&mut engine.borrow_mut()))
    }

    fn status(tag: c_int, count: usize) -> MPI_Status {
        MPI_Status { MPI_SOURCE: 0, MPI_TAG: tag, MPI_ERROR: 0, count: count as c_int }
    }

    impl Engine {
        fn start(&mut self, what: What) -> MPI_Request {
            self.operations.push(Some(Operation { what, looks: 0, over: None }));
            self.operations.len() as MPI_Request - 1
        }

        /// Every call comes here: each send meets the first receive that fits, in the order in which they were started.
        unsafe fn go_on(&mut self) {
            for at in 0..self.operations.len() {
                let Some(operation) = &mut self.operations[at] else { continue };
                operation.looks += 1;
                if operation.over.is_some() || operation.looks < PATIENCE {
                    continue;
                }
                match operation.what {
                    What::Sum { from, to, count } => {
                        // One rank: the sum is its own number.
                        unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
                        operation.over = Some(status(0, 8 * count));
                    }
                    What::Copy { from, to, length, counts, places } => {
                        // Read late, as an MPI may.
                        let (length, place) = if counts.is_null() { (length, 0) } else { unsafe { (*counts as usize, *places as usize) } };
                        unsafe { std::ptr::copy_nonoverlapping(from, to.add(place), length) };
                        operation.over = Some(status(0, length));
                    }
                    What::Nothing => operation.over = Some(status(0, 0)),
                    What::Send { from, length, tag, comm } => {
                        let receive = self.operations.iter_mut().flatten().find(|other| match other.what {
                            What::Receive { tag: wanted, comm: where_, .. } => {
                                other.over.is_none() && where_ == comm && (wanted == tag || wanted == RSMPI_ANY_TAG)
                            }
                            _ => false,
                        });
                        let Some(receive) = receive else { continue };
                        let What::Receive { to, room, .. } = receive.what else { continue };
                        assert!(length <= room, "a message is truncated");
                        unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
                        receive.over = Some(status(tag, length));
                        self.operations[at].as_mut().unwrap().over = Some(status(tag, length));
                    }
                    What::Receive { .. } => {}
                }
            }
        }

        /// Tells of an operation's end, and forgets it.
        fn take(&mut self, request: &mut MPI_Request) -> Option<MPI_Status> {
            if *request == -1 {
                return Some(status(-1, 0));
            }
            let over = self.operations[*request as usize].as_ref().expect("an operation that goes on").over?;
            self.operations[*request as usize] = None;
            *request = -1;
            Some(over)
        }
    }

    /// For tests: lets everything end that can, whoever holds the requests.
    pub fn pass_time() {
        for _ in 0..=PATIENCE {
            engine(|engine| unsafe { engine.go_on() });
        }
    }

    pub unsafe fn MPI_Error_string(_: c_int, _: *mut c_char, length: *mut c_int) -> c_int {
        unsafe { *length = 0 };
        0
    }

    pub unsafe fn MPI_Abort(_: MPI_Comm, status: c_int) -> c_int {
        panic!("aborted with {status}")
    }

    pub unsafe fn MPI_Is_thread_main(main: *mut c_int) -> c_int {
        unsafe { *main = 1 };
        0
    }

    pub unsafe fn MPI_Comm_dup_with_info(_: MPI_Comm, _: MPI_Info, duplicate: *mut MPI_Comm) -> c_int {
        engine(|engine| {
            engine.communicators += 1;
            unsafe { duplicate.write(engine.communicators) };
        });
        0
    }

    pub unsafe fn MPI_Comm_set_errhandler(_: MPI_Comm, _: MPI_Errhandler) -> c_int {
        0
    }

    pub unsafe fn MPI_Comm_rank(_: MPI_Comm, rank: *mut c_int) -> c_int {
        unsafe { *rank = 0 };
        0
    }

    pub unsafe fn MPI_Comm_size(_: MPI_Comm, size: *mut c_int) -> c_int {
        unsafe { *size = 1 };
        0
    }

    pub unsafe fn MPI_Comm_free(_: *mut MPI_Comm) -> c_int {
        0
    }

    pub unsafe fn MPI_Allgather(
        from: *const c_void,
        count: c_int,
        _: MPI_Datatype,
        to: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Comm,
    ) -> c_int {
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), count as usize) };
        0
    }

    pub unsafe fn MPI_Isend(
        from: *const c_void,
        count: c_int,
        _: MPI_Datatype,
        _: c_int,
        tag: c_int,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        let what = What::Send { from: from.cast(), length: count as usize, tag, comm };
        unsafe { *request = engine(|engine| engine.start(what)) };
        0
    }

    pub unsafe fn MPI_Irecv(
        to: *mut c_void,
        count: c_int,
        _: MPI_Datatype,
        _: c_int,
        tag: c_int,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        let what = What::Receive { to: to.cast(), room: count as usize, tag, comm };
        unsafe { *request = engine(|engine| engine.start(what)) };
        0
    }

    pub unsafe fn MPI_Ireduce_scatter_block(
        from: *const c_void,
        to: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        unsafe { *request = engine(|engine| engine.start(What::Sum { from: from.cast(), to: to.cast(), count: 1 })) };
        0
    }

    pub unsafe fn MPI_Comm_group(_: MPI_Comm, group: *mut MPI_Group) -> c_int {
        unsafe { *group = 1 };
        0
    }

    pub unsafe fn MPI_Group_incl(_: MPI_Group, number: c_int, ranks: *const c_int, group: *mut MPI_Group) -> c_int {
        assert_eq!((number, unsafe { *ranks }), (1, 0));
        unsafe { *group = 2 };
        0
    }

    pub unsafe fn MPI_Group_free(group: *mut MPI_Group) -> c_int {
        unsafe { *group = -1 };
        0
    }

    pub unsafe fn MPI_Comm_create_group(comm: MPI_Comm, _: MPI_Group, _: c_int, created: *mut MPI_Comm) -> c_int {
        unsafe { MPI_Comm_dup_with_info(comm, RSMPI_INFO_NULL, created) }
    }

    pub unsafe fn MPI_Iallgather(
        from: *const c_void,
        count: c_int,
        _: MPI_Datatype,
        to: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        let (counts, places) = (std::ptr::null(), std::ptr::null());
        let what = What::Copy { from: from.cast(), to: to.cast(), length: count as usize, counts, places };
        unsafe { *request = engine(|engine| engine.start(what)) };
        0
    }

    pub unsafe fn MPI_Iallgatherv(
        from: *const c_void,
        count: c_int,
        _: MPI_Datatype,
        to: *mut c_void,
        counts: *const c_int,
        places: *const c_int,
        _: MPI_Datatype,
        _: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        let what = What::Copy { from: from.cast(), to: to.cast(), length: count as usize, counts, places };
        unsafe { *request = engine(|engine| engine.start(what)) };
        0
    }

    pub unsafe fn MPI_Iallreduce(
        from: *const c_void,
        to: *mut c_void,
        count: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        unsafe { *request = engine(|engine| engine.start(What::Sum { from: from.cast(), to: to.cast(), count: count as usize })) };
        0
    }

    pub unsafe fn MPI_Iexscan(
        _: *const c_void,
        _: *mut c_void,
        _: c_int,
        _: MPI_Datatype,
        _: MPI_Op,
        _: MPI_Comm,
        request: *mut MPI_Request,
    ) -> c_int {
        unsafe { *request = engine(|engine| engine.start(What::Nothing)) };
        0
    }

    /// Functions that are bound and not called here.
    macro_rules! unused {
        ($($name:ident($($type:ty),*);)*) => {$(
            pub unsafe fn $name($(_: $type),*) -> c_int {
                unimplemented!(stringify!($name))
            }
        )*};
    }

    unused! {
        MPI_Comm_test_inter(MPI_Comm, *mut c_int);
        MPI_Win_allocate(MPI_Aint, c_int, MPI_Info, MPI_Comm, *mut c_void, *mut MPI_Win);
        MPI_Win_set_errhandler(MPI_Win, MPI_Errhandler);
        MPI_Win_lock_all(c_int, MPI_Win);
        MPI_Win_unlock_all(MPI_Win);
        MPI_Win_flush(c_int, MPI_Win);
        MPI_Win_free(*mut MPI_Win);
        MPI_Fetch_and_op(*const c_void, *mut c_void, MPI_Datatype, c_int, MPI_Aint, MPI_Op, MPI_Win);
    }

    pub unsafe fn MPI_Test(request: *mut MPI_Request, over: *mut c_int, status: *mut MPI_Status) -> c_int {
        engine(|engine| unsafe {
            engine.go_on();
            let ended = engine.take(&mut *request);
            *over = c_int::from(ended.is_some());
            if let Some(ended) = ended {
                status.write(ended);
            }
        });
        0
    }

    pub unsafe fn MPI_Testsome(
        count: c_int,
        requests: *mut MPI_Request,
        over: *mut c_int,
        indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) -> c_int {
        engine(|engine| unsafe {
            engine.go_on();
            *over = 0;
            for at in 0..count as usize {
                if let Some(status) = engine.take(&mut *requests.add(at)) {
                    if !statuses.is_null() {
                        *statuses.add(*over as usize) = status;
                    }
                    *indices.add(*over as usize) = at as c_int;
                    *over += 1;
                }
            }
        });
        0
    }

    pub unsafe fn MPI_Cancel(request: *mut MPI_Request) -> c_int {
        engine(|engine| {
            let at = unsafe { *request } as usize;
            engine.operations[at].as_mut().expect("an operation that goes on").over.get_or_insert(status(-1, 0));
        });
        0
    }

    pub unsafe fn MPI_Wait(request: *mut MPI_Request, _: *mut MPI_Status) -> c_int {
        match engine(|engine| engine.take(unsafe { &mut *request })) {
            Some(_) => 0,
            None => NOT_OVER,
        }
    }

    pub unsafe fn MPI_Get_count(status: *const MPI_Status, _: MPI_Datatype, count: *mut c_int) -> c_int {
        unsafe { *count = (*status).count };
        0
    }
}
