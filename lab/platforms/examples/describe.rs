//! Prints platforms: all names with their knobs, or everything of those that are named (a name, or the path of a file).

use std::path::Path;

use beeline_platforms::{Platform, PlatformError};

fn main() -> Result<(), PlatformError> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        for platform in Platform::all()? {
            println!("{}: {}", platform.name, platform.summary);
            for knob in platform.knobs() {
                let source = knob.source.map_or_else(String::new, |source| source.to_text());
                println!("    {} = {} {} ({source})", knob.key, knob.value, knob.parameter.unit());
            }
        }
    }
    for name in names {
        let file = Path::new(&name);
        let platform = if file.exists() { Platform::read(file)? } else { Platform::named(&name)? };
        println!("{}\n", platform.describe(120));
    }
    Ok(())
}
