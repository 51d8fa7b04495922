//! Shared memory: what is accepted, what is refused, and that a peer cannot take it away.
#![cfg(not(miri))]

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CapabilitySet;

use super::*;
use crate::mapping::PAGE_BYTES;
use crate::pace::UNMAP_SPARSE_BYTES;

fn memfd(bytes: u64, seals: SealFlags) -> OwnedFd {
    let fd = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
    rustix::fs::ftruncate(&fd, bytes).unwrap();
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    fd
}

#[test]
fn memory_is_shared_by_its_descriptor() {
    let ours = SharedMemory::create("beeline-test", 8192, MemoryOptions::default()).unwrap();
    let passed = ours.fd().try_clone_to_owned().unwrap();
    let theirs = SharedMemory::from_fd(passed, 8192).unwrap();
    let (here, there) = (ours.map().unwrap(), theirs.map().unwrap());
    assert_eq!((here.bytes(), there.word(4096).load()), (8192, 0));
    here.word(4096).store(17);
    assert_eq!(there.word(4096).load(), 17);
}

#[test]
fn part_that_is_given_back_is_zero_for_everybody_and_takes_no_memory() {
    let memory = SharedMemory::create("beeline-test", 1 << 46, MemoryOptions::default()).unwrap();
    let blocks = || rustix::fs::fstat(memory.fd()).unwrap().st_blocks;
    let options = crate::SegmentOptions { offset_bytes: 1 << 45, bytes: Some(1 << 16), ..Default::default() };
    let segment = crate::MappedSegment::memory(memory.fd(), &options).unwrap();
    segment.copy_in(0, &[7; 1 << 16]).unwrap();
    assert!(blocks() > 0);
    memory.give_back(1 << 45, 1 << 16).unwrap();
    let mut byte = [7];
    segment.copy_out(9, &mut byte).unwrap();
    assert_eq!(byte, [0]);
    memory.give_back(1 << 45, 1 << 16).unwrap();
    assert_eq!(blocks(), 0);
    assert_eq!(memory.give_back((1 << 46) - 1, 2), Err(Errno::INVAL));
    assert_eq!(memory.give_back(usize::MAX, 2), Err(Errno::INVAL));
}

#[test]
fn memory_is_small_by_all_of_its_pages_and_nothing_else_is() {
    let is_small = |fd: &OwnedFd| is_small_memory(fd.as_fd(), 8192);
    for (bytes, expected) in [(0, true), (4096, true), (8192, true), (8193, false), (1 << 30, false)] {
        assert_eq!(is_small(&memfd(bytes, SEALS)), expected, "{bytes} bytes");
    }
    assert!(is_small_memory(memfd(4096, SEALS).as_fd(), 1), "a page is the least");
    assert!(!is_small(&memfd(4096, SealFlags::GROW)), "it could shrink and grow");
    assert!(!is_small(&File::open("/proc/self/exe").unwrap().into()));
    // As many pages as its maker likes lie behind the end of this one.
    let hidden = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
    rustix::fs::ftruncate(&hidden, 4096).unwrap();
    rustix::fs::fallocate(&hidden, rustix::fs::FallocateFlags::KEEP_SIZE, 4096, 1 << 20).unwrap();
    rustix::fs::fcntl_add_seals(&hidden, SEALS).unwrap();
    assert!(!is_small(&hidden));
}

#[test]
fn handles_keep_the_mapping_when_region_and_memory_are_gone() {
    let memory = SharedMemory::create("beeline-test", 4096, MemoryOptions::default()).unwrap();
    let region = memory.map().unwrap();
    let word = region.word(0);
    drop(region);
    drop(memory);
    word.store(3);
    assert_eq!(word.load(), 3);
}

#[test]
fn a_peer_cannot_change_the_size_or_the_seals() {
    let memory = SharedMemory::create("beeline-test", 8192, MemoryOptions::default()).unwrap();
    let peer = memory.fd().try_clone_to_owned().unwrap();
    assert_eq!(rustix::fs::ftruncate(&peer, 0), Err(Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(&peer, 1 << 20), Err(Errno::PERM));
    assert_eq!(rustix::fs::fcntl_add_seals(&peer, SealFlags::WRITE), Err(Errno::PERM));
}

/// A peer can give pages back; they read as zero afterwards, and no access ends the process.
#[test]
fn a_hole_punched_by_a_peer_reads_as_zero() {
    let memory = SharedMemory::create("beeline-test", 8192, MemoryOptions::default()).unwrap();
    let region = memory.map().unwrap();
    region.word(0).store(1);
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(memory.fd(), flags, 0, 8192).unwrap();
    assert_eq!(region.word(0).load(), 0);
    region.word(8).store(2);
    assert_eq!(region.word(8).load(), 2);
}

#[test]
fn impossible_sizes_are_refused() {
    for bytes in [0, usize::MAX] {
        let error = SharedMemory::create("beeline-test", bytes, MemoryOptions::default()).unwrap_err();
        assert!(matches!(error, MapError::Size { bytes: b } if b == bytes), "{error}");
    }
}

#[test]
fn a_file_is_not_a_memfd() {
    let file: OwnedFd = File::open("/proc/self/exe").unwrap().into();
    assert!(matches!(SharedMemory::from_fd(file, 4096), Err(MapError::NotMemfd { .. })));
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    let error = SharedMemory::from_fd(pipe, 4096).unwrap_err();
    assert!(error.to_string().contains("memfd_create"), "{error}");
}

#[test]
fn every_missing_seal_is_named() {
    let all = [
        (SealFlags::SHRINK, "F_SEAL_SHRINK"),
        (SealFlags::GROW, "F_SEAL_GROW"),
        (SealFlags::SEAL, "F_SEAL_SEAL"),
    ];
    for (left_out, name) in all {
        let fd = memfd(4096, SEALS.difference(left_out));
        let Err(MapError::Unsealed { missing, .. }) = SharedMemory::from_fd(fd, 4096) else {
            panic!("memory without {name} was accepted");
        };
        assert_eq!(missing, name);
    }
    let error = SharedMemory::from_fd(memfd(4096, SealFlags::empty()), 4096).unwrap_err();
    assert!(error.to_string().contains("F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL"), "{error}");
}

#[test]
fn another_size_than_agreed_is_refused() {
    for expected in [0, 4095, 4097, 8192] {
        let error = SharedMemory::from_fd(memfd(4096, SEALS), expected).unwrap_err();
        assert!(
            matches!(error, MapError::WrongSize { found: 4096, expected: e, .. } if e == expected),
            "{error}"
        );
    }
    assert!(matches!(SharedMemory::from_fd(memfd(0, SEALS), 0), Err(MapError::Size { bytes: 0 })));
}

#[test]
fn memory_that_cannot_be_written_is_refused() {
    for seal in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
        let error = SharedMemory::from_fd(memfd(4096, SEALS | seal), 4096).unwrap_err();
        assert!(matches!(error, MapError::ReadOnly { .. }), "{error}");
    }
    let fd = memfd(4096, SEALS);
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd.as_fd()));
    let read_only =
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty()).unwrap();
    let error = SharedMemory::from_fd(read_only, 4096).unwrap_err();
    assert!(matches!(error, MapError::ReadOnly { why: "it is not open for both", .. }), "{error}");
}

#[test]
fn pages_touched_by_hand_keep_what_they_hold() {
    let memory = SharedMemory::create("beeline-test", 3 * 4096 + 5, MemoryOptions::default()).unwrap();
    let mapping = memory.map_pages(&Unpaced).unwrap();
    let region = memory.map().unwrap();
    region.fill(0, 3 * 4096, 0x77);
    populate::touch(&mapping, 0, mapping.bytes());
    assert_eq!((region.word(0).load(), region.word(8192).load()), (0x77, 0x77));
}

/// Both outcomes are checked, because whether huge pages are reserved is the administrator's business.
#[test]
fn huge_pages_are_had_or_their_remedy_is_named() {
    let options = MemoryOptions { huge_pages: true, locked: false };
    match SharedMemory::create("beeline-test", 4096 + 1, options) {
        Ok(memory) => {
            assert!(
                memory.bytes().is_multiple_of(1 << 16) && memory.bytes() > 4097,
                "{} bytes",
                memory.bytes()
            );
            memory.map().unwrap().word(memory.bytes() - 8).store(1);
            let passed = memory.fd().try_clone_to_owned().unwrap();
            let refused = SharedMemory::from_fd(passed, memory.bytes());
            assert!(matches!(refused, Err(MapError::UnaskedHugePages { .. })));
            let passed = memory.fd().try_clone_to_owned().unwrap();
            SharedMemory::from_fd_with(passed, memory.bytes(), options).unwrap().map().unwrap();
        }
        Err(error) => {
            assert!(matches!(error, MapError::HugePages { needed: 1, .. }), "{error:?}");
            assert!(error.to_string().contains("sysctl -w vm.nr_hugepages="), "{error}");
        }
    }
}

#[test]
fn memory_is_locked() {
    let options = MemoryOptions { huge_pages: false, locked: true };
    let memory = SharedMemory::create("beeline-test", 16 << 10, options).unwrap();
    let _region = memory.map().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    let kib: u64 = locked.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib >= 16, "{kib} KiB locked");
}

/// The limit is lifted for a thread with CAP_IPC_LOCK, so that this one gives it up; capabilities belong to threads.
#[test]
fn the_lock_limit_is_named_with_its_remedy() {
    std::thread::spawn(|| {
        let mut capabilities = rustix::thread::capabilities(None).unwrap();
        capabilities.effective.remove(CapabilitySet::IPC_LOCK);
        rustix::thread::set_capabilities(None, capabilities).unwrap();
        let mut limit = getrlimit(Resource::Memlock);
        let bytes = match limit.current {
            Some(bytes) if bytes <= 64 << 20 => bytes,
            _ => {
                limit.current = Some(8 << 20);
                setrlimit(Resource::Memlock, limit).unwrap();
                8 << 20
            }
        };
        let options = MemoryOptions { huge_pages: false, locked: true };
        let memory = SharedMemory::create("beeline-test", bytes as usize + 4096, options).unwrap();
        let error = memory.map().unwrap_err();
        let MapError::Lock { limit_bytes, bytes: asked, .. } = error else { panic!("{error}") };
        assert_eq!((limit_bytes, asked as u64), (bytes, bytes + 4096));
        let text = error.to_string();
        assert!(text.contains("ulimit -l") && text.contains("limits.conf"), "{text}");
        assert!(text.contains(&bytes.to_string()), "{text}");
    })
    .join()
    .unwrap();
}

/// Asked of the kernel it would be a signal, which ends the process unless the program has made other arrangements.
#[test]
fn size_that_the_limit_of_files_forbids_is_an_error_and_no_signal() {
    const TEST: &str = "memory::tests::size_that_the_limit_of_files_forbids_is_an_error_and_no_signal";
    crate::child::succeeds(TEST, || {
        let limit = Rlimit { current: Some(8192), ..getrlimit(Resource::Fsize) };
        setrlimit(Resource::Fsize, limit).unwrap();
        SharedMemory::create("small", 8192, MemoryOptions::default()).unwrap().map().unwrap();
        let errors = [
            SharedMemory::create("large", 12_288, MemoryOptions::default()).err(),
            ReadOnlyMemory::create("large", 12_288).err(),
        ];
        for error in errors {
            let text = error.unwrap().to_string();
            assert!(
                text.contains("`large` of 12288 bytes") && text.contains("files of 8192 bytes"),
                "{text}"
            );
            assert!(text.contains("ulimit -f"), "{text}");
        }
    });
}

/// Page faults of the calling thread so far.
#[cfg(not(target_arch = "aarch64"))]
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(7).unwrap().parse().unwrap()
}

/// Records the faults of each piece.
#[cfg(not(target_arch = "aarch64"))]
#[derive(Default)]
struct Watching(std::cell::RefCell<Vec<u64>>);

#[cfg(not(target_arch = "aarch64"))]
impl Pace for Watching {
    fn piece(&self, work: &mut dyn FnMut()) {
        let before = faults();
        work();
        self.0.borrow_mut().push(faults() - before);
    }
}

// Not in an emulator, whose faults are its own.
#[cfg(not(target_arch = "aarch64"))]
#[test]
fn pages_are_brought_in_and_filled_in_pieces_and_none_is_missing() {
    let bytes = 9 * crate::PIECE_BYTES + 8192;
    let memory = SharedMemory::create("beeline-test", bytes, MemoryOptions::default()).unwrap();
    let pace = Watching::default();
    let region = memory.map_paced(&pace).unwrap();
    let mapped = pace.0.take();
    // Reading /proc has a few faults of its own.
    let most = (crate::PIECE_BYTES / 4096) as u64 + 16;
    assert!(mapped.len() == 10 && mapped.iter().all(|faults| *faults <= most), "{mapped:?}");
    region.fill_paced(4096, bytes - 4096, 7, &pace);
    let filled = pace.0.take();
    assert!(filled.len() == 10 && filled.iter().sum::<u64>() < most, "the pages were there: {filled:?}");
    assert_eq!(
        (region.word(4088).load(), region.word(4096).load(), region.word(bytes - 8).load()),
        (0, 7, 7)
    );
}

#[test]
fn a_mapping_of_many_pieces_goes_as_a_whole() {
    let mapped = |name: &str| std::fs::read_to_string("/proc/self/maps").unwrap().contains(name);
    let bytes = (5 << 20) + 4096;
    let region =
        SharedMemory::create("beeline-pieces", bytes, MemoryOptions::default()).unwrap().map().unwrap();
    assert!(mapped("beeline-pieces"));
    drop(region);
    assert!(!mapped("beeline-pieces"));
}

#[test]
fn sparse_memory_is_unmapped_whole_by_pieces_that_grow() {
    // Several of the largest pieces, and a page that is in none.
    let bytes = (3 * UNMAP_SPARSE_BYTES) + PAGE_BYTES;
    let memory = SharedMemory::create("beeline-in-pieces", bytes, MemoryOptions::default()).unwrap();
    let is_mapped = || std::fs::read_to_string("/proc/self/maps").unwrap().contains("beeline-in-pieces");
    let region = memory.map_sparse().unwrap();
    assert!(is_mapped());
    drop(region);
    assert!(!is_mapped());
}
