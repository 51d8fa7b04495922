//! Writers: what C calls, each function a gate, a check and a call.

use core::ffi::c_int;
use std::time::Instant;

use beeline::{ByteSender, Flushed, SendError};
use beeline_ffi::{Bytes, Handle, HandleVariable, Kind, Options, Out, Outcome, Owned, Text, edge};

use crate::domain::{DOMAINS, beeline_rpc_domain};
use crate::window::options::{self, beeline_window_sender_options};
use crate::window::status::{FULL, OK, duration, of_connect, of_send};

/// A writer of C.
pub struct beeline_bytes_writer(ByteSender);

impl Kind for beeline_bytes_writer {
    const NAME: &'static str = "writer";
    const TAG: u8 = 0x33;
}

static WRITERS: Owned<beeline_bytes_writer> = Owned::new();

impl beeline_bytes_writer {
    /// The code of a write that took so many of `length` bytes.
    fn told(&self, taken: Result<usize, SendError>, length: usize, count: Out<'_, usize>) -> Outcome<c_int> {
        let taken = taken.map_err(|error| of_send(&error))?;
        count.put_if_wanted(taken);
        if taken > 0 || length == 0 {
            return Ok(OK);
        }
        self.full()
    }

    /// There is no room now; there never will be if the reader has ended.
    #[cold]
    fn full(&self) -> Outcome<c_int> {
        if self.0.is_receiver_gone() { Err(of_send(&SendError::ReceiverGone)) } else { Ok(FULL) }
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
        let domain = DOMAINS.get(domain)?;
        let (name, (options, timeout)) = (name.read("name")?, options::sender(&options)?);
        let started = Instant::now();
        let domain = beeline::Domain::from(domain.opened_within(timeout)?.clone());
        let options = options.timeout(timeout.saturating_sub(started.elapsed()));
        let connected = domain.sender_with(name, options).map_err(|error| of_connect(&error))?;
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
    edge("beeline_bytes_writer_reader", || match WRITERS.enter(writer)?.0.is_receiver_gone() {
        true => Err(of_send(&SendError::ReceiverGone)),
        false => Ok(OK),
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_bytes_try_write(
    writer: Handle<beeline_bytes_writer>,
    bytes: Bytes<'_>,
    length: usize,
    count: Out<'_, usize>,
) -> c_int {
    edge("beeline_bytes_try_write", || {
        count.put(0, "count")?;
        let mut writer = WRITERS.enter(writer)?;
        let taken = writer.0.try_write(bytes.read(length, "bytes")?);
        writer.told(taken, length, count)
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
        count.put_if_wanted(0);
        let mut writer = WRITERS.enter(writer)?;
        let mut done = 0;
        let status = writer.write(bytes.read(length, "bytes")?, timeout_ns, &mut done);
        count.put_if_wanted(done);
        status
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
        count.put(0, "count")?;
        let mut writer = WRITERS.enter(writer)?;
        let taken = writer.0.write_more(bytes.read(length, "bytes")?);
        writer.told(taken, length, count)
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
