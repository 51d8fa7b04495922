//! The registers a host writes: kept raw, decoded when a queue starts.
//!
//! Offsets and fields come from `spec/nic.rdl`. Not here: what a write sets off ([`crate::Nic`]), and registers whose
//! value the device computes.

use beeline_contract_device::QueueId;
use beeline_spec::Interface;
use beeline_spec::regs::field::{
    credit_coalesce, cut_through, entry, moderation, notify_share as share, queue_control as c, ring_size,
    rx_mode, tx_push,
};
use beeline_spec::regs::{doorbell, queue as r};

use crate::config::CUT_THROUGH_LEAST_LINES;
use crate::engine::QueueSettings;

/// The writable registers of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueRegisters {
    pub control: u64,
    blank: u64,
    credit_address: u64,
    credit_coalesce: u64,
    hole_timeout_ns: u64,
    tx_ring_address: u64,
    tx_ring_entries: u64,
    tx_head_address: u64,
    tx_moderation: u64,
    rx_mode: u64,
    rx_ring_address: u64,
    rx_ring_entries: u64,
    rx_completion_address: u64,
    rx_moderation: u64,
    kpio_eop: u64,
    tx_push: u64,
    entry: u64,
    rx_notify_entries: u64,
    rx_notify_share: u64,
    cut_through: u64,
    tx_tail: u64,
    rx_freed: u64,
    entries_freed: u64,
}

impl QueueRegisters {
    /// Reset values.
    pub(crate) fn new() -> Self {
        QueueRegisters { control: c::WEIGHT_RESET << c::WEIGHT_LSB, ..QueueRegisters::default() }
    }

    /// A plain register of the queue's block, other than `control`.
    pub(crate) fn slot(&mut self, register: u32) -> Option<&mut u64> {
        Some(match register {
            r::BLANK => &mut self.blank,
            r::CREDIT_ADDRESS => &mut self.credit_address,
            r::CREDIT_COALESCE => &mut self.credit_coalesce,
            r::HOLE_TIMEOUT_NS => &mut self.hole_timeout_ns,
            r::TX_RING_ADDRESS => &mut self.tx_ring_address,
            r::TX_RING_ENTRIES => &mut self.tx_ring_entries,
            r::TX_HEAD_ADDRESS => &mut self.tx_head_address,
            r::TX_MODERATION => &mut self.tx_moderation,
            r::RX_MODE => &mut self.rx_mode,
            r::RX_RING_ADDRESS => &mut self.rx_ring_address,
            r::RX_RING_ENTRIES => &mut self.rx_ring_entries,
            r::RX_COMPLETION_ADDRESS => &mut self.rx_completion_address,
            r::RX_MODERATION => &mut self.rx_moderation,
            r::KPIO_EOP => &mut self.kpio_eop,
            r::TX_PUSH => &mut self.tx_push,
            r::ENTRY => &mut self.entry,
            r::RX_NOTIFY_ENTRIES => &mut self.rx_notify_entries,
            r::RX_NOTIFY_SHARE => &mut self.rx_notify_share,
            r::CUT_THROUGH => &mut self.cut_through,
            _ => return None,
        })
    }

    pub(crate) fn doorbell(&mut self, register: u32) -> Option<&mut u64> {
        match register {
            doorbell::TX_TAIL => Some(&mut self.tx_tail),
            doorbell::RX_FREED => Some(&mut self.rx_freed),
            doorbell::ENTRIES_FREED => Some(&mut self.entries_freed),
            _ => None,
        }
    }

    /// Whether the host wants the queue to run.
    pub(crate) fn is_enabled(&self) -> bool {
        self.control >> c::ENABLE_LSB & c::ENABLE_MASK == 1
    }

    /// The epoch of the control register.
    pub(crate) fn epoch(&self) -> u8 {
        (self.control >> c::EPOCH_LSB & c::EPOCH_MASK) as u8
    }

    /// Class and weight of the control register.
    pub(crate) fn priority(&self) -> (u8, u8) {
        let class = self.control >> c::CLASS_LSB & c::CLASS_MASK;
        let weight = self.control >> c::WEIGHT_LSB & c::WEIGHT_MASK;
        (class as u8, weight as u8)
    }

    /// Whether the interface of the control register is one that this device does not have.
    pub(crate) fn has_unknown_interface(&self) -> bool {
        let code = (self.control >> c::IFACE_LSB & c::IFACE_MASK) as u8;
        code != beeline_spec::formats::interface::NONE && Interface::from_code(code).is_none()
    }

    /// The queue whose notification ring is used, if it is another's.
    pub(crate) fn notify_owner(&self) -> Option<QueueId> {
        let is_shared = self.rx_notify_share >> share::SHARED_LSB & share::SHARED_MASK == 1;
        is_shared.then_some(QueueId((self.rx_notify_share >> share::OWNER_LSB & share::OWNER_MASK) as u16))
    }

    /// Whether frames leave with checksums filled in.
    fn fills_in_checksums(&self) -> bool {
        self.control >> c::CHECKSUMS_LSB & c::CHECKSUMS_MASK == 1
    }

    /// The threshold in force: none, or at least the least one.
    fn cut_through_lines(&self) -> u32 {
        match (self.cut_through >> cut_through::LINES_LSB & cut_through::LINES_MASK) as u32 {
            // A checksum stands in front of what it is of.
            _ if self.fills_in_checksums() => 0,
            0 => 0,
            lines => lines.max(CUT_THROUGH_LEAST_LINES),
        }
    }

    /// Everything decoded, for a queue that starts now.
    pub(crate) fn settings(&self, window_lines: u32) -> QueueSettings {
        let (lines, time) = (credit_coalesce::LINES_MASK, credit_coalesce::TIME_NS_MASK);
        let at_least_one = |value: u64| (value as u32).max(1);
        QueueSettings {
            interface: Interface::from_code((self.control >> c::IFACE_LSB & c::IFACE_MASK) as u8),
            epoch: self.epoch(),
            backpressure: self.control >> c::BACKPRESSURE_LSB & c::BACKPRESSURE_MASK == 1,
            checksums: self.fills_in_checksums(),
            window_lines,
            blank: self.blank,
            credit_address: self.credit_address,
            credit_lines: at_least_one(self.credit_coalesce >> credit_coalesce::LINES_LSB & lines),
            credit_time_ns: (self.credit_coalesce >> credit_coalesce::TIME_NS_LSB & time) as u32,
            hole_timeout_ns: self.hole_timeout_ns,
            cut_through_lines: self.cut_through_lines(),
            tx_ring_address: self.tx_ring_address,
            tx_ring_entries: (self.tx_ring_entries >> ring_size::ENTRIES_LSB & ring_size::ENTRIES_MASK)
                as u32,
            tx_head_address: self.tx_head_address,
            tx_moderation_frames: at_least_one(
                self.tx_moderation >> moderation::FRAMES_LSB & moderation::FRAMES_MASK,
            ),
            tx_moderation_ns: (self.tx_moderation >> moderation::TIME_NS_LSB & moderation::TIME_NS_MASK)
                as u32,
            rx_mode: (self.rx_mode >> rx_mode::MODE_LSB & rx_mode::MODE_MASK) as u8,
            rx_ring_address: self.rx_ring_address,
            rx_ring_entries: (self.rx_ring_entries >> ring_size::ENTRIES_LSB & ring_size::ENTRIES_MASK)
                as u32,
            rx_completion_address: self.rx_completion_address,
            rx_moderation_frames: at_least_one(
                self.rx_moderation >> moderation::FRAMES_LSB & moderation::FRAMES_MASK,
            ),
            rx_moderation_ns: (self.rx_moderation >> moderation::TIME_NS_LSB & moderation::TIME_NS_MASK)
                as u32,
            kpio_eop: self.kpio_eop,
            tx_self_test: (self.tx_push >> tx_push::SELF_TEST_LSB & tx_push::SELF_TEST_MASK) as u32,
            entry_lines: 1 << (self.entry >> entry::LINES_LOG2_LSB & entry::LINES_LOG2_MASK),
            entry_hold_ns: (self.entry >> entry::HOLD_NS_LSB & entry::HOLD_NS_MASK) as u32,
            rx_reads: self.rx_mode >> rx_mode::READS_LSB & rx_mode::READS_MASK == 1,
            rx_lines: self.rx_mode >> rx_mode::LINES_LSB & rx_mode::LINES_MASK == 1,
            rx_entry_lines: 1 << (self.rx_mode >> rx_mode::LINES_LOG2_LSB & rx_mode::LINES_LOG2_MASK),
            rx_notify_entries: (self.rx_notify_entries >> ring_size::ENTRIES_LSB & ring_size::ENTRIES_MASK)
                as u32,
            rx_notify_owner: self.notify_owner(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_starts_with_what_was_written() {
        let mut registers = QueueRegisters::new();
        registers.control = 1 | 3 << 4 | 0xa5 << 8 | 7 << 16 | 9 << 24 | 3 << 32;
        for (register, value) in [
            (r::CREDIT_COALESCE, 5 | 6 << 32),
            (r::TX_MODERATION, 0),
            (r::RX_MODERATION, 8 | 9 << 32),
            (r::RX_MODE, 2 | 1 << 5 | 2 << 8),
            (r::BLANK, 1 << 63),
            (r::TX_PUSH, 11),
            (r::ENTRY, 2 | 900 << 32),
            (r::RX_NOTIFY_ENTRIES, 16),
            (r::RX_NOTIFY_SHARE, 1 | 7 << 16),
            (r::CUT_THROUGH, 1),
        ] {
            *registers.slot(register).unwrap() = value;
        }
        let settings = registers.settings(64);
        assert_eq!(settings.interface, Some(Interface::Descriptor));
        assert_eq!((settings.epoch, settings.backpressure, settings.checksums), (0xa5, true, true));
        assert_eq!((settings.window_lines, settings.credit_lines, settings.credit_time_ns), (64, 5, 6));
        assert_eq!((settings.tx_moderation_frames, settings.tx_moderation_ns), (1, 0));
        assert_eq!((settings.rx_moderation_frames, settings.rx_moderation_ns), (8, 9));
        assert_eq!((settings.rx_mode, settings.blank), (2, 1 << 63));
        assert_eq!((settings.tx_self_test, settings.rx_notify_entries, settings.rx_reads), (11, 16, false));
        assert_eq!((settings.rx_lines, settings.rx_entry_lines), (true, 4));
        assert_eq!((settings.entry_lines, settings.entry_hold_ns), (4, 900));
        assert_eq!(settings.rx_notify_owner, Some(QueueId(7)));
        assert_eq!(settings.cut_through_lines, 0, "not with checksums");
        assert_eq!((registers.priority(), registers.is_enabled()), ((7, 9), true));
        assert_eq!(registers.slot(r::STATUS), None);
        registers.control ^= 1 << c::CHECKSUMS_LSB;
        assert_eq!(registers.settings(64).cut_through_lines, CUT_THROUGH_LEAST_LINES, "1 is too few");
    }
}
