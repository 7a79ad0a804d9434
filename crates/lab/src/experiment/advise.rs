//! Advice as a record: what was asked, and the answer.

use equipoise::Result;
use equipoise::advice::{Advice, Choice, Question};
use serde::Serialize;

/// What `advise --output json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct AdviceRecord {
    pub ranks: u32,
    /// As they were given.
    pub loads: String,
    pub task_seconds: f64,
    pub steps: u64,
    /// Bytes that a task carries.
    pub payload: u64,
    pub network: String,
    /// Whether the network was measured.
    pub measured: bool,
    pub pays: bool,
    pub balancer: String,
    pub topology: String,
    /// Over all steps, and in one.
    pub gain_seconds: f64,
    pub gain_seconds_per_step: f64,
    pub cost_seconds: f64,
    pub before_seconds: f64,
    pub after_seconds: f64,
    /// Maximum over mean of the loads, in time.
    pub imbalance: f64,
    pub crossover_imbalance: Option<f64>,
    pub crossover_task_seconds: Option<f64>,
    pub crossover_steps: Option<u64>,
    pub crossover_arriving_seconds: f64,
    pub certainty: f64,
    pub about_even: bool,
    pub choices: Vec<ChoiceRecord>,
}

/// What one balancer would do.
#[derive(Clone, Debug, Serialize)]
pub struct ChoiceRecord {
    pub balancer: String,
    pub topology: String,
    pub gain_seconds: f64,
    pub cost_seconds: f64,
}

impl AdviceRecord {
    /// Answers a question about loads that were given as `loads`, on a network with this name.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn of(question: &Question, loads: String, network: String, measured: bool) -> Result<AdviceRecord> {
        let advice = question.answer()?;
        let choice =
            |Choice { balancer, topology, gain_seconds, cost_seconds }| ChoiceRecord { balancer, topology, gain_seconds, cost_seconds };
        let Advice { pays, balancer, topology, gain_seconds, cost_seconds, before_seconds, after_seconds, .. } = advice;
        Ok(AdviceRecord {
            ranks: question.loads.len() as u32,
            loads,
            task_seconds: question.unit_seconds,
            steps: question.steps,
            payload: question.payload,
            network,
            measured,
            pays,
            balancer,
            topology,
            gain_seconds,
            gain_seconds_per_step: gain_seconds / question.steps as f64,
            cost_seconds,
            before_seconds,
            after_seconds,
            imbalance: advice.imbalance,
            crossover_imbalance: advice.crossover_imbalance,
            crossover_task_seconds: advice.crossover_task_seconds,
            crossover_steps: advice.crossover_steps,
            crossover_arriving_seconds: advice.crossover_arriving_seconds,
            certainty: advice.certainty,
            about_even: advice.about_even,
            choices: advice.choices.into_iter().map(choice).collect(),
        })
    }
}
