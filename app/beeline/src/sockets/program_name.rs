//! Names of programs, as processes say them of themselves.

use std::path::Path;

/// The name of a program's file as it is shown: what a process says of itself may hold sequences that a terminal obeys.
pub fn shown(program: &str) -> String {
    let program = program.strip_suffix(" (deleted)").unwrap_or(program);
    let name = Path::new(program).file_name().map_or_else(|| program.into(), |name| name.to_string_lossy());
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_the_files_and_a_terminal_obeys_nothing_of_it() {
        assert_eq!(shown("/usr/bin/redis-server"), "redis-server");
        assert_eq!(shown("/usr/bin/redis-server (deleted)"), "redis-server");
        assert_eq!(shown("/x/\u{1b}[31mred"), "\\u{1b}[31mred");
        assert_eq!(shown(""), "");
    }
}
