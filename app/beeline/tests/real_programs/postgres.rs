//! PostgreSQL, which forks for each connection, with pgbench and psql over TCP.

use beeline_bench::programs::Job;
use beeline_bench::programs::servers::Postgres;

use super::both::{Carried, LIMIT, after, both};

#[test]
fn postgres_answers_every_transaction() {
    let carried = Carried::ByWindows { at_least: 2_000_000 };
    both(&["pgbench", "psql"], carried, |ground, seen| {
        let postgres = Postgres::start(ground, None)?;
        // Its rows may lie in the socket before the two processes have agreed: the share of what fills a table is not the case's.
        ground.run(postgres.client("pgbench").words("-i -s 1 -q"), LIMIT)?;
        for options in ["-S -t 5000", "-t 200", "-S -M prepared -t 5000"] {
            let said = seen.run(ground, postgres.client("pgbench").words("-n -c 4 -j 2").words(options))?;
            seen.says(options, after(&said, "number of transactions actually processed:"));
            seen.says("failed", after(&said, "number of failed transactions:"));
        }
        let rows =
            "select n, md5(n::text), repeat(md5((n * 7)::text), n % 5) from generate_series(1, 100000) n";
        // The folder of the case is another user's.
        let folder = ground.folder("rows-of-psql", Some("postgres"))?;
        let out = folder.join("rows");
        let psql = postgres.client("psql").words("-X -A -t -o").arg(out.display());
        // A large transfer, whose share is not the case's.
        ground.run(psql.arg("-c").arg(rows), LIMIT)?;
        let sum = ground.run(Job::new("sha256sum").input(out), LIMIT)?;
        seen.says("rows", sum.out);
        postgres.server.end()?;
        Ok(())
    });
}
