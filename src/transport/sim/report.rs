//! The report of a run in which no node can go on: which node waits for which.

use std::fmt::Write;

use super::state::{Shared, State, Waits};
use super::units::format_ticks;
use crate::error::Error;
use crate::topology::NodeId;
use crate::transport::{Interest, Wanted};

/// Nodes and withheld messages that are named one by one.
const SHOWN: usize = 20;

/// Why a run is given up.
pub(super) enum Reason {
    /// No event is left.
    NothingLeft,
    /// Events occur, but none that is progress.
    NoProgress,
}

/// The error of a run that is stuck. Its first line says what happened, the others what each node waits for, since when.
pub(super) fn stuck(shared: &Shared, reason: Reason) -> Error {
    let state = shared.state.borrow();
    let waiting: Vec<NodeId> = (0..state.nodes.len() as NodeId).filter(|node| !state.nodes[*node as usize].ended).collect();
    let mut report = match reason {
        Reason::NothingLeft => format!("nothing is left to happen at {} of virtual time", format_ticks(state.now)),
        Reason::NoProgress => {
            let idle = format_ticks(state.now.saturating_sub(state.progress));
            format!("no task or message moved for {idle} of virtual time, until {}", format_ticks(state.now))
        }
    };
    let of = match state.nodes.len() {
        1 => "the only node waits".into(),
        all => format!("{} of {all} nodes wait", waiting.len()),
    };
    let _ = write!(report, ", and {of}");
    for &node in waiting.iter().take(SHOWN) {
        let _ = write!(report, "\n  {}", waiting_node(shared, &state, node));
    }
    more(&mut report, waiting.len(), "nodes");
    for (envelope, sent) in state.disturbance.held.iter().take(SHOWN) {
        let tag = tag_name(&state, envelope.tag);
        let (src, dst) = (envelope.src, envelope.dst);
        let _ = write!(report, "\n  withheld by rule: {tag} from node {src} to node {dst}, sent at {}", format_ticks(*sent));
    }
    more(&mut report, state.disturbance.held.len(), "messages withheld by rule");
    for rank in &state.lost {
        let _ = write!(report, "\n  rank {rank} is lost");
    }
    Error::Stuck { report }
}

fn more(report: &mut String, all: usize, what: &str) {
    if all > SHOWN {
        let _ = write!(report, "\n  and {} more {what}", all - SHOWN);
    }
}

fn waiting_node(shared: &Shared, state: &State, number: NodeId) -> String {
    let node = &state.nodes[number as usize];
    let rank = shared.overlay.placement.rank_of(number);
    let what = match &node.waits {
        Waits::Unknown => "for something outside its port".into(),
        Waits::Event(interest) => format!("for {interest}"),
        Waits::Room => format!("for room in its outbox ({} bytes are under way)", state.outbox[number as usize]),
        Waits::Turn => "for its next poll of the network".into(),
    };
    let since = format_ticks(state.now.saturating_sub(node.since));
    let inbox = match node.inbox.len() {
        0 => "its inbox is empty".into(),
        1 => "1 event that it did not ask for is in its inbox".into(),
        many => format!("{many} events that it did not ask for are in its inbox"),
    };
    format!("node {number} on rank {rank} waits {what}, since {since}; {inbox}")
}

/// The name of a tag, as far as a waiting node or a rule knows it.
fn tag_name(state: &State, id: u16) -> String {
    let waited = state.nodes.iter().find_map(|node| match node.waits {
        Waits::Event(Interest { what: Wanted::Message { tag, .. }, .. }) if tag.id() == id => Some(tag),
        _ => None,
    });
    match waited.or_else(|| state.disturbance.rules.tag(id)) {
        Some(tag) => format!("'{}'", tag.name()),
        None => format!("tag {id:#06x}"),
    }
}
