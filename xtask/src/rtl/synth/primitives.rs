//! What the primitives of UltraScale+ are to a path, in a netlist that Yosys' `synth_xilinx` mapped.
//!
//! A LUT is one level, and so is a LUTRAM from its read address to its data. Carry chains and the multiplexers between LUTs
//! are no level. Flip-flops, shift registers and block RAM begin and end paths.

/// What a primitive is to a path through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// From every input to every output, this many levels.
    Logic(u32),
    /// Paths end at its inputs and begin at its outputs.
    Register,
    /// Paths go through its read ports and end at its write port.
    Lutram,
    /// Constants and clock buffers.
    Nothing,
}

/// The role of a primitive, or `None` of a cell that is none.
pub fn role(kind: &str) -> Option<Role> {
    Some(match kind {
        "INV" | "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" => Role::Logic(1),
        "CARRY4" | "CARRY8" | "MUXF7" | "MUXF8" | "MUXF9" => Role::Logic(0),
        "FDRE" | "FDSE" | "FDCE" | "FDPE" | "SRL16E" | "SRLC32E" => Role::Register,
        "RAMB36E2" | "RAMB18E2" | "URAM288" | "URAM288_BASE" => Role::Register,
        "RAM32X1D" | "RAM64X1D" | "RAM128X1D" | "RAM256X1D" => Role::Lutram,
        "RAM32M" | "RAM64M" | "RAM32M16" | "RAM64M8" => Role::Lutram,
        "VCC" | "GND" | "BUFG" => Role::Nothing,
        _ => return None,
    })
}

/// Whether paths that enter a LUTRAM at a pin leave it as data: whether it is the address of a read port.
pub fn is_read_address(kind: &str, pin: &str) -> bool {
    match kind {
        // The last of the ports also writes.
        "RAM32M16" | "RAM64M8" => pin.starts_with("ADDR") && !pin.starts_with("ADDRH"),
        "RAM32M" | "RAM64M" => pin.starts_with("ADDR") && !pin.starts_with("ADDRD"),
        _ => pin.starts_with("DPRA"),
    }
}

/// Whether a pin is a clock: paths neither begin nor end there.
pub fn is_clock(pin: &str) -> bool {
    pin == "C" || pin.contains("CLK")
}
