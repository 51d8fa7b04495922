//! What waits at a port of a switch to leave by it, and who is next.

use std::collections::VecDeque;

use crate::pcie::{Class, MayPass, Tlp, may_pass};

/// Packets that wait to leave by one port, by the port that they came by.
#[derive(Debug)]
pub(super) struct Egress {
    from: Vec<Waiting>,
    /// By class, the ingress that is asked first: the one behind that which was last taken from.
    next: [usize; 3],
}

#[derive(Debug, Default)]
struct Waiting {
    /// In the order in which they came.
    queue: VecDeque<Tlp>,
    of_class: [usize; 3],
}

impl Egress {
    /// Nothing waits, from any of so many ports.
    pub(super) fn new(ports: usize) -> Egress {
        Egress { from: (0..ports).map(|_| Waiting::default()).collect(), next: [0; 3] }
    }

    /// A packet that came by `ingress` comes last.
    pub(super) fn push(&mut self, ingress: u16, tlp: Tlp) {
        let waiting = &mut self.from[usize::from(ingress)];
        waiting.of_class[tlp.kind.class() as usize] += 1;
        waiting.queue.push_back(tlp);
    }

    /// The packet of a class that leaves next: ingresses in turn, and of each the oldest one if it may pass what is older.
    pub(super) fn take(&mut self, class: Class) -> Option<Tlp> {
        let ports = self.from.len();
        let first = self.next[class as usize];
        for nth in 0..ports {
            let ingress = (first + nth) % ports;
            if let Some(tlp) = self.from[ingress].take(class) {
                self.next[class as usize] = (ingress + 1) % ports;
                return Some(tlp);
            }
        }
        None
    }
}

impl Waiting {
    fn take(&mut self, class: Class) -> Option<Tlp> {
        if self.of_class[class as usize] == 0 {
            return None;
        }
        let at = self.queue.iter().position(|tlp| tlp.kind.class() == class)?;
        let tlp = self.queue[at];
        let may_go = self.queue.range(..at).all(|older| may_pass(&tlp, older) != MayPass::No);
        if !may_go {
            return None;
        }
        self.of_class[class as usize] -= 1;
        self.queue.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcie::Kind;

    fn packet(kind: Kind, body: u32) -> Tlp {
        Tlp { body, ..Tlp::new(kind, 0, 4) }
    }

    #[test]
    fn ingresses_take_turns_and_keep_their_order() {
        let mut egress = Egress::new(3);
        for (ingress, body) in [(1, 10), (1, 11), (1, 12), (2, 20), (2, 21)] {
            egress.push(ingress, packet(Kind::MemoryWrite, body));
        }
        let order: Vec<_> = std::iter::from_fn(|| egress.take(Class::Posted)).map(|tlp| tlp.body).collect();
        assert_eq!(order, [10, 20, 11, 21, 12]);
    }

    #[test]
    fn a_read_waits_for_the_writes_in_front_of_it_and_not_for_those_of_others() {
        let mut egress = Egress::new(2);
        egress.push(0, packet(Kind::MemoryWrite, 1));
        egress.push(0, packet(Kind::MemoryRead, 2));
        egress.push(1, packet(Kind::MemoryRead, 3));
        egress.push(0, packet(Kind::MemoryWrite, 4));
        assert_eq!(egress.take(Class::NonPosted).map(|tlp| tlp.body), Some(3));
        assert_eq!(egress.take(Class::NonPosted), None);
        assert_eq!(egress.take(Class::Posted).map(|tlp| tlp.body), Some(1));
        // A write passes a read that is older.
        assert_eq!(egress.take(Class::Posted).map(|tlp| tlp.body), Some(4));
        assert_eq!(egress.take(Class::NonPosted).map(|tlp| tlp.body), Some(2));
    }
}
