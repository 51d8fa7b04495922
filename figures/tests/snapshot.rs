//! The committed snapshot of what needs no machine, and which rows a change moved.
//!
//! `BEELINE_FIGURES_SNAPSHOT=write cargo test -p beeline-figures` takes it anew.

use std::path::Path;

use beeline_figures::evaluate::RowResult;
use beeline_figures::registry::Class;
use beeline_figures::{Arithmetic, Options, run, snapshot};

#[test]
fn rows_without_a_machine_are_as_committed() {
    let outcome = run(&Options::default(), &mut Arithmetic).unwrap();
    let rows: Vec<RowResult> = outcome.rows.into_iter().filter(|row| row.class == Class::Computed).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshot/arithmetic");
    for (name, text) in snapshot::files(&rows).unwrap() {
        let path = folder.join(name);
        if std::env::var_os("BEELINE_FIGURES_SNAPSHOT").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap();
        let moved = snapshot::moved(&committed, &text).unwrap();
        assert!(moved.is_empty(), "{} moved:\n{moved:#?}", path.display());
    }
}
