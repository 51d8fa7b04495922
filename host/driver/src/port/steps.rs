//! Steps that several scripts have.

use beeline_spec::regs::{self, field};

use crate::port::script::Step;
use crate::port::settings::Mux;

/// The step that writes a register.
pub(crate) const fn write(offset: u32, value: u64) -> Step {
    Step::Write { offset, value }
}

/// Waits for the device to be on, or off.
pub(crate) fn until_active(active: bool) -> Step {
    use field::status as f;
    let what = if active { "become active" } else { "stop after its reset" };
    let mask = f::ACTIVE_MASK << f::ACTIVE_LSB;
    Step::Until { offset: regs::STATUS, mask, value: u64::from(active) << f::ACTIVE_LSB, fatal: 0, what }
}

/// The port range first: it must stand when the multiplexer starts to use it.
pub(crate) fn mux_steps(mux: Mux) -> [Step; 2] {
    use field::{control, mux_ports};
    let (code, range) = match mux {
        Mux::Both => (0, None),
        Mux::DescriptorOnly => (1, None),
        Mux::KpioOnly => (2, None),
        Mux::ByPort(range) => (3, Some(range)),
    };
    let ports = range
        .map_or(0, |r| u64::from(r.first) << mux_ports::FIRST_LSB | u64::from(r.last) << mux_ports::LAST_LSB);
    let on = control::ENABLE_MASK << control::ENABLE_LSB | code << control::MUX_LSB;
    [write(regs::MUX_PORTS, ports), write(regs::CONTROL, on)]
}
