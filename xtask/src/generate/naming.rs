//! Names: one spelling in the sources, the habit of each language in what is made of them.

/// Words that some output language keeps for itself; a source adds `_` to use one, and the output drops it again
/// where the language allows.
const KEYWORDS: [&str; 34] = [
    "as", "auto", "bit", "bool", "break", "byte", "case", "char", "class", "const", "default", "do", "else",
    "end", "enum", "float", "fn", "for", "if", "in", "int", "let", "logic", "long", "loop", "match", "mod",
    "module", "new", "packed", "ref", "struct", "type", "use",
];

/// Says why `name` cannot be the name of a register, word, structure or field: it must be lower_snake and no keyword
/// of an output language.
pub fn check(name: &str) -> Result<(), String> {
    check_constant(name)?;
    if KEYWORDS.contains(&name) {
        return Err(format!("`{name}` is a keyword of an output language; write `{name}_`"));
    }
    Ok(())
}

/// Says why `name` cannot be the name of a constant. A keyword can, because no output language writes a constant in
/// lower case.
pub fn check_constant(name: &str) -> Result<(), String> {
    let lower_snake = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.contains("__");
    if !lower_snake {
        return Err("a name is lower_snake and starts with a letter".to_owned());
    }
    Ok(())
}

/// `tx_frames` to `TX_FRAMES`; the `_` that sets a keyword apart is dropped.
pub fn upper(name: &str) -> String {
    plain(name).to_uppercase()
}

/// `tx_frames` to `TxFrames`.
pub fn camel(name: &str) -> String {
    plain(name).split('_').map(capitalized).collect()
}

/// The name without the `_` that sets a keyword apart.
pub fn plain(name: &str) -> &str {
    name.trim_end_matches('_')
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// One line of prose: SystemRDL and TOML keep the line breaks of their sources.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_each_language() {
        assert_eq!(
            (upper("class_"), camel("tx_frames"), camel("class_")),
            ("CLASS".into(), "TxFrames".into(), "Class".into())
        );
        assert_eq!(one_line("a\n   b  c"), "a b c");
    }

    #[test]
    fn names_that_some_language_refuses_are_refused() {
        for bad in ["Upper", "9lives", "two__score", "dash-ed", "", "class"] {
            assert!(check(bad).is_err(), "{bad} passed");
        }
        assert_eq!(check_constant("class"), Ok(()));
        assert_eq!(check("class_"), Ok(()));
        assert_eq!(check("tlp_bytes_8"), Ok(()));
    }
}
