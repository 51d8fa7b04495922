//! The Linux driver does what a network device has to, in a guest, on functions that the NIC's process serves.

use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::guest::driver::{self, Nic, WIRE};
use crate::guest::{Guest, Packages, Setup};

/// How often the driver is taken from its function and given back.
const BINDINGS: u32 = 50;
/// Payloads of pings: nothing, around the end of the first line and of a window's line, a whole frame.
const PAYLOADS: [u32; 8] = [0, 1, 8, 13, 14, 100, 1000, 1472];
/// More than anything takes that is run here.
const LIMIT: Duration = Duration::from_secs(120);

/// Loads the driver and checks it; skipped, with the reason, where Debian's packages cannot be had.
pub fn run() -> Outcome {
    let packages = match Packages::bring() {
        Ok(packages) => packages,
        Err(why) => {
            println!("  SKIPPED: the driver was not loaded, because a guest cannot be had:\n  {why}");
            return Ok(());
        }
    };
    let setup = Setup::of(packages)?;
    let module = driver::build(&setup)?;
    let nic = Nic::start()?;
    let mut guest = driver::boot(&setup, &nic, module)?;
    println!("  the driver is loaded {:.1} s after the start of the guest", guest.boot_took().as_secs_f64());
    is_bound(&mut guest)?;
    guest.output(WIRE)?;
    answers_pings(&mut guest)?;
    carries_streams(&mut guest)?;
    is_bound_again_and_again(&mut guest)?;
    goes_under_load(&mut guest)?;
    is_pulled_and_unloaded(&mut guest)?;
    sends_frames_made_of_blanks(&mut guest)?;
    match guest.console().complaint() {
        None => Ok(()),
        Some(line) => Err(Failure::new(format!("the guest's kernel complains: {line}"))),
    }
}

fn is_bound(guest: &mut Guest) -> Outcome {
    let functions = guest.output("lspci -nk -d 1234:bee1")?;
    let bound = functions.matches("Kernel driver in use: beeline").count();
    require(&format!("both functions are the driver's:\n{functions}"), bound == 2)?;
    // So that stores to windows gather and leave in no order; whether they do a guest without KVM cannot show.
    let types = guest.output("cat /sys/kernel/debug/x86/pat_memtype_list | grep -c write-combining")?;
    require("the windows are asked for as write-combining", types.trim() == "2")
}

/// Frames of many lengths, there and back, up to the longest that the device takes.
fn answers_pings(guest: &mut Guest) -> Outcome {
    for bytes in PAYLOADS {
        pings(guest, &format!("-s {bytes}"))?;
    }
    guest.output("ip link set chi0 mtu 9000 && ip -n far link set chi1 mtu 9000")?;
    pings(guest, "-s 8972 -M do")?;
    let refused = guest.run("ip link set chi0 mtu 9199")?.status;
    require("a frame that the device does not take cannot be asked for", refused != 0)?;
    guest.output("ip link set chi0 mtu 1500 && ip -n far link set chi1 mtu 1500").map(drop)
}

fn pings(guest: &mut Guest, how: &str) -> Outcome {
    let said = guest.output(&format!("ping -q -c 5 -i 0.01 -W 5 {how} 10.9.0.2"))?;
    require(&format!("every ping is answered ({how}):\n{said}"), said.contains("5 received, 0% packet loss"))
}

/// TCP both ways and UDP; what they carry crosses the windows.
fn carries_streams(guest: &mut Guest) -> Outcome {
    guest.output("ip netns exec far iperf3 -s -D && sleep 0.5")?;
    let before = lines_sent(guest)?;
    for how in ["-t 2", "-t 2 -R", "-t 1 -u -b 20M"] {
        let output = guest.run_within(&format!("iperf3 -c 10.9.0.2 {how}"), LIMIT)?;
        let text = output.text();
        require(&format!("iperf3 {how} ends well:\n{text}"), output.status == 0)?;
        let rate = text.lines().rfind(|line| line.contains("receiver")).unwrap_or_default();
        println!("  iperf3 {how}: {}", rate.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let sent = lines_sent(guest)? - before;
    require(&format!("it crossed the window, in {sent} lines"), sent > 10_000)
}

/// Lines that chi0 has stored into its window.
fn lines_sent(guest: &mut Guest) -> Outcome<u64> {
    let said = guest.output("ethtool -S chi0 | sed -n 's/.*window_next: //p'")?;
    said.trim().parse().map_err(|_| Failure::new(format!("{said:?} is no count of lines")))
}

fn is_bound_again_and_again(guest: &mut Guest) -> Outcome {
    let again = format!(
        "cd /sys/bus/pci/drivers/beeline && for i in $(seq {BINDINGS}); do \
         echo 0000:00:01.0 > unbind && echo 0000:00:01.0 > bind || exit 1; \
         [ $((i % 10)) = 0 ] || continue; \
         ip addr add 10.9.0.1/24 dev chi0 && ip link set chi0 up && \
         ping -q -c 2 -i 0.01 -W 5 10.9.0.2 > /dev/null || exit 2; done"
    );
    let output = guest.run_within(&again, LIMIT)?;
    require(&format!("it is bound {BINDINGS} times:\n{}", output.text()), output.status == 0)
}

/// The driver is taken away while it sends and receives, and comes back.
fn goes_under_load(guest: &mut Guest) -> Outcome {
    guest.output("iperf3 -c 10.9.0.2 -t 30 > /dev/null 2>&1 & sleep 1")?;
    guest.output(
        "cd /sys/bus/pci/drivers/beeline && echo 0000:00:01.0 > unbind && echo 0000:00:01.0 > bind",
    )?;
    guest.output("ip addr add 10.9.0.1/24 dev chi0 && ip link set chi0 up")?;
    pings(guest, "-s 56")
}

/// The function goes from the bus while it sends and receives, and is found again; then the module is unloaded under load.
fn is_pulled_and_unloaded(guest: &mut Guest) -> Outcome {
    let load = "iperf3 -c 10.9.0.2 -t 30 > /dev/null 2>&1 & sleep 1";
    guest.output(load)?;
    guest.output("echo 1 > /sys/bus/pci/devices/0000:00:01.0/remove && sleep 0.2")?;
    require("a link goes with its function", guest.run("ip link show chi0")?.status != 0)?;
    guest
        .output("echo 1 > /sys/bus/pci/rescan && ip addr add 10.9.0.1/24 dev chi0 && ip link set chi0 up")?;
    pings(guest, "-s 56")?;
    guest.output(load)?;
    let output = guest.run_within("rmmod beeline && insmod /beeline/beeline.ko && rmmod beeline", LIMIT)?;
    require(&format!("the driver is unloaded:\n{}", output.text()), output.status == 0)
}

/// Every word of a payload equals what free words of the window hold.
fn sends_frames_made_of_blanks(guest: &mut Guest) -> Outcome {
    guest.output("ip netns del far && insmod /beeline/beeline.ko blank=0xffffffffffffffff")?;
    guest.output(WIRE)?;
    for bytes in PAYLOADS {
        pings(guest, &format!("-s {bytes} -p ff"))?;
    }
    guest.output("rmmod beeline").map(drop)
}

fn require(what: &str, holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::new(format!("it does not hold that {what}"))) }
}
