//! Descriptors that are not what a peer says they are.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use beeline_mmio::{MemoryOptions, SharedMemory};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

/// Bytes of the memory of most that is passed.
pub const BYTES: usize = 4096;

/// Memory as it should be.
pub fn good(bytes: usize) -> OwnedFd {
    let memory = SharedMemory::create("beeline-handshake", bytes, MemoryOptions::default()).unwrap();
    memory.fd().try_clone_to_owned().unwrap()
}

fn memfd(bytes: u64, seals: SealFlags) -> OwnedFd {
    let memfd = rustix::fs::memfd_create("wrong", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&memfd, bytes).unwrap();
    rustix::fs::fcntl_add_seals(&memfd, seals).unwrap();
    memfd
}

fn opened_again(fd: &OwnedFd, flags: OFlags) -> OwnedFd {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

/// One of every kind, with its name; none is memory of so many bytes that cannot shrink, grow or be unsealed, and may be written.
pub fn wrong(bytes: usize) -> Vec<(&'static str, OwnedFd)> {
    let whole_memory = good(bytes);
    let bytes = bytes as u64;
    let sized = |file: File| {
        file.set_len(bytes).unwrap();
        OwnedFd::from(file)
    };
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
    let whole = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let not_sealable = rustix::fs::memfd_create("wrong", MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&not_sealable, bytes).unwrap();
    let mut kinds = vec![
        ("a file", sized(tempfile::tempfile().unwrap())),
        ("a folder", File::open("/").unwrap().into()),
        ("a device", File::options().read(true).write(true).open("/dev/zero").unwrap().into()),
        ("the reading end of a pipe", reader),
        ("the writing end of a pipe", writer),
        ("a socket", socket.into()),
        ("an event", rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap()),
        ("an epoll", rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap()),
        ("a memfd by O_PATH", opened_again(&whole_memory, OFlags::PATH)),
        ("a memfd for reading", opened_again(&whole_memory, OFlags::RDONLY)),
        ("a memfd for writing", opened_again(&whole_memory, OFlags::WRONLY)),
        ("a memfd that cannot be sealed", not_sealable),
        ("a memfd without seals", memfd(bytes, SealFlags::empty())),
        ("a memfd that can shrink", memfd(bytes, SealFlags::GROW | SealFlags::SEAL)),
        ("a memfd that can grow", memfd(bytes, SealFlags::SHRINK | SealFlags::SEAL)),
        ("a memfd whose seals can change", memfd(bytes, SealFlags::SHRINK | SealFlags::GROW)),
        ("a memfd that nobody may write", memfd(bytes, whole | SealFlags::WRITE)),
        ("a memfd that nobody may map for writing", memfd(bytes, whole | SealFlags::FUTURE_WRITE)),
        ("no bytes", memfd(0, whole)),
        ("too few bytes", memfd(64, whole)),
        ("a byte too many", memfd(bytes + 1, whole)),
        ("a page too many", memfd(2 * bytes, whole)),
    ];
    if Path::new("/dev/shm").is_dir() {
        kinds.push(("a file in /dev/shm", sized(tempfile::tempfile_in("/dev/shm").unwrap())));
    }
    kinds
}

/// As many as one packet may carry, all of the same file.
pub fn many(fd: &OwnedFd) -> Vec<std::os::fd::BorrowedFd<'_>> {
    vec![fd.as_fd(); 32]
}
