//! `beeline fabric ls`.

use super::args::LsArgs;
use super::table::text;
use super::view::{View, open_any};
use crate::failure::Failure;
use crate::out;

/// Runs `beeline fabric ls`.
pub fn run(args: &LsArgs) -> Result<(), Failure> {
    let ground = open_any(&args.survey)?;
    let view = View::take(&ground, args)?;
    match args.json {
        true => out::json(&view)?,
        false => out::line(text(&view))?,
    }
    let errors: Vec<_> = view.errors().collect();
    match errors.as_slice() {
        [] => Ok(()),
        errors => Err(Failure::new(errors.join("\nbeeline: "))),
    }
}
