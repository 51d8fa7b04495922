//! How a port of a NIC is opened and used.

use std::time::Duration;

use beeline_mmio::{StoreKernel, Traffic};
use beeline_spec::{Interface, Stores};
use beeline_tuning::kernel_for;
use beeline_window::WaitPolicy;

/// How long a NIC may take to come up, unless the program says how long opening may take.
const BRING_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// How a port of a NIC is used: by `mmio`, joined to the other ports; it looks, then sleeps. The NIC must be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct PortOptions {
    pub(crate) interface: Interface,
    pub(crate) loop_back: bool,
    pub(crate) wait: WaitPolicy,
    pub(crate) timeout: Duration,
    kernel: Option<StoreKernel>,
}

impl Default for PortOptions {
    fn default() -> Self {
        PortOptions {
            interface: Interface::Mmio,
            loop_back: false,
            wait: WaitPolicy::default(),
            timeout: Duration::ZERO,
            kernel: None,
        }
    }
}

impl PortOptions {
    /// The `mmio` interface, no loop-back, and a NIC that must be there already.
    pub fn new() -> Self {
        Self::default()
    }

    /// How frames are handed to the NIC.
    pub fn interface(mut self, interface: Interface) -> Self {
        self.interface = interface;
        self
    }

    /// Whether the NIC gives every frame of this port back to it instead of to the others.
    pub fn loop_back(mut self, loop_back: bool) -> Self {
        self.loop_back = loop_back;
        self
    }

    /// How the program waits for frames and for room.
    pub fn wait(mut self, policy: WaitPolicy) -> Self {
        self.wait = policy;
        self
    }

    /// How long opening may take: until a NIC that is not there yet is there, and has come up. By default it must be there already,
    /// and has 10 s to come up.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Stores with this kernel instead of the one that [`crate::Domain::sender`] finds. Interfaces that need their lines in order
    /// keep theirs.
    pub fn kernel(mut self, kernel: StoreKernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// How long opening a port of a NIC that is there may take.
    pub(crate) fn opening_timeout(&self) -> Duration {
        if self.timeout.is_zero() { BRING_UP_TIMEOUT } else { self.timeout }
    }

    pub(crate) fn store_kernel(&self) -> StoreKernel {
        match self.interface.stores() {
            Stores::InOrder => StoreKernel::IN_ORDER,
            Stores::AnyOrder | Stores::None => self.kernel.unwrap_or_else(|| kernel_for(Traffic::Latency)),
        }
    }
}
