use super::*;

fn named(name: &str) -> Uts {
    let (_, tree, _) = NAMED.iter().find(|(known, ..)| *known == name).unwrap();
    Uts::new(*tree, 1000)
}

fn hex(knot: &Knot) -> String {
    knot.state.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first `children` children of a node.
fn grown(knot: &Knot, children: u32) -> Vec<Knot> {
    let mut stack = Vec::new();
    knot.grow(children, &mut stack);
    stack
}

/// Nodes at each depth from 0 on, down to the last one asked for.
fn widths(tree: &Tree, levels: usize) -> Vec<usize> {
    let draw = Draw::new(*tree);
    let mut level = vec![Knot::root(tree.seed)];
    let mut widths = Vec::new();
    for _ in 0..levels {
        widths.push(level.len());
        level = level.iter().flat_map(|knot| grown(knot, draw.children(knot))).collect();
    }
    widths
}

#[test]
fn the_sample_trees_begin_as_they_should() {
    // Root state; value and children of the root and of its first two children; nodes at depth 0, 1, ..
    type Begin = (&'static str, &'static str, [(u32, u32); 2], u32, [usize; 4]);
    let begins: [Begin; 3] = [
        ("T1", "c6988ab70cc9559ae4d6cba254e29a845a85f86b", [(1_518_729_323, 5), (2_142_344_773, 27)], 1_765_374_811, [1, 5, 59, 189]),
        ("T3", "a11dabbcec7aab309c890ab3dbc256eaeb582782", [(1_800_939_394, 2000), (1_267_279_703, 0)], 550_773_364, [1, 2000, 1864, 1872]),
        ("T5", "dc17227f8924044a827dea5fbb982ded4d106317", [(1_292_919_575, 4), (447_204_428, 0)], 145_098_548, [1, 4, 10, 53]),
    ];
    for (name, state, values, second, at_depth) in begins {
        let Uts { tree, draw, .. } = named(name);
        let root = Knot::root(tree.seed);
        let born = grown(&root, 2);
        assert_eq!(hex(&root), state, "{name}");
        for (knot, (value, children)) in [root, born[0]].iter().zip(values) {
            assert_eq!((knot.value(), draw.children(knot)), (value, children), "{name}");
        }
        assert_eq!(born[1].value(), second, "{name}");
        assert_eq!(widths(&tree, 4), at_depth, "{name}");
    }
    assert_eq!(named("T1").draw.children(&grown(&Knot::root(19), 2)[1]), 7);
}

#[test]
fn children_are_hashed_as_defined_however_many() {
    use sha1::{Digest, Sha1};
    let knot = Knot { depth: 3, ..Knot::root(5) };
    for count in [0, 1, 7, 8, 9, 100, 2000] {
        let expected = (0..count).map(|index: u32| {
            let state = Sha1::new().chain_update(knot.state).chain_update(index.to_be_bytes()).finalize();
            Knot { state: state.into(), depth: 4 }
        });
        assert_eq!(grown(&knot, count), expected.collect::<Vec<_>>(), "{count}");
    }
}

#[test]
fn numbers_of_children_are_those_of_the_definition() {
    for kind in [Shape::Fixed, Shape::Linear, Shape::Cyclic, Shape::Exponential].map(Kind::Geometric) {
        let Kind::Geometric(shape) = kind else { continue };
        let tree = Tree { kind, b0: 3.0, depth: 7, ..DEFAULT };
        let draw = Draw::new(tree);
        // Deeper than what is worked out beforehand, too.
        for depth in (0..40).chain([5000]) {
            for knot in grown(&Knot { depth, ..Knot::root(depth) }, 50).into_iter().map(|knot| Knot { depth, ..knot }) {
                let expected = tree.expected(shape, depth);
                let p = 1.0 / (1.0 + expected);
                let uniform = f64::from(knot.value()) / 2f64.powi(31);
                let children = ((1.0 - uniform).ln() / (1.0 - p).ln()).floor().clamp(0.0, 100.0);
                assert_eq!(draw.children(&knot), if expected <= 0.0 { 0 } else { children as u32 }, "{kind:?} at {depth}");
            }
        }
    }
}

#[test]
fn expected_children_follow_the_shape() {
    let tree = Tree { b0: 6.0, depth: 16, ..DEFAULT };
    let expected = |shape, depth| tree.expected(shape, depth);
    for shape in [Shape::Fixed, Shape::Linear, Shape::Cyclic, Shape::Exponential] {
        assert_eq!(expected(shape, 0), 6.0);
    }
    assert_eq!((expected(Shape::Fixed, 15), expected(Shape::Fixed, 16)), (6.0, 0.0));
    assert_eq!((expected(Shape::Linear, 4), expected(Shape::Linear, 16)), (4.5, 0.0));
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert!(
        close(expected(Shape::Cyclic, 4), 6.0) && close(expected(Shape::Cyclic, 12), 1.0 / 6.0) && close(expected(Shape::Cyclic, 80), 1.0)
    );
    assert_eq!(expected(Shape::Cyclic, 81), 0.0);
    assert!(close(expected(Shape::Exponential, 16), 1.0) && close(expected(Shape::Exponential, 4), 6f64.sqrt()));
}

#[test]
fn the_sample_trees_have_their_sizes() {
    // Above four million nodes each: without optimisation that takes minutes.
    let sizes = if cfg!(debug_assertions) { &NAMED[..0] } else { &NAMED[..] };
    for (name, tree, (nodes, depth, leaves)) in sizes {
        assert_eq!(Uts::new(*tree, 1).count(), Tally { nodes: *nodes, depth: *depth, leaves: *leaves }, "{name}");
    }
}

#[test]
fn hybrids_turn_binomial_halfway() {
    let hybrid = Tree { kind: Kind::Hybrid(Shape::Fixed), b0: 3.0, depth: 6, q: 0.25, m: 2, seed: 4 };
    let (geometric, binomial) = (Tree { kind: Kind::Geometric(Shape::Fixed), ..hybrid }, Tree { kind: Kind::Binomial, ..hybrid });
    let [hybrid, geometric, binomial] = [hybrid, geometric, binomial].map(Draw::new);
    let mut level = vec![Knot::root(4)];
    for depth in 0..6 {
        assert!(!level.is_empty());
        for knot in &level {
            let as_if = if depth < 3 { &geometric } else { &binomial };
            assert_eq!(hybrid.children(knot), as_if.children(knot));
        }
        level = level.iter().flat_map(|knot| grown(knot, geometric.children(knot).max(1))).collect();
    }
}

/// A worker that adds up the amounts that it receives.
#[derive(Default)]
struct Told(Ticks);

impl Worker for Told {
    fn checkpoint(&mut self) {}

    fn charge(&mut self, ticks: Ticks) {
        self.0 += ticks;
    }

    fn sleep(&mut self, _: Ticks) {}

    fn spin(&mut self, _: Ticks) {}
}

fn root(uts: &Uts) -> Subtrees {
    match uts.roots() {
        Roots::One(part) => part,
        _ => unreachable!("one root"),
    }
}

#[test]
fn slices_splits_and_spawned_halves_lose_no_node() {
    for grain in [1, 100, 5_000] {
        let tree = Tree { kind: Kind::Geometric(Shape::Fixed), depth: 6, seed: 19, ..DEFAULT };
        let uts = Uts::new(tree, grain);
        let mut worker = Told::default();
        let (mut parts, mut tally, mut tasks) = (vec![root(&uts)], Tally::default(), 1);
        while let Some(mut part) = parts.pop() {
            if parts.len() % 3 == 1 {
                let half = part.stack.len() / 2;
                if let Some(given) = uts.split(&mut part) {
                    // The part given away lies nearer to the root than the part kept, and is half of the work.
                    assert_eq!(given.stack.len(), half);
                    assert!(given.stack.iter().all(|given| part.stack.iter().all(|kept| given.depth <= kept.depth)));
                    parts.push(given);
                    tasks += 1;
                }
            }
            let before = part.tally.nodes;
            match uts.step(part, 60_000, &mut worker) {
                Slice::More(part) => {
                    assert_eq!(part.tally.nodes - before, (60_000 / NODE).min(part.share.saturating_sub(before).max(1)));
                    parts.push(part);
                }
                Slice::Done(Yield::Answer(answer)) => tally = uts.combine(tally, answer),
                Slice::Done(Yield::Detached { tasks: halves, answer }) => {
                    assert!(halves.len() == 2 && halves.iter().all(|half| !half.stack.is_empty()));
                    assert!(answer.nodes <= grain.max(FIRST_SHARE) && answer.nodes >= grain.min(FIRST_SHARE));
                    tally = uts.combine(tally, answer);
                    tasks += halves.len();
                    parts.extend(halves);
                }
                Slice::Done(Yield::Children { .. }) => unreachable!("nobody waits"),
            }
        }
        assert_eq!(tally, uts.count(), "grain {grain}");
        assert_eq!(worker.0, NODE * tally.nodes);
        assert!(tasks > 3);
    }
}

#[test]
fn a_single_node_is_not_split() {
    let uts = named("T5");
    let mut part = root(&uts);
    assert!(uts.split(&mut part).is_none());
    assert_eq!(part.stack, [Knot::root(34)]);
}

#[test]
#[ignore = "measures; run it alone, in release"]
fn what_a_node_takes() {
    for (name, ..) in NAMED {
        let began = std::time::Instant::now();
        let tally = named(name).count();
        println!("{name}: {tally:?}, {:.1} ns a node", began.elapsed().as_nanos() as f64 / tally.nodes as f64);
    }
}
