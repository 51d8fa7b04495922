//! Progress bars on standard error: for people, never in the way of results.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar of `total` things called `what`; invisible when `quiet` or when standard error is no terminal.
pub fn bar(total: u64, what: &str, quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let template = format!("{{msg:32}} {{bar:30}} {{human_pos}}/{{human_len}} {what} {{eta}}");
    bar.with_style(ProgressStyle::with_template(&template).expect("the template is a constant"))
}
