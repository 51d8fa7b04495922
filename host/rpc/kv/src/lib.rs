//! A key-value store in the manner of Memcached, called over windows: 16-byte keys, values up to 1 MiB less 16 bytes.
//!
//! [`KvService`] answers in the threads of a [`beeline_rpc::shm::Server`], one service a thread over one set of items;
//! [`KvClient`] asks. A GET reads the key as two words of the request where it lies, and the value is stored into the
//! client's window straight from where it is kept: no copy between, no allocation, no lock.
//!
//! ```no_run
//! use beeline_domain::{Domain, DomainConfig};
//! use beeline_kv::{Key, KvClient, KvOptions, KvService};
//! use beeline_rpc::shm;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let domain = Domain::open(&DomainConfig::named("demo"))?;
//! // One program:
//! let mut services = KvService::open(1, KvOptions::default())?;
//! let (_server, mut workers) = shm::Server::offer(&domain, "kv", shm::ServerOptions::default())?;
//! std::thread::spawn(move || loop { workers[0].poll(&mut services[0]); });
//! // Another one:
//! let mut client = KvClient::connect(&domain, "kv", shm::ClientOptions::default())?;
//! let key = Key::from_text("answer")?;
//! client.set(key, b"42", None)?;
//! let mut value = Vec::new();
//! assert!(client.get(key, &mut value, None)?);
//! assert_eq!(value, b"42");
//! # Ok(())
//! # }
//! ```
//!
//! **One thread** has the items to itself: an item is a line of 64 bytes with values up to 40 bytes inside, and a GET touches three
//! cache lines. All of them lie in one mapping, so the store never takes more memory than it was given, whatever was stored
//! and deleted before, and what is free can be used for whatever comes. **Several threads** share a table that is read without a lock ([`papaya`]); a SET allocates, and what it
//! replaces is freed once no reader can have it.
//!
//! **Memory is bounded**, and a store that is full says so: nothing is evicted, because an order of use costs a store
//! for each GET, and a value that silently goes is another service.
//!
//! Not here: persistence, expiry, replication. Source: the use that papers R and N name (docs/papers.md).
#![forbid(unsafe_code)]

mod arena;
mod blocks;
mod client;
mod counters;
mod error;
mod hash;
mod item_page;
mod key;
mod options;
pub mod protocol;
mod service;
mod shared;
mod single_thread;
mod table;
mod value;

pub use client::{Ended, KvClient};
pub use counters::KvStats;
pub use error::{KvError, OpenError};
pub use key::{KEY_BYTES, Key, KeyError};
pub use options::{Hashing, KvOptions, MAX_VALUE_BYTES};
pub use service::KvService;
