//! The keys: how the value of each is read from text, and written back.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;
use glob::Pattern;
use ipnet::IpNet;

use crate::rules::{Level, Multicast, Patterns, Ports, Retain, Rules, Spin};

/// A value as it is given: in a file, a variable or an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    One(String),
    Several(Vec<String>),
}

impl Given {
    fn one(&self) -> Result<&str, String> {
        match self {
            Given::One(text) => Ok(text.trim()),
            Given::Several(_) => Err("it is one value, and no list".to_owned()),
        }
    }

    /// The parts of a list, or of a text with commas.
    fn several(&self) -> Vec<&str> {
        let parts: Vec<&str> = match self {
            Given::One(text) => text.split(',').collect(),
            Given::Several(texts) => texts.iter().map(String::as_str).collect(),
        };
        parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
    }

    fn parse_all<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
        self.several().into_iter().map(parse).collect()
    }

    fn list<T: ToString>(parts: &[T]) -> Self {
        Given::Several(parts.iter().map(T::to_string).collect())
    }
}

impl std::fmt::Display for Given {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Given::One(text) => write!(out, "\"{}\"", text.escape_debug()),
            Given::Several(texts) => write!(out, "{texts:?}"),
        }
    }
}

/// A key of the table `sockets`.
pub struct Key {
    /// As in the file; `BEELINE_SOCKETS_` and it in capitals is its variable.
    pub name: &'static str,
    pub(crate) set: fn(&mut Rules, &Given) -> Result<(), String>,
    pub(crate) get: fn(&Rules) -> Given,
}

/// What can be said in the table, in the order in which it is documented.
pub const KEYS: &[Key] = &[
    Key {
        name: "accelerate",
        set: |rules, given| put(&mut rules.accelerate, flag(given)),
        get: |rules| Given::One(rules.accelerate.to_string()),
    },
    Key {
        name: "udp",
        set: |rules, given| put(&mut rules.udp, flag(given)),
        get: |rules| Given::One(rules.udp.to_string()),
    },
    Key {
        name: "multicast",
        set: |rules, given| put(&mut rules.multicast, word(given, MULTICAST)),
        get: |rules| Given::One(name_of(MULTICAST, rules.multicast)),
    },
    Key {
        name: "unix",
        set: |rules, given| put(&mut rules.unix, flag(given)),
        get: |rules| Given::One(rules.unix.to_string()),
    },
    Key {
        name: "other_users",
        set: |rules, given| put(&mut rules.other_users, flag(given)),
        get: |rules| Given::One(rules.other_users.to_string()),
    },
    Key {
        name: "hosts",
        set: |rules, given| put(&mut rules.hosts, given.parse_all(hosts)),
        get: |rules| Given::list(&rules.hosts),
    },
    Key {
        name: "under_filter",
        set: |rules, given| put(&mut rules.under_filter, flag(given)),
        get: |rules| Given::One(rules.under_filter.to_string()),
    },
    Key {
        name: "programs",
        set: |rules, given| put(&mut rules.programs, patterns(given)),
        get: |rules| Given::list(&rules.programs.0),
    },
    Key {
        name: "never_programs",
        set: |rules, given| put(&mut rules.never_programs, patterns(given)),
        get: |rules| Given::list(&rules.never_programs.0),
    },
    Key {
        name: "addresses",
        set: |rules, given| put(&mut rules.addresses, given.parse_all(net)),
        get: |rules| Given::list(&rules.addresses),
    },
    Key {
        name: "never_addresses",
        set: |rules, given| put(&mut rules.never_addresses, given.parse_all(net)),
        get: |rules| Given::list(&rules.never_addresses),
    },
    Key {
        name: "ports",
        set: |rules, given| put(&mut rules.ports, given.parse_all(ports).map(Ports)),
        get: |rules| list_of_ports(&rules.ports),
    },
    Key {
        name: "never_ports",
        set: |rules, given| put(&mut rules.never_ports, given.parse_all(ports).map(Ports)),
        get: |rules| list_of_ports(&rules.never_ports),
    },
    Key {
        name: "begin_after_messages",
        set: |rules, given| put(&mut rules.begin_after_messages, messages(given)),
        get: |rules| Given::One(rules.begin_after_messages.to_string()),
    },
    Key {
        name: "begin_after_bytes",
        set: |rules, given| put(&mut rules.begin_after_bytes, bytes(given)),
        get: |rules| Given::One(rules.begin_after_bytes.to_string()),
    },
    Key {
        name: "spin",
        set: |rules, given| put(&mut rules.spin, given.one().and_then(spin)),
        get: |rules| Given::One(rules.spin.to_string()),
    },
    Key {
        name: "window_bytes",
        set: |rules, given| put(&mut rules.window_bytes, window(given)),
        get: |rules| Given::One(rules.window_bytes.to_string()),
    },
    Key {
        name: "memory_bytes",
        set: |rules, given| put(&mut rules.memory_bytes, bytes(given)),
        get: |rules| Given::One(rules.memory_bytes.to_string()),
    },
    Key {
        name: "retain",
        set: |rules, given| put(&mut rules.retain, word(given, RETAIN)),
        get: |rules| Given::One(name_of(RETAIN, rules.retain)),
    },
    Key {
        name: "log",
        set: |rules, given| put(&mut rules.log, word(given, LEVELS)),
        get: |rules| Given::One(name_of(LEVELS, rules.log)),
    },
    Key {
        name: "domain",
        set: |rules, given| put(&mut rules.domain, domain(given)),
        get: |rules| Given::One(rules.domain.clone()),
    },
];

/// Every key by its name in the file.
pub fn key_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

const MULTICAST: &[(&str, Multicast)] = &[("kernel", Multicast::Kernel), ("host", Multicast::Host)];
const RETAIN: &[(&str, Retain)] = &[("none", Retain::None), ("copy", Retain::Copy)];
const LEVELS: &[(&str, Level)] = &[
    ("off", Level::Off),
    ("error", Level::Error),
    ("warn", Level::Warn),
    ("info", Level::Info),
    ("debug", Level::Debug),
];
const WINDOW_BYTES: RangeInclusive<u64> = 4 << 10..=128 << 10;
/// More than this is [`Spin::Forever`].
const MAX_SPIN: Duration = Duration::from_secs(60);
/// As `os/domain` has it.
const MAX_DOMAIN_BYTES: usize = 48;

fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

fn flag(given: &Given) -> Result<bool, String> {
    match given.one()? {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("it is true or false".to_owned()),
    }
}

fn patterns(given: &Given) -> Result<Patterns, String> {
    let pattern =
        |text: &str| Pattern::new(text).map_err(|error| format!("`{text}` is no pattern of names: {error}"));
    given.parse_all(pattern).map(Patterns)
}

fn net(text: &str) -> Result<IpNet, String> {
    let of_one = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let found = text.parse::<IpNet>().ok().or_else(of_one);
    found.map(|net| net.trunc()).ok_or_else(|| {
        format!("`{text}` is no address and no prefix, such as 127.0.0.1, 10.0.0.0/8 or fd00::/8")
    })
}

/// Addresses that two network namespaces may both have, each for itself, mean no host.
fn hosts(text: &str) -> Result<IpNet, String> {
    let net = net(text)?;
    let of_each =
        ["127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "0.0.0.0/8", "::/127", "fe80::/10", "ff00::/8"];
    let is_in = |of_each: &IpNet| of_each.contains(&net) || net.contains(of_each);
    match of_each.iter().filter_map(|text| text.parse().ok()).find(is_in) {
        Some(own) => {
            Err(format!("`{text}` is no network of hosts: each network namespace has {own} for itself"))
        }
        None => Ok(net),
    }
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| text.trim().parse::<u16>().ok();
    let range = match text.split_once('-') {
        Some((first, last)) => port(first).zip(port(last)),
        None => port(text).map(|port| (port, port)),
    };
    match range {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => Err(format!("`{text}` is no port from 0 to 65535 and no range of them, such as 8000-8999")),
    }
}

fn list_of_ports(ports: &Ports) -> Given {
    let text = |range: &RangeInclusive<u16>| format!("{}-{}", range.start(), range.end());
    Given::Several(ports.0.iter().map(text).collect())
}

fn messages(given: &Given) -> Result<u32, String> {
    given.one()?.parse().map_err(|_| format!("it is a number of messages, 0 to {}", u32::MAX))
}

fn bytes(given: &Given) -> Result<u64, String> {
    let parsed = given.one()?.parse::<ByteSize>();
    parsed.map(|size| size.as_u64()).map_err(|_| "it is a number of bytes, such as 65536 or 64KiB".to_owned())
}

fn window(given: &Given) -> Result<u32, String> {
    let found = bytes(given)?;
    let is_good = found.is_power_of_two() && WINDOW_BYTES.contains(&found);
    u32::try_from(found)
        .ok()
        .filter(|_| is_good)
        .ok_or_else(|| "a window has a power of two of bytes, from 4KiB to 128KiB".to_owned())
}

fn spin(text: &str) -> Result<Spin, String> {
    let why = || format!("`{text}` is no time up to 60 s, such as 50us, 1ms or 0, and not forever");
    if text == "forever" {
        return Ok(Spin::Forever);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| why())?;
    let unit_ns = match unit.trim() {
        "" if number == 0 => 1,
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(why()),
    };
    let time = number.checked_mul(unit_ns).map(Duration::from_nanos);
    time.filter(|time| *time <= MAX_SPIN).map(Spin::For).ok_or_else(why)
}

fn word<T: Copy>(given: &Given, words: &[(&str, T)]) -> Result<T, String> {
    let text = given.one()?;
    let found = words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        format!("it is one of {}", names.join(", "))
    })
}

fn name_of<T: Copy + PartialEq>(words: &[(&str, T)], value: T) -> String {
    words.iter().find(|(_, each)| *each == value).map(|(name, _)| (*name).to_owned()).unwrap_or_default()
}

fn domain(given: &Given) -> Result<String, String> {
    let text = given.one()?;
    let is_first = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_good = text.bytes().next().is_some_and(is_first)
        && text.bytes().all(|c| is_first(c) || b"._-".contains(&c))
        && text.len() <= MAX_DOMAIN_BYTES;
    match is_good {
        true => Ok(text.to_owned()),
        false => Err("a domain is called [a-z0-9][a-z0-9._-]{0,47}".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &str) -> Result<Rules, String> {
        let mut rules = Rules::default();
        rules.set_option(key, value).map(|()| rules).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_read_with_their_units() {
        assert_eq!(set("spin", "50us").unwrap().spin, Spin::For(Duration::from_micros(50)));
        assert_eq!(set("spin", "2 ms").unwrap().spin, Spin::For(Duration::from_millis(2)));
        assert_eq!(set("spin", "0").unwrap().spin, Spin::For(Duration::ZERO));
        assert_eq!(set("spin", "forever").unwrap().spin, Spin::Forever);
        assert_eq!(set("window_bytes", "128KiB").unwrap().window_bytes, 128 << 10);
        assert_eq!(set("window_bytes", "4096").unwrap().window_bytes, 4096);
        assert_eq!(set("begin_after_bytes", "1 KiB").unwrap().begin_after_bytes, 1024);
        assert_eq!(set("retain", "copy").unwrap().retain, Retain::Copy);
        assert_eq!(set("multicast", "host").unwrap().multicast, Multicast::Host);
        assert_eq!(set("log", "debug").unwrap().log, Level::Debug);
        assert_eq!(set("domain", "lab.1").unwrap().domain, "lab.1");
        assert_eq!(set("addresses", "10.0.0.7/8").unwrap().addresses, ["10.0.0.0/8".parse().unwrap()]);
        assert!(set("ports", "").unwrap().ports.is_empty());
    }

    #[test]
    fn value_that_means_nothing_is_refused_with_what_is_meant() {
        let wrong = [
            ("accelerate", "yes", "true or false"),
            ("udp", "1", "true or false"),
            ("multicast", "true", "kernel, host"),
            ("unix", "/run/*", "true or false"),
            ("other_users", "all", "true or false"),
            ("hosts", "10.0.0.300", "no address and no prefix"),
            ("hosts", "127.0.0.1", "each network namespace has 127.0.0.0/8 for itself"),
            ("hosts", "0.0.0.0/0", "no network of hosts"),
            ("hosts", "::1", "no network of hosts"),
            ("hosts", "fe80::1", "no network of hosts"),
            ("under_filter", "docker", "true or false"),
            ("programs", "a[", "no pattern"),
            ("addresses", "localhost", "no address and no prefix"),
            ("ports", "70000", "no port"),
            ("ports", "9-8", "no port"),
            ("ports", "8-", "no port"),
            ("begin_after_messages", "-1", "a number of messages"),
            ("begin_after_bytes", "many", "a number of bytes"),
            ("spin", "50", "no time"),
            ("spin", "61s", "no time"),
            ("spin", "99999999999999999999s", "no time"),
            ("window_bytes", "2048", "power of two"),
            ("window_bytes", "256KiB", "power of two"),
            ("window_bytes", "65537", "power of two"),
            ("retain", "all", "none, copy"),
            ("log", "loud", "off, error"),
            ("domain", "", "a domain is called"),
            ("domain", "Lab", "a domain is called"),
            ("domain", "../x", "a domain is called"),
        ];
        for (key, value, why) in wrong {
            let error = set(key, value).unwrap_err();
            assert!(error.contains(why) && error.contains(key), "{key} = {value}: {error}");
        }
        let names = [MAX_DOMAIN_BYTES, MAX_DOMAIN_BYTES + 1].map(|bytes| "a".repeat(bytes));
        assert_eq!(names.map(|name| set("domain", &name).is_ok()), [true, false]);
    }

    #[test]
    fn each_key_is_there_once() {
        let mut names: Vec<_> = key_names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }
}
