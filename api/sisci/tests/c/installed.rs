//! The library as it is installed, and programs that are compiled against it as users compile.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{HERE, STRICT, succeed};

/// The library, installed into a folder of this test.
pub struct Installed {
    folder: tempfile::TempDir,
}

pub fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path(), "");
        Installed { folder }
    })
}

/// With which checks of a compiler programs are built, as `-fsanitize=thread`: none unless the environment says so.
pub fn sanitizer_flags() -> String {
    std::env::var("BEELINE_SANITIZER_FLAGS").unwrap_or_default()
}

/// Installs what was built beside this test, or the library of a folder that the environment names.
pub fn install(prefix: &Path, destination: &str) {
    let beside = || std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let built = std::env::var_os("BEELINE_SISCI_BUILT").map_or_else(beside, PathBuf::from);
    make(prefix, destination, &["install-built", &format!("built={}", built.display())]);
}

pub fn make(prefix: &Path, destination: &str, targets: &[&str]) {
    let mut command = Command::new("make");
    command.args(["--no-print-directory", "-C", HERE, &format!("PREFIX={}", prefix.display())]);
    succeed(command.arg(format!("DESTDIR={destination}")).args(targets));
}

/// Files and links below a folder, by their paths in it, in order.
pub fn files(top: &Path) -> Vec<String> {
    let (mut files, mut folders) = (Vec::new(), vec![top.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    files.push(entry.path().strip_prefix(top).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
    }
    files.sort();
    files
}

impl Installed {
    pub fn prefix(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles a program of this crate as `compiler` does, and links it.
    pub fn compile(&self, compiler: &[&str], source: &str, name: &str) -> PathBuf {
        let prefix = self.prefix().display();
        let program = self.prefix().join(name);
        let mut command = Command::new(compiler[0]);
        command
            .args(&compiler[1..])
            .args(STRICT)
            .args(sanitizer_flags().split_whitespace())
            .args([format!("-I{prefix}/include"), format!("-I{prefix}/include/dis")]);
        command.arg(Path::new(HERE).join(source)).args(["-x", "none", "-o"]).arg(&program);
        command.args([
            format!("-L{prefix}/lib64"),
            "-lsisci".to_owned(),
            // Before what the environment names: cargo puts its target folder there, where an older library may lie.
            format!("-Wl,-rpath,{prefix}/lib64,--disable-new-dtags"),
        ]);
        succeed(&mut command);
        program
    }
}
