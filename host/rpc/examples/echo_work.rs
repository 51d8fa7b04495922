//! Scratch
use beeline_domain::{Domain, DomainConfig};
use beeline_rpc::{Method, Replied, Reply, Request, Started, shm};
use std::time::Instant;
fn main() {
    let dir = tempfile::tempdir().unwrap();
    let config = DomainConfig { root: Some(dir.path().into()), name: "bench".into() };
    let server = Domain::open(&config).unwrap();
    let (_server, mut workers) = shm::Server::offer(&server, "echo", shm::ServerOptions::default()).unwrap();
    let mut worker = workers.remove(0);
    let mut echo = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
        let mut buf = [0u8; 128];
        let n = request.copy_out(&mut buf);
        reply.send(&buf[..n])
    };
    let value = [9u8; 32];
    let mut get = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
        std::hint::black_box((request.word(0), request.word(1)));
        reply.send(&value)
    };
    let mut client = shm::Client::connect(&server, "echo", shm::ClientOptions::default()).unwrap();
    for kind in 0..2 {
        let request = [7u8; 32];
        let (mut a, mut b, mut c) = (0u128, 0u128, 0u128);
        for _ in 0..20_000 {
            let t = Instant::now();
            for _ in 0..256 {
                assert!(matches!(client.start(Method(1), &request, None), Ok(Started::Call(_))));
            }
            a += t.elapsed().as_nanos();
            let t = Instant::now();
            let mut n = 0;
            while n < 256 {
                n += if kind == 0 { worker.poll(&mut echo) } else { worker.poll(&mut get) };
            }
            b += t.elapsed().as_nanos();
            let t = Instant::now();
            let mut n = 0;
            while n < 256 {
                if let Some(c) = client.poll() {
                    if let Ok(mut b) = c.result {
                        let w = b.word(0);
                        n += usize::from(w != 0);
                    }
                }
            }
            c += t.elapsed().as_nanos();
        }
        let per = |x: u128| x as f64 / (20_000.0 * 256.0);
        println!("start {:.1} serve {:.1} poll {:.1}", per(a), per(b), per(c));
    }
}
