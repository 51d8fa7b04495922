//! The first words of requests and responses (formats `rpc_request`, `rpc_response`).
//!
//! Both are payload of a message, so nothing in them keeps a window's rules; `host/rpc` says what they mean.

use crate::formats::{rpc_part, rpc_request, rpc_response, rpc_status};

/// Where a message stands in something longer than a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    /// The payload is in one part.
    Whole = rpc_part::WHOLE,
    /// The first of several.
    First = rpc_part::FIRST,
    /// Neither the first nor the last.
    Middle = rpc_part::MIDDLE,
    Last = rpc_part::LAST,
}

impl Part {
    #[inline(always)]
    const fn of(bits: u64) -> Part {
        match bits as u8 {
            rpc_part::WHOLE => Part::Whole,
            rpc_part::FIRST => Part::First,
            rpc_part::MIDDLE => Part::Middle,
            _ => Part::Last,
        }
    }
}

/// How a call ended, as the server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The handler ran and answered.
    Done = rpc_status::DONE,
    /// The handler ran and gave an error.
    Failed = rpc_status::FAILED,
    /// No such method.
    UnknownMethod = rpc_status::UNKNOWN_METHOD,
    /// Past its deadline when its turn came.
    DeadlinePassed = rpc_status::DEADLINE_PASSED,
    /// Taken back before its turn came.
    Cancelled = rpc_status::CANCELLED,
    /// The server takes no more work now.
    Overloaded = rpc_status::OVERLOADED,
    /// Longer than the server allows.
    TooLong = rpc_status::TOO_LONG,
    /// The handler gave up in the middle.
    Crashed = rpc_status::CRASHED,
}

impl Status {
    /// Every status, in the order of its value.
    pub const ALL: [Status; 8] = [
        Status::Done,
        Status::Failed,
        Status::UnknownMethod,
        Status::DeadlinePassed,
        Status::Cancelled,
        Status::Overloaded,
        Status::TooLong,
        Status::Crashed,
    ];
}

/// A word that is no first word of a request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcWordError {
    pub word: u64,
}

impl core::fmt::Display for RpcWordError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "{:#018x} is not the first word of a request or response", self.word)
    }
}

impl core::error::Error for RpcWordError {}

/// First payload word of a message of a request. It stays one word: what is stored field by field and moved whole would
/// wait for the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestWord(u64);

impl RequestWord {
    /// The word of a whole request.
    #[inline(always)]
    pub const fn new(call: u32, method: u16, has_deadline: bool) -> Self {
        RequestWord(
            (call as u64) << rpc_request::CALL_LSB
                | (method as u64) << rpc_request::METHOD_LSB
                | (has_deadline as u64) << rpc_request::HAS_DEADLINE_LSB,
        )
    }

    /// Reads a word of a client that is not trusted.
    ///
    /// # Errors
    /// Reserved bits are set.
    #[inline(always)]
    pub const fn decode(word: u64) -> Result<Self, RpcWordError> {
        if word >> rpc_request::RESERVED_LSB != 0 {
            return Err(RpcWordError { word });
        }
        Ok(RequestWord(word))
    }

    /// The word as it stands in a message.
    #[inline(always)]
    pub const fn encode(self) -> u64 {
        self.0
    }

    /// Returns the same word for another part.
    #[inline(always)]
    pub const fn with_part(self, part: Part) -> Self {
        RequestWord(with_part(self.0, part))
    }

    /// Returns the number of the call in its client.
    #[inline(always)]
    pub const fn call(self) -> u32 {
        (self.0 >> rpc_request::CALL_LSB & rpc_request::CALL_MASK) as u32
    }

    /// Returns the number of the method.
    #[inline(always)]
    pub const fn method(self) -> u16 {
        (self.0 >> rpc_request::METHOD_LSB & rpc_request::METHOD_MASK) as u16
    }

    /// Where the message stands in the request.
    #[inline(always)]
    pub const fn part(self) -> Part {
        part_of(self.0)
    }

    /// Whether the request has a deadline: a word with it follows in the first or only part.
    #[inline(always)]
    pub const fn has_deadline(self) -> bool {
        self.0 >> rpc_request::HAS_DEADLINE_LSB & 1 == 1
    }
}

/// First payload word of a message of a response. It stays one word, as [`RequestWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseWord(u64);

impl ResponseWord {
    /// The word of a whole response.
    #[inline(always)]
    pub const fn new(call: u32, status: Status, code: u16) -> Self {
        ResponseWord(
            (call as u64) << rpc_response::CALL_LSB
                | (code as u64) << rpc_response::CODE_LSB
                | (status as u64) << rpc_response::STATUS_LSB,
        )
    }

    /// Reads a word of a server that is not trusted.
    ///
    /// # Errors
    /// Reserved bits are set, or the status is none.
    #[inline(always)]
    pub const fn decode(word: u64) -> Result<Self, RpcWordError> {
        // The reserved bits are above the status, so one comparison checks both.
        if word >> rpc_response::STATUS_LSB >= Status::ALL.len() as u64 {
            return Err(RpcWordError { word });
        }
        Ok(ResponseWord(word))
    }

    /// The word as it stands in a message.
    #[inline(always)]
    pub const fn encode(self) -> u64 {
        self.0
    }

    /// Returns the same word for another part.
    #[inline(always)]
    pub const fn with_part(self, part: Part) -> Self {
        ResponseWord(with_part(self.0, part))
    }

    /// Returns the number of the call that is answered.
    #[inline(always)]
    pub const fn call(self) -> u32 {
        (self.0 >> rpc_response::CALL_LSB & rpc_response::CALL_MASK) as u32
    }

    /// The handler's own error code.
    #[inline(always)]
    pub const fn code(self) -> u16 {
        (self.0 >> rpc_response::CODE_LSB & rpc_response::CODE_MASK) as u16
    }

    /// Where the message stands in the response.
    #[inline(always)]
    pub const fn part(self) -> Part {
        part_of(self.0)
    }

    /// Returns how the call ended.
    #[inline(always)]
    pub const fn status(self) -> Status {
        Status::ALL[(self.0 >> rpc_response::STATUS_LSB & rpc_response::STATUS_MASK) as usize & 7]
    }

    /// Whether the call was answered, in one message: no other field than the call is set.
    #[inline(always)]
    pub const fn is_plain(self) -> bool {
        self.0 >> rpc_response::CODE_LSB == 0
    }
}

/// Parts stand at the same bits of both words.
const _: () = assert!(
    rpc_request::PART_LSB == rpc_response::PART_LSB
        && rpc_request::PART_MASK == rpc_response::PART_MASK
        && Status::ALL.len() == 8
        && rpc_response::RESERVED_LSB == rpc_response::STATUS_LSB + 4
);

/// Where a message with this first word stands, whatever else is in the word.
#[inline(always)]
pub const fn part_of(word: u64) -> Part {
    Part::of(word >> rpc_request::PART_LSB & rpc_request::PART_MASK)
}

/// A first word for another part.
#[inline(always)]
pub const fn with_part(word: u64, part: Part) -> u64 {
    word & !(rpc_request::PART_MASK << rpc_request::PART_LSB) | (part as u64) << rpc_request::PART_LSB
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Part; 4] = [Part::Whole, Part::First, Part::Middle, Part::Last];

    #[test]
    fn words_come_back() {
        for part in PARTS {
            for has_deadline in [false, true] {
                let word = RequestWord::new(0x8001_0203, 0xfffe, has_deadline).with_part(part);
                assert_eq!(RequestWord::decode(word.encode()), Ok(word));
                assert_eq!((word.call(), word.method(), word.part()), (0x8001_0203, 0xfffe, part));
                assert_eq!(word.has_deadline(), has_deadline);
            }
            for (value, status) in Status::ALL.into_iter().enumerate() {
                assert_eq!(status as usize, value, "the value is the place in ALL");
                let word = ResponseWord::new(u32::MAX, status, 0x8000).with_part(part);
                assert_eq!(ResponseWord::decode(word.encode()), Ok(word));
                assert_eq!((word.call(), word.code(), word.part()), (u32::MAX, 0x8000, part));
                assert_eq!(word.status(), status);
                assert!(!word.is_plain());
            }
        }
        assert!(ResponseWord::new(u32::MAX, Status::Done, 0).is_plain());
    }

    #[test]
    fn reserved_bits_and_unknown_statuses_are_refused() {
        for bit in 51..64 {
            let word = 1 << bit;
            assert_eq!(RequestWord::decode(word), Err(RpcWordError { word }));
        }
        for word in
            (8..16).map(|status| status << rpc_response::STATUS_LSB).chain((54..64).map(|bit| 1 << bit))
        {
            assert_eq!(ResponseWord::decode(word), Err(RpcWordError { word }));
        }
    }
}
