//! Where programs find each other, and what they can open there.

use std::path::PathBuf;
use std::sync::OnceLock;

use beeline_domain::{DomainConfig, WindowOptions, connect_window, offer_window};
use beeline_driver::FencePolicy;
use beeline_link_shm::{ShmLink, ShmOptions};
use beeline_mmio::{StoreKernel, Traffic};
use beeline_rpc::shm::{Client, ClientOptions, Server, ServerOptions, Worker};
use beeline_spec::{Interface, Stores};
use beeline_window::WaitPolicy;

use crate::{ConnectError, NicPort, OfferError, OpenError, PortError, Receiver, Sender, Target};

/// The programs of one user that meet under a name. Clones are the same one; what was opened in it keeps it open.
#[derive(Clone, Debug)]
pub struct Domain {
    inner: beeline_domain::Domain,
    name: String,
}

/// The window a receiver offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// Lines of 64 bytes, a power of two. The longest message must fit, with 8 bytes of header.
    pub lines: u32,
    pub wait: WaitPolicy,
}

impl Default for ReceiverOptions {
    /// 1 MiB; looks, then sleeps.
    fn default() -> Self {
        ReceiverOptions { lines: 16 * 1024, wait: WaitPolicy::default() }
    }
}

/// How a sender stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// What the store instructions are chosen for.
    pub traffic: Traffic,
    /// Where the sender fences; nowhere, unless you want to see what it costs.
    pub fences: FencePolicy,
    /// How the sender waits for room.
    pub wait: WaitPolicy,
}

impl Default for SenderOptions {
    /// Lowest latency, no fences; looks, then sleeps.
    fn default() -> Self {
        SenderOptions { traffic: Traffic::Latency, fences: FencePolicy::None, wait: WaitPolicy::default() }
    }
}

/// How a port of a NIC is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortOptions {
    /// How frames are handed to the NIC.
    pub interface: Interface,
    /// Whether the NIC gives every frame of this port back to it instead of to the others.
    pub loop_back: bool,
    /// How the program waits for frames and for room.
    pub wait: WaitPolicy,
}

impl Default for PortOptions {
    /// `mmio`, joined to the other ports; looks, then sleeps.
    fn default() -> Self {
        PortOptions { interface: Interface::Mmio, loop_back: false, wait: WaitPolicy::default() }
    }
}

impl Domain {
    /// Opens this user's domain of that name, making it if it is not there. It lies in the
    /// folder that `BEELINE_ROOT` names, or in `/tmp/beeline-<uid>`.
    ///
    /// # Errors
    /// The name is not one, or the folder cannot be made or is not this user's alone.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Self::open_with(DomainConfig::named(name))
    }

    /// As [`Domain::open`], in a folder of your own.
    ///
    /// # Errors
    /// As [`Domain::open`].
    pub fn open_in(root: impl Into<PathBuf>, name: &str) -> Result<Self, OpenError> {
        Self::open_with(DomainConfig { root: Some(root.into()), name: name.to_owned() })
    }

    fn open_with(config: DomainConfig) -> Result<Self, OpenError> {
        match beeline_domain::Domain::open(&config) {
            Ok(inner) => Ok(Domain { inner, name: config.name }),
            Err(error) => Err(OpenError::new(config.name, error)),
        }
    }

    /// Returns the name the domain was opened with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offers a window of 1 MiB under `name`. Does not wait for a sender; receiving does.
    ///
    /// # Errors
    /// Somebody offers the name already.
    pub fn receiver(&self, name: &str) -> Result<Receiver, OfferError> {
        self.receiver_with(name, ReceiverOptions::default())
    }

    /// As [`Domain::receiver`], with options.
    ///
    /// # Errors
    /// As [`Domain::receiver`]; an option is out of bounds, or memory of that kind cannot be had.
    pub fn receiver_with(&self, name: &str, options: ReceiverOptions) -> Result<Receiver, OfferError> {
        let window = WindowOptions { lines: options.lines, ..WindowOptions::default() };
        let listener = offer_window(&self.inner, name, window)
            .map_err(|error| OfferError::window(Target::Window(name.to_owned()), error))?;
        Ok(Receiver::new(listener, options.wait))
    }

    /// Becomes the sender of the window that a receiver offers under `name`.
    ///
    /// # Errors
    /// Nobody offers it, or it has a sender.
    pub fn sender(&self, name: &str) -> Result<Sender, ConnectError> {
        self.sender_with(name, SenderOptions::default())
    }

    /// As [`Domain::sender`], with options.
    ///
    /// # Errors
    /// As [`Domain::sender`].
    pub fn sender_with(&self, name: &str, options: SenderOptions) -> Result<Sender, ConnectError> {
        let inner = beeline_domain::SenderOptions::with_kernel(kernel_for(options.traffic));
        let parts = connect_window(&self.inner, name, inner)
            .map_err(|error| ConnectError::window(Target::Window(name.to_owned()), error))?;
        Ok(Sender::new(parts, options))
    }

    /// Opens a port of the NIC called `nic`, ready to send and receive.
    ///
    /// # Errors
    /// There is no such NIC, or it cannot be used.
    pub fn port(&self, nic: &str) -> Result<NicPort, PortError> {
        self.port_with(nic, PortOptions::default())
    }

    /// As [`Domain::port`], with options.
    ///
    /// # Errors
    /// As [`Domain::port`].
    pub fn port_with(&self, nic: &str, options: PortOptions) -> Result<NicPort, PortError> {
        let shm = ShmOptions {
            service: nic.to_owned(),
            kernel: match options.interface.stores() {
                Stores::InOrder => StoreKernel::IN_ORDER,
                Stores::AnyOrder | Stores::None => kernel_for(Traffic::Latency),
            },
            loop_back: options.loop_back,
            ..ShmOptions::default()
        };
        let link = ShmLink::connect(&self.inner, &shm).map_err(|error| PortError::connect(nic, error))?;
        NicPort::bring_up(link, options)
    }

    /// Offers calls under `name`: the server, to be kept, and one worker, to be polled or given a thread.
    ///
    /// # Errors
    /// Somebody offers the name already.
    pub fn server(&self, name: &str) -> Result<(Server, Worker), OfferError> {
        let (server, mut workers) = self.server_with(name, ServerOptions::default())?;
        let worker = workers.pop().expect("a server has a worker unless asked for more");
        Ok((server, worker))
    }

    /// As [`Domain::server`], with options; as many workers as they say share every client's requests.
    ///
    /// # Errors
    /// As [`Domain::server`]; an option is out of bounds.
    pub fn server_with(
        &self,
        name: &str,
        options: ServerOptions,
    ) -> Result<(Server, Vec<Worker>), OfferError> {
        Server::offer(&self.inner, name, options)
            .map_err(|error| OfferError::server(Target::Server(name.to_owned()), error))
    }

    /// Becomes a client of the server that offers calls under `name`.
    ///
    /// # Errors
    /// Nobody offers it.
    pub fn client(&self, name: &str) -> Result<Client, ConnectError> {
        self.client_with(name, ClientOptions::default())
    }

    /// As [`Domain::client`], with options.
    ///
    /// # Errors
    /// As [`Domain::client`]; an option is out of bounds.
    pub fn client_with(&self, name: &str, options: ClientOptions) -> Result<Client, ConnectError> {
        Client::connect(&self.inner, name, options)
            .map_err(|error| ConnectError::client(Target::Server(name.to_owned()), error))
    }
}

/// The store kernel for a kind of traffic. Timed once for each: it takes milliseconds and the machine does not change.
fn kernel_for(traffic: Traffic) -> StoreKernel {
    static LATENCY: OnceLock<StoreKernel> = OnceLock::new();
    static STREAM: OnceLock<StoreKernel> = OnceLock::new();
    let known = match traffic {
        Traffic::Latency => &LATENCY,
        Traffic::Stream => &STREAM,
    };
    *known.get_or_init(|| StoreKernel::choose(traffic))
}
