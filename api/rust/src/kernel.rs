//! Which store kernel a sender uses: named, remembered from an earlier timing on this machine, or timed now.
//!
//! The memory is a file of this user, which is believed only if it is this user's alone and speaks of this CPU, kernel and
//! release. A file that is not believed, or cannot be written, costs some milliseconds of timing and nothing else.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use beeline_mmio::{Choice, Reason, StoreKernel, Traffic, kernel_from_environment};
use rustix::fs::OFlags;

/// A file longer than this is not ours.
const MAX_FILE_BYTES: u64 = 4096;

/// The store kernel for a kind of traffic; looked for once in a process.
pub(crate) fn kernel_for(traffic: Traffic) -> StoreKernel {
    static LATENCY: OnceLock<StoreKernel> = OnceLock::new();
    static STREAM: OnceLock<StoreKernel> = OnceLock::new();
    let known = match traffic {
        Traffic::Latency => &LATENCY,
        Traffic::Stream => &STREAM,
        _ => return look_for_kernel(traffic),
    };
    *known.get_or_init(|| look_for_kernel(traffic))
}

fn look_for_kernel(traffic: Traffic) -> StoreKernel {
    match kernel_from_environment() {
        Ok(Some(named)) => named,
        // A variable that cannot be followed is as good as none: `beeline doctor` says what is wrong with it.
        Ok(None) | Err(_) => load_or_time(Memory::of_this_machine().as_ref(), traffic, Choice::timed),
    }
}

fn load_or_time(
    memory: Option<&Memory>,
    traffic: Traffic,
    time: impl FnOnce(Traffic) -> Choice,
) -> StoreKernel {
    if let Some(kernel) = memory.and_then(|memory| memory.recall(traffic)) {
        return kernel;
    }
    let choice = time(traffic);
    // Without a second core, as under load, nothing was compared that is worth remembering.
    if let Some(memory) = memory
        && choice.reason == Reason::FastestBetweenCores
    {
        // Without the file the next program times again.
        let _ = memory.store(traffic, choice.kernel);
    }
    choice.kernel
}

/// The folder with what was timed, and what the timing holds for.
struct Memory {
    folder: PathBuf,
    machine: String,
}

impl Memory {
    fn of_this_machine() -> Option<Self> {
        let absolute =
            |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache =
            absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
        Some(Memory { folder: cache.join("beeline"), machine: machine()? })
    }

    fn path(&self, traffic: Traffic) -> PathBuf {
        self.folder.join(format!("store-kernel-{traffic}"))
    }

    /// The kernel that was timed for this machine, if the file can be believed and the kernel be used.
    fn recall(&self, traffic: Traffic) -> Option<StoreKernel> {
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.path(traffic)).ok()?;
        if !is_private_file(&file) {
            return None;
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
        let name = text.strip_prefix(&self.machine)?.strip_prefix("\nkernel: ")?.strip_suffix('\n')?;
        let kernel: StoreKernel = name.parse().ok()?;
        (kernel.is_available() && kernel.is_for_memory()).then_some(kernel)
    }

    fn store(&self, traffic: Traffic, kernel: StoreKernel) -> std::io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.path(traffic);
        // No pid: processes of two containers that share the folder may have the same, and one that was killed here leaves its file.
        let random = getrandom::u64().map_err(std::io::Error::other)?;
        let unfinished = path.with_extension(format!("{random:016x}"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        let written = write!(file, "{}\nkernel: {kernel}\n", self.machine);
        let stored = written.and_then(|()| std::fs::rename(&unfinished, &path));
        if stored.is_err() {
            std::fs::remove_file(&unfinished)?;
        }
        stored
    }
}

/// Whether the open file is a plain one that this user owns and nobody else can change.
fn is_private_file(file: &File) -> bool {
    let own = rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(|meta| {
        meta.is_file() && meta.uid() == own && meta.mode() & 0o077 == 0 && meta.len() <= MAX_FILE_BYTES
    })
}

/// What a timing depends on: the CPU's model, the kernel's release, this crate's version.
fn machine() -> Option<String> {
    let cpu = cpu_model(&std::fs::read_to_string("/proc/cpuinfo").ok()?)?;
    let kernel = read_line(Path::new("/proc/sys/kernel/osrelease"))?;
    Some(format!("cpu: {cpu}\nrelease: {kernel}\nversion: {}", env!("CARGO_PKG_VERSION")))
}

/// Family and model of the first core on x86-64, implementer and part on aarch64.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    const KEYS: [&str; 8] = [
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "CPU implementer",
        "CPU part",
        "CPU revision",
    ];
    let first = cpuinfo.split("\n\n").next()?;
    let fields = first.lines().filter_map(|line| line.split_once(':'));
    let values: Vec<&str> =
        fields.filter(|(key, _)| KEYS.contains(&key.trim())).map(|(_, value)| value.trim()).collect();
    (!values.is_empty()).then(|| values.join(" "))
}

fn read_line(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn choice(kernel: StoreKernel, reason: Reason) -> impl FnOnce(Traffic) -> Choice {
        move |traffic| Choice { traffic, kernel, reason, timings: Vec::new() }
    }

    fn memory(folder: &Path) -> Memory {
        Memory {
            folder: folder.join("cache/beeline"),
            machine: "cpu: one\nrelease: two\nversion: 3".to_owned(),
        }
    }

    fn never(_: Traffic) -> Choice {
        panic!("nothing is timed")
    }

    #[test]
    fn timing_is_remembered_per_traffic_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        let cached = choice(StoreKernel::Cached, Reason::FastestBetweenCores);
        assert_eq!(load_or_time(Some(&memory), Traffic::Latency, cached), StoreKernel::Cached);
        assert_eq!(load_or_time(Some(&memory), Traffic::Latency, never), StoreKernel::Cached);
        assert_eq!(memory.recall(Traffic::Stream), None);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&memory.path(Traffic::Latency)), mode(&memory.folder)), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(&memory.folder).unwrap().count(), 1, "no unfinished file is left");
    }

    /// As processes of two containers that are both pid 1 and share the folder, beside what a killed one has left there.
    #[test]
    fn timings_are_remembered_by_processes_of_one_pid_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        memory.store(Traffic::Latency, StoreKernel::Cached).unwrap();
        let left = memory.path(Traffic::Latency).with_extension(std::process::id().to_string());
        std::fs::write(left, "unfinished").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        memory.store(Traffic::Latency, StoreKernel::Cached).unwrap();
                        assert_eq!(memory.recall(Traffic::Latency), Some(StoreKernel::Cached));
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(&memory.folder).unwrap().count(), 2, "no file of these is left");
    }

    #[test]
    fn timing_without_a_second_core_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        let alone = choice(StoreKernel::Cached, Reason::FastestAlone);
        assert_eq!(load_or_time(Some(&memory), Traffic::Latency, alone), StoreKernel::Cached);
        assert_eq!(memory.recall(Traffic::Latency), None);
    }

    #[test]
    fn file_of_another_machine_kernel_or_version_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        memory.store(Traffic::Stream, StoreKernel::Cached).unwrap();
        assert_eq!(memory.recall(Traffic::Stream), Some(StoreKernel::Cached));
        for machine in ["cpu: x\nrelease: two\nversion: 3", "cpu: one\nrelease: two\nversion: 4"] {
            let other = Memory { folder: memory.folder.clone(), machine: machine.to_owned() };
            assert_eq!(other.recall(Traffic::Stream), None, "{machine}");
        }
    }

    #[test]
    fn file_that_others_could_have_written_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory(folder.path());
        memory.store(Traffic::Stream, StoreKernel::Cached).unwrap();
        let path = memory.path(Traffic::Stream);
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(memory.recall(Traffic::Stream), None, "others may write it");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        for text in [
            good.replace("cached", "fastest"),
            good.replace("cached", "st64b"),
            "x".repeat(5000),
            String::new(),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(memory.recall(Traffic::Stream), None);
        }
        std::fs::write(&path, &good).unwrap();
        assert_eq!(memory.recall(Traffic::Stream), Some(StoreKernel::Cached));
        let elsewhere = folder.path().join("elsewhere");
        std::fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(memory.recall(Traffic::Stream), None, "a link leads anywhere");
    }

    #[test]
    fn cpu_is_known_by_its_model() {
        let x86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nflags\t: sse\n\nprocessor\t: 1\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("AuthenticAMD 26 2"));
        assert_eq!(cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n").as_deref(), Some("0x41 0xd40"));
        assert_eq!(cpu_model("nothing"), None);
        assert!(machine().is_some_and(|machine| machine.lines().count() == 3));
    }
}
