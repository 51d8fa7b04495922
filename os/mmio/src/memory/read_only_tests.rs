//! Memory for reading: who can write it, and that nobody else ever can.
#![cfg(not(miri))]

use std::ffi::c_void;
#[cfg(not(target_arch = "aarch64"))]
use std::{os::unix::process::ExitStatusExt, process::Command};

use beeline_contract_memory::ReadOnlyPort;
use rustix::fs::FallocateFlags;

use super::*;

/// Set for a process that is to store into a read-only mapping, and to die of it.
#[cfg(not(target_arch = "aarch64"))]
const VICTIM: &str = "BEELINE_TEST_READ_ONLY_VICTIM";

fn mapped() -> (Region, ReadOnlyMemory, ReadOnlyRegion) {
    let (region, memory) = ReadOnlyMemory::create("beeline-test", 8192).unwrap();
    let passed = memory.fd().try_clone_to_owned().unwrap();
    let read_only = ReadOnlyMemory::from_fd(passed, 8192).unwrap().map().unwrap();
    (region, memory, read_only)
}

#[test]
fn what_the_maker_stores_is_seen_by_who_maps_it_for_reading() {
    let (region, memory, read_only) = mapped();
    let mut window = read_only.read_window(4096, 64);
    assert_eq!((window.load_tops(3), memory.bytes(), read_only.bytes()), ((0, 0), 8192, 8192));
    region.word(4096 + 3 * 64).store(1 << 63 | 5);
    assert_eq!((window.load_tops(3), window.load_word(3, 0)), ((1, 1 << 63 | 5), 1 << 63 | 5));
}

#[test]
fn nobody_but_its_maker_can_write_it() {
    let (region, memory, read_only) = mapped();
    let peer = memory.fd().try_clone_to_owned().unwrap();
    region.word(0).store(7);
    let both = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh address range chosen by the kernel; nothing of this process is replaced.
    let mapping = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 8192, both, MapFlags::SHARED, &peer, 0) };
    assert_eq!(mapping.map(|_| ()), Err(Errno::PERM));
    assert_eq!(rustix::io::pwrite(&peer, &[1], 0), Err(Errno::PERM));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(rustix::fs::fallocate(&peer, hole, 0, 4096), Err(Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(&peer, 0), Err(Errno::PERM));
    let start = read_only.0.span(0, 8192, 64).start().cast::<c_void>();
    let writable = rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE;
    // SAFETY: our own mapping, and the kernel refuses.
    let changed = unsafe { rustix::mm::mprotect(start, 8192, writable) };
    assert_eq!(changed, Err(Errno::ACCESS));
    let refused = SharedMemory::from_fd(peer, 8192).unwrap_err();
    assert!(matches!(refused, MapError::ReadOnly { .. }), "{refused}");
    assert_eq!(read_only.read_window(0, 1).load_word(0, 0), 7);
}

/// Not on aarch64, where tests run in an emulator of one process: it cannot start this program again.
#[cfg(not(target_arch = "aarch64"))]
#[test]
fn store_into_the_mapping_ends_the_process() {
    if std::env::var_os(VICTIM).is_some() {
        let (_region, _memory, read_only) = mapped();
        let start = read_only.0.span(0, 64, 64).start();
        // SAFETY: 64 mapped bytes; the kernel ends this process before anything is stored.
        unsafe { crate::arch::words::store_word(start, 1) };
        std::process::exit(0);
    }
    let name = "memory::read_only::tests::store_into_the_mapping_ends_the_process";
    let mut victim = Command::new(std::env::current_exe().unwrap());
    let status = victim.args([name, "--exact", "--nocapture"]).env(VICTIM, "1").output().unwrap().status;
    assert_eq!(status.signal(), Some(rustix::process::Signal::SEGV.as_raw()), "{status}");
}

/// What lies behind a descriptor, in pages that are there.
fn present_bytes(memory: &ReadOnlyMemory) -> i64 {
    rustix::fs::fstat(memory.fd()).unwrap().st_blocks * 512
}

#[test]
fn sparse_memory_has_the_pages_that_were_touched_and_no_peer_writes_it() {
    const BYTES: usize = 1 << 30;
    let (region, memory) = ReadOnlyMemory::create_sparse("beeline-test", BYTES).unwrap();
    let peer = memory.fd().try_clone_to_owned().unwrap();
    let peers = ReadOnlyMemory::from_fd(peer.try_clone().unwrap(), BYTES).unwrap().map_sparse().unwrap();
    assert_eq!((peers.bytes(), present_bytes(&memory)), (BYTES, 0));
    let (ours, theirs) = (region.words(BYTES / 2, BYTES / 16), peers.read_words(BYTES / 2, BYTES / 16));
    ours.store_release(BYTES / 32, 7);
    assert_eq!(theirs.load_acquire(BYTES / 32), 7);
    let present = present_bytes(&memory);
    assert!(present > 0 && present < 1 << 22, "{present} bytes are present");
    assert_eq!(rustix::io::pwrite(&peer, &[1], 0), Err(Errno::PERM));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(rustix::fs::fallocate(&peer, hole, 0, BYTES as u64), Err(Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(&peer, 4096), Err(Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(&peer, 2 * BYTES as u64), Err(Errno::PERM));
    assert!(SharedMemory::from_fd(peer, BYTES).is_err(), "it can be mapped for writing");
}

/// Forks a child that does this and ends without a word; how it ended.
#[cfg(not(target_arch = "aarch64"))]
fn in_a_child(body: impl FnOnce()) -> i32 {
    // SAFETY: this process has one thread that allocates (`child::run` starts it for one test).
    match unsafe { libc::fork() } {
        0 => {
            body();
            // SAFETY: the child has nothing to tidy up.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = 0;
            // SAFETY: a child of ours, waited for once.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status
        }
    }
}

/// Not on aarch64, where tests run in an emulator of one process.
#[cfg(not(target_arch = "aarch64"))]
#[test]
fn child_of_fork_has_no_mapping_that_is_not_to_be_inherited() {
    let test = "memory::read_only::tests::child_of_fork_has_no_mapping_that_is_not_to_be_inherited";
    crate::child::succeeds(test, || {
        let (region, memory) = ReadOnlyMemory::create_sparse("beeline-test", 8192).unwrap();
        let inherited = memory.map().unwrap();
        let (region, peers) = (region.dont_fork().unwrap(), memory.map().unwrap().dont_fork().unwrap());
        region.word(0).store(7);
        let load = |words: ReadWords| assert_eq!(words.load(0), 7);
        assert_eq!(in_a_child(|| load(inherited.read_words(0, 1))), 0);
        for kept in [region.read_words(0, 1), peers.read_words(0, 1)] {
            let status = in_a_child(|| load(kept));
            assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status}");
        }
        // What has their addresses in a child stays when the child drops its handles.
        let starts = [&region, &peers.0].map(|region| region.span(0, 4096, 64).start());
        let status = in_a_child(move || {
            for start in starts {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
                // SAFETY: replaces nothing; the kernel refuses where something is mapped.
                let found = unsafe { libc::mmap(start.cast(), 8192, libc::PROT_READ, flags, -1, 0) };
                assert_eq!(found.cast(), start);
            }
            drop((region, peers));
            for start in starts {
                // SAFETY: mapped above for reading.
                assert_eq!(unsafe { start.read_volatile() }, 0);
            }
        });
        assert_eq!(status, 0);
        let kept = inherited.clone();
        assert_eq!(inherited.dont_fork().unwrap_err(), Errno::BUSY);
        assert_eq!(Region::private(4096).part(0, 64, ()).dont_fork().unwrap_err(), Errno::BUSY);
        assert!(Region::private(4096).dont_fork().is_ok());
        assert_eq!(kept.read_words(0, 1).load(0), 7);
    });
}

#[test]
fn memory_of_another_size_or_unsealed_is_refused() {
    let (_, memory, _) = mapped();
    let passed = || memory.fd().try_clone_to_owned().unwrap();
    let wrong = ReadOnlyMemory::from_fd(passed(), 4096).unwrap_err();
    assert!(matches!(wrong, MapError::WrongSize { found: 8192, expected: 4096, .. }), "{wrong}");
    let unsealed = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
    rustix::fs::ftruncate(&unsealed, 4096).unwrap();
    let unsealed = ReadOnlyMemory::from_fd(unsealed, 4096).unwrap_err();
    assert!(matches!(unsealed, MapError::Unsealed { .. }), "{unsealed}");
    let writable = SharedMemory::create("beeline-test", 4096, MemoryOptions::default()).unwrap();
    let passed = writable.fd().try_clone_to_owned().unwrap();
    assert!(ReadOnlyMemory::from_fd(passed, 4096).unwrap().map().is_ok(), "reading is enough");
    assert!(matches!(ReadOnlyMemory::create("beeline-test", 0), Err(MapError::Size { bytes: 0 })));
}
