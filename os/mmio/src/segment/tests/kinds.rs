//! What can be mapped, and what each option does.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;

use super::*;
use crate::child;

#[test]
fn segment_is_its_part_of_the_memory_and_seen_by_every_other() {
    let fd = memfd(4 * PAGE_BYTES, SIZE_SEALS);
    let part = memory(&fd, &SegmentOptions { offset_bytes: 4096, bytes: Some(5000), ..options() });
    let whole = memory(&fd, &options());
    assert_eq!((part.bytes(), whole.bytes(), part.access()), (5000, 4 * PAGE_BYTES, Access::ReadWrite));
    assert_eq!((byte(&part, 0), byte(&whole, 4096)), (first_of_page(1), first_of_page(1)));
    part.copy_in(4990, b"last bytes").unwrap();
    let mut found = [0; 10];
    whole.copy_out(4096 + 4990, &mut found).unwrap();
    assert_eq!(&found, b"last bytes");
    assert_eq!(
        part.copy_in(4991, b"last bytes").unwrap_err().to_string(),
        "10 bytes at offset 4991 reach outside a segment of 5000 bytes"
    );
    assert!(matches!(part.copy_out(usize::MAX, &mut found), Err(CopyError::Outside { whole: 5000, .. })));
    part.region().unwrap().word(8).store(0x1122);
    assert_eq!(byte(&whole, 4096 + 8), 0x22);
    assert!(part.is_intact() && !part.region().unwrap().is_device());
}

#[test]
fn pointer_reads_and_writes_what_copies_do_and_keeps_the_memory_mapped() {
    let fd = memfd(2 * PAGE_BYTES, SIZE_SEALS);
    let segment = memory(&fd, &options());
    let pointer = segment.pointer(PAGE_BYTES, 64).unwrap();
    assert_eq!((pointer.bytes(), pointer.access()), (64, Access::ReadWrite));
    assert_eq!(pointer.as_ptr().addr().get(), segment.as_ptr().addr().get() + PAGE_BYTES);
    assert!(
        segment.pointer(PAGE_BYTES, PAGE_BYTES + 1).is_none() && segment.pointer(usize::MAX, 2).is_none()
    );
    // SAFETY: 64 mapped bytes, kept mapped by `pointer`; only this thread writes them.
    unsafe { pointer.as_ptr().write_volatile(0x77) };
    assert_eq!(byte(&segment, PAGE_BYTES), 0x77);
    let also = pointer.clone();
    let still = segment.unmap().unwrap_err();
    assert_eq!((still.reason, still.to_string().contains("2 pointers")), (InUse::Handles(2), true));
    drop(pointer);
    let region = still.segment.region().unwrap();
    let word = region.word(0);
    drop(region);
    let still = still.segment.unmap().unwrap_err();
    assert_eq!(still.reason, InUse::Handles(2), "a pointer and a word");
    // Unmapping is deferred where nobody waits for it.
    drop(still);
    assert_eq!(word.load() as u8, first_of_page(0));
    // SAFETY: as above; `also` keeps it mapped.
    assert_eq!(unsafe { also.as_ptr().read_volatile() }, 0x77);
    let start = also.as_ptr().addr().get();
    drop((word, also));
    assert!(
        process_maps::inside(start, 1).unwrap().iter().all(|entry| !entry.name().contains("beeline-test"))
    );
}

#[test]
fn read_only_segment_gives_out_nothing_that_stores_and_cannot_be_made_writable() {
    let unsealed_for_writing = memfd(PAGE_BYTES, SIZE_SEALS);
    let sealed = memfd(PAGE_BYTES, SIZE_SEALS | SealFlags::FUTURE_WRITE);
    for fd in [unsealed_for_writing, sealed] {
        let segment = memory(&fd, &SegmentOptions { access: Access::ReadOnly, ..options() });
        assert_eq!(byte(&segment, 0), first_of_page(0));
        assert_eq!(segment.copy_in(0, &[1]), Err(CopyError::ReadOnly));
        assert!(segment.region().is_none());
        assert_eq!(segment.read_only_region().bytes(), PAGE_BYTES);
        let start = segment.as_ptr().as_ptr().cast();
        let writable = rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE;
        // SAFETY: our own mapping, and the kernel refuses.
        assert_eq!(unsafe { rustix::mm::mprotect(start, PAGE_BYTES, writable) }, Err(Errno::ACCESS));
    }
}

#[test]
fn store_into_a_read_only_segment_ends_the_process() {
    let status = child::run("segment::tests::kinds::store_into_a_read_only_segment_ends_the_process", || {
        let segment =
            memory(&memfd(PAGE_BYTES, SIZE_SEALS), &SegmentOptions { access: Access::ReadOnly, ..options() });
        // SAFETY: a mapped page; the kernel ends this process before anything is stored.
        unsafe { segment.as_ptr().write_volatile(1) };
    });
    assert!(status.is_none_or(|status| status.signal() == Some(libc::SIGSEGV)), "{status:?}");
}

// Not in an emulator, which has its own way with addresses and pages.
#[cfg(not(target_arch = "aarch64"))]
#[test]
fn segment_is_at_the_address_that_was_named_or_nowhere() {
    let fd = memfd(4 * PAGE_BYTES, SIZE_SEALS);
    let free = memory(&fd, &options()).as_ptr().addr().get();
    let fixed = SegmentOptions { address: Some(free), bytes: Some(2 * PAGE_BYTES), ..options() };
    let segment = memory(&fd, &fixed);
    assert_eq!(segment.as_ptr().addr().get(), free);
    let taken = refusal(&fd, &SegmentOptions { address: Some(free + PAGE_BYTES), ..fixed });
    let text = taken.to_string();
    assert!(matches!(taken, SegmentError::Taken { .. }) && text.contains("memfd:beeline-test"), "{text}");
    assert_eq!(byte(&segment, 0), first_of_page(0), "it is still there");
    segment.unmap().unwrap();
    memory(&fd, &fixed);
    let odd = refusal(&fd, &SegmentOptions { address: Some(free + 8), ..fixed });
    assert!(matches!(odd, SegmentError::Unaligned { what: "address", .. }), "{odd}");
    let nowhere = refusal(&fd, &SegmentOptions { address: Some(1 << 63), ..fixed });
    assert!(matches!(nowhere, SegmentError::Map { errno: Errno::NOMEM, .. }), "{nowhere}");
    let null = refusal(&fd, &SegmentOptions { address: Some(0), ..fixed });
    assert!(matches!(null, SegmentError::Taken { address: 0, .. }), "{null}");
    assert_eq!(
        null.to_string(),
        "a segment of 8192 bytes cannot begin at 0x0: the page of the null pointer is there"
    );
}

/// 512-byte blocks that a file takes.
#[cfg(not(target_arch = "aarch64"))]
fn blocks(fd: &OwnedFd) -> u64 {
    rustix::fs::fstat(fd).unwrap().st_blocks as u64
}

// Not in an emulator, which has its own way with addresses and pages.
#[cfg(not(target_arch = "aarch64"))]
#[test]
fn lazy_segment_of_many_gigabytes_takes_the_pages_that_are_touched() {
    let bytes = 64usize << 30;
    let fd = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
    rustix::fs::ftruncate(&fd, bytes as u64).unwrap();
    rustix::fs::fcntl_add_seals(&fd, SIZE_SEALS).unwrap();
    let segment = memory(&fd, &options());
    for offset in [0, bytes / 2, bytes - 8] {
        segment.copy_in(offset, &[9; 8]).unwrap();
    }
    assert_eq!((segment.bytes(), byte(&segment, bytes - 1)), (bytes, 9));
    let taken = blocks(&fd) * 512;
    assert!((3 * PAGE_BYTES as u64..=(3 * 64) << 10).contains(&taken), "{taken} bytes");
}

// Not in an emulator, which has its own way with addresses and pages.
#[cfg(not(target_arch = "aarch64"))]
#[test]
fn present_segment_has_all_its_pages() {
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let fd = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
        rustix::fs::ftruncate(&fd, 64 * PAGE_BYTES as u64).unwrap();
        rustix::fs::fcntl_add_seals(&fd, SIZE_SEALS).unwrap();
        let _segment = memory(&fd, &SegmentOptions { pages: Pages::Present, access, ..options() });
        assert_eq!(blocks(&fd), 64 * PAGE_BYTES as u64 / 512);
    }
}

#[test]
fn files_that_can_shrink_are_mapped_for_who_allows_it() {
    let folder = tempfile::tempdir().unwrap();
    let in_memory = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
    let on_disk = File::create_new(folder.path().join("file")).unwrap();
    let on_disk = {
        let again = File::options().read(true).write(true).open(folder.path().join("file")).unwrap();
        drop(on_disk);
        again
    };
    for file in [File::from(in_memory), on_disk] {
        file.write_all_at(b"first page", 0).unwrap();
        file.set_len(2 * PAGE_BYTES as u64).unwrap();
        let refused = refusal_of(file.as_fd(), &options(), MappedSegment::file);
        let text = refused.to_string();
        assert!(
            matches!(refused, SegmentError::CanBeLost { .. }) && text.contains("F_SEAL_SHRINK"),
            "{text}"
        );
        let allowed = SegmentOptions { on_loss: OnLoss::Fatal, ..options() };
        let segment = MappedSegment::file(file.as_fd(), &allowed).unwrap();
        segment.copy_in(PAGE_BYTES, b"second").unwrap();
        let mut text = String::new();
        (&file).take(2 * PAGE_BYTES as u64).read_to_string(&mut text).unwrap();
        assert!(text.starts_with("first page\0") && text[PAGE_BYTES..].starts_with("second\0"));
        let read_only = SegmentOptions { access: Access::ReadOnly, ..allowed };
        assert_eq!(byte(&MappedSegment::file(file.as_fd(), &read_only).unwrap(), PAGE_BYTES), b's');
    }
    // One that cannot shrink is a file as any other.
    let sealed = memfd(PAGE_BYTES, SIZE_SEALS);
    assert_eq!(byte(&MappedSegment::file(sealed.as_fd(), &options()).unwrap(), 0), first_of_page(0));
}

#[test]
fn ordinary_pages_are_never_called_huge_and_a_wish_is_no_error() {
    let fd = memfd(PAGE_BYTES, SIZE_SEALS);
    let asked = |huge_pages| SegmentOptions { huge_pages, ..options() };
    assert!(!memory(&fd, &asked(HugePages::No)).has_huge_pages());
    assert_eq!(byte(&memory(&fd, &asked(HugePages::Wished)), 0), first_of_page(0));
    let refused = refusal(&fd, &asked(HugePages::Required));
    assert!(matches!(refused, SegmentError::Pages { found: "ordinary", wanted: "huge", .. }), "{refused}");
}

/// Both outcomes are checked, because whether huge pages are reserved is the administrator's business.
// Not in an emulator, as above.
#[cfg(not(target_arch = "aarch64"))]
#[test]
fn memory_of_huge_pages_is_mapped_for_who_asks_and_takes_the_risk() {
    let Ok(fd) = crate::huge_pages::create("beeline-test", 1) else { return };
    let page_bytes = crate::huge_pages::page_bytes(&fd).unwrap();
    rustix::fs::ftruncate(&fd, 2 * page_bytes as u64).unwrap();
    rustix::fs::fcntl_add_seals(&fd, SIZE_SEALS).unwrap();
    let refused = refusal(&fd, &options());
    assert!(matches!(refused, SegmentError::Pages { found: "huge", wanted: "ordinary", .. }), "{refused}");
    let required = SegmentOptions { huge_pages: HugePages::Required, ..options() };
    let refused = refusal(&fd, &required);
    assert!(matches!(refused, SegmentError::CanBeLost { .. }), "{refused}");
    let allowed = SegmentOptions { on_loss: OnLoss::Fatal, ..required };
    let refused = refusal(&fd, &SegmentOptions { offset_bytes: 4096, ..allowed });
    let is_page = |found: u64| found == page_bytes as u64;
    assert!(
        matches!(refused, SegmentError::Unaligned { page_bytes, .. } if is_page(page_bytes)),
        "{refused}"
    );
    match MappedSegment::memory(fd.as_fd(), &SegmentOptions { bytes: Some(100), ..allowed }) {
        Ok(segment) => {
            assert!(segment.has_huge_pages() && segment.bytes() == 100);
            segment.copy_in(0, &[1; 100]).unwrap();
            segment.unmap().unwrap();
        }
        Err(refused) => assert!(refused.to_string().contains("vm.nr_hugepages"), "{refused}"),
    }
}

/// A sysfs with one function, whose BAR 2 is an ordinary file.
fn sysfs() -> (tempfile::TempDir, std::path::PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let function = root.path().join("bus/pci/devices/0000:3b:00.1");
    std::fs::create_dir_all(&function).unwrap();
    for name in ["resource2", "resource2_wc"] {
        std::fs::write(function.join(name), vec![0; 4 * PAGE_BYTES]).unwrap();
    }
    (root, function)
}

#[test]
fn part_of_a_bar_is_mapped_for_who_says_what_happens_when_it_is_removed() {
    let (root, function) = sysfs();
    let open = |kind, options: &SegmentOptions| {
        MappedSegment::bar_under(root.path(), "0000:3b:00.1".parse().unwrap(), 2, kind, options)
    };
    let refused = open(BarKind::Uncached, &options()).unwrap_err();
    assert!(refused.to_string().contains("its device can be removed"), "{refused}");
    assert!(refused.to_string().contains("map memory that is no device's, or allow it"), "{refused}");
    let part =
        SegmentOptions { offset_bytes: 4096, bytes: Some(PAGE_BYTES), on_loss: OnLoss::Fatal, ..options() };
    let segment = open(BarKind::WriteCombining, &part).unwrap();
    segment.region().unwrap().word(0x40).store(0x1122);
    assert!(segment.region().unwrap().is_device());
    assert_eq!(std::fs::read(function.join("resource2_wc")).unwrap()[4096 + 0x40..][..2], [0x22, 0x11]);
    let read_only =
        open(BarKind::WriteCombining, &SegmentOptions { access: Access::ReadOnly, ..part }).unwrap();
    assert_eq!((byte(&read_only, 0x41), read_only.copy_in(0, &[1])), (0x11, Err(CopyError::ReadOnly)));
    let refused =
        open(BarKind::Uncached, &SegmentOptions { bytes: Some(5 * PAGE_BYTES), ..part }).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, SegmentError::Outside { .. }) && text.contains("resource2"), "{text}");
    let refused = open(BarKind::Uncached, &SegmentOptions { offset_bytes: 64, ..part }).unwrap_err();
    assert!(matches!(refused, SegmentError::Unaligned { what: "offset", value: 64, .. }), "{refused}");
    std::fs::remove_file(function.join("resource2")).unwrap();
    let refused = open(BarKind::Uncached, &part).unwrap_err();
    assert!(matches!(refused, SegmentError::Bar(_)), "{refused}");
}

/// Both outcomes are checked, because few machines have a driver that makes dma-bufs of memory.
#[test]
fn dma_buf_is_mapped_as_the_memory_that_it_is_made_of() {
    #[repr(C)]
    struct Create {
        memfd: u32,
        flags: u32,
        offset: u64,
        size: u64,
    }
    /// `UDMABUF_CREATE` of Linux's `udmabuf.h`.
    const CREATE: u64 = 0x4018_7542;
    let fd = memfd(2 * PAGE_BYTES, SIZE_SEALS);
    let device = match File::options().read(true).write(true).open("/dev/udmabuf") {
        Ok(device) => device,
        Err(_) => {
            let refused = DmaBuf::from_fd(fd).unwrap_err();
            assert!(matches!(refused, SegmentError::Kind { wanted: "a dma-buf", .. }), "{refused}");
            return;
        }
    };
    use std::os::fd::{AsRawFd, FromRawFd};
    let create = Create { memfd: fd.as_raw_fd() as u32, flags: 1, offset: 0, size: 2 * PAGE_BYTES as u64 };
    // SAFETY: the driver reads `create`, which lives through the call.
    let made = unsafe { libc::ioctl(device.as_raw_fd(), CREATE as _, &raw const create) };
    assert!(made >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the driver has just made the descriptor for this process.
    let buffer = DmaBuf::from_fd(unsafe { OwnedFd::from_raw_fd(made) }).unwrap();
    assert_eq!(buffer.bytes(), 2 * PAGE_BYTES as u64);
    assert!(matches!(buffer.map(&options()), Err(SegmentError::CanBeLost { .. })));
    let part = SegmentOptions { offset_bytes: 4096, on_loss: OnLoss::Fatal, ..options() };
    let segment = buffer.map(&part).unwrap();
    buffer.begin_access(Access::ReadWrite).unwrap();
    assert_eq!(byte(&segment, 0), first_of_page(1));
    buffer.end_access(Access::ReadWrite).unwrap();
    assert!(matches!(MappedSegment::file(buffer.fd(), &part), Err(SegmentError::Kind { .. })));
}
