//! The one list of the model's transmit engines, and what is the same for all of them.
//!
//! A queue has one interface, and the engine of that interface has its frames. Each call here is one `match` on the
//! interface, or goes over all engines in the order of the list; nothing goes through a table. Not here: what is peculiar to
//! one interface (`mmio` cuts through, `coherent` watches lines), and the receive engine, which is nobody's interface.

use beeline_contract_device::{Accept, DmaError, QueueId, SimTime, Write};
use beeline_spec::Interface;

use crate::NicConfig;
use crate::coherent::CoherentEngine;
use crate::descriptor::DescriptorEngine;
use crate::engine::{Cause, Engine, FetchEngine, FrameSource, QueueSettings, Shared, WindowEngine};
use crate::enso::EnsoEngine;
use crate::inline::InlineEngine;
use crate::kpio::KpioEngine;
use crate::mmio::MmioEngine;
use crate::niq::NiqEngine;

/// The first expression for `yes`, the second for `no`.
macro_rules! when {
    (yes, $then:expr, $otherwise:expr) => {
        $then
    };
    (no, $then:expr, $otherwise:expr) => {
        $otherwise
    };
}

macro_rules! engines {
    ($(
        $interface:ident $field:ident: $engine:ident,
        window: $window:ident, doorbell: $doorbell:ident, reads_memory: $reads_memory:ident;
    )*) => {
        /// The transmit engines.
        #[derive(Debug)]
        pub(crate) struct Engines {
            $(pub(crate) $field: $engine,)*
        }

        impl Engines {
            /// Engines with no queue started.
            pub(crate) fn new(config: &NicConfig) -> Self {
                Engines { $($field: $engine::new(config),)* }
            }

            /// Whether queues of an interface take writes in a window.
            pub(crate) const fn have_window(interface: Interface) -> bool {
                match interface {
                    $(Interface::$interface => when!($window, true, false),)*
                }
            }

            /// Whether its engine reads host memory, and so has something to do between the frames.
            #[inline]
            pub(crate) const fn read_memory(interface: Interface) -> bool {
                match interface {
                    $(Interface::$interface => when!($reads_memory, true, false),)*
                }
            }

            /// [`FrameSource::head`] of the queue's engine.
            #[inline]
            pub(crate) fn head(&mut self, queue: QueueId, interface: Interface) -> Option<&[u8]> {
                match interface {
                    $(Interface::$interface => self.$field.head(queue),)*
                }
            }

            /// [`FrameSource::head_bytes`] of the queue's engine.
            #[inline]
            pub(crate) fn head_bytes(&self, queue: QueueId, interface: Interface) -> Option<u32> {
                match interface {
                    $(Interface::$interface => self.$field.head_bytes(queue),)*
                }
            }

            /// [`FrameSource::pop`] of the queue's engine.
            #[inline]
            pub(crate) fn pop(&mut self, queue: QueueId, interface: Interface, shared: &mut Shared) {
                match interface {
                    $(Interface::$interface => self.$field.pop(queue, shared),)*
                }
            }

            /// [`WindowEngine::write_arrived`] of the queue's engine; also whether it now has something to do. A queue without
            /// a window is not written to.
            #[inline]
            pub(crate) fn write_arrived(
                &mut self,
                queue: QueueId,
                interface: Interface,
                offset: u64,
                write: Write<'_>,
                shared: &mut Shared,
            ) -> (Accept, bool) {
                match interface {
                    $(Interface::$interface => when!(
                        $window,
                        {
                            let (data, enables) = (write.data, write.enables);
                            let accept = self.$field.write_arrived(queue, offset, data, enables, shared);
                            (accept, when!($reads_memory, self.$field.has_work(), false))
                        },
                        (Accept::Taken, false)
                    ),)*
                }
            }

            /// [`FetchEngine::doorbell`] of the queue's engine; where it has none, nothing happens.
            pub(crate) fn doorbell(
                &mut self,
                queue: QueueId,
                interface: Interface,
                tail: u64,
                shared: &mut Shared,
            ) {
                match interface {
                    $(Interface::$interface => when!($doorbell, self.$field.doorbell(queue, tail, shared), {}),)*
                }
            }

            /// [`Engine::start`] of the engine that the settings name.
            pub(crate) fn start(
                &mut self,
                queue: QueueId,
                settings: &QueueSettings,
                shared: &mut Shared,
            ) -> Result<(), Cause> {
                match settings.interface {
                    $(Some(Interface::$interface) => self.$field.start(queue, settings, shared),)*
                    None => Ok(()),
                }
            }

            /// [`Engine::stop`] of every engine: only one has the queue.
            pub(crate) fn stop(&mut self, queue: QueueId, shared: &mut Shared) {
                $(self.$field.stop(queue, shared);)*
            }

            /// [`Engine::quarantine`] of the queue's engine.
            pub(crate) fn quarantine(&mut self, queue: QueueId, interface: Interface, shared: &mut Shared) {
                match interface {
                    $(Interface::$interface => self.$field.quarantine(queue, shared),)*
                }
            }

            /// [`Engine::progress`] of every engine.
            #[inline]
            pub(crate) fn progress(&mut self, shared: &mut Shared) {
                $(self.$field.progress(shared);)*
            }

            /// Tells the time to every engine that asked for it; whether one did.
            #[inline]
            pub(crate) fn wake(&mut self, now: SimTime, shared: &mut Shared) -> bool {
                let mut woken = false;
                $(woken |= wake(&mut self.$field, now, shared);)*
                woken
            }

            /// When the first of the engines that read no memory wants to be told the time.
            #[inline]
            pub(crate) fn earliest_without_memory(&self) -> SimTime {
                let mut earliest = crate::deadlines::NEVER;
                $(when!($reads_memory, (), earliest = earliest.min(self.$field.wake_at()));)*
                earliest
            }

            /// When the first of those that do wants to be told the time.
            #[inline]
            pub(crate) fn earliest_with_memory(&self) -> SimTime {
                let mut earliest = crate::deadlines::NEVER;
                $(when!($reads_memory, earliest = earliest.min(self.$field.wake_at()), ());)*
                earliest
            }

            /// [`Engine::dma_completed`] of the engine that asked.
            #[inline]
            pub(crate) fn dma_completed(
                &mut self,
                interface: Interface,
                tag: u16,
                data: Result<&[u8], DmaError>,
                shared: &mut Shared,
            ) {
                match interface {
                    $(Interface::$interface => self.$field.dma_completed(tag, data, shared),)*
                }
            }
        }
    };
}

engines! {
    Mmio mmio: MmioEngine, window: yes, doorbell: no, reads_memory: no;
    Kpio kpio: KpioEngine, window: yes, doorbell: no, reads_memory: no;
    Descriptor descriptor: DescriptorEngine, window: no, doorbell: yes, reads_memory: yes;
    Inline inline: InlineEngine, window: yes, doorbell: yes, reads_memory: yes;
    Enso enso: EnsoEngine, window: no, doorbell: yes, reads_memory: yes;
    Niq niq: NiqEngine, window: yes, doorbell: no, reads_memory: yes;
    Coherent coherent: CoherentEngine, window: no, doorbell: no, reads_memory: yes;
}

/// Tells an engine the time if it asked for that; whether it did.
#[inline]
pub(crate) fn wake(engine: &mut impl Engine, now: SimTime, shared: &mut Shared) -> bool {
    let is_due = engine.wake_at() <= now;
    if is_due {
        engine.time_passed(shared);
    }
    is_due
}
