//! The Linux driver does what a network device has to, in a guest, on functions that the NIC's process serves.

use std::time::Duration;

use super::guest::{self, require};
use crate::failure::{Failure, Outcome};
use crate::guest::Guest;
use crate::guest::driver::{self, Nic, WIRE};

/// How often the driver is taken from its function and given back.
const BINDINGS: u32 = 50;
/// Payloads of pings: nothing, around the end of the first line and of a window's line, a whole frame.
const PAYLOADS: [u32; 8] = [0, 1, 8, 13, 14, 100, 1000, 1472];
/// More than anything takes that is run here.
const LIMIT: Duration = Duration::from_secs(120);

/// Loads the driver and checks it; skipped, with the reason, where Debian's packages cannot be had.
pub fn run() -> Outcome {
    let Some(setup) = guest::setup_or_skip("the driver was not loaded", true)? else { return Ok(()) };
    let module = driver::build(&setup)?;
    let nic = Nic::start()?;
    let mut guest = driver::boot(&setup, &nic, module)?;
    println!("  the driver is loaded {:.1} s after the start of the guest", guest.boot_took().as_secs_f64());
    is_bound(&mut guest)?;
    guest.output(WIRE)?;
    answers_pings(&mut guest)?;
    carries_streams(&mut guest)?;
    changes_its_path_meanwhile(&mut guest)?;
    is_bound_again_and_again(&mut guest)?;
    goes_under_load(&mut guest)?;
    is_pulled_and_unloaded(&mut guest)?;
    sends_frames_made_of_blanks(&mut guest)?;
    chooses_its_path(&mut guest)?;
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

/// One ping after the other: of several, `ping` waits for the last no longer than two of the times it has seen, and emulated guests
/// stand still now and then.
fn pings(guest: &mut Guest, how: &str) -> Outcome {
    let each = format!("for i in 1 2 3 4 5; do ping -q -c 1 -W 20 {how} 10.9.0.2 || exit 1; done");
    let output = guest.run_within(&each, LIMIT)?;
    require(&format!("every ping is answered ({how}):\n{}", output.text()), output.status == 0)
}

/// TCP both ways and UDP; what they carry crosses the windows.
fn carries_streams(guest: &mut Guest) -> Outcome {
    guest.output("ip netns exec far iperf3 -s -D && sleep 0.5")?;
    let before = count(guest, "window_next")?;
    for how in ["-t 2", "-t 2 -R", "-t 1 -u -b 20M"] {
        let output = guest.run_within(&format!("iperf3 -c 10.9.0.2 {how}"), LIMIT)?;
        let text = output.text();
        require(&format!("iperf3 {how} ends well:\n{text}"), output.status == 0)?;
        let rate = text.lines().rfind(|line| line.contains("receiver")).unwrap_or_default();
        println!("  iperf3 {how}: {}", rate.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let sent = count(guest, "window_next")? - before;
    require(&format!("it crossed the window, in {sent} lines"), sent > 1000)
}

/// What chi0 has counted under a name: lines stored into its window (`window_next`), and into that of kPIO+WC (`kpio_next`).
fn count(guest: &mut Guest, name: &str) -> Outcome<u64> {
    let said = guest.output(&format!("ethtool -S chi0 | sed -n 's/.*{name}: //p'"))?;
    said.trim().parse().map_err(|_| Failure::new(format!("{said:?} is no count of {name}")))
}

/// The control bit of the paper's first mode: all traffic by kPIO+WC, and back, while TCP streams both ways.
fn changes_its_path_meanwhile(guest: &mut Guest) -> Outcome {
    let before = (count(guest, "window_next")?, count(guest, "kpio_next")?);
    let switched = "iperf3 -c 10.9.0.2 -t 3 --bidir > /tmp/iperf 2>&1 & pid=$!; \
        for i in $(seq 12); do for flag in on off; do \
        ethtool --set-priv-flags chi0 kpio $flag || exit 1; sleep 0.1; done; done; \
        wait $pid || { cat /tmp/iperf; exit 2; }";
    let output = guest.run_within(switched, LIMIT)?;
    require(&format!("streams outlive a change of path:\n{}", output.text()), output.status == 0)?;
    let sent = (count(guest, "window_next")? - before.0, count(guest, "kpio_next")? - before.1);
    require(&format!("both windows were used: {sent:?}"), sent.0 > 100 && sent.1 > 100)?;
    guest.output("ethtool --set-priv-flags chi0 kpio on")?;
    let before = count(guest, "window_next")?;
    for bytes in PAYLOADS {
        pings(guest, &format!("-s {bytes}"))?;
    }
    require("no frame went by the other window", count(guest, "window_next")? == before)?;
    guest.output("ethtool --set-priv-flags chi0 kpio off").map(drop)
}

/// The paper's other modes: a range of TCP ports, and each packet by itself. A signature in the middle of a frame of kPIO+WC loses
/// that frame, and TCP sends it again; a frame that comes with one goes by the other window and is not lost.
fn chooses_its_path(guest: &mut Guest) -> Outcome {
    guest.output("ip netns del far; insmod /beeline/beeline.ko kpio_ports=5000,5300 kpio_mark=7")?;
    guest.output(WIRE)?;
    pings(guest, "-s 500")?;
    require("a ping is of no port", count(guest, "kpio_next")? == 0)?;
    pings(guest, "-m 7")?;
    let marked = count(guest, "kpio_next")?;
    require(&format!("a packet with the mark goes by kPIO+WC, {marked} lines"), (5..100).contains(&marked))?;
    // Little-endian, from the third byte on: words of a frame begin 6 B behind the first byte of a ping.
    pings(guest, "-m 7 -s 400 -p fe5ab0e0b0e0dec0")?;
    guest.output("echo 50 > /sys/module/beeline/parameters/kpio_inject")?;
    guest.output("ip netns exec far iperf3 -s -D && sleep 0.5")?;
    let output = guest.run_within("iperf3 -c 10.9.0.2 -t 3", LIMIT)?;
    require(&format!("TCP makes up for signatures:\n{}", output.text()), output.status == 0)?;
    let (lost, marked) = (count(guest, "kpio_injected")?, count(guest, "kpio_marked")?);
    println!("  {lost} frames were lost by injected signatures, {marked} that came with one were not");
    require(&format!("{lost} signatures were injected"), lost > 10)?;
    require(&format!("{marked} frames came with one"), marked >= 5)?;
    guest.output("rmmod beeline").map(drop)
}

fn is_bound_again_and_again(guest: &mut Guest) -> Outcome {
    let again = format!(
        "cd /sys/bus/pci/drivers/beeline && for i in $(seq {BINDINGS}); do \
         echo 0000:00:01.0 > unbind && echo 0000:00:01.0 > bind || exit 1; \
         [ $((i % 10)) = 0 ] || continue; \
         ip addr add 10.9.0.1/24 dev chi0 && ip link set chi0 up && \
         ping -q -c 1 -W 20 10.9.0.2 > /dev/null || exit 2; done"
    );
    let output = guest.run_within(&again, LIMIT)?;
    require(&format!("it is bound {BINDINGS} times:\n{}", output.text()), output.status == 0)
}

/// Streams both ways from now on, and looks that they do.
fn loads(guest: &mut Guest) -> Outcome {
    let started = "kill $(cat /tmp/load) 2> /dev/null; for end in 'ip netns exec far iperf3 -s -p 5400 -1' \
        'iperf3 -c 10.9.0.2 -p 5400 -t 60 --bidir'; do $end > /dev/null 2>&1 & echo $! > /tmp/load; sleep 1; done";
    guest.output(started)?;
    let before = count(guest, "window_next")?;
    guest.output("sleep 1")?;
    let more = count(guest, "window_next")? - before;
    require(&format!("there is load, {more} lines a second"), more > 100)
}

/// The driver is taken away while it sends and receives, and comes back.
fn goes_under_load(guest: &mut Guest) -> Outcome {
    loads(guest)?;
    guest.output(
        "cd /sys/bus/pci/drivers/beeline && echo 0000:00:01.0 > unbind && echo 0000:00:01.0 > bind",
    )?;
    guest.output("ip addr add 10.9.0.1/24 dev chi0 && ip link set chi0 up")?;
    pings(guest, "-s 56")
}

/// The function goes from the bus while it sends and receives, and is found again; then the module is unloaded under load.
fn is_pulled_and_unloaded(guest: &mut Guest) -> Outcome {
    loads(guest)?;
    guest.output("echo 1 > /sys/bus/pci/devices/0000:00:01.0/remove && sleep 0.2")?;
    require("a link goes with its function", guest.run("ip link show chi0")?.status != 0)?;
    guest
        .output("echo 1 > /sys/bus/pci/rescan && ip addr add 10.9.0.1/24 dev chi0 && ip link set chi0 up")?;
    pings(guest, "-s 56")?;
    loads(guest)?;
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
