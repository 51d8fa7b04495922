//! Reads the files of a crate into [`Modules`], following `mod name;` from the root.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Meta, Token, UseTree, Visibility};

use super::modules::{Kind, Mention, Module, Modules};
use crate::source::SourceFile;

/// The modules of the crate that begins with the file `root`, or which file is no Rust.
pub fn read(root: &str, files: &BTreeMap<&str, &SourceFile>) -> Result<Modules, String> {
    let folder = parent(root).to_owned();
    let mut reader = Reader { files, modules: Modules::default(), at: 0, folder, depth: 0, failed: None };
    reader.read_file(root, None);
    reader.failed.map_or(Ok(reader.modules), Err)
}

struct Reader<'a> {
    files: &'a BTreeMap<&'a str, &'a SourceFile>,
    modules: Modules,
    /// The module that is being read.
    at: usize,
    /// Folder of its children.
    folder: String,
    /// Blocks around what is being read: an item in a function is no item of the module.
    depth: usize,
    failed: Option<String>,
}

impl Reader<'_> {
    fn read_file(&mut self, path: &str, parent: Option<usize>) {
        match syn::parse_file(&self.files[path].text) {
            Ok(file) => self.read_module(path.to_owned(), parent, &file.items),
            Err(cause) => self.failed = Some(format!("{path}:{}: {cause}", cause.span().start().line)),
        }
    }

    fn read_module(&mut self, file: String, parent: Option<usize>, items: &[Item]) {
        let outside = std::mem::replace(&mut self.at, self.modules.all.len());
        self.modules.all.push(Module { file, parent, ..Module::default() });
        items.iter().for_each(|item| self.visit_item(item));
        self.at = outside;
    }

    /// The file of `mod name;`: as its attribute says, or where the language looks for it.
    fn file_of(&self, module: &syn::ItemMod) -> Option<String> {
        let own = parent(&self.modules.all[self.at].file);
        let name = module.ident.to_string();
        let said = module.attrs.iter().find_map(said_path).map(|path| joined(own, &path));
        let usual = [format!("{}/{name}.rs", self.folder), format!("{}/{name}/mod.rs", self.folder)];
        said.into_iter().chain(usual).find(|path| self.files.contains_key(&**path))
    }

    fn mention(&mut self, path: Vec<String>, line: usize, kind: Kind) {
        self.modules.mentions.push(Mention { module: self.at, path, line, kind });
    }

    fn read_use(&mut self, tree: &UseTree, before: &[String], is_private: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(part) => self.read_use(&part.tree, &with(&part.ident), is_private),
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.read_use(item, before, is_private));
            }
            UseTree::Glob(_) => self.modules.all[self.at].globs.push(before.to_vec()),
            UseTree::Name(name) => self.import(&name.ident, &name.ident, before, is_private),
            UseTree::Rename(rename) => self.import(&rename.ident, &rename.rename, before, is_private),
        }
    }

    fn import(&mut self, item: &syn::Ident, name: &syn::Ident, before: &[String], is_private: bool) {
        let mut path = before.to_vec();
        let mut name = name.to_string();
        // `use a::b::{self}` gives `b` its name.
        if item == "self" && !before.is_empty() {
            name = if name == "self" { before[before.len() - 1].clone() } else { name };
        } else {
            path.push(item.to_string());
        }
        if is_private {
            self.mention(path.clone(), item.span().start().line, Kind::UseOrMacro);
        }
        self.modules.all[self.at].imports.insert(name, path);
    }

    /// Paths of at least two segments in tokens that are no list of expressions.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end_path(&mut path, line);
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end_path(&mut path, line);
                    self.read_tokens(group.stream());
                    colons = 0;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.end_path(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.end_path(&mut path, line);
    }

    fn end_path(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.mention(path, line, Kind::Code);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        if let (0, Some(name)) = (self.depth, name(item)) {
            self.modules.all[self.at].items.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        let child = self.modules.all.len();
        let outside = self.folder.clone();
        let file = match &module.content {
            Some(_) => Some(self.modules.all[self.at].file.clone()),
            None => self.file_of(module),
        };
        // A file that a build script makes is none of ours.
        let Some(file) = file else { return };
        self.modules.all[self.at].children.insert(name.clone(), child);
        if let Some((_, items)) = &module.content {
            self.folder = format!("{outside}/{name}");
            self.read_module(file, Some(self.at), items);
        } else {
            let is_folder = file.ends_with("/mod.rs");
            let stem = file.strip_suffix(".rs").unwrap_or(&file).to_owned();
            self.folder = if is_folder { parent(&file).to_owned() } else { stem };
            self.read_file(&file, Some(self.at));
        }
        self.folder = outside;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.read_use(&item.tree, &[], matches!(item.vis, Visibility::Inherited));
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if let Some(name) = &item.ident {
            self.modules.all[self.at].macros.insert(name.to_string());
        }
        visit::visit_item_macro(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.depth += 1;
        visit::visit_block(self, block);
        self.depth -= 1;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        // `::name` is another crate.
        if path.leading_colon.is_none() {
            self.mention(segments, path.span().start().line, Kind::Code);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let segments = call.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.mention(segments, call.path.span().start().line, Kind::UseOrMacro);
        match call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            Ok(arguments) => arguments.iter().for_each(|argument| self.visit_expr(argument)),
            Err(_) => self.read_tokens(call.tokens.clone()),
        }
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Whether the item is compiled for tests only.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.meta.require_list().ok().filter(|list| list.path.is_ident("cfg"));
        attribute.path().is_ident("test") || condition.is_some_and(|list| demands_test(list.tokens.clone()))
    })
}

/// Whether `test` stands in a `cfg` outside of `not` and `any`.
fn demands_test(tokens: TokenStream) -> bool {
    let mut before = String::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) if name == "test" => return true,
            TokenTree::Ident(name) => before = name.to_string(),
            TokenTree::Group(group) if before == "all" && demands_test(group.stream()) => return true,
            _ => {}
        }
    }
    false
}

/// What `#[path = "…"]` says.
fn said_path(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("path").then(|| text.value())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item defines, of those that a path can name.
fn name(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

/// The folder of a file.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// `path` from `folder`, without `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}
