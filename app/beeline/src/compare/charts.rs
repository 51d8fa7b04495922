//! The charts of a report: p99 beside p50, cores near beside cores far, one vertical axis for what stands side by side.

use beeline_floor::Placement;
use beeline_spec::Interface;
use beeline_window::FencePolicy;

use super::results::{LatencyKind, LatencyRow, RateRow, Results};
use super::table::{distinct, placements};
use crate::page::{self, Across, Better, Chart, FRAMES, LineStyle, Series};

/// A percentile: its name with the unit, and its value in a row.
type Percentile = (&'static str, fn(&LatencyRow) -> u64);

const PERCENTILES: [Percentile; 2] = [("ns, p50", |row| row.p50_ns), ("ns, p99", |row| row.p99_ns)];

/// p50 and p99 of each placement.
pub fn latencies(results: &Results, latency_kind: LatencyKind) -> Vec<Chart<'static>> {
    let title = match latency_kind {
        LatencyKind::OneWay => "One way",
        LatencyKind::RoundTrip => "Round trip",
    };
    let mut charts = Vec::new();
    for placement in placements(results) {
        for (unit, value) in PERCENTILES {
            let rows = results
                .latencies
                .iter()
                .filter(|row| (row.placement, row.latency_kind) == (placement, latency_kind));
            let points = rows.map(|row| (row.interface, row.kernel, row.frame_bytes, value(row) as f64));
            let percentile = unit.trim_start_matches("ns, ");
            charts.push(Chart {
                title: format!("{title}, {percentile}, cores {placement}"),
                unit,
                across: FRAMES,
                is_logarithmic: true,
                better: Better::Lower,
                series: of_interfaces(points),
                values: None,
            });
        }
    }
    with_points(charts)
}

/// Rates of each placement.
pub fn rates(results: &Results, title: &str, rows: &[RateRow]) -> Vec<Chart<'static>> {
    let chart = |placement: Placement| {
        let rows = rows.iter().filter(|row| row.placement == placement);
        let points = rows.map(|row| (row.interface, row.kernel, row.frame_bytes, row.frames_per_s / 1e6));
        Chart {
            title: format!("{title}, cores {placement}"),
            unit: "M frames/s",
            across: FRAMES,
            is_logarithmic: true,
            better: Better::Higher,
            series: of_interfaces(points),
            values: None,
        }
    };
    with_points(placements(results).into_iter().map(chart).collect())
}

/// Goodput of raw stores: a chart for each placement, store kernel, and whether anybody receives.
pub fn stores(results: &Results) -> Vec<Chart<'static>> {
    let mut charts = Vec::new();
    for placement in placements(results) {
        for kernel in distinct(results.stores.iter().map(|row| row.kernel)) {
            for receiver in [false, true] {
                let mut series: Vec<Series> = Vec::new();
                for row in results
                    .stores
                    .iter()
                    .filter(|row| (row.placement, row.kernel, row.receiver) == (placement, kernel, receiver))
                {
                    let number = FencePolicy::ALL.iter().position(|policy| policy.name() == row.policy);
                    let style = LineStyle::Other(number.unwrap_or_default());
                    let point = (f64::from(row.message_bytes), row.goodput_gbps);
                    page::add(&mut series, fences(row.policy), style, point);
                }
                let who = if receiver { "received" } else { "nobody receives" };
                charts.push(Chart {
                    title: format!("{kernel} stores, {who}, cores {placement}"),
                    unit: "Gbit/s",
                    across: Across::Sizes("message in the window, bytes"),
                    is_logarithmic: true,
                    better: Better::Higher,
                    series,
                    values: None,
                });
            }
        }
    }
    with_points(charts)
}

/// The name of a fence policy's line.
fn fences(policy: &str) -> String {
    match policy {
        "none" => "no fence".to_owned(),
        policy => format!("fence {policy}"),
    }
}

/// A line for each interface, named with its store kernel where it has one.
fn of_interfaces(points: impl Iterator<Item = (Interface, &'static str, u32, f64)>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for (interface, kernel, frame_bytes, value) in points {
        let name = match kernel {
            "-" => interface.to_string(),
            kernel => format!("{interface} ({kernel})"),
        };
        let style = page::style_of(&series, &name, interface);
        page::add(&mut series, name, style, (f64::from(frame_bytes), value));
    }
    series
}

fn with_points(mut charts: Vec<Chart<'static>>) -> Vec<Chart<'static>> {
    charts.retain(|chart| !chart.series.is_empty());
    charts
}

#[cfg(test)]
mod tests {
    use super::super::results::sample::sample;
    use super::*;
    use beeline_figures::plot::sentence;

    #[test]
    fn percentile_99_stands_beside_the_median_and_near_apart_from_far() {
        let mut results = sample();
        let far: Vec<_> = results
            .latencies
            .iter()
            .map(|row| LatencyRow { placement: Placement::Far, ..row.clone() })
            .collect();
        results.latencies.extend(far);
        let floor =
            super::super::results::FloorRow { placement: Placement::Far, ..results.floors[0].clone() };
        results.floors.push(floor);
        let charts = latencies(&results, LatencyKind::OneWay);
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "One way, p50, cores near",
                "One way, p99, cores near",
                "One way, p50, cores far",
                "One way, p99, cores far",
            ]
        );
        assert_eq!((charts[0].unit, charts[1].unit), ("ns, p50", "ns, p99"));
        assert!(
            charts[1].series[0].points.iter().all(|point| point.1 == 123_456.0),
            "{:?}",
            charts[1].series
        );
    }

    #[test]
    fn sentence_below_a_latency_names_the_one_that_is_lowest_in_the_rows() {
        for (first, expected) in
            [(Interface::Mmio, "mmio (cached) is lowest"), (Interface::Descriptor, "descriptor is lowest")]
        {
            let mut results = sample();
            for row in results.latencies.iter_mut().filter(|row| row.interface == first) {
                row.p50_ns /= 2;
            }
            let charts = latencies(&results, LatencyKind::RoundTrip);
            assert!(sentence(&charts[0]).starts_with(expected), "{}", sentence(&charts[0]));
        }
    }

    #[test]
    fn two_kernels_of_an_interface_have_its_colour_and_another_line() {
        let rows = [("cached", 1.0), ("nt8", 2.0), ("cached", 3.0)];
        let points = rows.map(|(kernel, value)| (Interface::Mmio, kernel, value as u32, value));
        let series = of_interfaces(points.into_iter());
        assert_eq!(series.len(), 2);
        assert_eq!(series[0].style, LineStyle::Of(Interface::Mmio, 0));
        assert_eq!(series[1].style, LineStyle::Of(Interface::Mmio, 1));
        assert_ne!(series[0].style.dash(), series[1].style.dash());
    }
}
