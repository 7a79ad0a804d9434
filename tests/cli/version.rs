//! Output of `--version`: the MPI that the program is linked with, which decides on the launcher.

use assert_cmd::Command;

#[test]
fn the_version_says_which_mpi() {
    let said = |option: &str| {
        let output = Command::cargo_bin("equipoise").unwrap().arg(option).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty());
        String::from_utf8(output.stdout).unwrap()
    };
    let short = format!("equipoise {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(said("-V"), short);
    let long = said("--version");
    let mpi = long.strip_prefix(&short).unwrap_or_else(|| panic!("{long}"));
    match cfg!(feature = "_ranks") {
        true => {
            let (standard, library) = mpi.strip_prefix("MPI ").and_then(|rest| rest.split_once(": ")).unwrap_or_else(|| panic!("{long}"));
            assert!(standard.parse::<f64>().is_ok_and(|standard| standard >= 2.0), "{long}");
            assert!(library.chars().any(|c| c.is_ascii_digit()) && library.trim().lines().count() == 1, "{long}");
        }
        false => assert_eq!(mpi, "built without MPI (features `mpi`, `mpi-dynamic`): simulated ranks only\n"),
    }
}
