//! Every function with every kind of bad handle, and with NULL wherever a pointer is taken: the documented code, and never a crash.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use c::C11;
use c::facts::{Facts, Function, is_handle};
use c::ground::Ground;
use c::installed::installed;
use c::player::{self, Player, was_made};

/// Handles that are none: what removed handles and those of other kinds are called by the player.
const BAD: [&str; 6] = ["NULL", "wild", "0x1", "0xffffffffffffffff", "removed", "other"];

/// What a function may answer to a handle that is none, and to NULL for what it must have. One that is not there looks at nothing.
const REFUSED: [&str; 5] =
    ["ILLEGAL_PARAMETER", "NOT_SUPPORTED", "NOT_IMPLEMENTED", "DEPRECATED", "DMA_NOT_AVAILABLE"];

fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| player::build(installed(), &C11, "player"))
}

/// A player that has a descriptor and a handle of each kind that there is, and one that was removed.
fn prepared(root: &std::path::Path) -> Player {
    let mut player = Player::start((program(), Ground::Kernel), root, "4");
    for (line, answer) in [
        ("SCIInitialize 0", "OK"),
        ("SCIOpen sci_desc_t 0", "OK"),
        ("SCIOpen removed 0", "OK"),
        ("SCIClose removed 0", "OK"),
        ("SCICreateSegment sci_desc_t sci_local_segment_t 7 8192 NULL NULL 0", "OK"),
        ("SCIPrepareSegment sci_local_segment_t 0 0", "OK"),
        ("SCISetSegmentAvailable sci_local_segment_t 0 0", "OK"),
        ("SCIConnectSegment sci_desc_t sci_remote_segment_t 4 7 0 NULL NULL 1000 0", "OK"),
        ("SCIMapRemoteSegment sci_remote_segment_t sci_map_t 0 8192 NULL 0", "OK address"),
        ("SCICreateMapSequence sci_map_t sci_sequence_t 0", "OK"),
        ("SCIStartSequence sci_sequence_t 0", "OK SCI_SEQ_OK"),
        ("SCICreateDMAQueue sci_desc_t sci_dma_queue_t 0 4 0", "OK"),
        ("SCICreateInterrupt sci_desc_t sci_local_interrupt_t 0 out:21 NULL NULL FIXED_INTNO", "OK 21"),
        ("SCIConnectInterrupt sci_desc_t sci_remote_interrupt_t 4 0 21 1000 0", "OK"),
        (
            "SCICreateDataInterrupt sci_desc_t sci_local_data_interrupt_t 0 out:22 NULL NULL FIXED_INTNO",
            "OK 22",
        ),
        ("SCIConnectDataInterrupt sci_desc_t sci_remote_data_interrupt_t 4 0 22 1000 0", "OK"),
        ("SCILCreateMsgQueue other-end 0 4 1 2 8 100 0 0", "NO_SUCH_SEGMENT"),
        ("SCILCreateMsgQueue sci_msq_queue_t 0 4 2 1 8 100 0 0", "TIMEOUT"),
        ("SCILCreateMsgQueue other-end 0 4 1 2 8 100 1000 0", "OK"),
        ("SCILCreateMsgQueue sci_msq_queue_t 0 4 2 1 8 100 1000 0", "OK"),
    ] {
        assert_eq!(player.answer(line), answer, "{line}");
    }
    player
}

/// The words of a call with `bad` at `index` and good ones elsewhere.
fn line(name: &str, function: &Function, index: usize, bad: &str) -> String {
    let word = |at: usize, kind: &str| -> String {
        let after_callback = at > 0 && function.takes[at - 1].starts_with("sci_cb_");
        match kind {
            _ if at == index => bad.to_owned(),
            "void *" if after_callback => "NULL".to_owned(),
            "void *" | "volatile void *" => "buf".to_owned(),
            "unsigned int" | "size_t" | "sci_error_t" | "sci_ioaddr_t" | "unsigned long long" => {
                "1".to_owned()
            }
            "dis_virt_adapter_t" | "sci_dma_type_t" | "sci_address_t" => "1".to_owned(),
            "const char *" => "name".to_owned(),
            _ if kind.starts_with("sci_cb_") => "NULL".to_owned(),
            _ if is_handle(kind) => kind.to_owned(),
            // Queues are opened again and removed through their variable.
            "sci_msq_queue_t *" => "sci_msq_queue_t".to_owned(),
            _ if is_place(kind) => "place".to_owned(),
            _ => "out".to_owned(),
        }
    };
    let mut words = vec![name.to_owned()];
    words.extend(function.takes.iter().enumerate().map(|(at, kind)| word(at, kind)));
    words.extend(function.flags.as_ref().map(|_| "0".to_owned()));
    words.join(" ")
}

/// The words of a call with good arguments and a flag.
fn with_flag(name: &str, function: &Function, flag: &str) -> String {
    let call = line(name, function, usize::MAX, "");
    format!("{} {flag}", call.rsplit_once(' ').unwrap().0)
}

/// The code with which an answer begins.
fn code(answer: &str) -> &str {
    answer.split(' ').next().unwrap_or_default()
}

/// Where a handle is put.
fn is_place(kind: &str) -> bool {
    kind.strip_suffix(" *").is_some_and(is_handle)
}

/// Functions that the library has, with the parameters of a kind.
fn each(of: impl Fn(&str) -> bool) -> Vec<(String, Function, usize)> {
    let exported = player::exported(installed());
    let functions = Facts::read().functions.into_iter().filter(|(name, _)| exported.contains(name));
    functions
        .flat_map(|(name, function)| {
            let indices: Vec<usize> =
                (0..function.takes.len()).filter(|index| of(&function.takes[*index])).collect();
            indices.into_iter().map(|index| (name.clone(), function.clone(), index)).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn handle_that_is_none_is_refused_by_each_function() {
    let place = tempfile::tempdir().unwrap();
    let mut player = prepared(place.path());
    let mut wrong = Vec::new();
    let calls = each(is_handle);
    assert!(calls.len() >= 19, "{}", calls.len());
    for (name, function, index) in calls {
        let kind = &function.takes[index];
        let other = if kind == "sci_local_segment_t" { "sci_map_t" } else { "sci_local_segment_t" };
        for bad in BAD.map(|bad| if bad == "other" { other } else { bad }) {
            // A sequence may be left out where these say so.
            if bad == "NULL"
                && ["SCIFlush", "SCIMemCpy", "SCICacheSync", "SCIMemCpy_dual"].contains(&name.as_str())
            {
                continue;
            }
            let line = line(&name, &function, index, bad);
            let answer = player.answer(&line);
            let refused = if function.is_core && function.gives_code() {
                code(&answer) == "ILLEGAL_PARAMETER"
            } else if function.gives_code() {
                REFUSED.contains(&code(&answer))
            } else {
                ["0", "NULL", "done", "SCI_DMAQUEUE_IDLE"].contains(&answer.as_str())
            };
            if !refused {
                wrong.push(format!("{line}: {answer}"));
            }
            if function.has_error {
                let quiet = player.answer(&format!("-{line}"));
                assert!(quiet.starts_with("none"), "-{line}: {quiet}");
            }
            assert!(was_made(&answer), "{line}: {answer}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(player.answer("SCIGetLocalSegmentId sci_local_segment_t"), "7");
}

#[test]
fn null_where_a_handle_is_put_is_refused_and_makes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut player = prepared(place.path());
    for (name, function, index) in each(is_place) {
        let line = line(&name, &function, index, "NULL");
        let answer = player.answer(&line);
        assert!(REFUSED.contains(&code(&answer)), "{line}: {answer}");
    }
    // The segment that was not given exists under no number, and nothing keeps the descriptor open.
    for line in [
        "SCICreateSegment sci_desc_t again 1 1 NULL NULL 0",
        "SCIRemoveSegment again 0",
        "SCILRemoveMsgQueue sci_msq_queue_t 0",
        "SCILRemoveMsgQueue other-end 0",
        "SCIDisconnectDataInterrupt sci_remote_data_interrupt_t 0",
        "SCIRemoveDataInterrupt sci_local_data_interrupt_t 0",
        "SCIDisconnectInterrupt sci_remote_interrupt_t 0",
        "SCIRemoveInterrupt sci_local_interrupt_t 0",
        "SCIRemoveDMAQueue sci_dma_queue_t 0",
        "SCIRemoveSequence sci_sequence_t 0",
        "SCIUnmapSegment sci_map_t 0",
        "SCIDisconnectSegment sci_remote_segment_t 0",
        "SCIRemoveSegment sci_local_segment_t 0",
        "SCIClose sci_desc_t 0",
    ] {
        assert_eq!(player.answer(line), "OK", "{line}");
    }
}

#[test]
fn null_for_any_other_pointer_ends_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut player = prepared(place.path());
    let is_pointer = |kind: &str| kind.ends_with('*') && !is_place(kind);
    for (name, function, index) in each(is_pointer) {
        let line = line(&name, &function, index, "NULL");
        let answer = player.answer(&line);
        assert!(was_made(&answer), "{line}: {answer}");
    }
}

#[test]
fn flag_that_a_function_does_not_know_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut player = prepared(place.path());
    let exported = player::exported(installed());
    let facts = Facts::read();
    let values: BTreeMap<&str, i64> = facts.symbols().collect();
    let mut wrong = Vec::new();
    for (name, function) in &facts.functions {
        let Some(flags) =
            function.flags.as_ref().filter(|_| exported.contains(name) && function.gives_code())
        else {
            continue;
        };
        let known = flags.iter().map(|flag| values[flag.as_str()]).fold(0, core::ops::BitOr::bitor);
        for bit in (0..32).map(|bit| 1_i64 << bit).filter(|bit| known & bit == 0) {
            let call = with_flag(name, function, &format!("{bit:#x}"));
            let answer = player.answer(&call);
            if code(&answer) != "ILLEGAL_FLAG" {
                wrong.push(format!("{call}: {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn flag_that_a_function_knows_is_never_called_illegal() {
    let exported = player::exported(installed());
    let mut wrong = Vec::new();
    for (name, function) in Facts::read().functions.iter().filter(|(name, _)| exported.contains(name)) {
        for flag in function.flags.iter().flatten().filter(|_| function.gives_code()) {
            let place = tempfile::tempdir().unwrap();
            let mut player = prepared(place.path());
            let call = with_flag(name, function, flag);
            let answer = player.answer(&call);
            if !was_made(&answer) || code(&answer) == "ILLEGAL_FLAG" {
                wrong.push(format!("{call}: {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the manual says of things that are not there, as words.
fn said_to_be_absent() -> BTreeSet<String> {
    let header = std::fs::read_to_string(installed().prefix().join("include/sisci_api.h")).unwrap();
    let (_, rest) = header.split_once("\n * ABSENT.").unwrap();
    let (paragraph, _) = rest.split_once("\n *\n").unwrap();
    let words = paragraph.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.map(str::to_owned).collect()
}

/// Who reads the manual learns what is not there.
#[test]
fn manual_names_each_function_that_is_not_implemented() {
    let place = tempfile::tempdir().unwrap();
    let mut player = prepared(place.path());
    let exported = player::exported(installed());
    let facts = Facts::read();
    let comments: BTreeMap<String, String> = c::comments().collect();
    let mut absent = BTreeSet::new();
    for (name, function) in facts.functions.iter().filter(|(name, _)| exported.contains(name)) {
        // These take down what the others need.
        if !function.gives_code()
            || ["SCIClose", "SCIRemoveSegment", "SCIInitialize", "SCILDestroy"].contains(&name.as_str())
        {
            continue;
        }
        let answer = player.answer(&line(name, function, usize::MAX, ""));
        let code = code(&answer);
        if code == "NOT_IMPLEMENTED" {
            absent.insert(name.clone());
        }
        if code == "NOT_IMPLEMENTED" || (code == "NOT_SUPPORTED" && name != "SCIQuery") {
            assert!(!function.is_core, "{name} is complete by the table of facts, and answers {code}");
            let says = comments[name].contains(&format!("SCI_ERR_{code}"));
            assert!(says || is_of_devices(name), "{name} answers {code}");
        }
    }
    let said = said_to_be_absent();
    let named: BTreeSet<String> =
        said.into_iter().filter(|word| facts.functions.contains_key(word)).collect();
    assert_eq!(named, absent);
}

/// Whether a function is one of those of which `device.h` says at its top what they answer.
fn is_of_devices(name: &str) -> bool {
    let header = std::fs::read_to_string(installed().prefix().join("include/sisci_api/device.h")).unwrap();
    header.contains(&format!("#define {name} "))
}

#[test]
fn manual_names_each_flag_that_is_not_implemented() {
    let exported = player::exported(installed());
    let facts = Facts::read();
    let comments: BTreeMap<String, String> = c::comments().collect();
    let mut absent = BTreeSet::new();
    let place = tempfile::tempdir().unwrap();
    let mut player = prepared(place.path());
    // What takes down what the others need has no flag that is refused.
    let of = |name: &str| exported.iter().any(|exported| exported == name) && name != "SCIRemoveSegment";
    for (name, function) in facts.functions.iter().filter(|(name, _)| of(name)) {
        for flag in function.flags.iter().flatten().filter(|_| function.gives_code()) {
            let answer = player.answer(&with_flag(name, function, flag));
            if code(&answer) == "FLAG_NOT_IMPLEMENTED" {
                let comment = &comments[name];
                let as_another = comment.contains("lags: as ") || comment.contains("lags and errors: as ");
                let says = comment.contains("SCI_ERR_FLAG_NOT_IMPLEMENTED");
                assert!(as_another || says, "{name} does not say that it refuses {flag}");
                absent.insert(flag.clone());
            }
        }
    }
    let flags: BTreeSet<&str> = facts.symbols().map(|(name, _)| name).collect();
    let said = said_to_be_absent();
    let named: BTreeSet<String> = said.into_iter().filter(|word| flags.contains(word.as_str())).collect();
    assert_eq!(named, absent);
    let header = std::fs::read_to_string(installed().prefix().join("include/sisci_api/flags.h")).unwrap();
    // Memory of the program has a function of its own.
    for flag in absent.iter().filter(|flag| *flag != "SCI_FLAG_DMA_USER_MEM") {
        let (before, _) = header.split_once(&format!("#define {flag} ")).unwrap();
        let comment = before.rsplit("/**").next().unwrap();
        assert!(comment.contains("Not implemented."), "{flag}: {comment}");
    }
}

#[test]
fn before_initialize_and_after_terminate_each_function_says_so() {
    let place = tempfile::tempdir().unwrap();
    let mut player = Player::start((program(), Ground::Kernel), place.path(), "4");
    assert_eq!(player.answer("SCIOpen sd 0"), "NOT_INITIALIZED");
    let terminated = |player: &mut Player| {
        for (name, function, index) in
            each(is_handle).into_iter().filter(|(_, function, _)| function.gives_code())
        {
            let line = line(&name, &function, index, "wild");
            let answer = player.answer(&line);
            assert_eq!(code(&answer), "NOT_INITIALIZED", "{line}: {answer}");
        }
    };
    terminated(&mut player);
    assert_eq!(player.answer("SCIInitialize 0"), "OK");
    assert_eq!(player.answer("SCIOpen sd 0"), "OK");
    assert_eq!(player.answer("SCITerminate"), "done");
    terminated(&mut player);
    assert_eq!(player.answer("SCIClose sd 0"), "NOT_INITIALIZED");
}
