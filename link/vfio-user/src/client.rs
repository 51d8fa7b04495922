//! The client's side of a connection: requests in order, and answers as they come.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::message::{Header, Malformed, command, message, words};
use crate::socket::{Ended, Socket};

/// Flag of a request to which no answer is wanted.
const POSTED: u32 = 1 << 4;
/// Text of the version, as this client sends it.
const VERSION_TEXT: &str = r#"{"capabilities":{"max_msg_fds":8,"max_data_xfer_size":4096}}"#;

/// Why a function cannot be reached, or is not any more.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("cannot connect to {path}: {errno}; is the NIC started with `--vfio-user {path}`?")]
    Connect {
        /// Where the function was looked for.
        path: PathBuf,
        errno: Errno,
    },
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The function refused a request.
    #[error("the function refuses {what}: {errno}")]
    Refused { what: &'static str, errno: Errno },
    /// The function answered what no sound one does.
    #[error("the function answers {what} with {found}; is it a NIC of Beeline?")]
    Unsound { what: &'static str, found: String },
    /// Memory could not be mapped.
    #[error("cannot have the memory of a function")]
    Memory(#[from] beeline_mmio::MapError),
}

/// What came back: the answer's body and its descriptors.
pub(crate) type Reply = (Vec<u8>, Vec<OwnedFd>);

/// A connection to a function.
#[derive(Debug)]
pub(crate) struct Client {
    socket: Socket,
    next: u16,
    /// Answers that came before they were asked for.
    early: VecDeque<(Header, Reply)>,
}

impl Client {
    /// # Errors
    /// Nobody listens at `path`, or does not speak vfio-user.
    pub(crate) fn connect(path: &Path) -> Result<Self, ClientError> {
        let refused = |errno| ClientError::Connect { path: path.to_owned(), errno };
        let address = SocketAddrUnix::new(path).map_err(refused)?;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.map_err(refused)?;
        rustix::net::connect(&socket, &address).map_err(refused)?;
        let mut client = Client { socket: Socket::new(socket, None), next: 0, early: VecDeque::new() };
        let text = [&[0; 4][..], VERSION_TEXT.as_bytes(), &[0]].concat();
        let (version, _) = client.call("a version", command::VERSION, &text, &[])?;
        match version.first_chunk() {
            Some([0, 0]) => Ok(client),
            found => Err(ClientError::Unsound { what: "a version", found: format!("{found:?}") }),
        }
    }

    fn send(&mut self, command: u16, flags: u32, body: &[u8], fds: &[BorrowedFd<'_>]) -> Result<u16, Ended> {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.socket.send(&message(number, command, flags, 0, body), fds)?;
        Ok(number)
    }

    /// Sends a request to which no answer is wanted.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn post(&mut self, command: u16, body: &[u8]) -> Result<(), Ended> {
        self.send(command, POSTED, body, &[]).map(|_| ())
    }

    /// Sends a request whose answer is asked for later; its number.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn start(&mut self, command: u16, body: &[u8]) -> Result<u16, Ended> {
        self.send(command, 0, body, &[])
    }

    /// The answer to the request with a number, if it is there.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn answer(&mut self, number: u16) -> Result<Option<(Header, Reply)>, Ended> {
        loop {
            if let Some(at) = self.early.iter().position(|(header, _)| header.number == number) {
                return Ok(self.early.remove(at));
            }
            if !self.socket.has_input()? {
                return Ok(None);
            }
            let answer = self.receive()?;
            self.early.push_back(answer);
        }
    }

    fn receive(&mut self) -> Result<(Header, Reply), Ended> {
        let (header, body, fds) = self.socket.receive()?;
        if !header.is_reply() {
            return Err(Malformed::Kind(header.flags).into());
        }
        Ok((header, (body, fds)))
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// It is refused, or the connection has ended.
    pub(crate) fn call(
        &mut self,
        what: &'static str,
        command: u16,
        body: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Reply, ClientError> {
        let number = self.send(command, 0, body, fds)?;
        loop {
            let (header, reply) = self.receive()?;
            if header.number != number {
                self.early.push_back((header, reply));
            } else if header.is_error() {
                return Err(ClientError::Refused {
                    what,
                    errno: Errno::from_raw_os_error(header.errno as i32),
                });
            } else {
                return Ok(reply);
            }
        }
    }

    /// Whether the connection has ended, as far as can be told without waiting.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self.socket.has_input() {
            Ok(false) => false,
            // Something to read: an answer, or the end.
            Ok(true) => self.receive().map(|answer| self.early.push_back(answer)).is_err(),
            Err(_) => true,
        }
    }
}

/// The body of a request for an access of a region.
pub(crate) fn access(offset: u64, region: u32, bytes: u32) -> Vec<u8> {
    let mut body = offset.to_le_bytes().to_vec();
    body.extend(words(&[region, bytes]));
    body
}

/// The body of a request that maps memory for the device.
pub(crate) fn map(address: u64, bytes: u64) -> Vec<u8> {
    const READ_WRITE: u32 = 3;
    let mut body = words(&[40, READ_WRITE]);
    body.extend([0, address, bytes].iter().flat_map(|long: &u64| long.to_le_bytes()));
    body
}

/// The body of a request that takes memory back.
pub(crate) fn unmap(address: u64, bytes: u64) -> Vec<u8> {
    let mut body = words(&[24, 0]);
    body.extend([address, bytes].iter().flat_map(|long: &u64| long.to_le_bytes()));
    body
}
