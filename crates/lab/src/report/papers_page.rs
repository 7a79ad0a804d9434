//! The page of `reproduce --report`: all papers' figures as the papers draw them, and the verdicts on their claims.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::figures::several;
use super::html::{self, Page, Section, Table, Timed};
use super::plot::{self, Plot, PlotCurve, PlotPoint};
use super::printed;
use super::reproduction::{ClaimOfPage, counted};
use crate::experiment::Environment;
use crate::experiment::papers::own::OwnFigure;
use crate::experiment::papers::real::ON_RANKS;
use crate::experiment::papers::{Axes, Effort, Item, Judged, Paper, Point};

/// Writes the page.
///
/// # Errors
/// If the writer fails.
pub fn write(
    out: &mut dyn Write,
    environment: &Environment,
    (effort, seed): (Effort, u64),
    own: Option<&OwnFigure>,
    points: &[Point],
    judged: &[Judged],
) -> io::Result<()> {
    let section = |paper| {
        let points: Vec<&Point> = points.iter().filter(|point| point.paper == paper).collect();
        let judged: Vec<&Judged> = judged.iter().filter(|one| one.paper == paper).collect();
        let numbers = || numbers(paper, &points);
        (!points.is_empty()).then(|| [of_paper(paper, (effort, seed), own, &points, &judged)].into_iter().chain(numbers()))
    };
    let off = judged.iter().filter(|one| !one.as_recorded).count();
    let recorded = match off {
        0 => "each as recorded".into(),
        off => format!("{} not as recorded", several(off as u64, "verdict")),
    };
    let (title, summary) = match own {
        Some(own) => (own.title.clone(), format!("{}.", own.y)),
        None => ("The papers' figures and claims".into(), format!("{}; {recorded}.", counted(judged))),
    };
    let page = Page {
        title,
        summary,
        environment: circumstances(environment, effort, seed),
        sections: Paper::ALL.into_iter().chain([Paper::Own]).filter_map(section).flatten().collect(),
        nodes: Table::default(),
    };
    html::page(out, &page)
}

fn circumstances(environment: &Environment, effort: Effort, seed: u64) -> Vec<(&'static str, String)> {
    let mut list = vec![("Command", environment.command.clone())];
    list.extend(environment.folder.clone().map(|folder| ("Folder", folder)));
    list.extend([("Equipoise", environment.version.clone()), ("Date", environment.date.clone()), ("Seed", seed.to_string())]);
    list.push(("Ranks", "simulated, each point by itself; it has the same random numbers whatever else is measured".into()));
    let cases = match effort {
        Effort::Quick => "few (--quick)".into(),
        Effort::Full => "the papers' numbers (--full)".into(),
        Effort::Cases(cases) => format!("{cases} for each point"),
    };
    list.push(("Random cases", cases));
    list
}

fn of_paper(paper: Paper, (effort, seed): (Effort, u64), own: Option<&OwnFigure>, points: &[&Point], judged: &[&Judged]) -> Section {
    let mut items: Vec<Item> = points.iter().map(|point| point.item).collect();
    items.sort_unstable();
    items.dedup();
    let figures = items.iter().filter_map(|item| figure(paper, *item, (effort, seed), own, points)).collect();
    let claims: Vec<ClaimOfPage> = judged.iter().map(|one| ClaimOfPage((*one).clone())).collect();
    let on_ranks = match (paper, points.iter().any(|point| point.curve.ends_with(ON_RANKS))) {
        (_, true) => " Marks in a frame were measured on real ranks, where times depend on this machine.",
        (Paper::Own, false) => "",
        (Paper::Hierarchical, false) => " None is on real ranks: the paper's cube has 256 processors.",
        (_, false) => " None is on real ranks: --on-ranks measures some there, where mpirun is.",
    };
    Section {
        title: if paper == Paper::Own { "Figure".into() } else { format!("{} ({}): {}", paper.name(), paper.number(), paper.citation()) },
        says: format!(
            "Whiskers are 95 % intervals of ours; where there are none, nothing is random. Crosses are numbers that the paper prints.{on_ranks}"
        ),
        figures,
        table: Table::of(&claims),
        table_title: "Claims",
        table_says: format!("{}. A verdict that is not the recorded one says so.", counted(judged.iter().copied())),
        is_prose: true,
        ..Section::default()
    }
}

/// The printed numbers that are not drawn: of examples and tables, and of what has another unit than its figure.
fn numbers(paper: Paper, points: &[&Point]) -> Option<Section> {
    let is_drawn = |item: Item| is_curves(points.iter().filter(|point| point.item == item && !point.is_helper));
    let single: Vec<&Point> = points.iter().copied().filter(|point| point.is_helper || !is_drawn(point.item)).collect();
    let rows = printed::rows(&single);
    (!rows.is_empty()).then(|| Section {
        title: format!("{} ({}): printed numbers", paper.name(), paper.number()),
        says: "Numbers of the paper's examples and tables that are not drawn, with ours.".into(),
        table: Table::of(&rows),
        table_title: "Numbers",
        is_prose: true,
        ..Section::default()
    })
}

/// Whether one of their curves has more than one place.
fn is_curves<'a>(points: impl Iterator<Item = &'a &'a Point>) -> bool {
    let mut firsts: BTreeMap<&str, f64> = BTreeMap::new();
    points.into_iter().any(|point| *firsts.entry(&point.curve).or_insert(point.x) != point.x)
}

/// An item drawn, if it is more than single numbers.
fn figure(paper: Paper, item: Item, (effort, seed): (Effort, u64), own: Option<&OwnFigure>, points: &[&Point]) -> Option<Timed> {
    let points: Vec<&Point> = points.iter().filter(|point| point.item == item && !point.is_helper).copied().collect();
    let mut curves: Vec<PlotCurve> = Vec::new();
    for point in &points {
        let place = PlotPoint { x: point.x, y: point.value, low: point.low, high: point.high, printed: point.printed };
        match curves.iter_mut().find(|curve| curve.name == point.curve) {
            Some(curve) => curve.points.push(place),
            None => curves.push(PlotCurve { name: point.curve.clone(), framed: point.curve.ends_with(ON_RANKS), points: vec![place] }),
        }
    }
    if !is_curves(points.iter()) {
        return None;
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    let Axes { title, x, y, log_x, log_y, log_y_on_ranks } = match own {
        Some(own) => own.axes(),
        None => paper.axes(item),
    };
    let log_y = log_y || (log_y_on_ranks && curves.iter().any(|curve| curve.framed));
    let title = if own.is_some() { title } else { format!("{item}: {title}") };
    let (least, most) =
        points.iter().map(|point| point.cases).fold((u64::MAX, 0), |(least, most), cases| (least.min(cases), most.max(cases)));
    let cases = match (least, most) {
        (0 | 1, 0 | 1) => String::new(),
        (least, most) if least == most => format!("{}; ", several(most, "case")),
        (least, most) => format!("{least} to {}; ", several(most, "case")),
    };
    let says = match own {
        Some(_) => cases.trim_end_matches("; ").to_string(),
        None => format!("{cases}{}", command(paper, item, (effort, seed), curves.iter().any(|curve| curve.framed))),
    };
    let plot = Plot { title: format!("{} {title}", paper.name()), x, y, log_x, log_y, curves };
    Some(Timed { title, says, svg: plot::svg(&plot) })
}

/// Command that measures an item again, with all that the page has of it: further curves come with a report, framed points from real ranks.
fn command(paper: Paper, item: Item, (effort, seed): (Effort, u64), on_ranks: bool) -> String {
    let effort = match effort {
        Effort::Quick => String::new(),
        Effort::Full => " --full".into(),
        Effort::Cases(cases) => format!(" --cases {cases}"),
    };
    let on_ranks = if on_ranks { " --on-ranks" } else { "" };
    let folder = format!("{} {item}", paper.name()).replace(' ', "-");
    format!("equipoise reproduce {} --{item}{effort} --seed {seed}{on_ranks} --report {folder}", paper.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::papers::{Measuring, Records, judge, measure};

    fn page_of(paper: Paper) -> String {
        let study = paper.study();
        let points = measure(paper, &study.jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        let judged = judge(paper, &study.claims, &points, &Records::built_in().unwrap()).unwrap();
        let mut out = Vec::new();
        let environment = super::super::html::tests::environment("equipoise reproduce '<b>'");
        write(&mut out, &environment, (Effort::Quick, 1), None, &points.0, &judged).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Points that only help to judge a claim have another unit, and no curve.
    #[test]
    fn helpers_are_judged_and_not_drawn() {
        for (paper, item, drawn) in
            [(Paper::Wu, Item::Figure(15), "cwa over all cases, 8 processors"), (Paper::Sash, Item::Figure(9), "sash")]
        {
            let jobs: Vec<_> = paper.study().jobs.into_iter().filter(|job| job.item == item && job.x <= 5.0).collect();
            let points = measure(paper, &jobs, &Measuring::new(Effort::Cases(12), 1), |_| {}).unwrap();
            let helpers = points.0.iter().filter(|point| point.curve.contains("less"));
            let names: Vec<String> = helpers.map(|point| format!("<title>{}</title>", point.curve)).collect();
            assert!(!names.is_empty());
            let all: Vec<&Point> = points.0.iter().collect();
            let picture = figure(paper, item, (Effort::Quick, 1), None, &all).unwrap().svg;
            assert!(names.iter().all(|name| !picture.contains(name)) && picture.contains(&format!("<title>{drawn}</title>")), "{picture}");
        }
    }

    #[test]
    fn what_is_not_drawn_is_a_table() {
        let jobs: Vec<_> =
            Paper::Wu.study().jobs.into_iter().filter(|job| [Item::Figure(11), Item::Example(3)].contains(&job.item)).collect();
        let points = measure(Paper::Wu, &jobs, &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        let mut out = Vec::new();
        let environment = super::super::html::tests::environment("equipoise reproduce");
        write(&mut out, &environment, (Effort::Quick, 1), None, &points.0, &[]).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert!(
            page.contains("wu (004): printed numbers") && page.contains("k = 2: theta^0 of node, 0 to 3") && page.contains(">6, 3, 0, 0<")
        );
        assert!(!page.contains("role=\"img\""));
    }

    #[test]
    fn the_page_has_every_figure_claim_and_command_and_needs_nothing() {
        let page = page_of(Paper::Divisible);
        for number in 2..=8 {
            let command = format!("equipoise reproduce divisible --figure {number} --seed 1 --report divisible-figure-{number}");
            assert!(page.contains(&command), "{number}");
        }
        let text = page.replace("&#x27;", "'").replace("&#x2f;", "/");
        for claim in Paper::Divisible.study().claims {
            assert!(text.contains(claim.says), "{}", claim.says);
        }
        assert!(page.contains("each as recorded") && page.contains("&lt;b&gt;") && page.contains("dimension d"));
        assert!(page.matches("role=\"img\"").count() >= 8);
        // The example's numbers are a table, those of figures are not.
        assert!(page.contains("divisible (001): printed numbers") && page.contains(">speed-up<") && !page.contains(">figure 4<"));
        for outside in ["https://", "src=", "href=", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
