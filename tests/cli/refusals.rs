//! Wrong usage: status 2, nothing on standard output, and one line on standard error that names the option.

use assert_cmd::Command;

/// What is typed, and what the sentence must contain.
const WRONG: &[(&str, &str)] = &[
    ("balance", "--sim"),
    ("divide", "Say --input FILE to divide a file, or --model"),
    ("divide --topology ring:4", "Say --input FILE to divide a file, or --model"),
    ("divide --sim 4", "Say --input FILE to divide a file, or --model"),
    ("divide --kernel count", "--input <FILE>"),
    ("divide --model", "--topology"),
    ("divide --model --topology line:3 --network zero", "'--model' cannot be used with '--network"),
    ("divide --model --topology line:3 --sim-hosts 2", "'--model' cannot be used with '--sim-hosts"),
    ("divide --model --topology line:3 --trace x.json", "'--model' cannot be used with '--trace"),
    ("divide --model --topology cube", "star"),
    ("divide --model --topology hypercube", "--topology hypercube"),
    ("divide --model --topology hypercube:31", "--topology hypercube:31"),
    ("divide --model --topology tree:binary", "--topology tree:binary"),
    ("divide --model --topology star", "--topology star"),
    ("divide --model --topology star:0", "--topology star:0"),
    ("divide --model --topology mesh:0x3", "--topology mesh:0x3"),
    ("divide --model --topology line:70000", "--topology line:70000"),
    ("divide --model --topology hypercube:17 --installments 2", "--topology hypercube:17"),
    ("divide --model --topology mesh:40x40", "linear program"),
    ("divide --model --topology line:3 --w 0", "--w 0"),
    ("divide --model --topology line:3 --w NaN", "--w"),
    ("divide --model --topology line:3 --w -1", "--w -1"),
    ("divide --model --topology line:3 --w 1/0", "--w"),
    ("divide --model --topology line:3 --z -1/2", "--z -0.5"),
    ("divide --model --topology line:3 --z inf", "--z"),
    ("divide --model --topology line:3 --tcp 0", "--tcp 0"),
    ("divide --model --topology line:3 --tcm -1", "--tcm -1"),
    ("divide --model --topology line:3 --startup -1", "--startup -1"),
    ("divide --model --topology line:3 --load 0", "--load 0"),
    ("divide --model --topology line:3 --return -1", "--return -1"),
    ("divide --model --topology line:3 --return 1e9", "--return"),
    ("divide --model --topology line:3 --w 1e200 --tcp 1e200", "--w, --tcp"),
    ("divide --model --topology line:3 --installments 0", "--installments 0"),
    ("divide --model --topology line:3 --installments many", "--installments"),
    ("divide --model --topology line:3 --ports two", "--ports"),
    ("divide --model --topology line:3 --source 3", "--source 3"),
    ("divide --model --topology line:1 --source-idle", "--source-idle"),
    ("divide --model --topology line:3 --speeds 1,2", "--speeds"),
    ("divide --model --topology line:3 --speeds 1,0,2", "--speeds, item 2"),
    ("divide --model --topology line:3 --speeds 1,x,2", "--speeds, item 2"),
    ("divide --model --topology line:3 --links 1", "--links"),
    ("divide --model --topology line:3 --links 1,-1", "--links, item 2"),
    ("divide --model --topology line:3 --links 0-2=1", "--links: '0-2=1'"),
    ("divide --model --topology line:3 --startups 1", "--startups"),
    ("divide --model --topology line:3 --startup 1 --startups 1,1", "--startups"),
    ("divide --model --topology hypercube:30 --links 0-1=3", "--topology hypercube:30"),
    ("divide --model --topology hypercube:30 --speeds 1", "--topology hypercube:30"),
    ("divide --model --topology line:3 --links 0-1=1,1-0=2", "--links: '1-0=2'"),
    ("divide --model --topology line:3 --speeds 1,1,1e-200", "--speeds, item 3: 1e-200"),
    ("divide --model --topology line:3 --startup 1e300", "--startup 1e300"),
    ("divide --model --topology line:3 --kernel count", "--kernel"),
    ("divide --model --topology line:3 --records nul", "--records"),
    ("divide --model --topology line:3 --to x", "--to"),
    ("divide --model --topology line:3 --rate 3", "--rate"),
    ("divide --model --topology line:3 --memory 3", "--memory"),
    ("divide --model --topology line:3 --baselines", "--baselines"),
    ("divide --model --topology line:3 --calibration x", "--calibration"),
    ("divide --model --topology graph:/no/such/file", "--topology graph:/no/such/file: the file"),
    ("divide --sim 2 --input Cargo.toml --kernel count --installments 4097", "--installments 4097"),
    ("divide --sim 2 --input Cargo.toml --kernel count --calibration /dev/full", "--calibration /dev/full"),
    ("divide --sim 2 --input /dev/zero --kernel count", "--input /dev/zero: this is a device"),
    ("divide --sim 2 --input Cargo.toml --kernel count --sample", "--sample: only --command"),
    ("divide --model --topology line:3 --raw", "--raw"),
    ("divide --model --topology line:3 --gantt /no/such/folder/x.svg", "--gantt /no/such/folder/x.svg"),
    ("divide --model --topology hypercube:13 --ports one --gantt /tmp/x.svg", "--gantt"),
    ("divide --model --curves /dev/null/x", "--curves /dev/null/x"),
    ("divide --model --gantt x.svg --curves /dev/null/x", "--topology"),
    ("compare", "--sim"),
    ("balance --sim 0", "--sim"),
    ("balance --sim -3", "-3"),
    ("balance --sim eight", "--sim"),
    ("balance --sim 4294967296", "--sim"),
    ("balance --sim 8 --balancer magic", "--balancer 'magic'"),
    ("balance --sim 8 --balancer cwa:fast=1", "--balancer cwa"),
    ("balance --sim 8 --balancer cwa:fast", "--balancer cwa"),
    ("balance --sim 8 --topology cube", "--topology cube"),
    ("balance --sim 8 --topology hypercube:31", "--topology"),
    ("balance --sim 8 --topology hypercube:2", "--topology"),
    ("balance --sim 2 --topology hypercube:12", "--topology"),
    ("balance --sim 2 --balancer direct --topology graph:/no/such/file", "--topology graph:/no/such/file"),
    ("balance --sim 2 --balancer direct --topology graph", "--topology graph"),
    ("balance --sim 2 --balancer direct --topology graph:edges=0-1,2-3", "--topology graph:edges=0-1,2-3"),
    ("balance --sim 2 --balancer cwa --topology graph:edges=0-1", "--balancer cwa"),
    ("balance --sim 8 --topology mesh:3x5", "--topology mesh:3x5"),
    ("balance --sim 8 --topology tree:parents=-,0,5", "--topology"),
    ("balance --sim 4 --loads 1,2", "--loads"),
    ("balance --sim 2 --loads 1,-2", "--loads"),
    ("balance --sim 2 --loads 18446744073709551615,1", "--loads"),
    ("balance --sim 2 --loads 18446744073709551616,1", "--loads"),
    ("balance --sim 2 --loads uniform:mean=x", "--loads"),
    ("balance --sim 2 --loads normal", "--loads"),
    ("balance --sim 2 --loads @/no/such/file", "--loads @/no/such/file"),
    ("balance --sim 2 --loads hot:total=18446744073709551615 --payload 1", "payload"),
    ("balance --sim 2 --powers 1,NaN", "--powers"),
    ("balance --sim 2 --powers 1,-1", "--powers"),
    ("balance --sim 2 --powers 0,0", "--powers"),
    ("balance --sim 2 --powers 1,2,3", "--powers"),
    ("balance --sim 2 --weights heavy", "--weights heavy"),
    ("balance --sim 2 --loads 1,1 --weights 1,2,3", "--weights"),
    ("balance --sim 2 --loads 1,1 --weights 1,-2", "--weights, item 2"),
    ("balance --sim 2 --loads 1,1 --weights 18446744073709551615,1", "--weights"),
    ("balance --sim 2 --weights uniform:9..1", "--weights uniform:9..1"),
    ("balance --sim 2 --weights @/no/such/file", "--weights @/no/such/file"),
    ("balance --sim 2 --loads hot:total=1000000000000 --weights uniform:1..2", "--weights"),
    ("balance --sim 2 --tasks files:. --weights 1", "--weights"),
    ("balance --sim 2 --pinned some", "--pinned some"),
    ("balance --sim 2 --pinned p=1.5", "--pinned p=1.5"),
    ("balance --sim 2 --loads hot:total=1000000000000 --pinned p=0.5", "--pinned"),
    ("balance --sim 2 --balancer pslb:unit=last", "--balancer pslb"),
    ("balance --sim 2 --payload -1", "-1"),
    ("balance --sim 2 --payload much", "--payload"),
    ("balance --sim 2 --tasks files:/no/such/folder", "--tasks"),
    ("balance --sim 2 --tasks tape:1", "--tasks"),
    ("balance --sim 2 --tasks lbaf:/no/such/folder", "--tasks lbaf:/no/such/folder"),
    ("balance --sim 2 --tasks lbaf:tests/data/loads/lbaf-toy-fewer-16ranks,phase=7", "phase 7"),
    ("balance --sim 2 --tasks /no/such/table.csv", "--tasks /no/such/table.csv"),
    ("balance --sim 2 --tasks files:. --loads zero", "--loads"),
    ("balance --sim 2 --network teleport", "--network teleport"),
    ("balance --sim 2 --network switched:latency=5", "--network"),
    ("balance --network zero", "--sim"),
    ("run --sim 4 --scheduler sash --workload queens:n=6", "--scheduler sash is for independent tasks"),
    ("run --sim 4 --scheduler steal --workload costs", "--scheduler steal is for tasks that spawn tasks"),
    ("run --sim 4 --compare dss,static --workload queens:n=6", "--scheduler dss is for independent tasks"),
    ("run --sim 4 --scheduler magic --workload costs", "--scheduler 'magic'"),
    ("run --sim 4 --scheduler sash:reading=r9 --workload costs", "reading is r1, r1b"),
    ("run --sim 4 --scheduler selfsched:rule=best --workload costs", "rule is static"),
    ("run --sim 4 --scheduler selfsched:rule=wf,weights=1:2 --workload costs", "there are 2 weights, and 4 ranks"),
    ("run --sim 4 --scheduler selfsched:rule=gss,chunk=4 --workload costs", "chunk belongs to rule=fixed"),
    ("run --sim 4 --scheduler selfsched:rule=static,clusters=hosts --workload costs", "clusters=hosts is of no use"),
    ("run --sim 4 --scheduler dss:clusters=some --workload costs", "clusters is none or hosts"),
    ("run --sim 3 --workload costs:file=tests/vectors/sash_6x3.txt,optimum=9", "the optimum 9 is below"),
    ("run --sim 3 --workload costs:file=tests/vectors/sash_6x3.txt,optimum=2500", "is above 1900, which a simple heuristic reaches"),
    ("run --sim 3 --speeds 1,2,3 --workload costs:file=tests/vectors/sash_6x3.txt,optimum=1900", "--speeds: the optimum"),
    ("run --sim 3 --workload costs:file=tests/vectors/sash_6x3.txt,optimum=/no/table", "optimum=/no/table: the file cannot be read"),
    ("run --sim 4 --workload costs:file=/dev/zero", "/dev/zero: the file cannot be read: it is neither a regular file nor a pipe"),
    ("run --sim 4 --workload loop:file=/dev/zero", "neither a regular file nor a pipe"),
    ("run --sim 4 --workload spmm:file=/dev/zero", "neither a regular file nor a pipe"),
    ("balance --sim 4 --topology graph:/dev/zero", "neither a regular file nor a pipe"),
    ("balance --sim 4 --loads @/dev/zero", "neither a regular file nor a pipe"),
    ("run --sim 4 --scheduler dss:colour --workload costs", "'colour'"),
    ("run --sim 4 --workload costs --topology ring", "--topology"),
    ("run --sim 4 --workload costs --speeds 1,2", "--speeds"),
    ("run --sim 4 --workload costs --speeds 1,2,3,0", "--speeds"),
    ("run --sim 4 --workload queens:n=6 --speeds 1,2", "--speeds"),
    ("run --sim 4 --workload costs:sigma_cp=400", "sigma_cp"),
    ("run --sim 4 --workload costs:file=/no/such/file", "costs:file=/no/such/file"),
    ("run --sim 4 --workload costs:file=tests/vectors/sash_6x3.txt", "line 2: 3 costs, and there are 4 ranks"),
    ("run --sim 1 --workload costs:file=tests/data/impossible.csv", "no rank can run task 1"),
    ("balance --sim 2 --sim-hosts 3", "--sim-hosts 3"),
    ("balance --sim 2 --sim-hosts 2,block", "--sim-hosts"),
    ("balance --sim 2 --placement near", "--placement"),
    ("balance --sim 2 --timeout 0", "--timeout"),
    ("balance --sim 2 --timeout NaN", "--timeout"),
    ("balance --sim 2 --timeout 1e-300", "--timeout"),
    ("balance --sim 1073741824", "--sim 1073741824"),
    ("list --ranks 1073741824", "--ranks"),
    ("balance --sim 2 --balancer dem:sweeps=1,sweeps=2", "sweeps is given twice"),
    ("balance --sim 2 --seed x", "--seed"),
    ("balance --sim 2 --output xml", "--output"),
    ("balance --sim 2 --report /dev/null/x", "--report /dev/null/x"),
    ("balance --sim 2 --trace /no/such/folder/x", "--trace /no/such/folder/x"),
    ("balance --sim 5000 --trace /dev/null", "--trace"),
    ("balance --sim 2 --colour", "--colour"),
    ("compare --sim 2 --csv /no/such/folder/x.csv", "--csv /no/such/folder/x.csv"),
    ("compare --sim 2 --repeat 0", "--repeat"),
    ("compare --sim 2 --payload 1,x", "--payload"),
    ("compare --sim 2 --balancer cwa,,dem", "--balancer"),
    ("compare --sim 8 --balancer twa --topology hypercube", "--balancer twa"),
    ("compare --sim 8 --loads 1,2,3", "--loads"),
    ("run", "--sim"),
    ("run --sim 2 --scheduler magic", "--scheduler 'magic'"),
    ("run --sim 2 --scheduler steal:victim=me", "--scheduler steal"),
    ("run --sim 2 --scheduler hierarchical --topology ring", "--scheduler hierarchical"),
    ("run --sim 2 --scheduler steal --compare random", "--scheduler"),
    ("run --sim 2 --compare steal,,random", "--scheduler ''"),
    ("run --sim 2 --compare steal,magic", "--scheduler 'magic'"),
    ("run --sim 2 --workload magic", "--workload magic"),
    ("run --sim 2 --workload queens:n=0", "--workload queens:n=0"),
    ("run --sim 2 --workload queens:m=3", "--workload queens:m=3"),
    ("run --sim 2 --workload stream:utilisation=1.5", "--workload stream"),
    ("run --sim 2 --workload tree:children=2,least=3", "--workload tree"),
    ("run --sim 2 --scheduler steal --host dedicated", "--host dedicated"),
    ("run --sim 2 --compare steal,random --medians shared", "--medians shared"),
    ("run --sim 2 --host asleep", "--host"),
    ("run --sim 1 --host dedicated", "host=dedicated"),
    ("run --sim 2 --workers 0", "--workers"),
    ("run --sim 2 --repeat 0", "--repeat"),
    ("run --sim 2 --csv /no/such/folder/x.csv", "--csv /no/such/folder/x.csv"),
    ("run --sim 2 --trace /no/such/folder/x.json", "--trace /no/such/folder/x.json"),
    ("list --ranks 0", "--ranks"),
    ("dance", "dance"),
];

#[test]
fn wrong_usage_gets_one_line_and_status_2() {
    for (typed, named) in WRONG {
        let mut command = Command::cargo_bin("equipoise").unwrap();
        let output = command.current_dir(crate::ROOT).args(typed.split_whitespace()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{typed}: {said}");
        assert!(output.stdout.is_empty(), "{typed}");
        assert_eq!(said.lines().count(), 1, "{typed}: {said}");
        assert!(said.starts_with("equipoise: ") && said.contains(named), "{typed}: {said}");
    }
}

#[test]
fn no_command_at_all_shows_the_help_and_is_wrong() {
    let output = Command::cargo_bin("equipoise").unwrap().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: equipoise"));
}

/// A simulation is one process's affair: of several launched ones the first does it.
#[test]
fn only_the_first_launched_process_simulates_and_speaks() {
    let run = |rank: &str, arguments: &str| {
        let mut command = Command::cargo_bin("equipoise").unwrap();
        command.env("OMPI_COMM_WORLD_RANK", rank).env("OMPI_COMM_WORLD_SIZE", "2").args(arguments.split_whitespace());
        command.output().unwrap()
    };
    let first = run("0", "balance --sim 4");
    assert!(first.status.success() && !first.stdout.is_empty());
    for silent in ["balance --sim 4", "--help", "--version", "list"] {
        let second = run("1", silent);
        assert!(second.status.success() && second.stdout.is_empty() && second.stderr.is_empty(), "{silent}");
    }
    let refused = run("1", "balance --sim 4 --loads 1");
    assert!(refused.stderr.is_empty());
    let refused = run("1", "balance --balancer magic");
    assert!(refused.status.code() == Some(2) && refused.stderr.is_empty());
}
