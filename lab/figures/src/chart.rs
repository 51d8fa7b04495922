//! Line charts as SVG text, small enough to stand inside a page: our curves as lines, published points as marks.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One line of a chart.
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points of the line: size in bytes, value.
    pub points: Vec<(f64, f64)>,
    /// Published points: hollow squares in the line's colour, never joined.
    pub marks: Vec<(f64, f64)>,
}

impl Series {
    /// A line without published points.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, marks: Vec::new() }
    }
}

/// What a chart shows.
pub struct Chart<'a> {
    /// Name of the vertical axis, with its unit.
    pub unit: &'a str,
    /// Name of the horizontal axis, with its unit.
    pub size: &'a str,
    /// Whether the vertical axis is logarithmic.
    pub logarithmic: bool,
    /// The lines.
    pub series: Vec<Series>,
}

const WIDTH: u32 = 860;
const HEIGHT: u32 = 380;
/// Points above which a line is drawn without them.
const DENSE_POINTS: usize = 30;
/// Okabe and Ito's colours, which people with any colour vision can tell apart.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// Draws a chart. An empty chart gives an empty text.
pub fn draw(chart: &Chart<'_>) -> String {
    let mut svg = String::new();
    let drawn = draw_into(chart, &mut svg);
    if drawn.is_err() {
        svg.clear();
    }
    svg
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw_into(chart: &Chart<'_>, svg: &mut String) -> Drawn {
    let points = || chart.series.iter().flat_map(|series| series.points.iter().chain(&series.marks));
    let fold = |pick: fn(&(f64, f64)) -> f64, join: fn(f64, f64) -> f64| points().map(pick).reduce(join);
    let (Some(left), Some(right)) = (fold(|p| p.0, f64::min), fold(|p| p.0, f64::max)) else {
        return Err("a chart needs a point".into());
    };
    let (bottom, top) = (fold(|p| p.1, f64::min).unwrap_or(1.0), fold(|p| p.1, f64::max).unwrap_or(1.0));
    let root = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
    let mut builder = ChartBuilder::on(&root);
    builder.margin(8).margin_right(150).x_label_area_size(42).y_label_area_size(64);
    let x_range = (left * 0.9..right * 1.1).log_scale();
    if chart.logarithmic {
        let y_range = ((bottom * 0.7).max(1e-3)..top * 1.5).log_scale();
        let mut context = builder.build_cartesian_2d(x_range, y_range)?;
        mesh(&mut context, chart)?;
        lines(&mut context, chart, &root)?;
    } else {
        let mut context = builder.build_cartesian_2d(x_range, 0.0..top * 1.08)?;
        mesh(&mut context, chart)?;
        lines(&mut context, chart, &root)?;
    }
    root.present()?;
    drop(root);
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn mesh<'a, X, Y>(
    context: &mut ChartContext<'_, SVGBackend<'a>, Cartesian2d<X, Y>>,
    chart: &Chart<'_>,
) -> Drawn
where
    X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    context
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(RGBColor(120, 120, 120))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .x_desc(chart.size)
        .y_desc(chart.unit)
        .x_labels(12)
        .x_label_formatter(&size_label)
        .y_label_formatter(&value_label)
        .draw()?;
    Ok(())
}

/// A value with the digits that it needs.
fn value_label(value: &f64) -> String {
    match *value {
        value if value >= 10.0 || value == 0.0 => format!("{value:.0}"),
        value if value >= 0.1 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

/// A size, where there is room for it: below ten, and where it begins with 1, 2 or 5.
fn size_label(size: &f64) -> String {
    let text = format!("{size:.0}");
    if *size < 10.0 || text.starts_with(['1', '2', '5']) { text } else { String::new() }
}

fn lines<'a, X, Y>(
    context: &mut ChartContext<'_, SVGBackend<'a>, Cartesian2d<X, Y>>,
    chart: &Chart<'_>,
    root: &Area<'a>,
) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let mut labels = Vec::new();
    for (index, series) in chart.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        // Every other turn through the colours is drawn thin, so that lines stay distinct in a black-and-white print.
        let width = if index < COLOURS.len() { 2 } else { 1 };
        context.draw_series(LineSeries::new(series.points.iter().copied(), colour.stroke_width(width)))?;
        // Points that stand so near hide the line.
        if series.points.len() <= DENSE_POINTS {
            context.draw_series(series.points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
        }
        context.draw_series(series.marks.iter().map(|point| {
            let square = Rectangle::new([(-5, -5), (5, 5)], colour.stroke_width(2));
            EmptyElement::at(*point) + square
        }))?;
        if let Some(last) = series.points.last().or(series.marks.last()) {
            labels.push((context.backend_coord(last), &series.name, colour));
        }
    }
    label_lines(labels, root)
}

/// Writes each line's name at its right end, moved apart where ends meet: nearer than a legend, and it prints.
fn label_lines(mut labels: Vec<((i32, i32), &String, RGBColor)>, root: &Area<'_>) -> Drawn {
    const APART: i32 = 15;
    labels.sort_by_key(|label| label.0.1);
    let mut lowest = 12;
    let mut places: Vec<i32> = Vec::new();
    for label in &labels {
        lowest = (lowest).max(label.0.1);
        places.push(lowest);
        lowest += APART;
    }
    let over = places.last().map_or(0, |last| (last - (HEIGHT as i32 - 50)).max(0));
    for ((at, name, colour), y) in labels.iter().zip(places) {
        let style = ("sans-serif", 13).into_font().color(colour).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(name.as_str(), (at.0 + 10, y - over), style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_line_and_a_name_for_each_series() {
        for logarithmic in [false, true] {
            let series = |name: &str, factor: f64| Series {
                marks: vec![(64.0, 70.0 * factor)],
                ..Series::line(name, [16.0, 64.0, 1500.0].iter().map(|x| (*x, x * factor)).collect())
            };
            let chart = Chart {
                unit: "ns",
                size: "frame bytes",
                logarithmic,
                series: vec![series("first-line", 1.0), series("second-line", 2.0)],
            };
            let svg = draw(&chart);
            assert_eq!(
                svg.matches("<polyline").count() - svg.matches("stroke=\"#787878\"").count(),
                2,
                "{svg}"
            );
            assert!(svg.contains("first-line") && svg.contains("second-line"));
        }
    }

    #[test]
    fn an_empty_chart_is_an_empty_text() {
        let chart = Chart { unit: "", size: "", logarithmic: false, series: Vec::new() };
        assert!(draw(&chart).is_empty());
    }
}
