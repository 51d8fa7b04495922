//! Readers: what C calls, each function a gate, a check and a call.

use core::ffi::c_int;

use beeline::{ByteRead, ByteReceiver, RecvError};
use beeline_ffi::{Handle, HandleVariable, Kind, Memory, Options, Out, Outcome, Owned, Text, edge};

use crate::descriptor::Described;
use crate::domain::beeline_rpc_domain;
use crate::window::options::beeline_window_receiver_options;
use crate::window::rendezvous;
use crate::window::status::{EMPTY, END, OK, duration, of_recv};

/// A reader of C.
pub struct beeline_bytes_reader(Described<ByteReceiver>);

impl Kind for beeline_bytes_reader {
    const NAME: &'static str = "reader";
    const TAG: u8 = 0x31;
}

static READERS: Owned<beeline_bytes_reader> = Owned::new();

/// The code of what a read found, and the number of bytes.
fn told(found: Result<ByteRead, RecvError>, count: Out<'_, usize>) -> Outcome<c_int> {
    match found.map_err(|error| of_recv(&error))? {
        ByteRead::Bytes(bytes) => {
            count.put_if_wanted(bytes);
            Ok(OK)
        }
        ByteRead::Nothing => Ok(EMPTY),
        ByteRead::End => Ok(END),
    }
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_reader_offer(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_window_receiver_options<'_>>,
    reader: Out<'_, Handle<beeline_bytes_reader>>,
) -> c_int {
    edge("beeline_bytes_reader_offer", || {
        reader.put(Handle::NULL, "reader")?;
        let offered = Described::new(rendezvous::offer(domain, name, &options)?.into_bytes());
        reader.put(READERS.insert(beeline_bytes_reader(offered))?, "reader")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_reader_close(reader: HandleVariable<'_, beeline_bytes_reader>) -> c_int {
    edge("beeline_bytes_reader_close", || READERS.close(&reader).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_reader_release(reader: Handle<beeline_bytes_reader>) -> c_int {
    edge("beeline_bytes_reader_release", || READERS.release(reader).map(|()| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_try_read(
    reader: Handle<beeline_bytes_reader>,
    memory: Memory<'_>,
    capacity: usize,
    count: Out<'_, usize>,
) -> c_int {
    edge("beeline_bytes_try_read", || {
        count.put(0, "count")?;
        let mut reader = READERS.enter(reader)?;
        told(reader.0.try_read(memory.fill(capacity, "memory")?), count)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_read(
    reader: Handle<beeline_bytes_reader>,
    memory: Memory<'_>,
    capacity: usize,
    timeout_ns: u64,
    count: Out<'_, usize>,
) -> c_int {
    edge("beeline_bytes_read", || {
        count.put(0, "count")?;
        let mut reader = READERS.enter(reader)?;
        let memory = memory.fill(capacity, "memory")?;
        if memory.is_empty() {
            // For no bytes nobody waits.
            return Ok(OK);
        }
        told(reader.0.read_timeout(memory, duration(timeout_ns)), count)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_peek(
    reader: Handle<beeline_bytes_reader>,
    offset: u64,
    memory: Memory<'_>,
    capacity: usize,
    count: Out<'_, usize>,
) -> c_int {
    edge("beeline_bytes_peek", || {
        count.put(0, "count")?;
        let mut reader = READERS.enter(reader)?;
        told(reader.0.peek(offset, memory.fill(capacity, "memory")?), count)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_queued(reader: Handle<beeline_bytes_reader>, bytes: Out<'_, u64>) -> c_int {
    edge("beeline_bytes_queued", || {
        bytes.put(0, "bytes")?;
        bytes.put_if_wanted(READERS.enter(reader)?.0.queued_bytes());
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_next_stream(reader: Handle<beeline_bytes_reader>) -> c_int {
    edge("beeline_bytes_next_stream", || {
        let mut reader = READERS.enter(reader)?;
        // What was announced was announced to the sender that is let go.
        reader.0.disarm();
        reader.0.next_stream();
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_reader_descriptor(
    reader: Handle<beeline_bytes_reader>,
    descriptor: Out<'_, c_int>,
) -> c_int {
    edge("beeline_bytes_reader_descriptor", || {
        descriptor.put(-1, "descriptor")?;
        READERS.enter(reader)?.0.tell(descriptor)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_reader_arm(
    reader: Handle<beeline_bytes_reader>,
    at_most_ns: Out<'_, u64>,
) -> c_int {
    edge("beeline_bytes_reader_arm", || {
        at_most_ns.put(0, "at_most_ns")?;
        READERS.enter(reader)?.0.arm(at_most_ns)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_reader_disarm(reader: Handle<beeline_bytes_reader>) -> c_int {
    edge("beeline_bytes_reader_disarm", || {
        READERS.enter(reader)?.0.disarm();
        Ok(OK)
    })
}
