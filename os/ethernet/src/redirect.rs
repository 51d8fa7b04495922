//! The XDP program that steers frames to an AF_XDP socket, assembled here: no compiler for BPF is needed.
//!
//! Frames of one EtherType go to the socket of the queue they came in by, where there is one; everything else goes on
//! to the kernel as if no program were there, so that the interface's other traffic goes on working.

use beeline_ethernet_sys::Instruction;

/// `XDP_PASS` of Linux's `bpf.h`: the kernel has the frame.
const PASS: i32 = 2;
/// Offset of the type in an Ethernet header.
const TYPE_OFFSET_BYTES: i16 = 12;
/// Bytes of an Ethernet header.
const HEADER_BYTES: i32 = 14;
/// The function `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;
/// Marks a 64-bit constant as the descriptor of a map.
const PSEUDO_MAP_FD: u8 = 1;

/// Offsets of the members of `struct xdp_md`.
mod context {
    pub const DATA: i16 = 0;
    pub const DATA_END: i16 = 4;
    pub const RX_QUEUE_INDEX: i16 = 16;
}

/// The program for this EtherType, or for every frame when it is `None`; `map` is the descriptor of the map of sockets.
pub(crate) fn program(ether_type: Option<u16>, map: i32) -> Vec<Instruction> {
    let mut code = Vec::with_capacity(14);
    if let Some(ether_type) = ether_type {
        // What the program loads is in the order of the wire; so is what it is compared with.
        let on_the_wire = i32::from(u16::from_ne_bytes(ether_type.to_be_bytes()));
        code.extend([
            load_word(R2, R1, context::DATA),
            load_word(R3, R1, context::DATA_END),
            move_register(R4, R2),
            add(R4, HEADER_BYTES),
            // To the end of the program, which passes: counted from the instruction after the jump.
            jump_if_greater(R4, R3, 8),
            load_half(R4, R2, TYPE_OFFSET_BYTES),
            jump_if_not(R4, on_the_wire, 6),
        ]);
    }
    code.extend([
        load_word(R2, R1, context::RX_QUEUE_INDEX),
        instruction(0x18, R1, PSEUDO_MAP_FD, 0, map),
        instruction(0, 0, 0, 0, 0),
        // What happens when the queue has no socket.
        move_constant(R3, PASS),
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        exit(),
    ]);
    if ether_type.is_some() {
        code.extend([move_constant(R0, PASS), exit()]);
    }
    code
}

const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;

const fn instruction(code: u8, to: u8, from: u8, offset: i16, constant: i32) -> Instruction {
    // Bit fields begin at the low bits on little-endian machines, at the high ones on big-endian ones.
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    Instruction { code, registers, offset, constant }
}

const fn load_word(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x61, to, from, offset, 0)
}

const fn load_half(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x69, to, from, offset, 0)
}

const fn move_register(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

const fn move_constant(to: u8, constant: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, constant)
}

const fn add(to: u8, constant: i32) -> Instruction {
    instruction(0x07, to, 0, 0, constant)
}

const fn jump_if_greater(left: u8, right: u8, by: i16) -> Instruction {
    instruction(0x2d, left, right, by, 0)
}

const fn jump_if_not(left: u8, constant: i32, by: i16) -> Instruction {
    instruction(0x55, left, 0, by, constant)
}

const fn exit() -> Instruction {
    instruction(0x95, 0, 0, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum Action {
        Passed,
        /// To the socket of this queue in this map.
        Redirected {
            queue: u64,
            map: u64,
        },
    }

    /// Runs the program on a frame, as the kernel's interpreter would; addresses are offsets into the frame.
    fn run(code: &[Instruction], frame: &[u8], queue: u64) -> Action {
        let mut registers = [0u64; 11];
        let mut at = 0;
        loop {
            let now = code[at];
            at += 1;
            let (to, from) = match cfg!(target_endian = "little") {
                true => ((now.registers & 15) as usize, (now.registers >> 4) as usize),
                false => ((now.registers >> 4) as usize, (now.registers & 15) as usize),
            };
            let constant = now.constant as i64 as u64;
            let jump = |at: usize| at.checked_add_signed(now.offset as isize).unwrap();
            match now.code {
                0x61 => {
                    assert_eq!(from, 1, "words are loaded from the context only");
                    registers[to] = match now.offset {
                        0 => 0,
                        4 => frame.len() as u64,
                        16 => queue,
                        other => panic!("context offset {other}"),
                    };
                }
                0x69 => {
                    let start = (registers[from] as i64 + i64::from(now.offset)) as usize;
                    registers[to] = u64::from(u16::from_ne_bytes([frame[start], frame[start + 1]]));
                }
                0xbf => registers[to] = registers[from],
                0xb7 => registers[to] = constant,
                0x07 => registers[to] = registers[to].wrapping_add(constant),
                0x2d if registers[to] > registers[from] => at = jump(at),
                0x55 if registers[to] != constant => at = jump(at),
                0x2d | 0x55 => {}
                0x18 => {
                    assert_eq!((from, code[at]), (1, instruction(0, 0, 0, 0, 0)));
                    registers[to] = constant;
                    at += 1;
                }
                0x85 => {
                    assert_eq!((now.constant, registers[3]), (51, 2), "redirect, or else pass");
                    registers[0] = 4;
                }
                0x95 if registers[0] == 2 => return Action::Passed,
                0x95 => return Action::Redirected { queue: registers[2], map: registers[1] },
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    fn frame(ether_type: u16, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0xff; 12];
        frame.extend(ether_type.to_be_bytes());
        frame.resize(bytes, 0);
        frame
    }

    #[test]
    fn one_type_is_steered_and_every_other_passes() {
        let code = program(Some(0x88b5), 7);
        assert_eq!(run(&code, &frame(0x88b5, 60), 3), Action::Redirected { queue: 3, map: 7 });
        assert_eq!(run(&code, &frame(0x88b5, 14), 0), Action::Redirected { queue: 0, map: 7 });
        for other in [0x0800, 0x0806, 0x86dd, 0xb588, 0x88b4, 0] {
            assert_eq!(run(&code, &frame(other, 60), 0), Action::Passed, "{other:#x}");
        }
    }

    #[test]
    fn a_frame_without_a_whole_header_is_not_looked_into() {
        let code = program(Some(0x88b5), 7);
        for bytes in [0, 1, 12, 13] {
            assert_eq!(run(&code, &frame(0x88b5, 14)[..bytes], 0), Action::Passed, "{bytes} bytes");
        }
    }

    #[test]
    fn without_a_type_every_frame_is_steered() {
        let code = program(None, 9);
        for bytes in [0, 14, 60] {
            assert_eq!(run(&code, &vec![0; bytes], 5), Action::Redirected { queue: 5, map: 9 });
        }
    }
}
