//! Paths that are measured in turns, by rounds that each give one rate.

use beeline_floor::MEMORY;

use crate::figure::Row;
use crate::placed::Placed;
use crate::{BenchError, Check, Figure, Report, Settings};

/// A path: what it is called, and a round of it.
pub(crate) struct Path<'s> {
    pub name: String,
    /// Store kernel; `-` where there is none.
    pub kernel: &'static str,
    /// Bytes of a message, headers included.
    pub size_bytes: u32,
    /// Messages a round.
    pub count: u64,
    /// Messages a second of one round.
    pub round: Box<dyn Fn() -> Result<f64, BenchError> + 's>,
}

/// Measures the paths in turns, and checks the figures of each placement.
pub(crate) fn measure(
    bench: &str,
    settings: &Settings,
    paths: &[Path<'_>],
    checks: impl Fn(&[Figure]) -> Vec<Check>,
) -> Result<Report, BenchError> {
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); paths.len()];
    let placed = Placed::run(settings, || {
        for (path, rates) in paths.iter().zip(&mut rates) {
            rates.push((path.round)()?);
        }
        Ok(())
    })?;
    let figure = |(path, rates): (&Path<'_>, _)| {
        let Path { name, kernel, size_bytes, count, .. } = path;
        let row = Row { bench, name, kernel, memory: MEMORY, size_bytes: *size_bytes, count: *count };
        Figure::rate(row, rates)
    };
    let figures: Vec<_> = paths.iter().zip(rates).map(figure).collect();
    Ok(placed.report(bench, &figures, checks))
}
