//! A transmit queue by an interface that is chosen while the program runs.
//!
//! Every interface's half is a type of its own, so that nothing of a hot loop goes through a table. Who is told the
//! interface by a user writes the loop once, as an [`OnHalf`], and [`Choice::half`] runs it with the half that was
//! chosen.

use beeline_contract_link::Link;
use beeline_contract_memory::{Adversary, Tolerance};
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

/// A computation on a half whose type is chosen at run time.
pub trait OnHalf<H> {
    /// Result of [`OnHalf::run`].
    type Output;

    /// Gets back whoever has the port, and a half whose queue is not started.
    fn run<T: Transmit + QueueHalf + 'static>(self, holder: H, half: Stopped<T>) -> Self::Output;
}

/// What is done with the half that was chosen, where the half may go to another thread.
pub trait OnSendHalf<H> {
    /// Result of [`OnSendHalf::run`].
    type Output;

    /// Runs with the chosen half; `holder` is what the port was found in.
    fn run<T: Transmit + QueueHalf + Send + 'static>(self, holder: H, half: Stopped<T>) -> Self::Output;
}

/// The one list of the driver's interfaces. Each row: the interface; the method of [`Port`] that makes its half, which
/// is also its field in [`Choice`]; its settings, with `random` where they take it; and of an interface with a window
/// the method that puts the adversary before it. `$then!` is given the rows, behind what else it was given.
macro_rules! interfaces {
    ($then:ident!($($given:tt)*)) => {
        $then! { ($($given)*)
            Mmio mmio: MmioConfig { random } mmio_behind;
            Kpio kpio: KpioConfig { random } kpio_behind;
            Descriptor descriptor: DescriptorConfig {};
            Inline inline: InlineConfig { random } inline_behind;
            Enso enso: EnsoConfig {};
            Niq niq: NiqConfig { random } niq_behind;
            Coherent coherent: CoherentConfig {};
        }
    };
}

macro_rules! declare_choice {
    (() $($interface:ident $half:ident: $config:ident { $($random:ident)? } $($behind:ident)?;)*) => {
        /// An interface, and how each would be configured.
        #[derive(Clone, Copy, Debug)]
        pub struct Choice {
            /// The one that is used.
            pub interface: Interface,
            /// Seed of the ordering adversary, if it is to stand before the window; interfaces without a window have
            /// none.
            pub adversary: Option<u64>,
            /// What the adversary does; `None`: as much as the interface declares that it bears.
            pub tolerance: Option<Tolerance>,
            $(pub $half: $config,)*
        }

        impl Choice {
            /// The interface as it is used; `random` is unpredictable, for the blank of windows that have one.
            pub fn of(interface: Interface, random: u64) -> Self {
                Choice {
                    interface,
                    adversary: None,
                    tolerance: None,
                    $($half: $config { $($random: random,)? ..$config::default() },)*
                }
            }
        }
    };
}

interfaces!(declare_choice!());

/// Makes the half of `$choice`'s interface and runs the job with it: one arm a type, because with the adversary a
/// window is another one.
macro_rules! run_with_half {
    (
        ($choice:ident, $holder:ident, $port:ident, $queue:ident, $job:ident)
        $($interface:ident $half:ident: $config:ident { $($random:ident)? } $($behind:ident)?;)*
    ) => {
        match $choice.interface {
            $(Interface::$interface => {
                $(
                    if let Some(seed) = $choice.adversary {
                        let tolerance = $choice.tolerance;
                        let wrap = |window, bears| Adversary::new(window, tolerance.unwrap_or(bears), seed);
                        let half = $port.$behind($queue, $choice.$half, wrap)?;
                        return Ok($job.run($holder, half));
                    }
                )?
                let half = $port.$half($queue, $choice.$half)?;
                Ok($job.run($holder, half))
            })*
        }
    };
}

impl Choice {
    /// Makes the half of a queue and runs `job` with it. `port` finds the port in what holds it, which the job gets
    /// back.
    ///
    /// # Errors
    /// Those of the method that makes the half, such as [`Port::mmio`].
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
        let (choice, port) = (self, port(&mut holder));
        interfaces!(run_with_half!(choice, holder, port, queue, job))
    }

    /// As [`Choice::half`], over a link whose parts may go to another thread, and so may the half.
    ///
    /// # Errors
    /// Those of the method that makes the half, such as [`Port::mmio`].
    pub fn send_half<H, L: Link, J: OnSendHalf<H>>(
        &self,
        mut holder: H,
        port: impl FnOnce(&mut H) -> &mut Port<L>,
        queue: u32,
        job: J,
    ) -> Result<J::Output, PortError>
    where
        L::Window: Send + 'static,
        L::Memory: Send + 'static,
        L::Doorbell: Send + 'static,
    {
        let (choice, port) = (self, port(&mut holder));
        interfaces!(run_with_half!(choice, holder, port, queue, job))
    }
}
