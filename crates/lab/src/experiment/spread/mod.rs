//! One big input, divided over the ranks: costs, plan, distribution, answer; and what it would have taken otherwise.
//!
//! ```text
//!   open, measure -> calibrate -> plan, cut -> clocks, barrier -> distribute -> answer -> collect -> baselines
//! ```

mod calibration;
mod collecting;
mod input;
mod record;
mod unpack;
mod watched;

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use self::input::{FoundInput, Input, InputStream};
use self::record::Made;
pub use self::record::{Baseline, FailedBaseline, LayersRecord, LinkRecord, RankTimeline, Split, SpreadRecord};
pub use self::watched::SpreadProgress;
use self::watched::Watched;
use super::settle;
use super::site::Site;
use crate::divisible::spread::demand::on_demand;
use crate::divisible::spread::flood::flood;
use crate::divisible::spread::kernel::Kernels;
use crate::divisible::spread::program::distribute;
use crate::divisible::spread::{
    InputSource, Layers, LinkCosts, Range, Records, Routes, SpreadCosts, SpreadEnding, SpreadOrder, SpreadPlan, SpreadTree, clock, cut,
    plan,
};
pub use crate::divisible::spread::{LayeredForm, TimeInterval};
pub use crate::workload::kernels::Answer;
use crate::workload::kernels::{Computation, Desk, Pace, Reduce};
use equipoise::error::{Error, Result};
use equipoise::node::{self, Event, Node};
use equipoise::topology::{NodeId, Overlay, RankId};
use equipoise::transport::sim::Network;
use equipoise::transport::world::World;

/// Everything on the originator, as a baseline.
fn alone(origin: RankId) -> String {
    format!("rank {origin} alone")
}

const SCATTER: &str = "equal shares";
const DEMAND: &str = "chunks on demand";

/// The epoch of clocks and barriers.
const APART: u32 = equipoise::node::epochs::APART;

/// Input, computation, topology and options of a division.
pub struct SpreadSpec {
    /// `-` is standard input.
    pub input: PathBuf,
    /// Whether a compressed input is used as it is.
    pub raw: bool,
    pub computation: Computation,
    pub reduce: Reduce,
    pub records: Records,
    pub overlay: Overlay,
    pub distribution: Distribution,
    /// The rank that has the input, and gets the answer.
    pub origin: RankId,
    /// Seconds per byte of every link, emulated by delays; for layers on real ranks.
    pub link: Option<f64>,
    /// `None` for the number that promises most.
    pub installments: Option<u32>,
    pub calibration: Option<PathBuf>,
    /// Emulated seconds per byte by rank (in simulation: charged); `None` for the real times of the ranks.
    pub pace: Option<Vec<f64>>,
    /// Bytes of its share that a rank keeps at most.
    pub room: u64,
    /// A program that stands still for longer is killed; real time, in simulation too.
    pub patience: Duration,
    pub baselines: bool,
    /// Whether a program is run on a sample of the input first, to see how fast it is.
    pub sample: bool,
    pub seed: u64,
}

/// Distribution of shares to their nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Down a tree of the topology's routes, through one port, piece by piece.
    #[default]
    Tree,
    /// Layer by layer over all links, as Blazewicz and Drozdowski 1995 have it.
    Layers(LayeredForm),
}

/// Destination of collected output, on the originator.
pub type Sink = Box<dyn FnMut(&[u8]) -> Result<()>>;

/// Answer and record, on the originator.
pub struct SpreadOutcome {
    pub answer: Answer,
    pub record: SpreadRecord,
}

/// Settings that all runs of an experiment share.
struct SpreadSetting {
    overlay: Overlay,
    /// The originator's node, and its rank.
    origin: NodeId,
    origin_rank: RankId,
    tree: Rc<SpreadTree>,
    /// Layers of the distribution, if it is layered.
    layers: Option<Rc<Layers>>,
    link: Option<f64>,
    /// Emulated seconds of each byte, by rank; empty if none are.
    pace: Vec<f64>,
    /// The simulated network; empty on real ranks.
    network: String,
    computation: Computation,
    records: Records,
    length: u64,
    desk: Rc<Desk>,
    room: u64,
    patience: Duration,
}

/// Divides. Collected output goes to `sink` on the originator. `progress` is called on every rank with the number of bytes of its share that are
/// done, and the length of its share (in simulation of all shares).
///
/// # Errors
/// Wrong usage if there is no such originator, or the input cannot be read; a failure if it shrinks, a computation fails, or output cannot be written; as [`World::run`].
pub fn spread(world: &mut World, spec: &SpreadSpec, sink: Sink, progress: SpreadProgress) -> Result<Option<SpreadOutcome>> {
    settle::check_rank("origin", spec.origin, world.ranks())?;
    let mut input = opened(world, spec)?;
    let length = settle::from_rank(world, spec.origin, || Ok(input.as_ref().map_or(0, InputSource::len)))?;
    check_times(spec, length)?;
    let network = world.as_simulation().map(|world| named(world.network())).unwrap_or_default();
    let setting = SpreadSetting::new(world, spec, length, network)?;
    let began = Instant::now();
    let (mut costs, calibration, predicts) = calibration::costs(world, &setting, input.as_mut(), spec.calibration.as_deref())?;
    if let (Some(seconds), Some(costs)) = (spec.link, &mut costs) {
        costs.links = vec![LinkCosts { startup: 0.0, per_byte: seconds }; costs.links.len()];
        costs.links[setting.origin as usize] = LinkCosts::default();
    }
    let calibration_seconds = began.elapsed().as_secs_f64();
    // An empty input has no costs, unless they were read from a file.
    let planner = costs.as_ref().filter(|_| input.is_some());
    let plan = if predicts { plan::plan } else { plan::in_proportion };
    let planned = planner.map(|costs| match &setting.layers {
        Some(layers) => layers.plan(costs, length, predicts),
        None => plan(&setting.tree, costs, length, spec.installments, setting.room),
    });
    let (ordered, order) = setting.order(world, planned, planner, input.as_mut(), setting.layers.as_deref())?;
    let mine = RankId::each(world.held()).map(|rank| order.ranges[setting.overlay.placement.real_node_of(rank) as usize].len()).sum();
    let watched = Rc::new(Watched::new(setting.desk.clone(), mine, progress));
    let (ending, offsets) = setting.distribute(world, &order, watched, input.as_ref(), setting.layers.as_deref())?;
    let checked = setting.answer(ending.as_ref(), input.as_ref());
    let answer = settle::agree(world, checked)?;
    let collecting = collecting::collect(world, &setting, &order, &spec.reduce, sink)?;
    setting.desk.clear();
    let baselines = match spec.baselines {
        true => setting.baselines(world, costs.as_ref(), input.as_mut(), answer.as_ref())?,
        false => Vec::new(),
    };
    let site = Site::of(world, spec.seed)?;
    let (Some(costs), Some(plan), Some(ending), Some(answer)) = (&costs, &ordered, &ending, answer) else { return Ok(None) };
    let made = Made {
        setting: &setting,
        input: spec.input.display().to_string(),
        unpacked_from: input.as_ref().and_then(Input::packed),
        site,
        costs,
        plan,
        ranges: &order.ranges,
        ending,
        offsets: &offsets,
        calibration,
        calibration_seconds,
        predicts,
    };
    let mut record = made.record();
    record.collecting = collecting;
    if spec.baselines {
        record.compare(baselines);
    }
    Ok(Some(SpreadOutcome { answer, record }))
}

/// Checks that emulated times can be counted in nanoseconds.
fn check_times(spec: &SpreadSpec, length: u64) -> Result<()> {
    /// A century: a thirtieth of what can be counted, which leaves room for the baselines.
    const LONGEST: f64 = 3e9;
    let slowest = spec.pace.iter().flatten().copied().fold(0.0, f64::max);
    for (option, seconds) in [("--rate and --speeds", slowest), ("--link-rate", spec.link.unwrap_or(0.0))] {
        let all = seconds * length as f64;
        if all > LONGEST {
            return Err(Error::usage(format!(
                "{option}: at {seconds:.3e} s a byte the {length} bytes take {all:.3e} s; {LONGEST:.0e} s are possible"
            )));
        }
    }
    Ok(())
}

/// A network's name, and a digest of all that a measured one has: its file may have changed.
fn named(network: &Network) -> String {
    match network {
        Network::Measured(measured) => {
            // Fowler, Noll and Vo's, 64 bits: the same on all machines and in all versions.
            let digest = format!("{measured:?}")
                .bytes()
                .fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
            format!("{network} ({digest:016x})")
        }
        _ => network.to_string(),
    }
}

/// The input, on the originator.
fn opened(world: &mut World, spec: &SpreadSpec) -> Result<Option<Input>> {
    let found = if world.held().contains(&spec.origin) { input::find(&spec.input, spec.raw).map(Some) } else { Ok(None) };
    let mut found = settle::agree(world, found)?;
    if !settle::from_rank(world, spec.origin, || Ok(matches!(found, Some(FoundInput::InputStream(_)))))? {
        return Ok(found.and_then(|found| match found {
            FoundInput::Ready(input) => Some(input),
            FoundInput::InputStream(_) => None,
        }));
    }
    let overlay = equipoise::agreement::one_node_per_rank(world)?;
    let aside = node::run(world, &overlay, |node| {
        let found = if node.rank_of(node.me()) == spec.origin { found.take() } else { None };
        async move {
            let aside = match found {
                Some(FoundInput::InputStream(stream)) => Some(put_aside(&node.epoch(APART), stream).await?),
                _ => None,
            };
            node.everyone().barrier(&node).await?;
            Ok(aside)
        }
    })?;
    let aside = aside.into_iter().find_map(|(_, aside)| aside);
    settle::agree(world, aside.transpose())
}

/// Runs on a worker, so that the watchdog sees progress: it takes until the writer of the input has finished.
async fn put_aside(node: &Node, stream: InputStream) -> Result<Result<Input>> {
    node.start(move |worker| stream.put_aside(worker));
    loop {
        match node.next_event().await {
            Event::Finished { finished, .. } => {
                let foreign = |_| Error::Failed("a worker came back with something else than an input".into());
                return Ok(*finished.output.downcast::<Result<Input>>().map_err(foreign)?);
            }
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
    }
}

impl SpreadSetting {
    fn new(world: &World, spec: &SpreadSpec, length: u64, network: String) -> Result<SpreadSetting> {
        let origin = spec.overlay.placement.real_node_of(spec.origin);
        let layers = match spec.distribution {
            Distribution::Tree => None,
            Distribution::Layers(form) => {
                let layers = Layers::of(form, &spec.overlay.topology, spec.overlay.placement.ranks(), origin);
                Some(Rc::new(layers.map_err(|why| Error::input("distribution", format!(" {}: {why}", form.name())))?))
            }
        };
        let records = spec.computation.records(spec.records, length);
        let placement = &spec.overlay.placement;
        let pace = spec.pace.as_ref().map(|seconds| {
            let by_node = (0..placement.ranks()).map(|node| seconds.get(placement.rank_of(node).index()).copied().unwrap_or(0.0));
            Rc::new(Pace { seconds: by_node.collect(), is_virtual: world.is_simulated() })
        });
        Ok(SpreadSetting {
            layers,
            origin,
            origin_rank: spec.origin,
            link: spec.link,
            pace: spec.pace.as_deref().unwrap_or_default().to_vec(),
            network,
            tree: Rc::new(SpreadTree::of(&spec.overlay.topology, placement.ranks(), origin)),
            overlay: spec.overlay.clone(),
            computation: spec.computation.clone(),
            records,
            length,
            desk: spec.computation.desk(records, length, pace, spec.patience, spec.sample),
            room: spec.room,
            patience: spec.patience,
        })
    }

    /// Cuts the input as planned, and announces the ranges to all ranks.
    fn order(
        &self,
        world: &mut World,
        planned: Option<SpreadPlan>,
        costs: Option<&SpreadCosts>,
        input: Option<&mut Input>,
        layers: Option<&Layers>,
    ) -> Result<(Option<SpreadPlan>, Rc<SpreadOrder>)> {
        let mut kept = None;
        let made = settle::from_rank(world, self.origin_rank, || {
            let (Some(planned), Some(costs), Some(input)) = (planned, costs, input) else {
                return Err(Error::Failed("there is no plan".into()));
            };
            let cuts = cut::cut(input, self.records, &planned.lengths())?;
            let (plan, ranges) = match layers {
                Some(layers) => layers.with_cuts(&planned, costs, &cuts),
                None => planned.with_cuts(&self.tree, costs, &cuts),
            };
            let order =
                SpreadOrder { origin: self.origin, ranges, installments: plan.installments, order: plan.order.clone(), room: self.room };
            kept = Some(plan);
            Ok(order)
        })?;
        Ok((kept, Rc::new(made)))
    }

    fn distribute(
        &self,
        world: &mut World,
        order: &Rc<SpreadOrder>,
        kernels: Rc<dyn Kernels>,
        input: Option<&Input>,
        layers: Option<&Layers>,
    ) -> Result<(Option<SpreadEnding>, Vec<i64>)> {
        let routes = layers.map(|layers| Rc::new(layers.routes(&order.ranges)));
        self.check_room(routes.as_deref())?;
        let source = input.map(|input| input.again().map(|again| again as Box<dyn InputSource>)).transpose();
        let mut source = settle::agree(world, source)?;
        let ranks = self.overlay.placement.ranks();
        let ended = node::run(world, &self.overlay, |node| {
            let source = if node.me() == self.origin { source.take() } else { None };
            let (tree, order, kernels) = (self.tree.clone(), order.clone(), kernels.clone());
            let (routes, origin, link) = (routes.clone(), self.origin, self.link);
            async move {
                if node.me() >= ranks {
                    return Ok((None, Vec::new()));
                }
                let apart = node.epoch(APART);
                let offsets = clock::offsets(&apart, ranks, origin).await?;
                if let Some(all) = node::Group::spaced(0, 1, ranks, node.me()) {
                    all.barrier(&apart).await?;
                }
                let ending = match routes {
                    Some(routes) => flood(node, routes, order, kernels, source, link).await?,
                    None => distribute(node, tree, order, kernels, source).await?,
                };
                Ok((ending, offsets))
            }
        })?;
        Ok(ended.into_iter().map(|(_, ended)| ended).find(|(ending, _)| ending.is_some()).unwrap_or_default())
    }

    /// Checks that every node has room for the load that it forwards.
    fn check_room(&self, routes: Option<&Routes>) -> Result<()> {
        let Some(routes) = routes else { return Ok(()) };
        let placement = &self.overlay.placement;
        let volumes = self.tree.others().map(|node| (routes.volume(node), placement.rank_of(node)));
        match volumes.max() {
            Some((most, rank)) if most > self.room => Err(Error::input(
                "memory",
                format!(
                    ": rank {rank} has to keep {most} bytes until it has sent them on (--distribution {}), {} are allowed",
                    self.layers.as_ref().map_or("tree", |layers| layers.form().name()),
                    self.room
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The answer, where the originator is.
    fn answer(&self, ending: Option<&SpreadEnding>, input: Option<&Input>) -> Result<Option<Answer>> {
        let (Some(ending), Some(input)) = (ending, input) else { return Ok(None) };
        input.check()?;
        self.computation.answer(ending.answers.clone()?).map(Some)
    }

    /// Times of other ways to do the same, in seconds, or why they failed; each must give the same answer. A program that succeeds once need not succeed
    /// again: the division's own answer stands.
    fn baselines(
        &self,
        world: &mut World,
        costs: Option<&SpreadCosts>,
        mut input: Option<&mut Input>,
        answer: Option<&Answer>,
    ) -> Result<Vec<(String, Result<f64, String>)>> {
        let mut taken = Vec::new();
        let alone = alone(self.origin_rank);
        for name in [SCATTER, &alone, DEMAND] {
            let planner = costs.filter(|_| input.is_some());
            let ending = match name {
                DEMAND => self.on_demand(world, input.as_deref())?,
                _ => {
                    let make = if name == alone { plan::alone } else { plan::equal };
                    let planned = planner.map(|costs| make(&self.tree, costs, self.length));
                    let (_, order) = self.order(world, planned, planner, input.as_deref_mut(), None)?;
                    self.distribute(world, &order, self.desk.clone(), input.as_deref(), None)?.0
                }
            };
            self.desk.clear();
            let own = self.answer(ending.as_ref(), input.as_deref());
            let checked = match (&own, answer) {
                (Ok(Some(other)), Some(answer)) if !self.computation.writes() && other != answer => {
                    Err(Error::wrong_result(format!("{name}: its answer is another one than that of the division")))
                }
                _ => Ok(()),
            };
            settle::agree(world, checked)?;
            let seconds = |ending: SpreadEnding| own.map(|_| (ending.ended - ending.began) as f64 / 1e9).map_err(|why| why.to_string());
            taken.extend(ending.map(|ending| (name.to_string(), seconds(ending))));
        }
        Ok(taken)
    }

    fn on_demand(&self, world: &mut World, input: Option<&Input>) -> Result<Option<SpreadEnding>> {
        let source = input.map(|input| input.again().map(|again| again as Box<dyn InputSource>)).transpose();
        let mut source = settle::agree(world, source)?;
        let ranks = self.overlay.placement.ranks();
        let ended = node::run(world, &self.overlay, |node| {
            let source = if node.me() == self.origin { source.take() } else { None };
            let (kernels, records, origin) = (self.desk.clone(), self.records, self.origin);
            async move {
                if node.me() >= ranks {
                    return Ok(None);
                }
                let apart = node.epoch(APART);
                if let Some(all) = node::Group::spaced(0, 1, ranks, node.me()) {
                    all.barrier(&apart).await?;
                }
                on_demand(node, origin, ranks, records, kernels, source).await
            }
        })?;
        Ok(ended.into_iter().find_map(|(_, ending)| ending))
    }

    /// Nodes whose output is wanted, in the order of the input.
    fn owners(&self, order: &SpreadOrder) -> Vec<(u32, Range)> {
        let all = std::iter::once(self.origin).chain(order.order.iter().copied());
        let all = all.map(|owner| (owner, order.ranges[owner as usize]));
        all.filter(|(owner, range)| !range.is_empty() || (self.length == 0 && *owner == self.origin)).collect()
    }
}
