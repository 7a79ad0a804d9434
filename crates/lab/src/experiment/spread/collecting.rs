//! Output of shares: fetched in the order of the input, and reduced.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::{Sink, SpreadSetting};
use crate::divisible::spread::SpreadOrder;
use crate::divisible::spread::collect;
use crate::workload::kernels::{self, Errors, Process, Reduce, Sums};
use equipoise::error::{Error, Result};
use equipoise::node;
use equipoise::transport::world::World;

/// Collects what was written, if the computation writes; how long it took, in seconds.
///
/// # Errors
/// If output cannot be fetched, is not what is to be reduced, or the sink does not take it.
pub fn collect(world: &mut World, setting: &SpreadSetting, order: &SpreadOrder, reduce: &Reduce, sink: Sink) -> Result<f64> {
    if !setting.computation.writes() {
        return Ok(0.0);
    }
    let owners: Rc<[_]> = setting.owners(order).into();
    let ranks = setting.overlay.placement.ranks();
    let mut reducing = world.held().contains(&setting.origin_rank).then(|| Reducing::begin(reduce, setting.patience, sink));
    let ended = node::run(world, &setting.overlay, |node| {
        let reducing = if node.me() == setting.origin { reducing.take() } else { None };
        let (owners, outputs, origin) = (owners.clone(), setting.desk.clone(), setting.origin);
        async move {
            if node.me() >= ranks {
                return Ok(0);
            }
            let began = node.now();
            match reducing {
                None => collect::collect(node.clone(), origin, owners, outputs, |_, _| Ok(())).await?,
                Some(reducing) => {
                    let reducing = RefCell::new(reducing?);
                    collect::collect(node.clone(), origin, owners, outputs, |share, bytes| reducing.borrow_mut().take(share, bytes))
                        .await?;
                    reducing.into_inner().end()?;
                }
            }
            Ok(node.now() - began)
        }
    })?;
    Ok(ended.into_iter().next().map_or(0.0, |(_, ticks)| ticks as f64 / 1e9))
}

/// Treatment of output on the originator.
enum Reducing {
    Concat(Sink),
    Sum { sink: Sink, sums: Sums, share: Option<usize>, line: Vec<u8> },
    Program { program: Running, sink: Sink },
}

impl Reducing {
    fn begin(reduce: &Reduce, patience: Duration, sink: Sink) -> Result<Reducing> {
        Ok(match reduce {
            Reduce::Concat => Reducing::Concat(sink),
            Reduce::Sum => Reducing::Sum { sink, sums: Sums::default(), share: None, line: Vec::new() },
            Reduce::Program(program) => Reducing::Program { program: Running::start(program, patience)?, sink },
        })
    }

    /// Takes the next bytes of a share; none if it has ended.
    fn take(&mut self, number: usize, bytes: &[u8]) -> Result<()> {
        match self {
            Reducing::Concat(sink) => sink(bytes),
            Reducing::Program { program, .. } => program.process.give(bytes),
            Reducing::Sum { sums, share, line, .. } => {
                if *share != Some(number) {
                    if share.is_some() {
                        sums.add(line)?;
                    }
                    line.clear();
                    *share = Some(number);
                }
                line.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn end(self) -> Result<()> {
        match self {
            Reducing::Concat(_) => Ok(()),
            Reducing::Sum { mut sink, mut sums, share, line } => {
                if share.is_some() {
                    sums.add(&line)?;
                }
                sink(sums.line().as_bytes())
            }
            Reducing::Program { program, mut sink } => sink(&program.end()?),
        }
    }
}

/// A program that reduces.
struct Running {
    name: String,
    process: Process<Vec<u8>>,
}

impl Running {
    fn start(program: &str, patience: Duration) -> Result<Running> {
        let name = format!("--reduce '{program}'");
        let keep = |kept: &mut Vec<u8>, bytes: &[u8]| {
            kept.extend_from_slice(bytes);
            Ok(())
        };
        let process = Process::start(name.clone(), program, Errors::Shown, patience, Vec::new(), keep)?;
        Ok(Running { name, process })
    }

    fn end(mut self) -> Result<Vec<u8>> {
        let (status, output) = self.process.end()?;
        match status.success() {
            true => output,
            false => Err(Error::Failed(format!("{}: {}; there is no answer", self.name, kernels::how(status)))),
        }
    }
}
