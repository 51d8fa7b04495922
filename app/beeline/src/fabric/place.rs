//! Which fabric a command is about: by the names and the precedence that SISCI programs join by.

use std::path::PathBuf;

use beeline_fabric_process::{Configuration, FILE_VARIABLE, MEMORY_VARIABLE};

use super::args::SurveyArgs;
use crate::failure::Failure;

/// Where a fabric is.
pub enum Place {
    /// The domain that the command line names.
    Domain,
    /// A memory that members share; what to do if it is not there, unless the command line names it.
    Memory { path: PathBuf, remedy: Option<String> },
}

/// What the command line says, else the environment, else the file.
///
/// # Errors
/// The environment or the file means nothing.
pub fn place_of(args: &SurveyArgs) -> Result<Place, Failure> {
    if let Some(path) = &args.memory {
        return Ok(Place::Memory { path: path.clone(), remedy: None });
    }
    if args.domain.is_some() || args.root.root.is_some() {
        return Ok(Place::Domain);
    }
    let configuration = Configuration::read().map_err(|error| {
        Failure::new("cannot tell which fabric is meant").because(error).remedy(
            "--memory FILE or --domain NAME, for which neither the environment nor beeline.toml is read",
        )
    })?;
    let Some(memory) = configuration.one_memory else { return Ok(Place::Domain) };
    let says = match (std::env::var_os(MEMORY_VARIABLE), std::env::var_os(FILE_VARIABLE)) {
        (Some(_), _) => MEMORY_VARIABLE.to_owned(),
        (None, Some(file)) => format!("the table fabric of {}", PathBuf::from(file).display()),
        (None, None) => "the table fabric of /etc/beeline.toml".to_owned(),
    };
    let remedy = format!("--memory FILE or --domain NAME; {says} names {}", memory.path.display());
    Ok(Place::Memory { path: memory.path, remedy: Some(remedy) })
}
