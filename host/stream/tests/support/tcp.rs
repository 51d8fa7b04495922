//! A socket of the kernel that takes less than it could.

use std::net::{Shutdown, TcpStream};

use beeline_ledger::{KernelPath, Peeked};
use beeline_stream::{Socket, Tcp, TcpError};
use beeline_tcp::Side;

pub struct Limited {
    tcp: Tcp<TcpStream>,
    /// Bytes that it takes, less than the kernel would.
    pub room_bytes: usize,
    /// Calls that it has no room for, whatever it takes then.
    pub refusals: u32,
}

impl Limited {
    pub fn new(stream: TcpStream, side: Side) -> Self {
        Limited { tcp: Tcp::new(stream, side), room_bytes: usize::MAX, refusals: 0 }
    }

    pub fn shut_down(&self) {
        self.tcp.socket().shutdown(Shutdown::Write).unwrap();
    }
}

impl KernelPath for Limited {
    type Error = TcpError;

    fn peek(&mut self, out: &mut [u8]) -> Result<Peeked, TcpError> {
        self.tcp.peek(out)
    }

    fn take(&mut self, bytes: usize) -> Result<(), TcpError> {
        self.tcp.take(bytes)
    }
}

impl Socket for Limited {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, TcpError> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Ok(0);
        }
        let sent = self.tcp.send(&bytes[..bytes.len().min(self.room_bytes)])?;
        self.room_bytes -= sent;
        Ok(sent)
    }

    fn given_bytes(&mut self) -> Result<u64, TcpError> {
        self.tcp.given_bytes()
    }
}
