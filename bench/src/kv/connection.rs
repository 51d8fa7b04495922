//! A stream to a server, polled: the client never sleeps, so that an answer is taken as soon as it is there.

use std::hint::spin_loop;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::BenchError;
use beeline_session::IdleWatch;

/// A server that answers nothing for this long is taken for dead.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connected stream with buffers for what is sent and what came.
#[derive(Debug)]
pub struct Connection {
    rival: &'static str,
    stream: UnixStream,
    out: Vec<u8>,
    into: Vec<u8>,
}

impl Connection {
    /// Connects to a socket.
    ///
    /// # Errors
    /// [`BenchError::Rival`].
    pub fn open(rival: &'static str, socket: &Path) -> Result<Self, BenchError> {
        let stream = UnixStream::connect(socket).and_then(|stream| {
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        let stream = stream.map_err(|error| failed(rival, &format!("cannot connect: {error}")))?;
        Ok(Connection { rival, stream, out: Vec::with_capacity(1 << 16), into: Vec::with_capacity(1 << 16) })
    }

    /// Sends, in one piece if the kernel takes it, what `write` puts into an empty buffer.
    ///
    /// # Errors
    /// [`BenchError::Rival`].
    #[inline]
    pub fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), BenchError> {
        self.out.clear();
        write(&mut self.out);
        let mut sent = 0;
        while sent < self.out.len() {
            match self.stream.write(&self.out[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(error) if retry(&error) => spin_loop(),
                Err(error) => return Err(self.failed(&format!("cannot be sent to: {error}"))),
            }
        }
        Ok(())
    }

    /// The next `bytes` that the server sends, when all of them are there.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: it went away, or sent nothing for ten seconds.
    #[inline]
    pub fn receive(&mut self, bytes: usize) -> Result<&[u8], BenchError> {
        if self.into.len() < bytes {
            self.into.resize(bytes, 0);
        }
        let (mut have, mut idle) = (0, IdleWatch::new());
        while have < bytes {
            match self.stream.read(&mut self.into[have..bytes]) {
                Ok(0) => return Err(self.failed("hung up")),
                Ok(more) => {
                    have += more;
                    idle.pat();
                }
                Err(error) if retry(&error) => {
                    spin_loop();
                    idle.idle(|waited| {
                        if waited <= TIMEOUT {
                            return Ok(());
                        }
                        let came = String::from_utf8_lossy(&self.into[..have.min(64)]);
                        Err(failed(self.rival, &format!("sent {have} of {bytes} bytes: {came:?}")))
                    })?;
                }
                Err(error) => return Err(self.failed(&format!("cannot be received from: {error}"))),
            }
        }
        Ok(&self.into[..bytes])
    }

    /// That an answer is not what it should be.
    #[cold]
    pub fn failed(&self, what: &str) -> BenchError {
        failed(self.rival, what)
    }
}

fn failed(rival: &str, what: &str) -> BenchError {
    BenchError::Rival { rival: rival.to_owned(), what: what.to_owned() }
}

fn retry(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn bytes_go_there_and_come_back_and_an_end_is_an_error() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        let server = std::thread::spawn(move || -> io::Result<Vec<u8>> {
            let mut stream = listener.accept()?.0;
            let mut got = vec![0; 3];
            stream.read_exact(&mut got)?;
            stream.write_all(b"answer and half")?;
            Ok(got)
        });
        let mut connection = Connection::open("rival", &path).map_err(io::Error::other)?;
        connection.send(|out| out.extend(b"ask")).map_err(io::Error::other)?;
        assert_eq!(connection.receive(6).map_err(io::Error::other)?, b"answer");
        assert_eq!(server.join().expect("the thread ends")?, b"ask");
        let ended = connection.receive(100).map(<[u8]>::to_vec).map_err(|error| error.to_string());
        assert_eq!(ended, Err("rival: hung up".to_owned()));
        let nobody =
            Connection::open("rival", &folder.path().join("none")).map_err(|error| error.to_string());
        assert!(nobody.is_err_and(|text| text.starts_with("rival: cannot connect")));
        Ok(())
    }
}
