//! Several small messages in few lines.
//!
//! Records are packed as `beeline_spec::batch` says: a payload of up to 6 bytes takes one word instead of a line.
//! The batch is stored as it grows and its header last, so nothing of it is received before it is flushed.
//!
//! *Flush rule.* A batch is sent when a record finds no room in it, when it is flushed, and when it is dropped; while
//! it is open its writer can send nothing else and cannot wait. So no record is ever held back behind a later message
//! or while its sender sleeps. A sender that has nothing more to add drops the batch at once: how long records may
//! gather is bounded by the sender's own loop, and no timer is needed.

use beeline_contract_memory::{CreditSource, StorePort};
use beeline_spec::batch::{MAX_RECORD_BYTES, record_bytes};
use beeline_spec::{Kind, WORD_BYTES};

use crate::error::SendError;
use crate::{Sent, Writer};

/// An open batch. Dropping it sends what it holds; an empty one leaves no trace.
#[derive(Debug)]
pub struct Batch<'w, P: StorePort, C: CreditSource> {
    writer: &'w mut Writer<P, C>,
    /// Records that went in.
    records: u32,
    /// Longest batch this one could have been, to tell "never" from "not now".
    max_bytes: u32,
    closed: bool,
}

impl<'w, P: StorePort, C: CreditSource> Batch<'w, P, C> {
    pub(crate) fn open(writer: &'w mut Writer<P, C>, capacity_bytes: u32, max_bytes: u32) -> Self {
        writer.open_stream(capacity_bytes);
        Batch { writer, records: 0, max_bytes, closed: false }
    }

    /// Adds a record. [`Sent::Full`]: it found no room, the batch has been sent without it; open another.
    ///
    /// # Errors
    /// [`SendError::TooLong`] for a record that no batch of this size can hold; the batch stays as it is.
    pub fn push(&mut self, record: &[u8]) -> Result<Sent, SendError> {
        let max_bytes = MAX_RECORD_BYTES.min((self.max_bytes as usize).saturating_sub(2));
        if record.len() > max_bytes || record_bytes(record.len()) > self.max_bytes as usize {
            return Err(SendError::TooLong { bytes: record.len(), max_bytes });
        }
        let needed_bytes = record_bytes(record.len());
        if self.closed || needed_bytes > self.writer.stream.left_bytes() as usize {
            self.close();
            return Ok(Sent::Full);
        }
        self.writer.append(&(record.len() as u16).to_le_bytes());
        self.writer.append(record);
        let padding = needed_bytes - 2 - record.len();
        self.writer.append(&[0; WORD_BYTES][..padding]);
        self.records += 1;
        Ok(Sent::Sent)
    }

    /// Records in the batch.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Sends the batch. The same as dropping it, said aloud.
    pub fn flush(self) {}

    fn close(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        match self.writer.stream.written_bytes() {
            0 => self.writer.cancel(),
            bytes => self.writer.close_stream(Kind::Batch, bytes),
        }
    }
}

impl<P: StorePort, C: CreditSource> Drop for Batch<'_, P, C> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
