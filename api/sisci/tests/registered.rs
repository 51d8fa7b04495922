//! Memory of the program behind segments of a member: when it is replaced, and when it is the program's again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "memory of the program is a promise")]

use std::alloc::{Layout, alloc_zeroed};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, Call, LocalSegment, NodeId, Part, Refusal, SegmentId, Value};
use beeline_fabric_process::{FabricConfig, FabricMember, NotMapped, NotRegistered, Survey};
use beeline_mmio::{RegisterError, RegisterOptions, RegisteredMemory, SharedMemory};

const BYTES: usize = 2 * 4096;
const PATIENCE: Duration = Duration::from_secs(10);

fn domain(root: &Path) -> DomainConfig {
    DomainConfig { root: Some(root.to_owned()), ..DomainConfig::default() }
}

fn member(root: &Path) -> FabricMember {
    let adapters = vec![AdapterNumber::new(0).unwrap()];
    let (node, nodes) = (NodeId(4), vec![NodeId(4)]);
    FabricMember::open(FabricConfig { domain: domain(root), node, adapters, nodes }).unwrap()
}

fn create(member: &FabricMember, id: u32, is_empty: bool) -> LocalSegment {
    let (id, is_auto, bytes) = (SegmentId(id), false, BYTES as u64);
    let call = Call::CreateSegment { id, is_auto, bytes, is_private: false, is_empty, has_callback: false };
    match member.call(call).unwrap() {
        Value::Local(local, _) => local,
        other => panic!("{other:?} is no segment"),
    }
}

/// Memory that begins at a page, and is never freed.
fn pages() -> *mut u8 {
    // SAFETY: some bytes.
    unsafe { alloc_zeroed(Layout::from_size_align(BYTES, 4096).unwrap()) }
}

fn shared(start: *mut u8) -> Result<RegisteredMemory, RegisterError> {
    // SAFETY: memory of `pages`, which the test does not access.
    unsafe { RegisteredMemory::shared(start, BYTES, RegisterOptions::default()) }
}

/// Whether memory is shared, and so not shared once more.
fn is_shared(start: *mut u8) -> bool {
    shared(start).is_err()
}

#[test]
fn memory_is_the_programs_again_when_its_segment_is_removed_or_the_member_leaves() {
    let place = tempfile::tempdir().unwrap();
    let (member, first, second) = (member(place.path()), pages(), pages());
    let segments = [(first, create(&member, 1, true)), (second, create(&member, 2, true))];
    for (start, local) in segments {
        member.register_program(local, BYTES as u64, || shared(start)).unwrap();
        assert!(is_shared(start));
    }
    let map = member.map_local(segments[0].1, Part { offset: 0, bytes: 1 }).unwrap();
    let remove = Call::RemoveSegment { local: segments[0].1, is_forced: true };
    assert_eq!(member.call(remove), Err(Refusal::Busy));
    assert!(is_shared(first));
    drop(map);
    member.call(remove).unwrap();
    assert!(!is_shared(first) && is_shared(second));
    // Also if something of the member is still there.
    let other = create(&member, 3, false);
    let map = member.map_local(other, Part { offset: 0, bytes: 1 }).unwrap();
    drop(member);
    assert!(!is_shared(second));
    drop(map);
}

#[test]
fn memory_of_a_segment_that_somebody_else_removes_stays_shared_until_the_program_removes_it() {
    let place = tempfile::tempdir().unwrap();
    let (member, start) = (member(place.path()), pages());
    let local = create(&member, 1, true);
    member.register_program(local, BYTES as u64, || shared(start)).unwrap();
    let survey = Survey::open(&domain(place.path())).unwrap();
    let number: NonZeroU64 = survey.members(NodeId(4)).unwrap()[0].number;
    survey.remove(NodeId(4), number, (SegmentId(1), true), PATIENCE).unwrap();
    assert!(is_shared(start));
    let removed = member.call(Call::RemoveSegment { local, is_forced: true });
    assert_eq!(removed, Err(Refusal::IllegalParameter));
    assert!(!is_shared(start));
}

#[test]
fn memory_is_not_touched_for_a_segment_that_does_not_take_it() {
    let place = tempfile::tempdir().unwrap();
    let (member, start) = (member(place.path()), pages());
    let (full, empty) = (create(&member, 1, false), create(&member, 2, true));
    let never = || -> Result<RegisteredMemory, RegisterError> { panic!("nothing is to be registered") };
    let refused = |local, bytes| match member.register_program(local, bytes, never) {
        Err(NotRegistered::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(full, BYTES as u64), Refusal::IllegalOperation);
    assert_eq!(refused(empty, 0), Refusal::SizeAlignment);
    member.call(Call::RemoveSegment { local: full, is_forced: true }).unwrap();
    assert_eq!(refused(full, BYTES as u64), Refusal::IllegalParameter);
    // Another thread has given the segment a memory meanwhile.
    let other = || {
        let memory = SharedMemory::create("beeline-test", BYTES, Default::default()).unwrap();
        member.register(empty, memory.into()).unwrap();
        shared(start)
    };
    let late = member.register_program(empty, BYTES as u64, other);
    assert!(matches!(late, Err(NotRegistered::Refused(Refusal::IllegalOperation))), "{late:?}");
    assert!(!is_shared(start));
    // What cannot be registered leaves the segment as it was.
    let third = create(&member, 3, true);
    let failed = member.register_program(third, 8, || shared(start.wrapping_add(1)));
    assert!(matches!(failed, Err(NotRegistered::Memory(RegisterError::Address { .. }))), "{failed:?}");
    let unmapped = member.map_local(third, Part { offset: 0, bytes: 1 });
    assert!(matches!(unmapped, Err(NotMapped::Refused(Refusal::IllegalOperation))));
}
