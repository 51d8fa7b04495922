//! Addresses to which a socket sends, and whether they are of other hosts.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// How long an address that this host is given may be taken for another host's, and one that it loses for its own.
const FOUND_FOR: Duration = Duration::from_millis(100);
const MOST: usize = 64;

/// What the kernel has said of addresses, and when: it costs three system calls, under the writer's lock, and a program may send to one port of several hosts.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere(Vec<Answer>);

#[derive(Clone, Copy, Debug)]
struct Answer {
    address: IpAddr,
    is_elsewhere: bool,
    found: Instant,
}

impl Elsewhere {
    /// Whether datagrams to an address come to no socket of this host.
    pub(crate) fn has(&mut self, address: IpAddr) -> bool {
        if is_always_here(address) {
            return false;
        }
        self.ask(address, Instant::now(), |address| !beeline_tcp::may_come_to_this_host(address))
    }

    fn ask(&mut self, address: IpAddr, now: Instant, is_elsewhere: impl FnOnce(IpAddr) -> bool) -> bool {
        let known = self.0.iter().position(|answer| answer.address == address);
        if let Some(answer) = known.map(|at| self.0[at])
            && now.saturating_duration_since(answer.found) < FOUND_FOR
        {
            return answer.is_elsewhere;
        }
        let new = Answer { address, is_elsewhere: is_elsewhere(address), found: now };
        let oldest = || (0..MOST).min_by_key(|at| self.0[*at].found);
        match known.or_else(|| if self.0.len() < MOST { None } else { oldest() }) {
            Some(at) => self.0[at] = new,
            None => self.0.push(new),
        }
        new.is_elsewhere
    }
}

/// Addresses that are every host's own, and those of groups and of everybody.
fn is_always_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback()
        || address.is_multicast()
        || address.is_unspecified()
        || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn host(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    #[test]
    fn kernel_is_asked_of_an_address_once_for_a_while_whatever_it_said() {
        let (mut addresses, questions, start) = (Elsewhere::default(), Cell::new(0), Instant::now());
        let mut ask = |number: u8, now| {
            addresses.ask(host(number), now, |address| {
                questions.set(questions.get() + 1);
                address == host(1)
            })
        };
        for _ in 0..3 {
            assert!(ask(1, start) && !ask(2, start + FOUND_FOR / 2));
        }
        assert_eq!(questions.get(), 2);
        assert!(ask(1, start + FOUND_FOR), "asked again");
        assert!(!ask(2, start + FOUND_FOR), "not so old yet");
        assert_eq!(questions.get(), 3);
    }

    #[test]
    fn oldest_answer_makes_room_for_a_new_one() {
        let (mut addresses, start) = (Elsewhere::default(), Instant::now());
        let mut is_asked = |number: usize, at: usize| {
            let mut is_asked = false;
            let now = start + Duration::from_micros(at as u64);
            addresses.ask(host(number as u8), now, |_| {
                is_asked = true;
                true
            });
            is_asked
        };
        assert!((0..=MOST).all(|number| is_asked(number, number)));
        assert!((1..=MOST).all(|number| !is_asked(number, MOST)), "the first alone has gone");
        assert!(is_asked(0, MOST + 1) && is_asked(1, MOST + 2) && !is_asked(3, MOST + 2));
    }

    /// As the kernel says it, which is not asked.
    #[test]
    fn addresses_of_every_host_of_groups_and_of_everybody_are_here_without_a_question() {
        let mut addresses = Elsewhere::default();
        for here in [
            "127.0.0.1",
            "127.3.2.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "ff02::1",
            "::ffff:127.0.0.1",
        ] {
            let here: IpAddr = here.parse().unwrap();
            assert!(!addresses.has(here) && beeline_tcp::may_come_to_this_host(here), "{here}");
        }
        assert!(addresses.0.is_empty());
        assert!(addresses.has(host(1)) && addresses.0.len() == 1);
    }
}
