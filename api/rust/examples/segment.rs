//! Memory that two programs have mapped: `cargo run -p beeline-ipc --example segment`.
//!
//! The owner hands the descriptor of its memory to whoever subscribes and tells of every change by a notification; the other
//! program maps a part of it, for reading only. Without an argument this is the owner, which starts itself again as the other.

use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use beeline::segment::{self, Access, CopyError, MappedSegment, SegmentOptions};
use beeline::{Answer, Domain, NotifierOptions, SubscriptionEnded};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Many of them, of which few are touched: pages come at their first access.
const BYTES: usize = 4 << 30;
const PART_AT: usize = 3 << 30;
const PART_BYTES: usize = 1 << 20;
const TIME: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let domain = Domain::open("example-segment")?;
    if std::env::args().nth(1).as_deref() == Some("read") {
        return read(&domain);
    }
    let memory = segment::create("example-table", BYTES)?;
    let whole = MappedSegment::memory(memory.as_fd(), &SegmentOptions::default())?;
    let notifier = domain.notifier_with("table", NotifierOptions::new(), move |_, _, _| {
        let fd: OwnedFd = memory.try_clone().map_err(|error| error.to_string())?;
        Ok(Answer { payload: BYTES.to_le_bytes().to_vec(), fds: vec![fd] })
    })?;
    let program = std::env::current_exe()?;
    let mut reader = Command::new(program).arg("read").spawn()?;
    let event = notifier.event_timeout(TIME).ok_or("nobody comes")?;
    // Copies of every size, small and large, each told of when it is done.
    for (number, bytes) in (1u8..).zip([4, 64, 1000, 65_536, PART_BYTES]) {
        whole.copy_in(PART_AT, &vec![number; bytes])?;
        let _ = event.subscriber().notify(&(bytes as u64).to_le_bytes(), &[])?;
    }
    // Its end is told by an event as well.
    let left = notifier.event_timeout(TIME).ok_or("it reads for ever")?;
    assert_eq!(left.subscriber().id(), event.subscriber().id());
    assert!(reader.wait()?.success());
    // Nothing is lost that cannot be lost, and nobody uses a pointer into it.
    assert!(whole.is_intact());
    whole.unmap()?;
    println!("5 changes of a table of 4 GiB read by another program");
    Ok(())
}

fn read(domain: &Domain) -> Result<()> {
    let mut table = domain.subscribe_timeout("table", TIME)?;
    let memory = table.take_fds().pop().ok_or("no memory came")?;
    let options = SegmentOptions {
        offset_bytes: PART_AT as u64,
        bytes: Some(PART_BYTES),
        access: Access::ReadOnly,
        ..SegmentOptions::default()
    };
    let part = MappedSegment::memory(memory.as_fd(), &options)?;
    assert_eq!(part.copy_in(0, b"x"), Err(CopyError::ReadOnly));
    let mut bytes = vec![0; PART_BYTES];
    for number in 1..=5u8 {
        let told = table.next_timeout(TIME)?.ok_or("no change is told")?;
        let count = u64::from_le_bytes(told.payload.as_slice().try_into()?) as usize;
        part.copy_out(0, &mut bytes[..count])?;
        // The owner may be at a later change already.
        assert!(bytes[..4].iter().all(|byte| *byte >= number), "{number}: {:?}", &bytes[..4]);
    }
    assert!(bytes.iter().all(|byte| *byte == 5));
    // A pointer that is counted keeps the memory mapped.
    let pointer = part.pointer(8, 8).ok_or("8 bytes are inside")?;
    let still_mapped = part.unmap().expect_err("a pointer is in use");
    drop(pointer);
    still_mapped.segment.unmap()?;
    assert!(matches!(table.try_next(), Ok(None) | Err(SubscriptionEnded::Closed)));
    Ok(())
}
