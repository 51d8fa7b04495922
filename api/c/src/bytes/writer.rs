//! Writers: what C calls, each function a gate, a check and a call.

use core::ffi::c_int;
use std::time::Instant;

use beeline::{ByteSender, Flushed, SendError};
use beeline_ffi::{Bytes, Handle, HandleVariable, Kind, Options, Out, Outcome, Owned, Text, edge};

use crate::domain::beeline_rpc_domain;
use crate::window::options::beeline_window_sender_options;
use crate::window::rendezvous;
use crate::window::status::{FULL, OK, duration, of_send, unless_gone};

/// A writer of C.
pub struct beeline_bytes_writer(ByteSender);

impl Kind for beeline_bytes_writer {
    const NAME: &'static str = "writer";
    const TAG: u8 = 0x33;
}

static WRITERS: Owned<beeline_bytes_writer> = Owned::new();

impl beeline_bytes_writer {
    /// Writes as many of `bytes` as `write` does, and counts in `done` what was written.
    #[inline(always)]
    fn write_some(
        &mut self,
        bytes: &[u8],
        done: &mut usize,
        write: impl FnOnce(&mut ByteSender, &[u8]) -> Result<usize, SendError>,
    ) -> Outcome<c_int> {
        *done = write(&mut self.0, bytes).map_err(|error| of_send(&error))?;
        if *done > 0 || bytes.is_empty() { Ok(OK) } else { self.full() }
    }

    #[cold]
    fn full(&self) -> Outcome<c_int> {
        unless_gone(self.0.is_receiver_gone(), FULL)
    }

    /// Writes all of `bytes`, and counts in `done` what was written.
    fn write(&mut self, bytes: &[u8], timeout_ns: u64, done: &mut usize) -> Outcome<c_int> {
        let timeout = duration(timeout_ns);
        let deadline = Instant::now().checked_add(timeout);
        while *done < bytes.len() {
            let left = deadline.map_or(timeout, |at| at.saturating_duration_since(Instant::now()));
            match self.0.write_timeout(&bytes[*done..], left).map_err(|error| of_send(&error))? {
                0 => return self.full(),
                taken => *done += taken,
            }
        }
        Ok(OK)
    }
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_writer_connect(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_window_sender_options<'_>>,
    writer: Out<'_, Handle<beeline_bytes_writer>>,
) -> c_int {
    edge("beeline_bytes_writer_connect", || {
        writer.put(Handle::NULL, "writer")?;
        let connected = rendezvous::connect(domain, name, &options)?;
        writer.put(WRITERS.insert(beeline_bytes_writer(connected.into_bytes()))?, "writer")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_writer_close(writer: HandleVariable<'_, beeline_bytes_writer>) -> c_int {
    edge("beeline_bytes_writer_close", || WRITERS.close(&writer).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_writer_release(writer: Handle<beeline_bytes_writer>) -> c_int {
    edge("beeline_bytes_writer_release", || WRITERS.release(writer).map(|()| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_writer_reader(writer: Handle<beeline_bytes_writer>) -> c_int {
    edge("beeline_bytes_writer_reader", || unless_gone(WRITERS.enter(writer)?.0.is_receiver_gone(), OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_try_write(
    writer: Handle<beeline_bytes_writer>,
    bytes: Bytes<'_>,
    length: usize,
    count: Out<'_, usize>,
) -> c_int {
    edge("beeline_bytes_try_write", || {
        count.check("count")?;
        count.counted(|done| {
            let mut writer = WRITERS.enter(writer)?;
            writer.write_some(bytes.read(length, "bytes")?, done, ByteSender::try_write)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_write(
    writer: Handle<beeline_bytes_writer>,
    bytes: Bytes<'_>,
    length: usize,
    timeout_ns: u64,
    count: Out<'_, usize>,
) -> c_int {
    edge("beeline_bytes_write", || {
        count.counted(|done| {
            let mut writer = WRITERS.enter(writer)?;
            writer.write(bytes.read(length, "bytes")?, timeout_ns, done)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_write_more(
    writer: Handle<beeline_bytes_writer>,
    bytes: Bytes<'_>,
    length: usize,
    count: Out<'_, usize>,
) -> c_int {
    edge("beeline_bytes_write_more", || {
        count.check("count")?;
        count.counted(|done| {
            let mut writer = WRITERS.enter(writer)?;
            writer.write_some(bytes.read(length, "bytes")?, done, ByteSender::write_more)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_send_kept(writer: Handle<beeline_bytes_writer>) -> c_int {
    edge("beeline_bytes_send_kept", || {
        WRITERS.enter(writer)?.0.send_kept();
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_room(writer: Handle<beeline_bytes_writer>, bytes: Out<'_, u64>) -> c_int {
    edge("beeline_bytes_room", || {
        bytes.put(0, "bytes")?;
        let room_bytes = WRITERS.enter(writer)?.0.room_bytes().map_err(|error| of_send(&error))?;
        bytes.put_if_wanted(room_bytes as u64);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_unacknowledged(
    writer: Handle<beeline_bytes_writer>,
    bytes: Out<'_, u64>,
) -> c_int {
    edge("beeline_bytes_unacknowledged", || {
        bytes.put(0, "bytes")?;
        let found = WRITERS.enter(writer)?.0.unacknowledged_bytes().map_err(|error| of_send(&error))?;
        bytes.put_if_wanted(found);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_wait_acknowledged(
    writer: Handle<beeline_bytes_writer>,
    timeout_ns: u64,
) -> c_int {
    edge("beeline_bytes_wait_acknowledged", || {
        let mut writer = WRITERS.enter(writer)?;
        match writer.0.wait_acknowledged(duration(timeout_ns)).map_err(|error| of_send(&error))? {
            Flushed::All => Ok(OK),
            Flushed::TimedOut => writer.full(),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_shut_down(writer: Handle<beeline_bytes_writer>) -> c_int {
    edge("beeline_bytes_shut_down", || {
        WRITERS.enter(writer)?.0.shut_down().map_err(|error| of_send(&error))?;
        Ok(OK)
    })
}
