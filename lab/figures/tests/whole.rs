//! A whole run on a made-up simulator: rows, score, tables, page.

mod made_up;

use beeline_figures::evaluate::Ours;
use beeline_figures::output;
use beeline_figures::plot::html::escape;
use beeline_figures::plot::{LineStyle, sentence};
use beeline_figures::quantity::{Interface, Quantity};
use beeline_figures::registry::Class;
use beeline_figures::{Card, NotModelled, Options, Outcome, Replacement, Simulator, run};
use made_up::MadeUp;

fn outcome() -> Outcome {
    run(&Options { leave_out: true, draw: true, ..Options::default() }, &mut MadeUp::default())
        .expect("the files of this crate read")
}

#[test]
fn figures_are_in_the_printed_unit_and_formulas_follow_what_they_use() {
    let outcome = outcome();
    let figure = |id: &str| {
        let row = outcome.rows.iter().find(|row| row.id == id.into()).unwrap();
        row.ours.figure().unwrap_or_else(|| panic!("{id}: {:?}", row.ours))
    };
    assert_eq!(figure("r0033"), 88.0, "ns");
    // A copy of 1024 bytes is 16 lines of 44 ns, and a fence.
    let fence_us = figure("r0114") - 16.0 * 0.044;
    assert!((0.03..0.1).contains(&fence_us), "us: {fence_us}");
    assert!((figure("r0121") - figure("r0122") * 7.88 / 100.0).abs() < 1e-9, "GB/s, and their share in %");
    assert!((figure("r0031") - (figure("r0030") - figure("r0029"))).abs() < 1e-9);
    assert!((figure("r0096") - (10.0 * figure("r0094") - 2.0 * figure("r0093")) / 8.0).abs() < 1e-9);
    assert!((figure("r0635") - 16.0 * figure("r0634")).abs() < 1e-9);
}

#[test]
fn quantity_the_simulator_lacks_is_reported_missing() {
    let outcome = outcome();
    let missing = &outcome.score.own.missing;
    assert!(missing.contains(&"r0104".into()) && missing.contains(&"r0105".into()), "{missing:?}");
    let row = outcome.rows.iter().find(|row| row.id == "r0104".into()).unwrap();
    assert_eq!(row.ours, Ours::None("made up to be missing".to_owned()));
    let scored = outcome.rows.iter().filter(|row| row.class == Class::Scored && row.seed.is_some()).count();
    assert_eq!(outcome.score.own.rows + missing.len(), scored);
}

#[test]
fn ranges_limits_and_shapes_are_counted_apart() {
    let outcome = outcome();
    let inside = |id: &str| outcome.rows.iter().find(|row| row.id == id.into()).unwrap().is_inside;
    // 60 of 154 bytes are 39 %, below "up to 43"; half a made-up ping-pong is between 0.54 and 0.7 us.
    assert_eq!((inside("r0037"), inside("r0102")), (Some(true), Some(true)));
    let holds = |id: &str| match &outcome.rows.iter().find(|row| row.id == id.into()).unwrap().ours {
        Ours::Shape(finding) => finding.holds,
        other => panic!("{id}: {other:?}"),
    };
    assert!(holds("r0035") && holds("r0125"), "staircase, alike");
    assert!(!holds("r0112"), "a made-up fence is paid at every size");
    assert!(!holds("r0124"), "made-up platforms are bound by their links at every size");
}

#[test]
fn a_platform_is_left_out_with_the_knobs_of_its_kin() {
    let outcome = outcome();
    let left = outcome.left_out.iter().find(|left| left.platform == "xeon-v100").unwrap();
    // Most server platforms have 8 lanes, and with them a shorter fence: 38 ns for 46.
    assert_eq!((left.kin.as_deref(), left.replaced.len()), (Some("bdw-nfp6000-local"), 1));
    let fitted = outcome.rows.iter().find(|row| row.id == "r0625".into()).unwrap().error_percent.unwrap();
    let out = left.errors_percent[&"r0625".into()].unwrap();
    assert!((fitted - out - 100.0 * 8.0 / 95.2).abs() < 1e-9, "{fitted} and {out}");
}

#[test]
fn a_scored_row_that_a_platform_was_solved_from_is_a_conflict() {
    let mut simulator = MadeUp { fitted_to: vec!["r0030"] };
    let outcome = run(&Options::default(), &mut simulator).unwrap();
    let expected = "r0030 is scored, but a constant was solved from it";
    assert!(outcome.conflicts.iter().any(|conflict| conflict == expected), "{:?}", outcome.conflicts);
    assert!(outcome.rows.iter().find(|row| row.id == "r0030".into()).unwrap().was_fitted);
}

#[test]
fn simulator_is_asked_for_each_quantity_once() {
    struct Strict(MadeUp, Vec<(String, Quantity)>);
    impl Simulator for Strict {
        fn platforms(&self) -> Vec<Card> {
            self.0.platforms()
        }
        fn measure_with(
            &mut self,
            platform: &str,
            replacements: &[Replacement],
            quantity: &Quantity,
        ) -> Result<f64, NotModelled> {
            let question = (platform.to_owned(), quantity.clone());
            assert!(!replacements.is_empty() || !self.1.contains(&question), "twice: {question:?}");
            self.1.push(question);
            self.0.measure_with(platform, replacements, quantity)
        }
    }
    let mut simulator = Strict(MadeUp::default(), Vec::new());
    run(&Options { draw: true, ..Options::default() }, &mut simulator).unwrap();
    assert!(simulator.1.len() > 300, "{}", simulator.1.len());
}

#[test]
fn every_hypothesis_of_the_fence_has_a_column() {
    let outcome = outcome();
    let row = outcome.fences.iter().find(|row| row.platform == "xeon-v100").unwrap();
    let times: Vec<f64> = row.ours_ns.iter().map(|ns| ns.unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    assert!((row.published_ns - 90.2).abs() < 1e-9);
}

#[test]
fn tables_fit_a_terminal() {
    let text = output::tables(&outcome(), true);
    println!("{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= usize::from(output::WIDTH), "too wide: {line}");
    }
    for part in [
        "seed000 Larsen&Lee NAS'15",
        "lost in the text: power analysis",
        "core.fence",
        "aims met by the five sources: no",
    ] {
        assert!(part == "core.fence" || text.contains(part), "{part} is not in the tables");
    }
}

#[test]
fn the_csv_has_every_row() {
    let outcome = outcome();
    let text = output::csv(&outcome).unwrap();
    assert_eq!(text.lines().count(), outcome.rows.len() + 1);
    let line = text.lines().find(|line| line.starts_with("r0033,")).unwrap();
    assert!(line.contains(",i5-2400s-virtex5,fitted,no,108,ns,88,-18.52,"), "{line}");
}

#[test]
fn the_page_is_self_contained_and_its_data_can_be_read_back() {
    let outcome = outcome();
    let html = output::page(&outcome).unwrap();
    // Named after its run, for whoever wants to look at it.
    if let Some(path) = std::env::var_os("BEELINE_FIGURES_PAGE") {
        std::fs::write(path, &html).unwrap();
    }
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!html.contains(outside), "the page loads something: {outside}");
    }
    assert_eq!(html.matches("<svg class=\"plot\"").count(), outcome.figures.len());
    let start = html.find("id=\"outcome\">").unwrap() + "id=\"outcome\">".len();
    let end = start + html[start..].find("</script>").unwrap();
    let value: serde_json::Value = serde_json::from_str(&html[start..end]).unwrap();
    assert_eq!(value["rows"].as_array().unwrap().len(), outcome.rows.len());
}

#[test]
fn published_points_are_drawn_where_they_were_printed_and_nowhere_else() {
    let outcome = outcome();
    let figure = |start: &str| outcome.figures.iter().find(|f| f.title.starts_with(start)).unwrap();
    let fig8 = figure("kPIO+WC, figure 8");
    assert!(fig8.lines.iter().all(|line| line.published.is_empty() && !line.simulated.is_empty()));
    let peaks = figure("Dolphin, figures 2 to 6: throughput");
    assert_eq!(
        peaks.lines[2].published.len() + peaks.lines[2].published_uncompared.len(),
        0,
        "none is printed"
    );
    let first = peaks.lines[0].published.iter().chain(&peaks.lines[0].published_uncompared);
    assert_eq!(first.collect::<Vec<_>>(), [&(256.0, 1.45)]);
    assert_eq!(figure("gdrcopy").lines[0].published.len(), 11);
    assert_eq!(figure("gdrcopy").lines[0].published[1], (64.0, 0.0902));
}

#[test]
fn figures_say_what_they_should_show_and_what_they_show() {
    let outcome = outcome();
    let html = output::page(&outcome).unwrap();
    for figure in &outcome.figures {
        let seen = sentence(&figure.chart());
        assert!(!seen.is_empty(), "{}", figure.title);
        assert!(
            html.contains(&escape(&seen)) && html.contains(&escape(&figure.expected)),
            "{}",
            figure.title
        );
    }
}

#[test]
fn published_points_of_other_runs_are_drawn_and_not_compared() {
    let outcome = outcome();
    let figure = |start: &str| outcome.figures.iter().find(|f| f.title.starts_with(start)).unwrap();
    // The text's 232 ns are a time of stores, and the line is a time until the device has the frame.
    let line = &figure("kPIO+WC, figure 7").lines[0];
    assert!(line.published.is_empty() && line.published_uncompared.contains(&(104.0, 232.0)), "{line:?}");
    for figure in &outcome.figures {
        assert_eq!(figure.is_rate, figure.unit.ends_with("/s"), "{}", figure.title);
    }
}

#[test]
fn line_of_an_interface_looks_as_the_interface_does_everywhere() {
    let outcome = outcome();
    for figure in &outcome.figures {
        for (line, series) in figure.lines.iter().zip(figure.chart().series) {
            let is_of_it = |interface| series.style.class() == LineStyle::Of(interface, 0).class();
            assert_eq!(line.interface.is_some(), line.interface.is_some_and(is_of_it), "{}", line.name);
            assert!(line.interface.is_some() || !Interface::ALL.into_iter().any(is_of_it), "{}", line.name);
        }
    }
}
