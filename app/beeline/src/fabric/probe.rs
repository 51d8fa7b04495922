//! `beeline fabric probe`: whether a node answers, or what of this machine's PCIe could carry a fabric.

use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};
use rustix::fs::{Access, access};
use serde::Serialize;

use super::args::{LsArgs, ProbeArgs};
use super::nodes::{Adapter, Member, State};
use super::pci::{self, Function};
use super::table::links;
use super::view::{View, open_any};
use crate::failure::Failure;
use crate::out;

/// Runs `beeline fabric probe`.
pub fn run(args: &ProbeArgs) -> Result<(), Failure> {
    match args.node {
        Some(node) => probe_node(args, node),
        None => probe_machine(args),
    }
}

/// A node that answers.
#[derive(Serialize)]
struct Answering<'a> {
    node: u16,
    /// Members that live, and how many of them have answered.
    alive: usize,
    answered: usize,
    /// By a member that has answered: each adapter of the node.
    adapters: &'a [Adapter],
}

fn probe_node(args: &ProbeArgs, node: u16) -> Result<(), Failure> {
    let ground = open_any(&args.survey)?;
    let ls = LsArgs { survey: args.survey.clone(), nodes: vec![node], json: args.json };
    let view = View::take(&ground, &ls)?;
    let errors: Vec<_> = view.errors().collect();
    let members: Vec<_> = view.nodes.iter().flat_map(|node| &node.members).collect();
    let alive = members.iter().filter(|member| member.state != State::Dead).count();
    let answered: Vec<&&Member> = members.iter().filter(|member| member.state == State::Alive).collect();
    let Some(first) = answered.first() else {
        let what = match (alive, errors.as_slice()) {
            (0, []) => format!("node {node} does not answer: no member of it lives"),
            (_, errors) => format!("node {node} does not answer: {}", errors.join("; ")),
        };
        return Err(Failure::new(what).remedy("start a program that joins it, or let a stopped one go on"));
    };
    let adapters = first.adapters.as_slice();
    let answering = Answering { node, alive, answered: answered.len(), adapters };
    if args.json {
        return out::json(&answering);
    }
    let (count, links) = (answered.len(), links(adapters));
    out::line(format_args!("node {node} answers: {count} of {alive} members; adapters {links}"))
}

fn probe_machine(args: &ProbeArgs) -> Result<(), Failure> {
    let functions = pci::functions(&args.sysfs, may_open).map_err(|error| {
        Failure::new(format!("cannot list PCI functions in {}", args.sysfs.display()))
            .because(error)
            .remedy("mount sysfs, or run this where there is a PCI bus; programs of one machine need none")
    })?;
    if args.json {
        return out::json(&functions);
    }
    let (carriers, others): (Vec<&Function>, Vec<_>) =
        functions.iter().partition(|function| function.role.is_some());
    if carriers.is_empty() {
        return out::line(format_args!(
            "{} PCI functions, and none that could carry a fabric; programs of one machine need none",
            others.len()
        ));
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["function", "id", "what", "link", "windows, buses"]);
    for function in &carriers {
        let windows = function.windows.iter().map(ToString::to_string);
        let buses = function.buses.iter().map(|buses| format!("buses {buses}"));
        table.add_row([
            function.address.clone(),
            format!("{:04x}:{:04x}", function.vendor, function.device),
            function.role.map(|role| role.words().to_owned()).unwrap_or_default(),
            function.link.clone().unwrap_or_default(),
            windows.chain(buses).collect::<Vec<_>>().join(", "),
        ]);
    }
    out::line(table)?;
    for function in &carriers {
        for problem in &function.problems {
            out::line(format_args!("{}: {problem}", function.address))?;
        }
    }
    out::line(format_args!("{} other PCI functions", others.len()))
}

/// Whether this user may map a file, which is not opened.
fn may_open(file: &Path) -> bool {
    access(file, Access::READ_OK | Access::WRITE_OK).is_ok()
}
