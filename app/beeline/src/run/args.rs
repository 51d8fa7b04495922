//! The command line of `beeline run`.

use std::ffi::OsString;
use std::path::PathBuf;

use beeline_socket_rules::{Rules, RulesError};
use clap::Args;

use crate::options::RootArgs;

/// Options of `run`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline run -- redis-server --port 7777       its connections to programs that run so, too, by plain stores
  beeline run -- redis-benchmark -p 7777
  beeline run --why -- curl http://127.0.0.1/   and, when it has ended, why which connection was the kernel's
  beeline run --spin forever -- ./server        its receivers never sleep
  beeline run --unix true -- redis-server --unixsocket /run/redis.sock    its streams of AF_UNIX, too
  beeline run --never-ports 22,5000-5999 -- ./server
  beeline sockets --watch                       what runs so, and what it has moved

The program, its configuration and its ports stay as they are: a library is preloaded (LD_PRELOAD), and a
connection whose other end has it too leaves the kernel's path once it has carried some messages. All others
are the kernel's. Both programs are of one user and of one domain.
Rules are read from the table sockets of beeline.toml (BEELINE_CONFIG, or /etc/beeline.toml), then from the
variables BEELINE_SOCKETS_*, and then from these options. docs/sockets.md has them all.
The exit code is the command's, 128 and the signal if one ended it, 126 if it cannot be executed, 127 if it
is not found.")]
pub struct RunArgs {
    /// The command, and what it is given
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
    /// When it has ended, say on standard error what carried each connection, and why
    #[arg(long)]
    pub why: bool,
    /// The library to preload [default: $BEELINE_SOCKETS_LIBRARY, or libbeeline_sockets.so beside this program, in its ../lib, or in the
    /// system's folders]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub library: Option<PathBuf>,
    #[command(flatten)]
    pub root: RootArgs,
    #[command(flatten)]
    pub rules: RuleArgs,
}

/// A rule an option, as text: what it means is said where files and variables are read, too.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Rules")]
pub struct RuleArgs {
    /// Whether anything is accelerated
    #[arg(long, value_name = "true|false")]
    accelerate: Option<String>,
    /// Whether sockets of UDP are, too [default: false]
    #[arg(long, value_name = "true|false")]
    udp: Option<String>,
    /// Whether streams of AF_UNIX are, too; both ends have to say so [default: false]
    #[arg(long, value_name = "true|false")]
    unix: Option<String>,
    /// Who is in groups of UDP: kernel, anybody; host, programs of this domain alone, which have windows then [default: kernel]
    #[arg(long, value_name = "WHO")]
    multicast: Option<String>,
    /// Whether connections with processes of other users are, too; both ends have to say so [default: false]
    #[arg(long, value_name = "true|false")]
    other_users: Option<String>,
    /// Addresses or prefixes of hosts, each in a network namespace of its own on this machine; both ends have to say so
    #[arg(long, value_name = "NETS")]
    hosts: Option<String>,
    /// Work under a filter of system calls that is there already and kills for none, as that of a container [default: false]
    #[arg(long, value_name = "true|false")]
    under_filter: Option<String>,
    /// Executables that are, with * and ?, by commas: for programs that the command starts
    #[arg(long, value_name = "NAMES")]
    programs: Option<String>,
    /// Executables that are not
    #[arg(long, value_name = "NAMES")]
    never_programs: Option<String>,
    /// Addresses or prefixes of which either end has one
    #[arg(long, value_name = "NETS")]
    addresses: Option<String>,
    /// Addresses or prefixes that neither end has
    #[arg(long, value_name = "NETS")]
    never_addresses: Option<String>,
    /// Ports or ranges of which either end has one
    #[arg(long, value_name = "PORTS")]
    ports: Option<String>,
    /// Ports or ranges that neither end has
    #[arg(long, value_name = "PORTS")]
    never_ports: Option<String>,
    /// Messages of a connection before it is a candidate [default: 16]
    #[arg(long, value_name = "N")]
    begin_after_messages: Option<String>,
    /// Bytes of a connection before it is one, whatever its messages [default: 64KiB]
    #[arg(long, value_name = "BYTES")]
    begin_after_bytes: Option<String>,
    /// How long a receiver looks before it sleeps; forever: it never sleeps [default: 50us]
    #[arg(long, value_name = "TIME")]
    spin: Option<String>,
    /// Bytes of a window, a power of two from 4KiB to 128KiB [default: 64KiB]
    #[arg(long, value_name = "BYTES")]
    window_bytes: Option<String>,
    /// Bytes of all windows of a process [default: 256MiB]
    #[arg(long, value_name = "BYTES")]
    memory_bytes: Option<String>,
    /// What a sender keeps until it is taken: none, copy [default: none]
    #[arg(long, value_name = "WHAT")]
    retain: Option<String>,
    /// What the library says on standard error: off, error, warn, info, debug [default: warn]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// Domain: the group of processes that can find each other [default: default]
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
}

impl RuleArgs {
    /// The options by their keys.
    fn given(&self) -> [(&'static str, &Option<String>); 21] {
        [
            ("accelerate", &self.accelerate),
            ("udp", &self.udp),
            ("multicast", &self.multicast),
            ("unix", &self.unix),
            ("other_users", &self.other_users),
            ("hosts", &self.hosts),
            ("under_filter", &self.under_filter),
            ("programs", &self.programs),
            ("never_programs", &self.never_programs),
            ("addresses", &self.addresses),
            ("never_addresses", &self.never_addresses),
            ("ports", &self.ports),
            ("never_ports", &self.never_ports),
            ("begin_after_messages", &self.begin_after_messages),
            ("begin_after_bytes", &self.begin_after_bytes),
            ("spin", &self.spin),
            ("window_bytes", &self.window_bytes),
            ("memory_bytes", &self.memory_bytes),
            ("retain", &self.retain),
            ("log", &self.log),
            ("domain", &self.domain),
        ]
    }

    /// The rules of files and variables, and these before them.
    ///
    /// # Errors
    /// Any of them means nothing.
    pub fn rules(&self) -> Result<Rules, RulesError> {
        let mut rules = Rules::read()?;
        for (key, value) in self.given() {
            if let Some(value) = value {
                rules.set_option(key, value)?;
            }
        }
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_rules_has_its_option() {
        let args = RuleArgs::default();
        let keys: Vec<_> = args.given().iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, beeline_socket_rules::key_names().collect::<Vec<_>>());
        use clap::Args as _;
        let command = RuleArgs::augment_args(clap::Command::new("run"));
        for key in keys {
            let is_it = |arg: &clap::Arg| arg.get_long() == Some(&key.replace('_', "-"));
            assert!(command.get_arguments().any(is_it), "{key}");
        }
    }
}
