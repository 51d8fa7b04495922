//! A netlist of LUTs, flip-flops and memories, as Yosys writes it in JSON, and the longest paths through its LUTs.
//!
//! A path runs from a register, a memory or a port through LUTs to a register, a memory or a port. A memory with a
//! clocked read port ends paths at its address and starts them at its data, as block RAM does. A memory read without a
//! clock is LUTRAM and counts as LUTs on the way: one for 64 words, one more for each further factor of four.

use std::collections::HashMap;

use serde::Deserialize;

use super::primitives::{self, Role};
use crate::failure::{Context, Failure, Outcome};

/// What Yosys writes; what is not read here is left out.
#[derive(Debug, Deserialize)]
struct Design {
    modules: HashMap<String, Module>,
}

#[derive(Debug, Deserialize)]
struct Module {
    ports: HashMap<String, Port>,
    cells: HashMap<String, Cell>,
    netnames: HashMap<String, Net>,
}

#[derive(Debug, Deserialize)]
struct Port {
    direction: String,
    bits: Vec<Bit>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: HashMap<String, serde_json::Value>,
    /// What Yosys knows of the pins of a primitive.
    #[serde(default)]
    port_directions: HashMap<String, String>,
    connections: HashMap<String, Vec<Bit>>,
}

#[derive(Debug, Deserialize)]
struct Net {
    hide_name: u8,
    bits: Vec<Bit>,
}

/// A wire by its number, or a constant.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Bit {
    Wire(usize),
    Constant(#[allow(dead_code, reason = "a constant starts no path, whatever it is")] String),
}

/// From its inputs to its outputs a node adds levels; ends and starts of paths have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    pub levels: u32,
    /// Its outputs come from what it holds, so paths begin in it too.
    pub stores: bool,
}

/// A pin at which paths end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub wire: usize,
    /// What is behind it: `state_q.D`, `mem.WR_ADDR`.
    pub name: String,
}

/// What paths are looked for in.
#[derive(Debug, Default)]
pub struct Graph {
    /// LUTs, and LUTRAM read ports.
    pub nodes: Vec<Node>,
    /// Wires that a register or a memory drives, and pins at which one reads.
    pub register_outputs: Vec<usize>,
    pub register_inputs: Vec<End>,
    /// Wires that an input of the module drives, and pins that drive an output.
    pub port_inputs: Vec<usize>,
    pub port_outputs: Vec<End>,
    /// Names that somebody gave.
    pub names: HashMap<usize, String>,
    /// Each memory, its words, and how it is read.
    pub memories: Vec<String>,
}

impl Graph {
    /// Reads the netlist of `top`.
    pub fn parse(json: &str, top: &str) -> Outcome<Self> {
        let mut design: Design = serde_json::from_str(json).while_doing("understand Yosys' netlist")?;
        let module = design.modules.remove(top);
        let module = module.ok_or_else(|| Failure::new(format!("Yosys' netlist has no module {top}")))?;
        let mut graph = Graph::default();
        for (name, port) in &module.ports {
            if port.direction == "input" {
                graph.port_inputs.extend(wires(&port.bits));
            } else {
                graph.port_outputs.extend(ends(wires(&port.bits), name));
            }
        }
        for (name, net) in module.netnames.iter().filter(|(_, net)| net.hide_name == 0) {
            for (at, bit) in net.bits.iter().enumerate() {
                if let Bit::Wire(wire) = bit {
                    let full = if net.bits.len() > 1 { format!("{name}[{at}]") } else { name.clone() };
                    graph.name(*wire, full);
                }
            }
        }
        for (name, cell) in &module.cells {
            graph.add(name, cell)?;
        }
        graph.memories.sort();
        Ok(graph)
    }

    /// Of several names of a wire the shortest is kept, and of those the first: it does not depend on the order.
    fn name(&mut self, wire: usize, name: String) {
        let known = self.names.entry(wire).or_insert_with(|| name.clone());
        if (name.len(), &name) < (known.len(), known) {
            *known = name;
        }
    }

    fn add(&mut self, name: &str, cell: &Cell) -> Outcome {
        let kind = cell.kind.as_str();
        if kind == "$lut" {
            self.nodes.push(Node {
                inputs: cell.wires("A"),
                outputs: cell.wires("Y"),
                levels: 1,
                stores: false,
            });
        } else if ["$_DFF", "$_SDFF", "$_ALDFF", "$_FF_"].iter().any(|prefix| kind.starts_with(prefix)) {
            let outputs = cell.wires("Q");
            let known = outputs.first().and_then(|wire| self.names.get(wire));
            let name = known.map_or(name, String::as_str).to_owned();
            self.register_outputs.extend(outputs);
            for pin in ["D", "E", "R", "L", "AD"] {
                self.register_inputs.extend(ends(cell.wires(pin), &format!("{name}.{pin}")));
            }
        } else if kind == "$mem_v2" {
            self.add_memory(name, cell);
        } else if !matches!(kind, "$scopeinfo" | "$print" | "$check") && !self.add_primitive(name, cell) {
            return Err(Failure::new(format!("{name} is a {kind}: neither LUT nor flip-flop nor memory")));
        }
        Ok(())
    }

    /// A primitive of UltraScale+; `false` if the cell is none.
    fn add_primitive(&mut self, name: &str, cell: &Cell) -> bool {
        let kind = cell.kind.as_str();
        let Some(role) = primitives::role(kind) else { return false };
        let outputs: Vec<usize> = cell.directed("output").flat_map(|pin| cell.wires(pin)).collect();
        let pins: Vec<&str> = cell.directed("input").filter(|pin| !primitives::is_clock(pin)).collect();
        let ends_at = |pin: &&str| ends(cell.wires(pin), &format!("{name}.{pin}")).collect::<Vec<_>>();
        match role {
            Role::Logic(levels) => {
                let inputs = pins.iter().flat_map(|pin| cell.wires(pin)).collect();
                self.nodes.push(Node { inputs, outputs, levels, stores: false });
            }
            Role::Register => {
                self.register_outputs.extend(outputs);
                self.register_inputs.extend(pins.iter().flat_map(ends_at));
            }
            Role::Lutram => {
                let (reads, writes): (Vec<&str>, Vec<&str>) =
                    pins.iter().partition(|pin| primitives::is_read_address(kind, pin));
                let inputs = reads.iter().flat_map(|pin| cell.wires(pin)).collect();
                self.nodes.push(Node { inputs, outputs, levels: 1, stores: true });
                self.register_inputs.extend(writes.iter().flat_map(ends_at));
            }
            Role::Nothing => {}
        }
        true
    }

    fn add_memory(&mut self, name: &str, cell: &Cell) {
        let (words, width) = (cell.number("SIZE"), cell.number("WIDTH"));
        let address_bits = cell.number("ABITS");
        for pin in ["WR_ADDR", "WR_DATA", "WR_EN", "RD_EN", "RD_SRST", "RD_ARST"] {
            self.register_inputs.extend(ends(cell.wires(pin), &format!("{name}.{pin}")));
        }
        let clocked = cell.flags("RD_CLK_ENABLE");
        let (addresses, data) = (cell.pin("RD_ADDR"), cell.pin("RD_DATA"));
        let mut unclocked = 0;
        for (port, is_clocked) in clocked.iter().enumerate().take(data.len() / width.max(1)) {
            let inputs = wires(&addresses[port * address_bits..(port + 1) * address_bits]);
            let outputs = wires(&data[port * width..(port + 1) * width]);
            if *is_clocked {
                self.register_inputs.extend(ends(inputs, &format!("{name}.RD_ADDR")));
                self.register_outputs.extend(outputs);
            } else {
                unclocked += 1;
                self.nodes.push(Node { inputs, outputs, levels: lutram_levels(words), stores: true });
            }
        }
        let read = if unclocked > 0 { "read without a clock" } else { "clocked" };
        self.memories.push(format!("{} {words} x {width}, {read}", name.trim_start_matches('\\')));
    }
}

/// LUTs between the address and the data of LUTRAM with so many words.
fn lutram_levels(words: usize) -> u32 {
    let mut levels = 1;
    let mut reach = 64;
    while reach < words {
        reach *= 4;
        levels += 1;
    }
    levels
}

fn ends(wires: Vec<usize>, name: &str) -> impl Iterator<Item = End> + use<'_> {
    wires.into_iter().map(|wire| End { wire, name: name.to_owned() })
}

fn wires(bits: &[Bit]) -> Vec<usize> {
    let wire = |bit: &Bit| if let Bit::Wire(wire) = bit { Some(*wire) } else { None };
    bits.iter().filter_map(wire).collect()
}

impl Cell {
    fn pin(&self, pin: &str) -> &[Bit] {
        self.connections.get(pin).map_or(&[], Vec::as_slice)
    }

    fn wires(&self, pin: &str) -> Vec<usize> {
        wires(self.pin(pin))
    }

    /// Pins of a direction, `input` or `output`.
    fn directed<'c>(&'c self, direction: &'c str) -> impl Iterator<Item = &'c str> {
        self.port_directions.iter().filter(move |(_, found)| *found == direction).map(|(pin, _)| pin.as_str())
    }

    /// A parameter as Yosys writes it: binary digits, the highest first.
    fn digits(&self, parameter: &str) -> &str {
        self.parameters.get(parameter).and_then(serde_json::Value::as_str).unwrap_or_default()
    }

    fn number(&self, parameter: &str) -> usize {
        usize::from_str_radix(self.digits(parameter), 2).unwrap_or_default()
    }

    /// A flag a port, port 0 first.
    fn flags(&self, parameter: &str) -> Vec<bool> {
        self.digits(parameter).bytes().rev().map(|digit| digit == b'1').collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register feeds a LUT, the LUT a memory with one clocked and one unclocked read port.
    const NETLIST: &str = r#"{"modules": {"top": {
      "ports": {"clk_i": {"direction": "input", "bits": [2]}, "out_o": {"direction": "output", "bits": [9, "0"]}},
      "cells": {
        "ff": {"type": "$_SDFFE_PN0P_", "parameters": {}, "connections": {"C": [2], "D": [3], "E": ["1"], "R": [4], "Q": [5]}},
        "l": {"type": "$lut", "parameters": {}, "connections": {"A": [5, 6], "Y": [7]}},
        "mem": {"type": "$mem_v2", "parameters": {"SIZE": "10000000", "WIDTH": "1", "ABITS": "1", "RD_CLK_ENABLE": "01"},
          "connections": {"RD_ADDR": [7, 8], "RD_DATA": [9, 10], "WR_ADDR": [11], "WR_DATA": [12], "WR_EN": ["1"], "RD_EN": ["1", "1"]}}},
      "netnames": {"state_q": {"hide_name": 0, "bits": [5]}, "x.state_q": {"hide_name": 0, "bits": [5]}, "$1": {"hide_name": 1, "bits": [7]}}
    }}}"#;

    #[test]
    fn cells_become_nodes_and_ends() {
        let graph = Graph::parse(NETLIST, "top").unwrap();
        assert_eq!(graph.nodes.len(), 2);
        let lutram = graph.nodes.iter().find(|node| node.outputs == [10]).unwrap();
        assert_eq!((lutram.levels, lutram.inputs.as_slice()), (2, [8].as_slice()));
        let sorted = |mut wires: Vec<usize>| {
            wires.sort_unstable();
            wires
        };
        assert_eq!(sorted(graph.register_outputs), [5, 9]);
        let end = |wire, name: &str| End { wire, name: name.to_owned() };
        for expected in
            [end(3, "state_q.D"), end(4, "state_q.R"), end(7, "mem.RD_ADDR"), end(12, "mem.WR_DATA")]
        {
            assert!(graph.register_inputs.contains(&expected), "{:?}", graph.register_inputs);
        }
        assert_eq!(sorted(graph.register_inputs.iter().map(|end| end.wire).collect()), [3, 4, 7, 11, 12]);
        assert_eq!((graph.port_inputs, graph.port_outputs), (vec![2], vec![end(9, "out_o")]));
        assert_eq!(graph.names.get(&5).unwrap(), "state_q");
        assert_eq!(graph.memories, ["mem 128 x 1, read without a clock"]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let latch = NETLIST.replace("$lut", "$_DLATCH_P_");
        assert!(Graph::parse(&latch, "top").unwrap_err().to_string().contains("l is a $_DLATCH_P_"));
        assert!(Graph::parse(NETLIST, "other").unwrap_err().to_string().contains("no module other"));
    }

    #[test]
    fn lutram_is_deeper_when_it_is_longer() {
        assert_eq!([2, 64, 65, 256, 1024].map(lutram_levels), [1, 1, 2, 2, 3]);
    }

    /// A flip-flop, a LUT, a LUTRAM, a carry, a LUT, a flip-flop.
    const MAPPED: &str = r#"{"modules": {"top": {"ports": {}, "netnames": {}, "cells": {
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
    fn primitives_become_nodes_and_ends() {
        let graph = Graph::parse(MAPPED, "top").unwrap();
        let levels: u32 = graph.nodes.iter().map(|node| node.levels).sum();
        assert_eq!(levels, 3);
        let ends: Vec<&str> = graph.register_inputs.iter().map(|end| end.name.as_str()).collect();
        assert_eq!(ends.len(), 3, "{ends:?}");
        assert!(["a.D", "c.ADDRH", "c.WE"].iter().all(|end| ends.contains(end)), "{ends:?}");
    }

    #[test]
    fn unknown_primitive_is_refused() {
        let unknown = MAPPED.replace("CARRY4", "DSP48E2");
        assert!(Graph::parse(&unknown, "top").unwrap_err().to_string().contains("d is a DSP48E2"));
    }
}
