//! `advise` from outside.

use serde_json::Value;

use super::{cluster, run, toml};
use crate::contract::{Key, assert_keys, lines, number_or_null};
use crate::files::file;

const ADVISE: &[Key] = &[
    ("pays", Value::is_boolean),
    ("balancer", Value::is_string),
    ("topology", Value::is_string),
    ("gain_seconds", Value::is_f64),
    ("cost_seconds", Value::is_f64),
    ("crossover_imbalance", number_or_null),
    ("crossover_task_seconds", number_or_null),
];

#[test]
fn advice_has_every_key_and_knows_the_ranks() {
    let network = toml(&cluster(None));
    let network = network.to_str().unwrap();
    for (arguments, ranks) in [
        ("--loads 19,11,2,9,0,9,10,4", 8),
        ("--loads hot:total=100 --sim 5", 5),
        (&*format!("--loads hot:total=100 --network {network}"), 8),
        (&*format!("--loads 30,1,1 --network {network}"), 3),
        (&*format!("--loads poisson:mean=9 --network {network} --sim 16"), 16),
        ("--loads hot:total=100 --sim 4 --sim-hosts 2 --network zero", 4),
    ] {
        let advised = lines(&format!("advise {arguments} --task-seconds 0.001 --output json"));
        let [object] = &advised[..] else { panic!("{} lines", advised.len()) };
        assert_keys(object, ADVISE);
        assert_eq!(object["ranks"], ranks, "{arguments}");
        assert_eq!(object["pays"].as_bool().unwrap(), object["gain_seconds"].as_f64() > object["cost_seconds"].as_f64());
    }
    let listed = file("3,4,90\n1 # the last\n");
    let advised = lines(&format!("advise --loads @{} --task-seconds 1 --steps 10 --output json", listed.to_str().unwrap()));
    assert_eq!((advised[0]["ranks"].as_u64(), advised[0]["pays"].as_bool()), (Some(4), Some(true)));
    // 90 seconds before, 25 after, ten times.
    assert_eq!((advised[0]["gain_seconds"].as_f64(), advised[0]["gain_seconds_per_step"].as_f64()), (Some(650.0), Some(65.0)));
}

#[test]
fn advice_turns_at_its_crossovers() {
    let ask = |seconds: f64, more: &str| {
        lines(&format!("advise --loads 40,12,9,11,8,10,9,13 --task-seconds {seconds} --output json {more}")).remove(0)
    };
    let object = ask(1e-3, "");
    let (gain, cost) = (object["gain_seconds"].as_f64().unwrap(), object["cost_seconds"].as_f64().unwrap());
    let least = object["crossover_task_seconds"].as_f64().unwrap();
    assert!((least / (1e-3 * cost / gain) - 1.0).abs() < 1e-9);
    assert_eq!([ask(least * 1.05, ""), ask(least * 0.9, "")].map(|object| object["pays"].as_bool()), [Some(true), Some(false)]);
    let steps = ask(least / 7.5, "");
    let needed = steps["crossover_steps"].as_u64().unwrap();
    assert!((7..=9).contains(&needed), "{needed}");
    assert_eq!(ask(least / 7.5, &format!("--steps {needed}"))["pays"], true);
    let only = ask(1e-3, "--balancer twa");
    assert_eq!((only["balancer"].as_str(), only["choices"].as_array().unwrap().len()), (Some("twa"), 1));
}

/// The gain of `compare --powers 2,2,1,1` on such ranks is that of `advise` for their file.
#[test]
fn advice_goes_by_the_ranks_speeds() {
    let network = toml(
        "[[host]]\nname = \"f\"\nranks = [0, 1]\nspeeds = [2.0, 2.0]\n[[host]]\nname = \"s\"\nranks = [2, 3]\n\
         [within]\nlatency = \"1us\"\nper_byte = \"1ns\"\n[between]\nlatency = \"10us\"\nper_byte = \"1ns\"\n",
    );
    let network = network.to_str().unwrap();
    let advised = lines(&format!("advise --loads 30,30,30,30 --task-seconds 0.01 --network {network} --output json")).remove(0);
    assert_eq!((advised["pays"].as_bool(), advised["imbalance"].as_f64()), (Some(true), Some(1.5)));
    assert!((advised["gain_seconds"].as_f64().unwrap() - 0.1).abs() < 1e-9, "{advised}");
    let balancer = advised["balancer"].as_str().unwrap();
    let compared = lines(&format!(
        "compare --sim 4 --network {network} --loads 30,30,30,30 --powers 2,2,1,1 --payload 64 --balancer {balancer} --output json"
    ));
    assert_eq!(compared[0]["imbalance_after"].as_f64(), Some(1.0));
}

/// On one host the link between hosts counts for nothing.
#[test]
fn an_arriving_task_takes_a_link_that_there_is() {
    let arriving = |hosts: &str| {
        let links = "[within]\nlatency = \"600ns\"\nper_byte = \"0.4ns\"\n[between]\nlatency = \"21us\"\nper_byte = \"0.4ns\"\n";
        let network = toml(&format!("{hosts}{links}"));
        let command =
            format!("advise --loads 9,0,0,0 --task-seconds 1 --balancer direct --network {} --output json", network.to_str().unwrap());
        lines(&command)[0]["crossover_arriving_seconds"].as_f64().unwrap() * 1e6
    };
    let (one, two) = (
        arriving("[[host]]\nname = \"a\"\nranks = [0, 1, 2, 3]\n"),
        arriving("[[host]]\nname = \"a\"\nranks = [0, 1]\n[[host]]\nname = \"b\"\nranks = [2, 3]\n"),
    );
    assert!((1.2..1.4).contains(&one) && (42.0..42.2).contains(&two), "{one} us on one host, {two} us on two");
}

#[test]
fn advice_names_balancer_and_topology() {
    let network = toml(&cluster(None));
    let network = network.to_str().unwrap();
    let ask = |more: &str| {
        lines(&format!("advise --loads hot:total=400 --task-seconds 0.001 --network {network} --output json {more}")).remove(0)
    };
    let walk = ask("--balancer twa");
    let of_choices = |object: &Value| -> Vec<String> {
        object["choices"].as_array().unwrap().iter().map(|choice| choice["topology"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(of_choices(&walk), ["tree:binary,nodes=8", "tree:hosts"]);
    let forced = ask("--topology tree:hosts --balancer twa");
    assert_eq!((forced["topology"].as_str(), of_choices(&forced).len()), (Some("tree:hosts"), 1));
    let cost = |object: &Value, at: usize| object["choices"][at]["cost_seconds"].as_f64().unwrap();
    assert_eq!(cost(&forced, 0), cost(&walk, 1));
    assert!(of_choices(&ask("--topology line")).iter().all(|name| name == "line:8"));
    let (status, out, _) = run(&[
        "advise",
        "--loads",
        "hot:total=400",
        "--task-seconds",
        "0.001",
        "--network",
        network,
        "--topology",
        "tree:hosts",
        "--balancer",
        "twa",
    ]);
    assert!(status == 0 && out.contains("Balancing pays") && out.lines().next().unwrap().ends_with(": twa on tree:hosts."), "{out}");
}

#[test]
fn advice_for_people_begins_with_the_answer() {
    let (status, out, _) = run(&["advise", "--loads", "19,11,2,9,0,9,10,4", "--task-seconds", "0.01"]);
    assert!(status == 0 && out.starts_with("Balancing pays (certainty 9"), "{out}");
    assert!(out.contains("All else being equal it pays from tasks of ") && out.contains("assumed, not measured"), "{out}");
    let (_, out, _) = run(&["advise", "--loads", "19,11,2,9,0,9,10,4", "--task-seconds", "1e-7"]);
    assert!(out.starts_with("Balancing does not pay (certainty "), "{out}");
}
