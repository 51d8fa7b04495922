//! Windows of connections that keep nothing: byte streams as they are.

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_ledger::{WindowLost, WindowPath};
use beeline_window::{ByteRead, ByteReader, ByteWriter, ReceiveError, Receiver, Writer};

use crate::socket::{WindowFailed, WindowSink};

/// Sends a stretch of the stream by a window; its messages are bytes and nothing else.
#[derive(Debug)]
pub struct PlainWriter<P: StorePort, C: CreditSource>(ByteWriter<P, C>);

/// Receives what a [`PlainWriter`] sends. A header that cannot be is found; bytes that somebody scribbled over are not.
#[derive(Debug)]
pub struct PlainReader<L: LoadPort, S: CreditSink>(ByteReader<L, S>);

impl<P: StorePort, C: CreditSource> PlainWriter<P, C> {
    /// By a window of two lines at least that has sent nothing.
    pub fn new(writer: Writer<P, C>) -> Self {
        PlainWriter(ByteWriter::new(writer))
    }
}

impl<P: StorePort, C: CreditSource> WindowSink for PlainWriter<P, C> {
    #[inline]
    fn write(&mut self, _offset: u64, bytes: &[u8]) -> Result<usize, WindowFailed> {
        self.0.write(bytes).map_err(|_| WindowFailed)
    }

    fn settle(&mut self) {
        self.0.fence();
    }
}

impl<L: LoadPort, S: CreditSink> PlainReader<L, S> {
    /// From a window of which nothing was read.
    pub fn new(receiver: Receiver<L, S>) -> Self {
        PlainReader(ByteReader::new(receiver))
    }
}

/// A writer that is dropped leaves an end mark. The end of the stream is the kernel's word alone, so it says nothing here.
fn bytes_of(read: Result<ByteRead, ReceiveError>) -> Result<usize, WindowLost> {
    match read {
        Ok(ByteRead::Bytes(bytes)) => Ok(bytes),
        Ok(ByteRead::Nothing | ByteRead::End) => Ok(0),
        Err(_) => Err(WindowLost),
    }
}

impl<L: LoadPort, S: CreditSink> WindowPath for PlainReader<L, S> {
    #[inline]
    fn read(&mut self, _offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        bytes_of(self.0.read(out))
    }

    fn peek(&mut self, _offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        bytes_of(self.0.peek(0, out))
    }
}
