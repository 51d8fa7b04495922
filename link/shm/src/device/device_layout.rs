//! What a device says about itself: how many queues it has, and where their windows are.

use beeline_contract_device::{Device, ReadTag, Want};
use beeline_spec::caps::Capabilities;
use beeline_spec::{LINE_BYTES, regs};

use super::port_config::PortConfig;
use super::scanner::ScanConfig;
use crate::error::ControlError;

/// What a device says about itself, read once through its registers.
#[derive(Clone, Debug)]
pub struct DeviceLayout {
    /// Queues of the port.
    pub(crate) queues: u32,
    /// Offset in the BAR of the first window.
    window_base_bytes: u64,
    /// Bytes from one window to the next.
    window_stride_bytes: u64,
    /// Lines of each queue's window.
    pub(crate) window_lines: Vec<u32>,
    /// Lines from the frontier's line on that may arrive out of order.
    span_lines: u32,
}

impl DeviceLayout {
    /// Asks a device that has just been made, and wants nothing.
    ///
    /// # Errors
    /// It is not one that can stand behind memory: [`ControlError::Device`] says what it lacks.
    pub fn read<D: Device>(device: &mut D) -> Result<Self, ControlError> {
        let wrong = |what: &str| ControlError::Device(what.to_owned());
        let place = read_register(device, regs::CAPS)?;
        let (offset, bytes) = (place as u32, (place >> 32) as u32);
        let words = (offset..offset.saturating_add(bytes.min(4096)))
            .step_by(8)
            .map(|offset| read_register(device, offset))
            .collect::<Result<Vec<u64>, _>>()?;
        let caps = Capabilities::parse(&words).map_err(|error| wrong(&format!("has a {error}")))?;
        if caps.blank != Some(true) {
            return Err(wrong("has observed windows"));
        }
        let queues = caps.queues.filter(|queues| (1..=regs::QUEUE_COUNT).contains(queues));
        let queues = queues.ok_or_else(|| wrong("does not say how many queues it has"))?;
        let (window_base_bytes, window_stride_bytes) =
            caps.aperture.ok_or_else(|| wrong("does not say where its windows are"))?;
        let window_lines = (0..queues)
            .map(|queue| {
                let at = regs::QUEUE + queue * regs::QUEUE_STRIDE + regs::queue::WINDOW_LINES;
                let lines = u32::try_from(read_register(device, at)?).unwrap_or(0);
                let fits = u64::from(lines) * LINE_BYTES as u64 <= window_stride_bytes;
                let is_sound = lines >= 2 && lines.is_power_of_two() && fits;
                is_sound.then_some(lines).ok_or_else(|| wrong(&format!("has a window of {lines} lines")))
            })
            .collect::<Result<_, _>>()?;
        let span_lines = caps.reorder_span_lines.unwrap_or(1).max(1);
        Ok(DeviceLayout { queues, window_base_bytes, window_stride_bytes, window_lines, span_lines })
    }

    /// Queues of the port.
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Offset in the BAR of the first window.
    pub fn window_base_bytes(&self) -> u64 {
        self.window_base_bytes
    }

    /// Bytes from one window to the next.
    pub fn window_stride_bytes(&self) -> u64 {
        self.window_stride_bytes
    }

    /// Lines of each queue's window, a power of two; they fit the stride.
    pub fn window_lines(&self) -> &[u32] {
        &self.window_lines
    }

    /// Offset in the BAR of a queue's window.
    pub(crate) fn window_offset(&self, queue: u32) -> u64 {
        self.window_base_bytes + u64::from(queue) * self.window_stride_bytes
    }

    /// The scanner's settings for this device.
    pub(crate) fn scan_config(&self, config: &PortConfig) -> ScanConfig {
        ScanConfig {
            ahead_lines: config.look_ahead_lines.min(self.span_lines - 1),
            burst_lines: config.burst_lines.max(1),
            prefetch_lines: config.prefetch_lines,
        }
    }
}

fn read_register<D: Device>(device: &mut D, offset_bytes: u32) -> Result<u64, ControlError> {
    device.read_arrived(u64::from(offset_bytes), ReadTag(0));
    // A device that has just been made has nothing else to want.
    match device.next() {
        Some(Want::ReadCompletion { value, .. }) => Ok(value),
        _ => Err(ControlError::Device(format!("does not answer a read of register {offset_bytes:#x}"))),
    }
}
