//! The host half of every interface of a Beeline NIC: bring-up, transmit, receive.
//!
//! A [`Port`] brings a device up and opens queues; a transmit queue ([`TxMmio`], [`TxKpio`], [`TxDescriptor`],
//! [`TxKpioMux`], [`TxInline`], [`TxEnso`], [`TxNiq`], [`TxCoherent`]) takes frames, a receive queue ([`RxRing`],
//! [`RxDescriptor`], [`RxEnso`] alone or with others in [`EnsoReceiver`], [`RxNiq`], [`RxCoherent`]) yields them in
//! place. Everything is a non-blocking state machine over the traits of `contract/link`: it knows no link, reads no
//! clock, never waits, and allocates nothing per frame, so that the same code runs on shared memory, on a real BAR and
//! in virtual time.
//!
//! The device is not trusted. Counts, lengths and headers it writes are read once and checked; what is wrong comes back
//! as an error with the numbers, never as a panic, a hang or an access outside a ring.
//!
//! Not here: waiting (the caller's), messages and credits (`host/window`), stores (`os/mmio`), what the device does
//! (`nic/model`). From: `api/rust` and `app/beeline`. To: a link. Papers: HotOS'25 §3 and figure 1 (`mmio`,
//! `descriptor`), kPIO+WC §III (`kpio`, multiplexer), HotOS'25 §2.4 (`inline`), OSDI'23 (`enso`), ATC'13 (`niq`),
//! ASPLOS'24 (`coherent`).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod choice;
mod coherent;
mod descriptor;
mod enso;
mod error;
mod inline;
mod kpio;
mod mmio;
mod niq;
mod port;
mod receive;
mod transmit;

pub use beeline_window::{FencePolicy, Sent, Taken};
pub use choice::{Choice, OnHalf, OnSendHalf};
pub use coherent::receive::RxCoherent;
pub use coherent::settings::{CoherentConfig, RxCoherentConfig};
pub use coherent::transmit::TxCoherent;
pub use descriptor::receive::RxDescriptor;
pub use descriptor::settings::{DescriptorConfig, RxDescriptorConfig};
pub use descriptor::transmit::TxDescriptor;
pub use enso::receive::RxEnso;
pub use enso::receiver::{EnsoReceiver, JoinError, RxEnsoMember};
pub use enso::settings::{EnsoConfig, RxEnsoConfig, RxEnsoMemberConfig};
pub use enso::transmit::TxEnso;
pub use error::{Must, PortError, RxError, TxError};
pub use inline::settings::InlineConfig;
pub use inline::transmit::TxInline;
pub use kpio::mux::TxKpioMux;
pub use kpio::settings::KpioConfig;
pub use kpio::transmit::TxKpio;
pub use mmio::settings::{Batching, MmioConfig};
pub use mmio::transmit::TxMmio;
pub use niq::receive::RxNiq;
pub use niq::settings::{LongFrameConfig, NiqConfig, RxNiqConfig};
pub use niq::transmit::TxNiq;
pub use port::half::{Epoch, QueueHalf, Stopped};
pub use port::settings::{Mux, PortConfig, PortRange};
pub use port::status::{FailureCause, QueueStatus};
pub use port::{Causes, Pending, Port, PortState, Progress, RegisterValue};
pub use receive::ring::RxRing;
pub use receive::settings::{InterruptModeration, RxRingConfig};
pub use receive::{Receive, RxFrame};
pub use transmit::credits::DmaCredits;
pub use transmit::settings::{CreditCoalescing, TxQueueConfig};
pub use transmit::{Declared, Transmit};
