//! `beeline sim`: frames in virtual time, point by point, on all cores of this machine.
//!
//! The experiment is `lab`'s, the machine `link/sim`'s, what it costs a platform file's. Here: which points a sweep has, who
//! runs them, and how results are shown. Every point has a machine of its own, so that results are the same whoever runs
//! them, in whatever order.

pub mod args;
mod capture;
mod document;
mod page;
mod plan;
mod row;
mod store;
mod sweep;
mod table;

use std::path::Path;

use args::SimArgs;
use document::Document;
use plan::Plan;
use row::Row;
use store::Store;

use crate::failure::Failure;
use crate::out;

/// Runs `beeline sim`.
pub fn run(args: &SimArgs) -> Result<(), Failure> {
    let rows = if args.merge.is_empty() { swept(args)? } else { store::merge(&args.merge)? };
    publish(args, &rows)?;
    // A sweep in which nothing could be done is no result; one with holes says n/a where they are.
    match rows.iter().find_map(|row| row.why_not.clone()) {
        Some(why) if rows.iter().all(|row| row.figures.is_none()) => {
            Err(Failure::new(format!("no point could be measured: {why}")))
        }
        _ => Ok(()),
    }
}

/// The points that were asked for, of this shard.
fn swept(args: &SimArgs) -> Result<Vec<Row>, Failure> {
    let plan = Plan::new(args)?;
    let (mut store, mut rows) = match &args.resume {
        Some(path) => {
            let (store, rows) = Store::open(path, &plan)?;
            (Some(store), rows)
        }
        None => (None, Vec::new()),
    };
    let wanted = |index: u64| args.shard.is_none_or(|shard| shard.has(index));
    rows.retain(|row| wanted(row.index));
    let left: Vec<u64> = (0..plan.len())
        .filter(|index| wanted(*index) && !rows.iter().any(|row| row.index == *index))
        .collect();
    let quiet = args.json.as_deref() == Some(Path::new("-"));
    let found = sweep::run(&plan, &left, args.jobs, quiet, |row| match &mut store {
        Some(store) => store.append(row),
        None => Ok(()),
    })?;
    rows.extend(found);
    rows.sort_by_key(|row| row.index);
    if rows.is_empty() {
        return Err(Failure::new("this shard has no points").remedy("use fewer shards than there are points"));
    }
    Ok(rows)
}

fn publish(args: &SimArgs, rows: &[Row]) -> Result<(), Failure> {
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| {
            Failure::new(format!("cannot write {}", path.display()))
                .because(error)
                .remedy("name a file you may write")
        })
    };
    let is_stdout = args.json.as_deref() == Some(Path::new("-"));
    if !is_stdout {
        out::text(table::render(rows))?;
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&Document::new(rows))
            .map_err(|error| Failure::new("cannot write JSON").because(error))?;
        if is_stdout { out::line(text)? } else { write(path, &(text + "\n"))? }
    }
    if let Some(path) = &args.csv {
        write(path, &table::csv(rows))?;
    }
    if let Some(path) = &args.html {
        write(path, &page::render(rows))?;
        if !is_stdout {
            out::line(format_args!("\npage: {}", path.display()))?;
        }
    }
    Ok(())
}
