//! The side that asks and holds the clock.

use std::io::{BufRead, Write};

use beeline_mmio::clock;

use crate::{Failure, Job};

/// What a rival does on the side that asks.
pub trait EchoClient {
    /// The requests of the next trips have this size. Not timed; the server has begun already.
    ///
    /// # Errors
    /// They cannot be made.
    fn begin(&mut self, bytes: usize) -> Result<(), Failure>;

    /// Sends a request and gives the whole answer. This is what is timed. The two have the same length.
    ///
    /// # Errors
    /// It cannot be sent, or no answer will come.
    fn trip(&mut self, request: &[u8], answer: &mut [u8]) -> Result<(), Failure>;
}

/// Does the jobs that `input` gives until it ends.
///
/// # Errors
/// What the rival says; an answer that is not its request; a line that is no job; the other end of `output` is gone.
pub fn play_client(
    client: &mut impl EchoClient,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Failure> {
    writeln!(output, "ready")?;
    output.flush()?;
    for line in input.lines() {
        let job: Job = line?.parse()?;
        client.begin(job.bytes)?;
        let ticks = round_trips(client, job)?;
        writeln!(output, "ticks {}", ticks.len())?;
        let bytes: Vec<u8> = ticks.into_iter().flat_map(u64::to_le_bytes).collect();
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

/// Makes the trips of a job, its size begun: the ticks of every one after the warm-up.
///
/// # Errors
/// What the rival says; an answer that is not its request.
pub fn round_trips(client: &mut impl EchoClient, job: Job) -> Result<Vec<u64>, Failure> {
    let mut ticks = Vec::with_capacity(job.trips as usize);
    let (mut bytes, mut answer) = (vec![0; job.bytes], vec![0; job.bytes]);
    for number in 0..job.all_trips() {
        request(number, &mut bytes);
        let sent = clock::now_ticks();
        client.trip(&bytes, &mut answer)?;
        let taken = clock::now_ticks() - sent;
        if answer != bytes {
            return Err(format!("answer {number} is {answer:02x?}, its request was {bytes:02x?}").into());
        }
        if number >= job.warm_up {
            ticks.push(taken);
        }
    }
    Ok(ticks)
}

/// Fills a request: its number, then a pattern that differs from one to the next.
pub fn request(number: u64, request: &mut [u8]) {
    for (index, byte) in request.iter_mut().enumerate() {
        *byte = match number.to_le_bytes().get(index) {
            Some(of_number) => *of_number,
            // The low byte of the sum is the pattern.
            None => number.wrapping_add(index as u64) as u8,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives requests back, but for one whose last byte it changes.
    struct Mirror {
        wrong: Option<u64>,
        trips: u64,
        sizes: Vec<usize>,
    }

    impl EchoClient for Mirror {
        fn begin(&mut self, bytes: usize) -> Result<(), Failure> {
            self.sizes.push(bytes);
            Ok(())
        }

        fn trip(&mut self, request: &[u8], answer: &mut [u8]) -> Result<(), Failure> {
            answer.copy_from_slice(request);
            if self.wrong == Some(self.trips) {
                *answer.last_mut().expect("requests are not empty") ^= 1;
            }
            self.trips += 1;
            Ok(())
        }
    }

    fn mirror(wrong: Option<u64>) -> Mirror {
        Mirror { wrong, trips: 0, sizes: Vec::new() }
    }

    #[test]
    fn a_client_reports_what_is_not_warm_up() -> Result<(), Failure> {
        let (mut client, mut output) = (mirror(None), Vec::new());
        play_client(&mut client, "echo 10 5 20\necho 100 0 3\n".as_bytes(), &mut output)?;
        assert_eq!((client.trips, client.sizes), (28, vec![10, 100]));
        let head = b"ready\nticks 20\n";
        assert_eq!(&output[..head.len()], head);
        let second = &output[head.len() + 20 * 8..];
        assert_eq!(&second[..8], b"ticks 3\n");
        assert_eq!(second.len(), 8 + 3 * 8);
        Ok(())
    }

    #[test]
    fn a_wrong_answer_is_no_figure() {
        for (job, wrong) in [("echo 10 5 20\n", 3), ("echo 1 0 20\n", 19)] {
            let mut output = Vec::new();
            let error =
                play_client(&mut mirror(Some(wrong)), job.as_bytes(), &mut output).map_err(|e| e.to_string());
            assert!(error.is_err_and(|text| text.starts_with(&format!("answer {wrong} is"))));
            assert_eq!(output, b"ready\n");
        }
    }

    #[test]
    fn requests_differ_from_one_another() {
        let filled = |number| {
            let mut bytes = [0; 100];
            request(number, &mut bytes);
            bytes
        };
        assert_eq!(filled(0x0102)[..9], [2, 1, 0, 0, 0, 0, 0, 0, 10]);
        assert!(
            (0..1000).all(|number| (0..100).all(|i| i < 8 || filled(number)[i] != filled(number + 1)[i]))
        );
    }
}
