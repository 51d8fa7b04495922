//! The tables of a Markdown page, for checks that read them.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A table: the heading it stands under, the names of its columns, and its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Text of the heading above it; empty when there is none.
    pub heading: String,
    /// Cells of the head row.
    pub columns: Vec<Cell>,
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Its line in the page, from 1.
    pub line: usize,
    /// Its cells; as many as the table has columns.
    pub cells: Vec<Cell>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its words, those in back-ticks included.
    pub text: String,
    /// What stands in back-ticks.
    pub code: Vec<String>,
}

/// Every table of a page, in order.
pub fn tables(page: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut heading, mut in_heading) = (String::new(), false);
    let mut cells: Vec<Cell> = Vec::new();
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => (in_heading, heading) = (true, String::new()),
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Text(text) | Event::Code(text) if in_heading => heading.push_str(&text),
            Event::Start(Tag::Table(_)) => {
                tables.push(Table { heading: heading.clone(), ..Table::default() });
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => cells = Vec::new(),
            Event::Start(Tag::TableCell) => cells.push(Cell::default()),
            Event::Text(text) => {
                if let Some(cell) = cells.last_mut() {
                    cell.text.push_str(&text);
                }
            }
            Event::Code(code) => {
                if let Some(cell) = cells.last_mut() {
                    cell.text.push_str(&code);
                    cell.code.push(code.into_string());
                }
            }
            Event::End(TagEnd::TableHead) => {
                if let Some(table) = tables.last_mut() {
                    table.columns = std::mem::take(&mut cells);
                }
            }
            Event::End(TagEnd::TableRow) => {
                if let Some(table) = tables.last_mut() {
                    table
                        .rows
                        .push(Row { line: line_of(page, range.start), cells: std::mem::take(&mut cells) });
                }
            }
            _ => {}
        }
    }
    tables
}

/// The line, from 1, that a byte of the page stands on.
pub fn line_of(page: &str, at: usize) -> usize {
    page[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_carry_heading_columns_lines_and_code() {
        let page = "# A `b`\ntext `not this`\n\n| x | y |\n|---|---|\n| one `p/q`, `r` | |\n\n## C\n\n| z |\n|---|\n| 2 |\n";
        let tables = tables(page);
        assert_eq!(tables.len(), 2);
        assert_eq!((tables[0].heading.as_str(), tables[0].columns[1].text.as_str()), ("A b", "y"));
        assert_eq!(tables[0].rows[0].line, 6);
        assert_eq!(tables[0].rows[0].cells[0].text, "one p/q, r");
        assert_eq!(tables[0].rows[0].cells[0].code, ["p/q", "r"]);
        assert_eq!(tables[0].rows[0].cells[1], Cell::default());
        assert_eq!((tables[1].heading.as_str(), tables[1].rows[0].line), ("C", 12));
    }
}
