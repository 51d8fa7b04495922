//! The block "The API" of the README names every public type and call of the facade, `rpc` and what layers below define
//! included, and every call there exists. Methods that a macro makes (`Interface`) are not compared.
//!
//! The sources are read with `syn`, not rustdoc's JSON, which only a nightly toolchain writes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::collections::{BTreeMap, BTreeSet};
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

/// The folders of the crates that the facade takes types from.
const LAYERS: [(&str, &str); 7] = [
    ("beeline_domain", "os/domain/src"),
    ("beeline_driver", "host/driver/src"),
    ("beeline_mmio", "os/mmio/src"),
    ("beeline_rpc", "host/rpc/src"),
    ("beeline_spec", "spec/src"),
    ("beeline_tuning", "host/tuning/src"),
    ("beeline_window", "host/window/src"),
];
/// Where a layer has a type from that it hands on itself.
const HANDED_ON: [(&str, &str); 1] = [("WaitPolicy", "contract/memory/src")];
/// Calls that take or give types of the layer below, which the facade does not give (`Domain::client` and `server` are its own),
/// and those for tests of that layer or for others of it.
const OF_THE_LAYER_BELOW: [(&str, &str); 10] = [
    ("Event", "wait"),
    ("MappedSegment", "bar_under"),
    ("MappedSegment", "read_only_region"),
    ("MappedSegment", "region"),
    ("Client", "connect"),
    ("Client", "connect_awaiting"),
    ("Client", "connect_proving"),
    ("Client", "connect_within"),
    ("Client", "over"),
    ("Server", "offer"),
];

/// A name that a `use` gives: the name here, the name where it comes from, and the first segment of the path.
#[derive(Debug)]
struct Used {
    name: String,
    original: String,
    source: String,
}

fn used(tree: &UseTree, source: Option<&str>, names: &mut Vec<Used>) {
    let mut add = |name: String, original: String| {
        names.push(Used { name, original, source: source.unwrap_or_default().to_owned() });
    };
    match tree {
        UseTree::Path(path) => used(&path.tree, Some(source.unwrap_or(&path.ident.to_string())), names),
        UseTree::Group(group) => group.items.iter().for_each(|item| used(item, source, names)),
        UseTree::Name(name) => add(name.ident.to_string(), name.ident.to_string()),
        UseTree::Rename(rename) => add(rename.rename.to_string(), rename.ident.to_string()),
        UseTree::Glob(_) => panic!("a facade names what it gives"),
    }
}

fn public_uses(file: &syn::File) -> Vec<Used> {
    let mut names = Vec::new();
    for item in &file.items {
        if let Item::Use(item) = item
            && matches!(item.vis, Visibility::Public(_))
        {
            used(&item.tree, None, &mut names);
        }
    }
    names
}

fn public_functions(file: &syn::File) -> impl Iterator<Item = String> {
    file.items.iter().filter_map(|item| match item {
        Item::Fn(function) if matches!(function.vis, Visibility::Public(_)) => {
            Some(function.sig.ident.to_string())
        }
        _ => None,
    })
}

fn parsed(path: &str) -> syn::File {
    syn::parse_file(&std::fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

/// A public name of the facade and of its modules, and where what it names is defined.
#[derive(Debug)]
struct Exported {
    name: String,
    original: String,
    folder: &'static str,
}

fn exported() -> Vec<Exported> {
    let own = sources(&root().join("api/rust/src"));
    let from_below: Vec<Used> = own.iter().flat_map(public_uses).collect();
    let layer = |source: &str| LAYERS.iter().find(|(layer, _)| *layer == source).map(|(_, folder)| *folder);
    let mut all = Vec::new();
    for file in ["api/rust/src/lib.rs", "api/rust/src/rpc.rs", "api/rust/src/segment.rs"] {
        for found in public_uses(&parsed(file)) {
            let handed_on = HANDED_ON.iter().find(|(name, _)| *name == found.original).map(|(_, at)| *at);
            // A module of the facade may have it from a layer too.
            let folder = handed_on.or_else(|| layer(&found.source)).or_else(|| {
                let below = from_below
                    .iter()
                    .find(|below| below.name == found.name && layer(&below.source).is_some());
                below.and_then(|below| layer(&below.source))
            });
            let Used { name, original, .. } = found;
            all.push(Exported { name, original, folder: folder.unwrap_or("api/rust/src") });
        }
        all.extend(public_functions(&parsed(file)).map(|name| Exported {
            original: name.clone(),
            name,
            folder: "api/rust/src",
        }));
    }
    for wire in public_uses(&parsed("host/rpc/src/wire/mod.rs")) {
        all.push(Exported { name: wire.name, original: wire.original, folder: "host/rpc/src" });
    }
    all
}

/// Public methods and constants of types, `(type, method)`, of the files below a folder.
fn methods(folder: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for file in sources(&root().join(folder)) {
        for item in file.items {
            let Item::Impl(item) = item else { continue };
            let syn::Type::Path(owner) = &*item.self_ty else { continue };
            let owner = owner.path.segments.last().unwrap().ident.to_string();
            for inner in &item.items {
                let (vis, name) = match inner {
                    ImplItem::Fn(method) => (&method.vis, &method.sig.ident),
                    ImplItem::Const(constant) => (&constant.vis, &constant.ident),
                    _ => continue,
                };
                if matches!(vis, Visibility::Public(_)) {
                    found.insert((owner.clone(), name.to_string()));
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
    assert!(exported.len() > 60, "{exported:?}");
    let missing: Vec<_> = exported.iter().filter(|it| !words.contains(it.name.as_str())).collect();
    assert!(missing.is_empty(), "exported and not in the block: {missing:?}");
}

/// The methods of each folder that the facade has types from.
fn methods_by_folder(exported: &[Exported]) -> BTreeMap<&'static str, BTreeSet<(String, String)>> {
    let folders: BTreeSet<&str> = exported.iter().map(|it| it.folder).collect();
    folders.into_iter().map(|folder| (folder, methods(folder))).collect()
}

#[test]
fn every_public_method_is_in_the_block() {
    let (block, exported) = (block(), exported());
    let (words, methods) = (words(&block), methods_by_folder(&exported));
    let (mut compared, mut missing) = (0, Vec::new());
    for it in &exported {
        for (owner, method) in &methods[it.folder] {
            if *owner != it.original || OF_THE_LAYER_BELOW.contains(&(owner, method)) {
                continue;
            }
            compared += 1;
            if !words.contains(method.as_str()) {
                missing.push(format!("{}::{method}", it.name));
            }
        }
    }
    assert!(compared > 170, "{compared} methods found");
    assert!(missing.is_empty(), "public and not in the block: {missing:?}");
}

#[test]
fn every_call_in_the_block_exists() {
    let (block, exported) = (block(), exported());
    let methods = methods_by_folder(&exported).into_values().flatten().map(|(_, method)| method);
    let known: BTreeSet<String> = methods.chain(exported.iter().map(|it| it.name.clone())).collect();
    let before_parenthesis = block.match_indices('(').filter_map(|(at, _)| {
        let start = block[..at].rfind(|c: char| !(c.is_alphanumeric() || c == '_'))? + 1;
        (start < at && block[start..at].starts_with(char::is_lowercase)).then(|| &block[start..at])
    });
    let unknown: Vec<_> = before_parenthesis.filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "in the block and not in the code: {unknown:?}");
}
