//! What a signal handler asks for that has interrupted its own thread inside the engine.
//!
//! The call that it interrupted has begun what can neither be carried on nor waited for, as long as the handler runs. Bytes that the handler sends over
//! the same connection are put off: they stay in memory of the thread until that call has let go, and whoever called the engine sends them before the
//! program goes on ([`take_put_off`]). That is as if the signal had come a moment later. A number that the handler closes is its own call's end then, too.
//!
//! Memory of the thread, because a handler may not take any; and all of it of one thread, so that nothing is shared.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::sync::atomic::{Ordering, compiler_fence};

use smallvec::SmallVec;

use crate::lock::is_any_held_here;

/// As many bytes as handlers may have sent by the time that the call is left; there is such memory in every thread.
const MOST_BYTES: usize = 512;

struct PutOff {
    number: Cell<RawFd>,
    count: Cell<usize>,
    bytes: [Cell<u8>; MOST_BYTES],
    /// One more than the index of an endpoint whose number a handler has closed.
    closed: Cell<u32>,
    /// A handler that comes while this is changed is refused.
    is_changing: Cell<bool>,
}

thread_local! {
    static PUT_OFF: PutOff = const {
        PutOff {
            number: Cell::new(-1),
            count: Cell::new(0),
            bytes: [const { Cell::new(0) }; MOST_BYTES],
            closed: Cell::new(0),
            is_changing: Cell::new(false),
        }
    };
}

/// Runs `change` on what only this thread and its handlers have.
fn change<T>(change: impl FnOnce(&PutOff) -> Option<T>) -> Option<T> {
    PUT_OFF.with(|put_off| {
        if put_off.is_changing.replace(true) {
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        let changed = change(put_off);
        compiler_fence(Ordering::SeqCst);
        put_off.is_changing.set(false);
        changed
    })
}

/// Puts bytes off for `number`. As many as there is room for; none where bytes of another connection are put off.
pub(crate) fn put_off(number: RawFd, slices: &[&[u8]]) -> usize {
    let all = slices.iter().copied().flatten();
    change(|put_off| {
        let before = put_off.count.get();
        if before > 0 && put_off.number.get() != number {
            return None;
        }
        put_off.number.set(number);
        let places = put_off.bytes[before..].iter();
        let count = places.zip(all).map(|(place, byte)| place.set(*byte)).count();
        put_off.count.set(before + count);
        Some(count)
    })
    .unwrap_or(0)
}

/// The number of an endpoint was closed; false where another one is remembered already.
pub(crate) fn put_off_end(endpoint: u32) -> bool {
    let is_free = |put_off: &PutOff| put_off.closed.get() == 0;
    change(|put_off| is_free(put_off).then(|| put_off.closed.set(endpoint + 1))).is_some()
}

/// Whether something was put off that can be done now.
#[inline]
pub fn has_put_off() -> bool {
    let is_any = PUT_OFF.with(|put_off| put_off.count.get() > 0 || put_off.closed.get() > 0);
    is_any && !is_any_held_here()
}

/// The bytes that handlers have sent over a connection, and its number.
pub fn take_put_off() -> Option<(RawFd, SmallVec<[u8; MOST_BYTES]>)> {
    change(|put_off| {
        let count = put_off.count.replace(0);
        let bytes = put_off.bytes[..count].iter().map(Cell::get).collect();
        (count > 0).then(|| (put_off.number.get(), bytes))
    })
}

/// The endpoint whose number a handler has closed.
pub(crate) fn take_put_off_end() -> Option<u32> {
    change(|put_off| put_off.closed.replace(0).checked_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_put_off_in_order_for_one_number_until_they_are_taken() {
        assert_eq!(take_put_off(), None);
        assert_eq!(put_off(5, &[b"ab", b"c"]), 3);
        assert_eq!(put_off(6, &[b"x"]), 0, "of another connection");
        assert_eq!(put_off(5, &[b"d"]), 1);
        assert!(has_put_off());
        let (number, bytes) = take_put_off().unwrap();
        assert_eq!((number, &bytes[..]), (5, &b"abcd"[..]));
        assert!(!has_put_off());
        let long = [7; MOST_BYTES];
        assert_eq!((put_off(6, &[&long[1..]]), put_off(6, &[b"yz"])), (MOST_BYTES - 1, 1), "no more room");
        assert_eq!(take_put_off().unwrap().1.len(), MOST_BYTES);
    }

    #[test]
    fn handler_is_refused_while_bytes_are_put_off_or_taken() {
        let refused = change(|_| Some((put_off(5, &[b"a"]), take_put_off())));
        assert_eq!(refused, Some((0, None)));
        assert_eq!(put_off(5, &[b"a"]), 1);
        take_put_off().unwrap();
    }

    #[test]
    fn nothing_can_be_done_while_the_thread_has_a_lock() {
        let mutex = std::sync::Mutex::new(());
        let held = crate::lock::locked(&mutex);
        assert_eq!(put_off(5, &[b"a"]), 1);
        assert!(put_off_end(3) && !put_off_end(4));
        assert!(!has_put_off());
        drop(held);
        assert!(has_put_off());
        take_put_off().unwrap();
        assert!(has_put_off());
        assert_eq!((take_put_off_end(), take_put_off_end()), (Some(3), None));
        assert!(!has_put_off());
    }
}
