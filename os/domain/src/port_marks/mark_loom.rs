//! A process that gives sockets a port, and one that sends to all of the port, under loom: every interleaving and every allowed reordering of the real code.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p beeline-domain --lib --release loom_models`.

use std::convert::Infallible;
use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use loom::thread;

use super::*;

/// The word of a port, and which of two sockets have it by the kernel's word.
struct Port {
    word: AtomicU64,
    bound: [AtomicBool; 2],
    /// Whether the `bind` of each has returned.
    returned: [AtomicBool; 2],
    drawn: AtomicU64,
    has_barrier: bool,
}

impl MarkWord for Port {
    type Error = Infallible;

    fn read(&self) -> Result<Option<NonZeroU64>, Infallible> {
        Ok(NonZeroU64::new(self.word.load(Ordering::Relaxed)))
    }

    fn write(&self, mark: NonZeroU64) -> Result<(), Infallible> {
        self.word.store(mark.get(), Ordering::Relaxed);
        Ok(())
    }

    fn barrier(&self) {
        if self.has_barrier {
            fence(Ordering::SeqCst);
        }
    }

    fn draw(&self) -> Result<NonZeroU64, Infallible> {
        Ok(NonZeroU64::new(self.drawn.fetch_add(1, Ordering::Relaxed)).unwrap())
    }
}

fn bind(port: &Port, socket: usize) {
    port.bound[socket].store(true, Ordering::Relaxed);
    let Ok(()) = renew(port);
    port.returned[socket].store(true, Ordering::Release);
}

/// A datagram that is sent once the `bind` of a socket has returned goes to it: either the sender has seen it when it looked, or finds another mark.
fn no_socket_is_left_out(has_barrier: bool, binders: usize) {
    loom::model(move || {
        let port = Arc::new(Port {
            word: AtomicU64::new(0),
            bound: [AtomicBool::new(false), AtomicBool::new(false)],
            returned: [AtomicBool::new(false), AtomicBool::new(false)],
            drawn: AtomicU64::new(1),
            has_barrier,
        });
        let threads: Vec<_> = (0..binders)
            .map(|socket| {
                let port = Arc::clone(&port);
                thread::spawn(move || bind(&port, socket))
            })
            .collect();
        let look = || [0, 1].map(|socket| port.bound[socket].load(Ordering::Relaxed));
        let Ok((seen, members)) = watch(&*port, look);
        let returned = [0, 1].map(|socket| port.returned[socket].load(Ordering::Acquire));
        let Ok(mark) = port.read();
        if mark == Some(seen) {
            for socket in 0..2 {
                assert!(members[socket] || !returned[socket], "left out");
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn no_socket_whose_bind_has_returned_is_left_out() {
    no_socket_is_left_out(true, 1);
    no_socket_is_left_out(true, 2);
}

#[test]
#[should_panic(expected = "left out")]
fn without_the_barriers_one_may_be() {
    no_socket_is_left_out(false, 1);
}
