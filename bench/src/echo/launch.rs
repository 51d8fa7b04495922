//! How both sides of a rival are started.

use std::path::PathBuf;
use std::process::Command;

use super::roles::ROLE;
use beeline_session::Program;

/// A program that plays both sides of a rival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Name of the rival in figures.
    pub name: String,
    program: PathBuf,
    /// Arguments before `server` or `client`.
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// Programs that the server and the client are started through.
    through: [Vec<String>; 2],
}

impl Launch {
    /// `program`, which plays `rival`.
    pub fn new(name: &str, program: impl Into<PathBuf>, rival: &str) -> Self {
        Launch {
            name: name.to_owned(),
            program: program.into(),
            arguments: vec![rival.to_owned()],
            environment: Vec::new(),
            through: [Vec::new(), Vec::new()],
        }
    }

    /// A rival that `program`, which has the hidden subcommands, plays itself.
    pub fn role(name: &str, program: &Program, rival: &str) -> Self {
        let mut launch = Launch::new(name, program.path(), rival);
        launch.arguments.insert(0, ROLE.to_owned());
        launch
    }

    /// With an environment variable, for both sides.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Each side started through another program, which gets the side's command line behind its own arguments.
    pub fn through(mut self, server: Vec<String>, client: Vec<String>) -> Self {
        self.through = [server, client];
        self
    }

    pub(crate) fn server(&self, core: usize) -> Command {
        self.command(&self.through[0], &["server".to_owned(), core.to_string()])
    }

    pub(crate) fn client(&self, core: usize, address: &str) -> Command {
        self.command(&self.through[1], &["client".to_owned(), core.to_string(), address.to_owned()])
    }

    fn command(&self, through: &[String], side: &[String]) -> Command {
        let mut command = match through {
            [] => Command::new(&self.program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
        };
        command.args(&self.arguments).args(side);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        let program = std::iter::once(command.get_program());
        program.chain(command.get_args()).map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_side_is_started_as_it_says() {
        let launch = Launch::role("x", &Program::at("/bench"), "rival").env("A", "b");
        assert_eq!(words(&launch.server(1)), ["/bench", "echo", "rival", "server", "1"]);
        assert_eq!(words(&launch.client(0, "there")), ["/bench", "echo", "rival", "client", "0", "there"]);
        assert_eq!(launch.server(1).get_envs().count(), 1);
        let launch = launch.through(vec!["in".to_owned(), "left".to_owned()], vec!["in".to_owned()]);
        assert_eq!(words(&launch.server(1)), ["in", "left", "/bench", "echo", "rival", "server", "1"]);
        assert_eq!(words(&launch.client(0, "x"))[..2], ["in", "/bench"]);
    }
}
