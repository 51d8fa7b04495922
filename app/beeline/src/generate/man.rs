//! A man page of a command: what `clap_mangen` writes of it, and what it has no section for: a synopsis with values,
//! examples as they are typed, files, environment and exit status.

use std::fmt::Write;
use std::io;

use clap::{Arg, ArgAction, Command};

/// What begins the examples in the text after a command's help, and what may stand before them.
const EXAMPLES: &str = "Examples:\n";

/// The man page of one command.
pub struct Page<'a> {
    command: &'a Command,
    /// The command as it is typed, `beeline kv get`.
    typed: String,
}

impl<'a> Page<'a> {
    /// The page of a command that has been built.
    pub fn new(command: &'a Command) -> Self {
        let typed = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
        Page { command, typed }
    }

    /// `beeline-kv-get.1`.
    pub fn file_name(&self) -> String {
        format!("{}.1", self.typed.replace(' ', "-"))
    }

    /// The page as roff.
    ///
    /// # Errors
    /// None, unless `clap_mangen` fails to write into memory.
    pub fn render(&self) -> io::Result<Vec<u8>> {
        let named = self.command.clone().display_name(self.typed.replace(' ', "-"));
        let page = clap_mangen::Man::new(named);
        let mut text = Vec::new();
        page.render_title(&mut text)?;
        page.render_name_section(&mut text)?;
        text.extend(section("SYNOPSIS", &self.synopsis()).bytes());
        page.render_description_section(&mut text)?;
        if self.command.get_arguments().any(|arg| !arg.is_hide_set()) {
            page.render_options_section(&mut text)?;
        }
        if self.command.has_subcommands() {
            page.render_subcommands_section(&mut text)?;
        }
        for (title, body) in self.own_sections() {
            text.extend(section(title, &body).bytes());
        }
        if self.command.get_version().is_some() {
            page.render_version_section(&mut text)?;
        }
        Ok(text)
    }

    /// Sections of which clap knows nothing, in the order of man-pages(7).
    fn own_sections(&self) -> Vec<(&'static str, String)> {
        let mut sections = vec![("EXIT STATUS", self.exit_status()), ("ENVIRONMENT", self.environment())];
        let mut files = String::new();
        if self.has("root") {
            files += FILES;
        }
        if self.is_run() || self.typed.starts_with("beeline sockets") {
            files += SOCKET_FILES;
        }
        if self.is_tuned() {
            files += TUNING_FILE;
        }
        if !files.is_empty() {
            sections.push(("FILES", files));
        }
        let after = self.command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (notes, examples) = after.split_once(EXAMPLES).unwrap_or((&after, ""));
        // Examples are indented; whatever follows them is text again.
        let is_example = |line: &&str| line.starts_with(' ') || line.is_empty();
        let typed: Vec<&str> = examples.lines().take_while(is_example).collect();
        let mut notes: Vec<&str> = notes.lines().chain(examples.lines().skip(typed.len())).collect();
        // A heading between examples is one of them.
        if notes.iter().any(|line| line.starts_with(' ')) {
            notes.retain(|line| !line.is_empty());
            sections.push(("EXAMPLES", as_typed(typed.iter().chain(&notes).copied())));
            return sections;
        }
        if notes.iter().any(|line| !line.is_empty()) {
            sections.push(("NOTES", notes.iter().map(|line| format!("{}\n", escape(line))).collect()));
        }
        if !typed.is_empty() {
            sections.push(("EXAMPLES", as_typed(typed.into_iter())));
        }
        sections
    }

    fn has(&self, id: &str) -> bool {
        self.command.get_arguments().any(|arg| arg.get_id() == id)
    }

    /// The command with its options, each with its value.
    fn synopsis(&self) -> String {
        let mut text = format!("\\fB{}\\fR", escape(&self.typed));
        let visible = || self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        for arg in visible().filter(|arg| !arg.is_positional()) {
            let name = match (arg.get_long(), arg.get_short()) {
                (Some(long), _) => format!("\\fB{}\\fR", escape(&format!("--{long}"))),
                (None, Some(short)) => format!("\\fB{}\\fR", escape(&format!("-{short}"))),
                (None, None) => continue,
            };
            let value = values(arg).map(|value| format!(" \\fI{}\\fR", escape(&value))).unwrap_or_default();
            let more =
                if matches!(arg.get_action(), ArgAction::Append | ArgAction::Count) { "..." } else { "" };
            let _ = match arg.is_required_set() {
                true => write!(text, "\n{name}{value}{more}"),
                false => write!(text, "\n[{name}{value}]{more}"),
            };
        }
        for arg in visible().filter(|arg| arg.is_positional()) {
            let value = format!("\\fI{}\\fR", escape(&values(arg).unwrap_or_default()));
            let _ =
                if arg.is_required_set() { write!(text, "\n{value}") } else { write!(text, "\n[{value}]") };
        }
        if self.command.has_subcommands() {
            text += "\n\\fICOMMAND\\fR";
        }
        text + "\n"
    }

    fn is_run(&self) -> bool {
        self.typed == "beeline run"
    }

    /// Whether it uses, or finds, what was timed.
    fn is_tuned(&self) -> bool {
        self.has("tune") || self.has("named")
    }

    fn exit_status(&self) -> String {
        if self.is_run() {
            return ".TP\nN\nThe exit code of the command; 128 and the number of the signal if one ended it, with \\fB\\-\\-why\\fR.\n\
                    .TP\n1\nIt could not be started with the library; standard error says what, why and what to do.\n\
                    .TP\n2\nThe command line is none.\n\
                    .TP\n126\nThe command may not be executed.\n.TP\n127\nThe command was not found.\n"
                .to_owned();
        }
        let mut text = ".TP\n0\nIt did what it was asked, or the reader of its output had seen enough.\n\
             .TP\n1\nIt failed; standard error says what, why and what to do.\n\
             .TP\n2\nThe command line is none.\n"
            .to_owned();
        if self.typed.ends_with("kv get") || self.typed.ends_with("kv delete") || self.typed.ends_with(" kv")
        {
            text += ".TP\n3\nNothing is stored under the key.\n";
        }
        text
    }

    fn environment(&self) -> String {
        let mut text = String::new();
        if self.has("root") || self.command.has_subcommands() {
            text += ".TP\n\\fBBEELINE_ROOT\\fR\nFolder of the domains where \\fB\\-\\-root\\fR names none, an absolute path, or \
                     \\fB@net\\fR for the network namespace; without it \\fI/tmp/beeline\\-UID\\fR.\n";
        }
        if self.has("memory") {
            text += ".TP\n\\fBBEELINE_FABRIC_MEMORY\\fR\nFile or BAR that members of the fabric share, where none of \\fB\\-\\-memory\\fR, \
                     \\fB\\-\\-domain\\fR and \\fB\\-\\-root\\fR is given.\n\
                     .TP\n\\fBBEELINE_CONFIG\\fR\nThe file that \\fImemory\\fR in the table \\fIfabric\\fR is read from where that names none; \
                     without it \\fI/etc/beeline.toml\\fR.\n";
        }
        if self.is_run() || self.typed.starts_with("beeline sockets") {
            text += SOCKET_VARIABLES;
        }
        if self.has("named") {
            text +=
                ".TP\n\\fBBEELINE_STORE_KERNEL\\fR\nStore kernel where \\fB\\-\\-kernel\\fR names none.\n";
        }
        if self.has("tune") {
            text += TUNING_VARIABLES;
        }
        if self.is_tuned() {
            text += ".TP\n\\fBXDG_CACHE_HOME\\fR\nAn absolute path: the folder that \\fIbeeline/tuning.json\\fR lies in; without it \
                     \\fI~/.cache\\fR.\n";
        }
        text += ".TP\n\\fBBEELINE_LOG\\fR\nWhich events are told on standard error, in place of \\fB\\-v\\fR: \
                 a level, or TARGET=LEVEL, several with commas.\n\
                 .TP\n\\fBNO_COLOR\\fR\nWhere it is set, nothing is coloured; nor is what goes to no terminal.\n";
        text
    }
}

/// What says which connections are accelerated.
const SOCKET_VARIABLES: &str = "\
.TP
\\fBBEELINE_CONFIG\\fR
The file whose table \\fIsockets\\fR has the rules; without it \\fI/etc/beeline.toml\\fR.
.TP
\\fBBEELINE_SOCKETS_\\fR\\fIKEY\\fR
A rule in place of the file's, the key in capitals: \\fBBEELINE_SOCKETS_SPIN=0\\fR.
.TP
\\fBBEELINE_SOCKETS_LIBRARY\\fR
The library that \\fBbeeline run\\fR preloads, where \\fB\\-\\-library\\fR names none.
.TP
\\fBBEELINE_SOCKETS_RULES\\fR, \\fBBEELINE_SOCKETS_RUN\\fR
What \\fBbeeline run\\fR passes on to its command: the rules, and the run that \\fB\\-\\-why\\fR reads.
";

/// What lies in a domain's folder of connections.
const SOCKET_FILES: &str = "\
.TP
\\fIDOMAIN/sockets/PID\\-NUMBER\\fR
In that folder: what a process counts of its connections. It removes the file when it ends; that of a killed one is removed by the next
that makes or reads one.
.TP
\\fIDOMAIN/sockets/down\\fR
It is there while \\fBbeeline sockets down\\fR holds.
";

/// Where processes meet, of every command that opens a domain.
const FILES: &str = "\
.TP
\\fI/tmp/beeline\\-UID/\\fR
Folder of the domains of the user UID: the first that is given of \\fB\\-\\-root\\fR, \\fBBEELINE_ROOT\\fR and this. Nothing else
decides, so a service and a login shell of one user meet. Where they do not share /tmp (PrivateTmp=, containers), mount one folder
in both and name it with \\fBBEELINE_ROOT\\fR; its path may differ, its user may not. Where they share a network namespace and no
folder, say \\fB@net\\fR in its place: nothing lies in a folder then. \\fB%u\\fR in its name stands for the uid. A folder that belongs to another user, or
that others may write to, is refused. With \\fB\\-\\-owner\\fR, UID is that owner: the folder must be the owner's, who offers with
\\fB\\-\\-allow\\-uid\\fR.
.TP
\\fIDOMAIN/NAME.sock\\fR, \\fIDOMAIN/NAME.lock\\fR
In that folder: where the owner of a name answers, and the lock by which it owns it. Those of an owner that has died are removed by
the next process that opens the domain.
.TP
\\fIprivate\\-*/\\fR
In that folder: the domain of one run. That of a killed run is removed by the next.
";

/// What stands in place of what was timed.
const TUNING_VARIABLES: &str = "\
.TP
\\fBBEELINE_STORE_KERNEL\\fR
Store kernel of every window that this user's programs store into, whatever was timed.
.TP
\\fBBEELINE_TUNING\\fR
How receivers look at their windows, any of these with commas between: \\fBprefetch=\\fR with \\fBnone\\fR,
\\fBread:\\fR\\fILINES\\fR or \\fBwrite:\\fR\\fILINES\\fR ahead; \\fBgroup=1\\fR or \\fBgroup=8\\fR lines tested together;
\\fBcredits=\\fR\\fIN\\fR, pushed for each Nth of the window; \\fBdefault\\fR, which leaves out what was timed.
";

/// Where what was timed is kept.
const TUNING_FILE: &str = "\
.TP
\\fI~/.cache/beeline/tuning.json\\fR
What was timed on this machine, for each placement of two cores: store kernels, and how windows are received from. It is made anew
where it is missing, a month old, broken, of another machine, or open to other users; it may be removed at any time.
\\fBbeeline doctor\\fR shows what is in it.
";

/// The values of an option as its help names them; `None` of one that takes none.
fn values(arg: &Arg) -> Option<String> {
    if !arg.get_action().takes_values() {
        return None;
    }
    let names = arg.get_value_names().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
    Some(names.map_or_else(|| arg.get_id().to_string().to_uppercase(), |names| names.join(" ")))
}

fn section(title: &str, body: &str) -> String {
    format!(".SH \"{title}\"\n{body}")
}

/// Lines that are not filled.
fn as_typed<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: String = lines.map(|line| format!("{}\n", escape(line))).collect();
    format!(".nf\n{lines}.fi\n")
}

/// Text as roff prints it: no escape, no hyphen that is a minus, no request at the beginning of a line.
fn escape(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};

    use super::*;

    fn page() -> String {
        let mut command = Command::new("beeline").version("1").subcommand(
            Command::new("try")
                .about("Try it")
                .arg(Arg::new("root").long("root").value_name("DIR"))
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue))
                .arg(Arg::new("secret").long("secret").hide(true))
                .arg(Arg::new("input").value_name("IN").required(true))
                .after_help("Examples:\n  beeline try a    first\n  beeline try b    second\n\nMore is in the manual."),
        );
        command.build();
        let below = command.find_subcommand("try").unwrap();
        let page = Page::new(below);
        assert_eq!(page.file_name(), "beeline-try.1");
        String::from_utf8(page.render().unwrap()).unwrap()
    }

    #[test]
    fn page_has_examples_as_they_are_typed_and_values_in_its_synopsis() {
        let page = page();
        let examples = ".SH \"EXAMPLES\"\n.nf\n  beeline try a    first\n  beeline try b    second\n";
        assert!(page.contains(examples) && page.contains(".SH \"NOTES\"\n"), "{page}");
        assert!(page.contains("\n[\\fB\\-\\-root\\fR \\fIDIR\\fR]\n[\\fB\\-\\-json\\fR]\n"), "{page}");
        assert!(page.contains("\n\\fIIN\\fR\n") && !page.contains("secret"), "{page}");
    }

    #[test]
    fn page_has_files_environment_and_exit_status() {
        let page = page();
        for words in
            [".SH \"EXIT STATUS\"", ".SH \"ENVIRONMENT\"", "BEELINE_ROOT", ".SH \"FILES\"", "NAME.sock"]
        {
            assert!(page.contains(words), "no {words}: {page}");
        }
    }

    #[test]
    fn roff_takes_no_line_for_a_request() {
        assert_eq!(escape(".SH \\x -a"), "\\&.SH \\ex \\-a");
    }
}
