//! LUT6 depth: how many LUTs of six inputs a signal passes from register to register.
//!
//! Adders are counted as trees of LUTs, without carry chains, so a wide adder or comparison counts for more than an
//! FPGA makes of it: the figure is pessimistic there, and knows nothing of wires anywhere.

use std::collections::HashMap;
use std::fmt;
use std::fs;

use super::design;
use super::netlist::{End, Graph};
use crate::failure::{Context, Failure, Outcome};
use crate::rtl::Tools;
use crate::rtl::parameters::Parameters;
use crate::run::root;

/// How abc maps. Yosys' own way saves LUTs before all else (`&dc2`) and leaves paths a level longer than they need be;
/// here long ones are made short again, as sums of products (`&if -g`) and by balancing (`&b -d`).
const MAPPING: &str = "+&scorr;&sweep;&dc2;&if,-g;&st;&b,-d;&dch,-f;&if;&mfs";

/// A longest path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// LUTs on it.
    pub levels: u32,
    /// The named wires it passes, first to last, and the pin at which it ends.
    pub wires: Vec<String>,
}

/// Its names, with an arrow between.
impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.wires.join(" > "))
    }
}

/// The longest path from register to register, and the longest of those that begin or end at a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Depth {
    pub inside: Path,
    pub at_ports: Path,
}

/// Maps a module to LUTs and measures it.
pub fn measure(tools: &Tools, work: &str, top: &str, parameters: &Parameters) -> Outcome<Depth> {
    let netlist = format!("{work}/{}.depth.json", design::file_stem(top, parameters));
    // abc9, because abc maps what different clock enables govern apart, and finds paths twice as long.
    // Memories stay whole but those that no RAM can hold, which have more than one write port.
    let map =
        "synth -flatten -run begin:fine; memory_map t:$mem_v2 r:WR_PORTS>1 %i; opt -full; techmap; opt -fast";
    let script = format!(
        "{}; {map}; abc9 -lut 6 -script {MAPPING}; opt_clean; write_json {netlist}",
        design::read_script(top, parameters)
    );
    tools.yosys(&script)?;
    let path = root().join(&netlist);
    let text = fs::read_to_string(&path).while_doing(format!("read {netlist}"))?;
    fs::remove_file(&path).while_doing(format!("remove {netlist}"))?;
    longest(&Graph::parse(&text, top)?)
}

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Register,
    Port,
}

/// The longest way to a wire: LUTs, and the wire before it on that way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reach {
    levels: u32,
    before: Option<usize>,
}

/// The longest paths of a graph.
pub fn longest(graph: &Graph) -> Outcome<Depth> {
    let registers = reach(graph, Start::Register)?;
    let ports = reach(graph, Start::Port)?;
    let path = |reach: &HashMap<usize, Reach>, ends: &[End]| {
        let candidates = ends.iter().filter_map(|end| Some((reach.get(&end.wire)?.levels, end)));
        let found = candidates.max_by_key(|(levels, end)| (*levels, std::cmp::Reverse(&end.name)));
        found.map_or_else(Path::default, |(levels, end)| Path { levels, wires: wires(graph, reach, end) })
    };
    let inside = path(&registers, &graph.register_inputs);
    let into = path(&ports, &[&*graph.register_inputs, &graph.port_outputs].concat());
    let out_of = path(&registers, &graph.port_outputs);
    let at_ports = if into.levels > out_of.levels { into } else { out_of };
    Ok(Depth { inside, at_ports })
}

/// How far each wire is from the starts of one kind. LUTs are taken in an order in which all inputs are known.
fn reach(graph: &Graph, start: Start) -> Outcome<HashMap<usize, Reach>> {
    let starts = if start == Start::Register { &graph.register_outputs } else { &graph.port_inputs };
    let mut reach: HashMap<usize, Reach> =
        starts.iter().map(|wire| (*wire, Reach { levels: 0, before: None })).collect();
    let order = order(graph)?;
    for node in order.into_iter().map(|at| &graph.nodes[at]) {
        let farthest = node.inputs.iter().filter_map(|wire| Some((reach.get(wire)?.levels, *wire))).max();
        // The words of a LUTRAM are registers themselves, whatever its address is made of.
        let farthest = match (farthest, node.stores && start == Start::Register) {
            (None, true) => Some((0, None)),
            (found, _) => found.map(|(levels, wire)| (levels, Some(wire))),
        };
        if let Some((levels, before)) = farthest {
            for output in &node.outputs {
                reach.insert(*output, Reach { levels: levels + node.levels, before });
            }
        }
    }
    Ok(reach)
}

/// Numbers of the nodes, each after those that drive it.
fn order(graph: &Graph) -> Outcome<Vec<usize>> {
    let mut drivers: HashMap<usize, usize> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        drivers.extend(node.outputs.iter().map(|wire| (*wire, at)));
    }
    let mut waits = vec![0_usize; graph.nodes.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (at, node) in graph.nodes.iter().enumerate() {
        for driver in node.inputs.iter().filter_map(|wire| drivers.get(wire)) {
            waits[at] += 1;
            readers[*driver].push(at);
        }
    }
    let mut order: Vec<usize> = (0..waits.len()).filter(|at| waits[*at] == 0).collect();
    let mut done = 0;
    while let Some(at) = order.get(done).copied() {
        done += 1;
        for reader in std::mem::take(&mut readers[at]) {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                order.push(reader);
            }
        }
    }
    if order.len() == graph.nodes.len() {
        return Ok(order);
    }
    let stuck = waits.iter().position(|waits| *waits > 0).and_then(|at| graph.nodes[at].outputs.first());
    let name = stuck.and_then(|wire| graph.names.get(wire)).map_or("a wire without a name", String::as_str);
    Err(Failure::new(format!("a loop without a register goes through {name}, or leads to it")))
}

/// The names on the way to `end`, first to last.
fn wires(graph: &Graph, reach: &HashMap<usize, Reach>, end: &End) -> Vec<String> {
    let mut names = vec![end.name.clone()];
    let mut at = Some(end.wire);
    while let Some(wire) = at {
        names.extend(graph.names.get(&wire).cloned());
        at = reach.get(&wire).and_then(|reach| reach.before);
    }
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use super::super::netlist::Node;
    use super::*;

    fn node(inputs: &[usize], output: usize) -> Node {
        Node { inputs: inputs.to_vec(), outputs: vec![output], levels: 1, stores: false }
    }

    fn graph(nodes: Vec<Node>) -> Graph {
        Graph {
            nodes,
            register_outputs: vec![1, 2],
            register_inputs: vec![End { wire: 11, name: "b_q.D".to_owned() }],
            port_inputs: vec![3],
            port_outputs: vec![End { wire: 12, name: "out_o".to_owned() }],
            names: [(1, "a_q"), (10, "middle"), (3, "in_i")]
                .map(|(wire, name)| (wire, name.to_owned()))
                .into(),
            memories: Vec::new(),
        }
    }

    #[test]
    fn the_longest_path_is_found_and_named() {
        // 1 -> 10 -> 11 inside; 3 -> 11 and 3 -> 20 -> 21 -> 12 at ports. Nodes stand in no order.
        let graph =
            graph(vec![node(&[10, 3], 11), node(&[1], 10), node(&[21], 12), node(&[3], 20), node(&[20], 21)]);
        let depth = longest(&graph).unwrap();
        let wires = ["a_q", "middle", "b_q.D"].map(str::to_owned).to_vec();
        assert_eq!(depth.inside, Path { levels: 2, wires });
        assert_eq!(depth.at_ports, Path { levels: 3, wires: ["in_i", "out_o"].map(str::to_owned).to_vec() });
    }

    #[test]
    fn lutram_is_a_level_and_a_start() {
        let ram = Node { inputs: vec![1], outputs: vec![10], levels: 2, stores: true };
        let depth = longest(&graph(vec![ram, node(&[10], 11)])).unwrap();
        assert_eq!(depth.inside.levels, 3);
        let constant_address = Node { inputs: vec![], outputs: vec![10], levels: 1, stores: true };
        assert_eq!(longest(&graph(vec![constant_address, node(&[10], 11)])).unwrap().inside.levels, 2);
    }

    #[test]
    fn a_loop_is_refused() {
        let cause = longest(&graph(vec![node(&[11, 1], 10), node(&[10], 11)])).unwrap_err().to_string();
        assert!(cause.contains("a loop without a register"), "{cause}");
    }
}
