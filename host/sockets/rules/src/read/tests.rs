//! Files and variables, and what is wrong with others.

use proptest::prelude::*;

use super::*;
use crate::{Retain, Spin};

fn file(text: &str) -> Result<Rules, String> {
    Rules::of_text(Path::new("F"), text).map_err(|error| error.to_string())
}

fn variables(pairs: &[(&str, &str)]) -> Result<Rules, String> {
    let pairs = pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Rules::of(pairs, Path::new("/no such file")).map_err(|error| error.to_string())
}

#[test]
fn table_of_the_file_is_read_and_tables_of_others_are_not() {
    let text = "node = 4\ndomain = \"lab\"\n[fabric]\nmembers = \"odd\"\n[sockets]\nspin = \"forever\"\n\
                ports = [80, \"8000-8999\"]\nwindow_bytes = 0x2000\naccelerate = false\nudp = true\nother_users = true\nretain = \"copy\"\n";
    let rules = file(text).unwrap();
    assert_eq!((rules.spin, rules.retain, rules.window_bytes), (Spin::Forever, Retain::Copy, 8192));
    assert_eq!((rules.accelerate, rules.udp, rules.other_users, &*rules.domain), (false, true, true, "lab"));
    assert_eq!([80, 81, 8500].map(|port| rules.ports.have(port)), [true, false, true]);
    assert_eq!(file("sockets.domain = \"own\"\ndomain = \"lab\"\n").unwrap().domain, "own");
    assert_eq!(file("").unwrap(), Rules::default());
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line_and_the_nearest_name() {
    let wrong = [
        ("[sockets]\n\nspn = \"1us\"\n", "F:3: there is no key `spn`; `spin` is the nearest"),
        ("[sockets]\nqqq = 1\n", "F:2: there is no key `qqq`"),
        (
            "node = 4\n[socket]\nspin = 0\n",
            "F:2: there is no table or key `socket`; `sockets` is the nearest",
        ),
        ("sockets = 7\n", "F:1: `sockets` is a table: write [sockets], and the rules below it"),
        ("[sockets]\nretain = [\"copy\"]\n", "F:2: retain = [\"copy\"]; it is one value, and no list"),
        ("[sockets]\nspin = 1.5\n", "F:2: spin = \"1.5\"; `1.5` is no time up to 60 s"),
        ("[sockets]\nports = { a = 1 }\n", "F:2: ports = \"a table\"; `a table` is no port"),
    ];
    for (text, error) in wrong {
        assert!(file(text).unwrap_err().starts_with(error), "{}", file(text).unwrap_err());
    }
    assert!(file("[sockets\n").unwrap_err().starts_with("F: "));
    let absent = Rules::of_file(Path::new("/no such file")).unwrap_err().to_string();
    assert!(absent.starts_with("cannot read /no such file: "), "{absent}");
}

#[test]
fn variables_come_before_the_file_and_before_what_was_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("beeline.toml");
    std::fs::write(&path, "[sockets]\nspin = \"1ms\"\nretain = \"copy\"\n").unwrap();
    let path = path.to_str().unwrap();
    let read = variables(&[("BEELINE_SOCKETS_SPIN", "0"), ("BEELINE_CONFIG", path)]).unwrap();
    assert_eq!((read.spin.to_string(), read.retain), ("0ns".to_owned(), Retain::Copy));
    let resolved = read.resolved();
    let both = [("BEELINE_CONFIG", "/no such file"), (RESOLVED_VARIABLE, &resolved)];
    assert_eq!(variables(&both).unwrap(), read);
    let more = [("BEELINE_SOCKETS_RETAIN", "none"), (RESOLVED_VARIABLE, &resolved)];
    assert_eq!(variables(&more).unwrap(), Rules { retain: Retain::None, ..read });
    assert_eq!(variables(&[]).unwrap(), Rules::default());
}

#[test]
fn what_is_wrong_with_variables_is_said_with_their_names() {
    let wrong = [
        ("BEELINE_SOCKETS_SPINS", "0", "the variable BEELINE_SOCKETS_SPINS: there is no key `spins`; `spin`"),
        ("BEELINE_SOCKETS_SPIN", "x", "the variable BEELINE_SOCKETS_SPIN: spin = \"x\"; `x` is no time"),
        (RESOLVED_VARIABLE, "{", "the variable BEELINE_SOCKETS_RULES is not what `beeline run` makes: "),
        (RESOLVED_VARIABLE, "[]", "the variable BEELINE_SOCKETS_RULES is not what `beeline run` makes: "),
        (RESOLVED_VARIABLE, "{\"log\":[1]}", "the variable BEELINE_SOCKETS_RULES is not what"),
        (RESOLVED_VARIABLE, "{\"log\":1}", "the variable BEELINE_SOCKETS_RULES: log = \"1\"; it is one of"),
    ];
    for (name, value, error) in wrong {
        let found = variables(&[(name, value)]).unwrap_err();
        assert!(found.starts_with(error), "{found}");
    }
    for name in [RUN_VARIABLE, LIBRARY_VARIABLE, "BEELINE_ROOT", "SPIN"] {
        assert_eq!(variables(&[(name, "anything")]).unwrap(), Rules::default());
    }
}

#[test]
fn variables_that_give_rules_are_told_from_others() {
    let is = |name: &str| is_rule(OsStr::new(name));
    assert!(is("BEELINE_SOCKETS_SPIN") && is(RESOLVED_VARIABLE));
    assert!(!is(RUN_VARIABLE) && !is(LIBRARY_VARIABLE) && !is("BEELINE_ROOT") && !is("PATH"));
}

#[test]
fn filters_are_worked_under_where_a_variable_says_so() {
    let works = |variables: &[(&str, &str)]| {
        works_under_filter(variables.iter().map(|(name, value)| (name.into(), value.into())))
    };
    let resolved = |under_filter| Rules { under_filter, ..Rules::default() }.resolved();
    let own = "BEELINE_SOCKETS_UNDER_FILTER";
    assert!(works(&[(own, "true")]) && works(&[(RESOLVED_VARIABLE, &resolved(true))]));
    assert!(works(&[(RESOLVED_VARIABLE, &resolved(false)), (own, "true")]));
    for variables in [
        &[][..],
        &[(own, "1")],
        &[(own, "false"), (RESOLVED_VARIABLE, &resolved(true))],
        &[(RESOLVED_VARIABLE, &resolved(false))],
        &[(RESOLVED_VARIABLE, "under_filter"), ("UNDER_FILTER", "true")],
    ] {
        assert!(!works(variables), "{variables:?}");
    }
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let ports = prop::collection::vec((any::<u16>(), any::<u16>()), 0..4);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<u32>());
    (flags, ports, any::<[u64; 2]>(), any::<u32>(), 12..=17u32).prop_map(
        |(flags, ports, bytes, net, window)| {
            let (accelerate, copies, forever, messages) = flags;
            let mut rules = Rules {
                accelerate,
                udp: !forever,
                other_users: !copies,
                begin_after_messages: messages,
                ..Rules::default()
            };
            let list: Vec<_> = ports.iter().map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))).collect();
            rules.set_option("never_ports", &list.join(",")).unwrap();
            rules.set_option("addresses", &std::net::Ipv4Addr::from(net).to_string()).unwrap();
            rules.set_option("hosts", if copies { "10.77.0.0/24,fd77::/64" } else { "" }).unwrap();
            rules.set_option("programs", "a*,/usr/bin/[b-d]?").unwrap();
            rules.set_option("retain", if copies { "copy" } else { "none" }).unwrap();
            rules.set_option("spin", if forever { "forever" } else { "7us" }).unwrap();
            (rules.memory_bytes, rules.begin_after_bytes, rules.window_bytes) =
                (bytes[0], bytes[1], 1 << window);
            rules
        },
    )
}

proptest! {
    #[test]
    fn resolved_rules_are_the_same_rules(rules in any_rules()) {
        prop_assert_eq!(Rules::of_resolved(&rules.resolved()).unwrap(), rules);
    }

    #[test]
    fn no_text_ends_the_program(text in "\\PC{0,80}", key in 0..KEYS.len()) {
        let _ = Rules::of_text(Path::new("F"), &text);
        let _ = Rules::of_text(Path::new("F"), &format!("[sockets]\n{} = {text}\n", KEYS[key].name));
        let _ = Rules::of_resolved(&text);
        let _ = Rules::default().set_option(KEYS[key].name, &text);
    }
}
