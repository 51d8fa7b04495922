//! The parts of a page: style, tables that scroll in a box of their own, charts with legend and sentence, raw data. A page loads
//! nothing and needs no script.

use std::ops::Range;

use super::chart::{Across, Chart, align};
use super::line_style::{self, DARK_PAGE, LIGHT_PAGE};
use super::seen::sentence;
use super::{svg, text};

const STYLE: &str = "
*{box-sizing:border-box}
body{font:1rem/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;max-width:1120px;margin:0 auto;
padding:1.5rem clamp(.75rem,3vw,2rem) 4rem;color:var(--ink);background:var(--page);overflow-wrap:anywhere}
h1{font-size:clamp(1.5rem,4vw,2.1rem);line-height:1.2;margin:.5rem 0}
h2{font-size:1.3rem;line-height:1.3;margin:3rem 0 .6rem;padding-bottom:.3rem;border-bottom:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}p,ul{max-width:76ch}
.lead,.note{color:var(--soft)}.note{font-size:.92rem}
.key{background:var(--tint);padding:.8rem 1.1rem;border-left:4px solid var(--accent);border-radius:0 6px 6px 0;max-width:none}
ul.key{list-style:none}ul.key li+li{margin-top:.3rem}
.warn{background:var(--warn);border-left-color:var(--alarm)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));gap:1.2rem;margin:1rem 0 1.6rem}
figure{margin:0;padding:.9rem;border:1px solid var(--rule);border-radius:8px;min-width:0}
figure h3{margin:0 0 .3rem;font-size:1rem}
figcaption{font-size:.92rem;margin-top:.5rem}figcaption p{margin:.3rem 0 0}
.plot{display:block;width:100%;max-width:600px;height:auto}
.plot text{font:13.5px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--soft);
font-variant-numeric:tabular-nums}
.plot .name{fill:var(--ink)}.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}
.line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.dot{fill:var(--c);stroke:var(--page);stroke-width:.8}.hollow{fill:var(--page);stroke:var(--c);stroke-width:1.7}
.cross{fill:none;stroke:var(--c);stroke-width:2.4}.other{stroke-width:1.6}.ink{--c:var(--ink)}
.legend{display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;list-style:none;margin:0 0 .4rem;padding:0;font-size:.88rem}
.legend li{display:flex;align-items:center;gap:.4rem}.sample{width:34px;height:14px;flex:none}
.scroll{overflow-x:auto;margin:.6rem 0 1.4rem;overflow-wrap:normal;border:1px solid var(--rule);border-radius:8px}
table{border-collapse:collapse;font-size:.86rem;width:100%}
caption{text-align:left;padding:.6rem .7rem;color:var(--soft);font-size:.9rem}
th,td{padding:.3rem .7rem;vertical-align:top;text-align:left;border-top:1px solid var(--grid)}
thead th{color:var(--soft);font-weight:600;vertical-align:bottom}
tbody th{font-weight:500;min-width:7rem;position:sticky;left:0;background:var(--page)}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.facts th{white-space:nowrap;color:var(--soft);width:1%}.facts td{min-width:14rem}.words{min-width:16rem}
tr.scored,tr.scored th{background:var(--tint)}tr.far,tr.far th{background:var(--warn)}
pre{font:.76rem/1.35 ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',monospace;overflow:auto;max-height:32rem;
background:var(--panel);padding:.8rem;border-radius:6px;overflow-wrap:normal}
details{margin:.5rem 0}summary{cursor:pointer}summary:focus-visible{outline:2px solid var(--accent)}
@media(max-width:480px){.plot text{font-size:15.5px}figure{padding:.7rem .5rem}th,td{padding:.3rem .5rem}h2{margin-top:2.2rem}}
@media print{figure,tr{break-inside:avoid}body{max-width:none}}
";

const LIGHT: &str = "--ink:#1b1f24;--soft:#57606a;--rule:#d0d7de;--grid:#e6eaee;--panel:#f4f6f8;--tint:#eaf2fb;--warn:#fcebe4;\
                     --accent:#0059c9;--alarm:#b53300";
const DARK: &str = "--ink:#e8ebee;--soft:#a3adb8;--rule:#363d46;--grid:#2a3038;--panel:#1c2128;--tint:#182739;--warn:#3a2018;\
                    --accent:#3f86f0;--alarm:#e4571c";

/// Closing part of a page.
pub const END: &str = "</main></body></html>\n";

/// Returns what begins a page, to the start of its body.
pub fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{}</title>\n<style>\
         :root{{color-scheme:light dark;--page:{LIGHT_PAGE};{LIGHT}}}\n\
         @media(prefers-color-scheme:dark){{:root{{--page:{DARK_PAGE};{DARK}}}}}\n\
         @media print{{:root{{--page:{LIGHT_PAGE};{LIGHT}}}}}{STYLE}{}</style></head><body><main>\n",
        escape(title),
        line_style::css()
    )
}

/// Returns text as it can stand in a page.
pub fn escape(text: &str) -> String {
    text::escape(text)
}

/// Returns a heading, and what is to be known, line by line.
pub fn facts(title: &str, rows: &[(&str, String)]) -> String {
    let row = |(name, value): &(&str, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value))
    };
    format!(
        "<h2>{}</h2>\n<div class=\"scroll\" tabindex=\"0\"><table class=\"facts\"><tbody>\n{}</tbody></table></div>\n",
        escape(title),
        rows.iter().map(row).collect::<String>()
    )
}

/// Returns a table in a box that scrolls: header cells (those in `figures` to the right) and rows of a class and cells, of which the
/// first names the row.
pub fn table(
    caption: &str,
    header: &[&str],
    figures: Range<usize>,
    rows: impl Iterator<Item = (&'static str, Vec<String>)>,
) -> String {
    let class = |index: usize, text: &str| match figures.contains(&index) {
        true => " class=\"n\"",
        false if text.len() > 60 => " class=\"words\"",
        false => "",
    };
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption>\n<thead><tr>",
        escape(caption)
    );
    for (index, name) in header.iter().enumerate() {
        html += &format!("<th scope=\"col\"{}>{}</th>", class(index, name), escape(name));
    }
    html += "</tr></thead>\n<tbody>\n";
    for (row_class, cells) in rows {
        html += &if row_class.is_empty() { "<tr>".to_owned() } else { format!("<tr class=\"{row_class}\">") };
        for (index, cell) in cells.iter().enumerate() {
            let (tag, scope) = if index == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
            html += &format!("<{tag}{scope}{}>{}</{tag}>", class(index, cell), escape(cell));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

/// Returns charts beside each other where there is room, those of a unit on one vertical axis, each with its title, legend and
/// sentence.
pub fn charts(mut charts: Vec<Chart<'_>>) -> String {
    align(&mut charts);
    let figures: String = charts.iter().map(|chart| figure(chart, &[])).collect();
    format!("<div class=\"charts\">\n{figures}</div>\n")
}

/// Returns a chart with its title, legend and sentence, and paragraphs of its own below.
pub fn figure(chart: &Chart<'_>, notes: &[&str]) -> String {
    let notes: String = notes.iter().map(|note| format!("<p class=\"note\">{}</p>", escape(note))).collect();
    format!(
        "<figure><h3>{}</h3>\n{}{}<figcaption><p class=\"seen\">{}</p>{notes}</figcaption></figure>\n",
        escape(&chart.title),
        legend(chart),
        svg::draw(chart),
        escape(&sentence(chart)),
    )
}

fn legend(chart: &Chart<'_>) -> String {
    let is_joined = matches!(chart.across, Across::Sizes(_));
    let mut items: Vec<String> = chart
        .series
        .iter()
        .map(|series| format!("<li>{}{}</li>", svg::sample(series.style, is_joined), escape(&series.name)))
        .collect();
    if chart.series.iter().any(|series| !series.marks.is_empty()) {
        items.push(format!("<li>{}published</li>", svg::sample_cross("cross", false)));
    }
    if chart.series.iter().any(|series| !series.others.is_empty()) {
        items.push(format!("<li>{}published, not compared</li>", svg::sample_cross("cross other", true)));
    }
    format!("<ul class=\"legend\">{}</ul>\n", items.join(""))
}

/// Returns text that is shown when somebody asks for it.
pub fn folded(name: &str, text: &str) -> String {
    format!(
        "<details><summary>{}</summary><pre tabindex=\"0\">{}</pre></details>\n",
        escape(name),
        escape(text)
    )
}

/// Returns everything behind the page, to be read back by programs.
pub fn data(id: &str, json: &str) -> String {
    // `<` cannot end the script element early: it is written as an escape that JSON readers undo.
    format!("<script type=\"application/json\" id=\"{id}\">{}</script>\n", json.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::super::chart::{Better, Series};
    use super::super::line_style::LineStyle;
    use super::*;

    fn chart(is_logarithmic: bool, values: [f64; 3]) -> Chart<'static> {
        let points = [16.0, 64.0, 1500.0].into_iter().zip(values).collect();
        let interface = beeline_spec::Interface::Kpio;
        let series = Series {
            marks: vec![(64.0, values[1])],
            ..Series::line("first <line>", LineStyle::Of(interface, 0), points)
        };
        Chart {
            title: "Title".to_owned(),
            unit: "ns, p50",
            across: Across::Sizes("frame, bytes"),
            is_logarithmic,
            better: Better::Lower,
            series: vec![series],
            values: None,
        }
    }

    fn numbers(svg: &str, anchor: &str) -> usize {
        svg.matches(&format!("text-anchor=\"{anchor}\">")).count()
    }

    #[test]
    fn chart_has_numbers_and_a_unit_on_both_axes() {
        for is_logarithmic in [false, true] {
            // Values whose decade has no power of ten inside.
            let svg = svg::draw(&chart(is_logarithmic, [2100.0, 3000.0, 4300.0]));
            assert!(numbers(&svg, "end") > 3, "three numbers and the axis's name: {svg}");
            assert!(numbers(&svg, "middle") == 3, "a number for each size: {svg}");
            assert!(svg.contains(">ns, p50") && svg.contains(">frame, bytes<"), "{svg}");
        }
    }

    #[test]
    fn figure_says_in_words_and_to_screen_readers_what_it_shows() {
        let chart = chart(true, [300.0, 400.0, 900.0]);
        let html = figure(&chart, &[]);
        let words = escape(&sentence(&chart));
        assert_eq!(html.matches(&words).count(), 2, "below the chart and in its label: {html}");
        assert!(html.contains("role=\"img\" aria-label=\"Title: "), "{html}");
        assert!(html.contains("first &lt;line&gt;</li>") && html.contains("published</li>"), "{html}");
    }

    #[test]
    fn colours_are_classes_with_a_value_for_dark_pages() {
        let html = head("x") + &figure(&chart(true, [300.0, 400.0, 900.0]), &[]);
        assert_eq!(html.matches(".i-kpio{--c:").count(), 3, "light, dark, print");
        assert!(html.contains("<g class=\"i-kpio\">"), "{html}");
        let body = &html[html.find("<body>").unwrap()..];
        assert!(
            !body.contains("fill=\"#") && !body.contains("stroke=\"#"),
            "a colour that no setting changes"
        );
    }

    #[test]
    fn charts_beside_each_other_share_their_axis() {
        let p99 = Chart { unit: "ns, p99", ..chart(true, [3000.0, 4000.0, 9000.0]) };
        let rate = Chart { unit: "Gbit/s", ..chart(true, [1.0, 2.0, 3.0]) };
        let html = charts(vec![chart(true, [300.0, 400.0, 900.0]), p99, rate]);
        assert_eq!(html.matches(">5000</text>").count(), 2, "{html}");
    }

    #[test]
    fn an_empty_chart_is_an_empty_text() {
        assert!(svg::draw(&Chart { series: Vec::new(), ..chart(true, [1.0; 3]) }).is_empty());
    }
}
