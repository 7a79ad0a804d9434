//! The documentation's lists are those of the program.

use assert_cmd::Command;

const BEGIN: &str = "<!-- list -->\n";
const END: &str = "<!-- end of list -->";

/// The text between the marks of a page is what the program lists. With `UPDATE_DOCS=1` it is written anew.
fn is_listed(page: &str, arguments: &[&str]) {
    let path = format!("{}/../../docs/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the list begins");
    let (table, after) = rest.split_once(END).expect("the list ends");
    let output = Command::cargo_bin("equipoise").unwrap().args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    let listed = format!("\n{}\n", String::from_utf8(output.stdout).unwrap().trim());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{listed}\n{END}{after}")).unwrap();
        return;
    }
    assert_eq!(table.trim(), listed.trim(), "docs/{page}.md: run this test with UPDATE_DOCS=1");
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
