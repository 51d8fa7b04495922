//! A peer with the other byte order: an emulated s390x joins a fabric of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};
use crate::install;
use crate::run::{Program, root};

const TARGET: &str = "s390x-unknown-linux-gnu";
const EMULATOR: &str = "qemu-s390x -L /usr/s390x-linux-gnu";
/// The lane's own compiler and what it builds. Nothing is installed outside but the emulator and the linker.
const FOLDER: &str = "target/big-endian";
const PACKAGE: [&str; 4] = ["--package", "beeline-fabric-process", "--test", "byte_orders"];

/// Segments, sequences, interrupts and messages between members of which one is big-endian, over the same memory.
///
/// The compiler is Debian's, because it comes with the source of its standard library, from which that of the target is built. Where it
/// or the emulator cannot be had, nothing is run and the lane says so.
pub fn run() -> Outcome {
    let compiler = match prepare() {
        Ok(compiler) => compiler,
        Err(why) => {
            println!(
                "  SKIPPED: no peer with the other byte order was run, because a tool is missing:\n  {why}"
            );
            return Ok(());
        }
    };
    let built = compiler.cargo(["test", "--no-run", "--message-format=json"]).args(PACKAGE).output()?;
    let peer = executable(&built)?;
    Program::cargo()
        .env("BEELINE_TEST_PEER", format!("{EMULATOR} {}", peer.display()))
        .args(["test"])
        .args(PACKAGE)
        .on_cores()
        .run()?;
    // What is computed of words, and not shared; states of models are no words, and many.
    let units = compiler.cargo(["test", "--package", "beeline-fabric", "--lib"]);
    units.args(["--", "--skip", "claims_states"]).on_cores().run()
}

/// The program that a build for the target gave.
fn executable(built: &str) -> Outcome<PathBuf> {
    let messages = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| Some(root().join(message.get("executable")?.as_str()?)));
    programs.next_back().ok_or_else(|| Failure::new("the build for the target gave no program"))
}

/// A compiler with the source of its standard library, unpacked.
struct Compiler(PathBuf);

impl Compiler {
    fn cargo<const N: usize>(&self, args: [&str; N]) -> Program {
        Program::cargo()
            .env("RUSTC", self.0.join("usr/bin/rustc"))
            .env("LD_LIBRARY_PATH", self.0.join("usr/lib/x86_64-linux-gnu"))
            // The standard library is built with what only nightly compilers allow otherwise.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_DIR", FOLDER)
            .env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER", "s390x-linux-gnu-gcc")
            .env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR)
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .args(args)
            .args(["-Zbuild-std", "--target", TARGET])
    }
}

fn prepare() -> Outcome<Compiler> {
    let linker = ["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"];
    install::program("s390x-linux-gnu-gcc", &linker, "it links the peer with the other byte order")?;
    install::program("qemu-s390x", &["qemu-user"], "it runs the peer with the other byte order")?;
    let place = root().join(FOLDER).join("compiler");
    let compiler = Compiler(place.join("root"));
    if !compiler.0.join("usr/lib/rustlib/src/rust/library/Cargo.lock").exists() {
        unpack(&place)?;
    }
    let says = Program::new(compiler.0.join("usr/bin/rustc"))
        .env("LD_LIBRARY_PATH", compiler.0.join("usr/lib/x86_64-linux-gnu"))
        .arg("--version");
    says.run()?;
    Ok(compiler)
}

/// Fetches Debian's packages of the compiler, all of one version, and unpacks them.
fn unpack(place: &Path) -> Outcome {
    fs::create_dir_all(place).while_doing("make a folder for the compiler")?;
    println!("  fetching rustc-web and rust-web-src (apt): they build the peer with the other byte order");
    let version = field("rustc-web", "Version:")?;
    // The packages of its libraries have the version in their names.
    let minor: Vec<&str> = version.split('.').take(2).collect();
    let library = format!("libstd-rust-web-{}", minor.join("."));
    let depends = field(&library, "Depends:")?;
    let llvm = depends.split([',', ' ']).find(|word| word.starts_with("libllvm"));
    let llvm = llvm.ok_or_else(|| Failure::new(format!("{library} names no LLVM: {depends}")))?;
    let own = ["rustc-web", "libstd-rust-web-dev", &library, "rust-web-src"]
        .map(|name| format!("{name}={version}"));
    Program::new("apt-get").current_dir(place).args(["download", "-qq", llvm]).args(&own).run()?;
    for package in fs::read_dir(place).while_doing("list what was fetched")? {
        let package = package.while_doing("list what was fetched")?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            Program::new("dpkg").arg("-x").arg(&package).arg(place.join("root")).run()?;
            fs::remove_file(&package).while_doing("take away what was unpacked")?;
        }
    }
    Ok(())
}

/// What Debian's list says of the newest version of a package.
fn field(package: &str, name: &str) -> Outcome<String> {
    let shown = Program::new("apt-cache").args(["show", "--no-all-versions", package]).quiet().output()?;
    let found = shown.lines().find_map(|line| line.strip_prefix(name));
    found.map(|value| value.trim().to_owned()).ok_or_else(|| Failure::new(format!("{package} has no {name}")))
}
