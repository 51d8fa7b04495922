//! What was looked at and how it stands.

use serde::Serialize;

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// Works, but costs something; the text says what.
    Limited,
    /// Does not work; the text says what to do.
    Missing,
    /// A fact that is neither.
    Fact,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The heading it stands under.
    pub section: &'static str,
    /// What was looked at.
    pub what: String,
    /// How it stands.
    pub state: State,
    /// What that means, in words.
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
