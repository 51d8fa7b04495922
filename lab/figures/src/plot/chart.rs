//! What a chart shows, before anything is drawn.

use super::line_style::LineStyle;
use super::text::size;

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    pub style: LineStyle,
    /// Points of the line: place on the horizontal axis, value.
    pub points: Vec<(f64, f64)>,
    /// Published points of the quantity that the line shows: crosses in its colour, never joined.
    pub marks: Vec<(f64, f64)>,
    /// Published points that are drawn and never compared with the line: their rows are run as something else, or are arithmetic.
    pub others: Vec<(f64, f64)>,
}

impl Series {
    /// A line without published points.
    pub fn line(name: impl Into<String>, style: LineStyle, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), style, points, marks: Vec::new(), others: Vec::new() }
    }
}

/// Which values are good ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// As of times and costs.
    Lower,
    /// As of rates and shares.
    Higher,
}

/// What the horizontal axis counts, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across<'a> {
    /// Sizes with their unit, on a logarithmic axis.
    Sizes(&'a str),
    /// Numbered things, such as packets of a trace, which no line joins.
    Numbers(&'a str),
}

impl<'a> Across<'a> {
    /// Returns the name of the axis.
    pub fn name(self) -> &'a str {
        match self {
            Across::Sizes(name) | Across::Numbers(name) => name,
        }
    }

    /// Returns what is written below a place on the axis. Bytes are without their unit, which the name of the axis has.
    pub(super) fn number(self, place: f64) -> String {
        match self {
            Across::Sizes(_) => size(place).trim_end_matches(" B").to_owned(),
            Across::Numbers(_) => place.to_string(),
        }
    }

    /// Returns a place on the axis in words.
    pub(super) fn place(self, place: f64) -> String {
        match self {
            Across::Sizes(_) => size(place),
            Across::Numbers(name) => format!("{name} {place}"),
        }
    }
}

/// What a chart shows.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    pub title: String,
    /// Vertical axis: the unit, and the percentile where there is one.
    pub unit: &'a str,
    pub across: Across<'a>,
    /// Whether the vertical axis is logarithmic.
    pub is_logarithmic: bool,
    pub better: Better,
    pub series: Vec<Series>,
    /// Least and greatest value that the vertical axis has room for, where charts beside each other share one.
    pub values: Option<(f64, f64)>,
}

impl Chart<'_> {
    /// All points, published ones too.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series.iter().flat_map(|s| s.points.iter().chain(&s.marks).chain(&s.others).copied())
    }

    /// Returns every place on the horizontal axis that has a point, in order.
    pub(super) fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self.points().map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// Returns the least and greatest value; `None` without a point that the axis can show.
    pub(super) fn value_range(&self) -> Option<(f64, f64)> {
        self.values.or_else(|| {
            let shown = self.points().map(|point| point.1).filter(|v| !self.is_logarithmic || *v > 0.0);
            shown.fold(None, |range, v| {
                let (low, high) = range.unwrap_or((v, v));
                Some((v.min(low), v.max(high)))
            })
        })
    }
}

/// Gives charts that stand beside each other one vertical axis for each unit, so that heights can be compared between them.
/// Percentiles of one unit share one.
pub fn align(charts: &mut [Chart<'_>]) {
    let unit = |chart: &Chart<'_>| chart.unit.split(',').next().unwrap_or_default().to_owned();
    let ranges: Vec<_> = charts.iter().map(|chart| (unit(chart), chart.value_range())).collect();
    for chart in charts {
        let own = unit(chart);
        let of_unit = ranges.iter().filter(|range| range.0 == own).filter_map(|range| range.1);
        chart.values = of_unit.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    }
}
