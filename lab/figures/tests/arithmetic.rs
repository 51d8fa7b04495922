//! What is arithmetic on declared inputs comes out as printed, without a machine.

use beeline_figures::evaluate::Ours;
use beeline_figures::registry::Class;
use beeline_figures::{Arithmetic, Options, run};

#[test]
fn computed_rows_are_as_printed() {
    let outcome = run(&Options::default(), &mut Arithmetic).unwrap();
    let mut computed = 0;
    for row in outcome.rows.iter().filter(|row| row.class == Class::Computed) {
        computed += 1;
        let (ours, error) = (&row.ours, row.error_percent);
        assert_eq!(row.is_inside, Some(true), "{}: {ours:?}, printed {}, {error:?} %", row.id, row.printed);
    }
    assert_eq!(outcome.score.computed.holding, computed);
    assert!(computed >= 40, "{computed}");
}

#[test]
fn without_a_machine_nothing_else_has_a_figure() {
    let outcome = run(&Options { draw: true, ..Options::default() }, &mut Arithmetic).unwrap();
    for row in outcome.rows.iter().filter(|row| !matches!(row.class, Class::Computed | Class::Said)) {
        assert!(matches!(row.ours, Ours::None(_)), "{}: {:?}", row.id, row.ours);
    }
    assert_eq!(outcome.score.own.rows + outcome.score.others.rows, 0);
    assert!(!outcome.score.own.missing.is_empty() && !outcome.score.own.is_met());
    assert!(outcome.figures.iter().flat_map(|figure| &figure.lines).all(|line| line.simulated.is_empty()));
}
