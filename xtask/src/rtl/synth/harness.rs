//! A frame of registers around a module, so that it can be placed on a chip with fewer pins than it has ports.
//!
//! Inputs come from a shift register behind one pin. Outputs are caught in registers and folded by exclusive or, four
//! at a time and a register each, into one pin: every port counts, and the frame has no path longer than a LUT.

use crate::failure::{Failure, Outcome};

/// The clock's port, which gets a pin of its own.
const CLOCK: &str = "clk_i";

/// A port as Yosys' RTLIL writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    name: String,
    bits: usize,
    is_input: bool,
}

/// The ports of `module`, by the lines of RTLIL that declare them: `wire width 8 input 5 \push_data_i`.
pub fn ports(rtlil: &str, module: &str) -> Outcome<Vec<Port>> {
    let start = format!("module \\{module}\n");
    let body = rtlil.split(&start).nth(1).and_then(|rest| rest.split("\nend\n").next());
    let body = body.ok_or_else(|| Failure::new(format!("Yosys did not elaborate {module}")))?;
    Ok(body.lines().filter_map(port).collect())
}

fn port(line: &str) -> Option<Port> {
    let words: Vec<&str> = line.strip_prefix("  wire ")?.split(' ').collect();
    let after = |word: &str| words.iter().position(|w| *w == word).and_then(|at| words.get(at + 1));
    let bits = after("width").map_or(Some(1), |width| width.parse().ok())?;
    let is_input = after("input").is_some();
    let is_port = is_input || after("output").is_some();
    is_port.then(|| Port { name: words[words.len() - 1].trim_start_matches('\\').to_owned(), bits, is_input })
}

/// The frame around `module`, in Verilog, as module `harness`.
pub fn verilog(module: &str, ports: &[Port]) -> Outcome<String> {
    if !ports.iter().any(|port| port.is_input && port.name == CLOCK) {
        return Err(Failure::new(format!("{module} has no port {CLOCK}")));
    }
    let (mut ins, mut outs, mut connections) = (0, 0, Vec::new());
    for port in ports {
        let (bus, taken) = if port.is_input { ("in_q", &mut ins) } else { ("out", &mut outs) };
        if port.name == CLOCK {
            connections.push(format!(".{CLOCK}({CLOCK})"));
        } else {
            connections.push(format!(".{}({bus}[{taken} +: {}])", port.name, port.bits));
            *taken += port.bits;
        }
    }
    if ins == 0 || outs == 0 {
        return Err(Failure::new(format!("{module} has no inputs or no outputs to route")));
    }
    let connections = connections.join(",\n    ");
    let (fold, last) = fold(outs);
    Ok(format!(
        "module harness (input {CLOCK}, input in_i, output out_o);\n\
         reg [{ins}:0] in_q;\nalways @(posedge {CLOCK}) in_q <= {{in_q[{ins_low}:0], in_i}};\n\
         wire [{out_high}:0] out;\nreg [{out_high}:0] fold0_q;\nalways @(posedge {CLOCK}) fold0_q <= out;\n\
         {fold}assign out_o = {last}[0];\n\
         {module} dut (\n    {connections}\n);\nendmodule\n",
        ins_low = ins - 1,
        out_high = outs - 1,
    ))
}

/// Registers that fold `bits` into one, four to one a stage; and the name of the last.
fn fold(mut bits: usize) -> (String, String) {
    let (mut text, mut stage) = (String::new(), 0);
    while bits > 1 {
        let groups = bits.div_ceil(4);
        let next = stage + 1;
        let terms: Vec<String> = (0..groups)
            .rev()
            .map(|group| format!("^fold{stage}_q[{}:{}]", (group * 4 + 3).min(bits - 1), group * 4))
            .collect();
        text += &format!(
            "reg [{}:0] fold{next}_q;\nalways @(posedge {CLOCK}) fold{next}_q <= {{{}}};\n",
            groups - 1,
            terms.join(", ")
        );
        (bits, stage) = (groups, next);
    }
    (text, format!("fold{stage}_q"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTLIL: &str = "attribute \\top 1\nmodule \\fifo\n  attribute \\src \"x\"\n  wire input 1 \\clk_i\n  \
        wire width 8 input 2 \\push_data_i\n  wire width 5 output 3 \\count_o\n  wire width 3 \\state_q\nend\nmodule \\b\nend\n";

    #[test]
    fn ports_are_read_from_rtlil() {
        let port = |name: &str, bits, is_input| Port { name: name.to_owned(), bits, is_input };
        let expected = [port("clk_i", 1, true), port("push_data_i", 8, true), port("count_o", 5, false)];
        assert_eq!(ports(RTLIL, "fifo").unwrap(), expected);
        assert!(ports(RTLIL, "other").is_err());
    }

    #[test]
    fn every_port_is_behind_registers() {
        let text = verilog("fifo", &ports(RTLIL, "fifo").unwrap()).unwrap();
        for line in [
            "reg [8:0] in_q;",
            ".push_data_i(in_q[0 +: 8])",
            ".count_o(out[0 +: 5])",
            "fold1_q <= {^fold0_q[4:4], ^fold0_q[3:0]};",
            "fold2_q <= {^fold1_q[1:0]};",
            "assign out_o = fold2_q[0];",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(verilog("b", &[]).unwrap_err().to_string().contains("no port clk_i"));
    }
}
