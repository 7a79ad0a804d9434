! Columns of chemistry whose costs differ by 1 to 50: lent, computed, brought home, every step. Prints the time per step with and without,
! and what part that is of what a perfect balance would gain: every rank computing for the mean of what all compute alone.
!
!   mpif90 equipoise.f90 columns.f90 -lequipoise -o columns && mpirun -n 8 ./columns
program columns
  use mpi
  use equipoise
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer, parameter :: levels = 4, species = 2, n = 16
  integer :: steps = 5
  character(16) :: argument
  type(eqp_world) :: w
  type(eqp_plan) :: plan
  real(real64) :: cost(n), field(species, levels, n), home(levels, n), seconds(0:1), begin, computing, all
  real(real64), allocatable :: cost_there(:), there(:, :, :), results(:, :)
  integer(int64) :: here
  integer :: rank, ranks, ierr, step, lends, i, k

  interface
    integer(c_int) function usleep(microseconds) bind(C)
      import
      integer(c_int), value :: microseconds
    end function
  end interface

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call w%open(MPI_COMM_WORLD, 'balancer=refine', ierr)
  call stop_on(ierr)
  if (command_argument_count() >= 1) then
    call get_command_argument(command_argument_count(), argument)
    read (argument, *) steps
  end if
  seconds = 0
  computing = 0
  do lends = 0, 1
    do step = 0, steps - 1
      ! Day on some ranks, night on others; the sun moves.
      cost = 1 + 49 * real(mod(rank + step, ranks), real64) / max(ranks - 1, 1)
      do i = 1, n
        do k = 1, levels
          field(:, k, i) = [rank * 1000.0_real64 + i + k, 2.0_real64]
        end do
      end do
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      begin = MPI_Wtime()
      if (lends == 1) then
        call w%plan(cost, plan, ierr)
        call stop_on(ierr)
        here = plan%incoming()
        allocate (cost_there(here), there(species, levels, here), results(levels, here))
        call plan%move(cost, cost_there, ierr)
        call stop_on(ierr)
        call plan%move(field, there, ierr)
        call stop_on(ierr)
        call chemistry(cost_there, there, results)
        call plan%give_back(results, home, ierr)
        call stop_on(ierr)
        call plan%free()
        deallocate (cost_there, there, results)
      else
        call chemistry(cost, field, home)
        computing = computing + MPI_Wtime() - begin
      end if
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      seconds(lends) = seconds(lends) + MPI_Wtime() - begin
      do i = 1, n
        if (any(home(:, i) /= field(1, :, i) * field(2, :, i) * cost(i))) call MPI_Abort(MPI_COMM_WORLD, 9, ierr)
      end do
    end do
  end do
  call MPI_Allreduce(computing, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) then
    write (*, '(f0.2,a,f0.2,a)', advance='no') 1e3 * seconds(0) / steps, ' ms per step, lent ', 1e3 * seconds(1) / steps, ' ms'
    if (ranks > 1) then
      print '(a,f4.2,a)', '; ', (seconds(0) - seconds(1)) / (seconds(0) - all / ranks), ' of the gain of a perfect balance'
    else
      print '(a)', ''
    end if
  end if
  call w%close(ierr)
  call MPI_Finalize(ierr)

contains

  subroutine stop_on(status)
    integer, intent(in) :: status
    integer :: code
    if (status == eqp_ok) return
    print '(a)', w%error()
    call MPI_Abort(MPI_COMM_WORLD, status, code)
  end subroutine

  subroutine chemistry(cost, field, results)
    real(real64), intent(in) :: cost(:), field(:, :, :)
    real(real64), intent(out) :: results(:, :)
    integer :: at, ignored
    do at = 1, size(cost)
      ignored = usleep(int(100 * cost(at)))
      results(:, at) = field(1, :, at) * field(2, :, at) * cost(at)
    end do
  end subroutine
end program
