! Equipoise for Fortran: balances uneven work over MPI ranks. Compile this file with the program, and link with -lequipoise.
!
! Weights are real64, in any unit. Items count from 1, ranks from 0; the last dimension of an array is the item. ierr is 0, or what went wrong,
! the same on every rank; w%error() has the sentence. A copied handle is the same handle, with the same loop, and nothing is freed but by free,
! loop_end and close. When one is closed or freed, its copies are not used any more.
module equipoise
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private

  integer, parameter, public :: eqp_ok = 0, eqp_failed = 1, eqp_usage = 2, eqp_stuck = 3, eqp_mpi = 4, &
    eqp_memory = 5, eqp_callback = 6, eqp_panic = 7

  !> What a plan would do, for all ranks together.
  type, bind(C), public :: eqp_verdict
    real(c_double) :: before, after, bound               ! max/mean of work over power: now, after the plan, the least possible
    real(c_double) :: plan_seconds, move_seconds         ! spent; foreseen
    real(c_double) :: pays_from_seconds_per_unit
    integer(c_int64_t) :: moved, bytes
    integer(c_int32_t) :: pays, zero                     ! pays: 1, 0, or -1: nobody knows
    character(kind=c_char) :: balancer(64)
    real(c_double) :: more(15)
  end type

  !> The loop of a world, which all copies of its handle share.
  type :: open_loop
    type(c_ptr) :: handle = c_null_ptr
    integer :: status = 0
  end type

  !> The ranks of a communicator.
  type, public :: eqp_world
    type(c_ptr), private :: handle = c_null_ptr
    type(open_loop), pointer, private :: shared => null() ! while the world is open
  contains
    procedure :: open => world_open
    procedure :: close => world_close
    procedure :: set => world_set
    procedure :: error => world_error
    procedure :: plan => world_plan
    procedure :: plan_at => world_plan_at
    procedure :: plan_from => world_plan_from
    procedure :: step => world_step
    procedure :: advise => world_advise
    procedure :: loop => world_loop
    procedure :: next => world_next
    procedure :: loop_end => world_loop_end
  end type

  !> Which item goes to which rank.
  type, public :: eqp_plan
    type(c_ptr), private :: handle = c_null_ptr, world = c_null_ptr
    integer(int64), private :: items = 0
  contains
    procedure :: verdict => plan_verdict
    procedure :: incoming => plan_incoming
    procedure :: destinations => plan_destinations
    procedure :: sources => plan_sources
    procedure :: free => plan_free
    procedure, private :: move_real32_1, move_real32_2, move_real32_3, move_real32_4, &
      move_real64_1, move_real64_2, move_real64_3, move_real64_4, &
      move_int32_1, move_int32_2, move_int32_3, move_int32_4, &
      move_int64_1, move_int64_2, move_int64_3, move_int64_4
    generic :: move => move_real32_1, move_real32_2, move_real32_3, move_real32_4, &
      move_real64_1, move_real64_2, move_real64_3, move_real64_4, &
      move_int32_1, move_int32_2, move_int32_3, move_int32_4, &
      move_int64_1, move_int64_2, move_int64_3, move_int64_4
    procedure, private :: give_back_real32_1, give_back_real32_2, give_back_real32_3, give_back_real32_4, &
      give_back_real64_1, give_back_real64_2, give_back_real64_3, give_back_real64_4, &
      give_back_int32_1, give_back_int32_2, give_back_int32_3, give_back_int32_4, &
      give_back_int64_1, give_back_int64_2, give_back_int64_3, give_back_int64_4
    generic :: give_back => give_back_real32_1, give_back_real32_2, give_back_real32_3, give_back_real32_4, &
      give_back_real64_1, give_back_real64_2, give_back_real64_3, give_back_real64_4, &
      give_back_int32_1, give_back_int32_2, give_back_int32_3, give_back_int32_4, &
      give_back_int64_1, give_back_int64_2, give_back_int64_3, give_back_int64_4
  end type

  public :: eqp_version

  interface
    integer(c_int) function c_open(comm, options, w) bind(C, name='eqp_open_fortran')
      import
      integer(c_int), value :: comm
      character(kind=c_char), intent(in) :: options(*)
      type(c_ptr), intent(out) :: w
    end function
    integer(c_int) function c_close(w) bind(C, name='eqp_close')
      import
      type(c_ptr), intent(inout) :: w
    end function
    integer(c_int) function c_set(w, key, value) bind(C, name='eqp_set')
      import
      type(c_ptr), value :: w
      character(kind=c_char), intent(in) :: key(*), value(*)
    end function
    type(c_ptr) function c_error(w) bind(C, name='eqp_error')
      import
      type(c_ptr), value :: w
    end function
    type(c_ptr) function c_version() bind(C, name='eqp_version')
      import
    end function
    integer(c_int) function c_plan_make(w, n, weight, bytes, pinned, p) bind(C, name='eqp_plan_make')
      import
      type(c_ptr), value :: w, weight, bytes, pinned
      integer(c_size_t), value :: n
      type(c_ptr), intent(out) :: p
    end function
    integer(c_int) function c_plan_make_at(w, n, weight, bytes, pinned, dimensions, coordinates, p) bind(C, name='eqp_plan_make_at')
      import
      type(c_ptr), value :: w, weight, bytes, pinned, coordinates
      integer(c_size_t), value :: n
      integer(c_int), value :: dimensions
      type(c_ptr), intent(out) :: p
    end function
    integer(c_int) function c_plan_from(w, n, destination, weight, bytes, p) bind(C, name='eqp_plan_from')
      import
      type(c_ptr), value :: w, destination, weight, bytes
      integer(c_size_t), value :: n
      type(c_ptr), intent(out) :: p
    end function
    integer(c_int) function c_plan_verdict(p, v) bind(C, name='eqp_plan_verdict')
      import
      type(c_ptr), value :: p
      type(eqp_verdict), intent(out) :: v
    end function
    integer(c_size_t) function c_plan_incoming(p) bind(C, name='eqp_plan_incoming')
      import
      type(c_ptr), value :: p
    end function
    integer(c_int) function c_plan_destinations(p, rank) bind(C, name='eqp_plan_destinations')
      import
      type(c_ptr), value :: p
      integer(c_int), intent(out) :: rank(*)
    end function
    integer(c_int) function c_plan_sources(p, rank, index) bind(C, name='eqp_plan_sources')
      import
      type(c_ptr), value :: p
      integer(c_int), intent(out) :: rank(*)
      integer(c_int64_t), intent(out) :: index(*)
    end function
    integer(c_int) function c_plan_move(w, p, items, item_bytes, out) bind(C, name='eqp_plan_move')
      import
      type(c_ptr), value :: w, p, items, out
      integer(c_size_t), value :: item_bytes
    end function
    integer(c_int) function c_plan_return(w, p, items, item_bytes, out) bind(C, name='eqp_plan_return')
      import
      type(c_ptr), value :: w, p, items, out
      integer(c_size_t), value :: item_bytes
    end function
    subroutine c_plan_free(p) bind(C, name='eqp_plan_free')
      import
      type(c_ptr), intent(inout) :: p
    end subroutine
    integer(c_int) function c_step(w, seconds, now) bind(C, name='eqp_step')
      import
      type(c_ptr), value :: w
      real(c_double), value :: seconds
      integer(c_int), intent(out) :: now
    end function
    integer(c_int) function c_advise(w, n, weight, bytes, seconds_per_unit, v) bind(C, name='eqp_advise')
      import
      type(c_ptr), value :: w, weight, bytes
      integer(c_size_t), value :: n
      real(c_double), value :: seconds_per_unit
      type(eqp_verdict), intent(out) :: v
    end function
    integer(c_int) function c_loop_begin(w, first, last, rule, l) bind(C, name='eqp_loop_begin')
      import
      type(c_ptr), value :: w
      integer(c_int64_t), value :: first, last
      character(kind=c_char), intent(in) :: rule(*)
      type(c_ptr), intent(out), optional :: l
    end function
    integer(c_int) function c_loop_next(l, from, to) bind(C, name='eqp_loop_next')
      import
      type(c_ptr), value :: l
      integer(c_int64_t), intent(out) :: from, to
    end function
    integer(c_int) function c_loop_end(l) bind(C, name='eqp_loop_end')
      import
      type(c_ptr), intent(inout) :: l
    end function
    integer(c_size_t) function c_strlen(text) bind(C, name='strlen')
      import
      type(c_ptr), value :: text
    end function
  end interface

contains

  function c_text(text) result(zero_ended)
    character(*), intent(in) :: text
    character(kind=c_char, len=:), allocatable :: zero_ended
    zero_ended = trim(text) // c_null_char
  end function

  function f_text(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(:), allocatable :: copy
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(text, letters, [c_strlen(text)])
    allocate (character(size(letters)) :: copy)
    do i = 1, size(letters)
      copy(i:i) = letters(i)
    end do
  end function

  !> Version of the library, and which MPI was found.
  function eqp_version() result(text)
    character(:), allocatable :: text
    text = f_text(c_version())
  end function

  !> Opens a world on a communicator: an integer, or of a type(MPI_Comm) its %MPI_VAL. Collective.
  subroutine world_open(self, comm, options, ierr)
    class(eqp_world), intent(inout) :: self
    integer, intent(in) :: comm
    character(*), intent(in) :: options
    integer, intent(out) :: ierr
    ierr = c_open(int(comm, c_int), c_text(options), self%handle)
    nullify (self%shared)
    if (c_associated(self%handle)) allocate (self%shared)
  end subroutine

  !> Closes it. Collective.
  subroutine world_close(self, ierr)
    class(eqp_world), intent(inout) :: self
    integer, intent(out) :: ierr
    ierr = c_close(self%handle)
    if (associated(self%shared) .and. .not. c_associated(self%handle)) deallocate (self%shared)
  end subroutine

  !> Sets an option; the same on all ranks.
  subroutine world_set(self, key, value, ierr)
    class(eqp_world), intent(in) :: self
    character(*), intent(in) :: key, value
    integer, intent(out) :: ierr
    ierr = c_set(self%handle, c_text(key), c_text(value))
  end subroutine

  !> The sentence of the last call, if it failed; of a world that is not open, of the last failed open.
  function world_error(self) result(text)
    class(eqp_world), intent(in) :: self
    character(:), allocatable :: text
    text = f_text(c_error(self%handle))
  end function

  !> Where items of these weights should go. bytes: their memory; pinned: those that stay. Collective.
  subroutine world_plan(self, weights, plan, ierr, bytes, pinned)
    class(eqp_world), intent(in) :: self
    real(real64), intent(in), contiguous, target :: weights(:)
    type(eqp_plan), intent(out) :: plan
    integer, intent(out) :: ierr
    integer(int64), intent(in), contiguous, target, optional :: bytes(:)
    logical, intent(in), optional :: pinned(:)
    call make(self, weights, plan, ierr, -1, c_null_ptr, bytes, pinned)
  end subroutine

  !> The same for items with places in space: coordinates(dimensions, items); coordinates(0, 0) will do without items. Collective.
  subroutine world_plan_at(self, weights, coordinates, plan, ierr, bytes, pinned)
    class(eqp_world), intent(in) :: self
    real(real64), intent(in), contiguous, target :: weights(:), coordinates(:, :)
    type(eqp_plan), intent(out) :: plan
    integer, intent(out) :: ierr
    integer(int64), intent(in), contiguous, target, optional :: bytes(:)
    logical, intent(in), optional :: pinned(:)
    real(real64), target :: nothing(1)
    type(c_ptr) :: places
    places = c_null_ptr
    nothing = 0
    if (size(coordinates, 2) == size(weights)) then
      if (size(coordinates) > 0) then
        places = c_loc(coordinates)
      else
        places = c_loc(nothing)
      end if
    end if
    call make(self, weights, plan, ierr, size(coordinates, 1), places, bytes, pinned)
  end subroutine

  ! Without coordinates the number of dimensions is negative.
  subroutine make(self, weights, plan, ierr, dimensions, places, bytes, pinned)
    class(eqp_world), intent(in) :: self
    real(real64), intent(in), contiguous, target :: weights(:)
    type(eqp_plan), intent(out) :: plan
    integer, intent(out) :: ierr
    integer, intent(in) :: dimensions
    type(c_ptr), intent(in) :: places
    integer(int64), intent(in), contiguous, target, optional :: bytes(:)
    logical, intent(in), optional :: pinned(:)
    type(c_ptr) :: c_weights, c_bytes, c_pinned
    integer(c_int8_t), allocatable, target :: flags(:)
    integer(c_size_t) :: n
    n = size(weights, kind=c_size_t)
    c_weights = c_null_ptr
    c_bytes = c_null_ptr
    c_pinned = c_null_ptr
    if (n > 0) c_weights = c_loc(weights)
    if (present(bytes)) then
      ! A list of another length is refused, on all ranks: there are no such items.
      if (size(bytes, kind=c_size_t) /= n) n = huge(n)
      if (size(bytes) > 0) c_bytes = c_loc(bytes)
    end if
    if (present(pinned)) then
      if (size(pinned, kind=c_size_t) /= size(weights, kind=c_size_t)) n = huge(n)
      flags = merge(1_c_int8_t, 0_c_int8_t, pinned)
      if (size(flags) > 0) c_pinned = c_loc(flags)
    end if
    plan%world = self%handle
    plan%items = size(weights, kind=int64)
    if (dimensions < 0) then
      ierr = c_plan_make(self%handle, n, c_weights, c_bytes, c_pinned, plan%handle)
    else
      ierr = c_plan_make_at(self%handle, n, c_weights, c_bytes, c_pinned, int(dimensions, c_int), places, plan%handle)
    end if
  end subroutine

  !> Another's partition: the rank of each item, from 0. Collective.
  subroutine world_plan_from(self, destinations, plan, ierr, weights, bytes)
    class(eqp_world), intent(in) :: self
    integer(c_int), intent(in), contiguous, target :: destinations(:)
    type(eqp_plan), intent(out) :: plan
    integer, intent(out) :: ierr
    real(real64), intent(in), contiguous, target, optional :: weights(:)
    integer(int64), intent(in), contiguous, target, optional :: bytes(:)
    type(c_ptr) :: c_destinations, c_weights, c_bytes
    integer(c_size_t) :: n
    n = size(destinations, kind=c_size_t)
    c_destinations = c_null_ptr
    c_weights = c_null_ptr
    c_bytes = c_null_ptr
    if (n > 0) c_destinations = c_loc(destinations)
    if (present(weights)) then
      if (size(weights, kind=c_size_t) /= n) n = huge(n)
      if (size(weights) > 0) c_weights = c_loc(weights)
    end if
    if (present(bytes)) then
      if (size(bytes) /= size(destinations)) n = huge(n)
      if (size(bytes) > 0) c_bytes = c_loc(bytes)
    end if
    plan%world = self%handle
    plan%items = size(destinations, kind=int64)
    ierr = c_plan_from(self%handle, n, c_destinations, c_weights, c_bytes, plan%handle)
  end subroutine

  !> Whether to balance before the next step, after one that took this rank so long. Collective.
  subroutine world_step(self, seconds, now, ierr)
    class(eqp_world), intent(in) :: self
    real(real64), intent(in) :: seconds
    logical, intent(out) :: now
    integer, intent(out) :: ierr
    integer(c_int) :: answer
    answer = 0
    ierr = c_step(self%handle, real(seconds, c_double), answer)
    now = ierr == 0 .and. answer /= 0
  end subroutine

  !> What the best balancer would do, if a unit of weight lasts that long. Collective.
  subroutine world_advise(self, weights, seconds_per_unit, verdict, ierr, bytes)
    class(eqp_world), intent(in) :: self
    real(real64), intent(in), contiguous, target :: weights(:)
    real(real64), intent(in) :: seconds_per_unit
    type(eqp_verdict), intent(out) :: verdict
    integer, intent(out) :: ierr
    integer(int64), intent(in), contiguous, target, optional :: bytes(:)
    type(c_ptr) :: c_weights, c_bytes
    integer(c_size_t) :: n
    n = size(weights, kind=c_size_t)
    c_weights = c_null_ptr
    c_bytes = c_null_ptr
    if (n > 0) c_weights = c_loc(weights)
    if (present(bytes)) then
      if (size(bytes, kind=c_size_t) /= n) n = huge(n)
      if (size(bytes) > 0) c_bytes = c_loc(bytes)
    end if
    ierr = c_advise(self%handle, n, c_weights, c_bytes, real(seconds_per_unit, c_double), verdict)
  end subroutine

  !> The number without a sign that has the same place among them, and back: 2^63 more or less.
  pure integer(int64) function flipped(number)
    integer(int64), intent(in) :: number
    flipped = ieor(number, ishft(1_int64, 63))
  end function

  !> Opens a loop from first to last, both inclusive; a handle has one at a time. Collective.
  subroutine world_loop(self, first, last, rule, ierr)
    class(eqp_world), intent(inout) :: self
    integer(int64), intent(in) :: first, last
    character(*), intent(in) :: rule
    integer, intent(out) :: ierr
    integer(int64) :: beyond
    type(c_ptr) :: opened
    ! An end before the beginning is no iteration, as in a do loop.
    beyond = first
    if (last >= first) beyond = last + 1
    if (associated(self%shared)) then
      if (c_associated(self%shared%handle)) then
        ! Without a place for the loop all ranks refuse it.
        ierr = c_loop_begin(self%handle, flipped(first), flipped(beyond), c_text(rule))
        return
      end if
    end if
    ierr = c_loop_begin(self%handle, flipped(first), flipped(beyond), c_text(rule), opened)
    if (associated(self%shared) .and. c_associated(opened)) self%shared = open_loop(opened, 0)
  end subroutine

  !> The next iterations for this rank, lo to hi; false if there are no more, or something went wrong (loop_end says it).
  logical function world_next(self, lo, hi)
    class(eqp_world), intent(inout) :: self
    integer(int64), intent(out) :: lo, hi
    integer :: more
    lo = 1
    hi = 0
    world_next = .false.
    if (.not. associated(self%shared)) return
    more = c_loop_next(self%shared%handle, lo, hi)
    world_next = more == 1
    if (world_next) then
      lo = flipped(lo)
      hi = flipped(hi) - 1
    else
      if (more < 0) self%shared%status = -more
      lo = 1
      hi = 0
    end if
  end function

  !> Closes the loop. Collective.
  subroutine world_loop_end(self, ierr)
    class(eqp_world), intent(inout) :: self
    integer, intent(out) :: ierr
    type(open_loop) :: ended
    if (associated(self%shared)) ended = self%shared
    ierr = c_loop_end(ended%handle)
    if (ierr == 0) ierr = ended%status
    ended%status = 0
    if (associated(self%shared)) self%shared = ended
  end subroutine

  !> What the plan is worth.
  function plan_verdict(self) result(verdict)
    class(eqp_plan), intent(in) :: self
    type(eqp_verdict) :: verdict
    integer :: ierr
    ierr = c_plan_verdict(self%handle, verdict)
  end function

  !> Number of items that are here afterwards, those that stay included.
  integer(int64) function plan_incoming(self)
    class(eqp_plan), intent(in) :: self
    plan_incoming = int(c_plan_incoming(self%handle), int64)
  end function

  !> The rank of each item, from 0.
  subroutine plan_destinations(self, ranks, ierr)
    class(eqp_plan), intent(in) :: self
    integer(c_int), intent(out), contiguous :: ranks(:)
    integer, intent(out) :: ierr
    ierr = eqp_usage
    if (size(ranks, kind=int64) == self%items) ierr = c_plan_destinations(self%handle, ranks)
  end subroutine

  !> Rank (from 0) and index there (from 1) of each item that arrives, in the order in which they arrive.
  subroutine plan_sources(self, ranks, indices, ierr)
    class(eqp_plan), intent(in) :: self
    integer(c_int), intent(out), contiguous :: ranks(:)
    integer(int64), intent(out), contiguous :: indices(:)
    integer, intent(out) :: ierr
    ierr = eqp_usage
    if (size(ranks, kind=int64) /= self%incoming() .or. size(indices) /= size(ranks)) return
    ierr = c_plan_sources(self%handle, ranks, indices)
    indices = indices + 1
  end subroutine

  subroutine plan_free(self)
    class(eqp_plan), intent(inout) :: self
    call c_plan_free(self%handle)
  end subroutine

  !> Moves or brings home; arrays that do not fit are refused, on all ranks.
  subroutine carry(self, forth, items, out, given, wanted, item_bytes, fits, ierr)
    class(eqp_plan), intent(in) :: self
    logical, intent(in) :: forth, fits
    type(c_ptr), intent(in) :: items, out
    integer(int64), intent(in) :: given, wanted, item_bytes
    integer, intent(out) :: ierr
    integer(int64) :: here, there
    type(c_ptr) :: plan
    here = self%items
    there = self%incoming()
    if (.not. forth) then
      here = self%incoming()
      there = self%items
    end if
    plan = self%handle
    if (given /= here .or. wanted /= there .or. .not. fits) plan = c_null_ptr
    if (forth) then
      ierr = c_plan_move(self%world, plan, items, int(item_bytes, c_size_t), out)
    else
      ierr = c_plan_return(self%world, plan, items, int(item_bytes, c_size_t), out)
    end if
  end subroutine

  subroutine move_real32_1(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    real(real32), intent(in), contiguous, target :: items(:)
    real(real32), intent(inout), contiguous, target :: out(:)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 1, kind=int64), size(out, 1, kind=int64), &
      storage_size(items, int64) / 8, &
      .true., ierr)
  end subroutine

  subroutine move_real32_2(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    real(real32), intent(in), contiguous, target :: items(:, :)
    real(real32), intent(inout), contiguous, target :: out(:, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 2, kind=int64), size(out, 2, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1)], int64)), &
      size(items, 1) == size(out, 1), ierr)
  end subroutine

  subroutine move_real32_3(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    real(real32), intent(in), contiguous, target :: items(:, :, :)
    real(real32), intent(inout), contiguous, target :: out(:, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 3, kind=int64), size(out, 3, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1), size(items, 2)], int64)), &
      size(items, 1) == size(out, 1) .and. size(items, 2) == size(out, 2), ierr)
  end subroutine

  subroutine move_real32_4(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    real(real32), intent(in), contiguous, target :: items(:, :, :, :)
    real(real32), intent(inout), contiguous, target :: out(:, :, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 4, kind=int64), size(out, 4, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1), size(items, 2), size(items, 3)], int64)), &
      size(items, 1) == size(out, 1) .and. size(items, 2) == size(out, 2) .and. size(items, 3) == size(out, 3), ierr)
  end subroutine

  subroutine move_real64_1(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    real(real64), intent(in), contiguous, target :: items(:)
    real(real64), intent(inout), contiguous, target :: out(:)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 1, kind=int64), size(out, 1, kind=int64), &
      storage_size(items, int64) / 8, &
      .true., ierr)
  end subroutine

  subroutine move_real64_2(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    real(real64), intent(in), contiguous, target :: items(:, :)
    real(real64), intent(inout), contiguous, target :: out(:, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 2, kind=int64), size(out, 2, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1)], int64)), &
      size(items, 1) == size(out, 1), ierr)
  end subroutine

  subroutine move_real64_3(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    real(real64), intent(in), contiguous, target :: items(:, :, :)
    real(real64), intent(inout), contiguous, target :: out(:, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 3, kind=int64), size(out, 3, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1), size(items, 2)], int64)), &
      size(items, 1) == size(out, 1) .and. size(items, 2) == size(out, 2), ierr)
  end subroutine

  subroutine move_real64_4(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    real(real64), intent(in), contiguous, target :: items(:, :, :, :)
    real(real64), intent(inout), contiguous, target :: out(:, :, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 4, kind=int64), size(out, 4, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1), size(items, 2), size(items, 3)], int64)), &
      size(items, 1) == size(out, 1) .and. size(items, 2) == size(out, 2) .and. size(items, 3) == size(out, 3), ierr)
  end subroutine

  subroutine move_int32_1(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: items(:)
    integer(int32), intent(inout), contiguous, target :: out(:)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 1, kind=int64), size(out, 1, kind=int64), &
      storage_size(items, int64) / 8, &
      .true., ierr)
  end subroutine

  subroutine move_int32_2(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: items(:, :)
    integer(int32), intent(inout), contiguous, target :: out(:, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 2, kind=int64), size(out, 2, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1)], int64)), &
      size(items, 1) == size(out, 1), ierr)
  end subroutine

  subroutine move_int32_3(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: items(:, :, :)
    integer(int32), intent(inout), contiguous, target :: out(:, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 3, kind=int64), size(out, 3, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1), size(items, 2)], int64)), &
      size(items, 1) == size(out, 1) .and. size(items, 2) == size(out, 2), ierr)
  end subroutine

  subroutine move_int32_4(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: items(:, :, :, :)
    integer(int32), intent(inout), contiguous, target :: out(:, :, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 4, kind=int64), size(out, 4, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1), size(items, 2), size(items, 3)], int64)), &
      size(items, 1) == size(out, 1) .and. size(items, 2) == size(out, 2) .and. size(items, 3) == size(out, 3), ierr)
  end subroutine

  subroutine move_int64_1(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: items(:)
    integer(int64), intent(inout), contiguous, target :: out(:)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 1, kind=int64), size(out, 1, kind=int64), &
      storage_size(items, int64) / 8, &
      .true., ierr)
  end subroutine

  subroutine move_int64_2(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: items(:, :)
    integer(int64), intent(inout), contiguous, target :: out(:, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 2, kind=int64), size(out, 2, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1)], int64)), &
      size(items, 1) == size(out, 1), ierr)
  end subroutine

  subroutine move_int64_3(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: items(:, :, :)
    integer(int64), intent(inout), contiguous, target :: out(:, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 3, kind=int64), size(out, 3, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1), size(items, 2)], int64)), &
      size(items, 1) == size(out, 1) .and. size(items, 2) == size(out, 2), ierr)
  end subroutine

  subroutine move_int64_4(self, items, out, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: items(:, :, :, :)
    integer(int64), intent(inout), contiguous, target :: out(:, :, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(items) > 0) from = c_loc(items)
    if (size(out) > 0) into = c_loc(out)
    call carry(self, .true., from, into, size(items, 4, kind=int64), size(out, 4, kind=int64), &
      storage_size(items, int64) / 8 * product(int([size(items, 1), size(items, 2), size(items, 3)], int64)), &
      size(items, 1) == size(out, 1) .and. size(items, 2) == size(out, 2) .and. size(items, 3) == size(out, 3), ierr)
  end subroutine

  subroutine give_back_real32_1(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    real(real32), intent(in), contiguous, target :: results(:)
    real(real32), intent(inout), contiguous, target :: home(:)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 1, kind=int64), size(home, 1, kind=int64), &
      storage_size(results, int64) / 8, &
      .true., ierr)
  end subroutine

  subroutine give_back_real32_2(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    real(real32), intent(in), contiguous, target :: results(:, :)
    real(real32), intent(inout), contiguous, target :: home(:, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 2, kind=int64), size(home, 2, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1)], int64)), &
      size(results, 1) == size(home, 1), ierr)
  end subroutine

  subroutine give_back_real32_3(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    real(real32), intent(in), contiguous, target :: results(:, :, :)
    real(real32), intent(inout), contiguous, target :: home(:, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 3, kind=int64), size(home, 3, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1), size(results, 2)], int64)), &
      size(results, 1) == size(home, 1) .and. size(results, 2) == size(home, 2), ierr)
  end subroutine

  subroutine give_back_real32_4(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    real(real32), intent(in), contiguous, target :: results(:, :, :, :)
    real(real32), intent(inout), contiguous, target :: home(:, :, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 4, kind=int64), size(home, 4, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1), size(results, 2), size(results, 3)], int64)), &
      size(results, 1) == size(home, 1) .and. size(results, 2) == size(home, 2) .and. size(results, 3) == size(home, 3), ierr)
  end subroutine

  subroutine give_back_real64_1(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    real(real64), intent(in), contiguous, target :: results(:)
    real(real64), intent(inout), contiguous, target :: home(:)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 1, kind=int64), size(home, 1, kind=int64), &
      storage_size(results, int64) / 8, &
      .true., ierr)
  end subroutine

  subroutine give_back_real64_2(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    real(real64), intent(in), contiguous, target :: results(:, :)
    real(real64), intent(inout), contiguous, target :: home(:, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 2, kind=int64), size(home, 2, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1)], int64)), &
      size(results, 1) == size(home, 1), ierr)
  end subroutine

  subroutine give_back_real64_3(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    real(real64), intent(in), contiguous, target :: results(:, :, :)
    real(real64), intent(inout), contiguous, target :: home(:, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 3, kind=int64), size(home, 3, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1), size(results, 2)], int64)), &
      size(results, 1) == size(home, 1) .and. size(results, 2) == size(home, 2), ierr)
  end subroutine

  subroutine give_back_real64_4(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    real(real64), intent(in), contiguous, target :: results(:, :, :, :)
    real(real64), intent(inout), contiguous, target :: home(:, :, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 4, kind=int64), size(home, 4, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1), size(results, 2), size(results, 3)], int64)), &
      size(results, 1) == size(home, 1) .and. size(results, 2) == size(home, 2) .and. size(results, 3) == size(home, 3), ierr)
  end subroutine

  subroutine give_back_int32_1(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: results(:)
    integer(int32), intent(inout), contiguous, target :: home(:)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 1, kind=int64), size(home, 1, kind=int64), &
      storage_size(results, int64) / 8, &
      .true., ierr)
  end subroutine

  subroutine give_back_int32_2(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: results(:, :)
    integer(int32), intent(inout), contiguous, target :: home(:, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 2, kind=int64), size(home, 2, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1)], int64)), &
      size(results, 1) == size(home, 1), ierr)
  end subroutine

  subroutine give_back_int32_3(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: results(:, :, :)
    integer(int32), intent(inout), contiguous, target :: home(:, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 3, kind=int64), size(home, 3, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1), size(results, 2)], int64)), &
      size(results, 1) == size(home, 1) .and. size(results, 2) == size(home, 2), ierr)
  end subroutine

  subroutine give_back_int32_4(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: results(:, :, :, :)
    integer(int32), intent(inout), contiguous, target :: home(:, :, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 4, kind=int64), size(home, 4, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1), size(results, 2), size(results, 3)], int64)), &
      size(results, 1) == size(home, 1) .and. size(results, 2) == size(home, 2) .and. size(results, 3) == size(home, 3), ierr)
  end subroutine

  subroutine give_back_int64_1(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: results(:)
    integer(int64), intent(inout), contiguous, target :: home(:)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 1, kind=int64), size(home, 1, kind=int64), &
      storage_size(results, int64) / 8, &
      .true., ierr)
  end subroutine

  subroutine give_back_int64_2(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: results(:, :)
    integer(int64), intent(inout), contiguous, target :: home(:, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 2, kind=int64), size(home, 2, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1)], int64)), &
      size(results, 1) == size(home, 1), ierr)
  end subroutine

  subroutine give_back_int64_3(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: results(:, :, :)
    integer(int64), intent(inout), contiguous, target :: home(:, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 3, kind=int64), size(home, 3, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1), size(results, 2)], int64)), &
      size(results, 1) == size(home, 1) .and. size(results, 2) == size(home, 2), ierr)
  end subroutine

  subroutine give_back_int64_4(self, results, home, ierr)
    class(eqp_plan), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: results(:, :, :, :)
    integer(int64), intent(inout), contiguous, target :: home(:, :, :, :)
    integer, intent(out) :: ierr
    type(c_ptr) :: from, into
    from = c_null_ptr
    into = c_null_ptr
    if (size(results) > 0) from = c_loc(results)
    if (size(home) > 0) into = c_loc(home)
    call carry(self, .false., from, into, size(results, 4, kind=int64), size(home, 4, kind=int64), &
      storage_size(results, int64) / 8 * product(int([size(results, 1), size(results, 2), size(results, 3)], int64)), &
      size(results, 1) == size(home, 1) .and. size(results, 2) == size(home, 2) .and. size(results, 3) == size(home, 3), ierr)
  end subroutine

end module
