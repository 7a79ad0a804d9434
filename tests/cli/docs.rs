//! The documentation's lists are those of the program.

use std::sync::{Mutex, PoisonError};

use assert_cmd::Command;

use equipoise_lab::experiment::papers::{Effort, Item, Job, Measuring, Paper, Point, measure};
use equipoise_lab::report::printed;

/// A test that writes a page must not be overtaken by another.
static WRITES: Mutex<()> = Mutex::new(());

/// The text between the marks of a page, `<!-- MARK -->` and `<!-- end of MARK -->`, is this list. With `UPDATE_DOCS=1` it is written anew.
fn is_on_page(page: &str, mark: &str, listed: &str) {
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->"));
    let path = format!("{}/../../docs/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let _alone = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(&begin).expect("the list begins");
    let (table, after) = rest.split_once(&end).expect("the list ends");
    let listed = listed.trim();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{begin}\n{listed}\n\n{end}{after}")).unwrap();
        return;
    }
    assert_eq!(table.trim(), listed, "docs/{page}.md: run this test with UPDATE_DOCS=1");
}

/// The list of a page is what the program lists.
fn is_listed(page: &str, arguments: &[&str]) {
    let output = Command::cargo_bin("equipoise").unwrap().args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    is_on_page(page, "list", &String::from_utf8(output.stdout).unwrap());
}

#[test]
fn the_table_of_balancers_is_the_registrys() {
    is_listed("balancers", &["list", "--markdown"]);
}

#[test]
fn the_table_of_schedulers_is_the_registrys() {
    is_listed("schedulers", &["list", "--markdown=schedulers"]);
}

#[test]
fn the_papers_claims_are_those_that_are_recorded() {
    is_listed("papers", &["reproduce", "--recorded"]);
}

#[test]
fn the_papers_printed_numbers_are_on_the_page_with_ours() {
    let (mut listed, mut number) = (String::new(), 0);
    for paper in [Paper::Hierarchical, Paper::Divisible, Paper::Psts, Paper::Wu] {
        let is_wanted = |job: &Job| match job.item {
            Item::Example(_) => true,
            Item::Table(_) => paper == Paper::Psts,
            Item::Figure(number) => paper == Paper::Wu && [3, 6, 9, 11, 13].contains(&number),
            Item::Section(number) => paper == Paper::Hierarchical && (number == 3 || job.name == "graphs"),
        };
        let jobs: Vec<_> = paper.study().jobs.into_iter().filter(is_wanted).collect();
        let points = measure(paper, &jobs, &Measuring::new(Effort::Full, 1), |_| {}).unwrap().0;
        let printed: Vec<&Point> = points.iter().filter(|point| point.printed.is_some()).collect();
        number += printed.len();
        listed.push_str(&format!("`{}` ({}):\n\n{}\n", paper.name(), paper.number(), printed::markdown(&printed)));
    }
    assert!(number > 400, "{number}");
    is_on_page("papers", "numbers", &format!("{number} numbers.\n\n{listed}"));
}

/// Every name has a page of its own with these parts.
fn have_pages(page: &str, names: &[&str], reference: &str) {
    let text = std::fs::read_to_string(format!("{}/../../docs/{page}.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for name in names {
        let page = text.split(&format!("\n## `{name}`\n")).nth(1).unwrap_or_else(|| panic!("{name} has no page"));
        let page = page.split("\n## ").next().unwrap();
        let parts: &[&str] = if *name == reference { &[] } else { &["```", "**Cost**", "**When**"] };
        for part in parts {
            assert!(page.contains(part), "{name}: {part} is missing");
        }
    }
}

#[test]
fn every_balancer_has_its_page() {
    let names: Vec<&str> = equipoise::balance::ALL.iter().map(|entry| entry.name).collect();
    have_pages("balancers", &names, "none");
}

#[test]
fn every_scheduler_has_its_page() {
    let names: Vec<&str> = equipoise::schedule::ALL.iter().map(|entry| entry.name).collect();
    have_pages("schedulers", &names, "static");
}

#[test]
fn every_scheduler_of_independent_tasks_has_its_page() {
    let names: Vec<&str> = equipoise::schedule::independent::ALL.iter().map(|entry| entry.name).collect();
    have_pages("independent", &names, "");
}
