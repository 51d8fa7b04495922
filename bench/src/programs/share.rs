//! What `beeline run --why` says of the connections of a run.

use std::ops::AddAssign;

/// Bytes of connections by what carried them. The kernel's are counted from when a connection is a candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub by_windows: u64,
    pub by_socket: u64,
    pub connections: u64,
    /// Reasons why a connection was the kernel's, each once.
    pub reasons: Vec<String>,
}

impl Share {
    /// Reads what was said on standard error; lines of others are left out.
    pub fn read(said: &str) -> Self {
        let mut share = Share::default();
        let lines = said.lines().filter(|line| line.starts_with("  "));
        for (_, what) in lines.filter_map(|line| line.split_once(": ")) {
            // "accelerated; 3000 bytes by windows, 1000 by the socket", "not accelerated: why; 500 bytes by the socket".
            if !what.starts_with("accelerated") && !what.starts_with("not accelerated") {
                continue;
            }
            share.connections += 1;
            let (what, bytes) = what.rsplit_once("; ").unwrap_or((what, ""));
            for part in bytes.split(", ") {
                let count = part.split(' ').next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
                match part.ends_with("by windows") {
                    true => share.by_windows += count,
                    false => share.by_socket += count,
                }
            }
            if let Some((_, why)) = what.split_once(": ") {
                share.add_reason(why);
            }
        }
        share
    }

    /// The part that windows carried, 0 to 1; `None` where nothing was counted.
    pub fn by_window(&self) -> Option<f64> {
        let all = self.by_windows + self.by_socket;
        (all > 0).then(|| self.by_windows as f64 / all as f64)
    }

    fn add_reason(&mut self, why: &str) {
        if !self.reasons.iter().any(|reason| reason == why) {
            self.reasons.push(why.to_owned());
        }
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Share) {
        self.by_windows += other.by_windows;
        self.by_socket += other.by_socket;
        self.connections += other.connections;
        other.reasons.iter().for_each(|why| self.add_reason(why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_all_connections_are_counted_and_reasons_are_told_once() {
        let said = "some program: says something\n\
            beeline: redis-server (pid 7, still running)\n\
            \x20 127.0.0.1:7777 to 127.0.0.1:40000: accelerated; 3000 bytes by windows, 1000 by the socket\n\
            \x20 [::1]:7777 to [::1]:40002: accelerated, and then left to the kernel: splice; 50 bytes by windows, 0 by the socket\n\
            \x20 127.0.0.1:7777 to 127.0.0.1:40001: not accelerated: splice; 500 bytes by the socket\n\
            \x20 127.0.0.1:7777 to 127.0.0.1:40003: not accelerated, and nothing was against it\n";
        let share = Share::read(said);
        assert_eq!((share.by_windows, share.by_socket, share.connections), (3050, 1500, 4));
        assert_eq!(share.reasons, ["splice"]);
        assert_eq!(share.by_window(), Some(3050.0 / 4550.0));
        let mut both = share.clone();
        both += share;
        assert_eq!((both.by_windows, both.connections, both.reasons.len()), (6100, 8, 1));
        assert_eq!(Share::read("beeline: no connection of the run is listed\n").by_window(), None);
    }
}
