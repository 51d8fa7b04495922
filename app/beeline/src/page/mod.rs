//! Parts of a page that loads nothing from outside: style, facts, charts, raw data.

use beeline_figures::chart::draw;
pub use beeline_figures::chart::{Chart, Series};
use serde::Serialize;

const STYLE: &str = "
:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.7rem;margin-bottom:.2rem}h2{font-size:1.2rem;margin-top:2.4rem;border-bottom:1px solid #ddd}
.lead{color:#444;margin-top:0}figure{margin:1rem 0;overflow-x:auto}figcaption{color:#555;font-size:.9rem}
table.facts{border-collapse:collapse}table.facts td{padding:.15rem 1rem .15rem 0;vertical-align:top}
table.facts td:first-child{color:#555}pre{font-size:.72rem;line-height:1.25;overflow-x:auto;background:#f7f7f7;padding:.8rem}
code{background:#f2f2f2;padding:.1rem .3rem}.key{font-size:1.05rem;background:#eef5fb;padding:.8rem 1rem;border-left:4px solid #0072b2}
details{margin:.5rem 0}";

/// Closing part of a page.
pub const END: &str = "</body></html>\n";

/// What begins a page, to the start of its body.
pub fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{}</title><style>{STYLE}</style></head><body>\n",
        escape(title)
    )
}

/// Text as it can stand in a page.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A heading, and what is to be known, line by line.
pub fn facts(title: &str, rows: &[(&str, String)]) -> String {
    let cells: String =
        rows.iter().map(|(k, v)| format!("<tr><td>{k}</td><td>{}</td></tr>", escape(v))).collect();
    format!("<h2>{title}</h2><table class=\"facts\">{cells}</table>\n")
}

/// A chart with words below it, which may have markup.
pub fn figure(chart: &Chart<'_>, caption: &str) -> String {
    format!("<figure>{}<figcaption>{caption}</figcaption></figure>\n", draw(chart))
}

/// Appends a point to the series with this name, which is made if it is not there.
pub fn add(series: &mut Vec<Series>, name: String, point: (f64, f64)) {
    match series.iter_mut().find(|series| series.name == name) {
        Some(series) => series.points.push(point),
        None => series.push(Series::line(name, vec![point])),
    }
}

/// Text that is shown when somebody asks for it.
pub fn folded(name: &str, text: &str) -> String {
    format!("<details><summary>{}</summary><pre>{}</pre></details>\n", escape(name), escape(text))
}

/// Everything behind the page, to be read back by programs.
pub fn data(results: &impl Serialize) -> String {
    // `<` cannot end the script element early: it is written as an escape that JSON readers undo.
    let json = serde_json::to_string(results).unwrap_or_default().replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"results\">{json}</script>\n")
}
