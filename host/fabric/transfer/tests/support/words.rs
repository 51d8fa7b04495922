//! Words of a line that are numbers.

use std::time::Duration;

pub fn number<T: std::str::FromStr>(word: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    word.parse().unwrap()
}

/// Microseconds, or `forever`.
pub fn timeout(word: &str) -> Option<Duration> {
    (word != "forever").then(|| Duration::from_micros(number(word)))
}
