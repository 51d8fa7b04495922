use super::*;

/// A crate `c` of these files, whose root is `src/lib.rs`.
fn sources(files: &[(&str, &str)]) -> Vec<SourceFile> {
    let manifest = SourceFile::new("c/Cargo.toml", "[package]\nname = \"c\"\n");
    let files = files.iter().map(|(path, text)| SourceFile::new(format!("c/src/{path}"), *text));
    std::iter::once(manifest).chain(files).collect()
}

fn found(files: &[(&str, &str)]) -> Vec<String> {
    between_files(&sources(files))
}

/// Whether a root that declares `a` and `b` with these texts holds a circle.
fn is_circle(a: &str, b: &str) -> bool {
    let found = found(&[("lib.rs", "mod a; mod b; pub use b::B;"), ("a.rs", a), ("b.rs", b)]);
    assert!(found.iter().all(|finding| finding.contains("2 files")), "{found:?}");
    !found.is_empty()
}

#[test]
fn files_that_name_each_other_are_found_with_line_and_path() {
    let a = "use crate::b::B;\npub struct A;";
    let b = "pub struct B;\nfn f(_: super::a::A) {}";
    assert_eq!(
        found(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]),
        [
            "c/src/a.rs: 2 files name each other's items\n    c/src/a.rs:1 names `crate::b::B` of c/src/b.rs\n    \
          c/src/b.rs:2 names `super::a::A` of c/src/a.rs"
        ]
    );
}

#[test]
fn paths_count_in_every_place_of_code() {
    let b = "pub struct B; pub trait T {} pub const N: usize = 1; pub fn g() {} fn f(_: crate::a::A) {}";
    for a in [
        "use crate::b::B;",
        "use super::b::{self, B};",
        "use super::B;",
        "use crate::*; struct S(B);",
        "use super::b; struct S(b::B);",
        "fn f() { crate::b::g() }",
        "fn f() { use super::b::g; g() }",
        "fn f<X: crate::b::T>() {}",
        "impl crate::b::T for u8 {}",
        "fn f(n: usize) -> bool { matches!(n, crate::b::N | 7) }",
        "fn f() { println!(\"{}\", crate::b::N) }",
        "macro_rules! m { () => { $crate::b::g() } }",
        "mod inner { use super::super::b::B; }",
    ] {
        assert!(is_circle(&format!("pub struct A; {a}"), b), "{a}");
    }
}

#[test]
fn what_names_no_item_of_the_other_file_is_no_edge() {
    let b = "pub struct B; fn f(_: crate::a::A) {}";
    for a in [
        "use super::b;",
        "pub use super::b::B;",
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(all(test, unix))] use crate::b::B;",
        "#[test] fn t() { crate::b::f() }",
        "impl A { #[cfg(test)] fn t(_: crate::b::B) {} }",
        "use ::b::B;",
        "use other::B;",
        "// crate::b::B\nconst S: &str = \"crate::b::B\";",
    ] {
        assert!(!is_circle(&format!("pub struct A; {a}"), b), "{a}");
    }
}

#[test]
fn a_parent_that_only_re_exports_is_in_no_circle_and_one_with_code_is() {
    let child = "use super::Sibling; pub struct Child;";
    let sibling = "pub struct Sibling;";
    let files = |root: &'static str| [("lib.rs", root), ("child.rs", child), ("sibling.rs", sibling)];
    assert!(found(&files("mod child; mod sibling; pub use child::Child; use sibling::Sibling;")).is_empty());
    let with_code = "mod child; use child::Child; struct Sibling(Child);";
    assert_eq!(found(&files(with_code)).len(), 1);
}

#[test]
fn module_files_are_found_where_the_language_looks() {
    let root = "mod a; mod far;";
    let nested = "pub mod deep; pub struct A; fn f(_: crate::far::Far) {}";
    for (path, deep) in [("a.rs", "a/deep.rs"), ("a/mod.rs", "a/deep.rs"), ("a.rs", "a/deep/mod.rs")] {
        let files = [("lib.rs", root), (path, nested), (deep, "use super::A; fn f(_: A) {}"), ("far.rs", "")];
        assert!(found(&files).is_empty(), "{path} {deep}");
        let far = "pub struct Far; use crate::a::A;";
        let files = [("lib.rs", root), (path, nested), (deep, ""), ("far.rs", far)];
        assert_eq!(found(&files).len(), 1, "{path} {deep}");
    }
    let said =
        [("lib.rs", "mod a; #[path = \"other.rs\"] mod b;"), ("a.rs", "use crate::b::B; pub struct A;")];
    assert_eq!(found(&[&said[..], &[("other.rs", "pub struct B(crate::a::A);")]].concat()).len(), 1);
}

#[test]
fn a_module_and_a_function_of_one_name_are_told_apart() {
    let root = "mod a; mod b; pub use b::b;";
    let files = |a: &'static str| [("lib.rs", root), ("a.rs", a), ("b.rs", "pub fn b() { crate::a::f() }")];
    assert_eq!(found(&files("pub fn f() { crate::b() }")).len(), 1);
    assert_eq!(found(&files("pub fn f() { crate::b::b() }")).len(), 1);
}

#[test]
fn a_file_that_is_no_rust_is_found() {
    assert!(found(&[("lib.rs", "fn f( {")])[0].starts_with("c/src/lib.rs:1: "));
}
