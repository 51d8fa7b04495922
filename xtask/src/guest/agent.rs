//! Words with the first program of a guest (`init.sh`), over a serial line: a command there, its output and status back.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::failure::{Failure, Outcome};

/// Bytes of a command on the line. The guest's kernel keeps more, but commands are for people to read: what is longer is a script,
/// which is added as a file.
const COMMAND_BYTES: usize = 16 << 10;
/// How long one look for an answer takes. Shorter than what a command takes.
const LOOK: Duration = Duration::from_millis(5);

/// What a command gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub status: i32,
    /// Both outputs, as they came.
    pub bytes: Vec<u8>,
}

impl Output {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// This end of the line.
#[derive(Debug)]
pub struct Agent {
    line: UnixStream,
    heard: Vec<u8>,
    /// Of the last command.
    number: u64,
}

impl Agent {
    pub fn on(line: UnixStream) -> io::Result<Self> {
        line.set_nonblocking(false)?;
        line.set_read_timeout(Some(LOOK))?;
        line.set_write_timeout(Some(Duration::from_secs(10)))?;
        Ok(Agent { line, heard: Vec::new(), number: 0 })
    }

    /// Sends a command, whose answer [`Agent::answer`] gives.
    pub fn send(&mut self, command: &str) -> io::Result<()> {
        self.number += 1;
        self.line.write_all(format!("{} {}\n", self.number, escaped(command)).as_bytes())
    }

    /// The answer to the last command, if it has come; before the first one, the word that the guest is up.
    pub fn answer(&mut self) -> io::Result<Option<Output>> {
        let mut news = [0; 4096];
        match self.line.read(&mut news) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.heard.extend_from_slice(&news[..count]),
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind()) => {
            }
            Err(error) => return Err(error),
        }
        Ok(take_answer(&mut self.heard, self.number))
    }
}

/// Refuses what is too long, or has what a shell has not.
pub fn check(command: &str) -> Outcome {
    let bytes = escaped(command).len();
    if bytes > COMMAND_BYTES {
        return Err(Failure::new(format!(
            "a command of {bytes} bytes is too long for the line: add it as a file"
        )));
    }
    if command.contains('\0') { Err(Failure::new("a command has no NUL")) } else { Ok(()) }
}

/// One line that `printf %b` makes the command of.
fn escaped(command: &str) -> String {
    let mut line = String::new();
    for byte in command.bytes() {
        match byte {
            b'\\' => line += "\\\\",
            b' '..=b'~' => line.push(char::from(byte)),
            _ => line += &format!("\\0{byte:03o}"),
        }
    }
    line
}

/// Takes the answer to command `number` out of what was heard, and with it what came before: answers to commands that were not
/// waited for to the end.
fn take_answer(heard: &mut Vec<u8>, number: u64) -> Option<Output> {
    loop {
        let start = heard.windows(2).position(|two| two == b"@@")?;
        let end = start + heard[start..].iter().position(|byte| *byte == b'\n')?;
        let words = String::from_utf8_lossy(&heard[start + 2..end]).into_owned();
        let numbers: Vec<i64> = words.split(' ').map_while(|word| word.parse().ok()).collect();
        let (of, status, bytes) = match numbers[..] {
            [of, status, bytes] => (of, status, usize::try_from(bytes).ok()?),
            // What was on the line before the agent had it.
            _ => {
                heard.drain(..=end);
                continue;
            }
        };
        let content = end + 1..end + 1 + bytes;
        let output = heard.get(content.clone())?.to_vec();
        heard.drain(..content.end);
        if u64::try_from(of) == Ok(number) {
            return Some(Output { status: i32::try_from(status).unwrap_or(-1), bytes: output });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_one_line() {
        assert_eq!(escaped("echo a\\n | wc -l\n\tä"), "echo a\\\\n | wc -l\\0012\\0011\\0303\\0244");
        assert!(check(&"x".repeat(COMMAND_BYTES)).is_ok());
        assert!(check(&"x".repeat(COMMAND_BYTES + 1)).is_err());
        assert!(check("a\0").is_err());
    }

    #[test]
    fn answer_is_taken_when_it_is_whole() {
        let mut heard = b"noise@@3 1 4\nab".to_vec();
        assert_eq!(take_answer(&mut heard, 3), None);
        heard.extend_from_slice(b"\n@@@4 0 0\n");
        assert_eq!(take_answer(&mut heard, 3), Some(Output { status: 1, bytes: b"ab\n@".to_vec() }));
        assert_eq!(take_answer(&mut heard, 4), Some(Output { status: 0, bytes: Vec::new() }));
        assert!(heard.is_empty());
    }

    #[test]
    fn answers_to_earlier_commands_are_left_out() {
        let mut heard = b"@@1 0 3\n@@2@@2 7 2\nno".to_vec();
        assert_eq!(take_answer(&mut heard, 2).unwrap().status, 7);
        let mut broken = b"@@what is this\n@@5 0 0\n".to_vec();
        assert!(take_answer(&mut broken, 5).is_some());
    }
}
