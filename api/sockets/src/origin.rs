//! Where the number of a descriptor comes from, as far as it says which connections may leave the kernel.
//!
//! A connection may if this process made the socket itself, nobody else can have it, and only neutral options were set on it; or if it was accepted from a
//! listener with only such options, since a connection has those of its listener. The table says it of sockets before they are connections; what a
//! number is afterwards is the engine's affair.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// Numbers above are the kernel's. As many words as pages of a process that never has so many descriptors cost nothing.
const MOST: usize = 1 << 16;

/// A socket of TCP.
const TCP: u16 = 1;
/// It is something else.
const OTHER: u16 = 2;
/// An option was set on it that is not neutral.
const ODD: u16 = 4;
/// This process made it, at the fork whose count is in the bits above.
const OWN: u16 = 8;
const FORK_SHIFT: u32 = 4;
const FORKS: usize = 1 << (u16::BITS - FORK_SHIFT);

static TABLE: [AtomicU16; MOST] = [const { AtomicU16::new(0) }; MOST];
/// One above the highest number that was ever noted.
static END: AtomicUsize = AtomicUsize::new(0);
/// How often this process and its parents have forked.
static FORK: AtomicUsize = AtomicUsize::new(0);

/// What is known of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Not asked yet.
    Unknown,
    /// Its connections may leave the kernel.
    Plain,
    Refused,
}

fn word(number: c_int) -> Option<&'static AtomicU16> {
    TABLE.get(usize::try_from(number).ok()?)
}

fn own() -> u16 {
    let fork = FORK.load(Ordering::Relaxed) % FORKS;
    OWN | (fork as u16) << FORK_SHIFT
}

fn store(number: c_int, what: u16) {
    if let Some(word) = word(number) {
        // Relaxed: a program that uses a number in two threads at once orders that itself.
        word.store(what, Ordering::Relaxed);
        note(number);
    }
}

/// Raises [`end`] above the number.
pub fn note(number: c_int) {
    let end = number.cast_unsigned() as usize + 1;
    if number >= 0 && END.load(Ordering::Relaxed) < end {
        END.fetch_max(end, Ordering::Relaxed);
    }
}

/// One above the highest number that may be a connection or a socket of this process.
pub fn end() -> c_int {
    END.load(Ordering::Relaxed) as c_int
}

/// This process has made a socket.
pub fn made(number: c_int, is_tcp: bool) {
    store(number, if is_tcp { TCP | own() } else { OTHER });
}

/// A listener was asked that this process did not make.
pub fn asked(number: c_int, is_plain: bool) {
    store(number, if is_plain { TCP } else { OTHER });
}

/// Whether something is known of the number.
pub fn is_noted(number: c_int) -> bool {
    word(number).is_some_and(|word| word.load(Ordering::Relaxed) != 0)
}

/// The number is closed, or was given to something else.
pub fn clear(number: c_int) {
    if let Some(word) = word(number)
        && word.load(Ordering::Relaxed) != 0
    {
        word.store(0, Ordering::Relaxed);
    }
}

/// An option was set that is not neutral.
pub fn make_odd(number: c_int) {
    if let Some(word) = word(number) {
        word.fetch_or(ODD, Ordering::Relaxed);
        note(number);
    }
}

/// Others can have the socket from now on. A listener may be shared.
pub fn share(number: c_int) {
    if let Some(word) = word(number) {
        word.fetch_and(!OWN, Ordering::Relaxed);
    }
}

/// The socket has another number, too, with the same options.
pub fn copy(from: c_int, to: c_int) {
    share(from);
    let known = word(from).map_or(0, |word| word.load(Ordering::Relaxed));
    if known == 0 { clear(to) } else { store(to, known) }
}

/// Whether a connection that begins with this socket is this process's alone.
pub fn may_leave_kernel(number: c_int) -> bool {
    let known = word(number).map_or(0, |word| word.load(Ordering::Relaxed));
    known == TCP | own()
}

/// Whether connections of this listener may leave the kernel.
pub fn listener(number: c_int) -> Listener {
    match word(number).map_or(OTHER, |word| word.load(Ordering::Relaxed)) & (TCP | OTHER | ODD) {
        0 => Listener::Unknown,
        TCP => Listener::Plain,
        _ => Listener::Refused,
    }
}

/// The process is about to fork: none of its sockets is its own any more, nor the child's.
pub fn fork() {
    let before = FORK.fetch_add(1, Ordering::Relaxed);
    if (before + 1).is_multiple_of(FORKS) {
        // The count begins again, and sockets of that long ago must not be taken for new ones.
        TABLE.iter().take(end() as usize).for_each(|word| {
            word.fetch_and(!OWN, Ordering::Relaxed);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table is the process's, so each test has numbers of its own.
    #[test]
    fn socket_of_this_process_may_leave_until_an_option_or_a_second_number_is_there() {
        made(1000, true);
        assert!(may_leave_kernel(1000));
        make_odd(1000);
        assert!(!may_leave_kernel(1000));
        assert_eq!(listener(1000), Listener::Refused);
        made(1000, true);
        copy(1000, 1001);
        assert!(!may_leave_kernel(1000) && !may_leave_kernel(1001));
        assert_eq!(listener(1001), Listener::Plain);
        made(1002, false);
        assert!(!may_leave_kernel(1002));
        assert_eq!(listener(1002), Listener::Refused);
        // In this test, since a fork concerns all numbers.
        made(1003, true);
        for _ in 0..=FORKS {
            fork();
            assert!(!may_leave_kernel(1003));
            assert_eq!(listener(1003), Listener::Plain);
        }
        made(1003, true);
        assert!(may_leave_kernel(1003));
    }

    #[test]
    fn number_that_is_closed_is_unknown() {
        made(1010, true);
        assert!(end() > 1010 && is_noted(1010));
        clear(1010);
        assert!(!is_noted(1010) && !may_leave_kernel(1010));
        assert_eq!(listener(1010), Listener::Unknown);
    }

    #[test]
    fn number_outside_the_table_is_the_kernels() {
        for number in [-1, c_int::MIN, MOST as c_int, c_int::MAX] {
            made(number, true);
            assert!(!may_leave_kernel(number));
            assert_eq!(listener(number), Listener::Refused);
        }
    }

    #[test]
    fn listener_of_another_process_is_what_it_was_found_to_be() {
        asked(1020, true);
        assert_eq!(listener(1020), Listener::Plain);
        assert!(!may_leave_kernel(1020));
        asked(1020, false);
        assert_eq!(listener(1020), Listener::Refused);
    }
}
