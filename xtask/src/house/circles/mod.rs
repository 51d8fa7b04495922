//! Circles: files of one crate that name each other's items, so that none can be read or moved without the others.
//!
//! What counts. A file has an edge to every other file of its crate that *defines* an item it names: in a private `use`, in
//! an expression, a type, a bound or a pattern, or inside a macro call. Re-exports and imports are followed to the
//! definition, through `use` of any visibility and `*`. So a parent that declares and re-exports its children has no edge
//! to them, and a child that reaches its sibling by `super::Name` has an edge to the sibling and none to the parent. A
//! parent with code of its own does belong to a circle when it names items of a child that names items of the parent.
//! Naming only a module is no edge. An enum's variant and a type's function count as the type.
//!
//! What does not count: code under `#[cfg(test)]` and `#[test]`, attributes, and methods called on a value, whose
//! `impl` the text does not name.

mod modules;
mod paths;
mod reader;

use std::collections::BTreeMap;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use toml::{Table, Value};

use crate::source::SourceFile;
use modules::Modules;

/// Per pair of files: where the first names the second, and what it names there.
type Edges<'a> = BTreeMap<(&'a str, &'a str), (usize, String)>;

/// Circles, and files that are no Rust.
pub fn between_files(files: &[SourceFile]) -> Vec<String> {
    let by_path: BTreeMap<&str, &SourceFile> = files.iter().map(|file| (&*file.path, file)).collect();
    let mut findings = Vec::new();
    for root in files.iter().filter_map(|file| crate_roots(file, &by_path)).flatten() {
        let modules = match reader::read(root, &by_path) {
            Ok(modules) => modules,
            Err(unreadable) => {
                findings.push(unreadable);
                continue;
            }
        };
        let edges = edges(&modules);
        findings.extend(circles(&edges).iter().map(|circle| described(circle, &edges)));
    }
    findings
}

/// The files that the library and the programs of a manifest begin with.
fn crate_roots<'a>(manifest: &SourceFile, files: &BTreeMap<&'a str, &SourceFile>) -> Option<Vec<&'a str>> {
    let folder = manifest.path.strip_suffix("Cargo.toml")?;
    let table: Table = manifest.text.parse().ok()?;
    let programs = table.get("bin").and_then(Value::as_array).into_iter().flatten();
    let named: Vec<String> = table
        .get("lib")
        .into_iter()
        .chain(programs)
        .filter_map(|target| Some(format!("{folder}{}", target.get("path")?.as_str()?)))
        .collect();
    let is_root = |path: &str| {
        let rest = path.strip_prefix(folder).unwrap_or_default();
        let program = rest.strip_prefix("src/bin/").and_then(|rest| rest.strip_suffix(".rs"));
        let is_program = program.is_some_and(|name| !name.contains('/') || name.ends_with("/main"));
        ["src/lib.rs", "src/main.rs"].contains(&rest) || is_program || named.iter().any(|name| name == path)
    };
    Some(files.keys().copied().filter(|path| is_root(path)).collect())
}

/// Which file names an item of which other file.
fn edges(modules: &Modules) -> Edges<'_> {
    let mut edges = Edges::new();
    for mention in &modules.mentions {
        let Some(definition) = paths::defining_module(modules, mention) else { continue };
        let (from, to) = (&*modules.all[mention.module].file, &*modules.all[definition].file);
        if from != to {
            edges.entry((from, to)).or_insert_with(|| (mention.line, mention.path.join("::")));
        }
    }
    edges
}

/// Groups of files each of which leads to all others of the group.
fn circles<'a>(edges: &Edges<'a>) -> Vec<Vec<&'a str>> {
    let graph: DiGraphMap<&str, ()> = edges.keys().map(|(from, to)| (*from, *to, ())).collect();
    let mut circles: Vec<_> = tarjan_scc(&graph).into_iter().filter(|group| group.len() > 1).collect();
    circles.iter_mut().for_each(|circle| circle.sort_unstable());
    circles.sort_unstable();
    circles
}

fn described(circle: &[&str], edges: &Edges<'_>) -> String {
    let inside = edges.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
    let lines: Vec<String> = inside
        .map(|((from, to), (line, path))| format!("    {from}:{line} names `{path}` of {to}"))
        .collect();
    format!("{}: {} files name each other's items\n{}", circle[0], circle.len(), lines.join("\n"))
}

#[cfg(test)]
mod tests;
