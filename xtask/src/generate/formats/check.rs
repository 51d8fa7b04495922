//! What must hold for `formats.toml`, each rule with the sentence that says it is broken.

use super::{ByteField, Enum, Formats, Struct, Word};
use crate::failure::{Outcome, none_found};
use crate::generate::naming;

/// Words that stand in a blank window beside payload; their `tag` keeps them apart from a blank.
const TAGGED_WORDS: [&str; 3] = ["header", "link", "blank"];

impl Formats {
    /// Everything wrong with the file, at once.
    pub(super) fn check(&self) -> Outcome {
        let mut findings = Vec::new();
        self.check_sizes(&mut findings);
        for (name, word) in &self.words {
            check_name("word", name, &word.doc, &mut findings);
            check_word(name, word, &mut findings);
        }
        for (name, enumeration) in &self.enums {
            check_name("enum", name, &enumeration.doc, &mut findings);
            check_enum(name, enumeration, &mut findings);
        }
        for (name, structure) in &self.structs {
            check_name("struct", name, &structure.doc, &mut findings);
            check_struct(name, structure, &mut findings);
        }
        self.check_modules(&mut findings);
        none_found("spec/formats.toml is wrong", findings)
    }

    fn check_sizes(&self, findings: &mut Vec<String>) {
        for (name, size) in &self.sizes {
            check_name("size", name, &size.doc, findings);
            if size.value == 0 {
                findings.push(format!("size `{name}` is 0"));
            }
        }
        let size = |name: &str| self.size(name).ok();
        match (size("word_bytes"), size("line_bytes"), size("words_per_line")) {
            (Some(word), Some(line), Some(words)) if line == word.saturating_mul(words) && line.is_power_of_two() => {}
            (Some(word), Some(line), Some(words)) => findings.push(format!(
                "line_bytes = {line} must be a power of two and word_bytes * words_per_line = {word} * {words}"
            )),
            _ => findings.push("[sizes] needs word_bytes, line_bytes and words_per_line".to_owned()),
        }
    }

    /// Words, enumerations and structures share the name space of the generated modules.
    fn check_modules(&self, findings: &mut Vec<String>) {
        let names = self.words.iter().map(|(name, _)| name);
        let names = names.chain(self.enums.iter().map(|(name, _)| name));
        let names = names.chain(self.structs.iter().map(|(name, _)| name));
        duplicates(names.map(String::as_str), |name| {
            findings.push(format!("`{name}` names two of word, enum and struct; they share one name space"));
        });
    }
}

fn check_name(what: &str, name: &str, doc: &str, findings: &mut Vec<String>) {
    if let Err(why) = naming::check(name) {
        findings.push(format!("{what} `{name}`: {why}"));
    }
    if doc.trim().is_empty() {
        findings.push(format!("{what} `{name}` has no doc"));
    }
}

fn duplicates<'a, T: PartialEq + 'a>(items: impl Iterator<Item = T>, mut report: impl FnMut(&T)) {
    let mut seen: Vec<T> = Vec::new();
    for item in items {
        if seen.contains(&item) {
            report(&item);
        }
        seen.push(item);
    }
}

fn check_word(name: &str, word: &Word, findings: &mut Vec<String>) {
    let mut taken = 0u64;
    for field in &word.fields {
        check_name(&format!("word `{name}`, field"), &field.name, &field.doc, findings);
        if field.width == 0 || field.lsb >= 64 || field.width > 64 - field.lsb {
            findings.push(format!(
                "word `{name}`: field `{}` of {} bits from bit {} on does not lie in 64 bits",
                field.name, field.width, field.lsb
            ));
            continue;
        }
        let bits = field.mask() << field.lsb;
        if taken & bits != 0 {
            findings.push(format!("word `{name}`: field `{}` overlaps an earlier one", field.name));
        }
        taken |= bits;
    }
    duplicates(word.fields.iter().map(|field| field.name.as_str()), |field| {
        findings.push(format!("word `{name}` has two fields `{field}`"));
    });
    let tagged = word.fields.iter().any(|field| field.name == "tag" && (field.lsb, field.width) == (63, 1));
    if TAGGED_WORDS.contains(&name) && !(tagged && taken == u64::MAX) {
        findings.push(format!(
            "word `{name}` must define all 64 bits, with `tag` in bit 63: that bit tells a blank from every other word"
        ));
    }
}

fn check_enum(name: &str, enumeration: &Enum, findings: &mut Vec<String>) {
    for value in &enumeration.values {
        if let Err(why) = naming::check_constant(&value.name) {
            findings.push(format!("enum `{name}`, value `{}`: {why}", value.name));
        }
        if value.doc.trim().is_empty() {
            findings.push(format!("enum `{name}`, value `{}` has no doc", value.name));
        }
        if value.value > u64::from(u8::MAX) {
            findings.push(format!("enum `{name}`: `{}` = {} does not fit 8 bits", value.name, value.value));
        }
    }
    duplicates(enumeration.values.iter().map(|value| value.name.as_str()), |value| {
        findings.push(format!("enum `{name}` has two values `{value}`"));
    });
    duplicates(enumeration.values.iter().map(|value| value.value), |value| {
        findings.push(format!("enum `{name}` uses the number {value} twice"));
    });
}

fn check_struct(name: &str, structure: &Struct, findings: &mut Vec<String>) {
    let mut end = 0;
    for field in &structure.fields {
        check_name(&format!("struct `{name}`, field"), &field.name, &field.doc, findings);
        let ByteField { name: field_name, offset, bytes, .. } = field;
        if ![1, 2, 4, 8].contains(bytes) {
            findings
                .push(format!("struct `{name}`: field `{field_name}` has {bytes} bytes, not 1, 2, 4 or 8"));
            continue;
        }
        if offset % bytes != 0 {
            findings.push(format!(
                "struct `{name}`: field `{field_name}` at {offset} is not aligned to its {bytes} bytes"
            ));
        }
        if *offset < end {
            findings
                .push(format!("struct `{name}`: field `{field_name}` overlaps or precedes an earlier one"));
        }
        end = offset.saturating_add(*bytes);
        if end > structure.bytes {
            findings.push(format!(
                "struct `{name}`: field `{field_name}` ends past the structure's {} bytes",
                structure.bytes
            ));
        }
    }
    duplicates(structure.fields.iter().map(|field| field.name.as_str()), |field| {
        findings.push(format!("struct `{name}` has two fields `{field}`"));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../../../../spec/formats.toml");

    /// What is said about the project's own file after `from` in it became `to`.
    fn finding(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "spec/formats.toml no longer contains: {from}");
        Formats::parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string()
    }

    fn expect(from: &str, to: &str, said: &str) {
        let found = finding(from, to);
        assert!(found.contains(said), "expected `{said}` in: {found}");
    }

    #[test]
    fn the_project_s_own_file_is_right() {
        Formats::parse(GOOD).unwrap();
    }

    #[test]
    fn wrong_sizes_are_refused() {
        expect("line_bytes = { value = 64", "line_bytes = { value = 60", "line_bytes = 60 must be");
        expect("word_bytes = { value = 8", "Word_bytes = { value = 8", "lower_snake");
        expect("word_bytes = { value = 8", "worm_bytes = { value = 8", "needs word_bytes");
        expect("max_queues = { value = 1024", "max_queues = { value = 0", "`max_queues` is 0");
        expect(
            "max_queues = { value = 1024",
            "max_queues = { value = \"many\"",
            "cannot read `sizes.max_queues`",
        );
    }

    #[test]
    fn wrong_words_are_refused() {
        let kind = "{ name = \"kind\", lsb = 46, width = 4";
        expect(kind, "{ name = \"kind\", lsb = 45, width = 4", "field `kind` overlaps");
        expect(kind, "{ name = \"kind\", lsb = 46, width = 0", "does not lie in 64 bits");
        expect(kind, "{ name = \"kind\", lsb = 46, width = 40", "does not lie in 64 bits");
        expect(kind, "{ name = \"kind\", lsb = 64, width = 1", "does not lie in 64 bits");
        expect(kind, "{ name = \"epoch\", lsb = 46, width = 4", "two fields `epoch`");
        expect(kind, "{ name = \"class\", lsb = 46, width = 4", "keyword");
        expect(kind, "{ name = \"kind\", msb = 49, lsb = 46, width = 4", "unknown field `msb`");
        expect("{ name = \"tag\", lsb = 63", "{ name = \"mark\", lsb = 63", "must define all 64 bits");
        expect("Payload bytes after the header.", "  ", "field `length_bytes` has no doc");
    }

    #[test]
    fn wrong_enums_are_refused() {
        expect("{ name = \"void\", value = 2", "{ name = \"void\", value = 1", "uses the number 1 twice");
        expect("{ name = \"void\", value = 2", "{ name = \"data\", value = 2", "two values `data`");
        expect("{ name = \"void\", value = 2", "{ name = \"void\", value = 256", "does not fit 8 bits");
        expect("{ name = \"void\", value = 2", "{ name = \"Void\", value = 2", "lower_snake");
        expect("[enum.message_kind]", "[enum.header]", "share one name space");
    }

    #[test]
    fn wrong_structures_are_refused() {
        let flags = "{ name = \"flags\", offset = 12, bytes = 4";
        expect(flags, "{ name = \"flags\", offset = 10, bytes = 2", "overlaps or precedes");
        expect(flags, "{ name = \"flags\", offset = 14, bytes = 4", "is not aligned");
        expect(flags, "{ name = \"flags\", offset = 16, bytes = 4", "ends past the structure's 16 bytes");
        expect(flags, "{ name = \"flags\", offset = 12, bytes = 3", "not 1, 2, 4 or 8");
        expect(flags, "{ name = \"address\", offset = 12, bytes = 4", "two fields `address`");
    }

    #[test]
    fn wrong_files_are_refused() {
        expect("[word.header]", "[word.header", "cannot read spec/formats.toml");
        expect("[kpio]", "[kqio]", "no section `kpio`");
        expect("[sizes]", "[extra]\n[sizes]", "`extra` is none of the sections");
        expect("\"0xE0B0E0B05AFEC0DE\"", "\"E0B0\"", "16 hexadecimal digits");
        expect("\"0xE0B0E0B05AFEC0DE\"", "\"0xE0B0E0B05AFEC0DE1\"", "16 hexadecimal digits");
    }
}
