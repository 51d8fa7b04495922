//! Calls by which another program gets descriptors of this process.

use core::ffi::{c_int, c_long};

use crate::hooks::numbers;
use crate::process::{
    after_fork, before_fork, end_borrowing, hand_over, in_child, leave_for_program, passed_to_programs,
    pay_all,
};
use crate::real;
use beeline_socket_rules::Why;

/// Prepares for another program in the place of this one.
pub fn before_exec(_arguments: [c_long; 3]) {
    end_borrowing();
    passed_to_programs().for_each(|number| hand_over(number, Why::Executed));
    leave_for_program();
}

/// Prepares for another program beside this one: connections that it would have become the kernel's.
pub fn before_program(_arguments: [c_long; 3]) {
    end_borrowing();
    passed_to_programs().for_each(|number| hand_over(number, Why::Executed));
    // What comes back to this process is lost with it.
    pay_all();
}

/// Prepares for a copy of a descriptor that another program gets, whatever its own flags say.
pub fn before_copy_for_program([_actions, number, _]: [c_long; 3]) {
    hand_over(number as c_int, Why::Executed);
}

/// Prepares for the end of a process that runs no handlers for it, as a child of `vfork` ends.
pub fn before_exit(_arguments: [c_long; 3]) {
    end_borrowing();
}

/// # Safety
/// As `_Fork`, which runs no handlers of forks.
#[allow(non_snake_case, reason = "it has the name that C knows it by")]
pub unsafe fn _Fork() -> c_int {
    before_fork();
    // SAFETY: what the program asks for.
    let child = unsafe { real::_Fork() };
    if child == 0 {
        in_child()
    } else {
        after_fork()
    }
    child
}

/// Prepares for `daemon(nochdir, noclose)`, which makes the first three numbers something else.
pub fn before_daemon([_, keeps_numbers, _]: [c_long; 3]) {
    if keeps_numbers as i32 == 0 {
        (0..3).for_each(numbers::before_close);
    }
}

/// Prepares for `login_tty`, which makes the first three numbers a terminal.
pub fn before_login(_arguments: [c_long; 3]) {
    (0..3).for_each(numbers::before_close);
}
