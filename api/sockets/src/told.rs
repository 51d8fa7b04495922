//! What the engine says of itself on standard error: events of the level that the rules name, a line each.
//!
//! Standard error is the program's: it may have closed the number, or have a connection there. So a line is written only while the number is the file that it was when
//! the program began, and no connection over a network (which a program of inetd has there), and only where it is taken at once: nothing waits for whoever reads it, and a pipe that
//! nobody reads any more ends no program by a signal. An event may come out of a handler of a signal that has interrupted the allocator: a line is put together in place. (Words
//! for a number of the kernel's are not; they are told at `debug`.)

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use beeline_socket_rules::Level;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::{Errno, write};
use rustix::net::{AddressFamily, SendFlags, send, sockopt};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Metadata};

use crate::hooks::held::{bit, change_mask, pending, take};

/// Bytes of a line; what is longer is cut. A pipe takes so many at once or none.
const LINE_BYTES: usize = 512;

/// Device and number of the file that standard error was.
static FILE: OnceLock<(u64, u64)> = OnceLock::new();

/// Whether nothing is told in this process any more.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Tells nothing from now on: the library makes no system call in this process any more.
pub fn end() {
    IS_OVER.store(true, Ordering::Release);
}

/// Notes what standard error is, before the program can make something else of the number.
pub fn keep_standard_error() {
    if let Some(file) = file()
        && !is_over_a_network(standard_error())
    {
        let _ = FILE.set(file);
    }
}

/// The number, whatever it is now.
fn standard_error() -> BorrowedFd<'static> {
    // SAFETY: of a number that is no descriptor the kernel says so, to each of the calls that are made with it here, and nothing is done.
    unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) }
}

fn file() -> Option<(u64, u64)> {
    let status = fstat(standard_error()).ok()?;
    Some((status.st_dev, status.st_ino))
}

/// Whether whoever is at the other end speaks a protocol with the program.
fn is_over_a_network(file: BorrowedFd<'_>) -> bool {
    sockopt::socket_domain(file).is_ok_and(|family| family != AddressFamily::UNIX)
}

/// Has events of this level and worse told from now on, in this process and its children of fork.
pub fn begin(level: Level) {
    let most = match level {
        Level::Off => return,
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    };
    // Another thread may have been first, with the same level.
    let _ = tracing::subscriber::set_global_default(Told { most });
}

/// Writes a line of these words, if standard error takes it.
pub fn tell(words: fmt::Arguments<'_>) {
    let mut line = Line::new();
    let _ = line.write_fmt(words);
    line.write();
}

struct Told {
    most: LevelFilter,
}

/// A line that is put together.
struct Line {
    bytes: [u8; LINE_BYTES],
    used: usize,
}

impl Line {
    fn new() -> Self {
        let mut line = Line { bytes: [0; LINE_BYTES], used: 0 };
        let _ = line.write_str("beeline: ");
        line
    }

    fn write(mut self) {
        self.bytes[self.used] = b'\n';
        if IS_OVER.load(Ordering::Acquire) || file().as_ref() != FILE.get() {
            return;
        }
        let stderr = standard_error();
        let mut writable = [PollFd::new(&stderr, PollFlags::OUT)];
        // A pipe without a reader is in error, and would send a signal.
        let is_taken = poll(&mut writable, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
            && writable[0].revents() == PollFlags::OUT;
        if is_taken {
            let line = &self.bytes[..=self.used];
            without_signals(|| {
                // A socket takes it at once or not. A pipe that another writer has filled since it was looked at holds this call up.
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                if send(stderr, line, flags) == Err(Errno::NOTSOCK) {
                    let _ = write(stderr, line);
                }
            });
        }
    }
}

/// Has the thread get no signal of what `write` does: none that a reader has gone, and none that a terminal is another process's at the moment.
fn without_signals(write: impl FnOnce()) {
    let broken_pipe = bit(libc::SIGPIPE);
    let before = change_mask(libc::SIG_BLOCK, broken_pipe | bit(libc::SIGTTOU));
    // One that waited before stays.
    let is_ours = pending() & broken_pipe == 0;
    write();
    if is_ours {
        take(broken_pipe);
    }
    change_mask(libc::SIG_SETMASK, before);
}

impl Write for Line {
    /// A line stays one: what would end it is a space.
    fn write_str(&mut self, words: &str) -> fmt::Result {
        // The last byte is the line's end.
        let room = LINE_BYTES - 1 - self.used;
        let fits = words.floor_char_boundary(room);
        let bytes = words.as_bytes()[..fits].iter();
        let whole = bytes.map(|byte| if byte.is_ascii_control() { b' ' } else { *byte });
        self.bytes[self.used..self.used + fits].iter_mut().zip(whole).for_each(|(at, byte)| *at = byte);
        self.used += fits;
        Ok(())
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self, "{value:?}"),
            name => write!(self, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Told {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.most
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::new();
        event.record(&mut line);
        line.write();
    }

    // No span is enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_to_a_pipe_without_a_reader_sends_no_signal_then_nor_later() {
        // The standard library of Rust ignores the signal, and programs of C do not.
        // SAFETY: the default is a handler, too; what was there before comes back.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (reads, writes) = std::io::pipe().unwrap();
        drop(reads);
        let mut written = Ok(0);
        without_signals(|| written = write(&writes, b"line"));
        assert_eq!((written, pending()), (Err(Errno::PIPE), 0));
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGPIPE, before) };
    }

    #[test]
    fn line_is_one_whatever_it_is_made_of() {
        let mut line = Line::new();
        let _ = write!(line, "two\nlines\x1b[31m");
        assert_eq!(&line.bytes[..line.used], b"beeline: two lines [31m");
        for _ in 0..LINE_BYTES {
            let _ = write!(line, "ä");
        }
        assert!(line.used == LINE_BYTES - 1 || line.used == LINE_BYTES - 2, "{}", line.used);
        assert!(std::str::from_utf8(&line.bytes[..line.used]).is_ok());
    }
}
