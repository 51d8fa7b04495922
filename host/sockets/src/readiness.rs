//! What `epoll_wait`, `poll` and `select` answer when descriptors have bytes in windows, of which the kernel does not know.
//!
//! The program's registrations stay in its epoll as it made them. A [`Set`] beside them knows the members that are connections, and looks at their windows
//! before it asks the kernel, and while it spins. Before a thread sleeps it announces that, looks once more, and then sleeps in the
//! kernel's own call; a bell in the same epoll wakes it (record 0074). A poll does the same with the bell of its thread.
//!
//! Reading is answered here, and to a poll that a connection has room which sends by its window; whether others can be written to, and whether one has
//! ended, is the kernel's to say (record 0068). A member whose registration asks for what a window cannot give (one shot, exclusive, two sets) is
//! refused, so that its connection stays with the kernel (record 0075).

mod asleep;
mod budget;
mod call;
mod entry;
mod kernel;
#[cfg(all(test, loom))]
mod loom_asleep;
mod member;
mod members;
mod numbers;
mod poll;
mod select;
mod set;
mod sets;
mod sync;
mod wait;
mod watched;

pub use entry::PollEntry;
pub use kernel::{Clock, EpollKernel, PollKernel, SelectKernel};
pub use poll::poll;
pub use select::{Selection, select};
pub use set::{Begin, Change, Refusal, Set};
pub use sets::Sets;
pub use watched::{Connections, Found, Glance, Sleeper, Watched};
