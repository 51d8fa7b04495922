//! Mapped segments between two processes: what one stores the other finds, and what becomes of a segment whose file the other
//! makes shorter.
//!
//! The other process is this program again, with one test of it and what it is to do in the environment. It opens the memory by
//! this process's descriptor, as it would get it over a socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use beeline_mmio::{
    Access, CopyError, FaultGuard, MappedSegment, MemoryOptions, OnLoss, SegmentOptions, SharedMemory,
};
use rustix::io::Errno;

const MEMORY: &str = "BEELINE_TEST_MEMORY";
const PAGE_BYTES: usize = 4096;

/// What the other process was told to open; `None` in the first process.
fn told() -> Option<File> {
    let path = PathBuf::from(std::env::var_os(MEMORY)?);
    Some(File::options().read(true).write(true).open(path).expect("the memory of the first process"))
}

/// Runs the calling test in another process, and waits for its end.
fn other_process(test: &str, memory: BorrowedFd<'_>) -> ExitStatus {
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    let mut other = Command::new(std::env::current_exe().expect("the path of this program"));
    let output = other.args([test, "--exact", "--nocapture"]).env(MEMORY, path).output().expect("it runs");
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    output.status
}

fn file() -> File {
    let file = tempfile::tempfile().expect("a file");
    std::io::Write::write_all(&mut &file, &[7; 4 * PAGE_BYTES]).expect("room for it");
    file
}

#[test]
fn stores_of_one_process_are_found_by_the_other_where_it_maps_them() {
    let part = SegmentOptions {
        offset_bytes: 2 * PAGE_BYTES as u64,
        bytes: Some(5000),
        ..SegmentOptions::default()
    };
    if let Some(memory) = told() {
        // At an address of its own, and for reading at another.
        let free = MappedSegment::memory(memory.as_fd(), &part).unwrap().as_ptr().addr().get();
        let segment =
            MappedSegment::memory(memory.as_fd(), &SegmentOptions { address: Some(free), ..part }).unwrap();
        assert_eq!(segment.as_ptr().addr().get(), free);
        let mut found = [0; 5];
        segment.copy_out(4995, &mut found).unwrap();
        assert_eq!(&found, b"there");
        segment.copy_in(0, b"and back").unwrap();
        let reader =
            MappedSegment::memory(memory.as_fd(), &SegmentOptions { access: Access::ReadOnly, ..part })
                .unwrap();
        assert_eq!(reader.copy_in(0, b"x"), Err(CopyError::ReadOnly));
        // Nothing that this process does takes the memory away from the other one.
        assert_eq!(rustix::fs::ftruncate(&memory, 0), Err(Errno::PERM));
        return;
    }
    let memory = SharedMemory::create("beeline-test", 4 * PAGE_BYTES, MemoryOptions::default()).unwrap();
    let whole = MappedSegment::memory(memory.fd(), &SegmentOptions::default()).unwrap();
    whole.copy_in(2 * PAGE_BYTES + 4995, b"there").unwrap();
    let test = "stores_of_one_process_are_found_by_the_other_where_it_maps_them";
    let status = other_process(test, memory.fd());
    assert!(status.success(), "{status}");
    let mut found = [0; 8];
    whole.copy_out(2 * PAGE_BYTES, &mut found).unwrap();
    assert_eq!(&found, b"and back");
    whole.copy_out(3 * PAGE_BYTES, &mut found).unwrap();
    assert_eq!(found, [0; 8], "between what the two stored");
    assert!(whole.is_intact());
}

#[test]
fn guarded_process_goes_on_when_the_other_makes_the_file_shorter() {
    if let Some(file) = told() {
        file.set_len(PAGE_BYTES as u64).unwrap();
        return;
    }
    let file = file();
    let guarded = SegmentOptions {
        on_loss: OnLoss::Guarded(FaultGuard::install().unwrap()),
        ..SegmentOptions::default()
    };
    let segment = MappedSegment::file(file.as_fd(), &guarded).unwrap();
    let mut found = [0; 2 * PAGE_BYTES];
    assert_eq!(segment.copy_out(0, &mut found), Ok(()));
    let status = other_process("guarded_process_goes_on_when_the_other_makes_the_file_shorter", file.as_fd());
    assert!(status.success(), "{status}");
    assert_eq!(segment.copy_out(0, &mut found[..PAGE_BYTES]), Ok(()), "this page is still there");
    assert_eq!(segment.copy_out(0, &mut found), Err(CopyError::Lost));
    assert!(found[..PAGE_BYTES].iter().all(|byte| *byte == 7));
    assert!(found[PAGE_BYTES..].iter().all(|byte| *byte == 0));
    assert!(!segment.is_intact());
    segment.unmap().expect("nothing is made of it");
}

#[test]
fn process_that_takes_the_risk_is_ended_by_a_file_that_shrinks() {
    if let Some(file) = told() {
        let at_the_risk = SegmentOptions { on_loss: OnLoss::Fatal, ..SegmentOptions::default() };
        let segment = MappedSegment::file(file.as_fd(), &at_the_risk).unwrap();
        file.set_len(0).unwrap();
        let _ = segment.copy_out(0, &mut [0; 8]);
        return;
    }
    let file = file();
    let refused = MappedSegment::file(file.as_fd(), &SegmentOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("can go away under its mapping"), "{refused}");
    let status = other_process("process_that_takes_the_risk_is_ended_by_a_file_that_shrinks", file.as_fd());
    assert_eq!(status.signal(), Some(rustix::process::Signal::BUS.as_raw()), "{status}");
}
