//! A command with what it is told.

use std::path::PathBuf;

/// A program of the system, its arguments, and where it runs.
#[derive(Clone, Debug)]
pub struct Job {
    pub(super) program: String,
    /// What its command line begins with.
    pub(super) inside: Vec<String>,
    pub(super) arguments: Vec<String>,
    pub(super) core: Option<usize>,
    pub(super) user: Option<&'static str>,
    pub(super) input: Option<PathBuf>,
    pub(super) variables: Vec<(String, String)>,
}

impl Job {
    /// A program, by its name or its path, as this user, on any core.
    pub fn new(program: &str) -> Self {
        Job {
            program: program.to_owned(),
            inside: Vec::new(),
            arguments: Vec::new(),
            core: None,
            user: None,
            input: None,
            variables: Vec::new(),
        }
    }

    #[must_use]
    pub fn arg(mut self, argument: impl ToString) -> Self {
        self.arguments.push(argument.to_string());
        self
    }

    /// Arguments as they would be typed: words with blanks between them.
    #[must_use]
    pub fn words(mut self, arguments: &str) -> Self {
        self.arguments.extend(arguments.split_whitespace().map(str::to_owned));
        self
    }

    /// On this core alone, with all that it starts.
    #[must_use]
    pub fn on(mut self, core: Option<usize>) -> Self {
        self.core = core;
        self
    }

    /// By a command that enters a namespace and starts what follows it, as [`crate::veth::Veth::enter`] has one.
    #[must_use]
    pub fn inside(mut self, enter: Vec<String>) -> Self {
        self.inside = enter;
        self
    }

    /// As this user, where the caller is root; else as the caller.
    #[must_use]
    pub fn by(mut self, user: &'static str) -> Self {
        self.user = Some(user);
        self
    }

    /// With this file as its standard input.
    #[must_use]
    pub fn input(mut self, file: PathBuf) -> Self {
        self.input = Some(file);
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.variables.push((name.to_owned(), value.to_string()));
        self
    }
}
