//! `beeline run`: a command with the socket library preloaded.
//!
//! Rules are resolved here and passed on in one variable, so that the command finds no file and its user sees an error before it runs. This process becomes the
//! command, unless it has to say why connections were the kernel's when that has ended.

pub mod args;
mod library;
mod program;
mod report;
mod wait;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use beeline_domain::{Domain, DomainConfig, DomainPlace, ROOT_VARIABLE};
use beeline_socket_rules::{RESOLVED_VARIABLE, RUN_VARIABLE, Run, is_rule};

use self::args::RunArgs;
use self::program::{Build, NotFound};
use crate::failure::Failure;
use crate::out;

const PRELOAD_VARIABLE: &str = "LD_PRELOAD";

/// Runs `beeline run`.
pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let rules = args.rules.rules().map_err(|error| {
        Failure::new(error.to_string()).remedy("docs/sockets.md, which lists the rules; `beeline run --help`")
    })?;
    let name = args.command.first().cloned().unwrap_or_default();
    let path = match program::find(&name) {
        Ok(path) => path,
        Err(NotFound { why, code }) => {
            out::remark(Failure::new(format!("beeline: cannot run {}: {why}", name.display())));
            return Ok(ExitCode::from(code));
        }
    };
    let library = library::find(args.library.as_deref())?;
    let Some(build) = Build::of(&library) else {
        let what = format!("{} is no library that the loader can preload", library.display());
        return Err(Failure::new(what).remedy("build it anew, or name another with --library"));
    };
    if let Some(doubt) = program::doubt(&path, build) {
        out::remark(format_args!(
            "beeline: {doubt}\n  it runs all the same, and its connections are the kernel's"
        ));
    }
    let config = DomainConfig { root: args.root.root.clone(), name: rules.domain.clone() };
    Domain::check(&config)
        .map_err(|error| Failure::new(format!("cannot open domain {}", config.name)).because(error))?;
    let mut command = Command::new(&path);
    command.arg0(&name).args(args.command.iter().skip(1));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_rule(name)) {
        command.env_remove(name);
    }
    let before = std::env::var_os(PRELOAD_VARIABLE);
    command.env(PRELOAD_VARIABLE, library::preload(&library, before.as_deref()));
    command.env(RESOLVED_VARIABLE, rules.resolved());
    if args.root.root.is_some() {
        let root = match config.place() {
            DomainPlace::Folder(root) => std::path::absolute(&root).unwrap_or(root),
            DomainPlace::NetworkNamespace => config.root_folder(),
        };
        command.env(ROOT_VARIABLE, root);
    }
    match args.why {
        true => run_and_say_why(command, &config),
        // It has a run of its own only if it is asked why.
        false => Err(cannot_run(&path.display(), command.exec())),
    }
}

fn cannot_run(path: &impl std::fmt::Display, error: std::io::Error) -> Failure {
    Failure::new(format!("cannot run {path}")).because(error)
}

fn run_and_say_why(mut command: Command, config: &DomainConfig) -> Result<ExitCode, Failure> {
    let DomainPlace::Folder(root) = config.place() else {
        return Err(Failure::new("--why reads files in a domain's folder, and @net has none")
            .remedy("a folder: --root DIR"));
    };
    let run = Run::of_this_process().map_err(|e| Failure::new("no random number").because(e))?;
    command.env(RUN_VARIABLE, run.to_string());
    let path = command.get_program().to_owned();
    let code = wait::run(command).map_err(|error| cannot_run(&path.display(), error))?;
    report::say_why(&root.join(&config.name), run);
    Ok(ExitCode::from(code))
}
