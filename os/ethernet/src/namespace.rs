//! Work inside another network namespace, on this thread only, and back.
//!
//! A socket belongs to the namespace it was made in wherever it is used later, so that only the opening has to be done
//! inside. Other threads are not moved.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::UplinkError;

/// Where `ip netns` keeps namespaces by name.
const FOLDER: &str = "/run/netns";

/// Runs `work` with this thread in the network namespace that `ip netns add NAME` made.
///
/// The thread is back where it was when this returns, or when `work` panics. What `work` does with other threads'
/// help is not inside.
///
/// # Errors
/// There is no such namespace, or the process lacks CAP_SYS_ADMIN.
///
/// # Panics
/// When the kernel does not let the thread back into the namespace that it came from; it can do nothing right then.
pub fn in_network_namespace<R>(name: &str, work: impl FnOnce() -> R) -> Result<R, UplinkError> {
    let failed = |step: &'static str, error: Errno| UplinkError::Namespace {
        name: name.to_owned(),
        step,
        remedy: match error {
            Errno::PERM | Errno::ACCESS => "it needs CAP_SYS_ADMIN: run as root",
            Errno::NOENT => "see `ip netns list`, make it with `ip netns add`",
            _ => "see `ip netns list`",
        },
        error: error.into(),
    };
    // A name is one component of a path.
    if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." {
        return Err(failed("open it", Errno::NOENT));
    }
    let open = |path: PathBuf, step| {
        File::open(path).map_err(|error| failed(step, Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    };
    let there = open(PathBuf::from(FOLDER).join(name), "open it")?;
    let here = open(PathBuf::from("/proc/thread-self/ns/net"), "remember this one")?;
    enter(&there).map_err(|error| failed("enter it", error))?;
    let _back = Back { here };
    Ok(work())
}

fn enter(namespace: &File) -> Result<(), Errno> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
}

/// Goes back on drop.
struct Back {
    here: File,
}

impl Drop for Back {
    fn drop(&mut self) {
        enter(&self.here).expect("a thread may go back to the namespace that it came from just now");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_named_with_the_remedy() {
        for name in ["", "no-such-namespace", "../../proc/self/ns/net", ".."] {
            let error = in_network_namespace(name, || ()).unwrap_err().to_string();
            assert!(
                error.contains(&format!("namespace `{name}`")) && error.contains("ip netns add"),
                "{error}"
            );
        }
    }
}
