//! The side that answers.

use std::io::{BufRead, Write};

use crate::{Failure, Job};

/// What a rival does on the side that answers.
pub trait EchoServer {
    /// The requests that come next have this size. The client begins only after this.
    ///
    /// # Errors
    /// They cannot be received.
    fn begin(&mut self, bytes: usize) -> Result<(), Failure>;

    /// Answers `trips` requests, each with its own bytes. One whose answers come from a thread of its own may return at
    /// once.
    ///
    /// # Errors
    /// One cannot be received or answered.
    fn serve(&mut self, trips: u64) -> Result<(), Failure>;
}

/// Does the jobs that `input` gives until it ends. `address` is what a client is to be told.
///
/// # Errors
/// What the rival says; a line that is no job; the other end of `output` is gone.
pub fn play_server(
    server: &mut impl EchoServer,
    address: &str,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Failure> {
    let mut say = |words: &str| writeln!(output, "{words}").and_then(|()| output.flush());
    say(&format!("ready {address}"))?;
    for line in input.lines() {
        let job: Job = line?.parse()?;
        server.begin(job.bytes)?;
        say("serving")?;
        server.serve(job.all_trips())?;
        say("served")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counted(Vec<(usize, u64)>);

    impl EchoServer for Counted {
        fn begin(&mut self, bytes: usize) -> Result<(), Failure> {
            self.0.push((bytes, 0));
            Ok(())
        }

        fn serve(&mut self, trips: u64) -> Result<(), Failure> {
            self.0.last_mut().expect("it has begun").1 += trips;
            Ok(())
        }
    }

    #[test]
    fn a_server_serves_warm_up_and_trips() -> Result<(), Failure> {
        let (mut server, mut output) = (Counted::default(), Vec::new());
        play_server(&mut server, "over there", "echo 10 5 20\necho 100 0 3\n".as_bytes(), &mut output)?;
        assert_eq!(server.0, [(10, 25), (100, 3)]);
        assert_eq!(output, b"ready over there\nserving\nserved\nserving\nserved\n");
        assert!(play_server(&mut server, "", "go\n".as_bytes(), &mut Vec::new()).is_err());
        Ok(())
    }
}
