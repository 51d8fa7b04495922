//! Descriptors that a peer might pass, and parts that it might name.

use std::fs::File;

use rustix::fs::{Mode, OFlags};

use super::*;

/// Descriptors of everything that is no memory, and what their refusal says.
fn others() -> Vec<(OwnedFd, &'static str)> {
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    let open = |path: &str, flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap();
    vec![
        (pipe, "it is a pipe"),
        (socket.into(), "it is a socket"),
        (event, "it is something else"),
        (open("/", OFlags::RDONLY), "it is a directory"),
        (open("/dev/zero", OFlags::RDWR), "it is a character device"),
        (open("/proc/self/exe", OFlags::PATH), "it is open as a path"),
    ]
}

#[test]
fn what_is_no_memory_is_refused_by_its_kind() {
    let allowed = SegmentOptions { on_loss: OnLoss::Fatal, ..options() };
    for (fd, why) in others() {
        let refused = refusal(&fd, &allowed);
        assert!(matches!(refused, SegmentError::Kind { .. }), "{refused}");
        let refused = refusal_of(fd.as_fd(), &allowed, MappedSegment::file);
        let text = refused.to_string();
        assert!(matches!(refused, SegmentError::Kind { .. }) && text.contains(why), "{text}");
        let refused = DmaBuf::from_fd(fd).unwrap_err();
        assert!(matches!(refused, SegmentError::Kind { .. } | SegmentError::Examine { .. }), "{refused}");
    }
    let of_sysfs = File::open("/sys/kernel/uevent_seqnum");
    if let Ok(file) = of_sysfs {
        let refused = refusal_of(file.as_fd(), &allowed, MappedSegment::file);
        assert!(refused.to_string().contains("MappedSegment::bar"), "{refused}");
    }
    // A regular file that gives nothing to be mapped.
    let of_proc = File::open("/proc/self/status").unwrap();
    let part = SegmentOptions { access: Access::ReadOnly, bytes: Some(1), ..allowed };
    let refused = refusal_of(of_proc.as_fd(), &part, MappedSegment::file);
    assert!(matches!(refused, SegmentError::Outside { found: 0, .. }), "{refused}");
}

#[test]
fn memory_that_can_shrink_is_not_taken_for_memory_that_cannot() {
    for seals in [SealFlags::empty(), SealFlags::GROW, SealFlags::SEAL | SealFlags::GROW] {
        let refused = refusal(memfd(PAGE_BYTES, seals), &options());
        assert!(refused.to_string().contains("F_SEAL_SHRINK"), "{seals:?}: {refused}");
    }
    // Not even for who would take the risk: that is what `file` is for.
    let allowed = SegmentOptions { on_loss: OnLoss::Fatal, ..options() };
    assert!(matches!(refusal(memfd(PAGE_BYTES, SealFlags::empty()), &allowed), SegmentError::Kind { .. }));
    let file = tempfile::tempfile().unwrap();
    let refused = refusal(&file, &options());
    assert!(matches!(refused, SegmentError::Kind { .. } | SegmentError::CanBeLost { .. }), "{refused}");
}

#[test]
fn sealed_memory_cannot_shrink_under_a_segment() {
    let fd = memfd(2 * PAGE_BYTES, SealFlags::SHRINK);
    let segment = memory(&fd, &options());
    assert_eq!(rustix::fs::ftruncate(&fd, 0), Err(Errno::PERM));
    assert_eq!(byte(&segment, PAGE_BYTES), first_of_page(1));
    // It may grow, and pages may be given back: they read as zero.
    rustix::fs::ftruncate(&fd, 4 * PAGE_BYTES as u64).unwrap();
    let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&fd, hole, 0, 2 * PAGE_BYTES as u64).unwrap();
    assert_eq!((byte(&segment, PAGE_BYTES), segment.is_intact(), segment.bytes()), (0, true, 2 * PAGE_BYTES));
}

#[test]
fn descriptor_that_gives_another_access_is_refused() {
    let fd = memfd(PAGE_BYTES, SIZE_SEALS);
    let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
    let open = |flags| rustix::fs::open(&*link, flags | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let read_only = SegmentOptions { access: Access::ReadOnly, ..options() };
    for (flags, asked, why) in [
        (OFlags::WRONLY, options(), "it is open for writing only"),
        (OFlags::WRONLY, read_only, "it is open for writing only"),
        (OFlags::RDONLY, options(), "it is open for reading only"),
    ] {
        let refused = refusal(open(flags), &asked);
        let text = refused.to_string();
        assert!(matches!(refused, SegmentError::Access { .. }) && text.contains(why), "{text}");
    }
    assert_eq!(byte(&memory(&open(OFlags::RDONLY), &read_only), 0), first_of_page(0));
    for seal in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
        let sealed = memfd(PAGE_BYTES, SIZE_SEALS | seal);
        let refused = refusal(&sealed, &options());
        assert!(refused.to_string().contains("sealed against writing"), "{refused}");
        assert_eq!(byte(&memory(&sealed, &read_only), 0), first_of_page(0));
    }
}

#[test]
fn part_that_is_not_there_is_refused() {
    let fd = memfd(2 * PAGE_BYTES + 100, SIZE_SEALS);
    let last_page = u64::MAX - PAGE_BYTES as u64 + 1;
    for (offset_bytes, bytes) in [
        (0, Some(2 * PAGE_BYTES + 101)),
        (PAGE_BYTES as u64, Some(PAGE_BYTES + 101)),
        (3 * PAGE_BYTES as u64, None),
        (3 * PAGE_BYTES as u64, Some(1)),
        (last_page, None),
        (last_page, Some(PAGE_BYTES)),
        (last_page, Some(usize::MAX)),
        (1 << 63, Some(1)),
        (0, Some(usize::MAX)),
    ] {
        let refused = refusal(&fd, &SegmentOptions { offset_bytes, bytes, ..options() });
        assert!(matches!(refused, SegmentError::Outside { found: 8292, .. }), "{offset_bytes}: {refused}");
    }
    // The last page is mapped whole, and no more than the memory is handed out.
    let rest = memory(&fd, &SegmentOptions { offset_bytes: 2 * PAGE_BYTES as u64, ..options() });
    assert_eq!((rest.bytes(), rest.pointer(0, 101).is_none()), (100, true));
    for offset_bytes in [1, 4095, 4097, u64::MAX] {
        let refused = refusal(&fd, &SegmentOptions { offset_bytes, ..options() });
        let text = refused.to_string();
        assert!(text.contains("is not a multiple of the page, 4096 bytes: round it down to"), "{text}");
    }
    let nothing = refusal(&fd, &SegmentOptions { bytes: Some(0), ..options() });
    assert!(matches!(nothing, SegmentError::Size { bytes: 0 }), "{nothing}");
    let empty = refusal(memfd(0, SIZE_SEALS), &options());
    assert!(matches!(empty, SegmentError::Outside { found: 0, .. }), "{empty}");
    let enormous = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
    rustix::fs::ftruncate(&enormous, i64::MAX as u64 & !4095).unwrap();
    rustix::fs::fcntl_add_seals(&enormous, SIZE_SEALS).unwrap();
    let refused = refusal(&enormous, &options());
    assert!(matches!(refused, SegmentError::Size { .. }), "{refused}");
}
