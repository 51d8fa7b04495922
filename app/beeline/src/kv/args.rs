//! The command line of `beeline kv`.

use std::ffi::OsString;

use beeline_kv::{Key, KeyError, MAX_VALUE_BYTES};
use bytesize::ByteSize;
use clap::{Args, Subcommand};

use crate::options::{AllowArgs, DomainArgs, Idle, ReachArgs};

/// Options of `kv`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline kv serve                        a store under the name kv, until Ctrl-C
  beeline kv set user:1 'Ada Lovelace'
  beeline kv get user:1                   the value, as it is, on standard output
  beeline kv set picture < picture.png    a value from standard input, up to 1 MiB less 16 bytes
  beeline kv get --hex 000102030405060708090a0b0c0d0e0f
  beeline kv set -- -5 -6                 what begins with a minus, behind --
  beeline kv delete user:1
  beeline kv stats --json
  beeline kv serve --name sessions --workers 2 --core 2,3 --max-memory 4GiB
  beeline kv serve --allow-uid 1001       for user 1001 too, who types (uid 1000 serves):
  beeline kv get --owner 1000 user:1

Exit codes of get and delete: 0 found, 3 nothing under the key, 1 anything else.
Programs use the library: crate beeline-kv, or any client of the RPC library (hundreds of nanoseconds a GET).")]
pub struct KvArgs {
    /// What to do with a store
    #[command(subcommand)]
    pub action: KvAction,
}

/// What can be done with a store.
#[derive(Subcommand, Debug, Clone)]
pub enum KvAction {
    /// Serve a store, empty at first, until a signal ends it
    Serve(ServeArgs),
    /// Print the value of a key
    Get(GetArgs),
    /// Store a value under a key, in place of the one it has
    Set(SetArgs),
    /// Remove a key and its value
    Delete(DeleteArgs),
    /// Show what a store holds and has done
    Stats(StatsArgs),
}

/// How a store is called.
#[derive(Args, Debug, Clone)]
pub struct CallArgs {
    /// Name of the store
    #[arg(long, default_value = "kv", value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Milliseconds to wait in all: for a store that is not there yet, to connect, and for the answer
    #[arg(long, default_value_t = 10_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout_ms: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug, Clone)]
pub struct KeyArgs {
    /// Key: a text of 1 to 16 bytes, or 32 hexadecimal digits with --hex
    #[arg(value_name = "KEY")]
    pub key: String,
    /// The key is given as 32 hexadecimal digits
    #[arg(long)]
    pub hex: bool,
}

impl KeyArgs {
    /// The key that was given.
    ///
    /// # Errors
    /// The text is not a key.
    pub fn key(&self) -> Result<Key, KeyError> {
        if self.hex { Key::from_hex(&self.key) } else { Key::from_text(&self.key) }
    }
}

/// Options of `kv serve`.
#[derive(Args, Debug, Clone)]
pub struct ServeArgs {
    /// Name of the store
    #[arg(long, default_value = "kv", value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub domain: DomainArgs,
    #[command(flatten)]
    pub allow: AllowArgs,
    /// Threads that answer; one alone is fastest for one client
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: u16,
    /// Cores to run on, one for each thread
    #[arg(long, value_delimiter = ',', value_name = "CORE")]
    pub core: Vec<usize>,
    /// Memory for keys and values; a store that is full says so and evicts nothing
    ///
    /// All that a store of one worker keeps is in it, what is fragmented included. Of several workers it counts what they ask
    /// of the allocator, which takes some more.
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    pub max_memory: ByteSize,
    /// Take all of that memory at the start (0.1 to 3 s for each GiB), so that no request waits for the kernel to clear a page; for one
    /// thread only
    #[arg(long)]
    pub preallocate: bool,
    /// Longest value, in bytes
    #[arg(long, default_value_t = MAX_VALUE_BYTES as u32, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=MAX_VALUE_BYTES as i64))]
    pub max_value_bytes: u32,
    /// Hash keys so that no client can slow the store down by its choice of keys (about 9 ns a GET)
    #[arg(long)]
    pub secret_hash: bool,
    /// What to do when nothing arrives
    #[arg(long, value_enum, default_value_t = Idle::Sleep)]
    pub idle: Idle,
}

/// Options of `kv get`.
#[derive(Args, Debug, Clone)]
pub struct GetArgs {
    #[command(flatten)]
    pub key: KeyArgs,
    #[command(flatten)]
    pub call: CallArgs,
}

/// Options of `kv set`.
#[derive(Args, Debug, Clone)]
pub struct SetArgs {
    #[command(flatten)]
    pub key: KeyArgs,
    /// Value; without it, standard input to its end
    #[arg(value_name = "VALUE")]
    pub value: Option<OsString>,
    #[command(flatten)]
    pub call: CallArgs,
}

/// Options of `kv delete`.
#[derive(Args, Debug, Clone)]
pub struct DeleteArgs {
    #[command(flatten)]
    pub key: KeyArgs,
    #[command(flatten)]
    pub call: CallArgs,
}

/// Options of `kv stats`.
#[derive(Args, Debug, Clone)]
pub struct StatsArgs {
    #[command(flatten)]
    pub call: CallArgs,
}
