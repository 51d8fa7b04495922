//! Servers as their manuals have them: command line and configuration, a port and a folder of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::ground::{Ended, failed, free_port, is_root};
use super::{Ground, Job, Running};
use crate::BenchError;

/// Who runs PostgreSQL, which does not run as root.
const POSTGRES_USER: &str = "postgres";
/// How long programs that prepare something may take.
const PREPARES_WITHIN: Duration = Duration::from_secs(60);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    pub port: u16,
    running: Running,
    ends_by: Signal,
}

impl Server {
    /// Starts what `job` makes of a free port.
    ///
    /// # Errors
    /// It does not listen.
    pub fn start(ground: &Ground, job: impl FnOnce(u16) -> Job) -> Result<Self, BenchError> {
        let port = free_port()?;
        Ok(Server { port, running: ground.serve(job(port), port)?, ends_by: Signal::TERM })
    }

    /// Whether it has not ended by itself.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn is_running(&mut self) -> Result<bool, BenchError> {
        self.running.is_running()
    }

    /// Asks it to end.
    ///
    /// # Errors
    /// It ended before, or does not end as it should.
    pub fn end(self) -> Result<Ended, BenchError> {
        self.running.end_by(self.ends_by)
    }

    /// For one that ends by itself.
    ///
    /// # Errors
    /// It does not, within `limit`.
    pub fn wait(self, limit: Duration) -> Result<Ended, BenchError> {
        self.running.wait(limit)
    }
}

/// redis, which saves nothing to files.
///
/// # Errors
/// As [`Server::start`].
pub fn redis(ground: &Ground, core: Option<usize>) -> Result<Server, BenchError> {
    let folder = ground.folder("redis", None)?;
    Server::start(ground, |port| {
        let job =
            Job::new("redis-server").words("--bind 127.0.0.1 --appendonly no --enable-debug-command yes");
        job.arg("--save").arg("").arg("--port").arg(port).arg("--dir").arg(folder.display()).on(core)
    })
}

/// memcached, with its four threads.
///
/// # Errors
/// As [`Server::start`].
pub fn memcached(ground: &Ground, core: Option<usize>) -> Result<Server, BenchError> {
    Server::start(ground, |port| {
        let job = Job::new("memcached").words("-U 0 -l 127.0.0.1 -I 4m -m 256");
        let job = if is_root() { job.words("-u root") } else { job };
        job.arg("-p").arg(port).on(core)
    })
}

/// What a page server of [`nginx`] is told besides.
#[derive(Clone, Copy, Debug)]
pub struct Pages<'a> {
    /// The folder of the pages.
    pub root: &'a Path,
    pub workers: usize,
    /// Whose the workers are, where root starts it.
    pub user: &'a str,
    /// Directives of the block `http`.
    pub http: &'a str,
}

/// nginx, which serves a folder, with several workers. Where they are another user's than its clients, jobs of both need the rule `other_users`.
///
/// # Errors
/// As [`Server::start`].
pub fn nginx(ground: &Ground, pages: Pages<'_>, core: Option<usize>) -> Result<Server, BenchError> {
    let folder = ground.folder("nginx", None)?;
    let Pages { root, workers, user, http } = pages;
    Server::start(ground, |port| {
        let user = if is_root() { format!("user {user};") } else { String::new() };
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("{what}_temp_path {}/{what};", folder.display()));
        let text = format!(
            "{user} worker_processes {workers}; daemon off; pid {folder}/pid; error_log stderr;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log {folder}/access.log; {temporary} {http}\n\
             server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n",
            folder = folder.display(),
            root = root.display(),
            temporary = temporary.concat(),
        );
        let path = folder.join("nginx.conf");
        // Told by nginx where it is not there.
        let _ = std::fs::write(&path, text);
        Job::new("nginx").arg("-c").arg(path.display()).words("-e stderr").on(core)
    })
}

/// haproxy in front of a server.
///
/// # Errors
/// As [`Server::start`].
pub fn haproxy(ground: &Ground, behind: u16, core: Option<usize>) -> Result<Server, BenchError> {
    let path = ground.path("haproxy.cfg");
    Server::start(ground, |port| {
        let text = format!(
            "global\n  maxconn 2000\n\
             defaults\n  mode http\n  timeout connect 10s\n  timeout client 30s\n  timeout server 30s\n\
             frontend front\n  bind 127.0.0.1:{port}\n  default_backend back\n\
             backend back\n  http-reuse always\n  server one 127.0.0.1:{behind}\n"
        );
        let _ = std::fs::write(&path, text);
        Job::new("haproxy").words("-db -f").arg(path.display()).on(core)
    })
}

/// iperf3, which serves one client and ends.
///
/// # Errors
/// As [`Server::start`].
pub fn iperf3(ground: &Ground, core: Option<usize>) -> Result<Server, BenchError> {
    Server::start(ground, |port| Job::new("iperf3").words("-s -1 -B 127.0.0.1 -p").arg(port).on(core))
}

/// The server of sockperf, for connections of TCP.
///
/// # Errors
/// As [`Server::start`].
pub fn sockperf(ground: &Ground, core: Option<usize>) -> Result<Server, BenchError> {
    Server::start(ground, |port| {
        Job::new("sockperf").words("server --tcp -i 127.0.0.1 -p").arg(port).on(core)
    })
}

/// PostgreSQL and the folder of its programs.
#[derive(Debug)]
pub struct Postgres {
    pub server: Server,
    folder: PathBuf,
}

impl Postgres {
    /// Makes a database and starts its server, as `postgres` where this is root.
    ///
    /// # Errors
    /// It is not installed, or does not listen.
    pub fn start(ground: &Ground, core: Option<usize>) -> Result<Self, BenchError> {
        let folder = programs_of_postgres()?;
        let data = ground.folder("postgres", Some(POSTGRES_USER))?.join("data");
        let initdb = Job::new(&folder.join("initdb").to_string_lossy()).by(POSTGRES_USER);
        ground.run(
            initdb.words("--no-sync --auth=trust -U postgres -D").arg(data.display()),
            PREPARES_WITHIN,
        )?;
        let mut server = Server::start(ground, |port| {
            let job = Job::new(&folder.join("postgres").to_string_lossy()).by(POSTGRES_USER).on(core);
            let job = job
                .words("-F -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c autovacuum=off -p");
            job.arg(port).arg("-D").arg(data.display())
        })?;
        // Connections are ended, and that is no fault.
        server.ends_by = Signal::INT;
        Ok(Postgres { server, folder })
    }

    /// A program of its own that connects to it, such as `psql`.
    pub fn client(&self, program: &str) -> Job {
        let job = Job::new(&self.folder.join(program).to_string_lossy()).by(POSTGRES_USER);
        job.words("-h 127.0.0.1 -U postgres -p").arg(self.server.port)
    }
}

/// Debian has each version in a folder of its own, and in PATH a program that chooses one.
fn programs_of_postgres() -> Result<PathBuf, BenchError> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|entry| entry.path().join("bin")).filter(|path| path.join("initdb").is_file());
    folders
        .max()
        .ok_or_else(|| failed("postgres", "is not in /usr/lib/postgresql (apt-get install postgresql)"))
}
