//! Advice as a record: question and answer.

use equipoise::Result;
use equipoise::advice::{Advice, Question};
use serde::Serialize;

/// Record that `advise --output json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct AdviceRecord {
    pub ranks: u32,
    /// Loads, as given.
    pub loads: String,
    pub task_seconds: f64,
    pub steps: u64,
    /// Bytes that a task carries.
    pub payload: u64,
    pub network: String,
    /// Whether the network was measured.
    pub measured: bool,
    #[serde(flatten)]
    pub advice: Advice,
}

impl AdviceRecord {
    /// Answers a question about loads that were given as `loads`, on a network with this name.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn of(question: &Question, loads: String, network: String, measured: bool) -> Result<AdviceRecord> {
        Ok(AdviceRecord {
            ranks: question.loads.len() as u32,
            loads,
            task_seconds: question.unit_seconds,
            steps: question.steps,
            payload: question.payload,
            network,
            measured,
            advice: question.answer()?,
        })
    }
}
