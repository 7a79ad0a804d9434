//! Selection of the processors that take part in a division that is found by linear program.
//!
//! A message that carries nothing costs nothing, but in the program its receiver waits for it all the same, and its start-up cost is paid. Few
//! start-up costs are decided exactly, with binary variables. For many, the program with costs in proportion to the load sent ranks the processors
//! by their value; then the best number of these takes part.

use super::network::ModelNetwork;
use super::program::{LinearProgram, ProgramOutcome, ProgramTask, Startups};
use super::timeline::LoadDivision;
use equipoise::error::{Error, Result};

/// Maximum number of messages of a program.
pub const MOST_MESSAGES: usize = 1_000;
/// Maximum number of messages, returning ones included, whose start-up costs are decided exactly.
const MOST_DECIDED: usize = 12;
/// Maximum number of messages that are left out one by one.
const MOST_DROPPED: usize = 20;

/// Divides the load. `scale` is a time near the expected one; the program is written in parts of it.
///
/// # Errors
/// Wrong usage if there are too many messages; a failure if the solver gives up.
pub fn divide(network: &ModelNetwork, task: ProgramTask, scale: f64) -> Result<ProgramOutcome> {
    let messages = network.links.len() * task.installments;
    if messages > MOST_MESSAGES {
        return Err(Error::usage(format!(
            "this needs a linear program with {messages} messages (links times installments), {MOST_MESSAGES} is the most"
        )));
    }
    let all = vec![vec![true; network.links.len()]; task.installments];
    let solve = |may: &[Vec<bool>], startups| LinearProgram { network, task, scale, startups }.solve(may);
    let few = messages + if task.results > 0.0 { network.links.len() } else { 0 } <= MOST_DECIDED;
    let first = match network.has_startup() {
        false => solve(&all, Startups::Paid)?,
        true if few => solve(&all, Startups::Decided)?,
        true => solve(&all, Startups::Spread)?,
    };
    let proven = first.proven && network.is_tree() && (!network.has_startup() || few);
    if network.is_tree() && !network.has_startup() {
        return Ok(first);
    }
    // Where a processor has several to receive from, one that sends nothing still made it wait in the program: without it it can only get
    // better. Start-up costs that were spread are now paid.
    let decided = few && first.proven;
    Ok(ProgramOutcome { division: without_the_idle(network, first.division, decided, &solve), proven, time: first.time })
}

/// A time that no division in this order of service is below: start-up costs are paid in part only.
///
/// # Errors
/// A failure if the solver gives up.
pub fn bound(network: &ModelNetwork, task: ProgramTask, scale: f64) -> Result<f64> {
    let all = vec![vec![true; network.links.len()]; task.installments];
    Ok(LinearProgram { network, task, scale, startups: Startups::Spread }.solve(&all)?.time)
}

/// Solves the program for the messages that may carry load.
type Solver<'a> = &'a dyn Fn(&[Vec<bool>], Startups) -> Result<ProgramOutcome>;

/// A division and its makespan; the least one is kept.
struct Best<'a> {
    network: &'a ModelNetwork,
    solve: Solver<'a>,
    division: LoadDivision,
    makespan: f64,
}

impl Best<'_> {
    /// The makespan if only these messages carry load; infinity if that is not possible. The division is kept if it is better.
    fn consider(&mut self, may: &[Vec<bool>]) -> f64 {
        let Ok(next) = (self.solve)(may, Startups::Paid) else { return f64::INFINITY };
        let makespan = next.division.timeline(self.network).makespan;
        if makespan < self.makespan * (1.0 - 1e-12) {
            (self.division, self.makespan) = (next.division, makespan);
        }
        makespan
    }

    /// Lets only the largest messages carry load. Finds their best number by doubling it as long as that helps, then by bisection.
    fn keep_the_largest(&mut self) {
        let mut order: Vec<(usize, usize, f64)> = loads(&self.division).collect();
        order.sort_by(|a, b| b.2.total_cmp(&a.2));
        let mut time_of = |count: usize| {
            let mut may: Vec<Vec<bool>> = self.division.sent.iter().map(|sent| vec![false; sent.len()]).collect();
            order.iter().take(count).for_each(|&(installment, link, _)| may[installment][link] = true);
            self.consider(&may)
        };
        let (mut count, mut time) = (1, time_of(1));
        while count < order.len() {
            let next = time_of((2 * count).min(order.len()));
            if next > time {
                break;
            }
            (count, time) = ((2 * count).min(order.len()), next);
        }
        let (mut low, mut high) = (count / 2 + 1, (2 * count).min(order.len()));
        while low < high {
            let middle = (low + high) / 2;
            if time_of(middle) <= time_of(middle + 1) { high = middle } else { low = middle + 1 }
        }
    }

    /// Leaves out what carries nothing, or what carries least; whether that was better.
    fn drop(&mut self, least: bool) -> bool {
        let mut may: Vec<Vec<bool>> = self.division.sent.iter().map(|sent| sent.iter().map(|load| *load > 0.0).collect()).collect();
        if least {
            let Some((installment, link, _)) = loads(&self.division).min_by(|a, b| a.2.total_cmp(&b.2)) else { return false };
            may[installment][link] = false;
        } else if may.iter().flatten().all(|may| *may) {
            return false;
        }
        let before = self.makespan;
        self.consider(&may);
        self.makespan < before
    }
}

/// Leaves out messages as long as that helps.
fn without_the_idle(network: &ModelNetwork, first: LoadDivision, decided: bool, solve: Solver<'_>) -> LoadDivision {
    let makespan = first.timeline(network).makespan;
    let mut best = Best { network, solve, division: first, makespan };
    let startup = network.has_startup();
    if startup && !decided {
        best.keep_the_largest();
    }
    for _ in 0..MOST_DROPPED {
        let better = best.drop(false) || startup && best.drop(true);
        if !better {
            break;
        }
    }
    best.division
}

/// Load on each link in each installment: (installment, link, load).
fn loads(division: &LoadDivision) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
    let by_link = |(installment, sent)| {
        let sent: &Vec<f64> = sent;
        sent.iter().enumerate().map(move |(link, load)| (installment, link, *load)).collect::<Vec<_>>()
    };
    division.sent.iter().enumerate().flat_map(by_link).filter(|(_, _, load)| *load > 0.0)
}
