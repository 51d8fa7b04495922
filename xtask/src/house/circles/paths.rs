//! From a path to the module that defines the item it names, by the rules of the 2018 edition and later.

use super::modules::{Kind, Mention, Modules};

/// What a name stands for.
#[derive(Clone, Copy)]
enum Found {
    Module(usize),
    /// An item, and the module that defines it.
    Item(usize),
}

/// Names that are being looked up: an import that leads to itself ends the search.
type Pending<'a> = Vec<(usize, &'a str)>;

/// The module that defines what `mention` names; `None` for items of other crates, for names that are local to a function,
/// and for modules.
pub fn defining_module(modules: &Modules, mention: &Mention) -> Option<usize> {
    match follow(modules, mention.module, &mention.path, mention.kind, &mut Vec::new())? {
        Found::Item(module) => Some(module),
        Found::Module(_) => None,
    }
}

/// Walks `path` from `start` until an item is met.
fn follow<'a>(
    modules: &'a Modules,
    start: usize,
    path: &'a [String],
    kind: Kind,
    pending: &mut Pending<'a>,
) -> Option<Found> {
    let mut at = start;
    for (index, segment) in path.iter().enumerate() {
        let is_last = index + 1 == path.len();
        at = match &**segment {
            "crate" => 0,
            "self" => at,
            "super" => modules.all[at].parent?,
            name => match look_up(modules, at, name, is_last, kind, pending)? {
                Found::Module(module) => module,
                item @ Found::Item(_) => return Some(item),
            },
        };
    }
    Some(Found::Module(at))
}

/// What `name` stands for in module `at`. A module and a function may share a name: the module is meant when more
/// segments follow.
fn look_up<'a>(
    modules: &'a Modules,
    at: usize,
    name: &'a str,
    is_last: bool,
    kind: Kind,
    pending: &mut Pending<'a>,
) -> Option<Found> {
    let module = &modules.all[at];
    let child = module.children.get(name).copied().map(Found::Module);
    let is_item = module.items.contains(name) || kind == Kind::UseOrMacro && module.macros.contains(name);
    if let (false, Some(child)) = (is_last, child) {
        return Some(child);
    }
    if is_item {
        return Some(Found::Item(at));
    }
    if pending.contains(&(at, name)) {
        return None;
    }
    pending.push((at, name));
    let imported = module
        .imports
        .get(name)
        .and_then(|path| follow(modules, at, path, Kind::UseOrMacro, pending))
        .or(child)
        .or_else(|| {
            module.globs.iter().find_map(|glob| in_glob(modules, at, glob, name, (is_last, kind), pending))
        });
    pending.pop();
    imported
}

fn in_glob<'a>(
    modules: &'a Modules,
    at: usize,
    glob: &'a [String],
    name: &'a str,
    (is_last, kind): (bool, Kind),
    pending: &mut Pending<'a>,
) -> Option<Found> {
    match follow(modules, at, glob, Kind::UseOrMacro, pending)? {
        Found::Module(module) => look_up(modules, module, name, is_last, kind, pending),
        // The variants of an enum.
        Found::Item(_) => None,
    }
}
