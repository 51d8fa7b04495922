//! Where programs in C are built, and where the one with crates is looked for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::{InC, Library, Rival, Source};
use crate::BenchError;
use crate::echo::Launch;
use beeline_session::Program;

/// The program with the rivals that bring crates.
const CRATES_PROGRAM: &str = "beeline-bench-rivals";
/// Programs in C begin and end with these.
const INCLUDED: [(&str, &str); 8] = [
    ("start.h", include_str!("../../rivals/c/start.h")),
    ("echo.h", include_str!("../../rivals/c/echo.h")),
    ("put.h", include_str!("../../rivals/c/put.h")),
    ("turns.h", include_str!("../../rivals/c/turns.h")),
    ("ucx.h", include_str!("../../rivals/c/ucx.h")),
    ("libfabric.h", include_str!("../../rivals/c/libfabric.h")),
    ("message.h", include_str!("../../rivals/c/message.h")),
    ("stream.h", include_str!("../../rivals/c/stream.h")),
];
/// The library of our own that programs in C link, beside this program.
const SISCI_LIBRARY: &str = "libsisci.so";
/// Its headers, where this program was built.
const SISCI_HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/sisci/include");
/// As the libraries' own authors would build a benchmark of theirs.
const FLAGS: [&str; 5] = ["-std=gnu11", "-O3", "-march=native", "-Wall", "-pthread"];

/// What became of looking for a rival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The program is there and can be started.
    Here(Launch),
    /// Something is not installed: what, and how to get it.
    Missing(String),
}

/// A folder with programs that were built for this run. Dropping it removes them.
#[derive(Debug)]
pub struct Workshop {
    folder: TempDir,
    beside: PathBuf,
}

impl Workshop {
    /// With nothing built yet. `program` is one beside which `beeline-bench-rivals` lies.
    ///
    /// # Errors
    /// [`BenchError::Role`]: there is no place for the folder.
    pub fn new(program: &Program) -> Result<Self, BenchError> {
        let folder = tempfile::Builder::new().prefix("beeline-bench-").tempdir()?;
        for (name, text) in INCLUDED {
            fs::write(folder.path().join(name), text)?;
        }
        Ok(Workshop { folder, beside: program.path().with_file_name(CRATES_PROGRAM) })
    }

    /// A rival, built if need be.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: all it needs is installed and it does not compile.
    pub fn find(&self, rival: &Rival) -> Result<Found, BenchError> {
        let program = match rival.source {
            Source::C(program) => self.compiled(&program)?,
            Source::Crates if self.beside.is_file() => Ok(self.beside.clone()),
            Source::Crates => Err("not built; `make bench` and `cargo xtask rivals --build` do".to_owned()),
        };
        Ok(match program {
            Err(missing) => Found::Missing(missing),
            Ok(program) => Found::Here(Launch::new(rival.name, program, rival.variant)),
        })
    }

    /// Arguments of the compiler for our own library, or how to get it.
    fn sisci(&self) -> Result<Vec<String>, String> {
        let folder = self.beside.parent().unwrap_or(Path::new("."));
        if !folder.join(SISCI_LIBRARY).is_file() || !Path::new(SISCI_HEADERS).is_dir() {
            return Err("not built; `make bench` and `cargo build --release -p beeline-sisci` do".to_owned());
        }
        let folder = folder.display();
        Ok(vec![
            format!("-I{SISCI_HEADERS}"),
            format!("-L{folder}"),
            format!("-Wl,-rpath,{folder}"),
            "-lsisci".to_owned(),
        ])
    }

    /// The program, built if need be, or what is not installed.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: all it needs is installed and it does not compile.
    pub(super) fn compiled(&self, program: &InC) -> Result<Result<PathBuf, String>, BenchError> {
        let (source, built) = (
            self.folder.path().join(program.name).with_extension("c"),
            self.folder.path().join(program.name),
        );
        if built.is_file() {
            return Ok(Ok(built));
        }
        let failed = |what: String| BenchError::Rival { rival: program.name.to_owned(), what };
        let libraries = match program.library {
            None => Vec::new(),
            Some(Library::Debian { name, package }) => match of_the_system(name, package) {
                Ok(libraries) => libraries,
                Err(missing) => return Ok(Err(missing)),
            },
            Some(Library::Sisci) => match self.sisci() {
                Ok(libraries) => libraries,
                Err(missing) => return Ok(Err(missing)),
            },
        };
        fs::write(&source, program.text)?;
        match output(&mut compiler(&source, &built, &libraries)) {
            Some(compiled) if compiled.status.success() => Ok(Ok(built)),
            Some(compiled) => {
                Err(failed(format!("cc: {}", String::from_utf8_lossy(&compiled.stderr).trim())))
            }
            None => Ok(Err("no C compiler: `apt-get install gcc`".to_owned())),
        }
    }
}

/// Arguments of the compiler for a library of the system, or what is not installed.
fn of_the_system(name: &str, package: &str) -> Result<Vec<String>, String> {
    let found = output(Command::new("pkg-config").args(["--cflags", "--libs", name]));
    let missing = if found.is_some() { package } else { "pkg-config" };
    found
        .filter(|found| found.status.success())
        .map(|found| String::from_utf8_lossy(&found.stdout).split_whitespace().map(str::to_owned).collect())
        .ok_or_else(|| format!("not installed: `apt-get install {missing}`"))
}

/// The compiler's call. Our flags come last, so that a package's own choice of an older CPU (DPDK's) does not hold.
fn compiler(source: &Path, built: &Path, libraries: &[String]) -> Command {
    let mut command = Command::new("cc");
    command.arg("-o").arg(built).arg(source).args(libraries).args(FLAGS);
    command
}

/// What a program said; `None` when there is none of that name.
fn output(command: &mut Command) -> Option<Output> {
    command.output().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::Library;
    use beeline_session::Role;

    const SOUND: InC = InC { name: "sound", text: "int main(void) { return 0; }", library: None };

    fn workshop() -> Result<Workshop, BenchError> {
        Workshop::new(&Program::at("/nowhere/beeline-bench"))
    }

    fn rival(program: InC) -> Rival {
        Rival::new("a rival", "-", 1, Source::C(program), "variant")
    }

    #[test]
    fn a_program_is_built_once_and_removed() -> Result<(), BenchError> {
        let workshop = workshop()?;
        let Found::Here(launch) = workshop.find(&rival(SOUND))? else {
            println!("skipped: no C compiler");
            return Ok(());
        };
        let command = launch.server(0);
        let built = Path::new(command.get_program()).to_owned();
        let made = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
        let first = made(&built)?;
        assert!(launch.server(0).status()?.success());
        workshop.find(&rival(SOUND))?;
        assert_eq!(made(&built)?, first);
        drop(workshop);
        assert!(!built.exists());
        Ok(())
    }

    /// A rival that asks itself, with an answer that is wrong in its last byte now and then.
    const MIRROR: &str = r#"
        #include "start.h"
        struct rival { unsigned trips; };
        static void open_server(struct rival *r, const char *variant, char *address) { (void)r, (void)variant, strcpy(address, "here"), puts("chatter"); }
        static void open_client(struct rival *r, const char *variant, const char *address) { (void)r, (void)variant, (void)address; }
        static void begin(struct rival *r, size_t bytes) { (void)r, (void)bytes; }
        static void answer_one(struct rival *r, size_t bytes) { (void)bytes, r->trips++; }
        static void close_side(struct rival *r) { (void)r; }
        static void trip(struct rival *r, const unsigned char *request, unsigned char *answer, size_t bytes) {
            memcpy(answer, request, bytes);
            if (++r->trips == 9) answer[bytes - 1] ^= 1;
        }
        #include "echo.h"
    "#;

    #[test]
    fn the_loop_in_c_is_that_of_the_loop_in_rust() -> Result<(), BenchError> {
        let workshop = workshop()?;
        let Found::Here(launch) =
            workshop.find(&rival(InC { name: "mirror", text: MIRROR, library: None }))?
        else {
            println!("skipped: no C compiler");
            return Ok(());
        };
        let core = beeline_floor::Cores::pair().map_or(0, |cores| cores.first);
        let mut client = Role::start(&mut launch.client(core, "here"))?;
        assert_eq!(client.line().as_deref(), Some("ready"));
        client.tell("echo 10 2 6")?;
        assert_eq!(client.line().as_deref(), Some("ticks 6"));
        client.read_exact(&mut [0; 6 * 8])?;
        client.tell("echo 100 0 1")?;
        assert_eq!(client.line(), None, "a wrong answer is no figure");
        assert!(!client.end()?.success());
        let mut server = Role::start(&mut launch.server(core))?;
        for said in ["ready here", "serving", "served", "serving", "served"] {
            assert_eq!(server.line().as_deref(), Some(said));
            if said != "serving" {
                server.tell("echo 10 2 6")?;
            }
        }
        assert!(server.end()?.success());
        Ok(())
    }

    #[test]
    fn what_is_missing_is_said_and_what_is_broken_is_an_error() -> Result<(), BenchError> {
        let workshop = workshop()?;
        let library = Some(Library::Debian { name: "no-such-library", package: "libnone-dev" });
        let missing = workshop.find(&rival(InC { name: "missing", library, ..SOUND }))?;
        assert!(
            [
                Found::Missing("not installed: `apt-get install libnone-dev`".to_owned()),
                Found::Missing("not installed: `apt-get install pkg-config`".to_owned())
            ]
            .contains(&missing),
            "{missing:?}"
        );
        let crates = workshop.find(&Rival::new("a rival", "-", 1, Source::Crates, "grpc"))?;
        assert!(matches!(crates, Found::Missing(why) if why.contains("cargo xtask rivals --build")));
        match workshop.find(&rival(InC { name: "broken", text: "int main(void) { return }", ..SOUND })) {
            Err(BenchError::Rival { rival, what }) => {
                assert!(rival == "broken" && what.contains("error"), "{what}")
            }
            // Without a compiler nothing can be broken.
            other => assert!(matches!(&other, Ok(Found::Missing(why)) if why.contains("gcc")), "{other:?}"),
        }
        Ok(())
    }
}
