//! A program that knows one adapter, and whose configuration says that any will do, while links go down and up.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, NodeId};
use beeline_fabric_process::Survey;

use c::C11;
use c::installed::installed;

const CONFIG: &str = "[adapters]\nfail_over = true\n[[nodes]]\nid = 4\nadapters = [0, 1]\n[[nodes]]\nid = 8\nadapters = [0, 1]\n";
const SERVER: NodeId = NodeId(4);
/// How long a member may take to answer; far more than any needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program, which is ended with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &Path, root: &Path, node: &str, arguments: &str) -> Running {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).env("BEELINE_ROOT", root).env("BEELINE_NODE", node);
    command.env("BEELINE_CONFIG", root.join("beeline.toml")).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

/// The client stores a block in pieces, each of them again where its sequence says so, and both compare what arrived. One link of the server is up
/// at any time, and it is not that of the adapter 0 in the end: without the key the client would wait for it.
#[test]
fn block_arrives_whole_though_the_adapter_that_the_program_names_goes_down_over_and_over() {
    let program = installed().compile(&[C11[0], C11[1], "-pthread"], "examples/copy.c", "copy");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("beeline.toml"), CONFIG).unwrap();
    let mut server = start(&program, folder.path(), "4", "-server -size 67108864");
    let survey = loop {
        let config = DomainConfig { root: Some(folder.path().to_owned()), ..DomainConfig::default() };
        match Survey::open(&config) {
            Ok(survey) if survey.members(SERVER).is_ok_and(|members| !members.is_empty()) => break survey,
            _ => std::thread::yield_now(),
        }
    };
    let member = survey.members(SERVER).unwrap()[0].number;
    let [first, second] = [0, 1].map(|number| AdapterNumber::new(number).unwrap());
    let set = |adapter, is_up| survey.set_link(SERVER, member, (adapter, is_up), PATIENCE);
    let mut client = start(&program, folder.path(), "8", "-client -rn 4 -a 0 -piece 64");
    let (mut times, begun) = (0, Instant::now());
    while client.0.try_wait().unwrap().is_none() {
        let (up, down) = if times % 2 == 0 { (second, first) } else { (first, second) };
        // The server may have left between the look and this.
        if times < 11 && set(up, true).is_ok() && set(down, false).is_ok() {
            times += 1;
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "the client goes on by no other adapter");
        std::thread::yield_now();
    }
    assert!(client.0.wait().unwrap().success());
    assert!(server.0.wait().unwrap().success());
    assert_eq!(times, 11, "the client was done before the links had changed");
}
