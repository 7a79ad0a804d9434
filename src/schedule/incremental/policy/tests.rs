use super::*;
use crate::schedule::neighbourhood::place;
use crate::schedule::policy::Action;
use rand::SeedableRng;

/// A node of four; in the tree 2 and 1 are below 0, and 3 below 2.
fn node(me: NodeId, trigger: Trigger) -> Incremental {
    Incremental::new(place("hypercube:2", 4, me), ChaCha8Rng::seed_from_u64(1), trigger, 500, 1.0)
}

fn view(now: Ticks, ready: u32, running: u32) -> View {
    View { now, ready, running, workers: 1 }
}

fn tell(to: NodeId, message: Message) -> Action<Message> {
    Action::Tell { to, message }
}

fn load(node: NodeId, running: u32, ready: u32) -> NodeLoad {
    NodeLoad { node, running, ready }
}

fn summary(loads: &[NodeLoad]) -> Message {
    Message::Loads(LoadSummary { loads: loads.to_vec(), ..LoadSummary::default() })
}

#[test]
fn who_idles_wishes_once_a_round_and_then_those_who_have_something_to_spare() {
    let mut act = Actions::default();
    let mut policy = node(2, Trigger::Any);
    policy.start(&view(0, 0, 0), &mut act);
    assert_eq!(act.take(), [tell(0, Message::Wish)]);
    policy.on_idle(&view(1, 0, 0), &mut act);
    policy.on_message(3, Message::Wish, &view(2, 0, 0), &mut act);
    assert_eq!(act.take(), [], "one wish goes up");
    policy.on_message(0, Message::Ask, &view(3, 0, 0), &mut act);
    assert_eq!(act.take(), [tell(3, Message::Ask)]);
    policy.on_message(3, summary(&[load(3, 0, 0)]), &view(4, 0, 0), &mut act);
    assert_eq!(act.take(), [tell(0, summary(&[load(3, 0, 0), load(2, 0, 0)]))]);
    policy.on_message(0, Message::Over { idle: true }, &view(5, 0, 0), &mut act);
    assert_eq!(act.take(), [tell(3, Message::Over { idle: true })]);
    policy.on_change(&view(6, 0, 1), &mut act);
    policy.on_change(&view(7, 0, 0), &mut act);
    assert_eq!(act.take(), [], "that somebody idles is known");
    policy.on_change(&view(8, 1, 1), &mut act);
    assert_eq!(act.take(), [tell(0, Message::Wish)], "one task more than workers");
}

#[test]
fn the_host_asks_decides_and_waits_longer_each_time_that_nothing_moved() {
    let mut act = Actions::default();
    let mut policy = node(0, Trigger::Any);
    let mut pauses = Vec::new();
    let mut now = 0;
    for _ in 0..5 {
        policy.on_message(2, Message::Wish, &view(now, 5, 1), &mut act);
        while let [Action::Timer { at }] = act.take()[..] {
            pauses.push(at - now);
            now = at;
            policy.on_timer(&view(now, 5, 1), &mut act);
        }
        policy.on_message(2, summary(&[load(2, 0, 0), load(3, 0, 0)]), &view(now, 5, 1), &mut act);
        assert_eq!(act.take(), [], "one is missing");
        policy.on_message(1, summary(&[load(1, 1, 0)]), &view(now, 5, 1), &mut act);
        assert_eq!(act.take(), [Action::Phase { kept: vec![1, 1, 0, 0] }]);
        policy.on_freeze(&view(now, 5, 1), &mut act);
        policy.on_change(&view(now, 0, 1), &mut act);
        policy.on_phase(PhaseEnd { moved: 0, took: 100 }, &view(now, 5, 1), &mut act);
        assert_eq!(act.take(), []);
    }
    assert_eq!(pauses, [100, 40_000, 80_000, 160_000]);
}

#[test]
fn a_node_in_a_phase_answers_when_it_has_ended() {
    let mut act = Actions::default();
    let mut policy = node(1, Trigger::Any);
    policy.on_freeze(&view(0, 3, 1), &mut act);
    policy.on_message(0, Message::Ask, &view(1, 0, 1), &mut act);
    assert_eq!(act.take(), []);
    policy.on_phase(PhaseEnd { moved: 3, took: 7 }, &view(2, 0, 1), &mut act);
    let answer = LoadSummary { loads: vec![load(1, 1, 0)], moved: 3, took: 7, worked: 2, ..LoadSummary::default() };
    assert_eq!(act.take(), [tell(0, Message::Loads(answer))]);
}

#[test]
fn where_all_must_idle_wishes_gather_and_what_is_spawned_waits() {
    let mut act = Actions::default();
    let mut policy = node(2, Trigger::All);
    policy.on_new(&[New { item: ItemId(7), hops: 0 }], Origin::Spawned, &view(0, 0, 0), &mut act);
    assert_eq!(act.take(), [], "3, below, may have something to do");
    policy.on_message(3, Message::Wish, &view(1, 0, 0), &mut act);
    assert_eq!(act.take(), [tell(0, Message::Wish)]);
    policy.on_freeze(&view(2, 0, 0), &mut act);
    assert_eq!(act.take(), [Action::Queue(ItemId(7))]);
    policy.on_new(&[New { item: ItemId(8), hops: 1 }], Origin::Migrated { from: 0 }, &view(3, 0, 0), &mut act);
    assert_eq!(act.take(), [Action::Queue(ItemId(8))], "what a phase brought is scheduled");
}

#[test]
fn periodic_asks_every_period_and_nobody_wishes() {
    let mut act = Actions::default();
    let mut policy = node(0, Trigger::Periodic);
    policy.start(&view(0, 0, 0), &mut act);
    assert_eq!(act.take(), [Action::Timer { at: 500 }]);
    policy.on_idle(&view(5, 0, 0), &mut act);
    assert_eq!(act.take(), []);
    policy.on_timer(&view(500, 4, 1), &mut act);
    assert_eq!(act.take(), [Action::Timer { at: 1000 }, tell(2, Message::Ask), tell(1, Message::Ask)]);
}

#[test]
fn under_a_published_criterion_nodes_tell_how_long_they_worked() {
    let mut act = Actions::default();
    let mut policy = node(1, Trigger::Published(crate::trigger::Criterion::Cumulative));
    policy.start(&view(0, 1, 0), &mut act);
    policy.on_change(&view(0, 0, 1), &mut act);
    policy.on_change(&view(100, 0, 0), &mut act);
    policy.on_message(0, Message::Ask, &view(150, 0, 0), &mut act);
    let answer = LoadSummary { loads: vec![load(1, 0, 0)], worked: 100, ..LoadSummary::default() };
    assert_eq!(act.take(), [tell(0, Message::Steps(answer, Some(Worked::of(100))))]);
    // Nothing since the last round.
    policy.on_message(0, Message::Over { idle: false }, &view(160, 0, 0), &mut act);
    policy.on_message(0, Message::Ask, &view(170, 0, 0), &mut act);
    let answer = LoadSummary { loads: vec![load(1, 0, 0)], worked: 100, ..LoadSummary::default() };
    assert_eq!(act.take(), [tell(0, Message::Steps(answer, Some(Worked::of(0))))]);
}

#[test]
fn the_host_begins_a_phase_when_idle_time_has_reached_what_a_phase_costs() {
    let mut act = Actions::default();
    let mut policy = node(0, Trigger::Published(crate::trigger::Criterion::Cumulative));
    policy.start(&view(0, 10, 0), &mut act);
    policy.on_change(&view(0, 9, 1), &mut act);
    act.take();
    let mut phases = Vec::new();
    for round in 1..=6u64 {
        let now = 500 * round;
        policy.on_timer(&view(now, 9, 1), &mut act);
        // A round takes 400, so that a phase is expected to cost 800.
        let later = now + 400;
        let idle = |nodes: &[NodeLoad], worked: Worked| {
            Message::Steps(LoadSummary { loads: nodes.to_vec(), ..LoadSummary::default() }, Some(worked))
        };
        policy.on_message(1, idle(&[load(1, 0, 0)], Worked::of(0)), &view(later, 9, 1), &mut act);
        policy.on_message(2, idle(&[load(2, 0, 0), load(3, 0, 0)], Worked::of(0).and(Worked::of(0))), &view(later, 9, 1), &mut act);
        if act.take().iter().any(|action| matches!(action, Action::Phase { .. })) {
            phases.push(round);
            break;
        }
    }
    // The host alone works: 900 and then 500 a round, of which three quarters are lost: 675 and 375.
    assert_eq!(phases, [2]);
}
