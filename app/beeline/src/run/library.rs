//! The library that is preloaded: where it is, and its place among others that are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use beeline_socket_rules::LIBRARY_VARIABLE;

use crate::failure::Failure;

const NAME: &str = "libbeeline_sockets.so";
/// Where systems keep libraries.
const FOLDERS: [&str; 6] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib",
];

/// Finds the library: what an option names, else the environment, else the first that is there.
///
/// # Errors
/// It is not there, or its path cannot be said to the loader.
pub fn find(option: Option<&Path>) -> Result<PathBuf, Failure> {
    let variable = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let program = std::env::current_exe().unwrap_or_default();
    let named = match (option, variable) {
        (Some(path), _) => Some((path.to_owned(), "--library")),
        (None, Some(path)) => Some((path, LIBRARY_VARIABLE)),
        (None, None) => None,
    };
    let found = match named {
        Some((path, by)) if path.is_file() => Ok((path, by)),
        Some((path, by)) => Err(Failure::new(format!(
            "{} is no file, which {by} names as the library to preload",
            path.display()
        ))),
        None => first_of(&places(&program)).map(|path| (path, "the search")),
    };
    let path = found.and_then(|(path, _)| {
        std::path::absolute(&path)
            .map_err(|e| Failure::new(format!("cannot name {}", path.display())).because(e))
    })?;
    match path.as_os_str().as_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
        true => Err(Failure::new(format!("{} has a space or a colon in its path", path.display()))
            .remedy("a copy in another folder: the loader takes both for the end of a name in LD_PRELOAD")),
        false => Ok(path),
    }
}

fn places(program: &Path) -> Vec<PathBuf> {
    let folder = program.parent().unwrap_or(Path::new("."));
    let near = [folder.to_owned(), folder.join("../lib"), folder.join("../lib/beeline"), folder.join("deps")];
    near.into_iter().chain(FOLDERS.map(PathBuf::from)).map(|folder| folder.join(NAME)).collect()
}

fn first_of(places: &[PathBuf]) -> Result<PathBuf, Failure> {
    let found = places.iter().find(|path| path.is_file());
    found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
        let looked: Vec<_> = places.iter().map(|path| format!("\n    {}", path.display())).collect();
        Failure::new(format!("{NAME} is nowhere it was looked for:{}", looked.concat())).remedy(format!(
            "cargo build --release -p beeline-sockets beside this program, --library FILE, or {LIBRARY_VARIABLE}"
        ))
    })
}

/// `LD_PRELOAD` with the library: first, or where one of its name was already. What else was there stays, in its order.
pub fn preload(library: &Path, before: Option<&OsStr>) -> OsString {
    let before = before.unwrap_or_default().as_bytes();
    let is_own = |path: &&[u8]| Path::new(OsStr::from_bytes(path)).file_name() == Some(OsStr::new(NAME));
    let library = library.as_os_str().as_bytes();
    let others = before.split(|byte| b" :\t\n".contains(byte)).filter(|path| !path.is_empty());
    let others: Vec<&[u8]> = others.collect();
    let own_place = others.iter().position(|path| is_own(path) || *path == library).unwrap_or(0);
    let mut all: Vec<&[u8]> = others.into_iter().filter(|path| !is_own(path) && *path != library).collect();
    all.insert(own_place.min(all.len()), library);
    OsString::from_vec(all.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_first_unless_it_was_there_and_others_keep_their_order() {
        let preload = |before: Option<&str>| {
            preload(Path::new("/l/libbeeline_sockets.so"), before.map(OsStr::new)).into_string().unwrap()
        };
        assert_eq!(preload(None), "/l/libbeeline_sockets.so");
        assert_eq!(preload(Some("")), "/l/libbeeline_sockets.so");
        assert_eq!(preload(Some("/a.so b.so")), "/l/libbeeline_sockets.so:/a.so:b.so");
        assert_eq!(preload(Some("/a.so:/l/libbeeline_sockets.so:b")), "/a.so:/l/libbeeline_sockets.so:b");
        // Another build of it would hook everything twice.
        assert_eq!(preload(Some("/a.so:/old/libbeeline_sockets.so")), "/a.so:/l/libbeeline_sockets.so");
    }

    #[test]
    fn library_is_looked_for_beside_the_program_first_and_all_places_are_said() {
        let dir = tempfile::tempdir().unwrap();
        let places = |program: &str| places(&dir.path().join(program));
        let text = first_of(&places("bin/beeline")[..3]).unwrap_err().to_string();
        assert!(
            text.contains("bin/libbeeline_sockets.so") && text.contains("bin/../lib/libbeeline"),
            "{text}"
        );
        for folder in ["bin", "lib"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let library = dir.path().canonicalize().unwrap().join("lib").join(NAME);
        std::fs::write(&library, "").unwrap();
        assert_eq!(first_of(&places("bin/beeline")).unwrap(), library);
        let beside = library.parent().unwrap().join("../bin").canonicalize().unwrap().join(NAME);
        std::fs::write(&beside, "").unwrap();
        assert_eq!(first_of(&places("bin/beeline")).unwrap(), beside);
    }
}
