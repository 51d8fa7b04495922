//! The headers against the table of facts: each name, value and signature, as C and as C++, and what each comment says of flags.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use c::facts::{Facts, MASK};
use c::{C11, CPP17, HERE, STRICT, succeed};

/// Compilers for processors that store the first byte of a word last.
const BIG_ENDIAN: [&str; 3] = ["s390x-linux-gnu-gcc", "powerpc64-linux-gnu-gcc", "powerpc-linux-gnu-gcc"];
/// Macros of the headers that are no facts of the interface.
const OWN_MACROS: [&str; 2] = ["SCI_ERR_OK", "SCI_ERR_MASK"];

#[test]
fn headers_give_each_fact_its_name_value_and_signature() {
    let facts = Facts::read();
    for (compiler, check) in [(&C11[..], "_Static_assert"), (&CPP17[..], "static_assert")] {
        for reentrant in [&["-D_REENTRANT"][..], &[]] {
            let flags: Vec<&str> = compiler.iter().chain(reentrant).copied().collect();
            compiles(&flags, &checks(&facts, check));
        }
    }
}

#[test]
fn each_header_compiles_alone() {
    let foreign: Vec<&str> = BIG_ENDIAN.into_iter().filter(|compiler| is_there(compiler)).take(1).collect();
    if foreign.is_empty() {
        eprintln!(
            "no compiler for a big-endian processor is here ({}); not looked at",
            BIG_ENDIAN.join(", ")
        );
    }
    let headers = c::headers();
    assert!(headers.len() >= 6, "{headers:?}");
    for header in headers {
        let text = format!("#include \"{header}\"\nextern int used;\nint used;\n");
        compiles(&C11, &text);
        compiles(&CPP17, &text);
        for compiler in &foreign {
            compiles(&[compiler, "-std=c11"], &text);
        }
    }
}

/// Programs of others are compiled by whatever standard they were written for.
#[test]
fn headers_compile_without_a_warning_by_old_standards_of_c_and_cpp() {
    let text = "#include \"testlib.h\"\n#include \"scilib.h\"\n\
                int main(void) { timer_start_t timer; unsigned int node = 0; StartTimer(&timer); SleepMilliseconds(1);\n\
                return StopTimer(timer) < 1e6 && GetLocalNodeId(0, &node) == SCI_ERR_OK; }\n";
    for standard in ["-std=c89", "-std=gnu89", "-std=c99"] {
        compiles(&["cc", standard], text);
    }
    for standard in ["-std=c++98", "-std=c++17"] {
        compiles(&["c++", standard, "-Wold-style-cast", "-x", "c++"], text);
    }
}

/// The library writes as many numbers as it was made for, whatever a program says.
#[test]
fn another_number_of_adapters_than_the_librarys_does_not_compile() {
    for (number, compiles) in [("16", true), ("16u", true), ("4", false)] {
        let said = Command::new("cc")
            .args(["-std=c11", "-fsyntax-only", "-x", "c"])
            .args(STRICT)
            .arg(format!("-DDIS_MAX_NSCIS={number}"))
            .arg(format!("{HERE}/include/sisci_types.h"))
            .output()
            .unwrap();
        assert_eq!(said.status.success(), compiles, "{number}: {}", String::from_utf8_lossy(&said.stderr));
    }
}

#[test]
fn headers_have_no_name_that_the_facts_lack() {
    let facts = Facts::read();
    let macros = preprocessed("#include <scilib.h>\n", &["-dM"]);
    let names = macros.lines().filter_map(|line| line.strip_prefix("#define ")?.split_whitespace().next());
    let ours =
        |name: &&str| ["SCI", "DIS", "MSG", "GetSci", "SetSci"].iter().any(|start| name.starts_with(start));
    let is_guard = |name: &str| name.ends_with("_H");
    let found: BTreeSet<&str> =
        names.filter(ours).filter(|name| !is_guard(name) && !OWN_MACROS.contains(name)).collect();
    let known: BTreeSet<&str> = facts.values().map(|(name, _)| name).chain(facts.function_names()).collect();
    assert_eq!(found.difference(&known).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert_eq!(known.difference(&found).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn comment_of_each_function_names_its_flags() {
    let facts = Facts::read();
    for (name, comment) in c::comments() {
        let Some(function) = facts.functions.get(&name) else { panic!("{name} is no function") };
        let as_another = comment.contains("lags: as ") || comment.contains("lags and errors: as ");
        let named: BTreeSet<&str> = comment
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .filter(|word| word.starts_with("SCI_FLAG_") || word.starts_with("SCIL_FLAG_"))
            .collect();
        let takes: BTreeSet<&str> = function.flags.iter().flatten().map(String::as_str).collect();
        let missing: Vec<_> = takes.difference(&named).collect();
        let wrong: Vec<_> = named.difference(&takes).collect();
        assert!(
            wrong.is_empty() && (as_another || missing.is_empty()),
            "{name}: {wrong:?}, lacks {missing:?}"
        );
    }
    let commented: BTreeSet<String> = c::comments().map(|(name, _)| name).collect();
    assert_eq!(commented, facts.function_names().map(str::to_owned).collect());
}

/// A program that does not compile unless the headers say what the facts say.
fn checks(facts: &Facts, check: &str) -> String {
    let mut text = "#include <scilib.h>\n".to_owned();
    for (name, value) in facts.values() {
        writeln!(text, "{check}({name} == {value:#x}u, \"{name}\");").unwrap();
    }
    writeln!(text, "{check}(SCI_ERR_OK == 0 && SCI_ERR_MASK == {MASK:#x}u, \"codes\");").unwrap();
    for (kind, name, value) in facts.enumerators() {
        writeln!(text, "{check}({name} == {value}, \"{name}\");\nextern {kind} a_{name};").unwrap();
        writeln!(text, "{kind} a_{name} = {name};").unwrap();
    }
    for (name, function) in &facts.functions {
        let (returns, takes) = (&function.returns, function.parameters());
        writeln!(text, "extern {returns}(*a_{name})({takes});\n{returns}(*a_{name})({takes}) = {name};")
            .unwrap();
    }
    text
}

fn compiles(compiler: &[&str], text: &str) {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source.c");
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .args(STRICT)
        .arg(format!("-I{HERE}/include"))
        .arg(format!("-I{HERE}/include/dis"));
    succeed(command.arg("-c").arg(&source).arg("-o").arg(place.path().join("object.o")));
}

fn preprocessed(text: &str, options: &[&str]) -> String {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source.c");
    std::fs::write(&source, text).unwrap();
    succeed(
        Command::new("cc")
            .args(["-std=c11", "-E"])
            .args(options)
            .arg(format!("-I{HERE}/include"))
            .arg(source),
    )
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).exists())
}
