//! The division as a linear program, where no closed form exists: unequal processors on networks that are no trees, results that are
//! returned through one port, several installments; with start-up costs as a program with binary variables for the processors that take part.
//!
//! ```text
//! least T                                            x: what a processor keeps, f: what goes through a link, by installment
//! load      sum of f into p = x_p + sum of f out of p       (the source: 1 = ...)
//! message   end >= arrival at the sender + S y + c f        after the message before it on the link (all ports) or port (one)
//! arrival   arrival at p >= end of every message to p
//! compute   done_j >= done_(j-1) + w x,  done_j >= arrival_j + w x
//! results   back >= done at p and everything behind it + S y + r c f;  T >= everything at the source
//! start-up  f <= y, y is 0 or 1
//! ```

use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem, SolveOptions, Variable};

use super::network::{ModelNetwork, Ports};
use super::timeline::LoadDivision;
use equipoise::error::{Error, Result};

/// Maximum number of steps of the search for the processors that take part, a bound on time that is the same on all machines.
const MOST_NODES: u64 = 1_000;
/// Loads below this are those of rounding.
const NOTHING: f64 = 1e-9;

/// The problem, apart from the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramTask {
    pub ports: Ports,
    pub installments: usize,
    /// The size of the results, as a part of the load that they come from.
    pub results: f64,
    pub last_first: bool,
}

/// A division, and whether it is proven to be the best for the order of service.
pub struct ProgramOutcome {
    pub division: LoadDivision,
    pub proven: bool,
    /// The time of all by the program itself.
    pub time: f64,
}

/// Treatment of start-up costs.
#[derive(Clone, Copy, PartialEq)]
pub enum Startups {
    /// Decided by yes-or-no variables.
    Decided,
    /// In proportion to the load sent: a lower bound, and a first selection of the processors that take part.
    Spread,
    /// Paid for all messages that may carry load.
    Paid,
}

/// A linear program.
pub struct LinearProgram<'a> {
    pub network: &'a ModelNetwork,
    pub task: ProgramTask,
    /// A time near the expected one: the program is written in parts of it.
    pub scale: f64,
    pub startups: Startups,
}

/// A linear expression under construction: variables and factors.
type Sum = Vec<(Variable, f64)>;

struct Rows {
    problem: Problem,
}

impl Rows {
    /// A time or a load, 0 or more.
    fn quantity(&mut self) -> Variable {
        self.problem.add_var(0.0, (0.0, f64::INFINITY))
    }

    /// A load of at most 1.
    fn part(&mut self, may: bool) -> Variable {
        self.problem.add_var(0.0, (0.0, if may { 1.0 } else { 0.0 }))
    }

    /// `time >= sum + constant`.
    fn after(&mut self, time: Variable, sum: &[(Variable, f64)], constant: f64) {
        let mut row = LinearExpr::empty();
        row.add(time, 1.0);
        sum.iter().for_each(|(variable, factor)| row.add(*variable, -factor));
        self.problem.add_constraint(row, ComparisonOp::Ge, constant);
    }

    fn equal(&mut self, sum: &[(Variable, f64)], constant: f64) {
        let mut row = LinearExpr::empty();
        sum.iter().for_each(|(variable, factor)| row.add(*variable, *factor));
        self.problem.add_constraint(row, ComparisonOp::Eq, constant);
    }
}

impl LinearProgram<'_> {
    /// Solves it. `may`: which messages may carry load, by installment and link.
    ///
    /// # Errors
    /// A failure if the solver gives up.
    pub fn solve(&self, may: &[Vec<bool>]) -> Result<ProgramOutcome> {
        let LinearProgram { network, task, .. } = self;
        let mut rows = Rows { problem: Problem::new(OptimizationDirection::Minimize) };
        let end = rows.problem.add_var(1.0, (0.0, f64::INFINITY));
        let carried: Vec<Vec<Variable>> = may.iter().map(|may| may.iter().map(|may| rows.part(*may)).collect()).collect();
        let arrival: Vec<Vec<Variable>> =
            (0..network.processors()).map(|_| (0..task.installments).map(|_| rows.quantity()).collect()).collect();
        let mut done = Vec::new();
        let mut port = Vec::new();
        for processor in 0..network.processors() {
            let kept = self.shares(&mut rows, processor, &carried);
            done.push(self.compute(&mut rows, processor, &kept, &arrival[processor]));
            port.push(self.send(&mut rows, processor, may, &carried, &arrival));
        }
        if task.results > 0.0 {
            self.collect(&mut rows, may, &carried, &done, &port);
        }
        for done in &done {
            rows.after(end, &[(*done, 1.0)], 0.0);
        }
        let mut options = SolveOptions::default();
        options.tolerances.feasibility = 1e-10;
        if self.startups == Startups::Decided {
            options.node_limit = Some(MOST_NODES);
        }
        let failed = |why: String| Error::Failed(format!("the linear program of the division could not be solved: {why}"));
        let outcome = rows.problem.solve_with(options).map_err(|why| failed(why.to_string()))?;
        let proven = outcome.is_optimal();
        let solution = outcome.solution().ok_or_else(|| failed("the search for who takes part took too long".into()))?;
        let value = |variable: &Variable| Some(solution.var_value(*variable)).filter(|load| *load > NOTHING).unwrap_or(0.0);
        let sent = carried.iter().map(|carried| carried.iter().map(value).collect()).collect();
        let mut division = LoadDivision::new(network, task.ports, sent);
        (division.results, division.last_first) = (task.results, task.last_first);
        self.leave_nothing_over(&mut division);
        Ok(ProgramOutcome { division, proven, time: solution.objective() * self.scale })
    }

    /// A source that does not compute keeps what rounding left over, unless it goes to those it serves.
    fn leave_nothing_over(&self, division: &mut LoadDivision) {
        let source = self.network.source;
        if self.network.seconds[source].is_infinite() {
            let all: f64 = division.kept.iter().flatten().sum::<f64>() - division.kept[0][source];
            division.kept[0][source] = 0.0;
            for part in division.kept.iter_mut().chain(&mut division.sent).flatten() {
                *part /= all;
            }
        }
    }

    /// Variables for the parts that a processor keeps of each installment.
    fn shares(&self, rows: &mut Rows, processor: usize, carried: &[Vec<Variable>]) -> Vec<Variable> {
        let source = processor == self.network.source;
        // A source keeps one share, from the beginning.
        let shares = if source { 1 } else { carried.len() };
        let kept: Vec<Variable> = (0..shares).map(|_| rows.part(self.network.seconds[processor].is_finite())).collect();
        let sent = |carried: &[Variable]| self.network.out[processor].iter().map(|link| (carried[*link], 1.0)).collect::<Sum>();
        if source {
            let mut sum: Sum = carried.iter().flat_map(|carried| sent(carried)).collect();
            sum.push((kept[0], 1.0));
            rows.equal(&sum, 1.0);
        } else {
            for (kept, carried) in kept.iter().zip(carried) {
                let mut sum = sent(carried);
                sum.push((*kept, 1.0));
                sum.extend(self.network.into[processor].iter().map(|link| (carried[*link], -1.0)));
                rows.equal(&sum, 0.0);
            }
        }
        kept
    }

    /// Adds the computing of a processor; returns the time at which it has computed all that it keeps.
    fn compute(&self, rows: &mut Rows, processor: usize, kept: &[Variable], arrival: &[Variable]) -> Variable {
        let seconds = self.network.seconds[processor] / self.scale;
        let seconds = if seconds.is_finite() { seconds } else { 0.0 };
        let mut before = None;
        let mut done = arrival[0];
        for (kept, arrival) in kept.iter().zip(arrival) {
            done = rows.quantity();
            rows.after(done, &[(*arrival, 1.0), (*kept, seconds)], 0.0);
            if let Some(before) = before {
                rows.after(done, &[(before, 1.0), (*kept, seconds)], 0.0);
            }
            before = Some(done);
        }
        done
    }

    /// Sends the messages of a processor; returns the end of the last one, if there are any.
    fn send(
        &self,
        rows: &mut Rows,
        processor: usize,
        may: &[Vec<bool>],
        carried: &[Vec<Variable>],
        arrival: &[Vec<Variable>],
    ) -> Option<Variable> {
        let mut port = None;
        let mut link_free = vec![None; self.network.links.len()];
        for installment in 0..carried.len() {
            for &link in self.network.out[processor].iter().filter(|link| may[installment][**link]) {
                let carried = carried[installment][link];
                let end = rows.quantity();
                let (cost, constant) = self.message(rows, link, &[carried], 1.0);
                let since = |before: Variable| [&[(before, 1.0)], &cost[..]].concat();
                rows.after(end, &since(arrival[processor][installment]), constant);
                let free = match self.task.ports {
                    Ports::One => &mut port,
                    Ports::All => &mut link_free[link],
                };
                if let Some(before) = free.replace(end) {
                    rows.after(end, &since(before), constant);
                }
                rows.after(arrival[self.network.links[link].to][installment], &[(end, 1.0)], 0.0);
            }
        }
        port
    }

    /// Cost of a message with these parts: the variable and the fixed part.
    fn message(&self, rows: &mut Rows, link: usize, parts: &[Variable], size: f64) -> (Sum, f64) {
        let link = self.network.links[link];
        let (startup, seconds) = (link.startup / self.scale, size * link.seconds / self.scale);
        match self.startups {
            Startups::Paid => (parts.iter().map(|part| (*part, seconds)).collect(), startup),
            Startups::Spread => (parts.iter().map(|part| (*part, seconds + startup)).collect(), 0.0),
            Startups::Decided => {
                let mut sum: Sum = parts.iter().map(|part| (*part, seconds)).collect();
                if startup > 0.0 {
                    let pays = rows.problem.add_binary_var(0.0);
                    let parts: Sum = parts.iter().map(|part| (*part, 1.0)).collect();
                    rows.after(pays, &parts, 0.0);
                    sum.push((pays, startup));
                }
                (sum, 0.0)
            }
        }
    }

    /// Results go back the way that the load came. `done` becomes when a processor's results are complete, its own and those behind it.
    fn collect(&self, rows: &mut Rows, may: &[Vec<bool>], carried: &[Vec<Variable>], done: &[Variable], port: &[Option<Variable>]) {
        for processor in 0..self.network.processors() {
            let mut before = port[processor];
            let mut order = self.network.out[processor].clone();
            if self.task.last_first {
                order.reverse();
            }
            for link in order {
                if !may.iter().any(|may| may[link]) {
                    continue;
                }
                let parts: Vec<Variable> = carried.iter().map(|carried| carried[link]).collect();
                let (cost, constant) = self.message(rows, link, &parts, self.task.results);
                let back = rows.quantity();
                let since = |time: Variable| [&[(time, 1.0)], &cost[..]].concat();
                rows.after(back, &since(done[self.network.links[link].to]), constant);
                if let (Ports::One, Some(before)) = (self.task.ports, before.replace(back)) {
                    rows.after(back, &since(before), constant);
                }
                rows.after(done[processor], &[(back, 1.0)], 0.0);
            }
        }
    }
}
