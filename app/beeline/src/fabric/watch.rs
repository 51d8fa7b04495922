//! `beeline fabric watch`: what `ls` shows, over and over. A terminal shows the tables and the last changes; whatever else reads gets the
//! tables once and then a line for each change, or an object for each look.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::time::Duration;

use super::args::WatchArgs;
use super::changes::changes;
use super::table::text;
use super::view::{View, open_any};
use crate::failure::Failure;
use crate::out;

/// Changes below the tables on a terminal.
const LAST_CHANGES: usize = 10;
/// Moves to the top left corner and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Runs `beeline fabric watch`.
pub fn run(args: &WatchArgs) -> Result<(), Failure> {
    let ground = open_any(&args.ls.survey)?;
    let is_terminal = io::stdout().is_terminal();
    let (mut before, mut last): (Option<View>, _) = (None, VecDeque::new());
    for look in 0.. {
        if args.count == Some(look) {
            return Ok(());
        }
        if look > 0 {
            std::thread::sleep(Duration::from_millis(args.interval_ms));
        }
        let now = View::take(&ground, &args.ls)?;
        let changed = before.as_ref().map(|before| changes(before, &now)).unwrap_or_default();
        if args.ls.json {
            out::line(
                serde_json::to_string(&now).map_err(|e| Failure::new("cannot write JSON").because(e))?,
            )?;
        } else if is_terminal {
            last.extend(changed);
            last.drain(..last.len().saturating_sub(LAST_CHANGES));
            let changed: String = last.iter().map(|change| format!("{change}\n")).collect();
            out::text(format_args!("{CLEAR}{}\n{changed}", text(&now)))?;
        } else if before.is_none() {
            out::line(text(&now))?;
        } else {
            changed.iter().try_for_each(out::line)?;
        }
        before = Some(now);
    }
    Ok(())
}
