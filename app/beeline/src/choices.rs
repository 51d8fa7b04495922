//! Names on the command line that stand for a choice: interfaces, store kernels, fence policies.
//!
//! Help, man pages and completions list every name there is, so that they are the same on every machine; whether this
//! CPU can follow one is found when it is given.

use std::ffi::OsStr;

use beeline_mmio::Choice;
use beeline_mmio::{NotChosen, StoreKernel, Traffic};
use beeline_platforms::Platform;
use beeline_spec::Interface;
use beeline_window::FencePolicy;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

use crate::failure::Failure;

/// An interface by its name.
pub fn interface() -> impl TypedValueParser<Value = Interface> {
    PossibleValuesParser::new(Interface::ALL.map(Interface::name))
        .map(|name| name.parse::<Interface>().expect("the parser lets only known names through"))
}

/// A fence policy by its name.
pub fn policy() -> impl TypedValueParser<Value = FencePolicy> {
    PossibleValuesParser::new(FencePolicy::ALL.map(FencePolicy::name))
        .map(|name| name.parse::<FencePolicy>().expect("the parser lets only known names through"))
}

/// A user by number.
pub fn uid() -> impl TypedValueParser<Value = u32> {
    StringValueParser::new().try_map(|text| parse_uid(&text))
}

fn parse_uid(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(u32::MAX) => Err(format!("{text} is the number that stands for no user")),
        Ok(uid) => Ok(uid),
        Err(_) if text.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
            Err(format!("a uid is a number from 0 to {}", u32::MAX - 1))
        }
        Err(_) => Err(format!("a uid is a number; `id -u {text}` prints that of a user of this name")),
    }
}

/// A store kernel by its name, if it can be used here.
#[derive(Clone, Copy, Debug)]
pub struct KernelName;

impl TypedValueParser for KernelName {
    type Value = StoreKernel;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<StoreKernel, clap::Error> {
        StringValueParser::new().try_map(|name| kernel(&name)).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let for_memory = StoreKernel::ALL.into_iter().filter(|kernel| kernel.is_for_memory());
        Some(Box::new(for_memory.map(|kernel| PossibleValue::new(kernel.name()))))
    }
}

/// The name of a platform, or its file. Any text is taken: completions offer the names that are built in.
#[derive(Clone, Copy, Debug)]
pub struct PlatformName;

impl TypedValueParser for PlatformName {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Platform::names().map(PossibleValue::new)))
    }
}

/// The kernels that can store to a NIC process's window on this CPU.
fn usable() -> impl Iterator<Item = StoreKernel> {
    StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory())
}

fn kernel(name: &str) -> Result<StoreKernel, String> {
    let chosen = name.parse().map_err(NotChosen::Unknown);
    // The traffic makes no difference to a kernel that is named.
    let chosen = chosen.and_then(|kernel| Choice::make(Traffic::Stream, Some(kernel)));
    chosen.map(|choice| choice.kernel).map_err(|error| {
        let names: Vec<_> = usable().map(StoreKernel::name).collect();
        let why = match error {
            NotChosen::Unknown(_) => "there is no such store kernel".to_owned(),
            refused => refused.to_string(),
        };
        format!("{why}; this machine has {}", names.join(", "))
    })
}

/// Refuses fences where nothing would place them: what was not fenced must not be reported as if it were.
pub fn check_fences(policy: FencePolicy, interfaces: &[Interface]) -> Result<(), Failure> {
    let without = interfaces.iter().find(|interface| **interface != Interface::Mmio);
    match without {
        Some(interface) if policy != FencePolicy::None => Err(Failure::new(format!(
            "--fences {policy} means nothing to {interface}, which has no place for a fence"
        ))
        .remedy(format!("--interface mmio with --fences {policy}, or --fences none"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_cannot_be_used_is_refused_with_those_that_can() {
        for kernel_here in usable() {
            assert_eq!(kernel(kernel_here.name()), Ok(kernel_here));
        }
        let foreign = if cfg!(target_arch = "aarch64") { "nt-sse2" } else { "stnp" };
        for (name, why) in [("fastest", "no such store kernel"), (foreign, "lacks"), ("st64b", "st64b")] {
            let error = kernel(name).unwrap_err();
            assert!(error.contains(why), "{error}");
            let listed = error.split("this machine has ").nth(1).unwrap();
            assert_eq!(
                listed.split(", ").collect::<Vec<_>>(),
                usable().map(StoreKernel::name).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn uid_that_is_none_is_refused_with_how_to_find_it() {
        assert_eq!((parse_uid("0"), parse_uid("4294967294")), (Ok(0), Ok(4_294_967_294)));
        for (text, why) in [
            ("alice", "`id -u alice`"),
            ("4294967295", "stands for no user"),
            ("4294967296", "from 0 to 4294967294"),
            ("-1", "from 0 to 4294967294"),
            ("1000x", "from 0 to 4294967294"),
        ] {
            let error = parse_uid(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn only_mmio_takes_a_fence() {
        let all = Interface::ALL;
        for policy in FencePolicy::ALL {
            assert!(check_fences(policy, &[Interface::Mmio]).is_ok());
            assert_eq!(check_fences(policy, &all).is_ok(), policy == FencePolicy::None, "{policy}");
        }
        let error = check_fences(FencePolicy::PerLine, &[Interface::Mmio, Interface::Kpio]).unwrap_err();
        assert!(error.to_string().contains("--fences per-line means nothing to kpio"), "{error}");
    }
}
