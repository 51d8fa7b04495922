//! A chart as SVG text. Colours are classes of the page's stylesheet; the drawing is as wide as its box, and small enough for its
//! text to be read on a phone.

use std::fmt::Write;

use super::axis::{Axis, with_room};
use super::chart::{Across, Chart, Series};
use super::line_style::LineStyle;
use super::seen::sentence;
use super::text::{escape, on_axis, short};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = HEIGHT - 46.0;
/// Points above which a line is drawn without them.
const DENSE_POINTS: usize = 30;

/// Draws a chart. A chart without points gives an empty text.
pub fn draw(chart: &Chart<'_>) -> String {
    let places = chart.places();
    let (Some(first), Some(last), Some(range)) = (places.first(), places.last(), chart.value_range()) else {
        return String::new();
    };
    let across = match chart.across {
        Across::Sizes(_) => across(first / 1.15, last * 1.15, true),
        Across::Numbers(_) => across(first - 0.5, last + 0.5, false),
    };
    let up = upright(range, chart.is_logarithmic);
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}: {}\">\n",
        escape(&chart.title),
        escape(&sentence(chart))
    );
    rules(&mut svg, chart, &across, &up, &places);
    // Lines that coincide: a dashed one over the solid one shows both. Points that coincide: the first series' circle over the
    // square of the second shows both.
    if matches!(chart.across, Across::Sizes(_)) {
        for series in &chart.series {
            line(&mut svg, series, &shown(chart, &series.points), &across, &up);
        }
    }
    for series in chart.series.iter().rev() {
        points(&mut svg, chart, series, &across, &up);
    }
    svg + "</svg>\n"
}

fn across(from: f64, to: f64, is_logarithmic: bool) -> Axis {
    Axis { from, to, is_logarithmic, start: LEFT, end: RIGHT }
}

/// The vertical axis: room above and below on a logarithmic one, from nothing on a linear one.
fn upright((low, high): (f64, f64), is_logarithmic: bool) -> Axis {
    let (from, to) =
        if is_logarithmic { (low / 1.25, high * 1.25) } else { (0.0, high.max(f64::MIN_POSITIVE) * 1.08) };
    Axis { from, to, is_logarithmic, start: BOTTOM, end: TOP }
}

/// Axes: lines, numbers, names.
fn rules(svg: &mut String, chart: &Chart<'_>, across: &Axis, up: &Axis, places: &[f64]) {
    for value in up.numbers() {
        let y = up.place(value);
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>");
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 4.5,
            on_axis(value)
        );
    }
    // What was run gets the numbers; a sweep of many sizes gets round ones.
    let numbers = if places.len() > DENSE_POINTS { across.numbers() } else { places.to_vec() };
    let number = |value: f64| chart.across.number(value);
    for value in with_room(across, &numbers, number) {
        let (x, number) = (across.place(value), number(value));
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{x:.1} {BOTTOM}v5\"/>");
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{number}</text>",
            inside(x, &number),
            BOTTOM + 20.0
        );
    }
    let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LEFT} {BOTTOM}H{RIGHT}\"/>");
    let scale = if chart.is_logarithmic { ", logarithmic" } else { "" };
    let _ = writeln!(svg, "<text class=\"name\" x=\"4\" y=\"15\">{}{scale}</text>", escape(chart.unit));
    let _ = writeln!(
        svg,
        "<text class=\"name\" x=\"{RIGHT}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        HEIGHT - 6.0,
        escape(chart.across.name())
    );
}

/// Where a number below the axis has its middle, so that the drawing does not end inside it.
fn inside(x: f64, number: &str) -> f64 {
    /// Half of a digit as wide as phones show it.
    const HALF_DIGIT: f64 = 4.8;
    x.min(WIDTH - HALF_DIGIT * number.len() as f64)
}

/// The points of a series that its axis can show.
fn shown<'s>(chart: &Chart<'_>, points: &'s [(f64, f64)]) -> Vec<&'s (f64, f64)> {
    points.iter().filter(|point| !chart.is_logarithmic || point.1 > 0.0).collect()
}

fn line(svg: &mut String, series: &Series, shown: &[&(f64, f64)], across: &Axis, up: &Axis) {
    let places: Vec<String> =
        shown.iter().map(|point| format!("{:.1} {:.1}", across.place(point.0), up.place(point.1))).collect();
    if places.len() > 1 {
        let _ = writeln!(
            svg,
            "<g class=\"{}\"><path class=\"line\" stroke-dasharray=\"{}\" d=\"M{}\"/></g>",
            series.style.class(),
            series.style.dash(),
            places.join("L")
        );
    }
}

fn points(svg: &mut String, chart: &Chart<'_>, series: &Series, across: &Axis, up: &Axis) {
    let place = |point: &(f64, f64)| (across.place(point.0), up.place(point.1));
    let of_line = shown(chart, &series.points);
    let _ = writeln!(svg, "<g class=\"{}\">", series.style.class());
    let words = |kind: &str, point: &(f64, f64)| {
        format!("{}{kind}, {}: {} {}", series.name, chart.across.place(point.0), short(point.1), chart.unit)
    };
    // Points that stand so near hide the line.
    if of_line.len() <= DENSE_POINTS {
        for point in of_line {
            let (x, y) = place(point);
            let _ = writeln!(svg, "{}", dot(series.style, x, y, &words("", point)));
        }
    }
    for (class, points, is_upright) in
        [("cross", &series.marks, false), ("cross other", &series.others, true)]
    {
        for point in shown(chart, points) {
            let ((x, y), words) = (place(point), escape(&words(", published", point)));
            let _ = writeln!(
                svg,
                "<path class=\"{class}\" d=\"{}\"><title>{words}</title></path>",
                cross(x, y, is_upright)
            );
        }
    }
    svg.push_str("</g>\n");
}

/// A point of a line, which says its value to whoever points at it.
fn dot(style: LineStyle, x: f64, y: f64, words: &str) -> String {
    let class = if style.is_hollow() { "dot hollow" } else { "dot" };
    format!(
        "<path class=\"{class}\" d=\"{}\"><title>{}</title></path>",
        style.marker().path(x, y),
        escape(words)
    )
}

/// A published point; one that is not compared stands upright.
fn cross(x: f64, y: f64, is_upright: bool) -> String {
    if is_upright {
        return format!("M{:.1} {y:.1}h14m-7-7v14", x - 7.0);
    }
    format!("M{:.1} {:.1}l10 10m0-10l-10 10", x - 5.0, y - 5.0)
}

/// The piece of a line that stands before its name in a legend.
pub(super) fn sample(style: LineStyle, is_joined: bool) -> String {
    let class = if style.is_hollow() { "dot hollow" } else { "dot" };
    let line = if is_joined {
        format!("<path class=\"line\" stroke-dasharray=\"{}\" d=\"M0 7H34\"/>", style.dash())
    } else {
        String::new()
    };
    format!(
        "<svg class=\"sample {}\" viewBox=\"0 0 34 14\" aria-hidden=\"true\">{line}<path class=\"{class}\" d=\"{}\"/></svg>",
        style.class(),
        style.marker().path(17.0, 7.0)
    )
}

/// The cross that stands before words on published points in a legend.
pub(super) fn sample_cross(class: &str, is_upright: bool) -> String {
    format!(
        "<svg class=\"sample ink\" viewBox=\"0 0 34 14\" aria-hidden=\"true\"><path class=\"{class}\" d=\"{}\"/></svg>",
        cross(17.0, 7.0, is_upright)
    )
}
