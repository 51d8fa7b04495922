//! As many mappings as a process may have.

use super::*;
use crate::child::{self, Full};

/// More than half of them fit.
const ASKED: usize = 10_000;
const ROOM: usize = 6_000;

#[test]
fn ten_thousand_small_segments_are_had_or_the_limit_is_named() {
    child::succeeds(
        "segment::tests::limits::ten_thousand_small_segments_are_had_or_the_limit_is_named",
        || {
            let fd = memfd(PAGE_BYTES, SIZE_SEALS);
            let full = Full::but_for(ROOM);
            let (mut segments, mut refused) = (Vec::with_capacity(ASKED), None);
            for _ in 0..ASKED {
                match MappedSegment::memory(fd.as_fd(), &options()) {
                    Ok(segment) => segments.push(segment),
                    Err(error) => {
                        refused = Some(error);
                        break;
                    }
                }
            }
            let text = refused.as_ref().map(ToString::to_string);
            assert!(
                (ROOM - 100..ROOM + 100).contains(&segments.len()),
                "{} segments, {text:?}",
                segments.len()
            );
            let Some(SegmentError::TooMany { maps, limit }) = refused else { panic!("{text:?}") };
            assert!(maps + 8 >= limit && text.is_some_and(|text| text.contains("vm.max_map_count")));
            assert!(segments.iter().all(|segment| byte(segment, 0) == first_of_page(0)));
            // One less is room for one more.
            segments.pop().unwrap().unmap().unwrap();
            segments.push(memory(&fd, &options()));
            drop(full);
            while segments.len() < ASKED {
                segments.push(memory(&fd, &options()));
            }
        },
    );
}

#[test]
fn segment_that_the_kernel_cannot_cut_out_stays_and_can_be_unmapped_later() {
    let name =
        "segment::tests::limits::segment_that_the_kernel_cannot_cut_out_stays_and_can_be_unmapped_later";
    child::succeeds(name, || {
        let fd = memfd(3 * PAGE_BYTES, SIZE_SEALS);
        let free = memory(&fd, &options()).as_ptr().addr().get();
        // Three segments that follow each other in memory and in the file: the kernel keeps them as one mapping.
        let [_first, middle, _last] = [0, 1, 2].map(|page| {
            let (offset_bytes, address) = ((page * PAGE_BYTES) as u64, Some(free + page * PAGE_BYTES));
            memory(&fd, &SegmentOptions { offset_bytes, address, bytes: Some(PAGE_BYTES), ..options() })
        });
        assert_eq!(process_maps::inside(free, 3 * PAGE_BYTES).unwrap().len(), 1);
        let full = Full::but_for(0);
        let still = middle.unmap();
        drop(full);
        let still = still.unwrap_err();
        assert_eq!(still.reason, InUse::Refused(Errno::NOMEM));
        assert_eq!(byte(&still.segment, 0), first_of_page(1));
        still.segment.unmap().unwrap();
        assert_eq!(process_maps::inside(free, 3 * PAGE_BYTES).unwrap().len(), 2);
    });
}
