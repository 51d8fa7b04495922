//! One HTML page: plots of our curves under published points, tables, raw data. It loads nothing from outside.

use std::ops::Range;

use super::table::{left_out_words, state, tables};
use super::{csv, json, ours, percent, remarks, short, verdict};
use crate::chart;
use crate::error::Error;
use crate::evaluate::RowResult;
use crate::fences::HYPOTHESES;
use crate::run::Outcome;
use crate::score::{MEDIAN_TARGET_PERCENT, NEAR_PERCENT, NEAR_TARGET_PERCENT};

const STYLE: &str = "
:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;max-width:980px;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.7rem;margin-bottom:.2rem}h2{font-size:1.2rem;margin-top:2.4rem;border-bottom:1px solid #ddd}
h3{font-size:1rem;margin:1.6rem 0 0}
.lead{color:#444;margin-top:0}figure{margin:.4rem 0 1rem;overflow-x:auto}figcaption{color:#555;font-size:.9rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.82rem;width:100%}
th,td{padding:.15rem .5rem .15rem 0;vertical-align:top;text-align:left;border-bottom:1px solid #eee}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tr.scored{background:#eef5fb}tr.far{background:#fbeeea}
pre{font-size:.72rem;line-height:1.25;overflow-x:auto;background:#f7f7f7;padding:.8rem}
.key{font-size:1.05rem;background:#eef5fb;padding:.8rem 1rem;border-left:4px solid #0072b2}
.warn{background:#fbeeea;border-left-color:#d55e00}details{margin:.5rem 0}";

/// Renders a whole outcome as one HTML page without scripts.
///
/// # Errors
/// A plot cannot be drawn.
pub fn page(outcome: &Outcome) -> Result<String, Error> {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">";
    html += &format!("<title>Published figures and ours</title><style>{STYLE}</style></head><body>\n");
    html += "<h1>Published figures beside ours</h1>\n";
    html += "<p class=\"lead\">Lines are <b>simulated</b>: platforms in virtual time, each from its file. Squares are \
             <b>published</b>: numbers that stand in the sources, on their authors' machines. Nothing here was measured.</p>\n";
    html += &headline(outcome);
    if !outcome.figures.is_empty() {
        html += "<h2>Figures</h2>\n";
    }
    for figure in &outcome.figures {
        html += &format!("<h3>{}</h3>\n<figure>", escape(figure.title.as_str()));
        html += &chart::draw(&figure.chart());
        html += &format!("<figcaption>{}</figcaption></figure>\n", escape(&figure.caption));
    }
    html += &fences(outcome);
    html += &scores(outcome);
    html += &left_out(outcome);
    html += &rows(outcome);
    html += &raw(outcome)?;
    html += "</body></html>\n";
    Ok(html)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn headline(outcome: &Outcome) -> String {
    let own = &outcome.score.own;
    let conflicts = outcome.conflicts.iter().map(|c| format!("<br>{}", escape(c))).collect::<String>();
    let class = if outcome.conflicts.is_empty() { "key" } else { "key warn" };
    format!(
        "<p class=\"{class}\">{} scored rows of the five sources: median error <b>{}</b> (aim {MEDIAN_TARGET_PERCENT} %), \
         <b>{}</b> within {NEAR_PERCENT} % (aim {NEAR_TARGET_PERCENT} %), {} without a figure of ours. {}{conflicts}</p>\n",
        own.rows + own.missing.len(),
        percent(own.median_percent),
        percent(own.near_percent),
        own.missing.len(),
        escape(&state(&outcome.state)),
    )
}

/// A table: header cells (those in `figures` right-aligned) and rows of cells.
fn table(
    header: &[&str],
    figures: Range<usize>,
    rows: impl Iterator<Item = (String, Vec<String>)>,
) -> String {
    let class = |index: usize| if figures.contains(&index) { " class=\"n\"" } else { "" };
    let mut html = String::from("<div class=\"scroll\"><table><tr>");
    for (index, name) in header.iter().enumerate() {
        html += &format!("<th{}>{name}</th>", class(index));
    }
    for (row_class, cells) in rows {
        html += &format!("</tr>\n<tr{row_class}>");
        for (index, cell) in cells.iter().enumerate() {
            html += &format!("<td{}>{}</td>", class(index), escape(cell));
        }
    }
    html + "</tr></table></div>\n"
}

fn fences(outcome: &Outcome) -> String {
    let header: Vec<&str> =
        ["platform", "row", "published", "file says"].into_iter().chain(HYPOTHESES).collect();
    let rows = outcome.fences.iter().map(|row| {
        let mut cells = vec![row.platform.clone(), row.row.to_string(), short(row.published_ns)];
        cells.push(row.chosen.clone().unwrap_or("-".to_owned()));
        cells.extend(row.ours_ns.iter().map(|ns| ns.map_or("-".to_owned(), short)));
        (String::new(), cells)
    });
    format!(
        "<h2>What a fence waits for</h2>\n<p>ns for each 64-byte message with a fence behind it, if the fence waits for \
         nothing but empty buffers, or also for an acknowledgement of the uncore, of the root complex, of the device.</p>\n{}",
        table(&header, 2..header.len(), rows)
    )
}

fn scores(outcome: &Outcome) -> String {
    let cells = |name: String, knobs: String, fitted: String, tally: &crate::score::Tally| {
        let cells = vec![
            name,
            knobs,
            fitted,
            tally.rows.to_string(),
            tally.missing.len().to_string(),
            percent(tally.median_percent),
            percent(tally.worst_percent),
            percent(tally.near_percent),
        ];
        (String::new(), cells)
    };
    let platforms = outcome.score.platforms.iter().map(|p| {
        cells(p.platform.clone(), p.knobs.len().to_string(), p.fitted_rows.len().to_string(), &p.tally)
    });
    let seeds = outcome
        .score
        .seeds
        .iter()
        .map(|(seed, tally)| cells(format!("source {seed:03}"), String::new(), String::new(), tally));
    let groups = outcome
        .score
        .groups()
        .map(|(name, tally)| cells(name.to_owned(), String::new(), String::new(), tally));
    let header = ["platform", "knobs", "fitted rows", "scored", "missing", "median", "worst", "within 15 %"];
    let body = table(&header, 1..header.len(), groups.into_iter().chain(seeds).chain(platforms));
    let hold = |name: &str, holds: crate::score::Holds| {
        format!("{name}: {} hold, {} do not, {} not run. ", holds.holding, holds.failing, holds.untested)
    };
    let score = &outcome.score;
    format!(
        "<h2>Score</h2>\n{body}<p>{}{}{}</p>\n",
        hold("Ranges and limits", score.contained),
        hold("Shapes", score.shapes),
        hold("Arithmetic on inputs", score.computed)
    )
}

fn left_out(outcome: &Outcome) -> String {
    if outcome.left_out.is_empty() {
        return String::new();
    }
    let rows = outcome.left_out.iter().map(|left| {
        let cells = vec![
            left.platform.clone(),
            left.kin.clone().unwrap_or("no kin".to_owned()),
            left.kept.join(", "),
            left.replaced.len().to_string(),
            left.errors_percent.len().to_string(),
            percent(left.median_percent),
        ];
        (String::new(), cells)
    });
    format!(
        "<h2>Leaving a platform out</h2>\n<p>Each platform with the knobs of its nearest kin: same kind, most shared parts, \
         nearest generation. What could not be replaced is named. All: {}.</p>\n{}",
        left_out_words(outcome),
        table(&["platform", "knobs of", "kept", "replaced", "rows", "median error"], 3..6, rows)
    )
}

fn rows(outcome: &Outcome) -> String {
    let mut html = String::from("<h2>Every row</h2>\n");
    let mut sources: Vec<&str> = Vec::new();
    for row in &outcome.rows {
        if sources.last() != Some(&row.source.as_str()) {
            sources.push(&row.source);
        }
    }
    sources.sort_unstable();
    sources.dedup();
    // The five sources come first; of the others, each in the order of its name.
    sources.sort_by_key(|source| !source.starts_with("seed00"));
    for source in sources {
        let own: Vec<&RowResult> = outcome.rows.iter().filter(|row| row.source == source).collect();
        let is_seed = own.first().is_some_and(|row| row.seed.is_some());
        let open = if is_seed { " open" } else { "" };
        html += &format!("<details{open}><summary>{} ({} rows)</summary>\n", escape(source), own.len());
        let header =
            ["row", "quantity", "class", "used to fit", "published", "ours", "error", "inside", "remarks"];
        html += &table(&header, 5..7, own.iter().map(|row| row_cells(row)));
        let seed = own.first().and_then(|row| row.seed);
        for lost in outcome.lost.iter().filter(|lost| Some(lost.seed) == seed) {
            html += &format!("<p>Lost in the text: {} ({})</p>\n", escape(&lost.what), escape(&lost.place));
        }
        html += "</details>\n";
    }
    html
}

fn row_cells(row: &RowResult) -> (String, Vec<String>) {
    let is_scored = row.class == crate::registry::Class::Scored;
    let is_near = row.error_percent.is_some_and(|error| error.abs() <= NEAR_PERCENT);
    let class = match (is_scored, is_near) {
        (true, true) => " class=\"scored\"",
        (true, false) => " class=\"far\"",
        (false, _) => "",
    };
    let cells = vec![
        row.id.to_string(),
        row.what.clone(),
        row.class.word().to_owned(),
        if row.was_fitted { "yes".to_owned() } else { String::new() },
        format!("{} {}", row.printed, row.unit),
        ours(row),
        row.error_percent.map_or(String::new(), |error| format!("{error:+.1} %")),
        verdict(row).to_owned(),
        remarks(row).join("; "),
    ];
    (class.to_owned(), cells)
}

fn raw(outcome: &Outcome) -> Result<String, Error> {
    let details = |name: &str, text: &str| {
        format!("<details><summary>{name}</summary><pre>{}</pre></details>\n", escape(text))
    };
    let mut html = String::from("<h2>Tables and raw data</h2>\n");
    html += &details("tables", &tables(outcome, true));
    html += &details("rows, CSV", &csv(outcome)?);
    // `<` cannot end the script element early: it is written as an escape that JSON readers undo.
    let data = json(outcome)?.replace('<', "\\u003c");
    html += &format!("<script type=\"application/json\" id=\"outcome\">{data}</script>\n");
    Ok(html)
}
