//! What files say, and what is wrong with others.

use super::*;

fn said(node: Option<&str>, memory: Option<&str>) -> Result<Said, ConfigError> {
    Said::new(node.map(OsString::from), memory.map(OsString::from))
}

fn read(text: &str, node: Option<&str>) -> Result<Configuration, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("beeline.toml");
    std::fs::write(&path, text).unwrap();
    let read = Configuration::of_file(&path, node.map(OsString::from));
    read.map_err(|error| error.to_string().replace(&*path.to_string_lossy(), "F"))
}

const TWO: &str = "node = 8\ndomain = \"lab\"\n\n[[nodes]]\nid = 4\nname = \"alpha\"\n\n[[nodes]]\nid = 8\nadapters = [0, 3]\n";

#[test]
fn file_says_which_nodes_there_are_and_the_environment_which_one_this_is() {
    let read_as =
        |node| read(TWO, node).map(|it| (it.fabric.node.0, it.fabric.adapters.len(), it.fabric.domain.name));
    assert_eq!(read_as(None), Ok((8, 2, "lab".to_owned())));
    assert_eq!(read_as(Some("4")), Ok((4, 1, "lab".to_owned())));
    let both = read(TWO, None).unwrap();
    assert_eq!(both.fabric.nodes, [NodeId(4), NodeId(8)]);
    assert_eq!(both.named[0].name.as_deref(), Some("alpha"));
    assert_eq!(read_as(Some("5")).unwrap_err(), "F:1: node = 5; it is none of `nodes`");
}

#[test]
fn nothing_said_is_node_4_with_one_adapter_and_all_numbers() {
    let of_environment = |node: Option<&str>| Configuration::of_environment(said(node, None).unwrap());
    let default = of_environment(None).unwrap().fabric;
    assert_eq!((default.node, default.adapters.len(), default.nodes.len()), (NodeId(4), 1, 251));
    assert_eq!(of_environment(Some(" 8\n")).unwrap().fabric.node, NodeId(8));
    for wrong in ["0", "252", "-4", "0x4", "", "4.0"] {
        let error = of_environment(Some(wrong)).unwrap_err().to_string();
        assert!(error.starts_with("BEELINE_NODE is "), "{error}");
    }
    assert_eq!(read("", None).unwrap().fabric.node, NodeId(4));
    let polls = ["", "polls = false", "polls = true"].map(|text| read(text, None).unwrap().polls);
    assert_eq!(polls, [false, false, true]);
    let terms = |text| read(text, None).unwrap().terms;
    assert_eq!(terms(""), Terms { huge_pages: false, locked: false, sysfs: PathBuf::from("/sys") });
    let all = "sysfs = \"/mnt/sys\"\n[memory]\nhuge_pages = true\nlocked = true";
    assert_eq!(terms(all), Terms { huge_pages: true, locked: true, sysfs: PathBuf::from("/mnt/sys") });
    assert_eq!(terms("memory.locked = true"), Terms { locked: true, ..Terms::default() });
    assert!(read("[memory]\nhuge = true", None).is_err());
    assert!(read("[sockets]\nspin = \"50us\"\nports = [80]", None).is_ok());
}

#[test]
fn lists_say_who_may_connect_to_which_segments_and_whose_nodes_are() {
    let nodes = "[[nodes]]\nid = 4\n[[nodes]]\nid = 8\nname = \"beta\"\nuser = 65532\nroot = \"/run/beta\"\n\
                 [[nodes]]\nid = 12\nuser = 65533\n";
    let access = "[access]\nnodes = [\"beta\", 12]\nusers = [\"root\", 65532]\n\
                  [[access.segments]]\nids = [7, 9]\nusers = [65533]\n[[access.segments]]\nids = [10]\n";
    let read = read(&format!("{nodes}{access}"), None).unwrap();
    let of = |id: u32| read.exports.of(beeline_fabric::SegmentId(id)).unwrap();
    assert_eq!(
        (of(1).nodes.as_deref(), &*of(1).users),
        (Some(&[NodeId(8), NodeId(12)][..]), &[0, 65532][..])
    );
    assert_eq!((&of(7).nodes, &*of(9).users), (&None, &[65533][..]));
    assert_eq!(of(10), &beeline_fabric::Access::default());
    assert_eq!(read.users.admitted, [0, 65532, 65533]);
    let theirs: Vec<_> = read
        .users
        .nodes
        .iter()
        .map(|node| (node.node.0, node.uid, node.domain.root.clone().unwrap(), &*node.domain.name))
        .collect();
    let [beta, other] = ["/run/beta", "/tmp/beeline-65533"].map(PathBuf::from);
    assert_eq!(theirs, [(8, 65532, beta, "default"), (12, 65533, other, "default")]);
    assert!(!read.fails_over);
}

#[test]
fn nothing_said_of_access_is_no_list_and_only_numbers_with_one_have_it() {
    let some =
        read("[[access.segments]]\nids = [7]\nnodes = []\n[adapters]\nfail_over = true", None).unwrap();
    let of = |id: u32| some.exports.of(beeline_fabric::SegmentId(id));
    assert_eq!((of(6), of(7).unwrap().nodes.as_deref()), (None, Some(&[][..])));
    assert!(some.fails_over && some.users.admitted.is_empty());
    assert_eq!(read("[access]", None).unwrap().exports, Exports::default());
}

#[test]
fn errors_of_lists_name_file_line_and_key() {
    let wrong = |text: &str| read(text, None).unwrap_err();
    let no_user = "no user of /etc/passwd has the name; a number is taken as it is";
    let no_node = "it is neither a number from 1 to 251 nor the name of one of `nodes`";
    assert_eq!(
        wrong("[access]\nusers = [0,\n\"no-one-is\"]"),
        format!("F:3: access.users = no-one-is; {no_user}")
    );
    assert_eq!(wrong("[access]\nnodes = [252]"), format!("F:2: access.nodes = 252; {no_node}"));
    assert_eq!(wrong("[access]\nnodes = [\"beta\"]"), format!("F:2: access.nodes = beta; {no_node}"));
    assert_eq!(
        wrong("[access]\ngroups = [\"no-group\"]"),
        "F:2: access.groups = no-group; /etc/group has no such group"
    );
    let segments = "[[access.segments]]\nids = [7]\n";
    assert_eq!(wrong(&format!("{segments}{segments}")), "F:4: access.segments.ids = 7; it is in two lists");
    assert_eq!(
        wrong(&format!("{segments}users = [\"no-one-is\"]")),
        format!("F:3: access.segments.users = no-one-is; {no_user}")
    );
    let nodes = "[[nodes]]\nid = 4\nuser = ";
    assert_eq!(wrong(&format!("{nodes}\"no-one-is\"")), format!("F:3: nodes.user = no-one-is; {no_user}"));
    assert_eq!(
        wrong(&format!("{nodes}65532")),
        "F:3: nodes.user = 65532; this process is of the node, and of another user"
    );
    assert!(wrong("[access]\nuser = [0]").contains("line 2"), "{}", wrong("[access]\nuser = [0]"));
}

#[test]
fn errors_name_file_line_and_key() {
    let wrong = |text: &str| read(text, None).unwrap_err();
    assert_eq!(wrong("\nnode = 300"), "F:2: node = 300; nodes have numbers from 1 to 251");
    let nodes = |rest: &str| wrong(&format!("[[nodes]]\nid = 4\nname = \"a\"\n[[nodes]]\n{rest}"));
    assert_eq!(nodes("id = 4"), "F:5: nodes.id = 4; two nodes have it");
    assert_eq!(nodes("id = 8\nname = \"a\""), "F:6: nodes.name = a; two nodes have it");
    assert_eq!(
        nodes("id = 8\nadapters = [0,\n16]"),
        "F:7: nodes.adapters = 16; adapters have numbers from 0 to 15"
    );
    assert!(wrong("nod = 4").contains("line 1"), "{}", wrong("nod = 4"));
}

#[test]
fn file_says_where_the_one_memory_is_and_how_it_is_made() {
    let memory = |text: &str| read(text, None).unwrap().one_memory;
    assert_eq!(memory(""), None);
    let path = PathBuf::from("/dev/shm/x");
    let least = OneMemory { path: path.clone(), members: 4, bytes: None, slot: None };
    assert_eq!(memory("[fabric]\nmemory = \"/dev/shm/x\""), Some(least));
    let all = "[fabric]\nmemory = \"/dev/shm/x\"\nmembers = 16\nbytes = 1048576\nslot = 15";
    let found = OneMemory { path, members: 16, bytes: Some(1 << 20), slot: Some(15) };
    assert_eq!(memory(all), Some(found));
}

#[test]
fn errors_of_the_one_memory_name_file_line_and_key() {
    let wrong = |rest: &str| read(&format!("[fabric]\nmemory = \"/x\"\n{rest}"), None).unwrap_err();
    assert_eq!(wrong("members = 1"), "F:3: fabric.members = 1; a memory has 2 to 16 members");
    assert_eq!(wrong("members = 17"), "F:3: fabric.members = 17; a memory has 2 to 16 members");
    assert!(wrong("bytes = 0").starts_with("F:3: fabric.bytes = 0; "), "{}", wrong("bytes = 0"));
    assert!(wrong("members = 2\nslot = 2").starts_with("F:4: fabric.slot = 2; "));
    assert!(wrong("entries = 64").contains("line 3"), "{}", wrong("entries = 64"));
    let no_path = read("\n[fabric]\nmemory = \"\"", None).unwrap_err();
    assert_eq!(no_path, "F:3: fabric.memory = \"\"; it is the path of a file or a BAR");
    let neither = read("\n[fabric]\nmembers = 4", None).unwrap_err();
    let why = "the table or BEELINE_FABRIC_MEMORY names the path of a file or a BAR";
    assert_eq!(neither, format!("F:2: fabric.memory = nothing; {why}"));
}

#[test]
fn environment_names_another_one_memory_than_the_file() {
    let memory = |text: &str, variable: Option<&str>| {
        let read = Configuration::of_text(Path::new("F"), text, said(None, variable)?);
        read.map(|read| read.one_memory.map(|memory| (memory.path, memory.members)))
    };
    let of_file = "[fabric]\nmemory = \"/x\"\nmembers = 2";
    assert_eq!(memory(of_file, None).unwrap(), Some((PathBuf::from("/x"), 2)));
    assert_eq!(memory(of_file, Some("/y")).unwrap(), Some((PathBuf::from("/y"), 2)));
    assert_eq!(memory("[fabric]\nmembers = 2", Some("/y")).unwrap(), Some((PathBuf::from("/y"), 2)));
    assert_eq!(memory("", Some("/y")).unwrap(), Some((PathBuf::from("/y"), 4)));
    let without_file = Configuration::of_environment(said(None, Some("/y")).unwrap()).unwrap();
    assert_eq!(without_file.one_memory.unwrap().path, PathBuf::from("/y"));
    assert!(matches!(memory("", Some("")), Err(ConfigError::NoPath)));
}

#[test]
fn keys_that_one_memory_does_not_keep_are_refused() {
    let memory = "[fabric]\nmemory = \"/x\"\n";
    for (key, text) in [
        ("access", "[access]\nnodes = [8]"),
        ("access", "[[access.segments]]\nids = [1]"),
        ("nodes.user", "[[nodes]]\nid = 4\n[[nodes]]\nid = 8\nuser = 65531"),
        ("memory.huge_pages", "[memory]\nhuge_pages = true"),
        ("memory.locked", "[memory]\nlocked = true"),
    ] {
        let why = read(&format!("{memory}{text}"), None).unwrap_err();
        assert!(why.starts_with(&format!("`{key}` is not for members that share /x: ")), "{why}");
        // The environment may name the memory, too.
        read(text, None).unwrap();
        let refused =
            Configuration::of_text(Path::new("F"), text, said(None, Some("/y")).unwrap()).unwrap_err();
        assert!(matches!(refused, ConfigError::NotOfOneMemory { .. }), "{refused}");
    }
}
