//! A simulator that is asked each thing once: shapes, figures and rows want the same runs.

use std::collections::BTreeMap;

use crate::quantity::Quantity;
use crate::simulator::{Card, NotModelled, Replacement, Simulator};

/// Keeps the answers of another simulator for platforms as their files have them.
pub struct CachingSimulator<'a> {
    simulator: &'a mut dyn Simulator,
    answers: BTreeMap<(String, Quantity), Result<f64, NotModelled>>,
}

impl<'a> CachingSimulator<'a> {
    /// Returns a cache without answers.
    pub fn new(simulator: &'a mut dyn Simulator) -> Self {
        CachingSimulator { simulator, answers: BTreeMap::new() }
    }
}

impl Simulator for CachingSimulator<'_> {
    fn platforms(&self) -> Vec<Card> {
        self.simulator.platforms()
    }

    fn measure_with(
        &mut self,
        platform: &str,
        replacements: &[Replacement],
        quantity: &Quantity,
    ) -> Result<f64, NotModelled> {
        // With parameters replaced hardly anything is asked twice.
        if !replacements.is_empty() {
            return self.simulator.measure_with(platform, replacements, quantity);
        }
        let key = (platform.to_owned(), quantity.clone());
        let simulator = &mut self.simulator;
        self.answers.entry(key).or_insert_with(|| simulator.measure_with(platform, &[], quantity)).clone()
    }
}
