//! Marks of ports: what another process's look is worth, whoever writes, cuts or takes the file.

use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use beeline_domain::{
    Domain, DomainConfig, NETWORK_NAMESPACE, PortMarks, Purpose, descriptors, place_descriptors_above,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn config(root: &Path) -> DomainConfig {
    DomainConfig { root: Some(root.to_path_buf()), name: "marks".to_owned() }
}

fn file(root: &Path) -> PathBuf {
    root.join("marks/ports.marks")
}

#[test]
fn look_holds_until_the_port_is_marked_and_no_longer() {
    let root = tempfile::tempdir().unwrap();
    let (own, other) =
        (PortMarks::open(&config(root.path())).unwrap(), PortMarks::open(&config(root.path())).unwrap());
    for port in [0, 1, 4711, u16::MAX] {
        assert_eq!(own.read(port).unwrap(), None, "port {port}");
        let (mark, found) = own.watch(port, || 5).unwrap();
        assert_eq!((found, own.read(port).unwrap(), other.read(port).unwrap()), (5, Some(mark), Some(mark)));
        let (second, ()) = other.watch(port, || ()).unwrap();
        assert_eq!(second, mark, "a look changes nothing");
        other.mark(port ^ 0x100).unwrap();
        assert_eq!(own.read(port).unwrap(), Some(mark), "another port");
        other.mark(port).unwrap();
        assert_ne!(own.read(port).unwrap(), Some(mark), "port {port}");
    }
}

#[test]
fn mark_that_somebody_went_by_never_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let marks = PortMarks::open(&config(root.path())).unwrap();
    let all: std::collections::HashSet<NonZeroU64> = (0..1000)
        .map(|_| {
            marks.mark(9).unwrap();
            marks.read(9).unwrap().unwrap()
        })
        .collect();
    assert_eq!(all.len(), 1000);
}

#[test]
fn file_that_is_cut_or_written_over_is_a_change_and_no_signal() {
    let root = tempfile::tempdir().unwrap();
    let marks = PortMarks::open(&config(root.path())).unwrap();
    let (mark, ()) = marks.watch(9, || ()).unwrap();
    let hostile = std::fs::OpenOptions::new().write(true).open(file(root.path())).unwrap();
    for bytes in [0, 75, 79] {
        hostile.set_len(bytes).unwrap();
        assert_eq!(marks.read(9).unwrap(), None, "{bytes} bytes");
        let (next, ()) = marks.watch(9, || ()).unwrap();
        assert_ne!(next, mark);
        assert_eq!(marks.read(9).unwrap(), Some(next));
    }
    for word in [[0; 8], [0xff; 8], [1, 0, 0, 0, 0, 0, 0, 0]] {
        let (before, ()) = marks.watch(9, || ()).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&hostile, &word, 72).unwrap();
        assert_ne!(marks.read(9).unwrap(), Some(before));
    }
}

#[test]
fn file_of_the_programs_that_took_the_number_is_not_written_and_has_no_mark() {
    // Other tests have lower ones.
    place_descriptors_above(500).unwrap();
    let root = tempfile::tempdir().unwrap();
    let marks = PortMarks::open(&config(root.path())).unwrap();
    let (mark, ()) = marks.watch(9, || ()).unwrap();
    let is_own = |number: i32| {
        let path = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default();
        path == file(root.path())
    };
    let (number, _) =
        descriptors().into_iter().find(|(number, it)| *it == Purpose::PortMarks && is_own(*number)).unwrap();
    let path = root.path().join("programs");
    std::fs::write(&path, [0; 4096]).unwrap();
    let programs = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    nix::unistd::close(number).unwrap();
    let taken = rustix::io::fcntl_dupfd_cloexec(&programs, number).unwrap();
    assert_eq!(taken.as_raw_fd(), number);
    assert_ne!(marks.read(9).unwrap(), Some(mark));
    assert!(marks.mark(9).is_err());
    std::fs::write(&path, [1; 4096]).unwrap();
    assert!(marks.watch(9, || ()).is_err(), "nobody changes that word");
    std::fs::write(&path, [0; 4096]).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [0; 4096]);
}

#[test]
fn domain_without_a_folder_has_no_marks() {
    let config = DomainConfig { root: Some(NETWORK_NAMESPACE.into()), name: "marks".to_owned() };
    assert!(PortMarks::open(&config).is_err());
}

/// Asked of the kernel it would be a signal, which ends a program whose `bind` it is.
#[test]
fn mark_that_the_limit_of_files_forbids_is_an_error_and_no_signal() {
    const TEST: &str = "mark_that_the_limit_of_files_forbids_is_an_error_and_no_signal";
    const ROOT: &str = "BEELINE_TEST_MARKS";
    let Some(root) = std::env::var_os(ROOT) else {
        let root = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        let ended = child.args(["--exact", TEST]).env(ROOT, root.path()).output().unwrap();
        return assert!(ended.status.success(), "{ended:?}");
    };
    let domain = Domain::open(&config(Path::new(&root))).unwrap();
    let marks = PortMarks::open(&config(Path::new(&root))).unwrap();
    marks.mark(4711).unwrap();
    for bytes in [64, 63, 0] {
        setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), ..getrlimit(Resource::Fsize) }).unwrap();
        assert_eq!(marks.mark(7).is_ok(), bytes == 64, "{bytes} bytes");
        let error = marks.mark(4711).unwrap_err().to_string();
        assert!(error.contains("ports.marks"), "{error}");
        assert!(domain.connection_table().is_err(), "its file has no room");
    }
}
