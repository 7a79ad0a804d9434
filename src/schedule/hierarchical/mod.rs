//! Hierarchical scheduling: Ahmad, Ghafoor and Fox, "Hierarchical scheduling of dynamic parallel computations on hypercube multicomputers",
//! J. Parallel Distrib. Comput. 20, 1994. The cube is divided into regions around medians; the host spreads computations over the regions,
//! each median places the tasks of its region.
//!
//! 1. (4.1) The host assigns each root to the median of the region with the fewest graphs in flight (level-1 list), ties random.
//! 2. (4.2) A median assigns a task to the processor of its region with the fewest tasks assigned and not completed (level-2 list), those under
//!    way included; ties: the requester first, which then needs no message, else random. Siblings are placed one after the other.
//! 3. A processor whose task spawned asks its median, once for all of them, and sends each task where the median says. So a task migrates once
//!    at most, and a graph stays in its region.
//! 4. A completed task leaves the level-2 list; a parent before its children are placed. A parent that waits is not counted.
//! 5. The host hears of the answer of a root, which leaves the level-1 list.
//!
//! ```text
//!    host --root--> median --task (least loaded)--> processor
//!                     ^  |                              |  spawned 3:
//!                     |  +--- Placed [a, b, c] ---------|  one request
//!                     +------ Place 3, 1 completed -----+  ---> a, b, c
//! ```
//!
//! Cost: two messages for all the children of a task, one for each task without, and at most one migration a task; with open regions, one message to
//! each other region whenever the number of a region's tasks has doubled or halved, and at most one more for a loan. Guarantee: within a region no
//! processor is given a task while another has fewer.
//!
//! Where it departs from the paper:
//! - Medians are those of `topology::hadamard`, regions disjoint and as equal as possible; by default regions of a whole cube hold at least four processors,
//!   and fewer where nodes are virtual: 4 and 1 on 5 ranks, 4, 4, 2 and 2 on 12 (`medians=hadamard` takes the full code on small cubes too).
//! - Where regions have unequal numbers of processors the level-1 list counts graphs for each processor.
//! - A graph stays in its region by design, so a single root would keep one region busy: fewer roots than two for each region are expanded by the
//!   host, breadth first, until there are at least two sub-trees for each region (more where regions are unequal, so that the smallest gets two), or
//!   until that number of expansions was in vain; these are spread by the level-1 list. Where regions are open, one that has no sub-tree gets the
//!   next one at once, so that no region waits for the host's expansions. The option `spread` sets another number. Not for streams.
//! - Sub-trees differ in size, which is not known beforehand. So regions are open (except for streams) and lend each other work: a child that would
//!   have to wait in its region goes to the median of another region that has less, which places it; this counts as the task's migration
//!   (`lending`). With `regions=closed` sub-trees stay in their regions.
//! - A virtual node stands in no level-2 list; a virtual median is served by the rank that hosts it. Regions without processors get no graphs.
//! - `host=dedicated` takes the host out of the level-2 lists, `medians=dedicated` the medians where their region has another processor. The host
//!   expands few roots in any case.

mod layout;
mod lending;
mod lists;
mod median;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::policy::{Actions, AnyPolicy, ItemId, New, Origin, Place, Policy, View, erase};
use super::registry::{Entry, Facts, Region, Scheduler};
use crate::error::Result;
use crate::spec::{InvalidSpec, Options};
use crate::topology::hadamard::MedianSet;
use crate::topology::{Kind, NodeId, Overlay, RankId};
use layout::{Layout, LayoutOptions};
use lists::Level1;
use median::Median;

pub(super) static ENTRY: Entry = Entry {
    name: "hierarchical",
    title: "two levels: host and Hadamard medians",
    source: "Ahmad, Ghafoor and Fox 1994",
    options: "medians=default|hadamard, medians=shared|dedicated, host=shared|dedicated, host_rank=0 (where computations are submitted), spread=2 (sub-trees for each region), regions=open|closed (whether they lend each other work; closed for streams)",
    examples: &[
        "hierarchical",
        "hierarchical:medians=hadamard",
        "hierarchical:spread=1",
        "hierarchical:regions=closed",
        "hierarchical:host_rank=0",
    ],
    build,
    facts: Facts { kinds: &[Kind::Hypercube] },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    let (mut set, mut medians_work) = (None, None);
    // Set of medians, and whether they work: both may be given, each once.
    for value in options.values("medians")? {
        let is_second = match value {
            "default" => set.replace(MedianSet::Default).is_some(),
            "hadamard" => set.replace(MedianSet::Full).is_some(),
            "shared" => medians_work.replace(true).is_some(),
            "dedicated" => medians_work.replace(false).is_some(),
            _ => return Err(options.wrong("medians", value, "default, hadamard, shared or dedicated")),
        };
        if is_second {
            return Err(options.conflict("medians is given twice; it takes one of default and hadamard, and one of shared and dedicated"));
        }
    }
    let host_works = options.choice("host", &[("shared", true), ("dedicated", false)])?;
    let host_rank = options.read("host_rank", "a rank, 0 or more", |_: &RankId| true)?.unwrap_or_default();
    let spread = options.read("spread", "a number of sub-trees from 1 to 1000000", |number| (1..=1_000_000).contains(number))?;
    let open = options.choice("regions", &[("open", true), ("closed", false)])?.unwrap_or(true);
    let options = LayoutOptions {
        set: set.unwrap_or(MedianSet::Default),
        host_rank,
        host_works: host_works.unwrap_or(true),
        medians_work: medians_work.unwrap_or(true),
    };
    Ok(Arc::new(Hierarchical { options, spread: spread.unwrap_or(2), open, layout: Mutex::new(None) }))
}

struct Hierarchical {
    options: LayoutOptions,
    spread: usize,
    open: bool,
    /// The layout of the overlay that was last asked for: all nodes of a run share it.
    layout: Mutex<Option<(Overlay, Arc<Layout>)>>,
}

impl Hierarchical {
    fn layout(&self, overlay: &Overlay) -> Result<Arc<Layout>> {
        let mut last = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, layout)) = &*last
            && of == overlay
        {
            return Ok(layout.clone());
        }
        let layout = Arc::new(Layout::of(overlay, self.options)?);
        *last = Some((overlay.clone(), layout.clone()));
        Ok(layout)
    }
}

impl Scheduler for Hierarchical {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        let layout = self.layout(&place.overlay)?;
        Ok(erase(Levels::new(place, rng, layout, self.spread, self.open)))
    }

    fn host_rank(&self) -> RankId {
        self.options.host_rank
    }

    fn regions(&self, overlay: &Overlay) -> Result<Vec<Region>> {
        Ok(self.layout(overlay)?.regions.clone())
    }
}

/// Messages between processors and medians.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Message {
    /// To the median: number of completed tasks that it had assigned here (0 or 1), and number of tasks to be placed.
    Place { completed: u32, wanted: u32, request: u64 },
    /// To the processor: the places of the tasks of that request, in order.
    Placed { request: u64, places: Vec<NodeId> },
    /// Message from the host to the medians: regions lend each other tasks from now on.
    Open,
    /// To the other medians: the number of tasks of my region.
    Tasks(u32),
}

/// One node's part: any of the host, a median, and a processor.
struct Levels {
    place: Place,
    rng: ChaCha8Rng,
    layout: Arc<Layout>,
    /// The region that this node belongs to.
    region: u32,
    /// Tasks of requests that the median has not answered.
    asked: BTreeMap<u64, Vec<ItemId>>,
    requests: u64,
    median: Option<Median>,
    host: Option<RootControl>,
}

/// The host's part.
struct RootControl {
    level1: Level1,
    /// Sub-trees into which the roots are expanded.
    enough: usize,
    /// Number of sub-trees that were given to regions.
    given: usize,
    /// Tasks to be spread, or to be expanded before.
    frontier: VecDeque<ItemId>,
    /// Task that is being executed here to expand it.
    expanding: Option<ItemId>,
    /// Tasks that were expanded: their joins' children are spread too.
    expanded: BTreeSet<ItemId>,
    /// Whether regions lend each other tasks.
    lends: bool,
    /// Whether the medians have been informed that regions lend tasks.
    opened: bool,
}

/// Number of sub-trees with which each region gets `spread` of them, when they are spread in proportion to the processors; 0 where there is only one
/// region.
fn enough(processors: &[u32], spread: usize) -> usize {
    let working = || processors.iter().filter(|processors| **processors > 0);
    match working().min() {
        Some(smallest) if working().count() > 1 => spread * working().sum::<u32>().div_ceil(*smallest) as usize,
        _ => 0,
    }
}

impl Levels {
    fn new(place: Place, rng: ChaCha8Rng, layout: Arc<Layout>, spread: usize, open: bool) -> Levels {
        let (me, region) = (place.me, layout.region_of(place.me));
        let serves = layout.regions.iter().find(|region| region.median == me);
        let median = serves.map(|_| Median::new(me, place.workers, &layout.regions));
        let sizes: Vec<u32> = layout.regions.iter().map(|region| region.members.len() as u32).collect();
        let host = (me == place.host).then(|| RootControl {
            level1: Level1::new(&sizes),
            enough: enough(&sizes, spread),
            given: 0,
            frontier: VecDeque::new(),
            expanding: None,
            expanded: BTreeSet::new(),
            lends: open,
            opened: false,
        });
        Levels { place, rng, layout, region, asked: BTreeMap::new(), requests: 0, median, host }
    }

    fn my_median(&self) -> NodeId {
        self.layout.regions[self.region as usize].median
    }

    /// Sends a task where it was assigned.
    fn go(&self, item: ItemId, to: NodeId, act: &mut Actions<Message>) {
        if to == self.place.me { act.queue(item) } else { act.migrate(item, to) }
    }

    /// Asks for places for these, and says that a task has completed.
    fn ask(&mut self, items: Vec<ItemId>, completed: u32, act: &mut Actions<Message>) {
        let (me, wanted) = (self.place.me, items.len() as u32);
        if let Some(median) = &mut self.median {
            let places = median.place(me, completed, wanted, &mut self.rng);
            for (item, to) in items.into_iter().zip(places) {
                self.go(item, to, act);
            }
            return;
        }
        let request = self.requests;
        if wanted > 0 {
            self.requests += 1;
            self.asked.insert(request, items);
        }
        act.tell(self.my_median(), Message::Place { completed, wanted, request });
    }

    /// At the host: roots, or sub-trees of expanded ones.
    fn submit(&mut self, items: &[New], stream: bool, act: &mut Actions<Message>) {
        if let Some(host) = &mut self.host {
            host.frontier.extend(items.iter().map(|new| new.item));
            self.advance(stream, act);
        }
    }

    /// Spreads the frontier if it is wide enough, else expands it.
    fn advance(&mut self, stream: bool, act: &mut Actions<Message>) {
        if !stream {
            self.open_regions(act);
            self.give_to_the_empty(act);
        }
        let Some(host) = &mut self.host else { return };
        // A chain does not widen.
        let in_vain = host.expanded.len() >= host.enough;
        if !stream && !in_vain && host.given + host.frontier.len() < host.enough {
            if host.expanding.is_none()
                && let Some(item) = host.frontier.pop_front()
            {
                host.expanding = Some(item);
                act.queue(item);
            }
            return;
        }
        while let Some(item) = self.host.as_mut().and_then(|host| host.frontier.pop_front()) {
            self.give(item, act);
        }
    }

    /// Gives each region without sub-trees one, as long as another is left to be expanded. Where regions are closed it waits for its equal share.
    fn give_to_the_empty(&mut self, act: &mut Actions<Message>) {
        while let Some(host) = &mut self.host
            && host.lends
            && host.frontier.len() > 1
            && host.level1.has_empty()
            && let Some(item) = host.frontier.pop_front()
        {
            self.give(item, act);
        }
    }

    /// Gives the region with the fewest graphs one more.
    fn give(&mut self, item: ItemId, act: &mut Actions<Message>) {
        let Some(host) = &mut self.host else { return };
        host.given += 1;
        let region = host.level1.assign(&mut self.rng);
        act.label(item, region + 1);
        let to = self.layout.regions[region as usize].median;
        match &mut self.median {
            Some(median) if to == self.place.me => {
                let to = median.assign(&mut self.rng);
                self.go(item, to, act);
            }
            _ => act.submit(item, to),
        }
    }

    /// At the host: tells all medians, once, that regions lend each other tasks.
    fn open_regions(&mut self, act: &mut Actions<Message>) {
        let Some(host) = &mut self.host else { return };
        if !host.lends || std::mem::replace(&mut host.opened, true) {
            return;
        }
        for Region { median, .. } in self.layout.regions.iter().filter(|region| region.median != self.place.me) {
            act.tell(*median, Message::Open);
        }
        self.open();
    }

    fn open(&mut self) {
        if let Some(median) = &mut self.median {
            median.open();
        }
    }

    fn tell_news(&mut self, act: &mut Actions<Message>) {
        if let Some(median) = &mut self.median {
            median.tell_news(act);
        }
    }

    /// A task has come from another node: from the host, on loan from another region, or where it was assigned.
    fn arrived(&mut self, new: New, from: NodeId, act: &mut Actions<Message>) {
        let region = self.layout.region_of(from);
        match &mut self.median {
            Some(median) if new.hops == 0 => {
                let to = median.assign(&mut self.rng);
                self.go(new.item, to, act);
            }
            Some(median) if region != self.region => {
                let lender = self.layout.regions[region as usize].median;
                let to = median.borrow(lender, &mut self.rng);
                if to == self.place.me { act.queue(new.item) } else { act.submit(new.item, to) }
            }
            _ => act.queue(new.item),
        }
    }
}

impl Policy for Levels {
    type Message = Message;

    fn on_new(&mut self, items: &[New], origin: Origin, _: &View, act: &mut Actions<Message>) {
        match origin {
            Origin::Root { stream } => self.submit(items, stream, act),
            Origin::Joined { parent } if self.host.as_ref().is_some_and(|host| host.expanded.contains(&parent)) => {
                self.submit(items, false, act);
            }
            Origin::Migrated { from } => items.iter().for_each(|new| self.arrived(*new, from, act)),
            Origin::Spawned | Origin::Joined { .. } | Origin::Split => self.ask(items.iter().map(|new| new.item).collect(), 0, act),
        }
        self.tell_news(act);
    }

    fn on_end(&mut self, item: ItemId, spawned: &[New], _: &View, act: &mut Actions<Message>) {
        match &mut self.host {
            Some(host) if host.expanding == Some(item) => {
                host.expanding = None;
                host.expanded.insert(item);
                self.submit(spawned, false, act);
            }
            _ => self.ask(spawned.iter().map(|new| new.item).collect(), 1, act),
        }
        self.tell_news(act);
    }

    fn on_message(&mut self, from: NodeId, message: Message, _: &View, act: &mut Actions<Message>) {
        match message {
            Message::Place { completed, wanted, request } => {
                let Some(median) = &mut self.median else { return };
                let places = median.place(from, completed, wanted, &mut self.rng);
                if wanted > 0 {
                    act.tell(from, Message::Placed { request, places });
                }
                median.tell_news(act);
            }
            Message::Open => self.open(),
            Message::Tasks(tasks) => {
                if let Some(median) = &mut self.median {
                    median.heard(from, tasks);
                }
            }
            Message::Placed { request, places } => {
                let items = self.asked.remove(&request).unwrap_or_default();
                for (item, to) in items.into_iter().zip(places) {
                    self.go(item, to, act);
                }
            }
        }
    }

    fn on_answer(&mut self, label: u32, _: &View, act: &mut Actions<Message>) {
        if let Some(host) = &mut self.host {
            host.level1.answered(label - 1);
            self.give_to_the_empty(act);
            self.tell_news(act);
        }
    }
}

#[cfg(test)]
mod tests;
