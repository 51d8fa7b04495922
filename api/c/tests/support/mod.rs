//! The library as it is installed, and programs in C and C++ that are compiled against it as users compile.
#![allow(dead_code, reason = "not every test file needs everything")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;

pub const HERE: &str = env!("CARGO_MANIFEST_DIR");
pub const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];

/// The library, installed into a folder of this test.
pub struct Installed {
    pub folder: tempfile::TempDir,
    /// What programs ask `pkg-config` for.
    package: &'static str,
}

pub fn installed(package: &'static str) -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        // Beside this test lies what it was built with.
        let built = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        make(folder.path(), &["install-built", &format!("built={}", built.display())]);
        Installed { folder, package }
    })
}

pub fn make(prefix: &Path, targets: &[&str]) {
    let prefix = format!("PREFIX={}", prefix.display());
    succeed(
        Command::new("make").args(["--no-print-directory", "-C", HERE, &prefix, "DESTDIR="]).args(targets),
    );
}

pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

impl Installed {
    fn pkg_config(&self, what: &[&str]) -> Vec<String> {
        let path = self.folder.path().join("lib/pkgconfig");
        let out =
            succeed(Command::new("pkg-config").args(what).arg(self.package).env("PKG_CONFIG_PATH", path));
        out.split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles a program and links it as `link` says.
    pub fn compile(&self, compiler: &[&str], source: &str, name: &str, link: &[String]) -> PathBuf {
        let program = self.folder.path().join(name);
        let source = Path::new(HERE).join(source);
        let mut command = Command::new(compiler[0]);
        command.args(&compiler[1..]).args(STRICT).args(self.pkg_config(&["--cflags"])).arg(source);
        succeed(command.args(["-x", "none", "-o"]).arg(&program).args(link));
        program
    }

    pub fn shared(&self) -> Vec<String> {
        let mut link = self.pkg_config(&["--libs"]);
        link.push(format!("-Wl,-rpath,{}", self.folder.path().join("lib").display()));
        link.push("-lpthread".to_owned());
        link
    }

    /// The archive by its own name, and what it needs.
    pub fn archive(&self) -> Vec<String> {
        let library = self.folder.path().join("lib/libbeeline.a").display().to_string();
        let needed = self.pkg_config(&["--static", "--libs-only-l"]);
        std::iter::once(library).chain(needed.into_iter().filter(|name| name != "-lbeeline")).collect()
    }
}

pub const C11: [&str; 2] = ["cc", "-std=c11"];
pub const CPP17: [&str; 4] = ["c++", "-std=c++17", "-x", "c++"];

/// A program that is ended with the test, however the test ends.
pub struct Running {
    pub child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    pub fn start(program: &Path, args: &[&str]) -> Self {
        Self::spawn(Command::new(program).args(args))
    }

    pub fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn run(program: &Path, args: &[&str]) -> Output {
    // What is left to the library is the default, whatever this test was started with.
    Command::new(program).args(args).env_remove("BEELINE_ROOT").output().unwrap()
}

/// Whether the compiler makes programs with these options.
pub fn has_sanitizers(compiler: &[&str]) -> bool {
    let place = tempfile::tempdir().unwrap();
    let empty = place.path().join("empty.c");
    std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
    let mut probe = Command::new(compiler[0]);
    probe.args(&compiler[1..]).arg(&empty).arg("-o").arg(empty.with_extension(""));
    probe.status().unwrap().success()
}
