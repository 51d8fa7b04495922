//! A platform as a table for people.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::{Platform, Source};

/// Column of the values, aligned at their ends.
const VALUE_COLUMN: usize = 1;

impl Platform {
    /// Name, summary, and a table of all parameters: value, unit, source. A star marks [`Platform::knobs`]; defaults
    /// are left out. `width` is that of the terminal in columns.
    pub fn describe(&self, width: u16) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        table.set_header(["parameter", "value", "unit", "", "source"]);
        for row in self.rows() {
            let Some(source) = row.source.as_ref().map(Source::to_text) else { continue };
            let star = if row.knob { "*" } else { "" };
            table.add_row([&row.key, &row.value, row.parameter.unit(), star, &source]);
        }
        if let Some(column) = table.column_mut(VALUE_COLUMN) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let knobs = self.knobs().len();
        format!(
            "{} ({}): {}\n{table}\n* chosen for this platform: fitted, or assumed and not shared with its kind ({knobs})",
            self.name,
            self.kind.word(),
            self.summary
        )
    }
}
