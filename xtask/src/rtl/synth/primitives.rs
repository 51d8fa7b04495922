//! Primitives of UltraScale+ in a netlist that Yosys' `synth_xilinx` mapped, as parts of a [`Graph`].
//!
//! A LUT is one level, and so is a LUTRAM from its read address to its data. Carry chains and the multiplexers between LUTs
//! are no level. Flip-flops, shift registers and block RAM begin and end paths.

use super::netlist::{Cell, Graph, Node, ends};

/// What a primitive is to a path through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// From every input to every output, this many levels.
    Logic(u32),
    /// Paths end at its inputs and begin at its outputs.
    Register,
    /// Paths go through its read ports and end at its write port.
    Lutram,
    /// Constants and clock buffers.
    Nothing,
}

fn role(kind: &str) -> Option<Role> {
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
fn is_read_address(kind: &str, pin: &str) -> bool {
    match kind {
        // The last of the ports also writes.
        "RAM32M16" | "RAM64M8" => pin.starts_with("ADDR") && !pin.starts_with("ADDRH"),
        "RAM32M" | "RAM64M" => pin.starts_with("ADDR") && !pin.starts_with("ADDRD"),
        _ => pin.starts_with("DPRA"),
    }
}

/// Puts a primitive into the graph; `false` if it is none.
pub fn add(graph: &mut Graph, name: &str, cell: &Cell) -> bool {
    let kind = cell.kind.as_str();
    let Some(role) = role(kind) else { return false };
    let outputs: Vec<usize> = cell.directed("output").flat_map(|pin| cell.wires(pin)).collect();
    let pins: Vec<&str> = cell.directed("input").filter(|pin| !is_clock(pin)).collect();
    let ends_at = |pin: &&str| ends(cell.wires(pin), &format!("{name}.{pin}")).collect::<Vec<_>>();
    match role {
        Role::Logic(levels) => {
            let inputs = pins.iter().flat_map(|pin| cell.wires(pin)).collect();
            graph.nodes.push(Node { inputs, outputs, levels, stores: false });
        }
        Role::Register => {
            graph.register_outputs.extend(outputs);
            graph.register_inputs.extend(pins.iter().flat_map(ends_at));
        }
        Role::Lutram => {
            let (reads, writes): (Vec<&str>, Vec<&str>) =
                pins.iter().partition(|pin| is_read_address(kind, pin));
            let inputs = reads.iter().flat_map(|pin| cell.wires(pin)).collect();
            graph.nodes.push(Node { inputs, outputs, levels: 1, stores: true });
            graph.register_inputs.extend(writes.iter().flat_map(ends_at));
        }
        Role::Nothing => {}
    }
    true
}

fn is_clock(pin: &str) -> bool {
    pin == "C" || pin.contains("CLK")
}

#[cfg(test)]
mod tests {
    use super::super::depth::longest;
    use super::*;

    /// A flip-flop, a LUT, a LUTRAM, a carry, a LUT, a flip-flop.
    const NETLIST: &str = r#"{"modules": {"top": {"ports": {}, "netnames": {}, "cells": {
        "a": {"type": "FDRE", "port_directions": {"C": "input", "D": "input", "Q": "output"},
              "connections": {"C": [1], "D": [9], "Q": [2]}},
        "b": {"type": "LUT1", "port_directions": {"I0": "input", "O": "output"}, "connections": {"I0": [2], "O": [3]}},
        "c": {"type": "RAM64M8", "port_directions": {"ADDRA": "input", "ADDRH": "input", "WE": "input", "DOA": "output"},
              "connections": {"ADDRA": [3], "ADDRH": [8], "WE": [4], "DOA": [5]}},
        "d": {"type": "CARRY4", "port_directions": {"S": "input", "O": "output"}, "connections": {"S": [5], "O": [6]}},
        "e": {"type": "LUT2", "port_directions": {"I0": "input", "I1": "input", "O": "output"},
              "connections": {"I0": [6], "I1": ["1"], "O": [9]}}
    }}}}"#;

    #[test]
    fn levels_of_mapped_netlist_are_luts_and_lutrams() {
        let graph = Graph::parse(NETLIST, "top").unwrap();
        assert_eq!(longest(&graph).unwrap().inside.levels, 3);
        let ends: Vec<&str> = graph.register_inputs.iter().map(|end| end.name.as_str()).collect();
        assert_eq!(ends.len(), 3, "{ends:?}");
        assert!(["a.D", "c.ADDRH", "c.WE"].iter().all(|end| ends.contains(end)), "{ends:?}");
    }

    #[test]
    fn unknown_primitive_is_refused() {
        let unknown = NETLIST.replace("CARRY4", "DSP48E2");
        assert!(Graph::parse(&unknown, "top").unwrap_err().to_string().contains("d is a DSP48E2"));
    }
}
