//! `equipoise divide`: one load that can be cut anywhere.

mod destination;
mod model;
mod spread;

use clap::Args;
use equipoise::Error;

use super::launch::{self, Ending};
use super::options::WorldOptions;
use super::terminal::Output;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 8 equipoise divide --input big.log --kernel 'grep=error|warning'
  mpirun -n 8 equipoise divide --input big.log --command 'cut -f 2 | sort -u' --reduce 'sort -u'
  zcat *.gz | mpirun -n 8 equipoise divide --input - --kernel histogram=numbers | sort -rn | head
  mpirun -n 8 equipoise divide --input big.log --kernel count --baselines --gantt count.svg
  equipoise divide --sim 64 --input big.log --kernel checksum --rate 1G
  equipoise divide --model --topology hypercube:2
  equipoise divide --model --topology hypercube:10 --w 10 --z 7/18 --output json
  equipoise divide --model --topology star:5 --ports one --speeds 1,1,2,2,4 --links 1,1,3,0.5 --gantt star.svg
  equipoise divide --model --topology line:4 --installments 4 --startup 0.01 --return 0.1
  equipoise divide --model --curves figures      figures 2 to 8 of Blazewicz and Drozdowski 1995

With --input the answer is printed on standard output and the report on standard error. Rank 0 has the input; the others get their shares along
the topology, and all finish together if they are as fast as they were when they were measured. Simulated ranks
have one port each (--network switched:contention) unless --network is given. Nothing is printed unless all went well; the status is the least of
a --command's, otherwise 0.

With --model a processor starts to compute and to send on when its whole share (of an installment) has arrived, and computes while it sends. Computing a
part a of the load takes a w Tcp seconds, carrying it over a link takes startup + a z Tcm. The shares printed make all done earliest, however
the processors are numbered, unless the method is said not to be proven (with --ports one and more than some orders of service to try, see
docs/divisible.md):
  alpha         the part of the load that a processor computes
  volume        the part that it receives, what it sends on included
  speedup       the source alone, over the time of all
  utilisation   the mean part of the time in which a processor computes
  equivalent_w  the w of one processor that is as good as all";

/// Options about ranks, which the model does not have.
const FOR_RANKS: [&str; 3] = ["network", "sim_hosts", "placement"];

/// Divide one arbitrarily divisible load, so that all processors finish together
///
/// The load lies on one processor, the source. With --input: a file over ranks, which compute on it. With --model: by calculation,
/// for given speeds of processors and links.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Calculate the optimal division, without any ranks
    #[arg(long, conflicts_with_all = spread::NAMES.iter().chain(&FOR_RANKS).copied())]
    model: bool,

    #[command(flatten)]
    spread: spread::SpreadOptions,

    #[command(flatten)]
    asked: model::ModelOptions,

    #[command(flatten)]
    world: WorldOptions,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,
}

pub fn run(arguments: &Arguments) -> Result<(), Ending> {
    match &arguments.spread.input {
        Some(input) => spread::run(input.clone(), &arguments.spread, &arguments.asked, &arguments.world, arguments.output),
        None if arguments.model && arguments.world.sim.is_some() => {
            Err(Error::usage("--sim: --model calculates, and needs no ranks").into())
        }
        None if !arguments.model => Err(Error::usage("divide: what? Say --input FILE to divide a file, or --model to calculate").into()),
        None => {
            launch::meet()?;
            Ok(model::run(&arguments.asked, arguments.output)?)
        }
    }
}
