//! Cores on the command line: looked at before anything is started, so that a core that is not there costs no time and
//! nothing says that it is ready.

use beeline_mmio::cpu::{self, PinError};
use beeline_mmio::thread;

use crate::failure::Failure;

/// Whether this process may run on every one of these cores; `option` is what they were given by.
///
/// # Errors
/// The first that it may not, with those that it may.
pub fn check(option: &str, cores: impl IntoIterator<Item = usize>) -> Result<(), Failure> {
    cores.into_iter().try_for_each(|core| {
        may_run_on(core).map_err(|error| {
            let allowed: Vec<String> = cpu::allowed_cores().iter().map(usize::to_string).collect();
            Failure::new(format!("{option} {core}: this process may not run on core {core}"))
                .because(error)
                .remedy(format!("{option} with one of the cores it may use: {}", allowed.join(", ")))
        })
    })
}

/// Tries a core on a thread of its own, so that this one stays where it is: being pinned elsewhere is no obstacle.
fn may_run_on(core: usize) -> Result<(), PinError> {
    let tried = std::thread::scope(|scope| {
        // Without a thread nothing is known against the core.
        thread::spawn_in(scope, "beeline-core", || cpu::pin_current_thread(core)).map(|tries| tries.join())
    });
    tried.map_or(Ok(()), |tried| tried.unwrap_or(Ok(())))
}

/// The two cores of `--cores`.
///
/// # Errors
/// There are not two, or this process may not run on one of them.
pub fn two(cores: &[usize]) -> Result<[usize; 2], Failure> {
    let two = <[usize; 2]>::try_from(cores).map_err(|_| {
        Failure::new(format!("--cores takes two cores, {} were given", cores.len())).remedy("--cores 0,1")
    })?;
    check("--cores", two)?;
    Ok(two)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_that_is_not_allowed_is_refused_with_those_that_are() {
        let allowed = cpu::allowed_cores();
        assert!(check("--core", allowed.iter().copied()).is_ok());
        let error = check("--core", [allowed[0], 1000]).unwrap_err().to_string();
        assert!(
            error.contains("may not run on core 1000") && error.contains("cores it may use: "),
            "{error}"
        );
    }

    #[test]
    fn thread_that_is_pinned_may_still_name_another_core() {
        let [first, second, ..] = *cpu::allowed_cores() else { return };
        let pinned = std::thread::spawn(move || {
            cpu::pin_current_thread(first).unwrap();
            (check("--core", [second]).is_ok(), cpu::allowed_cores())
        });
        assert_eq!(pinned.join().unwrap(), (true, vec![first]));
    }

    #[test]
    fn two_cores_are_wanted() {
        assert!(two(&[0]).unwrap_err().to_string().contains("takes two cores, 1 were given"));
    }
}
