//! What can be wrong with the files of this crate. A run never fails for a figure: those are results.

/// A file that does not say what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The published figures, or a snapshot, are not a table of the expected columns.
    #[error("not a table of figures: {0}")]
    Csv(String),
    /// A file of `rows/` or the frozen state does not read.
    #[error("{file}: {problem}")]
    Toml {
        /// Name of the file.
        file: String,
        /// Message of the CSV reader.
        problem: String,
    },
    /// Rows and their entries do not agree.
    #[error("{} of the rows are described wrongly:\n{}", .0.len(), .0.join("\n"))]
    Rows(Vec<String>),
    /// A formula cannot be computed.
    #[error("formula `{formula}`: {problem}")]
    Formula {
        formula: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Output that could not be made.
    #[error("the output could not be made: {0}")]
    Output(String),
}
