//! What an interface does not bear, shown: the disorder that `mmio` recovers from corrupts kPIO+WC.
//!
//! kPIO+WC declares that its lines must arrive whole and in order (Larsen & Lee, NAS'15, §III.A: the driver "has full
//! control of the order among WC buffers"). Where a CPU or a fabric does not keep that promise, frames go out
//! corrupted; nothing in the format can tell.

use beeline_contract_memory::Tolerance;
use beeline_driver::{Sent, Transmit, TxQueueConfig};
use beeline_spec::Interface;

use super::exchange::take_all;
use super::frames::{frame, padded};
use super::{Disorder, Reception, Setup};
use crate::Rig;

/// Sends frames behind an adversary that lets whole lines overtake each other inside eight lines, and counts those that
/// arrive as they were sent, in their place: (right, sent).
///
/// # Panics
/// If the queue cannot be used at all.
pub fn right_under_disorder<R: Rig>(rig: &mut R, interface: Interface, seed: u64) -> (usize, usize) {
    let disorder = Disorder::Beyond(Tolerance { span_lines: 8, split_lines: false }, seed);
    let setup = Setup::new(interface, disorder, Reception::Ring);
    let (mut tx, mut rx) = (setup.transmit(rig, 0, TxQueueConfig::default()), setup.receive(rig, 1));
    let multiple_bytes = tx.declared().frame_multiple_bytes();
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for number in 0..200 {
        let frame = frame(number, 100 + 10 * (number % 30));
        if tx.try_send(&frame) == Ok(Sent::Sent) {
            sent.push(padded(&frame, multiple_bytes));
        }
        rig.step().expect("the port lives");
        take_all(&mut rx, &mut received);
    }
    for _ in 0..200 {
        tx.progress().expect("the device counts right");
        rig.step().expect("the port lives");
        take_all(&mut rx, &mut received);
    }
    let right = sent.iter().zip(&received).filter(|(sent, received)| sent == received).count();
    let count = sent.len();
    (right, count)
}
