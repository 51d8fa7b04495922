//! Several small messages in few lines.
//!
//! Records are packed as `beeline_spec::batch` says: a payload of up to 6 bytes takes one word instead of a line.
//! The batch is stored as it grows and its header last, so nothing of it is received before it is flushed.
//!
//! A batch is sent by [`Batch::send`] and by nothing else: one that is dropped is discarded, as a dropped reservation is,
//! so an error or a panic in the middle publishes no part of it. While it is open its writer can send nothing else.

use beeline_contract_memory::{CreditSource, StorePort};
use beeline_spec::batch::{MAX_RECORD_BYTES, record_bytes};
use beeline_spec::header::lines_of;
use beeline_spec::{Kind, WORD_BYTES};

use crate::error::SendError;
use crate::payload::payload_bytes_of;
use crate::{Sent, Writer};

/// An open batch. [`Batch::send`] sends it; dropping it discards it.
#[derive(Debug)]
pub struct Batch<'w, P: StorePort, C: CreditSource> {
    writer: &'w mut Writer<P, C>,
    /// Records that went in.
    records: u32,
    /// Longest batch this one could have been, to tell "never" from "not now".
    max_bytes: u32,
}

impl<'w, P: StorePort, C: CreditSource> Batch<'w, P, C> {
    pub(crate) fn open(writer: &'w mut Writer<P, C>, capacity_bytes: u32, max_bytes: u32) -> Self {
        writer.open_stream(capacity_bytes);
        Batch { writer, records: 0, max_bytes }
    }

    /// Adds a record. [`Sent::Full`]: there is no room for it; the batch stays open as it was, so send it and open another.
    ///
    /// # Errors
    /// [`SendError::TooLong`] for a record that no batch of this size can hold; the batch stays as it is.
    pub fn push(&mut self, record: &[u8]) -> Result<Sent, SendError> {
        let max_bytes = MAX_RECORD_BYTES.min((self.max_bytes as usize).saturating_sub(2));
        if record.len() > max_bytes || record_bytes(record.len()) > self.max_bytes as usize {
            return Err(SendError::TooLong { bytes: record.len(), max_bytes });
        }
        let needed_bytes = record_bytes(record.len());
        if needed_bytes > self.writer.stream.left_bytes() as usize {
            return Ok(Sent::Full);
        }
        self.writer.append(&(record.len() as u16).to_le_bytes());
        self.writer.append(record);
        let padding = needed_bytes - 2 - record.len();
        self.writer.append(&[0; WORD_BYTES][..padding]);
        self.records += 1;
        Ok(Sent::Sent)
    }

    /// Returns how many messages the batch holds so far.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Sends the batch; an empty one leaves no trace.
    pub fn send(self) {
        match self.writer.stream.written_bytes() {
            0 => self.writer.cancel(),
            bytes => self.writer.close_stream(Kind::Batch, bytes),
        }
    }
}

impl<P: StorePort, C: CreditSource> Writer<P, C> {
    /// Opens a batch of at most `max_bytes` of records and as many lines as there is room for now; `None` when there
    /// is not one free line.
    ///
    /// # Errors
    /// As [`Writer::try_send`]; `max_bytes` is cut to what a reservation of this window may have.
    pub fn batch(&mut self, max_bytes: usize) -> Result<Option<Batch<'_, P, C>>, SendError> {
        let max_bytes = max_bytes.min(self.max_reservation_bytes as usize) as u32;
        if !self.credits.has(lines_of(max_bytes))
            && !self.find_room(lines_of(max_bytes))?
            && !self.credits.has(1)
        {
            return Ok(None);
        }
        let room_bytes = payload_bytes_of(self.credits.known_free());
        Ok(Some(Batch::open(self, max_bytes.min(room_bytes), max_bytes)))
    }
}

impl<P: StorePort, C: CreditSource> Drop for Batch<'_, P, C> {
    fn drop(&mut self) {
        self.writer.abandon();
    }
}

#[cfg(test)]
mod tests;
