//! Which process a board is of, and whether it lives: by its number, when it began, and where its image has its stack, which a new image has
//! elsewhere.
//!
//! No descriptor and no lock tells, because programs close descriptors that they did not open.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

/// Whether a process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Running,
    Ended,
    /// It is of another pid namespace, or the kernel does not say.
    Unknown,
}

/// A process as it was when it made its board. 0 is what could not be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) pid: u32,
    /// Ticks of the kernel between its start and the process's.
    pub(super) start: u64,
    /// The number of its pid namespace.
    pub(super) namespace: u64,
    /// The start of the kernel, by a random number.
    pub(super) boot: u64,
    /// The bottom of its stack, which is elsewhere in each image.
    pub(super) image: u64,
}

/// What the kernel lists of a process.
struct Listed {
    is_zombie: bool,
    start: u64,
    image: u64,
}

impl Recorded {
    pub(super) fn of_this_process() -> Self {
        let listed = Listed::of("self").ok();
        Recorded {
            pid: std::process::id(),
            start: listed.as_ref().map_or(0, |listed| listed.start),
            namespace: namespace(),
            boot: boot(),
            image: listed.as_ref().map_or(0, |listed| listed.image),
        }
    }

    pub(super) fn life(&self) -> Life {
        let differ = |own: u64, other: u64| own != 0 && other != 0 && own != other;
        if differ(self.boot, boot()) {
            return Life::Ended;
        }
        if self.pid == 0 || self.start == 0 || self.namespace == 0 || self.namespace != namespace() {
            return Life::Unknown;
        }
        match Listed::of(&self.pid.to_string()) {
            Ok(listed) if listed.is_zombie || listed.start != self.start => Life::Ended,
            Ok(listed) if differ(self.image, listed.image) => Life::Ended,
            Ok(_) => Life::Running,
            // Where this process itself is listed, whoever is not is gone.
            Err(ErrorKind::NotFound) if Listed::of("self").is_ok() => Life::Ended,
            Err(_) => Life::Unknown,
        }
    }
}

impl Listed {
    fn of(process: &str) -> Result<Self, ErrorKind> {
        let text =
            std::fs::read(format!("/proc/{process}/stat")).map_err(|error| match error.raw_os_error() {
                // It ended between the two calls that reading takes.
                Some(code) if code == rustix::io::Errno::SRCH.raw_os_error() => ErrorKind::NotFound,
                _ => error.kind(),
            })?;
        Self::parse(&String::from_utf8_lossy(&text)).ok_or(ErrorKind::InvalidData)
    }

    /// `7 (name) S ...`: the name may hold anything, so fields are counted behind its end (proc_pid_stat(5)).
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(Listed {
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            start: number(22)?,
            image: number(28).unwrap_or(0),
        })
    }
}

fn namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |data| data.ino())
}

fn boot() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_another_of_its_number_does_not() {
        let own = Recorded::of_this_process();
        assert!(own.start != 0 && own.namespace != 0 && own.boot != 0 && own.image != 0, "{own:?}");
        assert_eq!(own.life(), Life::Running);
        let ended = [
            Recorded { start: own.start + 1, ..own },
            Recorded { boot: own.boot ^ 1, ..own },
            Recorded { image: own.image + 16, ..own },
            Recorded { pid: u32::MAX, ..own },
        ];
        assert_eq!(ended.map(|process| process.life()), [Life::Ended; 4]);
        let unknown = [
            Recorded { namespace: own.namespace ^ 1, ..own },
            Recorded { start: 0, ..own },
            Recorded::default(),
        ];
        assert_eq!(unknown.map(|process| process.life()), [Life::Unknown; 3]);
        assert_eq!(Recorded { image: 0, ..own }.life(), Life::Running);
    }

    #[test]
    fn child_that_nobody_has_waited_for_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let listed = Listed::of(&child.id().to_string()).unwrap();
        let own = Recorded::of_this_process();
        let process = Recorded { pid: child.id(), start: listed.start, image: 0, ..own };
        assert_eq!(process.life(), Life::Running);
        child.kill().unwrap();
        let wait = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), wait).unwrap();
        assert_eq!(process.life(), Life::Ended);
        child.wait().unwrap();
        assert_eq!(process.life(), Life::Ended);
    }

    #[test]
    fn name_of_a_process_may_hold_anything() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 77 20 21 22 23 24 99 26";
        let parse = |text: &str| Listed::parse(text).map(|it| (it.is_zombie, it.start, it.image));
        assert_eq!(parse(&format!("7 (a) Z 1) {rest}")), Some((false, 77, 99)));
        assert_eq!(parse("7 (a) Z 1 2"), None);
        assert_eq!(parse(""), None);
    }
}
