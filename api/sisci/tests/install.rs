//! What `make install-sisci` puts where, and what programs find there: by hand, by `pkg-config`, by CMake.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::path::Path;
use std::process::Command;

use c::facts::Facts;
use c::installed::{files, install, installed, make};
use c::{C11, CPP17, HERE, LAST_ERROR, succeed};

/// What a module that finds SISCI does, as programs have it.
const CMAKE: &str = r#"cmake_minimum_required(VERSION 3.13)
project(finds C)
find_path(SISCI_INCLUDE_DIR NAMES sisci_api.h HINTS $ENV{DIS_HOME} PATH_SUFFIXES include)
find_path(DIS_INCLUDE_DIR NAMES dis_types.h HINTS $ENV{DIS_HOME} PATH_SUFFIXES include/dis)
find_library(SISCI_LIBRARY NAMES sisci HINTS $ENV{DIS_HOME} PATH_SUFFIXES lib64)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SISCI REQUIRED_VARS SISCI_LIBRARY SISCI_INCLUDE_DIR DIS_INCLUDE_DIR)
if(NOT SISCI_FOUND)
  message(FATAL_ERROR "no SISCI")
endif()
message(STATUS "found ${SISCI_LIBRARY} ${SISCI_INCLUDE_DIR} ${DIS_INCLUDE_DIR}")
"#;

#[test]
fn program_that_is_compiled_against_the_installed_tree_runs() {
    for (name, compiler) in [("c", &C11[..]), ("cpp", &CPP17[..])] {
        for (number, reentrant) in [&["-D_REENTRANT"][..], &[]].into_iter().enumerate() {
            let flags: Vec<&str> = compiler.iter().chain(reentrant).copied().collect();
            let program =
                installed().compile(&flags, "examples/segment.c", &format!("segment-{name}-{number}"));
            let place = tempfile::tempdir().unwrap();
            let said =
                succeed(Command::new(program).env("BEELINE_ROOT", place.path()).env("BEELINE_NODE", "12"));
            assert_eq!(said, "node 12\n4096 bytes\n");
        }
    }
}

#[test]
fn library_is_installed_from_where_its_profile_builds_it() {
    for (profile, folder) in [("dev", "debug"), ("release", "release"), ("bench", "release"), ("own", "own")]
    {
        let mut command = Command::new("make");
        command.args(["--no-print-directory", "--dry-run", "-C", HERE, "install"]);
        let said = succeed(command.arg(format!("PROFILE={profile}")).env("CARGO_TARGET_DIR", "built"));
        assert!(said.contains(&format!("--profile {profile} ")), "{said}");
        assert!(said.contains(&format!(" built/{folder}/libsisci.so ")), "{said}");
    }
}

#[test]
fn pkg_config_names_the_tree() {
    let prefix = installed().prefix();
    for folder in ["lib64/pkgconfig", "lib/pkgconfig"] {
        let mut command = Command::new("pkg-config");
        command.args(["--cflags", "--libs", "sisci"]).env("PKG_CONFIG_PATH", prefix.join(folder));
        let said = succeed(command.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1"));
        let prefix = prefix.display();
        let expected = [
            &format!("-I{prefix}/include"),
            &format!("-I{prefix}/include/dis"),
            &format!("-L{prefix}/lib64"),
            "-lsisci",
            &format!("-Wl,-rpath,{prefix}/lib64"),
        ];
        assert_eq!(said.split_whitespace().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn cmake_finds_the_tree_by_its_prefix_and_by_dis_home() {
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("cmake is not here; not looked at");
        return;
    }
    let prefix = installed().prefix();
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("CMakeLists.txt"), CMAKE).unwrap();
    let by_prefix = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    for (build, argument, home) in [("a", by_prefix.as_str(), Path::new("")), ("b", "-Wno-dev", prefix)] {
        let mut command = Command::new("cmake");
        command.arg("-S").arg(place.path()).arg("-B").arg(place.path().join(build)).arg(argument);
        let said = succeed(command.env("DIS_HOME", home));
        let shown = prefix.display();
        assert!(said.contains(&format!("{shown}/include {shown}/include/dis")), "{said}");
    }
}

#[test]
fn each_function_has_a_man_page_without_a_mistake() {
    let manual = installed().prefix().join("share/man");
    let facts = Facts::read();
    let pages = files(&manual);
    let mut expected: Vec<String> =
        facts.function_names().chain([LAST_ERROR]).map(|name| format!("man3/{name}.3")).collect();
    expected.extend(types_with_pages().iter().map(|name| format!("man3/{name}.3")));
    expected.sort();
    let (found, rest): (Vec<&String>, Vec<&String>) =
        pages.iter().partition(|page| page.starts_with("man3/"));
    assert_eq!(found, expected.iter().collect::<Vec<_>>());
    assert_eq!(rest, ["man7/sisci.7"]);
    for (name, function) in &facts.functions {
        let page = std::fs::read_to_string(manual.join(format!("man3/{name}.3"))).unwrap();
        assert!(page.contains(&format!("{name}(")) && page.contains(".SH DESCRIPTION\n"), "{page}");
        let is_of_another =
            [".SH FLAGS\nas ", ".SH FLAGS AND ERRORS\nas "].iter().any(|start| page.contains(start));
        for flag in function.flags.iter().flatten().filter(|_| !is_of_another) {
            assert!(page.contains(&format!(".TP\n.B {flag}\n")), "{name}: {flag}\n{page}");
        }
        assert!(!function.gives_code() || page.contains("ERRORS\n"), "{page}");
    }
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("groff is not here; pages are not set");
        return;
    }
    let mut command = Command::new("groff");
    command.args(["-man", "-Tutf8", "-ww", "-z"]).args(pages.iter().map(|page| manual.join(page)));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// Enumerations, structures and callbacks.
fn types_with_pages() -> Vec<String> {
    let header = std::fs::read_to_string(Path::new(HERE).join("include/sisci_types.h")).unwrap();
    let name_of = |line: &str| {
        let structure = line.strip_prefix("} ").and_then(|rest| rest.strip_suffix(';'));
        let callback =
            || line.strip_prefix("typedef ")?.split_once("(*")?.1.split_once(')').map(|parts| parts.0);
        structure.or_else(callback).map(str::to_owned)
    };
    header.lines().filter_map(name_of).collect()
}

#[test]
fn what_callbacks_return_and_queries_take_is_in_the_manual() {
    let manual = installed().prefix().join("share/man/man3");
    let page = |name: &str| std::fs::read_to_string(manual.join(format!("{name}.3"))).unwrap();
    assert!(page("sci_callback_action_t").contains("SCI_CALLBACK_CANCEL = 1"));
    for callback in types_with_pages().iter().filter(|name| name.starts_with("sci_cb_")) {
        assert!(page(callback).contains(".BR sci_callback_action_t (3)"), "{callback}");
    }
    assert!(page("SCICreateSegment").contains(".BR sci_cb_local_segment_t (3)"));
    assert!(page("SCIQuery").contains(".BR sci_query_adapter_t (3)"));
    assert!(page("SCIStartDmaTransferVec").contains(".BR dis_dma_vec_t (3)"));
}

#[test]
fn what_is_installed_is_taken_away_again() {
    let destination = tempfile::tempdir().unwrap();
    let prefix = Path::new("/opt/DIS");
    install(prefix, destination.path().to_str().unwrap());
    let below = destination.path().join("opt/DIS");
    let found = files(&below);
    for expected in [
        "include/dis/dis_types.h",
        "include/scilib.h",
        "include/sisci_api.h",
        "include/sisci_api/segment.h",
        "include/sisci_demolib.h",
        "include/sisci_error.h",
        "include/sisci_glob_defs.h",
        "include/sisci_types.h",
        "include/testlib.h",
        "lib/libsisci.so",
        "lib/pkgconfig/sisci.pc",
        "lib64/libsisci.so",
        "lib64/pkgconfig/sisci.pc",
        "share/licenses/sisci/LICENSE-MIT",
        "share/man/man3/SCIOpen.3",
        "share/man/man7/sisci.7",
        "share/sisci/examples/Makefile",
        "share/sisci/examples/segment.c",
    ] {
        assert!(found.iter().any(|file| file == expected), "{expected} is not in {found:?}");
    }
    let headers = found.iter().filter(|file| file.starts_with("include/"));
    let source = files(&Path::new(HERE).join("include"));
    assert_eq!(headers.map(|file| &file["include/".len()..]).collect::<Vec<_>>(), source);
    // A link to the library must mean the library, wherever the tree is moved to.
    assert!(std::fs::metadata(below.join("lib/libsisci.so")).unwrap().len() > 0);
    let stated = std::fs::read_to_string(below.join("lib/pkgconfig/sisci.pc")).unwrap();
    assert!(stated.starts_with("prefix=/opt/DIS\n"), "{stated}");
    make(prefix, destination.path().to_str().unwrap(), &["uninstall"]);
    assert_eq!(files(destination.path()), Vec::<String>::new());
}

#[test]
fn lib64_that_is_lib_keeps_its_library() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("lib")).unwrap();
    std::os::unix::fs::symlink("lib", place.path().join("lib64")).unwrap();
    install(place.path(), "");
    assert!(std::fs::symlink_metadata(place.path().join("lib/libsisci.so")).unwrap().is_file());
}
