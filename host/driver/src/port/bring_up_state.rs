//! Where bring-up stands.

use crate::error::PortError;
use crate::port::script::Ticket;

/// Where bring-up stands. Each state has its operation under way and knows what to do with the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BringUp {
    New,
    Magic(Ticket),
    Version(Ticket),
    CapsPlace(Ticket),
    CapsWord { ticket: Ticket, next: u32, end: u32 },
    Enable(Ticket),
    Mac(Ticket),
    Ready,
    Failed(PortError),
}
