//! The recorded verdicts, which are part of the program: `verdicts.toml` in this folder.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use equipoise::error::{Error, Result};

/// Whether a claim came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Reproduced,
    /// Under a reading that the paper does not state, which the claim names.
    UnderReading,
    NotReproduced,
    /// The cases are too few to tell.
    Undecided,
}

impl Verdict {
    /// All.
    pub const ALL: [Verdict; 4] = [Verdict::Reproduced, Verdict::UnderReading, Verdict::NotReproduced, Verdict::Undecided];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::UnderReading => "reproduced under a stated reading",
            Verdict::NotReproduced => "not reproduced",
            Verdict::Undecided => "undecided",
        }
    }
}

/// The result for one claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub verdict: Verdict,
    /// Our numbers, as the claim's finding writes them.
    pub ours: String,
    pub cases: u64,
}

/// All records, by claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records(BTreeMap<String, Record>);

impl Records {
    /// Those that this program was built with.
    ///
    /// # Errors
    /// If the file is wrong.
    pub fn built_in() -> Result<Records> {
        Records::parse(include_str!("verdicts.toml"))
    }

    fn parse(text: &str) -> Result<Records> {
        toml::from_str(text).map(Records).map_err(|why| Error::Failed(format!("the recorded verdicts: {why}")))
    }

    /// The record of a claim.
    pub fn find(&self, claim: &str) -> Option<&Record> {
        self.0.get(claim)
    }

    /// Names of all claims that are recorded.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// These records with what was found now.
    pub fn with<'a>(mut self, found: impl IntoIterator<Item = (&'a str, Record)>) -> Records {
        self.0.extend(found.into_iter().map(|(claim, record)| (claim.to_string(), record)));
        self
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "# Verdicts on the papers' claims, written by `equipoise reproduce --record`. `equipoise reproduce` fails where it finds others."
        )?;
        for (claim, Record { verdict, ours, cases }) in &self.0 {
            let verdict = serde_json::to_string(verdict)?;
            // A string of JSON is one of TOML, too.
            let ours = serde_json::to_string(ours)?;
            write!(out, "\n[{claim}]\nverdict = {verdict}\nours = {ours}\ncases = {cases}\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Paper;
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let records = Records::built_in().unwrap();
        let mut text = Vec::new();
        records.write(&mut text).unwrap();
        assert_eq!(Records::parse(std::str::from_utf8(&text).unwrap()).unwrap(), records);
        assert!(Records::parse("[a]\nverdict = \"perhaps\"\nours = \"\"\ncases = 1\n").is_err());
    }

    #[test]
    fn every_claim_has_a_record_and_every_record_a_claim() {
        let records = Records::built_in().unwrap();
        let mut claims: Vec<&str> = Paper::ALL.iter().flat_map(|paper| paper.study().claims).map(|claim| claim.id).collect();
        claims.sort_unstable();
        assert_eq!(records.names().collect::<Vec<_>>(), claims);
        for paper in Paper::ALL {
            for claim in paper.study().claims {
                assert!(claim.id.starts_with(paper.name()), "{}", claim.id);
                let record = records.find(claim.id).unwrap();
                // Why something is not so is said where it is not.
                assert!(record.verdict != Verdict::NotReproduced || !claim.why.is_empty(), "{}", claim.id);
                if record.verdict == Verdict::UnderReading {
                    assert!(!claim.reading.is_empty(), "{}", claim.id);
                }
            }
        }
    }
}
