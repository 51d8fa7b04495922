//! Node: an HTTP server and its client, which keeps ten connections.

use beeline_bench::programs::Job;
use beeline_bench::programs::servers::Server;

use super::both::{Carried, both};

const SERVER: &str = r#"
const http = require("http"), crypto = require("crypto");
http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part)).on("end", () => {
    const body = Buffer.concat(parts);
    response.setHeader("hash", crypto.createHash("sha256").update(body).digest("hex"));
    response.end(body.reverse());
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
"#;

const CLIENT: &str = r#"
const http = require("http"), crypto = require("crypto"), assert = require("assert");
const agent = new http.Agent({ keepAlive: true, maxSockets: 10 });
const all = crypto.createHash("sha256");
function post(number) {
  const body = Buffer.alloc(1 + (number * number * 7919) % 60000, `${number}-`);
  return new Promise((done, fail) => {
    const options = { agent, method: "POST", port: Number(process.argv[2]), host: "127.0.0.1" };
    http.request(options, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part)).on("end", () => {
        const got = Buffer.concat(parts).reverse();
        assert.ok(got.equals(body), `answer ${number}`);
        assert.equal(response.headers.hash, crypto.createHash("sha256").update(body).digest("hex"));
        done(response.headers.hash);
      });
    }).on("error", fail).end(body);
  });
}
Promise.all(Array.from({ length: 1500 }, (_, number) => post(number))).then((hashes) => {
  hashes.forEach((hash) => all.update(hash));
  console.log(hashes.length, all.digest("hex"));
  process.exit(0);
}, (error) => { console.error(error); process.exit(1); });
"#;

#[test]
fn node_answers_every_request() {
    let carried = Carried::ByWindows { at_least: 50_000_000 };
    both(&["node"], carried, |ground, seen| {
        let server = ground.file("server.js", SERVER)?;
        let server = Server::start(ground, |port| Job::new("node").arg(server.display()).arg(port))?;
        let client = Job::new("node").arg(ground.file("client.js", CLIENT)?.display()).arg(server.port);
        let said = seen.run(ground, client)?;
        seen.says("answers", said);
        server.end()?;
        Ok(())
    });
}
