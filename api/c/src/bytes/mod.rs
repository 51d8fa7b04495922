//! Byte streams: what `include/beeline_bytes.h` declares.

mod reader;
mod writer;
