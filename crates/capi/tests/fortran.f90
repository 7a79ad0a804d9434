! Every procedure of the Fortran module, on any number of ranks.
program fortran
  use mpi
  use equipoise
  use, intrinsic :: iso_fortran_env
  implicit none
  type(eqp_world) :: w, other
  type(eqp_plan) :: p
  type(eqp_verdict) :: v
  integer :: ierr, rank, ranks, i, k, step
  integer(int64) :: n, m, lo, hi, taken, total, j
  logical :: now
  real(real64), allocatable :: weights(:), columns(:, :), there(:, :), results(:, :, :), home(:, :, :), places(:, :)
  real(real32), allocatable :: singles(:), singles_there(:)
  integer(int32), allocatable :: numbers(:, :, :, :), numbers_there(:, :, :, :)
  integer(int64), allocatable :: longs(:), longs_home(:), indices(:)
  integer, allocatable :: to(:), from(:)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call w%open(MPI_COMM_WORLD, 'balancer=magic', ierr)
  call check(ierr == eqp_usage .and. index(w%error(), 'magic') > 0, 'a wrong option')
  call w%open(MPI_COMM_WORLD, 'balancer=refine', ierr)
  call check(ierr == 0 .and. len(w%error()) == 0 .and. index(eqp_version(), 'equipoise') == 1, 'open')

  n = 3 * (rank + 1)
  if (rank == 1) n = 0
  allocate (weights(n), columns(3, n), places(merge(2, 0, n > 0), n), to(n))
  do i = 1, int(n)
    weights(i) = 1 + rank + i
    columns(:, i) = [real(rank, real64), real(i, real64), 0.5_real64]
    places(:, i) = [real(rank, real64), real(i, real64)]
  end do
  do k = 1, 4
    select case (k)
    case (1)
      call w%plan(weights, p, ierr)
    case (2)
      call w%plan(weights, p, ierr, bytes=[(24_int64, i=1, int(n))], pinned=[(mod(i, 2) == 0, i=1, int(n))])
    case (3)
      call w%set('balancer', 'rcb', ierr)
      call w%plan_at(weights, reshape([real(real64) ::], [0, int(n)]), p, ierr)
      call check(ierr == eqp_usage, 'no coordinates')
      call w%plan_at(weights, places, p, ierr)
    case (4)
      call w%set('balancer', 'refine', ierr)
      call w%plan_from([(mod(i, ranks), i=1, int(n))], p, ierr, weights=weights)
    end select
    call check(ierr == 0, 'plan')
    v = p%verdict()
    call check(v%before >= 1 .and. v%after >= v%bound .and. v%bound >= 1 .and. (k == 4 .or. v%after <= v%before), 'verdict')
    m = p%incoming()
    allocate (there(3, m), from(m), indices(m))
    call p%destinations(to, ierr)
    call check(ierr == 0 .and. all_of(to >= 0 .and. to < ranks), 'destinations')
    if (k == 2) call check(all_of([(mod(i, 2) == 1 .or. to(i) == rank, i=1, int(n))]), 'pins')
    if (k == 4) call check(all_of([(to(i) == mod(i, ranks), i=1, int(n))]), 'given')
    call p%sources(from, indices, ierr)
    call check(ierr == 0, 'sources')
    call p%move(columns, there, ierr)
    call check(ierr == 0, 'move')
    do j = 1, m
      call check(there(1, j) == from(j) .and. there(2, j) == indices(j) .and. there(3, j) == 0.5_real64, 'what moved')
    end do
    allocate (results(2, 4, m), home(2, 4, n))
    do j = 1, m
      results(:, :, j) = 1000 * there(1, j) + there(2, j)
      results(2, 4, j) = rank
    end do
    call p%give_back(results, home, ierr)
    call check(ierr == 0, 'give back')
    do i = 1, int(n)
      call check(home(1, 1, i) == 1000 * rank + i .and. home(2, 4, i) == to(i), 'what came home')
    end do
    ! Arrays that do not fit on the last rank only.
    if (rank == ranks - 1) then
      call p%give_back(results(:, :, :), home(:, 1:3, :), ierr)
    else
      call p%give_back(results, home, ierr)
    end if
    call check(ierr == eqp_usage, 'what does not fit')
    singles = real(columns(2, :), real32)
    allocate (singles_there(m), numbers(2, 1, 2, n), numbers_there(2, 1, 2, m), longs(m), longs_home(n))
    call p%move(singles, singles_there, ierr)
    call check(ierr == 0 .and. all_of(singles_there == real(indices, real32)), 'real32')
    do i = 1, int(n)
      numbers(:, :, :, i) = i
    end do
    call p%move(numbers, numbers_there, ierr)
    do j = 1, m
      call check(ierr == 0 .and. all(numbers_there(:, :, :, j) == indices(j)), 'int32')
    end do
    longs = indices * 10_int64**12
    call p%give_back(longs, longs_home, ierr)
    call check(ierr == 0 .and. all_of(longs_home == [(i * 10_int64**12, i=1, int(n))]), 'int64')
    call p%free()
    call p%free()
    deallocate (there, from, indices, results, home, singles_there, numbers, numbers_there, longs, longs_home)
  end do
  if (rank == 0) weights(1) = -1
  call w%plan(weights, p, ierr)
  call check(ierr == eqp_usage .and. index(w%error(), 'rank 0') > 0, 'a wrong weight')
  if (rank == 0) weights(1) = 1
  call w%advise(weights, 1.0_real64, v, ierr)
  call check(ierr == 0 .and. v%after <= v%before, 'advise')

  call w%set('trigger', 'every=2', ierr)
  do step = 1, 4
    call w%step(0.5_real64, now, ierr)
    call check(ierr == 0 .and. (now .eqv. mod(step, 2) == 0), 'step')
  end do
  taken = 0
  call w%loop(1_int64, 100_int64, 'fac2', ierr)
  call check(ierr == 0, 'loop')
  do while (w%next(lo, hi))
    call check(lo >= 1 .and. lo <= hi .and. hi <= 100, 'next')
    do j = lo, hi
      taken = taken + j
    end do
  end do
  call w%loop_end(ierr)
  call check(ierr == 0, 'loop_end')
  call MPI_Allreduce(taken, total, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(total == 5050, 'all iterations')
  call w%loop(5_int64, 1_int64, 'ss', ierr)
  call check(ierr == 0 .and. .not. w%next(lo, hi), 'no iteration')
  call w%loop_end(ierr)
  taken = 0
  call w%loop(-3_int64, 6_int64, 'gss', ierr)
  do while (w%next(lo, hi))
    call check(lo >= -3 .and. lo <= hi .and. hi <= 6, 'next of a loop from below 0')
    taken = taken + sum([(j, j = lo, hi)])
  end do
  call w%loop_end(ierr)
  call MPI_Allreduce(taken, total, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(total == 15, 'all iterations from below 0')
  if (ranks > 1) then
    ! As many iterations, but others on the last rank.
    lo = merge(101_int64, 1_int64, rank == ranks - 1)
    call w%loop(lo, lo + 3, 'ss', ierr)
    call check(ierr == eqp_usage, 'another loop on one rank')
  end if
  ! A copy is the same handle, with the same loop, whichever begins, takes and ends it.
  other = w
  taken = 0
  call other%loop(1_int64, 100_int64, 'fac2', ierr)
  call check(ierr == 0, 'a loop of a copy')
  call w%loop(1_int64, 5_int64, 'ss', ierr)
  call check(ierr == eqp_usage .and. index(w%error(), 'a loop of this handle is open') > 0, 'a second loop while one is open')
  do while (w%next(lo, hi))
    taken = taken + sum([(j, j = lo, hi)])
  end do
  call check(.not. other%next(lo, hi), 'the loop is over for both')
  call w%close(ierr)
  call check(ierr == eqp_usage .and. index(w%error(), 'loop is open') > 0, 'close with an open loop')
  call w%loop_end(ierr)
  call check(ierr == 0, 'loop_end of a copy')
  call MPI_Allreduce(taken, total, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(total == 5050, 'all iterations through a copy')
  call other%loop_end(ierr)
  call check(ierr == 0, 'loop_end of what has ended')
  call other%close(ierr)
  call check(ierr == 0, 'close')
  call check(.not. other%next(lo, hi), 'next of a world that is closed')
  if (rank == 0) print '(a,i0)', 'fortran passes on ', ranks
  call MPI_Finalize(ierr)

contains
  logical function all_of(mask)
    logical, intent(in) :: mask(:)
    all_of = all(mask)
  end function

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    integer :: code
    if (condition) return
    print '(a,i0,4a)', 'rank ', rank, ': not so: ', what, ': ', w%error()
    call MPI_Abort(MPI_COMM_WORLD, 9, code)
  end subroutine
end program
