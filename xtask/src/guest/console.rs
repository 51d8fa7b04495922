//! What the kernel of a guest says on its console, and whether that is its end.

use std::fs;
use std::path::PathBuf;

/// With these words the kernel says that it stops, or that it found a fault in itself.
const FAULTS: [&str; 4] = ["Kernel panic - not syncing", "Oops:", "BUG: ", "general protection fault"];
/// With this word it says that a driver did what it must not, and where, and goes on.
const WARNING: &str = "WARNING: ";
/// Lines that a failure shows.
const TAIL: usize = 40;

/// The file that a console is written to.
#[derive(Debug)]
pub struct Console {
    path: PathBuf,
}

impl Console {
    pub fn at(path: PathBuf) -> Self {
        Console { path }
    }

    /// All that was said.
    pub fn text(&self) -> String {
        let bytes = fs::read(&self.path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    /// The last lines.
    pub fn tail(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    /// The first line by which the kernel says that it stops, or has a fault.
    pub fn fault(&self) -> Option<String> {
        first_with(&self.text(), &FAULTS)
    }

    /// The first line by which the kernel says that something is wrong, be it a warning.
    pub fn complaint(&self) -> Option<String> {
        first_with(&self.text(), &[&FAULTS[..], &[WARNING]].concat())
    }
}

fn first_with(text: &str, marks: &[&str]) -> Option<String> {
    text.lines().find(|line| marks.iter().any(|mark| line.contains(mark))).map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_and_warning_are_told_apart() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let console = Console::at(file.path().to_owned());
        let says = |text: &str| fs::write(file.path(), text).unwrap();
        says("[    0.1] [ cut here ]\r\n[    0.2] WARNING: CPU: 0 PID: 1 at x.c:1\r\n");
        assert_eq!(console.fault(), None);
        assert_eq!(console.complaint().unwrap(), "[    0.2] WARNING: CPU: 0 PID: 1 at x.c:1");
        says("[ 1.0] Oops: 0002 [#1]\r\n[ 1.1] Kernel panic - not syncing: Fatal exception\r\n");
        assert_eq!(console.fault().unwrap(), "[ 1.0] Oops: 0002 [#1]");
        says(&"line\n".repeat(100));
        assert_eq!(console.tail().lines().count(), TAIL);
        assert_eq!((console.fault(), console.complaint()), (None, None));
    }
}
