#!/bin/bash
# Equipoise under PBS (OpenPBS, PBS Professional): four machines with 16 ranks each. Copy it, change what stands in capitals, and submit:
#   qsub hostfiles/pbs.sh
#
# PBS reads the lines that begin with #PBS; what an option is given on the command line of qsub goes before them.
#PBS -N equipoise
# Four chunks of 16 cores and 16 ranks (mpiprocs: what a hostfile calls slots). Twice as many cores as ranks if tasks run on a worker thread
# beside the one that talks to MPI. A rank needs some MB and room for what its tasks carry.
#PBS -l select=4:ncpus=16:mpiprocs=16:mem=16gb
# Each chunk on a machine of its own, with nobody else on it, or the times mean little.
#PBS -l place=scatter:excl
# Limit of the whole job, hours:minutes:seconds.
#PBS -l walltime=00:10:00
# Both outputs in one file.
#PBS -j oe
# The queue, if there is a choice, and whom the time is charged to, if the site wants to know (take one # away).
##PBS -q QUEUE
##PBS -A ACCOUNT
# Torque, an older relative, writes the request as: #PBS -l nodes=4:ppn=16
set -euo pipefail

# What PBS says of the job:
#   PBS_JOBID      its number and server, as in 1234.head
#   PBS_O_WORKDIR  the folder where qsub was called; the script starts in the home folder
#   PBS_NODEFILE   a file with a line for each rank: the name of its machine, machine by machine
#   PBS_O_HOST     the machine where qsub was called (not one of the job's)
#   NCPUS          cores of the first chunk
cd "$PBS_O_WORKDIR"
RANKS=$(wc -l <"$PBS_NODEFILE")
MACHINES=$(sort -u "$PBS_NODEFILE" | wc -l)
echo "job $PBS_JOBID: $RANKS ranks on $MACHINES machines"

# Where the program lies: on all machines at the same path. It must be built with the very MPI that is loaded here.
EQUIPOISE=${EQUIPOISE:-$HOME/equipoise/target/release/equipoise}
# The site's module of that MPI.
if command -v module >/dev/null; then module load "${MPI_MODULE:-openmpi}"; fi

# What equipoise is to do. A balancer's topology has a node on each rank; with --placement hosts (the default) near nodes share a machine.
ARGUMENTS=(compare --loads uniform:mean=1000 --payload "64,4096" --repeat 20 --report "equipoise-${PBS_JOBID%%.*}")

# An Open MPI that was built with PBS's own library (ompi_info | grep tm) finds the machines by itself; any other reads them from
# PBS_NODEFILE, in which a name that stands there 16 times has 16 slots, and enters them by ssh. --bind-to none leaves each rank all cores
# of its machine, since ranks have threads of their own.
#   OMPI_MCA_*   sets an option of Open MPI as --mca does: OMPI_MCA_btl_tcp_if_include=ib0 is --mca btl_tcp_if_include ib0
mpirun --hostfile "$PBS_NODEFILE" -n "$RANKS" --bind-to none "$EQUIPOISE" "${ARGUMENTS[@]}"
