//! bpf(2), so far as steering frames to an AF_XDP socket needs it.
//!
//! Everything made here is a descriptor: it is gone with the last process that holds it, however that ends.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::options::last_error;

/// Commands, types and flags of Linux's `bpf.h` and `if_link.h`.
mod kernel {
    pub const MAP_CREATE: libc::c_int = 0;
    pub const MAP_UPDATE_ELEM: libc::c_int = 2;
    pub const PROG_LOAD: libc::c_int = 5;
    pub const LINK_CREATE: libc::c_int = 28;
    pub const MAP_TYPE_XSKMAP: u32 = 17;
    pub const PROG_TYPE_XDP: u32 = 6;
    pub const ATTACH_TYPE_XDP: u32 = 37;
    pub const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
    pub const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
}

/// One instruction, as `struct bpf_insn` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Operation.
    pub code: u8,
    /// Destination register in the low four bits, source register in the high ones, on little-endian machines; the
    /// other way round on big-endian ones.
    pub registers: u8,
    /// Signed offset.
    pub offset: i16,
    /// Signed constant.
    pub constant: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8);

/// A map from queues to AF_XDP sockets.
#[derive(Debug)]
pub struct SocketMap {
    fd: OwnedFd,
    queues: u32,
}

impl SocketMap {
    /// An empty map for queues below `queues`.
    ///
    /// # Errors
    /// What the kernel says: `PERM` without CAP_BPF and CAP_NET_ADMIN, `INVAL` for a kernel without AF_XDP.
    pub fn new(queues: u32) -> Result<Self, Errno> {
        #[repr(C)]
        struct Attributes {
            map_type: u32,
            key_size: u32,
            value_size: u32,
            max_entries: u32,
            map_flags: u32,
        }
        let attributes = Attributes {
            map_type: kernel::MAP_TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: queues,
            map_flags: 0,
        };
        // SAFETY: the attributes hold no pointer.
        let fd = unsafe { call_for_descriptor(kernel::MAP_CREATE, &attributes)? };
        Ok(SocketMap { fd, queues })
    }

    /// Makes frames of a queue go to this socket, which is bound to that queue. It leaves the map when it is closed.
    ///
    /// # Errors
    /// What the kernel says; `NOENT` when the map has no such queue.
    pub fn set(&self, queue: u32, socket: impl AsFd) -> Result<(), Errno> {
        #[repr(C)]
        struct Attributes {
            map: u32,
            padding: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        if queue >= self.queues {
            return Err(Errno::NOENT);
        }
        let value = number(socket.as_fd());
        let attributes = Attributes {
            map: number(self.fd.as_fd()),
            padding: 0,
            key: address(&queue),
            value: address(&value),
            flags: 0,
        };
        // SAFETY: key and value are addresses of integers of the sizes that the map was made with; they live through
        // the call, and the kernel reads them.
        unsafe { call(kernel::MAP_UPDATE_ELEM, &attributes) }.map(drop)
    }
}

impl AsFd for SocketMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A program that the kernel has verified.
#[derive(Debug)]
pub struct XdpProgram {
    fd: OwnedFd,
}

impl XdpProgram {
    /// Has the kernel verify and compile a program. Descriptors that it names must be open.
    ///
    /// # Errors
    /// What the kernel says, and the verifier's words, which are empty when the program was not looked at.
    pub fn load(instructions: &[Instruction], name: &str) -> Result<Self, (Errno, String)> {
        const LOG_BYTES: usize = 16 << 10;
        // Without a log first: the verifier spends nothing on words, and a small log can make a load fail.
        let mut no_log = [];
        match load(instructions, name, &mut no_log) {
            Ok(fd) => Ok(XdpProgram { fd }),
            Err(error) => {
                let mut log = vec![0; LOG_BYTES];
                let _ = load(instructions, name, &mut log);
                let words = log.split(|byte| *byte == 0).next().unwrap_or_default();
                Err((error, String::from_utf8_lossy(words).trim().to_owned()))
            }
        }
    }
}

fn load(instructions: &[Instruction], name: &str, log: &mut [u8]) -> Result<OwnedFd, Errno> {
    #[repr(C)]
    struct Attributes {
        program_type: u32,
        instruction_count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_bytes: u32,
        log: u64,
        kernel_version: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach_type: u32,
    }
    // The kernel compares with the licences that it takes as its own; none of the functions we call needs one.
    let license = c"Apache-2.0 OR MIT";
    let mut short_name = [0; 16];
    for (to, from) in short_name[..15].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    let attributes = Attributes {
        program_type: kernel::PROG_TYPE_XDP,
        instruction_count: u32::try_from(instructions.len()).map_err(|_| Errno::TOOBIG)?,
        instructions: instructions.as_ptr().expose_provenance() as u64,
        license: license.as_ptr().expose_provenance() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: u32::try_from(log.len()).map_err(|_| Errno::INVAL)?,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr().expose_provenance() as u64 },
        kernel_version: 0,
        flags: 0,
        name: short_name,
        interface: 0,
        attach_type: kernel::ATTACH_TYPE_XDP,
    };
    // SAFETY: the kernel reads as many instructions as the slice has and the licence up to its zero, and writes at most
    // `log_bytes` bytes to the log; all live through the call, and the log is borrowed exclusively.
    unsafe { call_for_descriptor(kernel::PROG_LOAD, &attributes) }
}

/// Where in the kernel's receive path a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver, before the kernel makes a packet of the frame.
    Native,
    /// After the driver, for every driver there is.
    Generic,
}

/// A program attached to an interface; detached when this is dropped or the process ends, killed or not.
#[derive(Debug)]
pub struct XdpLink {
    _fd: OwnedFd,
}

impl XdpLink {
    /// Attaches a program to an interface of this thread's network namespace.
    ///
    /// # Errors
    /// What the kernel says: `BUSY` or `EXIST` when another program is attached, `OPNOTSUPP` when the driver runs none,
    /// `RANGE` or `INVAL` when frames may be too long, `PERM` without CAP_NET_ADMIN.
    pub fn attach(program: &XdpProgram, interface_index: u32, mode: AttachMode) -> Result<Self, Errno> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            interface: u32,
            attach_type: u32,
            flags: u32,
        }
        let attributes = Attributes {
            program: number(program.fd.as_fd()),
            interface: interface_index,
            attach_type: kernel::ATTACH_TYPE_XDP,
            flags: match mode {
                AttachMode::Native => kernel::XDP_FLAGS_DRV_MODE,
                AttachMode::Generic => kernel::XDP_FLAGS_SKB_MODE,
            },
        };
        // SAFETY: the attributes hold no pointer.
        let fd = unsafe { call_for_descriptor(kernel::LINK_CREATE, &attributes)? };
        Ok(XdpLink { _fd: fd })
    }
}

/// The number of a descriptor, as the kernel's structures have it.
fn number(fd: BorrowedFd<'_>) -> u32 {
    u32::try_from(fd.as_raw_fd()).expect("an open descriptor is not negative")
}

fn address<T>(value: &T) -> u64 {
    std::ptr::from_ref(value).expose_provenance() as u64
}

/// # Safety
/// As for [`call`], and the command gives a new descriptor.
unsafe fn call_for_descriptor<T>(command: libc::c_int, attributes: &T) -> Result<OwnedFd, Errno> {
    // SAFETY: the attributes are those of the command, and what they lead to may be used as it does (both promised above).
    let fd = unsafe { call(command, attributes)? };
    // SAFETY: the command gave a descriptor that is new, so that nobody else closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// The attributes are those of the command, without padding, and what their pointers lead to may be read, or written,
/// as the command does.
unsafe fn call<T>(command: libc::c_int, attributes: &T) -> Result<libc::c_int, Errno> {
    // SAFETY: the kernel reads as many bytes of the attributes as it is told and takes what is missing as zeros; what pointers
    // lead to may be used as the command does (promised above).
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>() as libc::c_uint)
    };
    match libc::c_int::try_from(result) {
        Ok(result @ 0..) => Ok(result),
        _ => Err(last_error()),
    }
}
