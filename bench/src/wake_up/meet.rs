//! A side before both are there, of whatever carrier.

use std::sync::mpsc::Sender;

use beeline_bench_echo::Failure;
use beeline_domain::{CallbackThread, Domain, DomainConfig};

use super::end::{End, Meet};
use super::interrupts;
use super::role::{Carrier, Role};

pub(super) enum Meeting {
    OfDomain(Meet),
    OfFabric(interrupts::Meet),
}

impl Meeting {
    /// The side that answers: the other one can connect.
    pub(super) fn answering(domain: &DomainConfig, role: Role) -> Result<Self, Failure> {
        match fabric(domain, role, false) {
            Some(meet) => meet,
            None => Ok(Meeting::OfDomain(Meet::answering(Domain::open(domain)?, role.carrier)?)),
        }
    }

    /// The side that asks.
    pub(super) fn asking(domain: &DomainConfig, role: Role) -> Result<Self, Failure> {
        match fabric(domain, role, true) {
            Some(meet) => meet,
            None => Ok(Meeting::OfDomain(Meet::asking(Domain::open(domain)?, role.carrier)?)),
        }
    }

    /// This side's end, once the other side is there too: that which answers comes first.
    pub(super) fn end(self) -> Result<Box<dyn End>, Failure> {
        match self {
            Meeting::OfDomain(meet) => meet.end(),
            Meeting::OfFabric(meet) => meet.end(),
        }
    }

    /// As [`Meet::callback`].
    pub(super) fn callback(self, echoed: Sender<Result<(), String>>) -> Result<CallbackThread, Failure> {
        match self {
            Meeting::OfDomain(meet) => meet.callback(echoed),
            Meeting::OfFabric(_) => Err("interrupts have no callbacks here".into()),
        }
    }
}

fn fabric(domain: &DomainConfig, role: Role, is_asking: bool) -> Option<Result<Meeting, Failure>> {
    let has_data = match role.carrier {
        Carrier::Interrupt => false,
        Carrier::DataInterrupt => true,
        Carrier::Notification | Carrier::EventFd | Carrier::SeqPacket => return None,
    };
    let meet = interrupts::Meet::new(domain.clone(), is_asking, has_data, role.waiting);
    Some(meet.map(Meeting::OfFabric))
}
