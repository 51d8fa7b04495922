//! A socket of the kernel.

use std::net::{Shutdown, TcpStream};

use beeline_ledger::{KernelPath, Peeked};
use beeline_stream::Socket;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

pub struct Tcp {
    stream: TcpStream,
    given: u64,
    /// Bytes that it takes, less than the kernel would.
    pub room_bytes: usize,
    /// Calls that it has no room for, whatever it takes then.
    pub refusals: u32,
}

impl Tcp {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).unwrap();
        Tcp { stream, given: 0, room_bytes: usize::MAX, refusals: 0 }
    }

    pub fn shut_down(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

impl KernelPath for Tcp {
    type Error = Errno;

    fn peek(&mut self, out: &mut [u8]) -> Result<Peeked, Errno> {
        match recv(&self.stream, out, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Ok(Peeked::End),
            Ok((_, bytes)) => Ok(Peeked::Bytes(bytes)),
            Err(Errno::AGAIN) => Ok(Peeked::Nothing),
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Errno> {
        let mut left = vec![0; bytes];
        let (_, taken) = recv(&self.stream, &mut left, RecvFlags::DONTWAIT)?;
        assert_eq!(taken, bytes);
        Ok(())
    }
}

impl Socket for Tcp {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Ok(0);
        }
        let bytes = &bytes[..bytes.len().min(self.room_bytes)];
        if bytes.is_empty() {
            return Ok(0);
        }
        match send(&self.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(sent) => {
                self.room_bytes -= sent;
                self.given += sent as u64;
                Ok(sent)
            }
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn given_bytes(&mut self) -> Result<u64, Errno> {
        Ok(self.given)
    }
}
