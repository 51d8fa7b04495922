//! What register accesses set off: the life of queues, quarantine, interrupts, reset.
//!
//! A queue runs while device and queue are enabled and it is not quarantined. A failed queue is quarantined: its writes
//! are dropped and counted until the host has disabled it and enables it with another epoch (docs/design.md, decision
//! 4), so that stores of the old life, which may still sit in a write-combining buffer, cannot pass for new ones. Not
//! here: what an engine keeps or drops when a queue stops.

use beeline_contract_device::QueueId;
use beeline_spec::regs::field::{caps_offset, control, magic, status, version};
use beeline_spec::regs::{self, doorbell, queue as r};

use crate::bar::Target;
use crate::engine::{Engine, IrqCause, ReceiveEngine};
use crate::interfaces::Engines;
use crate::kpio::Mux;
use crate::nic::Nic;
use crate::queue_state::Route;

impl Nic {
    fn is_enabled(&self) -> bool {
        self.control >> control::ENABLE_LSB & control::ENABLE_MASK == 1
    }

    fn all_queues(&self) -> impl Iterator<Item = QueueId> + use<> {
        (0..self.config.queues as u16).map(QueueId)
    }

    /// The value of what lies at an address; `None` when nothing does.
    pub(crate) fn read_register(&mut self, target: Target) -> Option<u64> {
        match target {
            Target::Device(offset) => self.read_device_register(offset),
            Target::Capability(index) => self.caps.get(index).copied(),
            Target::Counter(offset) => self.counters().at(offset),
            Target::Queue(queue, register) => {
                let state = &mut self.queues[usize::from(queue.0)];
                match register {
                    r::CONTROL => Some(state.registers.control),
                    r::STATUS => Some(state.status()),
                    r::WINDOW_LINES => Some(self.config.window_lines.into()),
                    r::NEXT_START => Some(self.engines.mmio.next_start(queue)),
                    _ => state.registers.slot(register).map(|slot| *slot),
                }
            }
            Target::Doorbell(queue, register) => {
                self.queues[usize::from(queue.0)].registers.doorbell(register).map(|slot| *slot)
            }
            Target::Nothing => None,
        }
    }

    fn read_device_register(&self, offset: u32) -> Option<u64> {
        Some(match offset {
            regs::MAGIC => magic::VALUE_RESET,
            regs::VERSION => {
                version::MAJOR_RESET << version::MAJOR_LSB | version::MINOR_RESET << version::MINOR_LSB
            }
            regs::CAPS => {
                let bytes = self.caps.len() as u64 * 8;
                u64::from(regs::CAPABILITIES) << caps_offset::OFFSET_LSB | bytes << caps_offset::BYTES_LSB
            }
            regs::CONTROL => self.control,
            regs::STATUS => {
                let attention = self.queues.iter().any(|queue| queue.failed.is_some());
                u64::from(self.is_enabled()) << status::ACTIVE_LSB
                    | u64::from(attention) << status::ATTENTION_LSB
            }
            regs::MUX_PORTS => self.mux_ports,
            regs::IRQ_MASK => self.shared.interrupts.mask(),
            regs::IRQ_CAUSE => self.shared.interrupts.cause(),
            regs::MAC => self.mac,
            _ => return None,
        })
    }

    /// A write of a whole register. One that is not there, or cannot be written, is counted.
    pub(crate) fn write_register(&mut self, target: Target, value: u64) {
        let done = match target {
            Target::Device(offset) => self.write_device_register(offset, value),
            Target::Queue(queue, r::CONTROL) => {
                self.write_queue_control(queue, value);
                true
            }
            Target::Queue(queue, register) => {
                let slot = self.queues[usize::from(queue.0)].registers.slot(register);
                slot.map(|slot| *slot = value).is_some()
            }
            Target::Doorbell(queue, register) => self.ring_doorbell(queue, register, value),
            Target::Capability(_) | Target::Counter(_) | Target::Nothing => false,
        };
        if !done {
            let _ = self.bad_access();
        }
    }

    fn write_device_register(&mut self, offset: u32, value: u64) -> bool {
        match offset {
            regs::CONTROL => self.write_control(value),
            regs::MUX_PORTS => {
                self.mux_ports = value;
                self.mux = Mux::from_registers(self.control, self.mux_ports);
            }
            regs::IRQ_MASK => self.shared.interrupts.set_mask(value),
            regs::IRQ_CAUSE => self.shared.interrupts.clear(value),
            regs::MAC => self.mac = value & regs::field::mac::ADDRESS_MASK,
            _ => return false,
        }
        true
    }

    fn write_control(&mut self, value: u64) {
        if value >> control::RESET_LSB & control::RESET_MASK == 1 {
            return self.reset();
        }
        let was_enabled = self.is_enabled();
        self.control =
            value & (control::ENABLE_MASK << control::ENABLE_LSB | control::MUX_MASK << control::MUX_LSB);
        self.mux = Mux::from_registers(self.control, self.mux_ports);
        if was_enabled == self.is_enabled() {
            return;
        }
        // Who shares a notification ring starts after its owner and stops before it.
        for sharing in [was_enabled, !was_enabled] {
            for queue in self.all_queues() {
                let registers = &self.queues[usize::from(queue.0)].registers;
                match registers.notify_owner().is_some() == sharing {
                    true if was_enabled => self.stop_queue(queue),
                    true => self.start_queue(queue),
                    false => {}
                }
            }
        }
    }

    fn ring_doorbell(&mut self, queue: QueueId, register: u32, value: u64) -> bool {
        let state = &mut self.queues[usize::from(queue.0)];
        let Some(slot) = state.registers.doorbell(register) else { return false };
        *slot = value;
        self.shared.counters.doorbells += 1;
        match register {
            doorbell::TX_TAIL if state.active => {
                if let Some(interface) = state.transmits {
                    self.engines.doorbell(queue, interface, value, &mut self.shared);
                }
            }
            doorbell::RX_FREED if state.active && state.receives => {
                self.rx.freed(queue, value, &mut self.shared)
            }
            doorbell::ENTRIES_FREED if state.active && state.receives => {
                self.rx.entries_freed(queue, value, &mut self.shared)
            }
            // A doorbell of a queue that does not run says nothing: its counts start with the queue.
            _ => {}
        }
        true
    }

    fn write_queue_control(&mut self, queue: QueueId, value: u64) {
        let state = &mut self.queues[usize::from(queue.0)];
        let was_enabled = state.registers.is_enabled();
        state.registers.control = value;
        let (class, weight) = state.registers.priority();
        self.shared.ready.set_priority(queue, class, weight);
        match (was_enabled, state.registers.is_enabled()) {
            (false, true) => self.start_queue(queue),
            (true, false) => self.stop_queue(queue),
            _ => {}
        }
    }

    /// Starts a queue if everything that it takes is there.
    fn start_queue(&mut self, queue: QueueId) {
        let device_enabled = self.is_enabled();
        let state = &mut self.queues[usize::from(queue.0)];
        if !device_enabled || !state.registers.is_enabled() || state.active {
            return;
        }
        // A quarantine is lifted by a new epoch, and an interface that is not there cannot start.
        let is_stale = state.failed.is_some() && state.registers.epoch() == state.epoch;
        if is_stale || state.registers.has_unknown_interface() {
            let _ = self.bad_access();
            return;
        }
        let settings = state.registers.settings(self.config.window_lines);
        state.failed = None;
        state.epoch = settings.epoch;
        state.active = true;
        state.transmits = settings.interface;
        state.fills_in_checksums = settings.checksums;
        state.receives = settings.rx_mode != 0 || settings.rx_reads || settings.rx_lines;
        state.route = match settings.interface {
            Some(interface) if Engines::have_window(interface) => Route::To(interface),
            _ => Route::None,
        };
        let receives = state.receives;
        self.has_others |= settings.interface.is_some_and(Engines::read_memory) || receives;
        let shared = &mut self.shared;
        let started = self.engines.start(queue, &settings, shared);
        let started =
            started.and_then(|()| if receives { self.rx.start(queue, &settings, shared) } else { Ok(()) });
        if let Err(cause) = started {
            self.shared.fail(queue, cause);
        }
    }

    /// Stops a queue: what it holds is dropped. A quarantine stays until the queue starts again.
    fn stop_queue(&mut self, queue: QueueId) {
        if self.lent.is_some_and(|(lent, _)| lent == queue) {
            self.lent = None;
        }
        self.wire.forget_frame_of(queue);
        let state = &mut self.queues[usize::from(queue.0)];
        state.active = false;
        if state.route != Route::None {
            state.route = Route::Drop;
        }
        if state.transmits.take().is_some() {
            self.engines.stop(queue, &mut self.shared);
        }
        if std::mem::take(&mut self.queues[usize::from(queue.0)].receives) {
            self.rx.stop(queue, &mut self.shared);
        }
        self.shared.watches.forget(queue);
    }

    /// Quarantines the queues that engines found failed.
    #[inline]
    pub(crate) fn settle_failures(&mut self) {
        if !self.shared.failed.is_empty() {
            self.quarantine_failed();
        }
    }

    #[cold]
    fn quarantine_failed(&mut self) {
        self.attention = true;
        while let Some((queue, cause)) = self.shared.failed.pop() {
            let state = &mut self.queues[usize::from(queue.0)];
            if state.failed.is_some() || !state.active {
                continue;
            }
            state.failed = Some(cause);
            state.active = false;
            if state.route != Route::None {
                state.route = Route::Drop;
            }
            let shared = &mut self.shared;
            if let Some(interface) = state.transmits {
                self.engines.quarantine(queue, interface, shared);
            }
            if state.receives {
                self.rx.quarantine(queue, shared);
            }
            shared.watches.forget(queue);
            self.shared.interrupts.raise(IrqCause::QueueFailed, queue);
        }
    }
}
