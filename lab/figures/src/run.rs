//! One run: everything that is asked of a simulator, in one value.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::cache::CachingSimulator;
use crate::curves::{self, Drawn};
use crate::error::Error;
use crate::evaluate::{self, RowResult};
use crate::fences::{self, FenceRow};
use crate::freeze::{Frozen, PlatformFile, State};
use crate::left_out::{self, LeftOut};
use crate::moves;
use crate::published::{self, RowId};
use crate::registry::{Lost, Registry};
use crate::score::{self, Score};
use crate::simulator::{Card, Simulator};

/// What a run shall do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The platform files as they are now, to compare with those of the freeze.
    pub files: Vec<PlatformFile>,
    /// Whether each platform is left out once; its rows are run twice then.
    pub leave_out: bool,
    /// Whether the figures of the papers are drawn; most of a run's time goes there.
    pub draw: bool,
}

/// All that a run found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Every row of the file.
    pub rows: Vec<RowResult>,
    /// Figures that are lost in the sources' texts and have no row.
    pub lost: Vec<Lost>,
    pub score: Score,
    /// Each platform left out, where that was asked for.
    pub left_out: Vec<LeftOut>,
    /// The errors of all of them.
    pub left_out_error: left_out::Summary,
    /// What a fence may wait for.
    pub fences: Vec<FenceRow>,
    /// The figures of the papers, where that was asked for.
    pub figures: Vec<Drawn>,
    /// Rows that constants were solved from.
    pub fit_set: BTreeSet<RowId>,
    /// Whether the platform files are those of the freeze.
    pub state: State,
    /// Contradictions between rows and platform files; a score with one is worth nothing.
    pub conflicts: Vec<String>,
}

/// Runs every row. Errors are of the files of this crate alone: what a simulator cannot do is part of the outcome.
pub fn run(options: &Options, simulator: &mut dyn Simulator) -> Result<Outcome, Error> {
    let simulator = &mut CachingSimulator::new(simulator);
    let published = published::rows()?;
    let registry = Registry::of(&published)?;
    let rows = evaluate::all(simulator, &registry, &published, &moves::committed()?);
    let cards = simulator.platforms();
    let fit_set: BTreeSet<RowId> = cards.iter().flat_map(Card::fit_set).cloned().collect();
    let left_out =
        if options.leave_out { left_out::all(simulator, &registry, &published) } else { Vec::new() };
    Ok(Outcome {
        lost: registry.lost.clone(),
        score: Score::of(&rows, &cards),
        left_out_error: left_out::summary(&left_out),
        left_out,
        fences: fences::table(simulator, &published),
        figures: if options.draw { curves::draw(simulator, &registry, &published) } else { Vec::new() },
        state: Frozen::committed()?.state(&options.files, &fit_set),
        conflicts: score::conflicts(&rows, &cards),
        fit_set,
        rows,
    })
}
