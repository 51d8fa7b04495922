//! Functions that run as they are, once the library has prepared for them.
//!
//! What most of them do with a descriptor goes by no hook: the C library makes its own calls. So the connections that they touch become the kernel's before. The
//! entry of each saves the registers of the arguments, calls what prepares, and jumps to the real function, with the caller's frame and return address. Arguments
//! that are variable, and a function that returns twice, are no concern of the library then.

use core::arch::naked_asm;
use core::ffi::{c_long, c_void};

use crate::find::Real;
use crate::hooks::{numbers, options, programs, restrictions, signals, streams};
use crate::{cancellation, errno, real};

/// Makes of each row, of names and of what prepares, the exported entries.
macro_rules! prepared {
    ($($($name:literal),+ = $prepare:path;)*) => {
        $($(entry!($name, $prepare);)+)*
    };
}

macro_rules! entry {
    ($name:literal, $prepare:path) => {
        const _: () = {
            static REAL: Real = Real::new(real::name(concat!($name, "\0")));

            // "C": a panic ends the process here, where nothing of C could catch it.
            extern "C" fn prepare(first: c_long, second: c_long, third: c_long) -> *mut c_void {
                errno::preserved(|| $prepare([first, second, third]));
                behind(&REAL)
            }

            #[cfg_attr(not(test), unsafe(export_name = $name))]
            #[unsafe(naked)]
            extern "C" fn entry() {
                enter!(prepare)
            }
        };
    };
}

/// Registers of arguments are those of the calling convention; `rax` counts vector registers of a call with variable arguments.
#[cfg(target_arch = "x86_64")]
macro_rules! enter {
    ($prepare:ident) => {
        naked_asm!(
            "endbr64",
            "push rbp",
            "mov rbp, rsp",
            "sub rsp, 192",
            "mov [rsp], rdi",
            "mov [rsp + 8], rsi",
            "mov [rsp + 16], rdx",
            "mov [rsp + 24], rcx",
            "mov [rsp + 32], r8",
            "mov [rsp + 40], r9",
            "mov [rsp + 48], rax",
            "movups [rsp + 64], xmm0",
            "movups [rsp + 80], xmm1",
            "movups [rsp + 96], xmm2",
            "movups [rsp + 112], xmm3",
            "movups [rsp + 128], xmm4",
            "movups [rsp + 144], xmm5",
            "movups [rsp + 160], xmm6",
            "movups [rsp + 176], xmm7",
            "call {prepare}",
            "mov r11, rax",
            "mov rdi, [rsp]",
            "mov rsi, [rsp + 8]",
            "mov rdx, [rsp + 16]",
            "mov rcx, [rsp + 24]",
            "mov r8, [rsp + 32]",
            "mov r9, [rsp + 40]",
            "mov rax, [rsp + 48]",
            "movups xmm0, [rsp + 64]",
            "movups xmm1, [rsp + 80]",
            "movups xmm2, [rsp + 96]",
            "movups xmm3, [rsp + 112]",
            "movups xmm4, [rsp + 128]",
            "movups xmm5, [rsp + 144]",
            "movups xmm6, [rsp + 160]",
            "movups xmm7, [rsp + 176]",
            "leave",
            "jmp r11",
            prepare = sym $prepare,
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! enter {
    ($prepare:ident) => {
        naked_asm!(
            "stp x29, x30, [sp, #-224]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "str x8, [sp, #80]",
            "stp q0, q1, [sp, #96]",
            "stp q2, q3, [sp, #128]",
            "stp q4, q5, [sp, #160]",
            "stp q6, q7, [sp, #192]",
            "bl {prepare}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x4, x5, [sp, #48]",
            "ldp x6, x7, [sp, #64]",
            "ldr x8, [sp, #80]",
            "ldp q0, q1, [sp, #96]",
            "ldp q2, q3, [sp, #128]",
            "ldp q4, q5, [sp, #160]",
            "ldp q6, q7, [sp, #192]",
            "ldp x29, x30, [sp], #224",
            "br x16",
            prepare = sym $prepare,
        )
    };
}

prepared! {
    "fdopen", "_IO_fdopen", "dprintf", "vdprintf", "__dprintf_chk", "__vdprintf_chk" = streams::before_use_of_number;
    "fclose", "_IO_fclose" = streams::before_close;
    "freopen", "freopen64" = streams::before_reopen;
    "preadv2", "preadv64v2", "pwritev2", "pwritev64v2" = options::before_call_with_offset;
    "closefrom" = numbers::before_closefrom;
    "execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "fexecve", "execveat" = programs::before_exec;
    "posix_spawn", "posix_spawnp", "system", "__libc_system", "popen", "_IO_popen", "wordexp" = programs::before_program;
    "posix_spawn_file_actions_adddup2" = programs::before_copy_for_program;
    "_exit", "_Exit" = programs::before_exit;
    "daemon" = programs::before_daemon;
    "login_tty" = programs::before_login;
    "sigaction", "__sigaction" = signals::before_action;
    "signal", "bsd_signal", "ssignal" = signals::before_handler;
    "siginterrupt" = signals::before_interrupt;
    "sysv_signal", "__sysv_signal" = signals::before_unreliable_handler;
    "pthread_cancel" = cancellation::before_cancel;
    "dlopen" = restrictions::before_open;
    "dlmopen" = restrictions::before_open_in_namespace;
    "setns", "unshare" = restrictions::before_namespace;
    "prctl" = restrictions::before_prctl;
    "syscall" = restrictions::before_system_call;
}

/// Where the entry goes on.
fn behind(real: &Real) -> *mut c_void {
    let known = real.address();
    let address = if known.is_null() { real.find() } else { known };
    if address.is_null() { missing as *mut c_void } else { address }
}

/// In place of a function that no library behind this one has.
extern "C" fn missing() -> c_long {
    errno::fail(rustix::io::Errno::NOSYS) as c_long
}
