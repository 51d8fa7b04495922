//! `nic/rtl/sources.f`, the one list of the RTL, and what every file of SystemVerilog looks like.

use std::fs;
use std::path::Path;

use crate::failure::{Context, Outcome};
use crate::run::root;
use crate::source::SourceFile;

/// The list, from the root.
pub const LIST: &str = "nic/rtl/sources.f";

/// What stands around the NIC for its simulation, and is no part of it.
const AROUND: &str = "nic/rtl/sys/";

/// Paths that the list names, in its order.
pub fn listed() -> Outcome<Vec<String>> {
    let text = fs::read_to_string(root().join(LIST)).while_doing(format!("read {LIST}"))?;
    Ok(paths(&text))
}

fn paths(list: &str) -> Vec<String> {
    let lines = list.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).map(str::to_owned).collect()
}

/// Modules of the list: each file that is no package has the module of its name.
pub fn modules(paths: &[String]) -> Vec<String> {
    let stems = paths.iter().filter_map(|path| Path::new(path).file_stem()?.to_str());
    stems.filter(|stem| !stem.ends_with("_pkg")).map(str::to_owned).collect()
}

/// Where list and folder differ, and files that do not begin and end as each must.
pub fn findings(paths: &[String], files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    let ours = |file: &&SourceFile| file.path.starts_with("nic/rtl/") && !file.path.starts_with(AROUND);
    for file in files.iter().filter(ours) {
        if !paths.contains(&file.path) {
            findings.push(format!("{}: is not in {LIST}, so no tool reads it", file.path));
        }
    }
    for path in paths.iter().filter(|path| files.iter().all(|file| file.path != **path)) {
        findings.push(format!("{LIST}: {path} is not there"));
    }
    for (at, path) in paths.iter().enumerate().filter(|(at, path)| paths[..*at].contains(path)) {
        findings.push(format!("{LIST}: {path} stands twice, again as number {}", at + 1));
    }
    for file in files.iter().filter(|file| file.path.starts_with("nic/")) {
        let code: Vec<&str> = file.text.lines().filter(|line| line.starts_with('`')).collect();
        if code.first() != Some(&"`default_nettype none") {
            findings.push(format!("{}: does not begin with `default_nettype none", file.path));
        }
        if file.text.lines().rfind(|line| !line.trim().is_empty()) != Some("`default_nettype wire") {
            findings.push(format!("{}: does not end with `default_nettype wire", file.path));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_gives_paths_and_modules() {
        let listed = paths("// head\n\nspec/nic_pkg.sv\nnic/rtl/base/fifo.sv\n");
        assert_eq!(listed, ["spec/nic_pkg.sv", "nic/rtl/base/fifo.sv"]);
        assert_eq!(modules(&listed), ["fifo"]);
    }

    #[test]
    fn list_and_folder_must_agree() {
        let good = "// Contract.\n`default_nettype none\nmodule a;\nendmodule\n`default_nettype wire\n";
        let files = [SourceFile::new("nic/rtl/a.sv", good), SourceFile::new("nic/rtl/b.sv", good)];
        let list = ["nic/rtl/a.sv", "nic/rtl/gone.sv", "nic/rtl/a.sv"].map(str::to_owned);
        let found = findings(&list, &files);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("b.sv: is not in") && found[1].contains("gone.sv is not there"));
        assert!(found[2].contains("a.sv stands twice"));
        assert_eq!(findings(&list[..1], &files[..1]), Vec::<String>::new());
    }

    #[test]
    fn a_file_begins_and_ends_as_it_must() {
        for text in ["module a;\nendmodule\n`default_nettype wire\n", "`default_nettype none\nmodule a;\n"] {
            let found = findings(&["nic/rtl/a.sv".to_owned()], &[SourceFile::new("nic/rtl/a.sv", text)]);
            assert_eq!(found.len(), 1, "{found:?}");
        }
    }
}
