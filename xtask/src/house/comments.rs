//! Doc comments: public items of the library have one, and none only repeats its declaration.
//!
//! rustc's `missing_docs` asks for a comment on every field and variant too, which is how a comment such as "The port." over
//! `port: Port` comes about. This check asks for one on public functions, types, traits, constants and macros of the library
//! (`LIBRARY`), and refuses one anywhere that adds no word to the names in its declaration. Comments that a derive turns
//! into text for users (clap's help) are left alone. What is in macros is not seen.

use std::collections::BTreeSet;

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Visibility};

use crate::source::{SourceFile, is_generated};

/// Folders whose public items are documented: what somebody else may call.
const LIBRARY: [&str; 8] = ["contract/", "spec/", "os/", "link/", "nic/", "host/", "lab/", "api/"];

/// Parts of a path under which nothing is public.
const NOT_PUBLIC: [&str; 4] = ["/tests/", "/examples/", "/benches/", "_tests.rs"];

/// Words that name nothing by themselves.
const EMPTY_WORDS: &str = "a an and any are as at be been by each every for from had has have how if in is it its itself kind \
    many much no none number of on one or other own same so some that the their them there these they this those to value \
    was were what when where whether which who whom whose will with";

/// Findings in `files`.
pub fn say_something(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs" && !is_generated(file)) {
        let Ok(parsed) = syn::parse_file(&file.text) else {
            findings.push(format!("{}: not Rust that `syn` can read", file.path));
            continue;
        };
        let wants_docs = LIBRARY.iter().any(|folder| file.path.starts_with(folder))
            && !NOT_PUBLIC.iter().any(|part| file.path.contains(part))
            && !file.path.ends_with("/tests.rs");
        let mut comments = Comments {
            path: &file.path,
            wants_docs,
            in_help: false,
            in_inline_module: false,
            around: String::new(),
            findings: Vec::new(),
        };
        comments.visit_file(&parsed);
        findings.append(&mut comments.findings);
    }
    findings
}

struct Comments<'a> {
    path: &'a str,
    wants_docs: bool,
    /// Inside a type whose comments clap shows to users.
    in_help: bool,
    /// Inside `mod name { … }`: constants there are numbers of somebody else's interface, which the module names.
    in_inline_module: bool,
    /// Names that the reader has seen on the way to a declaration: of the type or trait around it.
    around: String,
    findings: Vec<String>,
}

impl Comments<'_> {
    fn find(&mut self, at: Span, finding: &str) {
        self.findings.push(format!("{}:{}: {finding}", self.path, at.start().line));
    }

    /// Checks the comment of a declaration whose names are `names`.
    fn check(&mut self, attributes: &[Attribute], at: Span, is_public: bool, names: &str) {
        let Some((first, text)) = comment(attributes) else {
            if is_public && self.wants_docs && !is_hidden(attributes) {
                self.find(at, "a public item without a comment");
            }
            return;
        };
        let names = words(&format!("{names} {}", self.around));
        let said = words(&text);
        let adds = said.iter().any(|word| !names.contains(word) && !is_empty_word(word));
        // A link says where the rest is said.
        let has_link = text.contains("[`");
        if !adds && !said.is_empty() && !has_link && !self.in_help {
            self.find(first, &format!("`{}` says no more than its declaration", text.trim()));
        }
    }
}

/// The name of a type or trait that has members.
fn name_around(item: &syn::Item) -> String {
    match item {
        syn::Item::Enum(item) => item.ident.to_string(),
        syn::Item::Struct(item) => item.ident.to_string(),
        syn::Item::Union(item) => item.ident.to_string(),
        syn::Item::Trait(item) => item.ident.to_string(),
        syn::Item::Impl(item) => item.self_ty.to_token_stream().to_string(),
        _ => String::new(),
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc") && attribute.to_token_stream().to_string().contains("hidden")
    })
}

fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string();
        attribute.path().is_ident("cfg") && text.contains("test") && !text.contains("not")
    })
}

fn is_help(attributes: &[Attribute]) -> bool {
    const DERIVES: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string();
        let has_derive = words_of_code(&text).any(|word| DERIVES.contains(&word));
        attribute.path().is_ident("command") || attribute.path().is_ident("arg") || has_derive
    })
}

/// Where the comment begins, and its text.
fn comment(attributes: &[Attribute]) -> Option<(Span, String)> {
    let mut found: Option<(Span, String)> = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let syn::Meta::NameValue(pair) = &attribute.meta else { continue };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. }) = &pair.value else { continue };
        let (_, text) = found.get_or_insert_with(|| (attribute.span(), String::new()));
        text.push_str(&line.value());
        text.push('\n');
    }
    found
}

fn words_of_code(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The words of names and text, in lower case and without the `s` of a plural: `FrameQueue`, `frame_queues` and "frame queue"
/// have the same.
fn words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars().chain(" ".chars()) {
        let is_new = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
        if is_new && !word.is_empty() {
            found.insert(stem(&std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    found
}

fn stem(word: &str) -> String {
    word.strip_suffix('s').filter(|rest| rest.len() > 2).unwrap_or(word).to_owned()
}

fn is_empty_word(word: &str) -> bool {
    EMPTY_WORDS.split_whitespace().any(|empty| stem(empty) == word)
}

impl<'ast> Visit<'ast> for Comments<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        use syn::Item;
        let (attributes, visibility, names) = match item {
            Item::Const(item) => {
                (&item.attrs, Some(&item.vis), format!("{} {}", item.ident, item.ty.to_token_stream()))
            }
            Item::Static(item) => {
                (&item.attrs, Some(&item.vis), format!("{} {}", item.ident, item.ty.to_token_stream()))
            }
            Item::Enum(item) => (&item.attrs, Some(&item.vis), item.ident.to_string()),
            Item::Struct(item) => (&item.attrs, Some(&item.vis), item.ident.to_string()),
            Item::Union(item) => (&item.attrs, Some(&item.vis), item.ident.to_string()),
            Item::Trait(item) => (&item.attrs, Some(&item.vis), item.ident.to_string()),
            Item::Type(item) => {
                (&item.attrs, Some(&item.vis), format!("{} {}", item.ident, item.ty.to_token_stream()))
            }
            Item::Fn(item) => (&item.attrs, Some(&item.vis), item.sig.to_token_stream().to_string()),
            Item::Mod(item) => (&item.attrs, None, String::new()),
            Item::Impl(item) => (&item.attrs, None, String::new()),
            _ => return visit::visit_item(self, item),
        };
        if is_test_only(attributes) {
            return;
        }
        if let Some(visibility) = visibility {
            let is_foreign = self.in_inline_module && matches!(item, Item::Const(_));
            self.check(attributes, item.span(), is_public(visibility) && !is_foreign, &names);
        }
        let was_in_help = self.in_help;
        self.in_help |= is_help(attributes);
        let was_inline = self.in_inline_module;
        self.in_inline_module |= matches!(item, Item::Mod(_));
        let was_around = std::mem::replace(&mut self.around, name_around(item));
        // The inside of a function holds no item that somebody else can name.
        if !matches!(item, Item::Fn(_)) {
            visit::visit_item(self, item);
        }
        self.in_help = was_in_help;
        self.in_inline_module = was_inline;
        self.around = was_around;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test_only(&item.attrs) {
            let names = item.sig.to_token_stream().to_string();
            self.check(&item.attrs, item.sig.span(), is_public(&item.vis), &names);
        }
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        let names = format!("{} {}", item.ident, item.ty.to_token_stream());
        self.check(&item.attrs, item.span(), is_public(&item.vis), &names);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        // Whether the trait is public is not known here; a method of a private one needs none.
        self.check(&item.attrs, item.sig.span(), false, &item.sig.to_token_stream().to_string());
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        let names = format!("{name} {}", field.ty.to_token_stream());
        self.check(&field.attrs, field.span(), false, &names);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        // Not the fields' own comments, which are part of their tokens.
        let mut names = variant.ident.to_string();
        for field in &variant.fields {
            let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            names += &format!(" {name} {}", field.ty.to_token_stream());
        }
        self.check(&variant.attrs, variant.span(), false, &names);
        visit::visit_variant(self, variant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(code: &str) -> Vec<String> {
        say_something(&[SourceFile::new("host/window/src/a.rs", code)])
    }

    #[test]
    fn comment_without_a_new_word_is_found_with_its_line() {
        let code = "/// Where frames wait for the wire.\npub struct Queue {\n    /// The frames.\n    frames: Vec<Frame>,\n}";
        assert_eq!(
            findings(code),
            ["host/window/src/a.rs:3: `The frames.` says no more than its declaration"]
        );
    }

    #[test]
    fn comment_with_a_new_word_passes() {
        assert!(
            findings("struct Queue {\n    /// Frames, oldest first.\n    frames: Vec<Frame>,\n}").is_empty()
        );
    }

    #[test]
    fn public_function_of_a_library_needs_a_comment_and_private_does_not() {
        assert_eq!(findings("pub fn take() {}"), ["host/window/src/a.rs:1: a public item without a comment"]);
        assert!(findings("fn take() {}").is_empty());
        assert!(findings("pub(crate) fn take() {}").is_empty());
        let public = [SourceFile::new("bench/src/a.rs", "pub fn take() {}")];
        assert!(say_something(&public).is_empty());
    }

    #[test]
    fn fields_variants_and_tests_need_no_comment() {
        assert!(
            findings("/// Sides of a link.\npub enum Side {\n    Upper,\n    Lower { port: u16 },\n}")
                .is_empty()
        );
        assert!(findings("#[cfg(test)]\nmod tests {\n    pub fn help() {}\n}").is_empty());
    }

    #[test]
    fn comment_of_a_field_is_no_name_of_its_variant() {
        let field = "/// Reason why the part cannot be included.\n    problem: String,";
        let code = format!(
            "enum Error {{\n    /// A part cannot be included.\n    Include {{\n    {field}\n    }},\n}}"
        );
        assert!(findings(&code).is_empty(), "{:?}", findings(&code));
    }

    #[test]
    fn help_texts_are_left_alone() {
        assert!(
            findings("#[derive(Args)]\nstruct PingArgs {\n    /// The port\n    port: u16,\n}").is_empty()
        );
    }

    #[test]
    fn words_of_names_and_text_are_the_same() {
        assert_eq!(words("FrameQueue"), words("frame queues"));
        assert_eq!(words("frame_queue"), words("Frame, queue."));
    }
}
