//! Each language on a map and formats small enough to read: an array of blocks, an array of registers, a reset value,
//! named values, a keyword as a name, a gap in a word and in a structure.

use super::*;
use crate::generate::formats::{
    BitField, ByteField, Enum, EnumValue, Formats, Signature, Size, Struct, Word,
};
use crate::generate::registers::{Array, Block, Field, Item, Map, Register, Value};

fn text(text: &str) -> String {
    text.to_owned()
}

fn field(name: &str, lsb: u32, width: u32, reset: Option<u64>, values: Vec<Value>) -> Field {
    let access = text("read-write");
    Field {
        name: text(name),
        doc: text("A field."),
        lsb,
        width,
        access,
        write_effect: None,
        volatile: false,
        reset,
        values,
    }
}

fn register(name: &str, type_name: &str, offset: u64, array: Option<Array>, fields: Vec<Field>) -> Register {
    Register {
        name: text(name),
        type_name: text(type_name),
        title: text("R"),
        doc: text("A register."),
        offset,
        array,
        fields,
    }
}

fn map() -> Map {
    let causes = vec![Value { name: text("hole_timeout"), doc: text("Too old."), value: 1 }];
    let mut cleared = field("cause", 4, 4, Some(0), causes);
    cleared.write_effect = Some(text("oneToClear"));
    let control = register(
        "control",
        "queue_control",
        8,
        None,
        vec![cleared, field("class_", 16, 1, Some(1), Vec::new())],
    );
    let queue = Block {
        name: text("queue"),
        type_name: text("queue"),
        title: text("Queue"),
        doc: text("A queue."),
        offset: 0x1000,
        array: Some(Array { count: 4, stride: 0x100 }),
        bytes: 16,
        registers: vec![control],
    };
    let words = register(
        "caps",
        "word",
        0x40,
        Some(Array { count: 2, stride: 8 }),
        vec![field("value", 0, 64, None, Vec::new())],
    );
    Map {
        title: text("NIC"),
        doc: text("A map."),
        bytes: 0x1400,
        items: vec![Item::Register(words), Item::Block(queue)],
    }
}

fn formats() -> Formats {
    let bits = |name: &str, lsb, width| BitField { name: text(name), lsb, width, doc: text("Bits.") };
    let bytes =
        |name: &str, offset, bytes| ByteField { name: text(name), offset, bytes, doc: text("Bytes.") };
    Formats {
        sizes: vec![(text("line_bytes"), Size { value: 64, doc: text("A line.") })],
        words: vec![(
            text("link"),
            Word { doc: text("A link."), fields: vec![bits("previous", 0, 22), bits("tag", 63, 1)] },
        )],
        enums: vec![(
            text("kind"),
            Enum {
                doc: text("Kinds."),
                values: vec![EnumValue { name: text("void"), value: 2, doc: text("Skip | it.") }],
            },
        )],
        structs: vec![(
            text("entry"),
            Struct { doc: text("An entry."), bytes: 16, fields: vec![bytes("flags", 4, 4)] },
        )],
        kpio_eop_default: Signature { value: 0xe0b0, doc: text("EOP.") },
    }
}

fn contains(output: &str, parts: &[&str]) {
    for part in parts {
        assert!(output.contains(part), "no `{part}` in:\n{output}");
    }
}

#[test]
fn rust_constants() {
    contains(
        &rust_registers::emit(&map()),
        &[
            "pub const CAPS: u32 = 0x0040;",
            "pub const CAPS_COUNT: u32 = 2;",
            "pub const QUEUE_STRIDE: u32 = 0x100;",
            "pub mod queue {",
            "    pub const CONTROL: u32 = 0x0008;",
            "        (\"control\", CONTROL),",
            "        pub const CAUSE_MASK: u64 = 0xf;",
            "        pub const CLASS_LSB: u32 = 16;",
            "        pub const CLASS_RESET: u64 = 0x1;",
            "            pub const HOLE_TIMEOUT: u64 = 1;",
            "        name: \"queue.control\", offset: 0x1008, blocks: Copies { count: 4, stride_bytes: 0x100 }, elements: \
             Copies { count: 1, stride_bytes: 0x0 },",
            "        writable: 0x100f0, volatile: 0x0, documented: 0x100f0, reset: 0x10000,",
            "        name: \"caps\", offset: 0x0040, blocks: Copies { count: 1, stride_bytes: 0x0 }, elements: \
             Copies { count: 2, stride_bytes: 0x8 },",
            "        writable: 0xffffffffffffffff, volatile: 0x0, documented: 0x0, reset: 0x0,",
        ],
    );
    contains(
        &rust_formats::emit(&formats()),
        &[
            "pub const LINE_BYTES: usize = 64;",
            "pub const KPIO_EOP_DEFAULT: u64 = 0x000000000000E0B0;",
            "    pub const PREVIOUS_MASK: u64 = 0x3fffff;",
            "    pub const TAG_LSB: u32 = 63;",
            "    pub const VOID: u8 = 2;",
            "    pub const FLAGS_OFFSET: usize = 4;",
        ],
    );
}

#[test]
fn c_macros_structures_and_their_proof() {
    contains(
        &c::emit(&formats(), &map()),
        &[
            "#define BEELINE_LINE_BYTES 64",
            "#define BEELINE_LINK_PREVIOUS_MASK 0x3fffffULL",
            "#define BEELINE_KIND_VOID 2",
            "#define BEELINE_QUEUE_CONTROL_CAUSE_HOLE_TIMEOUT 1",
            "\tuint8_t unused_0[4];\n\tuint32_t flags; /* Bytes. */\n\tuint8_t unused_8[8];\n};",
        ],
    );
    contains(
        &c::emit_proof(&formats(), &map()),
        &[
            "offsetof(beeline_nic_t, caps) == 0x40",
            "offsetof(beeline_nic_t, queue[1]) == 0x1100",
            "offsetof(beeline_nic_t, queue[0].control) == 0x1008",
            "BEELINE_NIC__QUEUEX__CONTROL__CAUSE_bm == 0xf0ULL",
            "BEELINE_NIC__CAPSX__VALUE_bm == 0xffffffffffffffffULL",
            "sizeof(struct beeline_entry) == 16",
        ],
    );
}

#[test]
fn systemverilog_constants_and_packed_structures() {
    contains(
        &sv::emit(&formats(), &map()),
        &[
            "package nic_pkg;",
            "  localparam logic [31:0] QueueControlOffset = 32'h8;",
            "  localparam logic [63:0] QueueControlReset = 64'h10000;",
            "    KindVoid = 8'h2\n  } kind_e;",
            "    QueueControlCauseHoleTimeout = 4'h1\n  } queue_control_cause_e;",
            "    logic [46:0] unused_17;\n    logic        class_;\n    logic [7:0]  unused_8;\n    logic [3:0]  cause;\n",
            "    logic        tag;\n    logic [40:0] unused_22;\n    logic [21:0] previous;\n  } link_word_t;",
            "    logic [63:0] unused_64;\n    logic [31:0] flags;\n    logic [31:0] unused_0;\n  } entry_t;",
        ],
    );
}

#[test]
fn pages_to_read() {
    contains(
        &markdown::registers(&map()),
        &[
            "| 0x1000 + 0x100 × 0..3 | `queue` | A queue. |",
            "### R (`queue.control`)",
            "| 7:4 | `cause` | read-write, write 1 to clear | 0x0 | A field. **1** `hole_timeout`: Too old. |",
            "| 16 | `class` | read-write | 0x1 | A field. |",
        ],
    );
    contains(
        &markdown::formats(&formats()),
        &[
            "| 21:0 | `previous` | Bits. |",
            "| 2 | `void` | Skip \\| it. |",
            "## Structure `entry` (16 bytes)",
            "| 7:4 | `flags` |",
        ],
    );
}
