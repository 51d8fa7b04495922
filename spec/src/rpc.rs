//! The first words of requests and responses (formats `rpc_request`, `rpc_response`).
//!
//! Both are payload of a message, so nothing in them keeps a window's rules; `host/rpc` says what they mean.

use crate::formats::{rpc_part, rpc_request, rpc_response, rpc_status};

/// Where a message stands in something longer than a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    /// It is all there is.
    Whole = rpc_part::WHOLE,
    /// The first of several.
    First = rpc_part::FIRST,
    /// Neither the first nor the last.
    Middle = rpc_part::MIDDLE,
    /// The last.
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
    /// The word.
    pub word: u64,
}

impl core::fmt::Display for RpcWordError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "{:#018x} is not the first word of a request or response", self.word)
    }
}

impl core::error::Error for RpcWordError {}

/// First payload word of a message of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestWord {
    /// Which call of its client.
    pub call: u32,
    /// What is asked for.
    pub method: u16,
    /// Where the message stands in the request.
    pub part: Part,
    /// Whether a word with the deadline follows.
    pub has_deadline: bool,
}

impl RequestWord {
    /// The word.
    #[inline(always)]
    pub const fn encode(self) -> u64 {
        (self.call as u64) << rpc_request::CALL_LSB
            | (self.method as u64) << rpc_request::METHOD_LSB
            | (self.part as u64) << rpc_request::PART_LSB
            | (self.has_deadline as u64) << rpc_request::HAS_DEADLINE_LSB
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
        Ok(RequestWord {
            call: (word >> rpc_request::CALL_LSB & rpc_request::CALL_MASK) as u32,
            method: (word >> rpc_request::METHOD_LSB & rpc_request::METHOD_MASK) as u16,
            part: Part::of(word >> rpc_request::PART_LSB & rpc_request::PART_MASK),
            has_deadline: word >> rpc_request::HAS_DEADLINE_LSB & 1 == 1,
        })
    }
}

/// First payload word of a message of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseWord {
    /// Which call is answered.
    pub call: u32,
    /// The handler's own error code.
    pub code: u16,
    /// Where the message stands in the response.
    pub part: Part,
    /// How the call ended.
    pub status: Status,
}

impl ResponseWord {
    /// The word.
    #[inline(always)]
    pub const fn encode(self) -> u64 {
        (self.call as u64) << rpc_response::CALL_LSB
            | (self.code as u64) << rpc_response::CODE_LSB
            | (self.part as u64) << rpc_response::PART_LSB
            | (self.status as u64) << rpc_response::STATUS_LSB
    }

    /// Reads a word of a server that is not trusted.
    ///
    /// # Errors
    /// Reserved bits are set, or the status is none.
    #[inline(always)]
    pub const fn decode(word: u64) -> Result<Self, RpcWordError> {
        let status = (word >> rpc_response::STATUS_LSB & rpc_response::STATUS_MASK) as usize;
        if word >> rpc_response::RESERVED_LSB != 0 || status >= Status::ALL.len() {
            return Err(RpcWordError { word });
        }
        Ok(ResponseWord {
            call: (word >> rpc_response::CALL_LSB & rpc_response::CALL_MASK) as u32,
            code: (word >> rpc_response::CODE_LSB & rpc_response::CODE_MASK) as u16,
            part: Part::of(word >> rpc_response::PART_LSB & rpc_response::PART_MASK),
            status: Status::ALL[status],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Part; 4] = [Part::Whole, Part::First, Part::Middle, Part::Last];

    #[test]
    fn words_come_back() {
        for part in PARTS {
            for has_deadline in [false, true] {
                let word = RequestWord { call: 0x8001_0203, method: 0xfffe, part, has_deadline };
                assert_eq!(RequestWord::decode(word.encode()), Ok(word));
            }
            for (value, status) in Status::ALL.into_iter().enumerate() {
                assert_eq!(status as usize, value, "the value is the place in ALL");
                let word = ResponseWord { call: u32::MAX, code: 0x8000, part, status };
                assert_eq!(ResponseWord::decode(word.encode()), Ok(word));
            }
        }
    }

    #[test]
    fn reserved_bits_and_unknown_statuses_are_refused() {
        for bit in 51..64 {
            let word = 1 << bit;
            assert_eq!(RequestWord::decode(word), Err(RpcWordError { word }));
        }
        for word in (8..16).map(|status| status << rpc_response::STATUS_LSB).chain((54..64).map(|bit| 1 << bit)) {
            assert_eq!(ResponseWord::decode(word), Err(RpcWordError { word }));
        }
    }
}
