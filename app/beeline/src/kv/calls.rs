//! `beeline kv get`, `set`, `delete`, `stats`: one call and its result as text.

use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::time::Duration;

use beeline_kv::{Key, KvClient, KvError, KvStats, MAX_VALUE_BYTES};
use beeline_rpc::Deadline;
use beeline_rpc::shm::ClientOptions;
use bytesize::ByteSize;
use serde_json::{Value, json};

use super::args::{CallArgs, DeleteArgs, GetArgs, KeyArgs, SetArgs, StatsArgs};
use crate::failure::Failure;
use crate::{out, waiting};

/// Exit code when there is nothing under a key.
const ABSENT: u8 = 3;

/// Runs `beeline kv get`.
pub fn get(args: &GetArgs) -> Result<ExitCode, Failure> {
    let key = key(&args.key)?;
    let (mut client, deadline) = connect(&args.call)?;
    let mut value = Vec::new();
    if !client.get(key, &mut value, deadline).map_err(|e| failed(&args.call, "get", e))? {
        return absent(key, &args.call);
    }
    if args.call.json {
        let (form, text) = match std::str::from_utf8(&value) {
            Ok(text) => ("text", text.to_owned()),
            Err(_) => ("hex", value.iter().map(|byte| format!("{byte:02x}")).collect()),
        };
        return print_json(
            &json!({ "key": key.to_string(), "found": true, "bytes": value.len(), form: text }),
        )
        .map(|()| ExitCode::SUCCESS);
    }
    // As it is, for other programs; a person's prompt is to begin on a line of its own.
    if io::stdout().is_terminal() {
        value.push(b'\n');
    }
    out::bytes(&value).map(|()| ExitCode::SUCCESS)
}

/// Runs `beeline kv set`.
pub fn set(args: &SetArgs) -> Result<(), Failure> {
    let key = key(&args.key)?;
    let value = match &args.value {
        Some(value) => value.as_bytes().to_vec(),
        None => read_value()?,
    };
    let (mut client, deadline) = connect(&args.call)?;
    client.set(key, &value, deadline).map_err(|e| failed(&args.call, "set", e))?;
    if args.call.json {
        print_json(&json!({ "key": key.to_string(), "stored": true, "bytes": value.len() }))?;
    }
    Ok(())
}

/// Runs `beeline kv delete`.
pub fn delete(args: &DeleteArgs) -> Result<ExitCode, Failure> {
    let key = key(&args.key)?;
    let (mut client, deadline) = connect(&args.call)?;
    if !client.delete(key, deadline).map_err(|e| failed(&args.call, "delete", e))? {
        return absent(key, &args.call);
    }
    if args.call.json {
        print_json(&json!({ "key": key.to_string(), "found": true, "deleted": true }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `beeline kv stats`.
pub fn stats(args: &StatsArgs) -> Result<(), Failure> {
    let (mut client, deadline) = connect(&args.call)?;
    let stats = client.stats(deadline).map_err(|e| failed(&args.call, "stats", e))?;
    let KvStats {
        items,
        used_bytes,
        max_memory_bytes,
        max_value_bytes,
        workers,
        hits,
        misses,
        sets,
        refused,
        deletes,
    } = stats;
    if args.call.json {
        return print_json(&json!({
            "items": items, "used_bytes": used_bytes, "max_memory_bytes": max_memory_bytes,
            "max_value_bytes": max_value_bytes, "workers": workers, "hits": hits, "misses": misses, "sets": sets,
            "refused": refused, "deletes": deletes,
        }));
    }
    let size = |bytes| ByteSize(bytes).display().iec();
    let text = format!(
        "items    {items}\nmemory   {} of {}\nvalues   up to {max_value_bytes} bytes\nthreads  {workers}\n\
         hits     {hits}\nmisses   {misses}\nsets     {sets}\nrefused  {refused}\ndeletes  {deletes}\n",
        size(used_bytes),
        size(max_memory_bytes)
    );
    out::text(text)
}

fn key(args: &KeyArgs) -> Result<Key, Failure> {
    args.key().map_err(|error| {
        let remedy = if args.hex {
            "give 32 hexadecimal digits"
        } else {
            "shorten it, or hash it to 16 bytes and give those with --hex"
        };
        Failure::new("no such key can be").because(error).remedy(remedy)
    })
}

/// Waits for the store, if need be, and connects. The deadline is that of all that the command does.
fn connect(args: &CallArgs) -> Result<(KvClient, Option<Deadline>), Failure> {
    let (name, domain) = (&args.name, &args.reach.domain.name);
    let failed = || Failure::new(format!("cannot reach store {name} in domain {domain}"));
    let timeout = Duration::from_millis(args.timeout_ms);
    let deadline = Deadline::after(timeout);
    let waiting = waiting::say_if_it_takes_long(format!("store {name} in domain {domain}"), timeout);
    let serve = format!("kv serve --name {name}");
    let opened = args.reach.open(deadline.remaining());
    let opened = opened.map_err(|error| args.reach.advise(failed(), &error, &serve).because(error))?;
    let options = ClientOptions { timeout: deadline.remaining(), ..ClientOptions::default() };
    let client = KvClient::connect_awaiting(&opened, name, options)
        .map_err(|error| args.reach.advise(failed(), &error, &serve).because(error))?;
    drop(waiting);
    Ok((client, Some(deadline)))
}

fn failed(args: &CallArgs, what: &str, error: KvError) -> Failure {
    Failure::new(format!("{what} in store {} failed", args.name)).because(error)
}

fn absent(key: Key, args: &CallArgs) -> Result<ExitCode, Failure> {
    if args.json {
        print_json(&json!({ "key": key.to_string(), "found": false }))?;
    } else {
        out::remark(format_args!("beeline: nothing under key {key} in store {}", args.name));
    }
    Ok(ExitCode::from(ABSENT))
}

/// Standard input to its end, or a little more than any value may have.
fn read_value() -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    let limit = MAX_VALUE_BYTES as u64 + 1;
    io::stdin()
        .lock()
        .take(limit)
        .read_to_end(&mut value)
        .map_err(|e| Failure::new("cannot read the value from standard input").because(e))?;
    if value.len() > MAX_VALUE_BYTES {
        let what = format!("the value on standard input is longer than {MAX_VALUE_BYTES} bytes");
        return Err(Failure::new(what).remedy("store it in pieces"));
    }
    Ok(value)
}

fn print_json(value: &Value) -> Result<(), Failure> {
    out::line(value)
}
