//! What a side is told to do.

use std::fmt;
use std::str::FromStr;

/// Bytes that a request has at most.
const MOST_BYTES: usize = 256 << 10;

/// Round trips to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Bytes of a request, and of its answer: 1 to 262,144; a rival may take fewer.
    pub bytes: usize,
    /// Trips at the start that are not reported.
    pub warm_up: u64,
    pub trips: u64,
}

impl Job {
    pub fn all_trips(&self) -> u64 {
        self.warm_up + self.trips
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "echo {} {} {}", self.bytes, self.warm_up, self.trips)
    }
}

/// A line that is not a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a job: {0:?}; a job is `echo BYTES WARM-UP TRIPS` with 1 to {MOST_BYTES} bytes")]
pub struct NotAJob(String);

impl FromStr for Job {
    type Err = NotAJob;

    fn from_str(line: &str) -> Result<Self, NotAJob> {
        let wrong = || NotAJob(line.to_owned());
        let mut words = line.split_whitespace();
        if words.next() != Some("echo") {
            return Err(wrong());
        }
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).ok_or_else(wrong);
        let (bytes, warm_up, trips) = (number()?, number()?, number()?);
        let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..=MOST_BYTES).contains(bytes));
        match (bytes, words.next()) {
            (Some(bytes), None) => Ok(Job { bytes, warm_up, trips }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_comes_back_from_its_line() {
        let job = Job { bytes: 100, warm_up: 10, trips: 50_000 };
        assert_eq!(job.to_string().parse(), Ok(job));
        assert_eq!(job.all_trips(), 50_010);
    }

    #[test]
    fn a_line_that_is_no_job_is_refused() {
        for line in [
            "",
            "echo",
            "echo 1 2",
            "echo 0 2 3",
            "echo 262145 2 3",
            "echo 1 2 3 4",
            "ping 1 2 3",
            "echo a 2 3",
        ] {
            assert_eq!(line.parse::<Job>(), Err(NotAJob(line.to_owned())), "{line:?}");
        }
    }
}
