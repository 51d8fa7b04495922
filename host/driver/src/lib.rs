//! The host half of every interface of a Beeline NIC: bring-up, transmit, receive.
//!
//! A [`Port`] brings a device up and opens queues; a transmit queue ([`TxMmio`], [`TxKpio`], [`TxDescriptor`],
//! [`TxKpioMux`], [`TxInline`], [`TxEnso`], [`TxNiq`], [`TxCoherent`]) takes frames, a receive queue ([`RxRing`],
//! [`RxDescriptor`], [`RxEnso`] alone or with others in [`EnsoReceiver`], [`RxNiq`], [`RxCoherent`]) yields them in place. Everything is a
//! non-blocking state machine over the traits of `contract/link`: it knows no link, reads no clock, never waits, and
//! allocates nothing per frame, so that the same code runs on shared memory, on a real BAR and in virtual time.
//!
//! The device is not trusted. Counts, lengths and headers it writes are read once and checked; what is wrong comes back
//! as an error with the numbers, never as a panic, a hang or an access outside a ring.
//!
//! Not here: waiting (the caller's), messages and credits (`host/window`), stores (`os/mmio`), what the device does
//! (`nic/model`). From: `api/rust` and `app/beeline`. To: a link. Papers: HotOS'25 §3 and figure 1 (`mmio`,
//! `descriptor`), kPIO+WC §III (`kpio`, multiplexer), HotOS'25 §2.4 (`inline`), OSDI'23 (`enso`), ATC'13 (`niq`), ASPLOS'24
//! (`coherent`).
#![forbid(unsafe_code)]

mod bring_up;
mod buffer_pool;
mod choice;
mod coherent_queues;
mod config;
mod credits;
mod enso_receiver;
mod entry;
mod entry_queues;
mod error;
mod frame_buffer;
mod half;
mod long_frames;
mod mux;
mod port;
mod queues;
mod receive;
mod rx_coherent;
mod rx_descriptor;
mod rx_enso;
mod rx_niq;
mod rx_pipe;
mod rx_ring;
mod script;
mod status;
mod transmit;
mod tx_coherent;
mod tx_descriptor;
mod tx_enso;
mod tx_inline;
mod tx_kpio;
mod tx_mmio;
mod tx_niq;

pub use beeline_window::{FencePolicy, Sent};
pub use choice::{Choice, OnHalf};
pub use config::{
    Batching, CoherentConfig, CreditCoalescing, DescriptorConfig, EnsoConfig, InlineConfig,
    InterruptModeration, KpioConfig, LongFrameConfig, MmioConfig, Mux, NiqConfig, PortConfig, PortRange,
    RxCoherentConfig, RxDescriptorConfig, RxEnsoConfig, RxEnsoMemberConfig, RxNiqConfig, RxRingConfig,
    TxQueueConfig,
};
pub use credits::DmaCredits;
pub use enso_receiver::{EnsoReceiver, JoinError, RxEnsoMember};
pub use error::{Must, PortError, RxError, TxError};
pub use half::{Epoch, QueueHalf, Stopped};
pub use mux::TxKpioMux;
pub use port::{Causes, Pending, Port, PortState, Progress, RegisterValue};
pub use receive::{Receive, RxFrame};
pub use rx_coherent::RxCoherent;
pub use rx_descriptor::RxDescriptor;
pub use rx_enso::RxEnso;
pub use rx_niq::RxNiq;
pub use rx_ring::RxRing;
pub use status::{FailureCause, QueueStatus};
pub use transmit::{Declared, Transmit};
pub use tx_coherent::TxCoherent;
pub use tx_descriptor::TxDescriptor;
pub use tx_enso::TxEnso;
pub use tx_inline::TxInline;
pub use tx_kpio::TxKpio;
pub use tx_mmio::TxMmio;
pub use tx_niq::TxNiq;
