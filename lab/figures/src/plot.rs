//! Charts and pages that load nothing from outside: what is drawn, how it looks, what a reader should see, and the HTML around
//! it. Colours are classes, so a page follows the reader's light or dark setting.
//!
//! Enter from [`html`], which puts a [`Chart`] with its legend and its sentence on a page.

mod axis;
mod chart;
pub mod html;
mod line_style;
mod seen;
mod svg;
mod text;

pub use chart::{Across, Better, Chart, Series, align};
pub use line_style::{LineStyle, Marker};
pub use seen::sentence;
pub use svg::draw;
