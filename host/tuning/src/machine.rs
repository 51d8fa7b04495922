//! What a timing depends on besides the placement of the cores: the CPU's model, how many there are, the kernel, this release.

use std::path::Path;

/// One line for each. Not the boot: the same machine is as fast after it, and where its cores lie is asked of the line.
pub(crate) fn machine() -> Option<String> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let release = std::fs::read_to_string(Path::new("/proc/sys/kernel/osrelease")).ok()?;
    let (cpu, cpus) = (cpu_model(&cpuinfo)?, cpus(&cpuinfo));
    let version = env!("CARGO_PKG_VERSION");
    Some(format!("cpu: {cpu}\ncpus: {cpus}\nrelease: {}\nversion: {version}", release.trim()))
}

/// Family and model of the first core on x86-64, implementer and part on aarch64.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    const KEYS: [&str; 8] = [
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "CPU implementer",
        "CPU part",
        "CPU revision",
    ];
    let first = cpuinfo.split("\n\n").next()?;
    let fields = first.lines().filter_map(|line| line.split_once(':'));
    let values: Vec<&str> =
        fields.filter(|(key, _)| KEYS.contains(&key.trim())).map(|(_, value)| value.trim()).collect();
    (!values.is_empty()).then(|| values.join(" "))
}

/// Online CPUs, whatever this process may use of them.
fn cpus(cpuinfo: &str) -> usize {
    let is_cpu = |line: &&str| line.split_once(':').is_some_and(|(key, _)| key.trim() == "processor");
    cpuinfo.lines().filter(is_cpu).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_known_by_its_model() {
        let x86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nflags\t: sse\n\nprocessor\t: 1\n";
        assert_eq!((cpu_model(x86).as_deref(), cpus(x86)), (Some("AuthenticAMD 26 2"), 2));
        assert_eq!(cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n").as_deref(), Some("0x41 0xd40"));
        assert_eq!(cpu_model("nothing"), None);
        assert!(machine().is_some_and(|machine| machine.lines().count() == 4));
    }
}
