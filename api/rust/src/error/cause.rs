//! What the layer below says.

/// Why an error happened, where the layer below says it.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;
