//! A program in C that makes the calls that a test tells it in lines (`player.h`): one call for each function of the table of facts.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::facts::{Facts, Function};
use super::ground::Ground;
use super::installed::Installed;
use super::{HERE, succeed};

/// Compiles the player as `compiler` does, with calls for the functions that the library has.
pub fn build(installed: &Installed, compiler: &[&str], name: &str) -> PathBuf {
    let exported = exported(installed);
    let facts = Facts::read();
    let has = |name: &str| exported.iter().any(|exported| exported == name);
    let mut text = String::new();
    for name in facts.function_names().filter(|name| has(name)) {
        writeln!(text, "#define HAS_{name} 1").unwrap();
    }
    text.push_str("#include \"player.h\"\n");
    for (name, function) in facts.functions.iter().filter(|(name, _)| has(name)) {
        text.push_str(&call(name, function, &facts));
    }
    text.push_str("const struct entry entries[] = {\n");
    for name in facts.function_names().filter(|name| has(name)) {
        writeln!(text, "  {{ \"{name}\", call_{name} }},").unwrap();
    }
    text.push_str("  { NULL, NULL }\n};\nconst struct constant constants[] = {\n");
    let enumerators = facts.enumerators().map(|(_, name, _)| name);
    for name in facts.values().map(|(name, _)| name).chain(enumerators) {
        writeln!(text, "  {{ \"{name}\", {name} }},").unwrap();
    }
    text.push_str("  { NULL, 0 }\n};\nconst struct constant codes[] = {\n  { \"SCI_ERR_OK\", 0 },\n");
    for (name, _) in facts.values().filter(|(name, _)| name.starts_with("SCI_ERR_")) {
        writeln!(text, "  {{ \"{name}\", {name} }},").unwrap();
    }
    text.push_str("  { NULL, 0 }\n};\n");
    let source = installed.prefix().join(format!("{name}.c"));
    std::fs::write(&source, text).unwrap();
    let tests = format!("-I{}", Path::new(HERE).join("tests").display());
    let own =
        ["-D_GNU_SOURCE", "-D_REENTRANT", "-fno-strict-aliasing", "-Wno-unused-function", "-pthread", &tests];
    let flags: Vec<&str> = compiler.iter().copied().chain(own).collect();
    installed.compile(&flags, source.to_str().unwrap(), name)
}

/// Functions that the library exports.
pub fn exported(installed: &Installed) -> Vec<String> {
    let library = installed.prefix().join("lib64/libsisci.so");
    let said = succeed(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library));
    said.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The function that makes a call of words.
fn call(name: &str, function: &Function, facts: &Facts) -> String {
    let mut text = format!("static void call_{name}(struct call *call)\n{{\n");
    let mut arguments = Vec::new();
    for (index, kind) in function.takes.iter().enumerate() {
        writeln!(text, "  {kind} a{index} = {};", reader(kind, index, function)).unwrap();
        arguments.push(format!("a{index}"));
    }
    if function.flags.is_some() {
        text.push_str("  unsigned int flags = (unsigned int)number(call);\n");
        arguments.push("flags".to_owned());
    }
    if function.has_error {
        arguments.push("code(call)".to_owned());
    }
    let made = format!("{name}({})", arguments.join(", "));
    let added = if function.has_error {
        "  add(call, call->no_error ? \"none\" : name_of_code(call->error));\n"
    } else {
        ""
    };
    match function.returns.as_str() {
        "sci_error_t" => writeln!(text, "  add(call, name_of_code({made}));").unwrap(),
        "void" => writeln!(text, "  {made};\n{added}").unwrap(),
        returns => {
            writeln!(text, "  {returns} given = {made};\n{added}").unwrap();
            text.push_str(&shown(returns, facts));
        }
    }
    if !function.has_error && function.returns == "void" {
        text.push_str("  add(call, \"done\");\n");
    }
    text.push_str("  finish(call);\n}\n");
    text
}

/// The expression that reads an argument of a type.
fn reader(kind: &str, index: usize, function: &Function) -> String {
    let callback = |name: &str| format!("has_callback(call) ? {name} : NULL");
    let after_callback = index > 0 && function.takes[index - 1].starts_with("sci_cb_");
    match kind {
        "unsigned int" | "size_t" | "sci_error_t" | "sci_ioaddr_t" | "dis_virt_adapter_t"
        | "unsigned long long" | "sci_dma_type_t" => format!("({kind})number(call)"),
        "unsigned int *" | "sci_error_t *" => "out_number(call)".to_owned(),
        "dis_virt_adapter_t *" => "out_number(call)".to_owned(),
        "size_t *" => "out_size(call)".to_owned(),
        "unsigned long long *" => "(unsigned long long *)or_null(call, &call->long_number)".to_owned(),
        "sci_ioaddr_t *" => "(sci_ioaddr_t *)or_null(call, &call->address)".to_owned(),
        "dis_nodeId_list_t *" => "(dis_nodeId_list_t *)or_null(call, &call->nodes)".to_owned(),
        "dis_dma_vec_t *" => "(dis_dma_vec_t *)or_null(call, vector)".to_owned(),
        "sci_address_t" => "{ 0, 0, (uint32_t)number(call) }".to_owned(),
        "const char *" => "(const char *)or_null(call, call->words[call->next])".to_owned(),
        "sci_cb_local_segment_t" => callback("on_local"),
        "sci_cb_remote_segment_t" => callback("on_remote"),
        "sci_cb_dma_t" => callback("on_dma"),
        "sci_cb_interrupt_t" => callback("on_interrupt"),
        "sci_cb_data_interrupt_t" => callback("on_data"),
        "sci_cb_block_transfer_t" => callback("on_block"),
        "void *" if after_callback => "label(call)".to_owned(),
        "void *" | "volatile void *" => "memory(call)".to_owned(),
        _ if kind.ends_with('*') => format!("({kind})place(call)"),
        _ => format!("({kind})handle(call)"),
    }
}

/// Statements that add what was returned to the answer.
fn shown(returns: &str, facts: &Facts) -> String {
    let names: Vec<_> = facts.enumerators().filter(|(kind, ..)| *kind == returns).collect();
    if names.is_empty() {
        return match returns {
            "const char *" => "  add(call, given ? given : \"NULL\");\n".to_owned(),
            _ if returns.ends_with('*') => "  add_pointer(call, given);\n".to_owned(),
            _ => "  add_number(call, (unsigned long long)given);\n".to_owned(),
        };
    }
    let mut text = "  switch ((int)given) {\n".to_owned();
    for (_, name, _) in names {
        let short = name.rsplit_once("SCI_CB_").map_or_else(|| name, |(_, short)| short);
        writeln!(text, "  case {name}: add(call, \"{short}\"); break;").unwrap();
    }
    text + "  default: add_number(call, (unsigned long long)given);\n  }\n"
}

/// Whether a player has made a call and lives: it answers `!` to words that it does not understand.
pub fn was_made(answer: &str) -> bool {
    !answer.starts_with("ended") && !answer.starts_with('!')
}

/// A player that runs.
pub struct Player {
    child: Child,
    ground: Ground,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Player {
    pub fn start((program, ground): (&Path, Ground), place: &Path, node: &str) -> Self {
        Player::of(ground.command(program, place, node), ground)
    }

    /// A player that is started by a command.
    pub fn of(mut command: Command, ground: Ground) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Player { child, ground, input, output }
    }

    /// What the player answers to a line; how it ended, if it has.
    pub fn answer(&mut self, line: &str) -> String {
        let input = self.input.as_mut().unwrap();
        // A player that has ended cannot be written to, and says so below.
        let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        let mut answer = String::new();
        let bytes = self.output.read_line(&mut answer).unwrap();
        match bytes {
            0 => format!("ended: {}", self.child.wait().unwrap()),
            _ => answer.trim_end().to_owned(),
        }
    }

    pub fn signal(&self, name: &str) {
        succeed(
            Command::new("kill")
                .args([&format!("-{name}"), &self.ground.process_id(&self.child).to_string()]),
        );
    }

    pub fn kill(mut self) {
        self.signal("KILL");
        self.child.wait().unwrap();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
