//! Tests that end their process, or change what is one for the process: this program again, with one test of it.
#![cfg(not(miri))]

use std::process::{Command, ExitStatus};

/// Names the test of a child.
const CHILD: &str = "BEELINE_TEST_CHILD";

/// What no child takes on the busiest machine.
const WATCHDOG_SECONDS: u32 = 300;

/// Runs `body` in a process of its own, with nothing but the calling test, and says how the process ended. `test` is the whole
/// name of the calling test. In an emulator of one process, which cannot start this program again, nothing is run.
pub(crate) fn run(test: &str, body: impl FnOnce()) -> Option<ExitStatus> {
    if std::env::var_os(CHILD).is_some_and(|child| child == *test) {
        // A fault that is met again and again ends by this signal and is no test that hangs.
        // SAFETY: changes nothing but when the signal comes.
        unsafe { libc::alarm(WATCHDOG_SECONDS) };
        body();
        std::process::exit(0);
    }
    if cfg!(target_arch = "aarch64") {
        return None;
    }
    let mut child = Command::new(std::env::current_exe().expect("the path of this program"));
    let output = child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, test).output();
    let output = output.expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("running 1 test"), "no test is called {test}: {text}");
    if !output.status.success() {
        // Shown when the calling test fails.
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Some(output.status)
}

/// As [`run`], of a body that must come to its end.
pub(crate) fn succeeds(test: &str, body: impl FnOnce()) {
    let status = run(test, body);
    assert!(status.is_none_or(|status| status.success()), "{status:?}");
}

/// Makes mappings until the process may have no more; gives them back when dropped.
pub(crate) struct Full {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Full {
    /// As many mappings as there can be but for `spare`.
    pub(crate) fn but_for(spare: usize) -> Self {
        const PAGE_BYTES: usize = 4096;
        let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("the limit of mappings");
        let limit: usize = limit.trim().parse().expect("a number");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings").lines().count();
        let bytes = (limit + 16) * PAGE_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh range chosen by the kernel.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        assert!(start != libc::MAP_FAILED);
        let change = |page: usize| {
            let page = start.wrapping_byte_add(page * PAGE_BYTES);
            // SAFETY: a page of our own range, which nobody accesses.
            unsafe { libc::mprotect(page, PAGE_BYTES, libc::PROT_READ) == 0 }
        };
        // Every other page gets another protection, which divides the mapping by two more each time.
        let pages = if spare == 0 { usize::MAX } else { (limit - maps - spare) / 2 };
        for number in 0..pages {
            if !change(2 * number + 1) {
                // By one more: at the end of it.
                change(bytes / PAGE_BYTES - 1);
                break;
            }
        }
        Full { start, bytes }
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        // SAFETY: our own range, which nobody accesses.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
