//! Two guests are two hosts of one fabric, with a BAR in common and no kernel: each has IP to the other one by `beeline ip up`, misses it when its
//! program or its whole machine is killed, when it is stopped or its BAR does not answer, and meets it again; a segment of one is stored into from the other, and interrupts go both ways.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::guest::{self, require};
use crate::failure::{Failure, Outcome};
use crate::guest::{AddedFile, Guest, Options, Setup, SharedMemory, programs};

/// Of the BAR: four members, each with room for 64 of the longest packets from each other one.
const BAR_BYTES: u64 = 16 << 20;
/// The function that has the BAR, and the BAR itself.
const FUNCTION: &str = "/sys/bus/pci/devices/0000:00:01.0";
/// More than anything takes that is run here.
const LIMIT: Duration = Duration::from_secs(120);
/// How often what is waited for in a guest is looked for, a tenth of a second between.
const LOOKS: u32 = 600;

/// Boots two guests and has them speak; skipped, with the reason, where Debian's packages cannot be had.
pub fn run() -> Outcome {
    let Some(setup) = guest::setup_or_skip("no two hosts were joined", false)? else { return Ok(()) };
    let memory = SharedMemory::make(BAR_BYTES)?;
    let programs = [
        programs::build_static("beeline-cli", "--bin", "beeline")?,
        programs::build_static("beeline-fabric-bar", "--example", "two_hosts")?,
    ];
    let mut here = Host::boot(&setup, &memory, &programs, 4)?;
    let mut there = Host::boot(&setup, &memory, &programs, 8)?;
    needs_its_function(&mut here)?;
    for host in [&mut here, &mut there] {
        host.enable()?;
        host.start()?;
    }
    meet(&mut here, &mut there)?;
    carry_streams(&mut here, &mut there)?;
    there.kill_program()?;
    here.misses("a program that is killed")?;
    there.start()?;
    meet(&mut here, &mut there)?;
    drop(there);
    here.misses("a machine that is killed")?;
    let mut there = Host::boot(&setup, &memory, &programs, 8)?;
    there.enable()?;
    there.start()?;
    meet(&mut here, &mut there)?;
    stands_still(&mut here, &mut there)?;
    loses_its_function(&mut here, &mut there)?;
    share_a_segment(&mut here, &mut there)?;
    see_each_other(&mut here, &mut there)?;
    for host in [here, there] {
        host.ends_well()?;
    }
    Ok(())
}

/// A guest that is a node.
struct Host {
    guest: Guest,
    node: u16,
    /// How often the program was started in it.
    starts: u32,
}

impl Host {
    fn boot(setup: &Setup, memory: &SharedMemory, programs: &[PathBuf], node: u16) -> Outcome<Self> {
        let options = Options {
            devices: vec![memory.device()],
            files: programs.iter().map(AddedFile::of).collect(),
            modules: vec!["tun".to_owned()],
            ..Options::default()
        };
        let mut guest = Guest::boot(setup, &options)?;
        println!("  node {node} took commands after {:.1} s", guest.boot_took().as_secs_f64());
        guest.output("modprobe tun")?;
        Ok(Host { guest, node, starts: 0 })
    }

    fn enable(&mut self) -> Outcome {
        self.guest.output(&format!("echo 1 > {FUNCTION}/enable")).map(drop)
    }

    /// The other node.
    fn peer(&self) -> u16 {
        12 - self.node
    }

    fn up(&self) -> String {
        let (node, peer) = (self.node, self.peer());
        format!("BEELINE_NODE={node} beeline ip up --json --peers {peer} --memory {FUNCTION}/resource2_wc")
    }

    /// Starts the program. What it says is in a file of this start.
    fn start(&mut self) -> Outcome {
        self.starts += 1;
        let (up, said) = (self.up(), self.said());
        let starts =
            format!("dash -c 'echo $$ > /run/up; exec env {up}' > {said} 2>&1; echo $? > /run/status");
        self.guest.output(&format!("rm -f /run/status; ({starts}) &"))?;
        self.awaits("the device is there", &format!("grep -q '\"what\":\"up\"' {said}"))
    }

    fn said(&self) -> String {
        format!("/run/said.{}", self.starts)
    }

    fn kill_program(&mut self) -> Outcome {
        self.guest.output("kill -KILL $(cat /run/up)").map(drop)
    }

    /// Waits until a command of its shell succeeds.
    fn awaits(&mut self, what: &str, holds: &str) -> Outcome {
        let said = self.said();
        let looks = format!(
            "for i in $(seq {LOOKS}); do {{ {holds}; }} && exit 0; sleep 0.1; done; cat {said}; exit 1"
        );
        let output = self.guest.run_within(&looks, LIMIT)?;
        require(&format!("{what}, at node {}:\n{}", self.node, output.text()), output.status == 0)
    }

    /// Waits until the last that its program says of the other node is this. On a machine that is busy a node may be missed for a while.
    fn hears(&mut self, what: &str) -> Outcome {
        let last = format!("tail -n 1 {} | grep -q '\"what\":\"{what}\"'", self.said());
        self.awaits(&format!("node {}: {what}", self.peer()), &last)
    }

    /// Waits until so many pings were answered, one after the other.
    fn pings(&mut self, how: &str) -> Outcome {
        let address = self.peer_address();
        let each = format!(
            "for i in 1 2 3 4 5; do ping -q -c 1 -W 20 {how} {address} > /run/ping 2>&1 && exit 0; sleep 1; done; cat /run/ping; exit 1"
        );
        let output = self.guest.run_within(&each, LIMIT)?;
        let what = format!("node {} answers a ping {how}:\n{}", self.peer(), output.text());
        require(&what, output.status == 0)
    }

    fn peer_address(&self) -> String {
        format!("10.77.0.{}", self.peer())
    }

    /// The other node is missed, and whoever sends to it is told by ICMP.
    fn misses(&mut self, whom: &str) -> Outcome {
        let start = Instant::now();
        self.hears("absent")?;
        // The bound of a heartbeat is a second; what is looked for is whether, since a busy machine says nothing of when.
        println!("  {whom} was missed after {:.1} s", start.elapsed().as_secs_f64());
        let output = self.guest.run(&format!("ping -c 1 -W 20 {}", self.peer_address()))?;
        let is_told = output.status != 0 && output.text().contains("Destination Host Unreachable");
        require(&format!("its sender is told of it:\n{}", output.text()), is_told)
    }

    /// Waits until its program ends with a status; all that it has said.
    fn ends(&mut self, status: i32) -> Outcome<String> {
        self.awaits("the program ends", "[ -s /run/status ]")?;
        let found = self.guest.output("cat /run/status")?;
        let said = self.guest.output(&format!("cat {}", self.said()))?;
        require(
            &format!("it ends with {status} and not {found}:\n{said}"),
            found.trim() == status.to_string(),
        )?;
        Ok(said)
    }

    /// A signal ends it with what was carried.
    fn ends_well(mut self) -> Outcome {
        self.guest.output("kill -TERM $(cat /run/up)")?;
        let said = self.ends(0)?;
        let has_carried = said.lines().any(|line| {
            line.contains("\"what\":\"carried\"")
                && !line.contains("\"sent_packets\":0,")
                && !line.contains("\"received_packets\":0,")
        });
        require(&format!("it says what it carried:\n{said}"), has_carried)?;
        match self.guest.console().complaint() {
            None => Ok(()),
            Some(line) => Err(Failure::new(format!("the kernel of node {} complains: {line}", self.node))),
        }
    }
}

/// Nothing answers at a BAR of a function that is not enabled: it is refused, with what to do.
fn needs_its_function(host: &mut Host) -> Outcome {
    let output = host.guest.run(&host.up())?;
    let is_told = output.status == 1 && output.text().contains("enable");
    require(&format!("a function that is not enabled is refused:\n{}", output.text()), is_told)
}

/// Each hears of the other one, and packets of all lengths come back.
fn meet(here: &mut Host, there: &mut Host) -> Outcome {
    for host in [here, there] {
        host.hears("came")?;
        for how in ["-s 0", "-s 1472", "-s 8972 -M do"] {
            host.pings(how)?;
        }
    }
    Ok(())
}

/// TCP both ways.
fn carry_streams(here: &mut Host, there: &mut Host) -> Outcome {
    there.guest.output("iperf3 -s -D")?;
    there.awaits("iperf3 listens", "ss -ltn | grep -q :5201")?;
    for how in ["-t 2", "-t 2 -R"] {
        let command = format!("iperf3 -c {} {how}", here.peer_address());
        let output = here.guest.run_within(&command, LIMIT)?;
        let text = output.text();
        require(&format!("iperf3 {how} ends well:\n{text}"), output.status == 0)?;
        let carried = text.lines().rfind(|line| line.contains("receiver")).unwrap_or_default();
        println!("  iperf3 {how}: {}", carried.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Ok(())
}

/// A machine that is stopped is missed, and goes on as the node that it was: nobody has taken its slot.
fn stands_still(here: &mut Host, there: &mut Host) -> Outcome {
    there.guest.stop()?;
    here.misses("a machine that is stopped")?;
    there.guest.go_on()?;
    meet(here, there)
}

/// The function stops answering, as one that is reset does: the program ends with the reason, and can be started again once it answers.
fn loses_its_function(here: &mut Host, there: &mut Host) -> Outcome {
    there.guest.output("setpci -s 00:01.0 COMMAND=0:2")?;
    let said = there.ends(1)?;
    require(
        &format!("it says why:\n{said}"),
        said.contains("member of the fabric no more: the memory is gone"),
    )?;
    here.misses("a node whose function does not answer")?;
    there.guest.output("setpci -s 00:01.0 COMMAND=2:2")?;
    there.start()?;
    meet(here, there)
}

/// Two other programs, members beside those of IP, in slots that the dead have left: a segment, and an interrupt each way.
fn share_a_segment(here: &mut Host, there: &mut Host) -> Outcome {
    let exchange = |role: &str| format!("two_hosts {FUNCTION}/resource2_wc {role}");
    let owner = exchange("owner");
    here.guest.output(&format!("({owner} > /run/owner 2>&1; echo ended $? >> /run/owner) &"))?;
    let user = there.guest.run_within(&exchange("user"), LIMIT)?;
    here.awaits("the owner ends", "grep -q ended /run/owner")?;
    let owner = here.guest.output("cat /run/owner")?;
    let said = format!("{owner}{}", user.text());
    require(&format!("the user reads what the owner answers:\n{said}"), user.status == 0)?;
    let is_read = owner.contains("stored by the user") && owner.contains("ended 0");
    require(&format!("the owner reads what the user has stored:\n{said}"), is_read)
}

/// Who takes no part sees members of both kernels, and either node answers it.
fn see_each_other(here: &mut Host, there: &mut Host) -> Outcome {
    for host in [here, there] {
        for node in [4, 8] {
            let probe = format!("beeline fabric probe {node} --memory {FUNCTION}/resource2_wc");
            let answers = format!("{probe} | grep -q 'node {node} answers'");
            host.awaits(&format!("node {node} answers"), &answers)?;
        }
    }
    Ok(())
}
