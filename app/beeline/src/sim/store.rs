//! Files of results, one point a line: appended to as points are finished, read to go on or to put shards together.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::plan::Plan;
use super::row::Row;
use crate::failure::Failure;

/// The file of `--resume`, which this process alone writes to.
pub struct Store {
    path: PathBuf,
    file: File,
}

impl Store {
    /// Opens or makes the file; and the rows of this sweep that are in it, those of another that had the same points
    /// included. A line that was cut short by an end is dropped.
    ///
    /// # Errors
    /// It cannot be read or written, another process writes to it, or it holds something else.
    pub fn open(path: &Path, plan: &Plan) -> Result<(Store, Vec<Row>), Failure> {
        let failed = |error| {
            Failure::new(format!("cannot use {}", path.display()))
                .because(error)
                .remedy("name a file you may write with --resume")
        };
        let mut file = File::options().read(true).append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new(format!("another process writes to {}", path.display()))
                    .remedy("give each shard a file of its own, and put them together with --merge"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let found = lines(path, &text[..whole])?;
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        let mut store = Store { path: path.to_owned(), file };
        let mut rows: Vec<Row> = Vec::new();
        for row in found {
            let Some(adopted) = plan.adopt(row.clone()) else { continue };
            if adopted != row {
                // Under this sweep's number too, so that the file can be merged with its other shards.
                store.append(&adopted)?;
            }
            if !rows.iter().any(|known| known.index == adopted.index) {
                rows.push(adopted);
            }
        }
        Ok((store, rows))
    }

    /// Adds a finished point.
    ///
    /// # Errors
    /// Writing the file fails.
    pub fn append(&mut self, row: &Row) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(format!("cannot write {}", self.path.display())).because(error)
        };
        let mut line = serde_json::to_string(row).map_err(|error| failed(error.into()))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(failed)
    }
}

fn lines(path: &Path, text: &str) -> Result<Vec<Row>, Failure> {
    let row = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            Failure::new(format!("line {} of {} is no result of `beeline sim`", number + 1, path.display()))
                .because(error)
                .remedy("name another file; this one is left as it is")
        })
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(row).collect()
}

/// Rows of a file, whether `--resume` or `--json` wrote it.
fn read(path: &Path) -> Result<Vec<Row>, Failure> {
    #[derive(serde::Deserialize)]
    struct Document {
        rows: Vec<Row>,
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}", path.display())).because(error))?;
    match serde_json::from_str::<Document>(&text) {
        Ok(document) => Ok(document.rows),
        Err(_) => lines(path, &text),
    }
}

/// Puts shards of one sweep together, in the order of its points.
///
/// # Errors
/// A file cannot be read or is of another sweep, or points are missing.
pub fn merge(paths: &[PathBuf]) -> Result<Vec<Row>, Failure> {
    let mut sweep: Option<(String, &Path)> = None;
    let mut rows: Vec<Row> = Vec::new();
    for path in paths {
        let found = read(path)?;
        let Some(last) = found.last() else {
            return Err(Failure::new(format!("{} holds no results", path.display())));
        };
        let (name, first) = sweep.get_or_insert((last.sweep.clone(), path.as_path()));
        if *name != last.sweep {
            return Err(Failure::new(format!(
                "{} and {} are of different sweeps",
                first.display(),
                path.display()
            ))
            .remedy("run every shard with the same options, but for --shard and files"));
        }
        rows.extend(found.into_iter().filter(|row| row.sweep == *name));
    }
    rows.sort_by_key(|row| row.index);
    rows.dedup_by_key(|row| row.index);
    let points = rows.first().map_or(0, |row| row.points);
    let missing: Vec<String> = (0..points)
        .filter(|index| rows.binary_search_by_key(index, |row| row.index).is_err())
        .map(|index| (index + 1).to_string())
        .collect();
    if missing.is_empty() {
        return Ok(rows);
    }
    let (count, shown) = (missing.len(), missing[..missing.len().min(10)].join(", "));
    let more = if count > 10 { ", ..." } else { "" };
    Err(Failure::new(format!("{count} of {points} points are missing: {shown}{more}"))
        .remedy("run the shards that have them (point p is in shard ((p - 1) mod N) + 1 of N), and name their files too"))
}
