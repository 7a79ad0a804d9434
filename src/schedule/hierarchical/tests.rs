use rand::SeedableRng;

use super::*;
use crate::schedule::policy::Action;
use crate::topology::{RankId, Topology};

const VIEW: View = View { now: 5, ready: 0, running: 0, workers: 1 };
const SHARED: LayoutOptions = LayoutOptions { set: MedianSet::Default, host_rank: RankId::FIRST, host_works: true, medians_work: true };

fn overlay(dimension: u32, ranks: u32) -> Overlay {
    Overlay::one_host(Topology::parse(&format!("hypercube:{dimension}"), ranks).unwrap(), ranks).unwrap()
}

fn node(me: NodeId, dimension: u32, ranks: u32, options: LayoutOptions) -> Levels {
    let overlay = overlay(dimension, ranks);
    let layout = Arc::new(Layout::of(&overlay, options).unwrap());
    let place = Place { me, host: 0, overlay, workers: 1, unit: 1 };
    Levels::new(place, ChaCha8Rng::seed_from_u64(u64::from(me)), layout, 2, true)
}

fn new(item: u64, hops: u32) -> New {
    New { item: ItemId(item), hops }
}

#[test]
fn q8_has_sixteen_regions_of_sixteen() {
    let layout = Layout::of(&overlay(8, 256), SHARED).unwrap();
    assert_eq!(layout.regions.len(), 16);
    assert!(layout.regions.iter().all(|region| region.members.len() == 16 && region.members.contains(&region.median)));
}

#[test]
fn virtual_nodes_stand_in_no_list_and_dedicated_ones_neither() {
    // Q3 on 5 ranks: medians 0 and 7; 7 is virtual, and of its region 3, 5, 6, 7 only 3 is real.
    let members = |options| -> Vec<Vec<NodeId>> {
        Layout::of(&overlay(3, 5), options).unwrap().regions.into_iter().map(|region| region.members).collect()
    };
    assert_eq!(members(SHARED), [vec![0, 1, 2, 4], vec![3]]);
    assert_eq!(members(LayoutOptions { host_works: false, ..SHARED }), [vec![1, 2, 4], vec![3]]);
    assert_eq!(members(LayoutOptions { host_rank: RankId::new(3), host_works: false, ..SHARED }), [vec![0, 1, 2, 4], vec![]]);
    assert_eq!(members(LayoutOptions { medians_work: false, ..SHARED }), [vec![1, 2, 4], vec![3]]);
    let eight = Layout::of(&overlay(3, 8), LayoutOptions { medians_work: false, ..SHARED }).unwrap();
    assert_eq!(eight.regions[1], Region { median: 7, members: vec![3, 5, 6] });
    // With the full code on Q2 every processor is its own region, and the median has to work.
    let full = LayoutOptions { set: MedianSet::Full, host_rank: RankId::FIRST, host_works: true, medians_work: false };
    assert!(Layout::of(&overlay(2, 4), full).unwrap().regions.iter().all(|region| region.members == [region.median]));
    let alone = Layout::of(&overlay(0, 1), LayoutOptions { host_works: false, ..SHARED }).unwrap_err();
    assert_eq!(alone.to_string(), "scheduler hierarchical: host=dedicated needs at least 2 ranks, there is 1");
}

#[test]
fn a_processor_asks_once_for_all_children_and_sends_them_where_the_median_says() {
    let mut processor = node(5, 3, 8, SHARED);
    let mut act = Actions::default();
    processor.on_end(ItemId(1), &[new(2, 0), new(3, 0), new(4, 0)], &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Tell { to: 7, message: Message::Place { completed: 1, wanted: 3, request: 0 } }]);
    processor.on_message(7, Message::Placed { request: 0, places: vec![5, 3, 7] }, &VIEW, &mut act);
    let migrate = |item, to| Action::Send { item: ItemId(item), to, migration: true };
    assert_eq!(act.take(), [Action::Queue(ItemId(2)), migrate(3, 3), migrate(4, 7)]);
    // It migrates once: what has come stays.
    processor.on_new(&[new(9, 1)], Origin::Migrated { from: 3 }, &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Queue(ItemId(9))]);
    processor.on_end(ItemId(9), &[], &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Tell { to: 7, message: Message::Place { completed: 1, wanted: 0, request: 1 } }]);
    processor.on_new(&[new(10, 0)], Origin::Joined { parent: ItemId(1) }, &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Tell { to: 7, message: Message::Place { completed: 0, wanted: 1, request: 1 } }]);
}

#[test]
fn a_median_answers_and_places_what_comes_from_the_host() {
    let mut median = node(7, 3, 8, SHARED);
    let mut act = Actions::default();
    // All are idle: the requester itself, then one of the others.
    median.on_message(5, Message::Place { completed: 0, wanted: 2, request: 8 }, &VIEW, &mut act);
    let [Action::Tell { to: 5, message: Message::Placed { request: 8, places } }] = &act.take()[..] else { panic!("no places") };
    assert!(places[0] == 5 && [3, 6, 7].contains(&places[1]), "{places:?}");
    median.on_message(5, Message::Place { completed: 1, wanted: 0, request: 0 }, &VIEW, &mut act);
    median.on_message(places[1], Message::Place { completed: 1, wanted: 0, request: 0 }, &VIEW, &mut act);
    assert_eq!(act.take(), []);
    // A root stays at the median while it has nothing, and then goes to another.
    median.on_new(&[new(1, 0), new(2, 0)], Origin::Migrated { from: 0 }, &VIEW, &mut act);
    let placed = act.take();
    assert_eq!(placed[0], Action::Queue(ItemId(1)));
    assert!(matches!(placed[1], Action::Send { item: ItemId(2), to: 3 | 5 | 6, migration: true }), "{placed:?}");
}

/// The regions that were given tasks, by label.
fn given(actions: &[Action<Message>]) -> Vec<u32> {
    actions.iter().filter_map(|action| if let Action::Label { label, .. } = action { Some(label - 1) } else { None }).collect()
}

/// Returns true if the actions queue this task on the node.
fn is_queued(actions: &[Action<Message>], item: u64) -> bool {
    actions.contains(&Action::Queue(ItemId(item)))
}

#[test]
fn the_host_gives_each_region_a_sub_tree_as_soon_as_it_can_and_expands_the_others_into_two_for_each() {
    let mut host = node(0, 3, 8, SHARED);
    let mut act = Actions::default();
    host.on_new(&[new(1, 0)], Origin::Root { stream: false }, &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Tell { to: 7, message: Message::Open }, Action::Queue(ItemId(1))]);
    // Of two one is given away, to any region, the other is expanded.
    host.on_end(ItemId(1), &[new(2, 0), new(3, 0)], &VIEW, &mut act);
    let actions = act.take();
    let first = given(&actions);
    assert!(first.len() == 1 && is_queued(&actions, 3), "{actions:?}");
    // A single one is expanded, even if regions have none.
    host.on_end(ItemId(3), &[new(4, 0)], &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Queue(ItemId(4))]);
    // Now there are four, including the one that was given before.
    host.on_end(ItemId(4), &[new(5, 0), new(6, 0), new(7, 0)], &VIEW, &mut act);
    let actions = act.take();
    let mut all = [first.clone(), given(&actions)].concat();
    assert_ne!(all[1], first[0], "the other region had nothing");
    all.sort_unstable();
    assert_eq!(all, [0, 0, 1, 1], "{actions:?}");
    assert!(actions.iter().all(|action| !matches!(action, Action::Send { to: 7, migration: true, .. })), "{actions:?}");
    // When a graph of region 1 is answered the next goes there.
    host.on_answer(2, &VIEW, &mut act);
    host.on_new(&[new(20, 0)], Origin::Root { stream: true }, &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Label { item: ItemId(20), label: 2 }, Action::Send { item: ItemId(20), to: 7, migration: false }]);
    // What the join of an expanded task spawns is spread as well, what that of another spawns stays in the region.
    host.on_new(&(30..40).map(|item| new(item, 0)).collect::<Vec<_>>(), Origin::Joined { parent: ItemId(1) }, &VIEW, &mut act);
    assert!(act.take().iter().any(|action| matches!(action, Action::Send { to: 7, migration: false, .. })));
    host.on_message(7, Message::Tasks(100), &VIEW, &mut act);
    host.on_new(&[new(50, 0)], Origin::Joined { parent: ItemId(44) }, &VIEW, &mut act);
    let stays = act.take();
    assert!(matches!(stays[0], Action::Queue(_) | Action::Send { to: 1 | 2 | 4, migration: true, .. }), "{stays:?}");
}

#[test]
fn a_median_lends_children_once_its_own_processors_have_work_and_the_host_has_opened_the_regions() {
    let mut median = node(7, 3, 8, SHARED);
    let mut act = Actions::default();
    let place = |median: &mut Levels, act: &mut Actions<Message>, wanted| {
        median.on_message(5, Message::Place { completed: 0, wanted, request: 0 }, &VIEW, act);
        let actions = act.take();
        let Some(Action::Tell { to: 5, message: Message::Placed { places, .. } }) = actions.first() else { panic!("no places") };
        (places.iter().filter(|place| **place == 0).count(), actions[1..].to_vec())
    };
    let tell = |tasks| Action::Tell { to: 0, message: Message::Tasks(tasks) };
    // In closed regions nothing is lent, and medians tell each other nothing.
    assert_eq!(place(&mut median, &mut act, 5), (0, vec![]));
    median.on_message(0, Message::Open, &VIEW, &mut act);
    assert_eq!(act.take(), []);
    // One of four has two tasks now, the others one: region 0 gets the same number per processor.
    assert_eq!(place(&mut median, &mut act, 7), (4, vec![tell(8)]));
    // It has them now, and nothing more to do.
    median.on_message(0, Message::Tasks(0), &VIEW, &mut act);
    assert_eq!(place(&mut median, &mut act, 8), (8, vec![]));
    for processor in [3, 5, 6, 7] {
        median.on_message(processor, Message::Place { completed: 1, wanted: 0, request: 0 }, &VIEW, &mut act);
    }
    assert_eq!(act.take(), [tell(4)]);
}

#[test]
fn a_loan_is_a_migration_and_is_placed_where_it_comes() {
    let mut processor = node(5, 3, 8, SHARED);
    let mut act = Actions::default();
    processor.on_end(ItemId(1), &[new(2, 0)], &VIEW, &mut act);
    act.take();
    processor.on_message(7, Message::Placed { request: 0, places: vec![0] }, &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Send { item: ItemId(2), to: 0, migration: true }]);
    let mut median = node(0, 3, 8, SHARED);
    median.on_new(&[new(1, 1), new(2, 1)], Origin::Migrated { from: 5 }, &VIEW, &mut act);
    let placed = act.take();
    assert_eq!(placed[0], Action::Queue(ItemId(1)));
    assert!(matches!(placed[1], Action::Send { item: ItemId(2), to: 1 | 2 | 4, migration: false }), "{placed:?}");
    // The lender's median is informed when they are done, since they were too few to be announced to all.
    median.on_message(0, Message::Open, &VIEW, &mut act);
    median.on_end(ItemId(1), &[], &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Tell { to: 7, message: Message::Tasks(0) }]);
    // From there it goes nowhere else.
    let mut last = node(2, 3, 8, SHARED);
    last.on_new(&[new(7, 1)], Origin::Migrated { from: 0 }, &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Queue(ItemId(7))]);
}

#[test]
fn enough_roots_and_streams_are_spread_as_they_are_and_one_region_needs_no_spreading() {
    let mut act = Actions::default();
    let mut host = node(0, 3, 8, SHARED);
    host.on_new(&(0..4).map(|item| new(item, 0)).collect::<Vec<_>>(), Origin::Root { stream: false }, &VIEW, &mut act);
    assert_eq!(act.take().iter().filter(|action| matches!(action, Action::Label { .. })).count(), 4);
    let mut host = node(0, 3, 8, SHARED);
    host.on_new(&[new(1, 0)], Origin::Root { stream: true }, &VIEW, &mut act);
    assert!(matches!(act.take()[0], Action::Label { .. }));
    let mut host = node(0, 2, 4, SHARED);
    host.on_new(&[new(1, 0)], Origin::Root { stream: false }, &VIEW, &mut act);
    assert_eq!(act.take(), [Action::Label { item: ItemId(1), label: 1 }, Action::Queue(ItemId(1))]);
}

#[test]
fn unequal_regions_need_more_sub_trees() {
    assert_eq!(enough(&[16; 16], 2), 32);
    assert_eq!(enough(&[4, 1], 2), 10);
    assert_eq!(enough(&[4, 0, 3], 1), 3);
    assert_eq!((enough(&[4], 2), enough(&[4, 0], 2)), (0, 0));
}

#[test]
fn options_are_read() {
    let regions = |spec: &str| super::super::find(spec).unwrap().regions(&overlay(3, 8)).unwrap();
    assert_eq!(regions("hierarchical").len(), 2);
    assert_eq!(regions("hierarchical:medians=hadamard").len(), 8);
    assert_eq!(regions("hierarchical:medians=dedicated,host=dedicated,spread=4")[0].members, [1, 2, 4]);
    for (spec, sentence) in [
        ("hierarchical:medians=no", "scheduler hierarchical: medians is default, hadamard, shared or dedicated, not 'no'"),
        (
            "hierarchical:medians=shared,medians=hadamard,medians=dedicated",
            "scheduler hierarchical: medians is given twice; it takes one of default and hadamard, and one of shared and dedicated",
        ),
        ("hierarchical:host=shared,host=dedicated", "scheduler hierarchical: host is given twice"),
        ("hierarchical:spread=0", "scheduler hierarchical: spread is a number of sub-trees from 1 to 1000000, not '0'"),
        ("hierarchical:regions=0", "scheduler hierarchical: regions is open or closed, not '0'"),
        ("hierarchical:level=1", "scheduler hierarchical has no option 'level'; it has medians, host, host_rank, spread, regions"),
    ] {
        assert_eq!(super::super::find(spec).err().unwrap().to_string(), sentence);
    }
}

#[test]
fn a_chain_is_not_expanded_for_ever() {
    let mut host = node(0, 3, 8, SHARED);
    let mut act = Actions::default();
    host.on_new(&[new(1, 0)], Origin::Root { stream: false }, &VIEW, &mut act);
    for item in 1..4 {
        assert!(is_queued(&act.take(), item));
        host.on_end(ItemId(item), &[new(item + 1, 0)], &VIEW, &mut act);
    }
    assert_eq!(act.take(), [Action::Queue(ItemId(4))]);
    host.on_end(ItemId(4), &[new(5, 0)], &VIEW, &mut act);
    assert!(act.take().iter().any(|action| matches!(action, Action::Label { item: ItemId(5), .. })));
}
