//! kPIO+WC beside descriptor DMA: the host's half of the multiplexer.
//!
//! The paper gives two ways to share a NIC between the two paths: all connections by one of them, or a range of TCP
//! destination ports by kPIO+WC and all else by descriptors. The host decides here by which queue a frame leaves; the
//! device, told the same by [`crate::Port::set_mux`], drops and counts frames that come by the other. Frames of one
//! connection keep their order, those of different paths do not (nor do they on the paper's NIC).
//!
//! From: the caller's frame. To: [`TxKpio`] or [`TxDescriptor`]. Larsen & Lee, NAS'15, §III (figure 2) and §III.B.

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_contract_memory::StorePort;
use beeline_spec::Interface;
use beeline_spec::flow::tcp_destination_port;
use beeline_window::{Sent, Taken};

use crate::descriptor::transmit::TxDescriptor;
use crate::error::TxError;
use crate::kpio::transmit::TxKpio;
use crate::port::settings::Mux;
use crate::transmit::{Declared, Transmit};

/// A kPIO+WC queue and a descriptor queue behind one transmit call.
#[derive(Debug)]
pub struct TxKpioMux<P, M, D> {
    kpio: TxKpio<P, M>,
    descriptor: TxDescriptor<M, D>,
    choice: Mux,
}

impl<P: StorePort, M: DmaMemory, D: Doorbell> TxKpioMux<P, M, D> {
    /// Chooses between two open queues as `choice` says; with [`Mux::Both`], which leaves the choice to the host,
    /// everything goes by kPIO+WC. The device must have been told the same.
    pub fn new(kpio: TxKpio<P, M>, descriptor: TxDescriptor<M, D>, choice: Mux) -> Self {
        TxKpioMux { kpio, descriptor, choice }
    }

    /// The two queues, to close them.
    pub fn into_parts(self) -> (TxKpio<P, M>, TxDescriptor<M, D>) {
        (self.kpio, self.descriptor)
    }

    /// The interface a frame leaves by.
    #[inline]
    pub fn choose(&self, frame: &[u8]) -> Interface {
        let is_kpio = match self.choice {
            Mux::Both | Mux::KpioOnly => true,
            Mux::DescriptorOnly => false,
            // A branch on the frame for every frame: that is the cost of the paper's second variant.
            Mux::ByPort(range) => tcp_destination_port(frame).is_some_and(|port| range.contains(port)),
        };
        if is_kpio { Interface::Kpio } else { Interface::Descriptor }
    }
}

impl<P: StorePort, M: DmaMemory, D: Doorbell> Transmit for TxKpioMux<P, M, D> {
    #[inline]
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        match self.choose(frame) {
            Interface::Kpio => self.kpio.try_send(frame),
            _ => self.descriptor.try_send(frame),
        }
    }

    /// Runs of frames for the same path go down it as bursts, so that descriptors keep their one doorbell a run.
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        let mut taken = 0;
        while let Some(first) = frames.get(taken) {
            let path = self.choose(first);
            let run = frames[taken..].iter().take_while(|frame| self.choose(frame) == path).count();
            let burst = &frames[taken..taken + run];
            let result = match path {
                Interface::Kpio => self.kpio.try_send_burst(burst),
                _ => self.descriptor.try_send_burst(burst),
            };
            match result {
                Ok(Taken(count)) => taken += count,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => return Ok(Taken(taken)),
            }
            if result != Ok(Taken(run)) {
                break;
            }
        }
        Ok(Taken(taken))
    }

    fn progress(&mut self) -> Result<(), TxError> {
        self.kpio.progress()?;
        self.descriptor.progress()
    }

    /// The longest frame that both paths carry.
    fn max_frame_bytes(&self) -> usize {
        self.kpio.max_frame_bytes().min(self.descriptor.max_frame_bytes())
    }

    fn is_idle(&self) -> bool {
        self.kpio.is_idle() && self.descriptor.is_idle()
    }

    /// Declares what kPIO+WC does, the more demanding of the two.
    fn declared(&self) -> Declared {
        self.kpio.declared()
    }
}
