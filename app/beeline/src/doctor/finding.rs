//! What was looked at and how it stands.

use serde::Serialize;

/// Rating of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing to do.
    Good,
    /// Works, but costs something; the text says what.
    Limited,
    /// Does not work; the text says what to do.
    Missing,
    /// A fact that is neither.
    Fact,
}

/// A subject of the examination and its rating.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The heading it stands under.
    pub section: &'static str,
    /// Subject of the examination.
    pub what: String,
    pub state: State,
    /// Consequence for the user, in words.
    pub words: String,
    /// Figures behind the words, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<serde_json::Value>,
}

impl Finding {
    /// A finding that words are enough for.
    pub fn new(
        section: &'static str,
        what: impl Into<String>,
        state: State,
        words: impl Into<String>,
    ) -> Self {
        Finding { section, what: what.into(), state, words: words.into(), measured: None }
    }
}
