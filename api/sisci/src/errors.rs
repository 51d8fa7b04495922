//! Codes of errors, and their texts.

use core::ffi::{CStr, c_char};

macro_rules! errors {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        $(
            #[allow(dead_code, reason = "programs have all of them")]
            pub(crate) const $name: u32 = 0x4000_0000 | $code;
        )*

        /// Every code with its text.
        const ERRORS: &[(u32, &CStr)] = &[$((
            0x4000_0000 | $code,
            match CStr::from_bytes_with_nul(concat!("SCI_ERR_", stringify!($name), ": ", $text, "\0").as_bytes()) {
                Ok(text) => text,
                Err(_) => panic!("a text has no zero byte"),
            },
        )),*];
    };
}

/// `SCI_ERR_OK`.
pub(crate) const OK: u32 = 0;

errors! {
    BUSY = 0x900, "something still uses it";
    FLAG_NOT_IMPLEMENTED = 0x901, "a flag asks for what this platform does not have";
    ILLEGAL_FLAG = 0x902, "a flag that the function does not know, or flags that do not go together";
    NOSPC = 0x904, "no memory or no room is left for it";
    API_NOSPC = 0x905, "the library has no room left for it";
    HW_NOSPC = 0x906, "the adapter has no room left for it";
    NOT_IMPLEMENTED = 0x907, "the function is not implemented";
    ILLEGAL_ADAPTERNO = 0x908, "no node has an adapter of this number";
    NO_SUCH_ADAPTERNO = 0x909, "this node has no adapter of this number";
    TIMEOUT = 0x90a, "the time is over";
    OUT_OF_RANGE = 0x90b, "part of it is outside the segment or the map";
    NO_SUCH_SEGMENT = 0x90c, "the node has no segment of this number";
    ILLEGAL_NODEID = 0x90d, "no node has this number";
    CONNECTION_REFUSED = 0x90e, "the segment is not available";
    SEGMENT_NOT_CONNECTED = 0x90f, "the segment is not connected yet";
    SIZE_ALIGNMENT = 0x910, "the size is not one that is possible";
    OFFSET_ALIGNMENT = 0x911, "the offset is not one that is possible";
    ILLEGAL_PARAMETER = 0x912, "a handle of nothing, a null pointer, or a value that has no meaning";
    MAX_ENTRIES = 0x913, "there are as many as there can be";
    SEGMENT_NOT_PREPARED = 0x914, "the segment is not prepared for the adapter";
    ILLEGAL_ADDRESS = 0x915, "the address is not one that is possible";
    ILLEGAL_OPERATION = 0x916, "not in the state that it is in";
    ILLEGAL_QUERY = 0x917, "no such query";
    SEGMENTID_USED = 0x918, "another segment of the node has the number";
    SYSTEM = 0x919, "the operating system refuses something";
    CANCELLED = 0x91a, "it was removed while this waited";
    NOT_CONNECTED = 0x91b, "what it was connected to is gone";
    NOT_AVAILABLE = 0x91c, "it is not available";
    INCONSISTENT_VERSIONS = 0x91d, "library and fabric are of different versions";
    COND_INT_RACE_PROBLEM = 0x91e, "a conditional interrupt came while it was enabled";
    OVERFLOW = 0x91f, "the memory is too small for it";
    NOT_INITIALIZED = 0x920, "SCIInitialize was not called in this process";
    ACCESS = 0x921, "access is not granted";
    NO_SUCH_NODEID = 0xa00, "no node of this number is configured";
    NODE_NOT_RESPONDING = 0xa02, "nobody of the node answers";
    NO_REMOTE_LINK_ACCESS = 0xa04, "the link of the other node is down";
    NO_LINK_ACCESS = 0xa05, "the link of this node is down";
    TRANSFER_FAILED = 0xa06, "the transfer failed";
    REMOTE_BUSY = 0xb00, "the other side is busy";
    NOT_SUPPORTED = 0xe00, "this platform does not have it";
    DEPRECATED = 0xe01, "the function is of an older version of the interface";
    DMA_NOT_AVAILABLE = 0xe02, "no engine for DMA is available";
    DMA_DISABLED = 0xe03, "DMA is switched off";
    EWOULD_BLOCK = 0xe04, "it would have to wait";
    SEMAPHORE_COUNT_EXCEEDED = 0xe05, "a semaphore counts no further";
    IRQL_ILLEGAL = 0xe06, "not in this context";
    LOCAL_BUSY = 0xe07, "this side is busy";
    ALL_BUSY = 0xe08, "both sides are busy";
    NO_SUCH_FDID = 0xe09, "no device of this number";
    NO_SUCH_INTNO = 0xe0a, "the node has no interrupt of this number";
    INTNO_USED = 0xe0b, "another interrupt of the node has the number";
}

pub(crate) fn text(error: u32) -> *const c_char {
    let known = ERRORS.iter().find(|(code, _)| *code == error).map(|(_, text)| *text);
    match error {
        OK => c"SCI_ERR_OK: done",
        _ => known.unwrap_or(c"no error of SISCI has this number"),
    }
    .as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_their_names_are_those_of_the_facts() {
        let facts: toml::Table = include_str!("../facts.toml").parse().unwrap();
        let facts = facts["errors"].as_table().unwrap();
        assert_eq!(ERRORS.len(), facts.len());
        for (code, text) in ERRORS {
            let name = text.to_str().unwrap().split(':').next().unwrap();
            assert_eq!(facts[name]["code"].as_integer(), Some(i64::from(code - 0x4000_0000)), "{name}");
        }
    }

    #[test]
    fn every_number_has_a_text() {
        let text = |error| {
            // SAFETY: a static string.
            unsafe { CStr::from_ptr(super::text(error)) }.to_str().unwrap()
        };
        assert!(text(BUSY).starts_with("SCI_ERR_BUSY: "));
        assert_eq!((text(OK), text(7)), ("SCI_ERR_OK: done", "no error of SISCI has this number"));
    }
}
