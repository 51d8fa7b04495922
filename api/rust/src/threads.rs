//! Which types go to other threads and which are shared, checked when this is compiled. It is part of what the crate promises.

use crate::{
    Admissions, Admitted, Batch, ByteReceiver, ByteSender, CallbackThread, Domain, Error, Event, Message,
    MessageRef, Notifier, Polled, Receiver, ReceiverArena, ReceiverOptions, ReceiverSet, Reservation, Sender,
    SenderArena, SenderOptions, Shared, Subscriber, Subscription, Token,
};

const fn sends<T: Send>() {}
const fn shares<T: Sync>() {}

/// Handles go to another thread; each has one owner at a time. Whether they are `Sync` is not promised: what they do takes
/// `&mut self`. A frame stays in the thread of its port.
const _: () = {
    sends::<Domain>();
    sends::<Receiver>();
    sends::<Sender>();
    sends::<Message<'_>>();
    sends::<MessageRef<'_>>();
    sends::<Reservation<'_>>();
    sends::<Batch<'_>>();
    sends::<Polled<Receiver>>();
    sends::<ByteReceiver>();
    sends::<ByteSender>();
    sends::<Polled<ByteReceiver>>();
    sends::<Shared<ByteSender>>();
    sends::<ReceiverSet>();
    sends::<Polled<ReceiverSet>>();
    sends::<Notifier>();
    sends::<Subscriber>();
    sends::<Subscription>();
    sends::<CallbackThread>();
    sends::<Event>();
    sends::<ReceiverArena>();
    sends::<Polled<ReceiverArena>>();
    sends::<SenderArena>();
    sends::<Admissions>();
    sends::<Admitted>();
    sends::<Token>();
    sends::<Error>();
};

/// What threads share: a domain, what signals another thread, options and errors.
const _: () = {
    shares::<Domain>();
    shares::<Shared<ByteSender>>();
    shares::<Notifier>();
    shares::<Subscriber>();
    shares::<Subscription>();
    shares::<ReceiverArena>();
    shares::<SenderArena>();
    shares::<Admissions>();
    shares::<Admitted>();
    shares::<Event>();
    shares::<ReceiverOptions>();
    shares::<SenderOptions>();
    shares::<Error>();
};

#[cfg(feature = "nic")]
const _: () = {
    sends::<crate::NicPort>();
    sends::<Polled<crate::NicPort>>();
    sends::<crate::PortOptions>();
    shares::<crate::PortOptions>();
};

#[cfg(feature = "rpc")]
const _: () = {
    sends::<crate::rpc::Server>();
    shares::<crate::rpc::Server>();
    sends::<crate::rpc::Worker>();
    sends::<crate::rpc::Client>();
    sends::<crate::ServerOptions>();
    shares::<crate::ServerOptions>();
    sends::<crate::ClientOptions>();
    shares::<crate::ClientOptions>();
};
