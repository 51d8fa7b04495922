//! What the library exports, against the table of facts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use c::facts::Facts;
use c::installed::installed;
use c::player::exported;
use c::{C11, LAST_ERROR, succeed};

const ST: &str = "_SISCI_PUBLIC_FUNC_ST_";
const MT: &str = "_SISCI_PUBLIC_FUNC_MT_";
const CONSTANT: &str = "_SISCI_PUBLIC_CONST_";

#[test]
fn each_function_is_exported_under_three_names_and_nothing_else_is() {
    let facts = Facts::read();
    let exported = exported(installed());
    let mut expected: BTreeSet<String> =
        facts.symbols().map(|(name, _)| format!("{CONSTANT}{name}")).collect();
    for name in facts.function_names() {
        expected.extend([name.to_owned(), format!("{ST}{name}"), format!("{MT}{name}")]);
    }
    expected.insert(LAST_ERROR.to_owned());
    let found: BTreeSet<String> = exported.into_iter().collect();
    assert_eq!(found.symmetric_difference(&expected).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn each_constant_is_a_data_symbol_of_its_value() {
    let facts = Facts::read();
    let mut text = "#include <stdio.h>\n#include <sisci_api.h>\n".to_owned();
    for (name, _) in facts.symbols() {
        writeln!(text, "extern const unsigned int _SISCI_EXPANDE_CONSTANT_NAME({name});").unwrap();
    }
    text.push_str("int main(void) {\n");
    for (name, _) in facts.symbols() {
        writeln!(text, "printf(\"{name} %u\\n\", {CONSTANT}{name});").unwrap();
    }
    text.push_str("return 0; }\n");
    let source = installed().prefix().join("constants.c");
    std::fs::write(&source, text).unwrap();
    // A path that is absolute is one already.
    let program = installed().compile(&C11, source.to_str().unwrap(), "constants");
    let expected: String = facts.symbols().map(|(name, value)| format!("{name} {value}\n")).collect();
    assert_eq!(succeed(&mut Command::new(program)), expected);
}
