//! One HTML page: plots of our curves under published points, tables, raw data. It loads nothing from outside.

use super::table::{left_out_words, state, tables};
use super::{csv, holds_word, json, ours, percent, remarks, short};
use crate::error::Error;
use crate::evaluate::RowResult;
use crate::fences::HYPOTHESES;
use crate::plot::html::{self, escape, folded, table};
use crate::published::seed_name;
use crate::run::Outcome;
use crate::score::{MEDIAN_TARGET_PERCENT, NEAR_PERCENT, NEAR_TARGET_PERCENT};

/// Renders a whole outcome as one HTML page without scripts.
///
/// # Errors
/// A plot cannot be drawn.
pub fn page(outcome: &Outcome) -> Result<String, Error> {
    let mut html = html::head("Published figures and ours");
    html += "<h1>Published figures beside ours</h1>\n";
    html += "<p class=\"lead\">Lines are <b>simulated</b>: platforms in virtual time, each from its file. Crosses are \
             <b>published</b>: numbers that stand in the sources, on their authors' machines. Nothing here was measured.</p>\n";
    html += &headline(outcome);
    html += &figures(outcome);
    html += &fences(outcome);
    html += &scores(outcome);
    html += &left_out(outcome);
    html += &rows(outcome);
    html += &raw(outcome)?;
    html += html::END;
    Ok(html)
}

/// The figures of the papers, each with what it should show, what it shows, and what is lost.
fn figures(outcome: &Outcome) -> String {
    if outcome.figures.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<h2>Figures</h2>\n<p>Under each figure stands first what is seen in the points drawn, then what the source says that it \
         should show. A line is compared with a published point only where the row is run as what the line shows.</p>\n\
         <div class=\"charts\">\n",
    );
    for figure in &outcome.figures {
        let expected = format!("Should show, after the source: {}", figure.expected);
        html += &html::figure(&figure.chart(), &[&expected, &figure.caption]);
    }
    html + "</div>\n"
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

fn fences(outcome: &Outcome) -> String {
    let header: Vec<&str> =
        ["platform", "row", "published", "file says"].into_iter().chain(HYPOTHESES).collect();
    let rows = outcome.fences.iter().map(|row| {
        let mut cells = vec![row.platform.clone(), row.row.to_string(), short(row.published_ns)];
        cells.push(row.chosen.clone().unwrap_or("-".to_owned()));
        cells.extend(row.ours_ns.iter().map(|ns| ns.map_or("-".to_owned(), short)));
        ("", cells)
    });
    format!(
        "<h2>What a fence waits for</h2>\n<p>ns for each 64-byte message with a fence behind it, if the fence waits for \
         nothing but empty buffers, or also for an acknowledgement of the uncore, of the root complex, of the device.</p>\n{}",
        table(
            "Published beside simulated, ns a message; a column for each thing waited for",
            &header,
            2..header.len(),
            rows
        )
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
        ("", cells)
    };
    let platforms = outcome.score.platforms.iter().map(|p| {
        cells(p.platform.clone(), p.knobs.len().to_string(), p.fitted_rows.len().to_string(), &p.tally)
    });
    let seeds = outcome
        .score
        .seeds
        .iter()
        .map(|(seed, tally)| cells(seed_name(*seed).to_owned(), String::new(), String::new(), tally));
    let groups = outcome
        .score
        .groups()
        .map(|(name, tally)| cells(name.to_owned(), String::new(), String::new(), tally));
    let header = ["platform", "knobs", "fitted rows", "scored", "missing", "median", "worst", "within 15 %"];
    let body = table(
        "Errors of the simulated figures against the published ones",
        &header,
        1..header.len(),
        groups.into_iter().chain(seeds).chain(platforms),
    );
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
        ("", cells)
    });
    format!(
        "<h2>Leaving a platform out</h2>\n<p>Each platform with the knobs of its nearest kin: same kind, most shared parts, \
         nearest generation. What could not be replaced is named. All: {}.</p>\n{}",
        left_out_words(outcome),
        table(
            "Each platform with its kin's knobs",
            &["platform", "knobs of", "kept", "replaced", "rows", "median error"],
            3..6,
            rows
        )
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
        let header = [
            "row",
            "quantity",
            "class",
            "used to fit",
            "published",
            "simulated",
            "error",
            "inside",
            "remarks",
        ];
        html += &table(source, &header, 4..7, own.iter().map(|row| row_cells(row)));
        let seed = own.first().and_then(|row| row.seed);
        for lost in outcome.lost.iter().filter(|lost| Some(lost.seed) == seed) {
            html += &format!("<p>Lost in the text: {} ({})</p>\n", escape(&lost.what), escape(&lost.place));
        }
        html += "</details>\n";
    }
    html
}

fn row_cells(row: &RowResult) -> (&'static str, Vec<String>) {
    let is_scored = row.class == crate::registry::Class::Scored;
    let is_near = row.error_percent.is_some_and(|error| error.abs() <= NEAR_PERCENT);
    let class = match (is_scored, is_near) {
        (true, true) => "scored",
        (true, false) => "far",
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
        holds_word(row).to_owned(),
        remarks(row).join("; "),
    ];
    (class, cells)
}

fn raw(outcome: &Outcome) -> Result<String, Error> {
    let mut html = String::from("<h2>Tables and raw data</h2>\n");
    html += &folded("tables", &tables(outcome, true));
    html += &folded("rows, CSV", &csv(outcome)?);
    html += &html::data("outcome", &json(outcome)?);
    Ok(html)
}
