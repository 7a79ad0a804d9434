//! The documentation's lists are those of the program.

use assert_cmd::Command;

const BEGIN: &str = "<!-- list -->\n";
const END: &str = "<!-- end of list -->";

/// With `UPDATE_DOCS=1` the table is written anew.
#[test]
fn the_table_of_balancers_is_the_registrys() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/balancers.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the list begins");
    let (table, after) = rest.split_once(END).expect("the list ends");
    let output = Command::cargo_bin("equipoise").unwrap().args(["list", "--markdown"]).output().unwrap();
    let listed = format!("\n{}\n", String::from_utf8(output.stdout).unwrap().trim());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{listed}\n{END}{after}")).unwrap();
        return;
    }
    assert_eq!(table.trim(), listed.trim(), "docs/balancers.md: run this test with UPDATE_DOCS=1");
}

#[test]
fn every_balancer_has_its_page() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/balancers.md")).unwrap();
    for entry in equipoise::balance::ALL {
        let page = text.split(&format!("\n## `{}`\n", entry.name)).nth(1).unwrap_or_else(|| panic!("{} has no page", entry.name));
        let page = page.split("\n## ").next().unwrap();
        if entry.name != "none" {
            for part in ["```", "**Cost**", "**When**"] {
                assert!(page.contains(part), "{}: {part} is missing", entry.name);
            }
        }
    }
}
