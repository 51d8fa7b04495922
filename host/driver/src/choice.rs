//! A transmit queue by an interface that is chosen while the program runs.
//!
//! Every interface's half is a type of its own, so that nothing of a hot loop goes through a table. Who is told the
//! interface by a user writes the loop once, as an [`OnHalf`], and [`Choice::half`] runs it with the half that was chosen.

use beeline_contract_link::Link;
use beeline_contract_memory::Adversary;
use beeline_spec::Interface;

use crate::coherent::settings::CoherentConfig;
use crate::descriptor::settings::DescriptorConfig;
use crate::enso::settings::EnsoConfig;
use crate::error::PortError;
use crate::inline::settings::InlineConfig;
use crate::kpio::settings::KpioConfig;
use crate::mmio::settings::MmioConfig;
use crate::niq::settings::NiqConfig;
use crate::port::Port;
use crate::port::half::{QueueHalf, Stopped};
use crate::transmit::Transmit;

/// What is done with the half that was chosen.
pub trait OnHalf<H> {
    /// What it yields.
    type Output;

    /// Gets back whoever has the port, and a half whose queue is not started.
    fn run<T: Transmit + QueueHalf + 'static>(self, holder: H, half: Stopped<T>) -> Self::Output;
}

/// An interface, and how each would be configured.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The one that is used.
    pub interface: Interface,
    /// Seed of the ordering adversary, if it is to stand before the window; interfaces without a window have none.
    pub adversary: Option<u64>,
    pub mmio: MmioConfig,
    pub kpio: KpioConfig,
    pub descriptor: DescriptorConfig,
    pub inline: InlineConfig,
    pub enso: EnsoConfig,
    pub niq: NiqConfig,
    pub coherent: CoherentConfig,
}

impl Choice {
    /// The interface as it is used; `random` is unpredictable, for the blank of windows that have one.
    pub fn of(interface: Interface, random: u64) -> Self {
        Choice {
            interface,
            adversary: None,
            mmio: MmioConfig { random, ..MmioConfig::default() },
            kpio: KpioConfig { random, ..KpioConfig::default() },
            descriptor: DescriptorConfig::default(),
            inline: InlineConfig { random, ..InlineConfig::default() },
            enso: EnsoConfig::default(),
            niq: NiqConfig { random, ..NiqConfig::default() },
            coherent: CoherentConfig::default(),
        }
    }

    /// Makes the half of a queue and runs `job` with it. `port` finds the port in what holds it, which the job gets back.
    ///
    /// # Errors
    /// As [`Port::mmio`] and its like.
    pub fn half<H, L: Link, J: OnHalf<H>>(
        &self,
        mut holder: H,
        port: impl FnOnce(&mut H) -> &mut Port<L>,
        queue: u32,
        job: J,
    ) -> Result<J::Output, PortError>
    where
        L::Window: 'static,
        L::Memory: 'static,
        L::Doorbell: 'static,
    {
        let ways = port(&mut holder);
        // One arm a type: with the adversary a window is another one.
        macro_rules! behind {
            ($plain:ident, $behind:ident, $config:expr) => {
                match self.adversary {
                    None => {
                        let half = ways.$plain(queue, $config)?;
                        job.run(holder, half)
                    }
                    Some(seed) => {
                        let wrap = |window, bears| Adversary::new(window, bears, seed);
                        let half = ways.$behind(queue, $config, wrap)?;
                        job.run(holder, half)
                    }
                }
            };
        }
        Ok(match self.interface {
            Interface::Mmio => behind!(mmio, mmio_behind, self.mmio),
            Interface::Kpio => behind!(kpio, kpio_behind, self.kpio),
            Interface::Inline => behind!(inline, inline_behind, self.inline),
            Interface::Niq => behind!(niq, niq_behind, self.niq),
            Interface::Descriptor => {
                let half = ways.descriptor(queue, self.descriptor)?;
                job.run(holder, half)
            }
            Interface::Enso => {
                let half = ways.enso(queue, self.enso)?;
                job.run(holder, half)
            }
            Interface::Coherent => {
                let half = ways.coherent(queue, self.coherent)?;
                job.run(holder, half)
            }
        })
    }
}
