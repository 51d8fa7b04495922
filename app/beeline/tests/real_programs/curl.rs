//! curl: files to and from a server in Python, compared by their hashes.

use beeline_bench::programs::Job;
use beeline_bench::programs::servers::Server;

use super::both::{LARGE, LIMIT, both};

const SERVER: &str = r#"
import hashlib, http.server, sys
files = {}

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, body):
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.answer(files[self.path.split("?")[0]])
    def do_PUT(self):
        files[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(hashlib.sha256(files[self.path]).hexdigest().encode() + b"\n")
    def log_message(self, *arguments): pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
fn curl_gets_back_what_it_has_put() {
    both(&["curl", "python3"], LARGE, |ground, seen| {
        let server = ground.file("server.py", SERVER)?;
        let server = Server::start(ground, |port| Job::new("python3").arg(server.display()).arg(port))?;
        let bytes: Vec<u8> =
            (0..2_000_000u32).flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        let (file, back) = (ground.file("file", bytes)?, ground.path("back"));
        let url = format!("http://127.0.0.1:{}/file", server.port);
        let curl = || Job::new("curl").words("-sS --fail --max-time 50");
        let hash = seen.run(ground, curl().arg("-T").arg(file.display()).arg(&url))?;
        seen.says("hash at the server", &hash);
        let get = curl().arg(format!("{url}?[1-30]")).arg("-o").arg(back.display());
        let transfers = seen.run(ground, get.words("-w %{size_download};"))?;
        seen.says("transfers", transfers);
        let own = ground.run(Job::new("sha256sum").input(back), LIMIT)?.out;
        assert_eq!(own.split_whitespace().next(), Some(hash.trim()));
        server.end()?;
        Ok(())
    });
}
