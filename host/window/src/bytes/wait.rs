//! Waiting for bytes and for room, by whoever the caller has wait.

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort, Wait};

use super::reader::{ByteRead, ByteReader};
use super::writer::{ByteWriteError, ByteWriter};
use crate::arrival::ArrivalTest;
use crate::error::{ReceiveError, SendError};

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> ByteReader<L, S, A> {
    /// As [`ByteReader::read`], waiting for the first byte as long as `waiter` does: [`ByteRead::Nothing`] when its time is
    /// over. A sender that it knows to be gone is taken note of.
    ///
    /// # Errors
    /// As [`ByteReader::read`].
    pub fn read_wait(&mut self, out: &mut [u8], waiter: &mut impl Wait) -> Result<ByteRead, ReceiveError> {
        let found = waiter.wait(|peer_gone| {
            if peer_gone {
                self.sender_gone();
            }
            match self.read(out)? {
                ByteRead::Nothing => Ok(None),
                found => Ok(Some(found)),
            }
        })?;
        Ok(found.unwrap_or(ByteRead::Nothing))
    }

    /// As [`ByteReader::read_wait`] until `out` is full (`MSG_WAITALL`): fewer bytes only at the end of the stream, in front of an
    /// error, which the next read says, or when the time of `waiter` is over.
    ///
    /// # Errors
    /// As [`ByteReader::read`].
    pub fn read_full_wait(
        &mut self,
        out: &mut [u8],
        waiter: &mut impl Wait,
    ) -> Result<ByteRead, ReceiveError> {
        let mut filled = 0;
        // A wait of its own for each piece: one that goes on spins again.
        loop {
            match self.read_wait(&mut out[filled..], waiter) {
                Ok(ByteRead::Bytes(now)) => {
                    filled += now;
                    if filled == out.len() {
                        return Ok(ByteRead::Bytes(filled));
                    }
                }
                Ok(found) => return Ok(if filled > 0 { ByteRead::Bytes(filled) } else { found }),
                Err(error) if filled == 0 => return Err(error),
                Err(error) => {
                    self.keep_error(error);
                    return Ok(ByteRead::Bytes(filled));
                }
            }
        }
    }
}

impl<P: StorePort, C: CreditSource> ByteWriter<P, C> {
    /// As [`ByteWriter::write`], waiting for room for a byte as long as `waiter` does: 0 when its time is over.
    ///
    /// # Errors
    /// As [`ByteWriter::write`], and [`SendError::ReceiverGone`].
    pub fn write_wait(&mut self, bytes: &[u8], waiter: &mut impl Wait) -> Result<usize, ByteWriteError> {
        let taken = waiter.wait(|peer_gone| match self.write(bytes)? {
            0 if bytes.is_empty() => Ok(Some(0)),
            0 if peer_gone => Err(ByteWriteError::Send(SendError::ReceiverGone)),
            0 => Ok(None),
            taken => Ok(Some(taken)),
        })?;
        Ok(taken.unwrap_or(0))
    }

    /// As [`ByteWriter::write_wait`] until all of `bytes` are written; fewer only in front of an error or when the time of
    /// `waiter` is over.
    ///
    /// # Errors
    /// As [`ByteWriter::write_wait`], when no byte was taken.
    pub fn write_all_wait(&mut self, bytes: &[u8], waiter: &mut impl Wait) -> Result<usize, ByteWriteError> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.write_wait(&bytes[taken..], waiter) {
                Ok(0) => break,
                Ok(now) => taken += now,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(taken)
    }

    /// Waits until the receiver has released every byte and told of it, as long as `waiter` does: `false` when its time is over.
    /// What was kept back is sent first.
    ///
    /// # Errors
    /// As [`ByteWriter::write_wait`].
    pub fn acknowledged_wait(&mut self, waiter: &mut impl Wait) -> Result<bool, ByteWriteError> {
        self.flush();
        let found = waiter.wait(|peer_gone| {
            if self.unacknowledged_bytes()? == 0 {
                Ok(Some(()))
            } else if peer_gone {
                Err(ByteWriteError::Send(SendError::ReceiverGone))
            } else {
                self.progress();
                Ok(None)
            }
        })?;
        Ok(found.is_some())
    }
}
