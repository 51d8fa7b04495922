//! Programs in C: the headers, and how they are compiled.
#![allow(dead_code, reason = "not every test file needs everything")]

pub mod facts;
pub mod ground;
pub mod installed;
pub mod player;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const HERE: &str = env!("CARGO_MANIFEST_DIR");
pub const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];
pub const C11: [&str; 2] = ["cc", "-std=c11"];
/// The function of the library that is this project's and not the interface's.
pub const LAST_ERROR: &str = "beeline_sisci_last_error";
pub const CPP17: [&str; 4] = ["c++", "-std=c++17", "-x", "c++"];

pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// The headers that programs include by name.
pub fn headers() -> Vec<String> {
    let include = Path::new(HERE).join("include");
    let own = files(&include).into_iter().chain(files(&include.join("dis")));
    own.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Where functions are declared.
fn declaring() -> Vec<PathBuf> {
    let include = Path::new(HERE).join("include");
    let mut found = files(&include.join("sisci_api"));
    found.push(include.join("scilib.h"));
    found
}

/// Whether a name is one of SCILib, whose symbols have another prefix.
pub fn is_of_scilib(name: &str) -> bool {
    name.starts_with("SCIL")
}

/// Each function with the comment before it.
pub fn comments() -> impl Iterator<Item = (String, String)> {
    let texts = declaring().into_iter();
    texts.map(|path| std::fs::read_to_string(path).unwrap()).flat_map(|text| {
        let parts: Vec<String> = text.split("/**").skip(1).map(str::to_owned).collect();
        parts.into_iter().filter_map(|part| {
            let (comment, rest) = part.split_once("*/")?;
            let name = rest.split_once('(')?.0.rsplit([' ', '*', '\n']).next()?;
            let is_function = !rest.trim_start().starts_with('#');
            is_function.then(|| (name.to_owned(), comment.to_owned()))
        })
    })
}

/// Names of the parameters of each function, as its declaration has them.
pub fn parameter_names() -> BTreeMap<String, Vec<String>> {
    let texts = declaring().into_iter();
    let declarations = texts.flat_map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.split("*/").skip(1).filter_map(declared).collect::<Vec<_>>()
    });
    declarations.collect()
}

/// The name and the parameters of a function that is declared where a comment has ended.
fn declared(text: &str) -> Option<(String, Vec<String>)> {
    let (declaration, _) = text.split_once(';')?;
    let (before, parameters) = declaration.split_once('(')?;
    let last = |text: &str| {
        text.trim_end_matches(')').rsplit([' ', '*', '\n']).next().unwrap_or_default().to_owned()
    };
    (!before.contains('#')).then(|| (last(before), parameters.split(',').map(last).collect()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}
