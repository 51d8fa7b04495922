//! Which types go to other threads and which are shared, checked when this is compiled. It is part of what the crate promises.

use crate::{
    Batch, Domain, Error, Message, MessageRef, Receiver, ReceiverOptions, Reservation, Sender, SenderOptions,
};

const fn sends<T: Send>() {}
const fn shares<T: Sync>() {}

/// Handles go to another thread; each has one owner at a time.
const _: () = {
    sends::<Domain>();
    sends::<Receiver>();
    sends::<Sender>();
    sends::<Message<'_>>();
    sends::<MessageRef<'_, '_>>();
    sends::<Reservation<'_>>();
    sends::<Batch<'_>>();
    sends::<Error>();
};

/// What threads share: a domain, options and errors.
const _: () = {
    shares::<Domain>();
    shares::<ReceiverOptions>();
    shares::<SenderOptions>();
    shares::<Error>();
};

#[cfg(feature = "nic")]
const _: () = sends::<crate::NicPort>();

#[cfg(feature = "rpc")]
const _: () = {
    sends::<crate::rpc::Server>();
    shares::<crate::rpc::Server>();
    sends::<crate::rpc::Worker>();
    sends::<crate::rpc::Client>();
};
