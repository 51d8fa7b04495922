//! Two network namespaces, the wire between them, and frames to send over it.

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use beeline_ethernet::{
    Accept, AfXdp, AfXdpConfig, ETHER_TYPE, Uplink, UplinkError, XdpAttach, in_network_namespace,
};

/// Far longer than anything here takes.
const WATCHDOG: Duration = Duration::from_secs(30);

/// Two namespaces with an end of a veth each; both are gone with this.
pub struct Net {
    pub near: End,
    pub far: End,
}

/// One end of the wire.
pub struct End {
    pub namespace: String,
    pub interface: String,
    pub address: &'static str,
}

impl Net {
    /// Makes them, or says why it cannot and checks that an up-link says the same.
    pub fn make() -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Relaxed: a number nobody else gets.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{}x{number}", std::process::id());
        let end = |side: char, address| End {
            namespace: format!("bee{unique}{side}"),
            interface: format!("be{unique}{side}"),
            address,
        };
        let net = Net { near: end('a', "10.77.0.1"), far: end('b', "10.77.0.2") };
        match net.set_up() {
            Ok(()) => Some(net),
            Err(why) => {
                println!("no namespaces here, so that nothing is sent: {why}");
                let error = AfXdp::open(&AfXdpConfig::new("lo")).err().map(|error| error.to_string());
                let error = error.unwrap_or_else(|| "AF_XDP socket on lo: CAP_NET_RAW is there".into());
                assert!(error.contains("AF_XDP socket on lo"), "{error}");
                assert!(error.contains("CAP_") || error.contains("CONFIG_XDP_SOCKETS"), "{error}");
                None
            }
        }
    }

    fn set_up(&self) -> Result<(), String> {
        let Net { near, far } = self;
        ip(&["netns", "add", &near.namespace])?;
        ip(&["netns", "add", &far.namespace])?;
        let (a, b) = (&near.interface, &far.interface);
        // Named in the namespace they belong to: the two made here never meet the names of other tests.
        ip(&[
            "-n",
            &near.namespace,
            "link",
            "add",
            a,
            "type",
            "veth",
            "peer",
            "name",
            b,
            "netns",
            &far.namespace,
        ])?;
        for end in [near, far] {
            ip(&[
                "-n",
                &end.namespace,
                "addr",
                "add",
                &format!("{}/24", end.address),
                "dev",
                &end.interface,
            ])?;
            // No router solicitations or other frames of the kernel's own, which would come between ours.
            ip(&["-n", &end.namespace, "link", "set", &end.interface, "addrgenmode", "none", "up"])?;
        }
        Ok(())
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // The first takes the whole veth with it.
        for end in [&self.near, &self.far] {
            let _ = ip(&["netns", "del", &end.namespace]);
        }
    }
}

impl End {
    /// Runs `work` in this end's namespace.
    pub fn inside<R>(&self, work: impl FnOnce() -> R) -> R {
        in_network_namespace(&self.namespace, work).unwrap()
    }

    /// What an AF_XDP socket here is told.
    pub fn config(&self, attach: XdpAttach) -> AfXdpConfig {
        AfXdpConfig { attach, ..AfXdpConfig::new(&self.interface) }
    }

    /// An AF_XDP socket on this end.
    pub fn xdp(&self, attach: XdpAttach) -> AfXdp {
        self.try_xdp(&self.config(attach)).unwrap()
    }

    pub fn try_xdp(&self, config: &AfXdpConfig) -> Result<AfXdp, UplinkError> {
        self.inside(|| AfXdp::open(config))
    }

    /// A UDP socket of this end's kernel.
    pub fn udp(&self) -> UdpSocket {
        let socket = self.inside(|| UdpSocket::bind((self.address, 7))).unwrap();
        socket.set_read_timeout(Some(WATCHDOG)).unwrap();
        socket
    }

    /// What `ip -details link show` says of the interface.
    pub fn shown(&self) -> String {
        ip(&["-n", &self.namespace, "-details", "link", "show", "dev", &self.interface]).unwrap()
    }

    /// Whether an XDP program is attached.
    pub fn has_program(&self) -> bool {
        self.shown().contains("prog/xdp")
    }
}

/// Runs `ip`, and gives what it prints.
pub fn ip(arguments: &[&str]) -> Result<String, String> {
    let done = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr).trim())),
    }
}

/// Tries again and again until there is something.
pub fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(began.elapsed() < WATCHDOG, "gave up waiting for {what}");
        std::thread::yield_now();
    }
}

/// A frame of this type and length whose bytes nobody would guess, and which no two numbers share.
pub fn frame_of(ether_type: u16, number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend(ether_type.to_be_bytes());
    frame.extend(number.to_be_bytes());
    let mut state = number.wrapping_mul(0x9e37_79b9) | 1;
    while frame.len() < bytes {
        // xorshift32.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        frame.push(state as u8);
    }
    frame.truncate(bytes);
    frame
}

/// A frame of Beeline's.
pub fn frame(number: u32, bytes: usize) -> Vec<u8> {
    frame_of(ETHER_TYPE, number, bytes)
}

/// Sends a frame, waiting for room.
pub fn send(from: &mut dyn Uplink, frame: &[u8]) {
    until("room to send", || (from.send(frame).unwrap() == Accept::Taken).then_some(()));
}

/// The next frame.
pub fn receive(at: &mut dyn Uplink) -> Vec<u8> {
    let mut frame = Vec::new();
    until("a frame", || at.poll(&mut frame).unwrap().then_some(()));
    frame
}
