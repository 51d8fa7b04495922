//! The queues of a port as the link sees them: windows that are scanned, doorbells that are looked at.
//!
//! What a queue is used for stays unknown here. Only four registers are looked at on their way to the device: the two
//! that start and stop queues, because a window must be blank and a doorbell zero when its queue starts; the blank
//! itself; and the receive mode, because a capture that is played waits for somebody to receive it.

use beeline_contract_device::{Accept, Device, Enables, Write};
use beeline_mmio::{LoadWindow, Word};
use beeline_spec::regs::{self, field};

use super::PortCounters;
use super::account::Charge;
use super::device_layout::DeviceLayout;
use super::port_config::PortConfig;
use super::scanner::Scanner;

/// Lines of windows that are blanked in one turn of their port.
const BLANKED_LINES: u32 = 1024;

/// A transmit window.
#[derive(Debug)]
pub(crate) struct Window {
    scanner: Scanner<LoadWindow>,
    /// Used when the host leaves the choice to us.
    own_blank: u64,
    is_started: bool,
    /// After the scanner, so that it is dropped after the mapping. None for a window that is there as long as its port.
    _charge: Option<Charge>,
}

#[derive(Debug)]
struct Doorbell {
    offset_bytes: u32,
    word: Word,
    /// Value last delivered.
    seen: u64,
}

/// What the link keeps of a queue's registers.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    is_enabled: bool,
    /// Blank that the host chose; 0: none.
    blank: u64,
    receives: bool,
}

/// The queues of one port: their windows and doorbells, as far as its link looks at them.
#[derive(Debug)]
pub struct Queues {
    windows: Vec<Option<Window>>,
    active: Vec<u32>,
    doorbells: Vec<Doorbell>,
    settings: Vec<Settings>,
    is_device_enabled: bool,
    layout: DeviceLayout,
    config: PortConfig,
}

impl Queues {
    /// Every queue off, without window or doorbell.
    pub(crate) fn new(layout: DeviceLayout, config: PortConfig) -> Self {
        let queues = layout.queues as usize;
        Queues {
            windows: (0..queues).map(|_| None).collect(),
            active: Vec::with_capacity(queues),
            doorbells: Vec::with_capacity(2 * queues),
            settings: vec![Settings::default(); queues],
            is_device_enabled: false,
            layout,
            config,
        }
    }

    /// Brings to the device what was stored into windows and doorbells; whether it was anything.
    #[inline]
    pub(crate) fn poll<D: Device>(&mut self, device: &mut D, counters: &mut PortCounters) -> bool {
        let mut any = false;
        for queue in &self.active {
            if let Some(window) = &mut self.windows[*queue as usize]
                && window.is_started
            {
                any |= window.scanner.scan(device, counters);
            }
        }
        for doorbell in &mut self.doorbells {
            // Acquire: what the host stored before it rang is seen. Pairs with `ring` in host/window.rs.
            let value = doorbell.word.load_acquire();
            if value != doorbell.seen && write_register(device, doorbell.offset_bytes, value) {
                doorbell.seen = value;
                counters.doorbells += 1;
                any = true;
            }
        }
        any
    }

    /// A fresh window of a queue; every word of it is `blank`. It is looked at from the next enabling of the queue on:
    /// only then do positions agree. Gives the queue's former window.
    pub(crate) fn add_window(
        &mut self,
        queue: u32,
        port: LoadWindow,
        charge: Option<Charge>,
        blank: u64,
    ) -> Option<Window> {
        let base = self.layout.window_offset(queue);
        let scanner = Scanner::new(port, base, self.layout.scan_config(&self.config));
        let window = Window { scanner, own_blank: blank, is_started: false, _charge: charge };
        self.windows[queue as usize].replace(window)
    }

    /// A window in the place of a queue's former one, as [`super::DevicePort::with_host`] takes it. The queue does not run.
    pub fn replace_window(&mut self, queue: u32, window: LoadWindow, blank: u64) {
        if queue < self.layout.queues {
            self.add_window(queue, window, None, blank);
        }
    }

    /// A doorbell to be looked at from now on.
    pub(crate) fn add_doorbell(&mut self, offset_bytes: u32, word: Word) {
        self.doorbells.retain(|doorbell| doorbell.offset_bytes != offset_bytes);
        self.doorbells.push(Doorbell { offset_bytes, word, seen: 0 });
    }

    /// Gets ready for a register write: a window must be blank when its queue starts, and some windows take long to blank.
    /// So each call blanks a piece of them; whether they are ready, and the write may go to the device.
    pub(crate) fn prepare(&mut self, offset_bytes: u32, value: u64) -> bool {
        let mut lines = BLANKED_LINES;
        (0..self.layout.queues).all(|queue| {
            !self.would_start(queue, offset_bytes, value) || self.prepare_window(queue, &mut lines)
        })
    }

    /// Whether a register write starts a queue that does not run.
    fn would_start(&self, queue: u32, offset_bytes: u32, value: u64) -> bool {
        let has = |lsb: u32, mask: u64| value >> lsb & mask != 0;
        let (mut is_device_on, mut is_on) =
            (self.is_device_enabled, self.settings[queue as usize].is_enabled);
        if offset_bytes == regs::CONTROL {
            is_device_on = has(field::control::ENABLE_LSB, field::control::ENABLE_MASK)
                && !has(field::control::RESET_LSB, field::control::RESET_MASK);
        } else if offset_bytes == regs::QUEUE + queue * regs::QUEUE_STRIDE + regs::queue::CONTROL {
            is_on = has(field::queue_control::ENABLE_LSB, field::queue_control::ENABLE_MASK);
        } else {
            return false;
        }
        is_device_on && is_on && !self.active.contains(&queue)
    }

    fn prepare_window(&mut self, queue: u32, lines: &mut u32) -> bool {
        let chosen = self.settings[queue as usize].blank;
        self.windows[queue as usize].as_mut().is_none_or(|window| {
            let blank = if chosen == 0 { window.own_blank } else { chosen };
            window.scanner.prepare(blank, lines)
        })
    }

    /// Looks at a register write before the device gets it.
    pub(crate) fn before_write<D: Device>(&mut self, device: &mut D, offset_bytes: u32, value: u64) {
        let has = |lsb: u32, mask: u64| value >> lsb & mask != 0;
        if offset_bytes == regs::CONTROL {
            if resets(offset_bytes, value) {
                self.is_device_enabled = false;
                self.settings.fill(Settings::default());
            } else {
                self.is_device_enabled = has(field::control::ENABLE_LSB, field::control::ENABLE_MASK);
            }
            for queue in 0..self.layout.queues {
                self.settle(device, queue);
            }
            return;
        }
        let Some(inside) = offset_bytes.checked_sub(regs::QUEUE) else { return };
        let (queue, register) = (inside / regs::QUEUE_STRIDE, inside % regs::QUEUE_STRIDE);
        let Some(settings) = self.settings.get_mut(queue as usize) else { return };
        match register {
            regs::queue::BLANK => settings.blank = value,
            regs::queue::RX_MODE => {
                settings.receives = has(field::rx_mode::MODE_LSB, field::rx_mode::MODE_MASK)
                    || has(field::rx_mode::LINES_LSB, field::rx_mode::LINES_MASK)
            }
            regs::queue::CONTROL => {
                settings.is_enabled =
                    has(field::queue_control::ENABLE_LSB, field::queue_control::ENABLE_MASK);
                self.settle(device, queue);
            }
            _ => {}
        }
    }

    /// Starts or stops looking at a queue as its registers say.
    fn settle<D: Device>(&mut self, device: &mut D, queue: u32) {
        let runs = self.is_device_enabled && self.settings[queue as usize].is_enabled;
        match (runs, self.active.contains(&queue)) {
            (true, false) => self.start(device, queue),
            (false, true) => self.stop(queue),
            _ => {}
        }
    }

    /// The queue is about to be enabled: its window is blank and its doorbells are zero from here on.
    fn start<D: Device>(&mut self, device: &mut D, queue: u32) {
        let first = regs::DOORBELL + queue * regs::DOORBELL_STRIDE;
        for doorbell in &mut self.doorbells {
            if (first..first + regs::DOORBELL_STRIDE).contains(&doorbell.offset_bytes) {
                doorbell.word.store(0);
                doorbell.seen = 0;
            }
        }
        self.active.push(queue);
        let Some(window) = &mut self.windows[queue as usize] else { return };
        let chosen = self.settings[queue as usize].blank;
        let blank = if chosen == 0 { window.own_blank } else { chosen };
        if chosen == 0 {
            let offset = regs::QUEUE + queue * regs::QUEUE_STRIDE + regs::queue::BLANK;
            // Devices do not refuse register writes; one that did would fail the queue at its first message.
            let _ = write_register(device, offset, blank);
        }
        window.scanner.start(blank);
        window.is_started = true;
    }

    fn stop(&mut self, queue: u32) {
        self.active.retain(|other| *other != queue);
    }

    /// Whether a queue is on that takes frames from the wire.
    pub(crate) fn receives(&self) -> bool {
        self.active.iter().any(|queue| self.settings[*queue as usize].receives)
    }

    /// Lines taken from the window of a queue since it was started; `None` when the queue has no window.
    pub(crate) fn lines_taken(&self, queue: u32) -> Option<u64> {
        Some(self.windows.get(queue as usize)?.as_ref()?.scanner.frontier())
    }

    /// Queues of which something arrived and the rest is still missing.
    pub(crate) fn torn(&self) -> impl Iterator<Item = u32> + '_ {
        let is_torn = |queue: &u32| {
            let window = self.windows[*queue as usize].as_ref();
            window.is_some_and(|window| window.is_started && window.scanner.is_torn())
        };
        self.active.iter().copied().filter(is_torn)
    }
}

/// Whether a register write resets the device.
pub(crate) fn resets(offset_bytes: u32, value: u64) -> bool {
    offset_bytes == regs::CONTROL && value >> field::control::RESET_LSB & field::control::RESET_MASK != 0
}

/// Delivers a register write; `false` when the device refused it.
pub(crate) fn write_register<D: Device>(device: &mut D, offset_bytes: u32, value: u64) -> bool {
    let data = value.to_le_bytes();
    let write = Write { offset_bytes: u64::from(offset_bytes), data: &data, enables: Enables::All };
    device.write_arrived(write) == Accept::Taken
}
