//! What the library exports, against the table of facts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use c::facts::Facts;
use c::installed::installed;
use c::player::exported;
use c::{C11, LAST_ERROR, is_of_scilib, succeed};

/// What the names of symbols of SISCI begin with, and of SCILib.
const BEGINNINGS: [&str; 2] = ["_SISCI", "_SCIL"];

fn beginning(name: &str) -> &'static str {
    BEGINNINGS[usize::from(is_of_scilib(name))]
}

fn constant(name: &str) -> String {
    format!("{}_PUBLIC_CONST_{name}", beginning(name))
}

#[test]
fn each_function_is_exported_under_three_names_and_nothing_else_is() {
    let facts = Facts::read();
    let exported = exported(installed());
    let mut expected: BTreeSet<String> = facts.symbols().map(|(name, _)| constant(name)).collect();
    for name in facts.function_names() {
        let others = ["ST", "MT"].map(|kind| format!("{}_PUBLIC_FUNC_{kind}_{name}", beginning(name)));
        expected.extend(others.into_iter().chain([name.to_owned()]));
    }
    expected.insert(LAST_ERROR.to_owned());
    let found: BTreeSet<String> = exported.into_iter().collect();
    assert_eq!(found.symmetric_difference(&expected).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn each_constant_is_a_data_symbol_of_its_value() {
    let facts = Facts::read();
    let mut text = "#include <stdio.h>\n#include <scilib.h>\n".to_owned();
    for (name, _) in facts.symbols() {
        writeln!(text, "extern const unsigned int {}_EXPANDE_CONSTANT_NAME({name});", beginning(name))
            .unwrap();
    }
    text.push_str("int main(void) {\n");
    for (name, _) in facts.symbols() {
        writeln!(text, "printf(\"{name} %u\\n\", {});", constant(name)).unwrap();
    }
    text.push_str("return 0; }\n");
    let source = installed().prefix().join("constants.c");
    std::fs::write(&source, text).unwrap();
    // A path that is absolute is one already.
    let program = installed().compile(&C11, source.to_str().unwrap(), "constants");
    let expected: String = facts.symbols().map(|(name, value)| format!("{name} {value}\n")).collect();
    assert_eq!(succeed(&mut Command::new(program)), expected);
}
