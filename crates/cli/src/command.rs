//! The command that was typed, so that a report can say how to repeat what it shows.
//!
//! A rank knows its own arguments. Those of the launcher are read from the system, where the launcher is among the processes that this one
//! comes from: on the host where it was typed, with mpirun and its kin. They are not known under a batch system's launcher.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Programs that start ranks.
const LAUNCHERS: [&str; 9] = ["mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "mpirun_rsh", "srun", "aprun", "flux"];
/// Programs that a launcher may be written for.
const INTERPRETERS: [&str; 6] = ["sh", "bash", "dash", "perl", "python", "python3"];
/// Maximum number of ancestors to look at.
const GENERATIONS: usize = 32;
/// Variables that allow root to run Open MPI's launchers.
const AS_ROOT: [&str; 4] =
    ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"];

/// The command line that was typed, as a shell understands it, and whether it is complete. In simulation there is no launcher.
pub fn typed(is_simulated: bool) -> (String, bool) {
    let own: Vec<OsString> = std::env::args_os().collect();
    if is_simulated {
        return (line(&own), true);
    }
    match launcher() {
        Some(words) => {
            let root = rustix::process::geteuid().is_root();
            let given = AS_ROOT.iter().filter(|_| root).filter_map(|name| Some(format!("{name}={} ", quoted(&std::env::var_os(name)?))));
            (format!("{}{}", given.collect::<String>(), line(&as_typed(words))), true)
        }
        None => (line(&own), false),
    }
}

/// The launcher's words, if it is among the processes that this one comes from.
fn launcher() -> Option<Vec<OsString>> {
    let mut process = std::process::id();
    let mut found = None;
    for _ in 0..GENERATIONS {
        process = parent(process)?;
        match words(process).as_deref().and_then(launching) {
            // The outermost of those that start each other; what started that (a shell, another job) does not belong to it.
            Some(words) => found = Some(words.to_vec()),
            None if found.is_some() => break,
            None => {}
        }
        if process <= 1 {
            break;
        }
    }
    found
}

/// A launcher's words, without the interpreter that runs it.
fn launching(words: &[OsString]) -> Option<&[OsString]> {
    let is = |word: Option<&OsString>, names: &[&str]| {
        let name = word.and_then(|word| Path::new(word).file_name()).and_then(OsStr::to_str).unwrap_or_default();
        // Debian's alternatives have the library in their names: mpirun.openmpi.
        names.iter().any(|known| name == *known || name.strip_prefix(known).is_some_and(|rest| rest.starts_with('.')))
    };
    if is(words.first(), &LAUNCHERS) {
        return Some(words);
    }
    (is(words.first(), &INTERPRETERS) && is(words.get(1), &LAUNCHERS)).then(|| &words[1..])
}

/// The launcher as it was typed. Open MPI 5's `mpirun` becomes the `prterun` next to it, which would take the same options for another launcher's.
fn as_typed(mut words: Vec<OsString>) -> Vec<OsString> {
    if let Some(program) = words.first_mut().filter(|program| Path::new(program).file_name() == Some(OsStr::new("prterun"))) {
        let typed = Path::new(program).with_file_name("mpirun");
        if typed.is_file() {
            *program = typed.into_os_string();
        }
    }
    words
}

/// The process that started another.
fn parent(process: u32) -> Option<u32> {
    let stat = read(process, "stat")?;
    // `1234 (a name (with) brackets) S 1 ..`: the name ends at the last bracket.
    let after = stat.rsplit(|byte| *byte == b')').next()?;
    std::str::from_utf8(after).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// The words that a process was started with.
fn words(process: u32) -> Option<Vec<OsString>> {
    let line = read(process, "cmdline")?;
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    Some(line.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// A file that the system keeps of a process; elsewhere than on Linux there is none.
fn read(process: u32, file: &str) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(format!("/proc/{process}/{file}")).ok()?.take(1 << 22).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn line(words: &[OsString]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as one would have to type it.
fn quoted(word: &OsStr) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=:,./@+%^".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.into(),
        Some(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        // An argument that is not text, or has invisible characters.
        _ => {
            let shown = |byte: &u8| match byte {
                b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            };
            format!("$'{}'", word.as_bytes().iter().map(shown).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let quoted = |word: &str| super::quoted(OsStr::new(word));
        assert_eq!(["--loads", "a b", "it's", "", "a*", "$x"].map(quoted), ["--loads", "'a b'", r"'it'\''s'", "''", "'a*'", "'$x'"]);
        assert_eq!(["a\nb", "\u{1b}[31m'\\"].map(quoted), [r"$'a\x0ab'", r"$'\x1b[31m\'\\'"]);
        assert_eq!(super::quoted(OsStr::from_bytes(b"caf\xe9 1")), r"$'caf\xe9 1'");
        // A shell reads back what was quoted.
        let odd = OsStr::from_bytes(b"a'b\\ \xff\n$(id) *");
        let script = format!("printf %s {}", super::quoted(odd));
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(OsStr::from_bytes(&output.stdout), odd);
    }

    #[test]
    fn launchers_are_known_by_their_names() {
        let launching = |text: &str| launching(&words_of(text)).map(line);
        assert_eq!(launching("mpirun -n 8 equipoise compare").as_deref(), Some("mpirun -n 8 equipoise compare"));
        assert_eq!(launching("/usr/bin/mpirun.openmpi -n 2 x").as_deref(), Some("/usr/bin/mpirun.openmpi -n 2 x"));
        assert_eq!(launching("/bin/bash /opt/bin/mpiexec -n 2 x").as_deref(), Some("/opt/bin/mpiexec -n 2 x"));
        for other in ["bash -c mpirun", "equipoise", "mpirunner -n 2 x", "bash scripts/mpi 8 -- compare", ""] {
            assert_eq!(launching(other), None, "{other}");
        }
    }

    #[test]
    fn what_mpirun_becomes_is_shown_as_mpirun() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| format!("{}/{name} -n 2 x", folder.path().display());
        assert_eq!(line(&as_typed(words_of(&of("prterun")))), of("prterun"), "alone it was typed itself");
        std::fs::write(folder.path().join("mpirun"), "").unwrap();
        assert_eq!(line(&as_typed(words_of(&of("prterun")))), of("mpirun"));
        assert_eq!(line(&as_typed(words_of("prterun -n 2 x"))), "prterun -n 2 x");
        assert_eq!(line(&as_typed(words_of(&of("mpiexec")))), of("mpiexec"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_are_asked_where_they_come_from() {
        let me = std::process::id();
        assert_eq!(words(me).unwrap(), std::env::args_os().collect::<Vec<_>>());
        assert!(parent(me).is_some_and(|parent| parent > 0 && parent != me));
        assert_eq!(parent(u32::MAX), None);
    }

    #[test]
    fn in_simulation_it_is_the_command_itself() {
        let (typed, is_whole) = typed(true);
        assert!(is_whole && typed == line(&std::env::args_os().collect::<Vec<_>>()));
    }
}
