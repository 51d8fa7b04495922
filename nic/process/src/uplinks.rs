//! What hangs on the switch besides ports, and frames that wait for room.
//!
//! An up-link that fails is switched off and says why in the statistics; the switch goes on without it.

use beeline_ethernet::{Accept, Traits, Uplink, UplinkError};

use crate::mac_table::Endpoint;
use crate::statistics::UplinkStatistics;

/// A frame that waits for receivers.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    pub(crate) frame: Vec<u8>,
    /// Receivers that had no room. They may also vanish from here because they are gone.
    pub(crate) targets: Vec<Endpoint>,
    /// Whether the frame is kept, and its sender told to wait.
    pub(crate) is_waiting: bool,
}

/// An up-link, its counts, and what waits for its receivers.
pub(crate) struct UplinkSlot {
    pub(crate) uplink: Box<dyn Uplink>,
    pub(crate) traits: Traits,
    pub(crate) hold: Hold,
    frames_in: u64,
    frames_out: u64,
    pub(crate) failure: Option<String>,
}

impl UplinkSlot {
    pub(crate) fn new(uplink: Box<dyn Uplink>) -> Self {
        let traits = uplink.traits();
        UplinkSlot { uplink, traits, hold: Hold::default(), frames_in: 0, frames_out: 0, failure: None }
    }

    /// Sends a frame; `false` when there is no room now. One that failed swallows frames.
    pub(crate) fn send(&mut self, frame: &[u8]) -> bool {
        if self.failure.is_some() {
            return true;
        }
        match self.uplink.send(frame) {
            Ok(Accept::Taken) => {
                self.frames_out += 1;
                true
            }
            Ok(Accept::Refused) => false,
            Err(error) => {
                self.fail(&error);
                true
            }
        }
    }

    /// Takes the next frame; `false` when there is none.
    pub(crate) fn receive(&mut self, frame: &mut Vec<u8>) -> bool {
        match self.uplink.poll(frame) {
            Ok(is_there) => {
                self.frames_in += u64::from(is_there);
                is_there
            }
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    #[cold]
    fn fail(&mut self, error: &UplinkError) {
        tracing::error!("up-link {} is off: {error}", self.uplink.name());
        self.failure = Some(error.to_string());
    }

    /// Brings what was sent to where it goes.
    pub(crate) fn flush(&mut self) {
        if self.failure.is_none()
            && let Err(error) = self.uplink.flush()
        {
            self.fail(&error);
        }
    }

    /// Returns the counters of the up-link.
    pub(crate) fn statistics(&self) -> UplinkStatistics {
        UplinkStatistics {
            name: self.uplink.name().to_owned(),
            frames_in: self.frames_in,
            frames_out: self.frames_out,
            is_finished: self.uplink.is_finished(),
            failure: self.failure.clone(),
        }
    }
}
