//! Loads or stores words of a BAR: what is in a card's registers or windows, without a driver.
//!
//! ```text
//! bar_words 0000:00:01.0 2 load 64 4
//! bar_words 0000:00:01.0 2 store 64 0xfeed 7
//! ```
//!
//! The offset is in bytes, a multiple of 8. The function's memory is switched on by `echo 1 > .../enable`.

use std::process::ExitCode;

use beeline_mmio::{BarKind, PciAddress, PciBar, Region};

const USAGE: &str = "usage: bar_words ADDRESS BAR load OFFSET COUNT | store OFFSET WORD...";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bar_words: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<(), String> {
    let [address, bar, what, offset, rest @ ..] = words else { return Err(USAGE.to_owned()) };
    let address: PciAddress = address.parse().map_err(|error| format!("{address}: {error}"))?;
    let index = u8::try_from(number(bar)?).map_err(|_| format!("there is no BAR {bar}"))?;
    let values: Vec<u64> = rest.iter().map(|word| number(word)).collect::<Result<_, _>>()?;
    let opened = PciBar::open(address, index, BarKind::Uncached).map_err(|error| error.to_string())?;
    let region = opened.region();
    match (&**what, &values[..]) {
        ("load", [count]) => {
            for at in offsets(region, number(offset)?, *count)? {
                println!("{:#x}", region.word(at).load());
            }
        }
        ("store", values @ [_, ..]) => {
            let count = u64::try_from(values.len()).map_err(|error| error.to_string())?;
            for (at, value) in offsets(region, number(offset)?, count)?.zip(values) {
                region.word(at).store(*value);
            }
        }
        _ => return Err(USAGE.to_owned()),
    }
    Ok(())
}

/// The offsets of `count` words from `offset` on, if the BAR has them.
fn offsets(region: &Region, offset: u64, count: u64) -> Result<impl Iterator<Item = usize>, String> {
    let end = count.checked_mul(8).and_then(|bytes| offset.checked_add(bytes));
    let end = end.and_then(|end| usize::try_from(end).ok()).filter(|end| *end <= region.bytes());
    let outside =
        || format!("{count} words from {offset} on are not in the {} bytes of the BAR", region.bytes());
    let end = end.ok_or_else(outside)?;
    let start = usize::try_from(offset).map_err(|_| outside())?;
    if start % 8 == 0 { Ok((start..end).step_by(8)) } else { Err(format!("{offset} is no multiple of 8")) }
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| format!("{text}: {error}"))
}
