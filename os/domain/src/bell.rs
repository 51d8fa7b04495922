//! A bell: what who sleeps in a poll or epoll set of its own is woken by, without a thread between.
//!
//! It is a datagram socket under a name of the network namespace (`AF_UNIX`, abstract). Its owner puts it into the set beside other
//! descriptors; whoever has its address rings it by one packet. There is one for each sleeper, not for each pair, so any number of
//! peers, of any user, ring the same one. Beside [`crate::Event`], which a thread of the domain signals behind a packet, it
//! costs less than half the time of a wake-up, and no more than a stranger's look.
//!
//! A name can be found by everybody (`/proc/net/unix`), so a packet counts only with the token of the address: a filter of the kernel's drops all
//! others in the call of who sends them, and the sleeper sleeps on (record 0074). Who must not lose a wake-up announces its sleep,
//! orders that before a last look, and sleeps then; so it is for every sleep (docs/design.md, decision 5).

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use beeline_mmio::ThisProcess;
use beeline_tcp_sys::{Instruction, attach_filter};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recv, sendto,
    socket_with, sockopt,
};

use crate::descriptor::{Descriptor, Held};
use crate::numbers::Purpose;

/// Before the number in the name of a bell's socket; the number has 32 digits.
const NAME_START: &[u8; 13] = b"beeline-bell-";
const NAME_BYTES: usize = 16;
const TOKEN_BYTES: usize = 16;
/// Packets that [`Bell::clear`] reads at most. The kernel keeps some ten (`net.unix.max_dgram_qlen`), and ringing goes on meanwhile.
const MOST_READ: u32 = 1024;
/// Room for unread packets of a socket that is handed out.
const HANDED_OUT_BYTES: usize = 1 << 20;

/// Where a bell is rung, and the token that makes a packet count. It goes to peers in memory that they share with the sleeper.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BellAddress {
    name: [u8; NAME_BYTES],
    token: [u8; TOKEN_BYTES],
}

/// The sleeper's end: readable when it was rung, until it is cleared.
///
/// A child of fork has a copy of the descriptor and leaves it alone; it makes a bell of its own.
#[derive(Debug)]
pub struct Bell {
    socket: Descriptor,
    /// The number that it was made with, which stands in sets.
    shown: Held,
    address: BellAddress,
    made_by: ThisProcess,
}

/// Rings bells of its network namespace. A process needs one; threads share it.
#[derive(Debug)]
pub struct Ringer {
    socket: Descriptor,
    /// Another process has made it, in another network namespace.
    is_handed_out: bool,
}

/// What became of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Rung {
    /// The bell is readable, if the address is its own.
    Rung,
    /// Nobody has a bell there: its owner has gone.
    Nobody,
    /// The kernel refused it for another reason (no memory; too much that is unread, of a ringer of another namespace). The sleeper may sleep on.
    Failed(Errno),
}

impl BellAddress {
    /// As four words.
    pub fn to_words(self) -> [u64; 4] {
        let half =
            |bytes: &[u8; 16], at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        [half(&self.name, 0), half(&self.name, 8), half(&self.token, 0), half(&self.token, 8)]
    }

    /// The address that four words are. Any words are one: it leads to a bell, or to nobody.
    pub fn from_words(words: [u64; 4]) -> Self {
        let both = |low: u64, high: u64| {
            let bytes = [low.to_le_bytes(), high.to_le_bytes()];
            std::array::from_fn(|at| bytes[at / 8][at % 8])
        };
        BellAddress { name: both(words[0], words[1]), token: both(words[2], words[3]) }
    }

    fn random() -> io::Result<Self> {
        let (mut name, mut token) = ([0; NAME_BYTES], [0; TOKEN_BYTES]);
        // The only failure: the kernel has no random numbers.
        for bytes in [&mut name, &mut token] {
            getrandom::fill(bytes).map_err(|_| Errno::NOSYS)?;
        }
        Ok(BellAddress { name, token })
    }

    /// A name that nothing but a bell has. Nothing is allocated: whoever rings may be inside of the program's allocator.
    fn socket_address(&self) -> Result<SocketAddrUnix, Errno> {
        let mut name = [0; NAME_START.len() + 2 * NAME_BYTES];
        let (start, digits) = name.split_at_mut(NAME_START.len());
        start.copy_from_slice(NAME_START);
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.name) {
            let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        SocketAddrUnix::new_abstract_name(&name)
    }
}

/// Without the token: who reads a log must not ring.
impl fmt::Debug for BellAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "BellAddress({:032x})", u128::from_be_bytes(self.name))
    }
}

fn make_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

/// Keeps a packet that is the token and nothing else, and of it one byte.
fn only(token: [u8; TOKEN_BYTES]) -> Vec<Instruction> {
    // Of linux/bpf_common.h: load the packet's length, load a word of it, compare with a number, answer a number.
    const LOAD_LENGTH: u16 = 0x80;
    const LOAD_WORD: u16 = 0x20;
    const EQUALS: u16 = 0x15;
    const ANSWER: u16 = 0x06;
    let mut left = 2 + 2 * (TOKEN_BYTES / 4) as u8;
    let mut program = Vec::new();
    let mut compare = |code, at, number| {
        left -= 2;
        program.push(Instruction { code, jumps: [0, 0], number: at });
        // To the last instruction, over the rest and the one that keeps the packet.
        program.push(Instruction { code: EQUALS, jumps: [0, left + 1], number });
    };
    compare(LOAD_LENGTH, 0, TOKEN_BYTES as u32);
    for (index, word) in token.chunks_exact(4).enumerate() {
        // The kernel loads words as the network has them.
        let word = u32::from_be_bytes(std::array::from_fn(|at| word[at]));
        compare(LOAD_WORD, 4 * index as u32, word);
    }
    let answer = |number| Instruction { code: ANSWER, jumps: [0, 0], number };
    program.extend([answer(1), answer(0)]);
    program
}

impl Bell {
    /// Makes one that was not rung, under a name and with a token that nobody knows yet. Five system calls.
    ///
    /// # Errors
    /// The process is out of descriptors, or may not filter its own packets (a filter of system calls).
    pub fn new() -> io::Result<Self> {
        let address = BellAddress::random()?;
        let socket = make_socket()?;
        // Before it has a name: nobody's packet is in it that was not looked at.
        attach_filter(&socket, &only(address.token))?;
        bind(&socket, &address.socket_address()?)?;
        let socket = Descriptor::new(socket, Purpose::Bell);
        let shown = socket.hold();
        Ok(Bell { socket, shown, address, made_by: ThisProcess::get() })
    }

    /// What peers ring it by.
    pub fn address(&self) -> BellAddress {
        self.address
    }

    /// Whether its descriptor is the bell's still: nobody can ring it else. One system call.
    pub fn is_whole(&self) -> bool {
        self.socket.check_kind().is_ok()
    }

    /// Makes it unreadable until it is rung again. Some system calls that never wait, more where it was rung more often. False where the
    /// descriptor is not the bell's any more, so that another bell is to be made: nothing was read then.
    pub fn clear(&self) -> bool {
        // A child would take what its parent is rung for.
        if !self.made_by.is_this() {
            return false;
        }
        let Ok(socket) = self.socket.check() else { return false };
        for _ in 0..MOST_READ {
            match recv(&socket, &mut [0u8; 1][..], RecvFlags::DONTWAIT) {
                Ok(_) | Err(Errno::INTR) => {}
                // The only failure of a socket of ours is that nothing is in it.
                Err(_) => break,
            }
        }
        true
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shown.as_fd()
    }
}

impl Ringer {
    /// Makes the socket that packets are sent from; it has no name, and nobody answers.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Ringer { socket: Descriptor::new(make_socket()?, Purpose::Bell), is_handed_out: false })
    }

    /// A socket that rings the bells of this network namespace, for a process in another one. It has nothing that this process uses.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn to_hand_out() -> io::Result<OwnedFd> {
        let socket = make_socket()?;
        // Whoever has it rings all bells of a process by it, so more of them may be unread than the default lets there be. The kernel gives
        // what it allows.
        let _ = sockopt::set_socket_send_buffer_size(&socket, HANDED_OUT_BYTES);
        Ok(socket)
    }

    /// One that rings the bells of the network namespace in which another process has made this socket ([`Ringer::to_hand_out`]).
    ///
    /// # Errors
    /// It is no such socket; the descriptor comes back, since closing a stranger's may wait.
    pub fn handed_out(socket: OwnedFd) -> Result<Self, OwnedFd> {
        let is_unix = sockopt::socket_domain(&socket) == Ok(AddressFamily::UNIX);
        if !is_unix || sockopt::socket_type(&socket) != Ok(SocketType::DGRAM) {
            return Err(socket);
        }
        Ok(Ringer { socket: Descriptor::new(socket, Purpose::Bell), is_handed_out: true })
    }

    /// Whether it rings bells of another network namespace than that of the calling thread; also where the kernel does not say (before
    /// Linux 5.14).
    pub fn is_of_another_namespace(&self) -> bool {
        let of_own = make_socket().and_then(|socket| beeline_tcp::netns_cookie(&socket));
        let cookie = self.socket.check().and_then(|socket| beeline_tcp::netns_cookie(&socket));
        of_own.is_err() || of_own != cookie
    }

    /// Makes a bell readable. Two system calls that never wait, whatever its owner does; three more while bells that this ringer has rung fill its socket.
    pub fn ring(&self, address: &BellAddress) -> Rung {
        let socket = match self.socket.check() {
            Ok(socket) => socket,
            Err(errno) => return Rung::Failed(errno),
        };
        let to = match address.socket_address() {
            Ok(to) => to,
            Err(errno) => return Rung::Failed(errno),
        };
        if let Some(rung) = send_token(&socket, address, &to) {
            return rung;
        }
        if self.is_handed_out {
            // Another socket would be one of this namespace. Whoever rings comes again.
            return Rung::Failed(Errno::AGAIN);
        }
        // Either the bell is full, or this socket is: the kernel counts what is unread at all bells for it, 278 packets by default. A socket that
        // has sent nothing tells them apart.
        match make_socket() {
            Ok(fresh) => send_token(&fresh, address, &to).unwrap_or(Rung::Rung),
            Err(errno) => Rung::Failed(errno),
        }
    }
}

/// Sends a bell's token; `None` where the bell or the socket is full.
fn send_token(socket: impl AsFd, address: &BellAddress, to: &SocketAddrUnix) -> Option<Rung> {
    loop {
        match sendto(&socket, &address.token, SendFlags::DONTWAIT | SendFlags::NOSIGNAL, to) {
            Ok(_) => return Some(Rung::Rung),
            Err(Errno::AGAIN) => return None,
            Err(Errno::INTR) => {}
            Err(Errno::CONNREFUSED) => return Some(Rung::Nobody),
            Err(errno) => return Some(Rung::Failed(errno)),
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_the_same_behind_its_words() {
        let address = BellAddress::random().unwrap();
        assert_eq!(BellAddress::from_words(address.to_words()), address);
        assert_eq!(BellAddress::from_words([1, 2, 3, 4]).to_words(), [1, 2, 3, 4]);
        assert!(
            !format!("{address:?}").contains(&format!("{:02x}{:02x}", address.token[0], address.token[1]))
        );
    }

    #[test]
    fn filter_jumps_to_its_last_instruction_from_every_comparison() {
        let program = only([7; TOKEN_BYTES]);
        assert_eq!(program.len(), 12);
        let ends: Vec<_> = (0..program.len())
            .filter(|at| program[*at].code == 0x15)
            .map(|at| at + 1 + usize::from(program[at].jumps[1]))
            .collect();
        assert_eq!(ends, [11; 5]);
        assert_eq!((program[10].number, program[11].number), (1, 0));
    }
}
