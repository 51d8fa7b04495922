//! The rules, and what they say of one program and one connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use glob::Pattern;
use ipnet::IpNet;

use crate::Why;

/// Which connections are accelerated, and how. Every value is checked; the default is what holds where nothing is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Whether any connection is accelerated.
    pub accelerate: bool,
    /// Whether sockets of UDP are, too.
    pub udp: bool,
    /// Who is in groups of UDP, as the user declares.
    pub multicast: Multicast,
    /// Whether streams of `AF_UNIX` are, too.
    pub unix: bool,
    /// Whether connections with processes of other users are, too: the user's table of connections can be read by all then.
    pub other_users: bool,
    /// Addresses that mean one host each, in every network namespace of this machine: of connections between two of them the other end is
    /// looked for in all. Empty for none.
    pub hosts: Vec<IpNet>,
    /// Whether it works in a process that was started under a filter of system calls, too: one that refuses calls and does not kill for them.
    pub under_filter: bool,
    /// Programs whose connections are; empty for all.
    pub programs: Patterns,
    /// Programs whose connections never are.
    pub never_programs: Patterns,
    /// Addresses of which either end must have one; empty for all.
    pub addresses: Vec<IpNet>,
    /// Addresses that neither end may have.
    pub never_addresses: Vec<IpNet>,
    /// Ports of which either end must have one; empty for all.
    pub ports: Ports,
    /// Ports that neither end may have.
    pub never_ports: Ports,
    /// Messages of a connection before it is a candidate.
    pub begin_after_messages: u32,
    /// Bytes of a connection before it is a candidate, if it has not had its messages by then.
    pub begin_after_bytes: u64,
    /// How long a receiver looks before it sleeps.
    pub spin: Spin,
    /// Bytes of a window, one a direction: a power of two from 4 KiB to 128 KiB.
    pub window_bytes: u32,
    /// Bytes of all windows of a process at most.
    pub memory_bytes: u64,
    /// Whether a sender keeps what it sent until it is taken.
    pub retain: Retain,
    /// What the library says on standard error.
    pub log: Level,
    /// The domain in which processes find each other.
    pub domain: String,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            accelerate: true,
            udp: false,
            multicast: Multicast::Kernel,
            unix: false,
            other_users: false,
            hosts: Vec::new(),
            under_filter: false,
            programs: Patterns::default(),
            never_programs: Patterns::default(),
            addresses: Vec::new(),
            never_addresses: Vec::new(),
            ports: Ports::default(),
            never_ports: Ports::default(),
            begin_after_messages: 16,
            begin_after_bytes: 64 << 10,
            spin: Spin::For(Duration::from_micros(50)),
            window_bytes: 64 << 10,
            memory_bytes: 256 << 20,
            retain: Retain::None,
            log: Level::Warn,
            domain: "default".to_owned(),
        }
    }
}

/// How long a receiver looks before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// For this time; zero: not at all.
    For(Duration),
    /// It never sleeps, and whoever sends to it never wakes it.
    Forever,
}

/// Who is in groups of UDP (multicast).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multicast {
    /// Anybody, of whom the kernel alone knows.
    Kernel,
    /// Programs of this domain on this host, with the same rule, and nobody else.
    Host,
}

/// What a sender keeps of what it sent by a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// Nothing: a window that is corrupt ends the connection.
    None,
    /// A copy, with a checksum on each message: the stream stays exact.
    Copy,
}

/// What is said on standard error: this and what is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
}

/// Names of programs: patterns with `*`, `?` and `[a-z]`. One with a slash is held against the whole path, others against the file name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patterns(pub(crate) Vec<Pattern>);

impl Patterns {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn have(&self, program: &Path) -> bool {
        let whole = program.to_string_lossy();
        let name = program.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        self.0.iter().any(|pattern| match pattern.as_str().contains('/') {
            true => pattern.matches(&whole),
            false => pattern.matches(&name),
        })
    }
}

/// Numbers of ports, and ranges of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports(pub(crate) Vec<RangeInclusive<u16>>);

impl Ports {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn have(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }
}

impl fmt::Display for Spin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spin::Forever => out.write_str("forever"),
            Spin::For(time) => write!(out, "{}ns", time.as_nanos()),
        }
    }
}

impl Rules {
    /// The rules for a program, by the path of its executable.
    pub fn for_program(self, program: &Path) -> Settings {
        let is_left_out =
            self.never_programs.have(program) || !self.programs.is_empty() && !self.programs.have(program);
        let refused = match self.accelerate {
            false => Some(Why::RulesOff),
            true => is_left_out.then_some(Why::RulesProgram),
        };
        Settings { rules: self, refused }
    }

    /// As [`Rules::for_program`], for this process. Where the kernel does not say what it runs, no name matches.
    pub fn for_this_program(self) -> Settings {
        let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        self.for_program(&program)
    }
}

/// The rules as they are for one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    rules: Rules,
    refused: Option<Why>,
}

impl Settings {
    /// The values: sizes, times, the domain.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Why no connection of the program is accelerated; `None` where some may be.
    pub fn refused(&self) -> Option<Why> {
        self.refused
    }

    /// Whether a stream of `AF_UNIX` may be accelerated, of which rules for addresses and ports say nothing.
    ///
    /// # Errors
    /// [`Why`] it may not.
    pub fn decide_unix(&self) -> Result<(), Why> {
        match self.refused {
            Some(why) => Err(why),
            None if !self.rules.unix => Err(Why::RulesOff),
            // A copy is sent anew where a count of the kernel's says what was received.
            None if self.rules.retain == Retain::Copy => Err(Why::Retain),
            None => Ok(()),
        }
    }

    /// Whether both ends are addresses that mean one host each, wherever they are.
    pub fn are_between_hosts(&self, local: SocketAddr, peer: SocketAddr) -> bool {
        [local, peer].iter().all(|end| {
            let address = end.ip().to_canonical();
            self.rules.hosts.iter().any(|net| net.contains(&address))
        })
    }

    /// Whether a connection may be accelerated. What is forbidden comes before what is allowed. IPv4 addresses that are written as IPv6
    /// ones (`::ffff:10.0.0.1`) are IPv4 ones.
    ///
    /// # Errors
    /// [`Why`] it may not.
    pub fn decide(&self, local: SocketAddr, peer: SocketAddr) -> Result<(), Why> {
        if let Some(why) = self.refused {
            return Err(why);
        }
        let rules = &self.rules;
        let ends = [local, peer];
        let is_in = |nets: &[IpNet]| {
            ends.iter().any(|end| {
                let address: IpAddr = end.ip().to_canonical();
                nets.iter().any(|net| net.contains(&address))
            })
        };
        let are_of = |ports: &Ports| ends.iter().any(|end| ports.have(end.port()));
        if is_in(&rules.never_addresses) || !rules.addresses.is_empty() && !is_in(&rules.addresses) {
            return Err(Why::RulesAddress);
        }
        if are_of(&rules.never_ports) || !rules.ports.is_empty() && !are_of(&rules.ports) {
            return Err(Why::RulesPort);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(pairs: &[(&str, &str)]) -> Rules {
        let mut rules = Rules::default();
        for (key, value) in pairs {
            rules.set_option(key, value).unwrap();
        }
        rules
    }

    fn decide(pairs: &[(&str, &str)], local: &str, peer: &str) -> Result<(), Why> {
        let settings = rules(pairs).for_program(Path::new("/usr/bin/redis-server"));
        settings.decide(local.parse().unwrap(), peer.parse().unwrap())
    }

    const HERE: &str = "127.0.0.1:7777";
    const THERE: &str = "127.0.0.1:40000";

    #[test]
    fn nothing_said_is_every_program_address_and_port() {
        assert_eq!(decide(&[], HERE, THERE), Ok(()));
        assert_eq!(decide(&[("accelerate", "false")], HERE, THERE), Err(Why::RulesOff));
    }

    #[test]
    fn program_is_known_by_its_name_or_by_its_path_and_never_comes_first() {
        let refused =
            |pairs: &[(&str, &str)], path: &str| rules(pairs).for_program(Path::new(path)).refused();
        let left_out = Some(Why::RulesProgram);
        let redis = "/usr/bin/redis-server";
        assert_eq!(refused(&[("programs", "redis-*,nginx")], redis), None);
        assert_eq!(refused(&[("programs", "redis-*,nginx")], "/usr/sbin/nginx"), None);
        assert_eq!(refused(&[("programs", "redis")], redis), left_out);
        assert_eq!(refused(&[("programs", "/usr/bin/*")], redis), None);
        assert_eq!(refused(&[("programs", "/opt/*")], redis), left_out);
        assert_eq!(refused(&[("programs", "*"), ("never_programs", "redis-server")], redis), left_out);
        assert_eq!(refused(&[("programs", "*")], ""), None);
        assert_eq!(refused(&[("programs", "a")], ""), left_out);
    }

    #[test]
    fn streams_without_addresses_are_left_out_until_a_rule_has_them_and_no_address_counts() {
        let decide = |pairs: &[(&str, &str)]| rules(pairs).for_program(Path::new("/bin/a")).decide_unix();
        assert_eq!(decide(&[]), Err(Why::RulesOff));
        assert_eq!(decide(&[("unix", "true"), ("ports", "80"), ("addresses", "10.0.0.0/8")]), Ok(()));
        assert_eq!(decide(&[("unix", "true"), ("retain", "copy")]), Err(Why::Retain));
        assert_eq!(decide(&[("unix", "true"), ("never_programs", "a")]), Err(Why::RulesProgram));
    }

    #[test]
    fn addresses_of_either_end_count_and_never_comes_first() {
        let net = [("addresses", "10.0.0.0/8, fd00::/8")];
        assert_eq!(decide(&net, HERE, THERE), Err(Why::RulesAddress));
        assert_eq!(decide(&net, "10.1.2.3:1", "192.168.0.1:2"), Ok(()));
        assert_eq!(decide(&net, "192.168.0.1:2", "10.1.2.3:1"), Ok(()));
        assert_eq!(decide(&net, "[fd00::1]:1", "[::1]:2"), Ok(()));
        assert_eq!(decide(&net, "[::ffff:10.0.0.1]:1", "[::1]:2"), Ok(()));
        let never = [("addresses", "10.0.0.0/8"), ("never_addresses", "10.0.0.7")];
        assert_eq!(decide(&never, "10.0.0.7:1", "10.0.0.8:2"), Err(Why::RulesAddress));
        assert_eq!(decide(&never, "10.0.0.6:1", "10.0.0.8:2"), Ok(()));
    }

    #[test]
    fn connection_is_between_hosts_whose_both_ends_are_named() {
        let settings = rules(&[("hosts", "10.77.0.0/24, fd77::/64")]).for_program(Path::new("/bin/a"));
        let are = |local: &str, peer: &str| {
            settings.are_between_hosts(local.parse().unwrap(), peer.parse().unwrap())
        };
        assert!(are("10.77.0.1:1", "[::ffff:10.77.0.2]:2") && are("[fd77::1]:1", "[fd77::2]:2"));
        assert!(!are("10.77.0.1:1", "10.77.1.2:2") && !are(HERE, THERE));
    }

    #[test]
    fn ports_of_either_end_count_and_never_comes_first() {
        assert_eq!(decide(&[("ports", "7777")], HERE, THERE), Ok(()));
        assert_eq!(decide(&[("ports", "7777")], THERE, HERE), Ok(()));
        assert_eq!(decide(&[("ports", "7000-7776,7778")], HERE, THERE), Err(Why::RulesPort));
        assert_eq!(decide(&[("ports", "7000-7777")], HERE, THERE), Ok(()));
        let never = [("ports", "7777"), ("never_ports", "40000-50000")];
        assert_eq!(decide(&never, HERE, THERE), Err(Why::RulesPort));
    }
}
