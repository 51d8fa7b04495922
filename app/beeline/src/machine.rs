//! What a figure must name: the CPU, the kernel, whether a hypervisor is beneath.

use std::fs;

use crate::compare::results::Machine;

/// Looks at this machine. `cores` are those the measurement will use.
pub fn look(cores: &[usize]) -> Machine {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Machine {
        cpu: cpu_name(&cpuinfo),
        cpus: cpus(&cpuinfo),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        hypervisor: hypervisor(&cpuinfo),
        cores: cores.to_vec(),
    }
}

/// CPUs that are online, whatever this process is pinned to.
fn cpus(cpuinfo: &str) -> usize {
    let is_cpu = |line: &&str| line.split_once(':').is_some_and(|(key, _)| key.trim() == "processor");
    cpuinfo.lines().filter(is_cpu).count().max(1)
}

/// The model name, with family, model and stepping where the name alone says little (as in guests).
fn cpu_name(cpuinfo: &str) -> String {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let Some(name) = field("model name") else {
        return match (field("CPU implementer"), field("CPU part")) {
            (Some(implementer), Some(part)) => format!("Arm implementer {implementer} part {part}"),
            _ => "unknown CPU".to_owned(),
        };
    };
    match (field("cpu family"), field("model"), field("stepping")) {
        (Some(family), Some(model), Some(stepping)) => {
            format!("{name} (family {family} model {model} stepping {stepping})")
        }
        _ => name,
    }
}

fn hypervisor(cpuinfo: &str) -> String {
    let guest = cpuinfo.lines().any(|line| {
        line.split_once(':').is_some_and(|(key, value)| {
            key.trim() == "flags" && value.split_whitespace().any(|flag| flag == "hypervisor")
        })
    });
    if !guest {
        return "none seen".to_owned();
    }
    let kind = fs::read_to_string("/sys/class/dmi/id/sys_vendor").ok();
    let kind = kind.or_else(|| fs::read_to_string("/sys/hypervisor/type").ok());
    match kind.as_deref().map(str::trim) {
        Some(kind) if !kind.is_empty() => format!("yes ({kind})"),
        _ => "yes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: &str = "processor : 0\ncpu family : 6\nmodel\t: 207\nmodel name : Some CPU\nstepping : 2\n\
                         flags : fpu hypervisor sse2\n";

    #[test]
    fn a_guest_cpu_is_named_with_its_model() {
        assert_eq!(cpu_name(GUEST), "Some CPU (family 6 model 207 stepping 2)");
        assert!(hypervisor(GUEST).starts_with("yes"));
        assert_eq!((cpus(GUEST), cpus(&GUEST.repeat(3)), cpus("")), (1, 3, 1));
        assert_eq!(hypervisor("flags : fpu sse2\n"), "none seen");
    }

    #[test]
    fn an_arm_cpu_is_named_by_its_part() {
        assert_eq!(cpu_name("CPU implementer : 0x41\nCPU part : 0xd40\n"), "Arm implementer 0x41 part 0xd40");
    }
}
