use super::*;
use proptest::prelude::*;

/// The chunks in the order of requests, which come in turn.
fn sequence(rule: Rule, tasks: u64, ranks: usize, rounding: Option<Rounding>, least: u64) -> Vec<u64> {
    let mut chunks = Chunks::new(rule, tasks, &vec![1.0; ranks], rounding, least);
    let (mut left, mut sizes) = (tasks, Vec::new());
    while left > 0 {
        let chunk = chunks.next(sizes.len() % ranks, left);
        assert!(chunk > 0 && chunk <= left);
        left -= chunk;
        sizes.push(chunk);
    }
    sizes
}

fn plain(rule: Rule, tasks: u64, ranks: usize) -> Vec<u64> {
    sequence(rule, tasks, ranks, None, 1)
}

fn times(sizes: &[u64], each: usize) -> Vec<u64> {
    sizes.iter().flat_map(|size| vec![*size; each]).collect()
}

#[test]
fn a_thousand_tasks_on_four_ranks() {
    assert_eq!(plain(Rule::Gss, 1000, 4), [250, 188, 141, 106, 79, 59, 45, 33, 25, 19, 14, 11, 8, 6, 4, 3, 3, 2, 1, 1, 1, 1]);
    assert_eq!(plain(Rule::Fac2, 1000, 4), times(&[125, 63, 31, 16, 8, 4, 2, 1], 4));
    assert_eq!(plain(Rule::Wf, 1000, 4), times(&[125, 63, 31, 16, 8, 4, 2, 1], 4));
    assert_eq!(plain(Rule::Tss, 1000, 4), [125, 117, 109, 101, 93, 85, 77, 69, 61, 53, 45, 37, 28]);
}

/// Sequences published by others (Apache SystemDS, ParForTaskPartitionerTest; Sun Fortran 805-4940), and their formulas.
#[test]
fn published_sequences() {
    assert_eq!(plain(Rule::Static, 101, 4), [26, 25, 25, 25]);
    assert_eq!(plain(Rule::Single, 101, 4), [26, 26, 26, 23]);
    let mut fixed = vec![4; 25];
    fixed.push(1);
    assert_eq!(plain(Rule::Fixed(4), 101, 4), fixed);
    assert_eq!(plain(Rule::Fac2, 101, 4), [times(&[13, 7, 3, 2], 4), vec![1]].concat());
    assert_eq!(sequence(Rule::Fac2, 101, 4, None, 4), [times(&[13, 7], 4), vec![4, 4, 4, 4, 4, 1]].concat());
    let down = Some(Rounding::Down);
    assert_eq!(sequence(Rule::Gss, 1000, 4, down, 10)[..3], [250, 187, 140]);
    assert_eq!(sequence(Rule::Fac2, 1000, 4, down, 4)[..12], times(&[125, 62, 31], 4));
    let up = Some(Rounding::Up);
    assert_eq!(sequence(Rule::Tss, 100, 4, up, 1), [13, 13, 13, 13, 13, 13, 13, 9]);
    assert_eq!(sequence(Rule::Tss, 100, 5, up, 1), [10; 10]);
    assert_eq!(plain(Rule::Fac2, 100, 5), [times(&[10, 5, 3], 5), vec![1; 10]].concat());
    assert_eq!(plain(Rule::Gss, 100, 5), [20, 16, 13, 11, 8, 7, 5, 4, 4, 3, 2, 2, 1, 1, 1, 1, 1]);
}

/// N = 1000, p = 4: TFSS and FISS as Chronopoulos, Andonie, Benche and Grosu 2001 print them (table 1; there the last chunks are not cut to what is
/// left), FISS rounded down as programs have it, and the formulas of the others.
#[test]
fn sequences_of_fixed_increasing_and_tapered_chunks() {
    let cut = |sizes: &[u64], each, last: &[u64]| [times(sizes, each), last.to_vec()].concat();
    assert_eq!(plain(Rule::Tfss, 1000, 4), cut(&[113, 81, 49], 4, &[17, 11]));
    assert_eq!(plain(Rule::Fiss { stages: 3 }, 1000, 4), times(&[50, 83, 117], 4));
    let down = Some(Rounding::Down);
    assert_eq!(sequence(Rule::Fiss { stages: 3 }, 1000, 4, down, 1), cut(&[50, 83, 116], 4, &[4]));
    // 250 / log2(250) = 31.4.
    assert_eq!(plain(Rule::Mfsc, 1000, 4), cut(&[31], 32, &[8]));
    // (sqrt(2) 1000 / (4 sqrt(ln 4)))^(2/3) = 300.28^(2/3) = 44.8.
    assert_eq!(plain(Rule::Fsc { overhead: 1.0 }, 1000, 4), cut(&[45], 22, &[10]));
    assert_eq!(plain(Rule::Fsc { overhead: 1.0 }, 1000, 1), [1000]);
    // Without variation tapering is guided self-scheduling; published for that: 250 187 140.
    assert_eq!(plain(Rule::Tap { variation: Some(0.0) }, 1000, 4), plain(Rule::Gss, 1000, 4));
    assert_eq!(sequence(Rule::Tap { variation: Some(0.0) }, 1000, 4, down, 1)[..3], [250, 187, 140]);
    // 250 + 0.845 - 1.3 sqrt(500.4225) = 221.76; (1000 - 222) / 4 = 194.5, 194.5 + 0.845 - 1.3 sqrt(389.4225) = 169.7.
    assert_eq!(plain(Rule::Tap { variation: Some(1.0) }, 1000, 4)[..2], [222, 170]);
    // Nothing has been measured.
    assert_eq!(plain(Rule::Tap { variation: None }, 100, 5), plain(Rule::Gss, 100, 5));
}

#[test]
fn tapering_learns_how_times_vary() {
    let mut chunks = Chunks::new(Rule::Tap { variation: None }, 1000, &[1.0; 4], None, 1);
    // Of ten tasks half took 0 and half 2: mean 1, variance 10/9.
    chunks.learn(2, Measured { tasks: 10, time: 10.0, squares: 20.0 });
    let variation = 1.3 * (10f64 / 9.0).sqrt();
    assert_eq!(chunks.next(0, 1000), tapered(250.0, variation).ceil() as u64);
}

/// Two ranks, of which one is three times as fast: weights 1.5 and 0.5.
#[test]
fn later_reports_count_more() {
    let report = |time: f64| Measured { tasks: 10, time: 10.0 * time, squares: 10.0 * time * time };
    for rule in [Rule::AwfB, Rule::AwfC, Rule::AwfD, Rule::AwfE] {
        let mut chunks = Chunks::new(rule, 1600, &[1.0; 2], None, 1);
        assert_eq!((chunks.next(0, 1600), chunks.next(1, 1550)), (50, 50), "the first chunks are small");
        chunks.learn(0, report(1.0));
        chunks.learn(1, report(3.0));
        assert_eq!((chunks.next(0, 1200), chunks.next(1, 1200)), (450, 150), "{rule:?}");
        // (1 * 30 + 2 * 90) / (1 * 10 + 2 * 10) = 7 a task: weights 7/4 and 1/4 of 150.
        chunks.learn(0, Measured::default());
        chunks.learn(0, report(1.0));
        chunks.learn(1, report(9.0));
        assert_eq!((chunks.next(0, 600), chunks.next(1, 600)), (263, 38), "{rule:?}");
    }
}

#[test]
fn a_round_keeps_its_weights_and_its_size() {
    let report = |time: f64| Measured { tasks: 10, time: 10.0 * time, squares: 10.0 * time * time };
    let seen = |rule| {
        let mut chunks = Chunks::new(rule, 1600, &[1.0; 2], None, 1);
        chunks.learn(0, report(1.0));
        chunks.learn(1, report(1.0));
        let first = chunks.next(0, 1200);
        chunks.learn(1, report(9.0));
        (first, chunks.next(1, 900))
    };
    assert_eq!([seen(Rule::AwfB), seen(Rule::AwfD)], [(300, 300); 2], "the round's");
    // (10 + 180) / 30 = 19/3 a task: weight 2 / (1 + 19/3) = 3/11 of 225.
    assert_eq!([seen(Rule::AwfC), seen(Rule::AwfE)], [(300, 62); 2], "at once");
}

#[test]
fn measured_ranks_get_what_they_can_do() {
    for rule in [Rule::Awf, Rule::Af] {
        let mut chunks = Chunks::new(rule, 1600, &[1.0; 2], None, 1);
        assert_eq!((chunks.next(0, 1600), chunks.next(1, 1550)), (50, 50), "the first chunks are small");
        for (rank, time) in [(0, 3.0), (1, 1.0)] {
            chunks.learn(rank, Measured { tasks: 50, time: 50.0 * time, squares: 50.0 * time * time });
        }
        let (slow, fast) = (chunks.next(0, 1200), chunks.next(1, 1200));
        assert!(fast == 3 * slow, "{rule:?}: {slow} and {fast}");
    }
    let mut weighted = Chunks::new(Rule::Wf, 800, &[1.0, 3.0], None, 1);
    assert_eq!((weighted.next(0, 800), weighted.next(1, 700)), (100, 300));
}

#[test]
fn adaptive_factoring_gives_less_the_more_times_differ() {
    let chunk = |squares: f64| {
        let mut chunks = Chunks::new(Rule::Af, 1000, &[1.0; 4], None, 1);
        (0..4).for_each(|rank| chunks.learn(rank, Measured { tasks: 10, time: 10.0, squares }));
        chunks.next(0, 800)
    };
    assert_eq!(chunk(10.0), 200, "tasks that are all alike are divided at once");
    assert!(chunk(20.0) < 200 && chunk(100.0) < chunk(20.0));
}

fn rules() -> impl Strategy<Value = Rule> {
    use Rule::*;
    prop_oneof![
        Just(Static),
        Just(Cyclic),
        Just(Single),
        Just(Ss),
        (1u64..50).prop_map(Fixed),
        Just(Gss),
        Just(Fac2),
        Just(Tss),
        Just(Wf),
        Just(Awf),
        Just(Af),
        (0.0..3.0).prop_map(|overhead| Fsc { overhead }),
        Just(Mfsc),
        Just(Tfss),
        (2u64..6).prop_map(|stages| Fiss { stages }),
        prop_oneof![Just(None), (0.0..3.0).prop_map(Some)].prop_map(|variation| Tap { variation }),
        Just(AwfB),
        Just(AwfC),
        Just(AwfD),
        Just(AwfE)
    ]
}

proptest! {
    #[test]
    fn chunks_add_up_and_decrease(
        rule in rules(),
        tasks in 0u64..3000,
        ranks in 1usize..70,
        rounding in prop_oneof![Just(None), Just(Some(Rounding::Up)), Just(Some(Rounding::Down))],
        least in 1u64..20,
    ) {
        let sizes = sequence(rule, tasks, ranks, rounding, least);
        prop_assert_eq!(sizes.iter().sum::<u64>(), tasks);
        if let Rule::Fiss { .. } = rule {
            let last = sizes.len().saturating_sub(1);
            prop_assert!(sizes[..last].windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", sizes);
        } else {
            prop_assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]), "{:?}", sizes);
        }
        prop_assert!(sizes.iter().rev().skip(1).all(|size| *size >= least));
    }
}
