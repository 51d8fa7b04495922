//! What the environment says instead of what was timed.

use core::str::FromStr;

use beeline_window::COALESCE_PARTS;

use crate::tuning::{NotPrefetch, Prefetch, ReceiveTuning};

/// The environment variable that says how receivers look at their windows: `default` (nothing that was timed), and
/// `prefetch=`, `group=` and `credits=`, any of them, with commas between.
pub const TUNING_VARIABLE: &str = "BEELINE_TUNING";

/// Most parts of a window of which each pushes credits.
const MAX_CREDIT_PARTS: u32 = 1024;

/// Values that stand in place of those that were timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Whether nothing that was timed is used.
    pub ignores_kept: bool,
    pub prefetch: Option<Prefetch>,
    pub in_groups: Option<bool>,
    pub credit_parts: Option<u32>,
}

/// A text that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    #[error("`{0}` is no whole tuning, which names prefetch=, group= and credits= and nothing else")]
    NotWhole(String),
    #[error("`{0}` is none of default, prefetch=, group= and credits=")]
    Key(String),
    #[error(transparent)]
    Prefetch(#[from] NotPrefetch),
    #[error("group={0}: it is 1 or 8")]
    Group(String),
    #[error(
        "credits={0}: a window has 2 to {MAX_CREDIT_PARTS} parts, {COALESCE_PARTS} unless told otherwise"
    )]
    Credits(String),
}

impl Overrides {
    /// What [`TUNING_VARIABLE`] says; nothing where it is not set.
    ///
    /// # Errors
    /// It cannot be followed.
    pub fn from_environment() -> Result<Self, NotFollowed> {
        std::env::var(TUNING_VARIABLE).unwrap_or_default().parse()
    }

    /// These values where there are any, else those of `tuning`.
    pub fn over(self, tuning: ReceiveTuning) -> ReceiveTuning {
        ReceiveTuning {
            prefetch: self.prefetch.unwrap_or(tuning.prefetch),
            in_groups: self.in_groups.unwrap_or(tuning.in_groups),
            credit_parts: self.credit_parts.unwrap_or(tuning.credit_parts),
        }
    }
}

impl FromStr for Overrides {
    type Err = NotFollowed;

    fn from_str(text: &str) -> Result<Self, NotFollowed> {
        let mut overrides = Overrides::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None if part == "default" => overrides.ignores_kept = true,
                Some(("prefetch", value)) => overrides.prefetch = Some(value.parse()?),
                Some(("group", value)) => overrides.in_groups = Some(in_groups(value)?),
                Some(("credits", value)) => overrides.credit_parts = Some(credit_parts(value)?),
                _ => return Err(NotFollowed::Key(part.to_owned())),
            }
        }
        Ok(overrides)
    }
}

/// As its `Display` shows it: all three values, in any order.
impl FromStr for ReceiveTuning {
    type Err = NotFollowed;

    fn from_str(text: &str) -> Result<Self, NotFollowed> {
        let named = match text.parse()? {
            Overrides { ignores_kept: false, prefetch, in_groups, credit_parts } => {
                prefetch.zip(in_groups).zip(credit_parts)
            }
            _ => None,
        };
        let ((prefetch, in_groups), credit_parts) =
            named.ok_or_else(|| NotFollowed::NotWhole(text.to_owned()))?;
        Ok(ReceiveTuning { prefetch, in_groups, credit_parts })
    }
}

/// Reads a number of lines that are tested together: whether they are eight.
pub(crate) fn in_groups(lines: &str) -> Result<bool, NotFollowed> {
    match lines {
        "1" => Ok(false),
        "8" => Ok(true),
        _ => Err(NotFollowed::Group(lines.to_owned())),
    }
}

/// Parts of a window of which each pushes credits.
pub(crate) fn credit_parts(text: &str) -> Result<u32, NotFollowed> {
    let parts = text.parse().ok().filter(|parts| (2..=MAX_CREDIT_PARTS).contains(parts));
    parts.ok_or_else(|| NotFollowed::Credits(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_values_stand_in_place_of_timed_ones() {
        let timed = ReceiveTuning { prefetch: Prefetch::None, in_groups: true, credit_parts: 16 };
        let over = |text: &str| text.parse::<Overrides>().unwrap().over(timed);
        assert_eq!(over(""), timed);
        assert_eq!(over("group=1"), ReceiveTuning { in_groups: false, ..timed });
        let all = over(" credits=4, prefetch=read:8 ,group=1,");
        assert_eq!(all.to_string(), "prefetch=read:8,group=1,credits=4");
        assert_eq!(
            all.to_string().parse::<Overrides>().unwrap().over(timed),
            all,
            "what is shown can be said"
        );
        assert!("default,group=1".parse::<Overrides>().unwrap().ignores_kept);
        assert!(!"group=1".parse::<Overrides>().unwrap().ignores_kept);
    }

    #[test]
    fn whole_tuning_is_read_as_it_is_shown() {
        let tuning =
            ReceiveTuning { prefetch: Prefetch::Write { lines: 8 }, in_groups: false, credit_parts: 16 };
        assert_eq!(tuning.to_string().parse(), Ok(tuning));
        for text in
            ["", "prefetch=none,group=8", "group=1,credits=4", "default,prefetch=none,group=8,credits=4"]
        {
            assert_eq!(text.parse::<ReceiveTuning>(), Err(NotFollowed::NotWhole(text.to_owned())));
        }
    }

    #[test]
    fn text_that_cannot_be_followed_is_refused_with_what_can() {
        for (text, words) in [
            ("fast", "`fast` is none of"),
            ("group", "`group` is none of"),
            ("group=4", "1 or 8"),
            ("credits=1", "2 to 1024"),
            ("credits=many", "credits=many"),
            ("prefetch=write", "read:LINES"),
            ("kernel=cached", "is none of"),
        ] {
            let error = text.parse::<Overrides>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
