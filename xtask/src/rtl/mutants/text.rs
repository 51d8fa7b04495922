//! SystemVerilog as the mutation operators see it: tokens with their places, and which of them are logic.
//!
//! No parser: what the house's style writes is enough. Logic is what becomes hardware: no comments, strings and
//! attributes, nothing between `` `ifdef `` or `` `ifndef `` and `` `endif ``, no declarations and parameters, no conditions of
//! generate blocks, no loop headers, no ranges and sizes, and nothing that only an `unused` signal takes.

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name or a keyword.
    Word,
    /// A number, with its base if it has one, `'0` and `'1` too.
    Number,
    /// An operator or a bracket.
    Sign,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    /// Start of the token, in bytes.
    pub at: usize,
    pub kind: Kind,
    /// Number of brackets that stand open around the token.
    pub depth: usize,
    pub is_logic: bool,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// Signs of more than one character, longest first.
const LONG_SIGNS: [&str; 26] = [
    "<<<=", ">>>=", "<<<", ">>>", "===", "!==", "<<=", ">>=", "==?", "!=?", "&&", "||", "==", "!=", "<=",
    ">=", "<<", ">>", "+:", "-:", "::", "++", "--", "->", "=>", "'{",
];

/// Every token of the text, those of no logic too.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = lexed(text);
    let mut depth = 0;
    for token in &mut tokens {
        if matches!(token.text, ")" | "]" | "}") {
            depth = usize::saturating_sub(depth, 1);
        }
        token.depth = depth;
        if matches!(token.text, "(" | "[" | "{" | "'{") {
            depth += 1;
        }
    }
    exclude_declarations(&mut tokens);
    exclude_generate(&mut tokens);
    exclude_ranges(&mut tokens, text);
    exclude_sinks(&mut tokens);
    tokens
}

fn lexed(text: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut at, mut conditions) = (Vec::new(), 0, 0_usize);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            _ if rest.starts_with("//") || first == '`' => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ if rest.starts_with("(*") && !rest.starts_with("(*)") => {
                rest.find("*)").map_or(rest.len(), |end| end + 2)
            }
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            _ if first.is_whitespace() => first.len_utf8(),
            _ => {
                let (kind, length) = token(rest);
                let is_logic = conditions == 0;
                tokens.push(Token { text: &rest[..length], at, kind, depth: 0, is_logic });
                length
            }
        };
        match rest {
            _ if rest.starts_with("`ifdef") || rest.starts_with("`ifndef") => conditions += 1,
            _ if rest.starts_with("`endif") => conditions = conditions.saturating_sub(1),
            _ => {}
        }
        at += length;
    }
    tokens
}

/// Kind and length of the token that the text begins with.
fn token(rest: &str) -> (Kind, usize) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    let run = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let first = rest.chars().next().unwrap_or(' ');
    if first.is_ascii_digit() {
        let digits = run(rest);
        let based =
            rest[digits..].strip_prefix('\'').filter(|base| base.starts_with(|c: char| c.is_alphabetic()));
        return (Kind::Number, based.map_or(digits, |base| digits + 1 + run(base)));
    }
    if is_word(first) {
        return (Kind::Word, run(rest));
    }
    if rest.starts_with("'0") || rest.starts_with("'1") {
        return (Kind::Number, 2);
    }
    let long = LONG_SIGNS.iter().find(|sign| rest.starts_with(**sign));
    (Kind::Sign, long.map_or(first.len_utf8(), |sign| sign.len()))
}

/// Words that begin what declares and makes no logic.
const DECLARATIONS: [&str; 18] = [
    "module",
    "package",
    "import",
    "parameter",
    "localparam",
    "typedef",
    "logic",
    "genvar",
    "int",
    "wire",
    "function",
    "input",
    "output",
    "integer",
    "assert",
    "assume",
    "$fatal",
    "$error",
];

/// From a word of [`DECLARATIONS`] to the semicolon behind it, and the parameters of an instance.
fn exclude_declarations(tokens: &mut [Token<'_>]) {
    let mut declares = None;
    let mut parameters = None;
    for at in 0..tokens.len() {
        let token = tokens[at];
        let begins = at == 0
            || matches!(tokens[at - 1].text, ";" | "begin" | "end" | "endfunction" | "endcase")
            || at > 2 && tokens[at - 2].text == ":" && tokens[at - 3].text == "begin";
        if declares.is_none() && begins && DECLARATIONS.contains(&token.text) {
            declares = Some(token.depth);
        }
        // A name in front of its first port: a named type that declares.
        if token.text == "#" && tokens.get(at + 1).is_some_and(|next| next.text == "(") {
            parameters = Some(token.depth);
        }
        if declares.is_some() || parameters.is_some() {
            tokens[at].is_logic = false;
        }
        if token.text == ";" && declares == Some(token.depth) {
            declares = None;
        }
        if token.text == ")" && parameters == Some(token.depth) {
            parameters = None;
        }
    }
}

/// The condition of an `if` whose block has a name that begins with `g_`, and the header of every `for`.
fn exclude_generate(tokens: &mut [Token<'_>]) {
    for at in 0..tokens.len() {
        if !matches!(tokens[at].text, "if" | "for") {
            continue;
        }
        let Some(close) = closing(tokens, at + 1) else { continue };
        let follows = |offset: usize, text: &str| {
            tokens.get(close + offset).is_some_and(|next| next.text.starts_with(text))
        };
        let is_generate = follows(1, "begin") && follows(2, ":") && follows(3, "g_");
        if is_generate || tokens[at].text == "for" {
            tokens[at..=close].iter_mut().for_each(|token| token.is_logic = false);
        }
    }
}

/// Brackets that hold a range, with a colon that is no part of a choice, or the size of a cast.
fn exclude_ranges(tokens: &mut [Token<'_>], text: &str) {
    for at in 0..tokens.len() {
        let Some(close) = closing(tokens, at) else { continue };
        let inside = &tokens[at..close];
        let has = |text: &str| inside.iter().any(|token| token.text == text);
        let is_range = tokens[at].text == "[" && (has(":") || has("+:") || has("-:")) && !has("?");
        let is_size = tokens[at].text == "(" && text[tokens[close].end()..].starts_with('\'');
        if is_range || is_size {
            tokens[at..=close].iter_mut().for_each(|token| token.is_logic = false);
        }
    }
}

/// What is given to a signal whose name begins with `unused`: nobody reads it.
fn exclude_sinks(tokens: &mut [Token<'_>]) {
    let mut in_sink = false;
    for at in 0..tokens.len() {
        let begins = tokens[at].text == "assign"
            && tokens.get(at + 1).is_some_and(|next| next.text.starts_with("unused"));
        in_sink |= begins;
        tokens[at].is_logic &= !in_sink;
        in_sink &= tokens[at].text != ";";
    }
}

/// The bracket that closes the one at `open`.
pub fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let depth = tokens.get(open).filter(|token| matches!(token.text, "(" | "[" | "{" | "'{"))?.depth;
    let behind = tokens[open + 1..].iter().position(|token| token.depth <= depth)?;
    Some(open + 1 + behind)
}

/// The index of the last token of the statement that begins at `at`.
pub fn statement_end(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let first = tokens.get(at)?;
    let through = |opens: &[&str], closes: &str| {
        let mut open = 0_usize;
        tokens[at..].iter().position(|token| {
            open += usize::from(opens.contains(&token.text));
            open -= usize::from(token.text == closes);
            open == 0
        })
    };
    match first.text {
        "begin" => through(&["begin"], "end").map(|length| at + length),
        "unique" | "priority" => statement_end(tokens, at + 1),
        "case" => through(&["case"], "endcase").map(|length| at + length),
        "if" => {
            let then = statement_end(tokens, closing(tokens, at + 1)? + 1)?;
            match tokens.get(then + 1) {
                Some(next) if next.text == "else" => statement_end(tokens, then + 2),
                _ => Some(then),
            }
        }
        _ => tokens[at..].iter().position(|token| token.text == ";").map(|length| at + length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logic(text: &str) -> String {
        let tokens = tokens(text);
        let kept: Vec<&str> = tokens.iter().filter(|token| token.is_logic).map(|token| token.text).collect();
        kept.join(" ")
    }

    #[test]
    fn comments_strings_attributes_and_assertions_are_no_logic() {
        assert_eq!(logic("a // b && c\n/* d || e */ f \"g == h\" (* i = 1 *) j"), "a f j");
        assert_eq!(logic("a\n`ifndef SYNTHESIS\n b <= 1'b0;\n`ifdef X\n c\n`endif\n d\n`endif\n e"), "a e");
        assert_eq!(logic("`default_nettype none\nx"), "x");
    }

    #[test]
    fn declarations_parameters_ranges_and_generate_conditions_are_no_logic() {
        assert_eq!(
            logic("module m #(parameter int A = 1) (input logic a);\nassign x = y;"),
            "assign x = y ;"
        );
        assert_eq!(logic("typedef struct packed { logic a; logic b; } s_t; assign x = y;"), "assign x = y ;");
        assert_eq!(
            logic("fifo #(.Depth(A + 1)) u_fifo (.a_i(b && c));"),
            "fifo u_fifo ( . a_i ( b && c ) ) ;"
        );
        assert_eq!(logic("if (A > 1) begin : g_bad x = y; end"), "begin : g_bad x = y ; end");
        assert_eq!(logic("if (A > 1) begin : g_bad $fatal(1, \"no\"); end"), "begin : g_bad end");
        assert_eq!(logic("if (a > b) x[3:0] = y[i+1];"), "if ( a > b ) x = y [ i + 1 ] ;");
        assert_eq!(logic("assign unused_a = ^{b, c}; assign d = e;"), "assign d = e ;");
        assert_eq!(logic("x = (W + 1)'(a);"), "x = ' ( a ) ;");
        assert_eq!(logic("for (int i = 0; i < N; i++) x = y;"), "x = y ;");
    }

    #[test]
    fn numbers_have_their_base_and_depth_counts_brackets() {
        let text = "x = {3'd5, '0, 8'(a)};";
        let found = tokens(text);
        let numbers: Vec<&str> =
            found.iter().filter(|token| token.kind == Kind::Number).map(|token| token.text).collect();
        assert_eq!(numbers, ["3'd5", "'0", "8"]);
        assert_eq!(found.iter().find(|token| token.text == "a").unwrap().depth, 2);
        let open = found.iter().position(|token| token.text == "{").unwrap();
        assert_eq!(found[closing(&found, open).unwrap()].text, "}");
    }

    #[test]
    fn a_statement_ends_where_its_last_branch_does() {
        let end = |text: &str| {
            let found = tokens(text);
            let end = statement_end(&found, 0).unwrap();
            text[..found[end].end()].to_owned()
        };
        assert_eq!(end("a <= b; c"), "a <= b;");
        assert_eq!(end("begin a; begin b; end end c"), "begin a; begin b; end end");
        assert_eq!(
            end("if (a) b; else if (c) begin d; end else e; f"),
            "if (a) b; else if (c) begin d; end else e;"
        );
        assert_eq!(
            end("unique case (a) 1: b; default: c; endcase d"),
            "unique case (a) 1: b; default: c; endcase"
        );
    }
}
