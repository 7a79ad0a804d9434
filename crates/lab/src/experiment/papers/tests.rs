use super::evidence::Decision;
use super::*;

fn values(seed: u64, cases: u32) -> Result<Vec<Value>> {
    let samples: Vec<f64> = (0..cases).map(|case| ((seed + u64::from(case)) % 97) as f64).collect();
    Mean::of(&samples).map(|mean| vec![Value::new("numbers", mean)]).ok_or_else(|| Error::Failed("no case".into()))
}

#[test]
fn points_are_in_the_order_of_jobs_and_have_streams_of_their_own() {
    let job = |x: u32| Job::new(Item::Figure(1), "one", f64::from(x), [20, 40], values);
    let jobs: Vec<Job> = (0..30).map(job).collect();
    let points = measure(Paper::Wu, &jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    assert_eq!(points.0.iter().map(|point| point.x).collect::<Vec<_>>(), (0..30).map(f64::from).collect::<Vec<_>>());
    let again = measure(Paper::Wu, &jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    let numbers = |points: &Points| points.0.iter().map(|point| point.value.to_bits()).collect::<Vec<_>>();
    assert_eq!(numbers(&points), numbers(&again));
    let mut seeds: Vec<u64> = jobs.iter().map(|job| seed_of(Paper::Wu, job, 1)).collect();
    seeds.extend(jobs.iter().flat_map(|job| [seed_of(Paper::Wu, job, 2), seed_of(Paper::Sash, job, 1)]));
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 90);
    // A part of the jobs gives the same points.
    let alone = measure(Paper::Wu, &jobs[7..8], &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    assert_eq!(alone.0[0].value.to_bits(), points.0[7].value.to_bits());
    assert_eq!((points.0[0].cases, measure(Paper::Wu, &jobs, &Measuring::new(Effort::Full, 1), |_| {}).unwrap().0[0].cases), (20, 40));
}

#[test]
fn printed_numbers_of_an_item_are_one_family() {
    let job = |item: Item, p: f64| {
        Job::new(item, "share", p, [1, 1], move |_, _| Ok(vec![Value { printed: Some((0.5, p)), ..Value::new("share", Mean::exact(0.5)) }]))
    };
    let jobs: Vec<Job> = [0.03, 0.9, 0.001].map(|p| job(Item::Table(1), p)).into_iter().chain([job(Item::Table(2), 0.03)]).collect();
    let points = measure(Paper::Wu, &jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    // 0.03 of three is 0.06, 0.03 alone is itself.
    assert_eq!(points.0.iter().map(|point| point.agrees).collect::<Vec<_>>(), [Some(true), Some(true), Some(false), Some(false)]);
}

#[test]
fn a_verdict_that_is_not_the_recorded_one_is_seen() {
    let jobs = [Job::new(Item::Example(1), "one", 0.0, [1, 1], |_, _| Ok(vec![Value::exact("hops", 16.0, Some(16.0), 1.0)]))];
    let points = measure(Paper::Wu, &jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
    let claim = |reading: &'static str, judge| Claim {
        id: "wu-example-1",
        place: "",
        items: &[Item::Example(1)],
        says: "",
        number: "16",
        reading,
        why: "",
        judge,
    };
    let records = Records::built_in().unwrap();
    let holds: fn(&Points) -> Option<Finding> = |points| claims::agreeing(&points.of(Item::Example(1)), 1);
    let fails: fn(&Points) -> Option<Finding> =
        |points| claims::agreeing(&points.of(Item::Example(1)), 1).map(|found| Finding { holds: Decision::No, ..found });
    let judged = |claim: Claim| judge(Paper::Wu, &[claim], &points, &records).unwrap();
    let verdicts = [("", holds), ("a reading", holds), ("", fails)].map(|(reading, finding)| judged(claim(reading, finding))[0].clone());
    assert_eq!(verdicts.each_ref().map(|one| one.verdict), [Verdict::Reproduced, Verdict::UnderReading, Verdict::NotReproduced]);
    assert_eq!(verdicts.each_ref().map(|one| one.as_recorded), [true, false, false]);
    // A claim without a record is not as recorded, whatever comes out.
    assert!(!judged(Claim { id: "wu-example-0", ..claim("", holds) })[0].as_recorded);
    // Too few cases to tell contradict no record of more cases, and a record that was open none of more cases.
    let open: fn(&Points) -> Option<Finding> =
        |points| claims::agreeing(&points.of(Item::Example(1)), 1).map(|found| Finding { holds: Decision::Open, cases: 0, ..found });
    let undecided = &judged(claim("", open))[0];
    assert_eq!((undecided.verdict, undecided.as_recorded), (Verdict::Undecided, true));
    let open: fn(&Points) -> Option<Finding> =
        |points| claims::agreeing(&points.of(Item::Example(1)), 1).map(|found| Finding { holds: Decision::Open, ..found });
    assert!(!judged(claim("", open))[0].as_recorded);
    // Few samples agree with anything.
    assert_eq!(claims::agreeing(&points.of(Item::Example(1)), 1000).unwrap().holds, Decision::Open);
    // What was not measured is not judged.
    let other = Claim { items: &[Item::Example(1), Item::Figure(9)], ..claim("", holds) };
    assert!(judged(other).is_empty());
}

#[test]
fn names_and_numbers_find_papers() {
    for paper in Paper::ALL {
        assert_eq!((Paper::find(paper.name()), Paper::find(&paper.number())), (Some(paper), Some(paper)));
        assert!(!paper.citation().is_empty());
    }
    assert_eq!((Paper::find("005"), Paper::find("Wu")), (None, None));
}

#[test]
fn what_is_finished_is_not_measured_again_and_threads_make_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points");
    let jobs = || -> Vec<Job> { (0..20).map(|x| Job::new(Item::Figure(1), "one", f64::from(x), [20, 40], values)).collect() };
    let numbers = |points: Points| points.0.iter().map(|point| (point.x, point.value.to_bits(), point.low.to_bits())).collect::<Vec<_>>();
    let whole = numbers(measure(Paper::Wu, &jobs(), &Measuring::new(Effort::Quick, 1), |_| {}).unwrap());
    for threads in [1, 2, 7] {
        let how = Measuring { threads, ..Measuring::new(Effort::Quick, 1) };
        assert_eq!(numbers(measure(Paper::Wu, &jobs(), &how, |_| {}).unwrap()), whole);
    }
    // A run that ends after seven of them.
    let kept = Kept::open(&path).unwrap();
    let how = Measuring { kept: Some(&kept), ..Measuring::new(Effort::Quick, 1) };
    measure(Paper::Wu, &jobs()[..7], &how, |_| {}).unwrap();
    drop(kept);
    let kept = Kept::open(&path).unwrap();
    let how = Measuring { kept: Some(&kept), ..Measuring::new(Effort::Quick, 1) };
    // Of 20 cases each.
    assert_eq!(how.left(Paper::Wu, &jobs()), 13 * 20);
    let told = Mutex::new(Vec::new());
    assert_eq!(numbers(measure(Paper::Wu, &jobs(), &how, |done| told.lock().unwrap().push(done)).unwrap()), whole);
    let mut told = told.into_inner().unwrap();
    told.sort_unstable();
    assert_eq!(told, (1..=13).map(|jobs| jobs * 20).collect::<Vec<_>>());
    // All of them are there: nothing is measured, also by jobs that could not.
    drop(kept);
    let kept = Kept::open(&path).unwrap();
    let how = Measuring { kept: Some(&kept), ..Measuring::new(Effort::Quick, 1) };
    let broken = |x: u32| Job::new(Item::Figure(1), "one", f64::from(x), [20, 40], |_, _| Err(Error::Failed("again".into())));
    assert_eq!(numbers(measure(Paper::Wu, &(0..20).map(broken).collect::<Vec<_>>(), &how, |_| {}).unwrap()), whole);
    // Another seed, paper or number of cases is another point.
    assert_eq!(how.left(Paper::Sash, &jobs()), 20 * 20);
    for (other, cases) in [(Measuring::new(Effort::Quick, 2), 20), (Measuring::new(Effort::Full, 1), 40)] {
        assert_eq!(Measuring { kept: Some(&kept), ..other }.left(Paper::Wu, &jobs()), 20 * cases);
    }
}

#[test]
fn every_item_that_is_measured_says_how_it_is_drawn() {
    for paper in Paper::ALL {
        for job in paper.study().jobs {
            assert!(!paper.axes(job.item).title.is_empty(), "{}, {}", paper.name(), job.item);
        }
    }
}

#[test]
fn what_can_be_measured_is_said_in_words() {
    let figures = [14, 3, 15, 9, 16, 3, 17].map(Item::Figure);
    let others = [Item::Table(1), Item::Example(2), Item::Example(1), Item::Section(4)];
    assert_eq!(in_words([&figures[..], &others].concat()), "section 4, examples 1 to 2, table 1, figures 3, 9 and 14 to 17");
    assert_eq!(in_words(Vec::new()), "");
    assert!(Paper::ALL.iter().all(|paper| !paper.items().is_empty()));
}

/// Points of one item that were measured so: curve, place, mean.
fn points_of(paper: Paper, item: Item, values: &[(&str, f64, Mean)]) -> Points {
    let job = |(curve, x, mean): &(&str, f64, Mean)| {
        let (curve, mean) = ((*curve).to_string(), *mean);
        Job::new(item, curve.clone(), *x, [1, 1], move |_, _| Ok(vec![Value::new(curve.clone(), mean)]))
    };
    let jobs: Vec<Job> = values.iter().map(job).collect();
    measure(paper, &jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap()
}

/// Decision of points on a claim.
fn decision(paper: Paper, claim: &str, points: &Points) -> Decision {
    let claim = paper.study().claims.into_iter().find(|one| one.id == claim).unwrap();
    (claim.judge)(points).unwrap().holds
}

/// A mean of many cases with a small error.
fn sharp(value: f64) -> Mean {
    Mean { value, error: 0.001, freedom: 40.0, cases: 41 }
}

/// Curves over numbers of nodes.
fn over_nodes(curves: &[(&'static str, [f64; 6])]) -> Vec<(&'static str, f64, Mean)> {
    let nodes = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    curves.iter().flat_map(|(name, values)| nodes.into_iter().zip(values).map(|(x, value)| (*name, x, sharp(*value)))).collect()
}

#[test]
fn what_decreases_with_the_nodes_does_so_at_every_number_and_may_fail() {
    let (falling, rising) = ([6.0, 5.0, 4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let between = [6.0, 7.0, 4.0, 3.0, 2.0, 1.0];
    for (claim, item, curves) in [
        ("psts-figure-4", Item::Figure(4), &["dim = 1"][..]),
        ("psts-figure-6", Item::Figure(6), &["speed-up"][..]),
        ("psts-figure-6-arrivals", Item::Figure(6), &["arrivals over time, uniform sizes", "arrivals over time, Poisson sizes"][..]),
    ] {
        let of = |values: [f64; 6]| {
            let all: Vec<(&'static str, [f64; 6])> = curves.iter().map(|curve| (*curve, values)).collect();
            decision(Paper::Psts, claim, &points_of(Paper::Psts, item, &over_nodes(&all)))
        };
        assert_eq!([of(falling), of(rising), of(between)], [Decision::Yes, Decision::No, Decision::No], "{claim}");
    }
    // The table falls before it rises.
    let table =
        |values| decision(Paper::Psts, "psts-table-6-rise", &points_of(Paper::Psts, Item::Table(6), &over_nodes(&[("d = 1", values)])));
    assert_eq!([table([3.0, 2.0, 1.0, 4.0, 5.0, 6.0]), table(rising)], [Decision::Yes, Decision::No]);
}

#[test]
fn a_task_that_migrates_twice_or_leaves_its_region_is_against_the_claim() {
    let of = |claim, what: &str, hierarchical: [f64; 2], distributed: [f64; 2]| {
        let names = ["hierarchical", "distributed"].map(|strategy| format!("{what}, {strategy}"));
        let values: Vec<(&str, f64, Mean)> = names
            .iter()
            .zip([hierarchical, distributed])
            .flat_map(|(name, values)| [0.5, 0.8].into_iter().zip(values).map(|(x, value)| (name.as_str(), x, Mean::exact(value))))
            .collect();
        decision(Paper::Hierarchical, claim, &points_of(Paper::Hierarchical, Item::Section(4), &values))
    };
    let migrations = |ours, theirs| of("hierarchical-migrations", "most migrations of a task", ours, theirs);
    assert_eq!(migrations([1.0, 1.0], [4.0, 9.0]), Decision::Yes);
    // A mean below 1 is not enough, and the baseline must be another.
    assert_eq!([migrations([1.0, 2.0], [4.0, 9.0]), migrations([1.0, 1.0], [1.0, 9.0])], [Decision::No, Decision::No]);
    let astray = |ours| of("hierarchical-sphere", "tasks outside their parents' regions", ours, [700.0, 900.0]);
    assert_eq!([astray([0.0, 0.0]), astray([0.0, 1.0])], [Decision::Yes, Decision::No]);
}

#[test]
fn substantially_is_the_same_wherever_it_is_said_and_strategies_are_compared_pair_by_pair() {
    // Means that say nothing of each other, but whose difference on the same graphs is known well.
    let wide = |value| Mean { error: 0.2, ..sharp(value) };
    let points = |ours: f64, theirs: f64| {
        let loads = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
        let at = |x| {
            [("hierarchical", x, wide(ours)), ("distributed", x, wide(theirs)), ("distributed less hierarchical", x, sharp(theirs - ours))]
        };
        points_of(Paper::Hierarchical, Item::Figure(6), &loads.into_iter().flat_map(at).collect::<Vec<_>>())
    };
    for claim in ["hierarchical-figure-6", "hierarchical-figure-6-high"] {
        let of = |ours, theirs| decision(Paper::Hierarchical, claim, &points(ours, theirs));
        assert_eq!([of(1.0, 2.0), of(1.0, 1.1), of(1.0, 1.3)], [Decision::Yes, Decision::No, Decision::Open], "{claim}");
    }
    let slightly = |ours: f64, theirs: f64| {
        let at = |x| {
            let name = |strategy: &str| format!("{strategy}, load 0.5");
            [
                (name("hierarchical"), x, wide(ours)),
                (name("distributed"), x, wide(theirs)),
                (name("distributed less hierarchical"), x, sharp(theirs - ours)),
            ]
        };
        let values: Vec<_> = (1..=9).map(f64::from).flat_map(at).collect();
        let values: Vec<(&str, f64, Mean)> = values.iter().map(|(name, x, mean)| (name.as_str(), *x, *mean)).collect();
        decision(Paper::Hierarchical, "hierarchical-figure-11-better", &points_of(Paper::Hierarchical, Item::Figure(11), &values))
    };
    assert_eq!([slightly(1.05, 1.02), slightly(1.0, 1.02), slightly(1.3, 1.02)], [Decision::Yes, Decision::No, Decision::No]);
}

/// All four curves of figure 10 over 2 to 12 children.
fn figure_10(hierarchical: impl Fn(f64) -> f64, distributed: impl Fn(f64) -> f64) -> Points {
    let mut values = Vec::new();
    for load in ["0.5", "0.8"] {
        for x in (2..=12).map(f64::from) {
            values.push((format!("hierarchical, load {load}"), x, sharp(hierarchical(x))));
            values.push((format!("distributed, load {load}"), x, sharp(distributed(x))));
        }
    }
    let values: Vec<(&str, f64, Mean)> = values.iter().map(|(name, x, mean)| (name.as_str(), *x, *mean)).collect();
    points_of(Paper::Hierarchical, Item::Figure(10), &values)
}

#[test]
fn a_rise_of_both_strategies_is_one_of_each() {
    let turns = |at: f64| move |x: f64| 1.0 + (x - at).powi(2) / 50.0;
    let falls = |x: f64| 2.0 - x / 20.0;
    let rise = |points: Points| decision(Paper::Hierarchical, "hierarchical-figure-10-rise", &points);
    assert_eq!(rise(figure_10(turns(7.0), turns(4.0))), Decision::Yes);
    assert_eq!([rise(figure_10(turns(7.0), falls)), rise(figure_10(falls, turns(4.0)))], [Decision::No, Decision::No]);
    let best = |points: Points| {
        let claim = Paper::Hierarchical.study().claims.into_iter().find(|claim| claim.id == "hierarchical-figure-10-best").unwrap();
        (claim.judge)(&points).unwrap()
    };
    let found = best(figure_10(turns(7.0), turns(4.0)));
    assert_eq!((found.holds, found.ours.as_str()), (Decision::Yes, "load 0.5: 4 against 7; load 0.8: 4 against 7"));
    assert_eq!(best(figure_10(turns(4.0), turns(7.0))).holds, Decision::No);
}

#[test]
fn response_times_that_grow_with_the_load_grow_at_each_step_of_both_strategies() {
    let of = |hierarchical: [f64; 6], distributed: [f64; 6]| {
        let loads = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
        let curve = |name: &'static str, values: [f64; 6]| loads.into_iter().zip(values).map(move |(x, value)| (name, x, sharp(value)));
        let values: Vec<_> = curve("hierarchical", hierarchical).chain(curve("distributed", distributed)).collect();
        decision(Paper::Hierarchical, "hierarchical-figure-6-load", &points_of(Paper::Hierarchical, Item::Figure(6), &values))
    };
    let (grows, even, falls) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 2.0, 4.0, 5.0, 6.0], [1.0, 2.0, 1.5, 4.0, 5.0, 6.0]);
    assert_eq!([of(grows, grows), of(grows, even), of(falls, grows)], [Decision::Yes, Decision::Open, Decision::No]);
}

/// With the fewest cases most is open, and nothing is the contrary of what many cases say.
/// Streams of few graphs are another matter: they begin with an empty system, so that their means are those of less load.
#[test]
fn few_cases_contradict_no_record() {
    let records = Records::built_in().unwrap();
    let seeds = if cfg!(debug_assertions) { 1..=1 } else { 1..=5 };
    for (paper, items, efforts) in [
        (Paper::Wu, vec![Item::Figure(14), Item::Figure(15), Item::Table(1), Item::Section(4)], vec![2, 5, 12]),
        (Paper::Psts, [4, 5, 6].map(Item::Figure).into_iter().chain([6, 7].map(Item::Table)).collect(), vec![2, 4]),
        (Paper::Sash, vec![Item::Figure(2), Item::Figure(6), Item::Section(3)], vec![2]),
    ] {
        let study = paper.study();
        let jobs: Vec<Job> = study.jobs.into_iter().filter(|job| items.contains(&job.item)).collect();
        for (seed, cases) in seeds.clone().flat_map(|seed| efforts.iter().map(move |cases| (seed, *cases))) {
            let points = measure(paper, &jobs, &Measuring::new(Effort::Cases(cases), seed), |_| {}).unwrap();
            let wrong: Vec<Judged> =
                judge(paper, &study.claims, &points, &records).unwrap().into_iter().filter(|judged| !judged.as_recorded).collect();
            assert!(wrong.is_empty(), "{}, {cases} cases, seed {seed}: {wrong:#?}", paper.name());
        }
    }
}
