//! The rules of the house that neither the compiler nor clippy knows. Each rule is a function from files to findings.

mod circles;
mod comments;
mod floors;
mod layers;
mod offsets;
mod shape;
mod threads;

use crate::failure::{Outcome, none_found};
use crate::source;

/// Checks the whole project.
pub fn run() -> Outcome {
    let files = source::files(&["rs", "c", "h", "sv", "py", "sh", "toml", "md", "rdl", "json"])?;
    let mut findings = shape::too_long(&files);
    findings.extend(shape::vague_names(&files));
    findings.extend(shape::doubled_examples(&files));
    findings.extend(shape::unfinished(&files));
    findings.extend(shape::readmes(&files));
    findings.extend(layers::unsafe_code(&files));
    findings.extend(layers::interfaces_in_links(&files));
    findings.extend(floors::dependencies(&files));
    findings.extend(circles::between_files(&files));
    findings.extend(offsets::typed(&files));
    findings.extend(comments::say_something(&files));
    findings.extend(threads::unblocked(&files));
    none_found("the house rules are broken (STYLE.md, ARCHITECTURE.md)", findings)?;
    println!("  {} files keep the house rules", files.len());
    Ok(())
}
