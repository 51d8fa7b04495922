//! The block "The API" of the README is all of it: every public name of the facade stands there, and every call there exists.
//!
//! The sources are read with `syn`, not rustdoc's JSON, which only a nightly toolchain writes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syn::{ImplItem, Item, UseTree, Visibility};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn block() -> String {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let start = text.find("```rust\nDomain::open").expect("the block begins with Domain::open");
    let end = start + 8 + text[start + 8..].find("```").expect("the block ends");
    text[start..end].to_owned()
}

fn sources(folder: &Path) -> Vec<syn::File> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap());
        }
    }
    files
}

/// The names that a `use` gives.
fn used(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => used(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|item| used(item, names)),
        UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        UseTree::Rename(rename) => drop(names.insert(rename.rename.to_string())),
        UseTree::Glob(_) => panic!("a facade names what it gives"),
    }
}

/// The names of the crate's root.
fn exported() -> BTreeSet<String> {
    let library = std::fs::read_to_string(root().join("api/rust/src/lib.rs")).unwrap();
    let mut names = BTreeSet::new();
    for item in syn::parse_file(&library).unwrap().items {
        if let Item::Use(item) = item
            && matches!(item.vis, Visibility::Public(_))
        {
            used(&item.tree, &mut names);
        }
    }
    names
}

/// Public methods of types, `Type::method`, of the files below a folder.
fn methods(folder: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for file in sources(&root().join(folder)) {
        for item in file.items {
            let Item::Impl(item) = item else { continue };
            let syn::Type::Path(owner) = &*item.self_ty else { continue };
            let owner = owner.path.segments.last().unwrap().ident.to_string();
            for inner in &item.items {
                if let ImplItem::Fn(method) = inner
                    && matches!(method.vis, Visibility::Public(_))
                {
                    found.insert((owner.clone(), method.sig.ident.to_string()));
                }
            }
        }
    }
    found
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_public_name_is_in_the_block() {
    let (block, exported) = (block(), exported());
    let words = words(&block);
    assert!(exported.len() > 30, "{exported:?}");
    let missing: Vec<_> = exported.iter().filter(|name| !words.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "exported and not in the block: {missing:?}");
    let own = methods("api/rust/src");
    assert!(own.len() > 60, "{own:?}");
    let missing: Vec<_> = own
        .iter()
        .filter(|(owner, method)| exported.contains(owner) && !words.contains(method.as_str()))
        .collect();
    assert!(missing.is_empty(), "public methods that are not in the block: {missing:?}");
}

#[test]
fn every_call_in_the_block_exists() {
    let block = block();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for folder in ["api/rust/src", "host/rpc/src", "os/domain/src"] {
        known.extend(methods(folder).into_iter().map(|(_, method)| method));
    }
    let before_parenthesis = block.match_indices('(').filter_map(|(at, _)| {
        let start = block[..at].rfind(|c: char| !(c.is_alphanumeric() || c == '_'))? + 1;
        (start < at && block[start..at].starts_with(char::is_lowercase)).then(|| &block[start..at])
    });
    let unknown: Vec<_> = before_parenthesis.filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "in the block and not in the code: {unknown:?}");
}
