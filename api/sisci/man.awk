# Makes a man page of each function of the headers, from its comment, one of each enumeration, structure and callback, and sisci.7 from
# what sisci_api.h says of all of them.
#
#   awk -v out=SHARE_MAN -v version=VERSION -f man.awk include/sisci_error.h include/sisci_types.h include/sisci_api/flags.h \
#     include/sisci_api.h PARTS...
#
# A comment is a first sentence, paragraphs, `@param`, `@return`, and paragraphs that begin with Flags:, Errors:, States: or Ordering:.
# What a flag or a code means is said in its own comment, which must come first; types come before functions that name them.

function is_start(line) { return line ~ /^\/\*\*/ }

# The text of a line of a comment.
function text_of(line) {
    sub(/^\/\*\*/, "", line)
    sub(/ *\*\/ *$/, "", line)
    sub(/^ \* ?/, "", line)
    sub(/^ \*$/, "", line)
    return line
}

# Of a type, a page. Comments inside it stay where they are.
!inside && comment != "" && (/^typedef (enum|struct) \{/ || /^typedef .*\(\*[a-z_]+\)\(/) { of_type = ""; in_type = 1 }
in_type {
    of_type = of_type (of_type == "" ? "" : "\n") $0
    if ($0 ~ /^\}/ || (of_type !~ /\{/ && $0 ~ /;$/)) { in_type = 0; type_page(); comment = "" }
    next
}

is_start($0) { comment = ""; inside = 1 }

inside {
    line = text_of($0)
    sub(/^ /, "", line)
    comment = comment (comment == "" ? "" : "\n") (FILENAME ~ /sisci_api\.h$/ ? text_of($0) : line)
    if ($0 ~ /\*\/ *$/) { inside = 0; ended() }
    next
}

# Of a constant, its meaning.
/^#define SCIL?_/ && comment != "" { meaning[$2] = flat(comment); comment = ""; next }
/^#/ { next }

# Of a function, a page.
comment != "" && /^[a-z].*[(,]/ && $1 != "typedef" { declaration = $0; collecting = 1 }
collecting {
    if (declaration != $0) declaration = declaration "\n" $0
    if ($0 ~ /;$/) { collecting = 0; page(); comment = "" }
}

function ended() {
    if (comment ~ /@file sisci_api\.h/) { overview(); comment = "" }
    else if (comment ~ /@file/) {
        # What the header says of all its functions.
        notes = comment
        sub(/^\n*@file [^\n]*\n/, "", notes)
        comment = ""
    }
}

function flat(text) { gsub(/\n/, " ", text); gsub(/  +/, " ", text); sub(/^ /, "", text); sub(/ $/, "", text); return text }

function first_sentence(text,    end) {
    text = flat(text)
    end = match(text, /\.( |$)|:( |$)/)
    return end ? substr(text, 1, end - 1) : text
}

function head(name, section, what,    file) {
    file = out "/man" section "/" name "." section
    printf ".TH %s %s \"\" \"libsisci %s\" \"SISCI\"\n.ad l\n.nh\n.SH NAME\n%s \\- %s\n", name, section, version, name, what > file
    return file
}

function overview(    file, lines, count, at, line, rest) {
    file = head("sisci", 7, "memory of one program that others write with plain stores")
    print ".SH SYNOPSIS\n.nf\n#include <sisci_api.h>\n.fi\n\nLink with \\-lsisci.\n.SH DESCRIPTION" > file
    count = split(comment, lines, "\n")
    for (at = 1; at <= count; at++) {
        line = lines[at]
        if (line ~ /@file/) continue
        if (line ~ /^    /) { print ".nf\n" line "\n.fi" > file; continue }
        if (match(line, /^[A-Z]+[.]? /) && RLENGTH > 4) {
            rest = substr(line, RLENGTH + 1)
            sub(/[. ].*/, "", line)
            print ".SS " line > file
            line = rest
        }
        print (line == "" ? ".PP" : line) > file
    }
    close(file)
}

function page(    name, file, rest, lines, count, at, line, where, parts) {
    name = declaration
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    split("", parts)
    # Where a comment of one line says it all.
    rest = comment
    gsub(/ Errors:/, "\nErrors:", rest)
    gsub(/ Flags:/, "\nFlags:", rest)
    count = split(rest, lines, "\n")
    where = "DESCRIPTION"
    for (at = 1; at <= count; at++) {
        line = lines[at]
        if (line ~ /^@param /) { where = "PARAMETERS"; sub(/^@param +/, ".TP\n", line); line = parameter(line) }
        else if (line ~ /^@return /) { where = "RETURN VALUE"; sub(/^@return +/, "", line) }
        else if (line ~ /^Flags and errors:/) { where = "FLAGS AND ERRORS"; sub(/^[^:]*: */, "", line) }
        else if (line ~ /^Flags:/) { where = "FLAGS"; sub(/^[^:]*: */, "", line) }
        else if (line ~ /^Errors[^:]*:/) { where = "ERRORS"; sub(/^[^:]*: */, "", line) }
        else if (line ~ /^States:/) { where = "STATES"; sub(/^[^:]*: */, "", line) }
        else if (line ~ /^Ordering:/) { where = "ORDERING"; sub(/^[^:]*: */, "", line) }
        else if (line == "") where = "DESCRIPTION"
        parts[where] = parts[where] line "\n"
    }
    file = head(name, 3, first_sentence(comment))
    print ".SH SYNOPSIS\n.nf\n#include <" (FILENAME ~ /scilib\.h$/ ? "scilib.h" : "sisci_api.h") ">\n\n" declaration "\n.fi\n\nLink with \\-lsisci." > file
    section(file, "DESCRIPTION", parts)
    section(file, "PARAMETERS", parts)
    section(file, "RETURN VALUE", parts)
    section(file, "FLAGS", parts)
    meanings(file, parts["FLAGS"], "SCIL?_FLAG_")
    section(file, "FLAGS AND ERRORS", parts)
    section(file, "ERRORS", parts)
    if (declaration ~ /sci_error_t (\*error|SCIL)/ && (parts["ERRORS"] == "" || parts["ERRORS"] ~ /SCI_ERR_/)) {
        print (parts["ERRORS"] == "" ? ".SH ERRORS" : ".PP") > file
        print "Codes beside those that\n.BR sisci (7)\nnames for every function:" > file
        meanings(file, parts["ERRORS"] (parts["ERRORS"] == "" ? " SCI_ERR_ILLEGAL_PARAMETER" : ""), "SCI_ERR_")
    }
    section(file, "STATES", parts)
    section(file, "ORDERING", parts)
    parts["NOTES"] = notes
    section(file, "NOTES", parts)
    see_also(file, declaration "\n" comment, "")
    close(file)
}

function type_page(    name, file, parts) {
    name = of_type
    if (name ~ /\{/) { sub(/.*\} */, "", name); sub(/;.*/, "", name) }
    else { sub(/^[^*]*\(\*/, "", name); sub(/\).*/, "", name) }
    has_page[name] = 1
    file = head(name, 3, first_sentence(comment))
    print ".SH SYNOPSIS\n.nf\n#include <sisci_api.h>\n\n" of_type "\n.fi" > file
    split("", parts)
    parts["DESCRIPTION"] = comment "\n"
    section(file, "DESCRIPTION", parts)
    if (of_type ~ /\(\*/) print ".PP\nWhat a callback may do, and on which thread it runs:\n.BR sisci (7),\nCALLBACKS." > file
    see_also(file, of_type, name)
    close(file)
}

# The pages that a page names.
function see_also(file, text, but,    name) {
    print ".SH SEE ALSO\n.BR sisci (7)" > file
    for (name in has_page)
        if (name != but && match(text, "(^|[^a-z_])" name "([^a-z_]|$)")) print ".br\n.BR " name " (3)" > file
}

# A paragraph of a parameter: its name, then what it is.
function parameter(line,    space) {
    sub(/^\.TP\n/, "", line)
    space = match(line, / +/)
    return ".TP\n.I " substr(line, 1, space - 1) "\n" substr(line, space + RLENGTH)
}

function section(file, name, parts,    text) {
    text = parts[name]
    gsub(/\n +/, "\n", text)
    gsub(/\n\n+/, "\n.PP\n", text)
    sub(/(\n|\.PP)+$/, "", text)
    sub(/^\n*(\.PP)?\n*/, "", text)
    if (text != "") print ".SH " name "\n" text > file
}

# Each constant of a text, once, with its meaning.
function meanings(file, text, prefix,    name, seen) {
    split("", seen)
    while (match(text, prefix "[A-Z0-9_]+")) {
        name = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (name in meaning && !(name in seen)) {
            seen[name] = 1
            print ".TP\n.B " name "\n" meaning[name] > file
        }
    }
}
