//! A platform: read, checked and typed.

use std::path::{Component, Path};

use serde::Serialize;

use crate::builtin;
use crate::error::near;
use crate::leaves::{Leaf, Leaves};
use crate::section::Section;
use crate::sections::known_keys;
use crate::text::{self, Head, Text};
use crate::value::Quantity;
use crate::{
    Bounds, CentralSwitch, Coherent, Core, Device, Energy, HopKind, Kind, Link, Location, PlatformError,
    RootComplex, Row, Scalar, Source, Time, Value,
};

/// A machine in virtual time: every parameter, each with its source. Made by reading only, so that its bounds hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Platform {
    /// Name of the file, without `.toml`.
    pub name: String,
    /// A line that says what machine it is.
    pub summary: String,
    /// Kind of the device at the far end.
    pub kind: Kind,
    pub core: Core,
    pub root_complex: RootComplex,
    /// The link from the root complex to the first hop, or to the device.
    pub link: Link,
    /// Switches and bridges in order from the host to the device.
    pub hops: Vec<Hop>,
    pub device: Device,
    /// A central switch that joins several boards or devices, if there is one.
    pub switch: Option<CentralSwitch>,
    /// A coherent interconnect, if there is one.
    pub coherent: Option<Coherent>,
    /// What its parts use of energy, if somebody says it.
    pub energy: Option<Energy>,
    /// All values of the files, for `with`.
    #[serde(skip)]
    leaves: Leaves,
}

/// A switch or bridge and the link behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hop {
    /// Switch or bridge.
    pub kind: Value<HopKind>,
    /// From the packet in one port's transaction layer until its first symbol may leave by the other.
    pub latency_ns: Value<Time>,
    /// The link behind it. What its file leaves out is as in `[link]`.
    pub link: Link,
}

impl Platform {
    /// A platform that is built in.
    ///
    /// # Errors
    /// None has this name; the error names those that are near.
    pub fn named(name: &str) -> Result<Platform, PlatformError> {
        let Some(text) = builtin::platform(name) else {
            let near = near(name, builtin::names());
            return Err(PlatformError::NoSuchPlatform { name: name.to_owned(), near });
        };
        Platform::from_text(&format!("{name}.toml"), text)
    }

    /// Checks a text as if it were the file of this name. It may include built-in parts.
    ///
    /// # Errors
    /// Something in it is wrong: the error says where, what and what to do.
    pub fn from_text(file: &str, text: &str) -> Result<Platform, PlatformError> {
        Platform::parse(file, text, None)
    }

    /// The names of all platforms that are built in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        builtin::names()
    }

    /// All platforms that are built in, by name.
    ///
    /// # Errors
    /// None, unless a built-in file is wrong, which a test forbids.
    pub fn all() -> Result<Vec<Platform>, PlatformError> {
        builtin::names().map(Platform::named).collect()
    }

    /// The files of all platforms that are built in, and of their parts: path in the folder, and text.
    pub fn files() -> impl Iterator<Item = (String, &'static str)> {
        builtin::files()
    }

    /// Reads a file. What it includes is looked for beside it, then among the built-in parts.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong: the error says where, what and what to do.
    pub fn read(path: &Path) -> Result<Platform, PlatformError> {
        let text = read_text(path)?;
        Platform::parse(&path.display().to_string(), &text, path.parent())
    }

    /// The same machine with one parameter changed, as `--set core.wc_buffers=12` asks: the key, and the value as text.
    /// The value counts as assumed.
    ///
    /// # Errors
    /// The key is not known, or the value is out of bounds.
    pub fn with(&self, key: &str, value: &str) -> Result<Platform, PlatformError> {
        self.with_all([(key, value)])
    }

    /// As [`Platform::with`], with several parameters changed at once: also those of a section that the file does not
    /// have and that needs all of them.
    ///
    /// # Errors
    /// A key is not known, a value is out of bounds, or something of a section is missing.
    pub fn with_all<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Platform, PlatformError> {
        let mut leaves = self.leaves.clone();
        for (key, value) in changes {
            let location = Location { file: format!("{key}={value}"), line: None };
            let source = Source::Assumed("set by the caller".to_owned());
            leaves.set(key, Leaf { value: text::scalar(value), source, location, shared: false })?;
        }
        Platform::build(self.name.clone(), self.summary.clone(), self.kind, leaves)
    }

    /// Every parameter that a file can give this platform, in the order of the schema.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.core.rows("core", &mut rows);
        self.root_complex.rows("root_complex", &mut rows);
        self.link.rows("link", &mut rows);
        for (index, hop) in self.hops.iter().enumerate() {
            let section = format!("hop.{index}");
            let head = crate::HopHead { kind: hop.kind.clone(), latency_ns: hop.latency_ns.clone() };
            head.rows(&section, &mut rows);
            hop.link.rows(&section, &mut rows);
        }
        if let Some(switch) = &self.switch {
            switch.rows("switch", &mut rows);
        }
        self.device.rows("device", &mut rows);
        if let Some(coherent) = &self.coherent {
            coherent.rows("coherent", &mut rows);
        }
        if let Some(energy) = &self.energy {
            energy.rows("energy", &mut rows);
        }
        rows
    }

    /// What was chosen for this platform: fitted parameters, and assumed ones that not all platforms of its kind share.
    pub fn knobs(&self) -> Vec<Row> {
        self.rows().into_iter().filter(|row| row.knob).collect()
    }

    /// Checks a file's text and what it includes. `folder` is where includes are looked for first.
    fn parse(file: &str, text: &str, folder: Option<&Path>) -> Result<Platform, PlatformError> {
        let Text { head, includes, leaves: own, hops } = text::parse(file, text, false)?;
        let head = head.ok_or_else(|| PlatformError::Missing {
            file: file.to_owned(),
            key: "platform".to_owned(),
            bounds: "a section with name, summary and kind".to_owned(),
        })?;
        let kind = head_kind(&head)?;
        let (mut hops, mut of_parts) = (hops, Vec::new());
        for (path, location) in &includes {
            let (name, text) = part(path, location, folder)?;
            let part = text::parse(&name, &text, true)?;
            hops = hops.max(part.hops);
            of_parts.extend(part.leaves);
        }
        let mut leaves = Leaves::new(file, hops, known_keys(hops));
        for (key, leaf) in of_parts.into_iter().chain(own) {
            leaves.add(key, leaf)?;
        }
        let platform = Platform::build(head.name.0.clone(), head.summary.clone(), kind, leaves)?;
        // Last, so that a copy under another name is checked in everything else.
        check_name(&head, file)?;
        Ok(platform)
    }

    fn build(name: String, summary: String, kind: Kind, kept: Leaves) -> Result<Platform, PlatformError> {
        let mut leaves = kept.clone();
        let mut hops = Vec::new();
        for index in 0..leaves.hops() {
            let section = format!("hop.{index}");
            leaves.inherit(&section, Link::PARAMETERS);
            let head = crate::HopHead::take(&mut leaves, &section)?;
            let link = Link::take(&mut leaves, &section)?;
            hops.push(Hop { kind: head.kind, latency_ns: head.latency_ns, link });
        }
        let switch = leaves.has_section("switch").then(|| CentralSwitch::take(&mut leaves, "switch"));
        let coherent = leaves.has_section("coherent").then(|| Coherent::take(&mut leaves, "coherent"));
        let energy = leaves.has_section("energy").then(|| Energy::take(&mut leaves, "energy"));
        let platform = Platform {
            name,
            summary,
            kind,
            core: Core::take(&mut leaves, "core")?,
            root_complex: RootComplex::take(&mut leaves, "root_complex")?,
            link: Link::take(&mut leaves, "link")?,
            hops,
            device: Device::take(&mut leaves, "device")?,
            switch: switch.transpose()?,
            coherent: coherent.transpose()?,
            energy: energy.transpose()?,
            leaves: kept,
        };
        platform.check_together()?;
        Ok(platform)
    }

    /// Values that keep their bounds one by one and cannot be together.
    fn check_together(&self) -> Result<(), PlatformError> {
        let core = &self.core;
        if core.uncached_store_bytes.value > core.store_bytes.value {
            let problem =
                "wider than core.store_bytes; a store that bypasses is no wider than one that combines";
            return Err(contradiction("core.uncached_store_bytes", &core.uncached_store_bytes, problem));
        }
        let (interval, handler) = (core.interrupt_interval_ns.value, core.interrupt_ns.value);
        if interval > Time::ZERO && handler >= interval {
            let problem = "not less than core.interrupt_interval_ns; the core would do nothing else";
            return Err(contradiction("core.interrupt_ns", &core.interrupt_ns, problem));
        }
        for (index, hop) in self.hops.iter().enumerate() {
            let (own, first) = (&hop.link.max_payload_bytes, self.link.max_payload_bytes.value);
            if own.value != first {
                let problem = format!(
                    "a switch cuts no packets; give {first}, as link.max_payload_bytes, or leave it out"
                );
                return Err(contradiction(&format!("hop.{index}.max_payload_bytes"), own, &problem));
            }
        }
        let hop_links = self.hops.iter().enumerate().map(|(i, hop)| (format!("hop.{i}"), &hop.link));
        for (section, link) in std::iter::once(("link".to_owned(), &self.link)).chain(hop_links) {
            let least = link.max_payload_bytes.value / 16;
            for (name, units) in [
                ("posted_data_units", &link.posted_data_units),
                ("completion_data_units", &link.completion_data_units),
            ] {
                if units.value != 0 && units.value < least {
                    let problem =
                        format!("a packet of max_payload_bytes never gets them; give 0 or {least} and more");
                    return Err(contradiction(&format!("{section}.{name}"), units, &problem));
                }
            }
        }
        Ok(())
    }
}

fn contradiction<T: Quantity>(key: &str, value: &Value<T>, problem: &str) -> PlatformError {
    PlatformError::Contradiction {
        location: value.location.clone().unwrap_or(Location { file: "default".to_owned(), line: None }),
        key: key.to_owned(),
        value: value.value.to_scalar().map_or_else(String::new, |scalar| scalar.to_string()),
        problem: problem.to_owned(),
    }
}

/// Whether `[platform]` says the file's name.
fn check_name(head: &Head, file: &str) -> Result<(), PlatformError> {
    let (name, location) = &head.name;
    if Path::new(file).file_stem().is_none_or(|stem| stem.to_string_lossy() != name.as_str()) {
        return Err(PlatformError::Contradiction {
            location: location.clone(),
            key: "platform.name".to_owned(),
            value: format!("{name:?}"),
            problem: "not the file's name; give both the same, without .toml".to_owned(),
        });
    }
    Ok(())
}

/// The kind that `[platform]` says.
fn head_kind(head: &Head) -> Result<Kind, PlatformError> {
    let (kind, location) = &head.kind;
    Kind::from_scalar(&Scalar::Word(kind.clone())).ok_or_else(|| PlatformError::OutOfBounds {
        location: location.clone(),
        key: "platform.kind".to_owned(),
        value: format!("{kind:?}"),
        bounds: Bounds::Words(Kind::WORDS),
    })
}

/// The text of a part and the name that errors give it: a file beside the platform's, else a built-in part.
fn part(path: &str, location: &Location, folder: Option<&Path>) -> Result<(String, String), PlatformError> {
    let refuse = |problem: String| PlatformError::Include {
        location: location.clone(),
        path: path.to_owned(),
        problem,
    };
    let only_down = |component| matches!(component, Component::Normal(_) | Component::CurDir);
    if path.is_empty() || !Path::new(path).components().all(only_down) {
        return Err(refuse("a path from the file downwards, without \"..\", is wanted".to_owned()));
    }
    if let Some(file) = folder.map(|folder| folder.join(path)).filter(|file| file.exists()) {
        return Ok((file.display().to_string(), read_text(&file)?));
    }
    let Some(text) = builtin::part(path) else {
        let known: Vec<&str> = builtin::parts().collect();
        return Err(refuse(format!("no such file, and built in are only: {}", known.join(", "))));
    };
    Ok((path.to_owned(), text.to_owned()))
}

fn read_text(path: &Path) -> Result<String, PlatformError> {
    std::fs::read_to_string(path).map_err(|error| PlatformError::Unreadable { path: path.to_owned(), error })
}
