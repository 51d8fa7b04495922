//! When the thread in the background asks again: who is at the other end of a connection, and whether other processes have said something.

use std::time::{Duration, Instant};

use beeline_domain::Turned;

/// Between two questions who is at the other end: at first, for half a minute, and after that.
pub(crate) const ASKED_AT_FIRST: Duration = Duration::from_micros(250);
const ASKED_SOON: Duration = Duration::from_millis(100);
const ASKED_LATER: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(30);

/// What is said between this process and others, and when to look for it again.
#[derive(Debug)]
pub(crate) struct Talk {
    is_unfinished: bool,
    since: Instant,
    due: Instant,
}

impl Talk {
    pub(crate) fn new(now: Instant) -> Self {
        Talk { is_unfinished: false, since: now, due: now }
    }

    /// Takes what is left behind a turn. Who hears something looks for more at once.
    pub(crate) fn took(&mut self, turned: Turned, now: Instant) {
        if turned.heard > 0 || turned.is_unfinished && !self.is_unfinished {
            self.since = now;
        }
        let more = turned.heard > 0;
        self.is_unfinished = turned.is_unfinished || more;
        self.due = if more { now } else { now + pause_behind(now - self.since) };
    }

    /// When to take another turn, if anybody has something to say.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.is_unfinished.then_some(self.due)
    }
}

/// How long a connection is left alone that was asked for so long. Two processes agree in some steps, each of which is seen a quarter of that later at most.
pub(crate) fn pause_behind(asked: Duration) -> Duration {
    let most = if asked < SOON { ASKED_SOON } else { ASKED_LATER };
    (asked / 4).clamp(ASKED_AT_FIRST, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_end_is_asked_for_less_and_less_often() {
        let pauses =
            [0, 2, 20, 200, 2_000, 29_000, 60_000].map(|asked| pause_behind(Duration::from_millis(asked)));
        assert_eq!(
            pauses.map(|pause| pause.as_micros()),
            [250, 500, 5_000, 50_000, 100_000, 100_000, 5_000_000]
        );
    }

    #[test]
    fn what_is_unfinished_is_looked_for_less_and_less_often_until_something_is_heard() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut talk = Talk::new(start);
        assert_eq!(talk.due(), None);
        let (nothing, done) = (Turned { heard: 0, news: 0, is_unfinished: true }, Turned::default());
        talk.took(nothing, at(1000));
        assert_eq!(talk.due(), Some(at(1000) + ASKED_AT_FIRST));
        talk.took(nothing, at(1200));
        assert_eq!(talk.due(), Some(at(1250)));
        talk.took(Turned { heard: 3, news: 0, is_unfinished: true }, at(1250));
        assert_eq!(talk.due(), Some(at(1250)));
        talk.took(nothing, at(1250));
        assert_eq!(talk.due(), Some(at(1250) + ASKED_AT_FIRST));
        talk.took(done, at(1251));
        assert_eq!(talk.due(), None);
    }
}
