//! Code for a CPU that is not here, run under emulation.

use crate::failure::Outcome;
use crate::install;
use crate::run::Program;

/// The emulated target.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The tests of `beeline-mmio`, which hold those of the store kernels, under qemu-user. Emulation shows that a kernel
/// stores the right bytes with the right instructions; it shows nothing about ordering or speed.
///
/// The one lane that may be skipped: without the target's standard library, its linker or qemu there is nothing to
/// run, and the kernels are built and run on real machines of that kind anyway.
pub fn aarch64() -> Outcome {
    if let Err(why) = prepare() {
        println!(
            "  SKIPPED: the aarch64 store kernels were not run here, because a tool is missing:\n  {why}"
        );
        return Ok(());
    }
    Program::cargo()
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
        // A child of fork waits for ever for a lock of the emulator's that another thread has in that moment: so there is one test at a time.
        .env("RUST_TEST_THREADS", "1")
        .args(["test", "--package", "beeline-mmio", "--target", TARGET])
        .on_cores()
        .run()
}

fn prepare() -> Outcome {
    install::target(TARGET, "the store kernels of aarch64 are compiled for it")?;
    let linker = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];
    install::program("aarch64-linux-gnu-gcc", &linker, "it links the tests for aarch64")?;
    install::program("qemu-aarch64", &["qemu-user"], "it runs the tests for aarch64")
}
