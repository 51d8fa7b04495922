//! iperf3: streams in either direction, by small and large writes, and several at once.

use beeline_bench::programs::{Job, servers};

use super::both::{LARGE, LIMIT, both};

/// As much as the kernel's buffers of four connections have.
const BUFFERED: u64 = 64 << 20;

/// The number of this name that comes first behind the word.
fn number(said: &str, object: &str, name: &str) -> u64 {
    let behind = said.split_once(&format!("\"{object}\"")).unwrap_or_else(|| panic!("{said}")).1;
    let behind = behind.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{said}")).1;
    let digits: String = behind.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn iperf3_moves_every_byte() {
    both(&["iperf3"], LARGE, |ground, seen| {
        let million = 1 << 20;
        let transfers = [
            ("-n 200M -l 1M", 200 * million),
            ("-n 20M -l 4K", 20 * million),
            ("-n 1M -l 64", million),
            ("-n 200M -R", 200 * million),
            ("-n 200M -P 4", 200 * million),
        ];
        for (options, wanted) in transfers {
            let server = servers::iperf3(ground, None)?;
            let client = Job::new("iperf3").words("-c 127.0.0.1 --json -p").arg(server.port).words(options);
            let said = seen.run(ground, client)?;
            let sent = number(&said, "sum_sent", "bytes");
            let received = number(&said, "sum_received", "bytes");
            // It sends whole blocks until it has sent so much.
            seen.says(options, format!("sent enough: {}", sent >= wanted));
            // Who receives stops counting when it is told that the other one has ended: what is under way then is in buffers.
            assert!(received <= sent && received + BUFFERED >= sent, "{options}: {received} of {sent}");
            server.wait(LIMIT)?;
        }
        Ok(())
    });
}
