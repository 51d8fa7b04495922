//! The board: what a process tells of its connections, in a file that it has mapped.
//!
//! Counting is a plain store. The file lies in the domain's folder, `sockets/<pid>-<random number>`, and its process removes it when it ends; what a killed
//! process left is removed by the next that makes or reads one. A reader never maps it, and believes nothing that it says.

mod carrier;
mod layout;
mod look;
mod name;
mod order;
mod own;
mod parts;
mod process;
mod rows;
mod run;
mod view;

pub use self::carrier::Carrier;
pub use self::layout::Odd;
#[cfg(fuzzing)]
pub(crate) use self::layout::board_of as board_of_bytes;
pub use self::look::{LookError, boards, boards_of_run};
pub use self::order::{Order, OrderError, Ordered, Windows, order, windows_of};
pub use self::own::{Board, BoardError};
pub use self::process::Life;
pub use self::rows::Row;
pub use self::run::{NoRun, Run};
pub use self::view::{BoardView, Counters, Direction, RowView};
