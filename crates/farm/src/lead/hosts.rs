//! Hosts: commands at their start and their end, and their release when they have no work left.

use crate::messages::ToHand;
use crate::settings::Settings;
use crate::task::Outcome;
use equipoise::topology::RankId;

/// State of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// This number of commands of its start is to be waited for.
    Starting(u32),
    Working,
    /// This number of commands of its end. It gets no more tasks.
    Ending(u32),
    Over,
}

struct Host {
    name: String,
    ranks: Vec<RankId>,
    stage: Stage,
    /// Time at which `--release` was called for it, because no work is left.
    released: Option<f64>,
}

impl Host {
    /// Returns true if nothing runs there any more, and it is still ours. One that is lost with all of its ranks cannot be given back.
    fn is_to_be_released(&self) -> bool {
        self.stage == Stage::Over && self.released.is_none() && !self.ranks.is_empty()
    }
}

/// All hosts of a job.
pub struct Hosts {
    hosts: Vec<Host>,
    of_rank: Vec<usize>,
    setup: Vec<Vec<u8>>,
    teardown: Vec<Vec<u8>>,
    release: Option<String>,
    /// Commands of releases that run, on rank 0.
    releasing: u32,
    failed: bool,
    /// A command of a host's start has failed.
    start_failed: bool,
}

impl Hosts {
    pub fn new(settings: &Settings, host_of_rank: Vec<String>) -> Hosts {
        let (mut hosts, mut of_rank): (Vec<Host>, Vec<usize>) = (Vec::new(), Vec::new());
        for (rank, name) in (0..).map(RankId::new).zip(host_of_rank) {
            let at = hosts.iter().position(|host| host.name == name).unwrap_or_else(|| {
                hosts.push(Host { name, ranks: Vec::new(), stage: Stage::Working, released: None });
                hosts.len() - 1
            });
            hosts[at].ranks.push(rank);
            of_rank.push(at);
        }
        let text = |option: &Option<String>| option.iter().map(|text| text.clone().into_bytes()).collect();
        let (setup, teardown) = (text(&settings.setup), text(&settings.teardown));
        Hosts { hosts, of_rank, setup, teardown, release: settings.release.clone(), releasing: 0, failed: false, start_failed: false }
    }

    /// The commands of the start, on the first rank of each host.
    pub fn begin(&mut self) -> Vec<(RankId, ToHand)> {
        let setup = std::mem::take(&mut self.setup);
        setup.into_iter().flat_map(|text| self.start(&text)).collect()
    }

    /// A command that the list has for each host.
    pub fn add(&mut self, text: Vec<u8>, at_start: bool) -> Vec<(RankId, ToHand)> {
        if at_start {
            return self.start(&text);
        }
        self.teardown.push(text);
        Vec::new()
    }

    fn start(&mut self, text: &[u8]) -> Vec<(RankId, ToHand)> {
        let one = |host: &mut Host| {
            host.stage = match host.stage {
                Stage::Starting(number) => Stage::Starting(number + 1),
                _ => Stage::Starting(1),
            };
            (host.ranks[0], ToHand::OnHost { text: text.to_vec(), variables: Vec::new() })
        };
        self.hosts.iter_mut().filter(|host| !host.ranks.is_empty()).map(one).collect()
    }

    /// Returns true if a rank's host has started.
    pub fn is_ready(&self, rank: usize) -> bool {
        self.hosts[self.of_rank[rank]].stage == Stage::Working
    }

    /// Returns true if a rank's host gets tasks, now or when it has started; false if it has ended, or was given back.
    pub fn takes_tasks(&self, rank: usize) -> bool {
        matches!(self.hosts[self.of_rank[rank]].stage, Stage::Working | Stage::Starting(_))
    }

    /// Time at which a rank's host was given back, if it was.
    pub fn released(&self, rank: usize) -> Option<f64> {
        self.hosts[self.of_rank[rank]].released
    }

    /// Records that a command on a rank has ended; returns a sentence if it should be reported.
    pub fn ended(&mut self, rank: RankId, outcome: &Outcome) -> Option<String> {
        let has_failed = outcome.exit != 0 || outcome.signal != 0;
        let what = if self.releasing > 0 && rank == RankId::FIRST {
            self.releasing -= 1;
            "a command of --release on"
        } else {
            let host = &mut self.hosts[self.of_rank[rank.index()]];
            let is_start = matches!(host.stage, Stage::Starting(_));
            host.stage = match host.stage {
                Stage::Starting(number) if number > 1 => Stage::Starting(number - 1),
                Stage::Ending(number) if number > 1 => Stage::Ending(number - 1),
                Stage::Ending(_) => Stage::Over,
                _ => Stage::Working,
            };
            self.start_failed |= has_failed && is_start;
            if is_start { "a command for the start (--setup) of" } else { "a command for the end (--teardown) of" }
        };
        if !has_failed {
            return None;
        }
        self.failed = true;
        let said = String::from_utf8_lossy(&outcome.last);
        let said = if said.trim().is_empty() { String::new() } else { format!(": {}", said.trim()) };
        Some(format!("{what} host {} {}{said}", self.name(rank), super::counts::how(outcome)))
    }

    /// A rank is lost. A command for its host that ran there has failed; without any rank the host is over.
    pub fn lose(&mut self, rank: RankId) {
        let host = &mut self.hosts[self.of_rank[rank.index()]];
        let ran_here = host.ranks.first() == Some(&rank) && matches!(host.stage, Stage::Starting(_) | Stage::Ending(_));
        self.failed |= ran_here;
        self.start_failed |= ran_here && matches!(host.stage, Stage::Starting(_));
        host.ranks.retain(|other| *other != rank);
        host.stage = match host.stage {
            _ if host.ranks.is_empty() => Stage::Over,
            Stage::Starting(_) if ran_here => Stage::Working,
            Stage::Ending(_) if ran_here => Stage::Over,
            stage => stage,
        };
    }

    /// Returns true if a command of a host has failed.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns true if one of a host's start has: its tasks may lack what they need.
    pub fn has_failed_to_start(&self) -> bool {
        self.start_failed
    }

    /// Gives back each host whose ranks have no tasks and get no more: its commands for the end run first, while it is still there, then `--release` is
    /// called for it.
    pub fn release(&mut self, busy: &[bool], now: f64) -> Vec<(RankId, ToHand)> {
        let Some(command) = self.release.clone() else { return Vec::new() };
        let mut sends = self.close(|host| !host.ranks.iter().any(|rank| busy[rank.index()]));
        // Rank 0 runs one kind of command at a time, so that it is known which of them has ended.
        if matches!(self.hosts[self.of_rank[0]].stage, Stage::Starting(_) | Stage::Ending(_)) {
            return sends;
        }
        for at in 0..self.hosts.len() {
            if !self.hosts[at].is_to_be_released() {
                continue;
            }
            self.hosts[at].released = Some(now);
            let name = self.hosts[at].name.clone();
            let names = |released: bool| {
                let those = self.hosts.iter().filter(|host| host.released.is_some() == released);
                those.map(|host| host.name.clone()).collect::<Vec<_>>().join(",")
            };
            let variables = [("FARM_HOST", name), ("FARM_ACTIVE", names(false)), ("FARM_RELEASED", names(true))];
            let variables = variables.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
            self.releasing += 1;
            sends.push((RankId::FIRST, ToHand::OnHost { text: command.clone().into_bytes(), variables }));
        }
        sends
    }

    /// Ends all hosts that have not ended yet.
    pub fn end(&mut self) -> Vec<(RankId, ToHand)> {
        self.close(|_| true)
    }

    /// Ends hosts: they get no more tasks, and their commands for the end run on the first rank of each.
    fn close(&mut self, is_to_end: impl Fn(&Host) -> bool) -> Vec<(RankId, ToHand)> {
        let mut sends = Vec::new();
        let first = self.of_rank[0];
        for (at, host) in self.hosts.iter_mut().enumerate() {
            // As in `release`: on rank 0 the commands of releases end first.
            let waits = at == first && self.releasing > 0 && !self.teardown.is_empty();
            if host.stage != Stage::Working || waits || !is_to_end(host) {
                continue;
            }
            host.stage = match self.teardown.len() {
                0 => Stage::Over,
                number => Stage::Ending(number as u32),
            };
            let command = |text: &Vec<u8>| (host.ranks[0], ToHand::OnHost { text: text.clone(), variables: Vec::new() });
            sends.extend(self.teardown.iter().map(command));
        }
        sends
    }

    /// Returns true if all hosts have ended.
    pub fn is_done(&self) -> bool {
        let is_done = |host: &Host| host.stage == Stage::Over && (self.release.is_none() || !host.is_to_be_released());
        self.releasing == 0 && self.hosts.iter().all(is_done)
    }

    /// The name of a rank's host.
    pub fn name(&self, rank: RankId) -> &str {
        &self.hosts[self.of_rank[rank.index()]].name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Origin;
    use crate::task::State;

    fn hosts(change: impl FnOnce(&mut Settings)) -> Hosts {
        let mut settings = Settings::new(Origin::Empty(0));
        change(&mut settings);
        Hosts::new(&settings, ["a", "a", "b"].map(String::from).to_vec())
    }

    fn ranks(sends: &[(RankId, ToHand)]) -> Vec<u32> {
        sends.iter().map(|(rank, _)| rank.get()).collect()
    }

    #[test]
    fn commands_run_once_for_each_host() {
        let mut hosts = hosts(|settings| (settings.setup, settings.teardown) = (Some("s".into()), Some("t".into())));
        assert_eq!(ranks(&hosts.begin()), [0, 2]);
        assert!(!hosts.is_ready(1));
        assert_eq!(hosts.ended(RankId::FIRST, &Outcome::without_run(0, State::Done)), None);
        assert!(hosts.is_ready(1) && !hosts.is_ready(2));
        hosts.ended(RankId::new(2), &Outcome::without_run(0, State::Done));
        assert_eq!((ranks(&hosts.end()), hosts.is_done()), (vec![0, 2], false));
        let failed = Outcome { exit: 3, last: b"no room\n".to_vec(), ..Outcome::without_run(0, State::Failed) };
        let said = hosts.ended(RankId::new(2), &failed);
        assert_eq!(said.as_deref(), Some("a command for the end (--teardown) of host b ended with status 3: no room"));
        hosts.ended(RankId::FIRST, &Outcome::without_run(0, State::Done));
        assert!(hosts.is_done() && hosts.has_failed() && !hosts.has_failed_to_start());
    }

    /// A host whose start has failed may lack what tasks need there; what fails later concerns no tasks.
    #[test]
    fn a_failure_at_the_start_is_told_apart() {
        let failed = Outcome { exit: 1, ..Outcome::without_run(0, State::Failed) };
        let all = |settings: &mut Settings| (settings.setup, settings.release) = (Some("s".into()), Some("r".into()));
        let mut hosts = hosts(all);
        assert_eq!(ranks(&hosts.begin()), [0, 2]);
        assert_eq!(hosts.ended(RankId::new(2), &Outcome::without_run(0, State::Done)), None);
        assert!(hosts.release(&[false; 3], 1.0).is_empty(), "rank 0 is busy with its host's start");
        assert_eq!(hosts.ended(RankId::FIRST, &failed).unwrap(), "a command for the start (--setup) of host a ended with status 1");
        assert!(hosts.has_failed() && hosts.has_failed_to_start());
        let mut hosts = super::tests::hosts(all);
        hosts.begin();
        [0, 2].iter().for_each(|rank| _ = hosts.ended(RankId::new(*rank), &Outcome::without_run(0, State::Done)));
        assert_eq!(hosts.release(&[true, true, false], 1.0).len(), 1);
        assert_eq!(hosts.ended(RankId::FIRST, &failed).unwrap(), "a command of --release on host a ended with status 1");
        assert!(hosts.has_failed() && !hosts.has_failed_to_start());
    }

    #[test]
    fn a_command_is_lost_with_its_rank() {
        let mut hosts = hosts(|settings| (settings.setup, settings.teardown) = (Some("s".into()), Some("t".into())));
        hosts.begin();
        hosts.lose(RankId::new(1));
        assert!(!hosts.has_failed() && !hosts.is_ready(0));
        hosts.lose(RankId::FIRST);
        assert!(hosts.has_failed() && !hosts.is_ready(0), "the host has no ranks left");
        hosts.ended(RankId::new(2), &Outcome::without_run(0, State::Done));
        assert_eq!(ranks(&hosts.end()), [2]);
        hosts.ended(RankId::new(2), &Outcome::without_run(0, State::Done));
        assert!(hosts.is_done());
    }

    #[test]
    fn idle_hosts_are_released_once() {
        let mut hosts = hosts(|settings| settings.release = Some("r".into()));
        let sends = hosts.release(&[false, true, false], 1.0);
        let [(RankId::FIRST, ToHand::OnHost { variables, .. })] = sends.as_slice() else { panic!("{sends:?}") };
        let variables: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(variables, ["FARM_HOST=b", "FARM_ACTIVE=a", "FARM_RELEASED=b"]);
        assert!(hosts.release(&[false, true, false], 1.0).is_empty());
        assert_eq!(hosts.release(&[false; 3], 1.0).len(), 1);
    }

    /// Commands for the end of a host need the host.
    #[test]
    fn a_host_ends_before_it_is_given_back() {
        let mut hosts = hosts(|settings| (settings.teardown, settings.release) = (Some("t".into()), Some("r".into())));
        let sent = |sends: Vec<(RankId, ToHand)>| {
            let text = |message| if let ToHand::OnHost { text, .. } = message { String::from_utf8(text).unwrap() } else { String::new() };
            sends.into_iter().map(|(rank, message)| (rank.get(), text(message))).collect::<Vec<_>>()
        };
        let (done, failed) = (Outcome::without_run(0, State::Done), Outcome { exit: 1, ..Outcome::without_run(0, State::Failed) });
        let (teardown, release) = (|rank| vec![(rank, "t".to_string())], vec![(0, "r".to_string())]);
        assert_eq!(sent(hosts.release(&[true, true, false], 1.0)), teardown(2));
        assert!(!hosts.takes_tasks(2) && hosts.takes_tasks(0) && hosts.released(2).is_none());
        assert_eq!(hosts.ended(RankId::new(2), &done), None);
        assert_eq!(sent(hosts.release(&[true, true, false], 2.0)), release);
        assert_eq!((hosts.released(2), hosts.released(0)), (Some(2.0), None));
        assert!(sent(hosts.release(&[false; 3], 3.0)).is_empty() && sent(hosts.end()).is_empty(), "rank 0 is busy with the release");
        assert_eq!(hosts.ended(RankId::FIRST, &done), None);
        assert_eq!(sent(hosts.release(&[false; 3], 4.0)), teardown(0));
        let said = hosts.ended(RankId::FIRST, &failed);
        assert_eq!(said.as_deref(), Some("a command for the end (--teardown) of host a ended with status 1"));
        assert!(!hosts.is_done());
        assert_eq!(sent(hosts.release(&[false; 3], 5.0)), release);
        assert!(!hosts.is_done() && hosts.ended(RankId::FIRST, &done).is_none() && hosts.is_done());
    }
}
