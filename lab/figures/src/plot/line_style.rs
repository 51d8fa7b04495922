//! The styles of lines: a colour, a marker and a dash for each interface, the same on every page, and styles of their own for lines
//! that are no interface. Colours are classes of the stylesheet, one value for light pages and one for dark ones.

use beeline_spec::Interface;

/// The colour of a light page, and of a dark one.
pub(super) const LIGHT_PAGE: &str = "#ffffff";
pub(super) const DARK_PAGE: &str = "#14181d";

/// The shape at each point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Wedge,
    Pentagon,
    Bar,
}

/// A row of the table: colour on a light page, colour on a dark page, marker, dash.
type Row = (&'static str, &'static str, Marker, &'static str);

/// The table of interfaces. The colours keep apart with any of the usual kinds of colour vision, and from the page.
const fn row(interface: Interface) -> Row {
    match interface {
        Interface::Mmio => ("#0059c9", "#3f86f0", Marker::Circle, "none"),
        Interface::Kpio => ("#b53300", "#e4571c", Marker::Square, "7 4"),
        Interface::Descriptor => ("#009a72", "#35d0a0", Marker::Triangle, "2 3"),
        Interface::Inline => ("#7b2d84", "#b76bb8", Marker::Diamond, "9 3 2 3"),
        Interface::Enso => ("#a98600", "#f7d640", Marker::Wedge, "14 4"),
        Interface::Niq => ("#1f9ad6", "#86ccf5", Marker::Pentagon, "4 2"),
        Interface::Coherent => ("#23272b", "#ffffff", Marker::Bar, "9 3 2 3 2 3"),
    }
}

/// Lines that are no interface, in their order: a ramp from dark to light, so that an order (of fences, of links) shows.
const OTHERS: [Row; 7] = [
    ("#3b0f70", "#f2e05a", Marker::Circle, "none"),
    ("#8c2981", "#fec287", Marker::Square, "7 4"),
    ("#c8375c", "#fb8861", Marker::Triangle, "2 3"),
    ("#c25a10", "#e0529a", Marker::Diamond, "9 3 2 3"),
    ("#6b7a00", "#b07cf0", Marker::Wedge, "14 4"),
    ("#00847e", "#6fa8ff", Marker::Pentagon, "4 2"),
    ("#57606a", "#9aa4ae", Marker::Bar, "9 3 2 3 2 3"),
];

/// Chooses a row of the table above: by interface, or by number for a line that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// The line of an interface; its second line in the same chart (another setting) has variant 1: hollow markers, thin.
    Of(Interface, usize),
    /// The line with this number of those that are no interface: hollow markers.
    Other(usize),
}

impl LineStyle {
    fn row(self) -> Row {
        match self {
            LineStyle::Of(interface, _) => row(interface),
            LineStyle::Other(number) => OTHERS[number % OTHERS.len()],
        }
    }

    /// Returns the class that gives the line its colour.
    pub fn class(self) -> String {
        match self {
            LineStyle::Of(interface, _) => format!("i-{interface}"),
            LineStyle::Other(number) => format!("o-{}", number % OTHERS.len()),
        }
    }

    /// Returns the shape of its points.
    pub fn marker(self) -> Marker {
        self.row().2
    }

    /// Returns the dash of its line as SVG has it.
    pub fn dash(self) -> &'static str {
        match self {
            LineStyle::Of(_, variant) if variant > 0 => "1 3",
            _ => self.row().3,
        }
    }

    /// Whether its points are outlines.
    pub fn is_hollow(self) -> bool {
        !matches!(self, LineStyle::Of(_, 0))
    }
}

/// The stylesheet's colours: those of light pages, and those of dark ones for readers who prefer them.
pub(super) fn css() -> String {
    let styles: Vec<LineStyle> = Interface::ALL
        .into_iter()
        .map(|interface| LineStyle::Of(interface, 0))
        .chain((0..OTHERS.len()).map(LineStyle::Other))
        .collect();
    let rules = |colour: fn(Row) -> &'static str| -> String {
        styles.iter().map(|style| format!(".{}{{--c:{}}}", style.class(), colour(style.row()))).collect()
    };
    format!(
        "{}\n@media(prefers-color-scheme:dark){{{}}}\n@media print{{{}}}\n",
        rules(|row| row.0),
        rules(|row| row.1),
        rules(|row| row.0)
    )
}

impl Marker {
    /// Returns the shape round a place, as the path of an SVG.
    pub(super) fn path(self, x: f64, y: f64) -> String {
        let polygon = |corners: &[(f64, f64)]| {
            let places: Vec<String> =
                corners.iter().map(|(dx, dy)| format!("{:.1} {:.1}", x + dx, y + dy)).collect();
            format!("M{}Z", places.join("L"))
        };
        match self {
            Marker::Circle => format!("M{:.1} {y:.1}a3.7 3.7 0 1 0 7.4 0a3.7 3.7 0 1 0-7.4 0Z", x - 3.7),
            // Its corners show below a circle at the same point.
            Marker::Square => polygon(&[(-4.4, -4.4), (4.4, -4.4), (4.4, 4.4), (-4.4, 4.4)]),
            Marker::Triangle => polygon(&[(0.0, -4.8), (4.7, 3.6), (-4.7, 3.6)]),
            Marker::Diamond => polygon(&[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)]),
            Marker::Wedge => polygon(&[(0.0, 4.8), (4.7, -3.6), (-4.7, -3.6)]),
            Marker::Pentagon => polygon(&[(0.0, -4.8), (4.6, -1.5), (2.8, 3.9), (-2.8, 3.9), (-4.6, -1.5)]),
            Marker::Bar => polygon(&[(-1.9, -5.2), (1.9, -5.2), (1.9, 5.2), (-1.9, 5.2)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: [&str; 2] = [LIGHT_PAGE, DARK_PAGE];
    /// How dichromats see linear red, green and blue (Machado, Oliveira and Fernandes 2009), and how others do.
    const VISIONS: [[[f64; 3]; 3]; 3] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    ];

    fn linear(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// The place of a colour in Oklab, in which distances are those that eyes see.
    fn oklab(rgb: [f64; 3]) -> [f64; 3] {
        let mix = |m: [f64; 3]| -> f64 { m.iter().zip(rgb).map(|(share, part)| share * part).sum() };
        let l = mix([0.4122214708, 0.5363325363, 0.0514459929]).max(0.0).cbrt();
        let m = mix([0.2119034982, 0.6806995451, 0.1073969566]).max(0.0).cbrt();
        let s = mix([0.0883024619, 0.2817188376, 0.6299787005]).max(0.0).cbrt();
        [
            0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
        ]
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let light = |colour| {
            let [r, g, b] = linear(colour);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn every_interface_has_a_colour_a_marker_and_a_dash_of_its_own() {
        for one in Interface::ALL {
            for other in Interface::ALL.into_iter().filter(|other| *other != one) {
                let (a, b) = (row(one), row(other));
                assert!(a.0 != b.0 && a.1 != b.1 && a.2 != b.2 && a.3 != b.3, "{one} looks like {other}");
            }
            assert!(css().contains(&format!(".i-{one}{{--c:{}}}", row(one).0)), "{one} has no class");
        }
    }

    #[test]
    fn colours_stand_out_from_light_and_dark_pages() {
        for row in Interface::ALL.into_iter().map(row).chain(OTHERS) {
            for (colour, page) in [row.0, row.1].into_iter().zip(PAGES) {
                assert!(contrast(colour, page) >= 3.0, "{colour} on {page}: {:.2}", contrast(colour, page));
            }
        }
    }

    #[test]
    fn colours_of_interfaces_differ_for_colour_blind_readers() {
        for vision in VISIONS {
            let seen = |colour| {
                let rgb = linear(colour);
                oklab(vision.map(|row| row.iter().zip(rgb).map(|(share, part)| share * part).sum()))
            };
            for colour in [|row: Row| row.0, |row: Row| row.1] {
                for one in Interface::ALL {
                    for other in Interface::ALL.into_iter().filter(|other| *other != one) {
                        let (a, b) = (seen(colour(row(one))), seen(colour(row(other))));
                        let apart = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        assert!(apart > 0.08, "{one} and {other}: {apart:.3}");
                    }
                }
            }
        }
    }
}
