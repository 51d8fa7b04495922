//! What a generation makes, before it is proved and kept.

/// A file to be committed.
pub struct Generated {
    /// Under `spec/generated/`.
    pub path: &'static str,
    pub text: String,
}

impl Generated {
    /// The last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}
