//! Windows of connections: byte streams as they are, or messages that carry a checksum where the sender keeps copies (record 0080).

use beeline_ledger::{WindowLost, WindowPath};
use beeline_mmio::{LoadWindow, StoreWindow};
use beeline_stream::{
    CheckedReader, CheckedWriter, PlainReader, PlainWriter, StreamId, WindowFailed, WindowSink,
};
use beeline_window::{Receiver, Writer};

use crate::words::Credits;

/// A window that is received by.
#[derive(Debug)]
pub(crate) enum WindowReader {
    Plain(PlainReader<LoadWindow, Credits>),
    Checked(CheckedReader<LoadWindow, Credits>),
}

/// A window that is sent by.
#[derive(Debug)]
pub(crate) enum WindowWriter {
    Plain(PlainWriter<StoreWindow, Credits>),
    Checked(CheckedWriter<StoreWindow, Credits>),
}

impl WindowReader {
    /// `checked`: by what its messages are, if they are.
    pub(crate) fn new(receiver: Receiver<LoadWindow, Credits>, checked: Option<StreamId>) -> Self {
        match checked {
            Some(stream) => WindowReader::Checked(CheckedReader::new(receiver, stream)),
            None => WindowReader::Plain(PlainReader::new(receiver)),
        }
    }
}

impl WindowWriter {
    /// Writes messages that the reader checks where `checked` says by what, else the bytes alone.
    pub(crate) fn new(writer: Writer<StoreWindow, Credits>, checked: Option<StreamId>) -> Self {
        match checked {
            Some(stream) => WindowWriter::Checked(CheckedWriter::new(writer, stream)),
            None => WindowWriter::Plain(PlainWriter::new(writer)),
        }
    }
}

impl WindowPath for WindowReader {
    #[inline]
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        match self {
            WindowReader::Plain(reader) => reader.read(offset, out),
            WindowReader::Checked(reader) => reader.read(offset, out),
        }
    }

    fn peek(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        match self {
            WindowReader::Plain(reader) => reader.peek(offset, out),
            WindowReader::Checked(reader) => reader.peek(offset, out),
        }
    }
}

impl WindowSink for WindowWriter {
    #[inline]
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<usize, WindowFailed> {
        match self {
            WindowWriter::Plain(writer) => writer.write(offset, bytes),
            WindowWriter::Checked(writer) => writer.write(offset, bytes),
        }
    }

    fn settle(&mut self) {
        match self {
            WindowWriter::Plain(writer) => writer.settle(),
            WindowWriter::Checked(writer) => writer.settle(),
        }
    }
}
