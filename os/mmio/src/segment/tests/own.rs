//! Memory of the caller: what can be shared, and why the rest cannot.

use super::*;

static IN_THE_PROGRAM: [u8; 16] = [1; 16];

fn refusal(address: usize, bytes: usize, fd: &OwnedFd) -> String {
    let refused = OwnMemory::find(address, bytes, fd.as_fd()).unwrap_err();
    assert!(matches!(refused, SegmentError::Unshareable { .. }), "{refused:?}");
    refused.to_string()
}

#[test]
fn mapping_of_a_descriptor_is_found_in_its_file_and_mapped_by_a_peer() {
    let fd = memfd(4 * PAGE_BYTES, SIZE_SEALS);
    let segment = memory(&fd, &SegmentOptions { offset_bytes: 4096, ..options() });
    let start = segment.as_ptr().addr().get();
    let own = OwnMemory::find(start + PAGE_BYTES, PAGE_BYTES + 10, fd.as_fd()).unwrap();
    assert_eq!((own.offset_bytes(), own.bytes(), own.address()), (8192, PAGE_BYTES + 10, start + PAGE_BYTES));
    let part = SegmentOptions { offset_bytes: own.offset_bytes(), bytes: Some(own.bytes()), ..options() };
    let peer = MappedSegment::memory(own.fd(), &part).unwrap();
    segment.copy_in(PAGE_BYTES + 5, b"shared").unwrap();
    let mut found = [0; 6];
    peer.copy_out(5, &mut found).unwrap();
    assert_eq!(&found, b"shared");
    // Not at a page: where it is is said, and what a peer does with it is the peer's.
    assert_eq!(OwnMemory::find(start + 10, 1, fd.as_fd()).unwrap().offset_bytes(), 4106);
    // Whatever is behind the mapping, or nothing, the refusal says where that begins.
    let past = refusal(start, 3 * PAGE_BYTES + 1, &fd);
    assert!(past.contains(&format!("at {:#x}", start + 3 * PAGE_BYTES)), "{past}");
}

#[test]
fn private_memory_is_refused_with_the_reason() {
    let fd = memfd(PAGE_BYTES, SIZE_SEALS);
    let (allocated, on_stack) = (vec![1u8; 100_000], [1u8; 16]);
    for address in [allocated.as_ptr().addr(), on_stack.as_ptr().addr()] {
        let text = refusal(address, 16, &fd);
        assert!(text.contains("private memory of this process") && text.contains("from a memfd"), "{text}");
    }
    let text = refusal(IN_THE_PROGRAM.as_ptr().addr(), 16, &fd);
    assert!(text.contains("is a private mapping of a file"), "{text}");
}

#[test]
fn shared_memory_of_another_descriptor_or_of_none_is_refused() {
    let (fd, other) = (memfd(PAGE_BYTES, SIZE_SEALS), memfd(PAGE_BYTES, SIZE_SEALS));
    let segment = memory(&fd, &options());
    let text = refusal(segment.as_ptr().addr().get(), PAGE_BYTES, &other);
    assert!(text.contains("memfd:beeline-test") && text.contains("which the descriptor is not of"), "{text}");
    let both = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
    // SAFETY: a fresh range chosen by the kernel; nothing of this process is replaced.
    let anonymous = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), PAGE_BYTES, both, rustix::mm::MapFlags::SHARED)
    }
    .unwrap();
    let text = refusal(anonymous.addr(), PAGE_BYTES, &fd);
    assert!(text.contains("which the descriptor is not of"), "{text}");
    // SAFETY: mapped above, and used by nobody.
    unsafe { rustix::mm::munmap(anonymous, PAGE_BYTES) }.unwrap();
}

#[test]
fn range_that_is_not_mapped_or_no_range_is_refused() {
    let fd = memfd(2 * PAGE_BYTES, SIZE_SEALS);
    let gone = memory(&fd, &options()).as_ptr().addr().get();
    assert!(refusal(8, 1, &fd).contains("nothing is mapped"));
    // Two pages of the file in the other order.
    let [_second, _first] = [(0, 1), (1, 0)].map(|(place, page)| {
        let (offset_bytes, address) = ((page * PAGE_BYTES) as u64, Some(gone + place * PAGE_BYTES));
        memory(&fd, &SegmentOptions { offset_bytes, address, bytes: Some(PAGE_BYTES), ..options() })
    });
    assert!(refusal(gone, 2 * PAGE_BYTES, &fd).contains("another part of the file follows"));
    for (address, bytes) in [(gone, 0), (usize::MAX, 2)] {
        let refused = OwnMemory::find(address, bytes, fd.as_fd()).unwrap_err();
        assert!(matches!(refused, SegmentError::Size { .. }), "{refused}");
    }
}
