//! The mutation operators: every fault of theirs that can be put into a file of SystemVerilog.
//!
//! A fault is one that a person could write and that no linter need see. Where it makes no sense to the compiler, the one
//! who draws draws again ([`super::random`]).

use super::text::{Kind, Token, closing, statement_end, tokens};

/// A fault: what stands at a place becomes something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub operator: Operator,
    /// Start of the text that is replaced, in bytes.
    pub from: usize,
    pub to: usize,
    pub becomes: String,
}

/// What is done to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// Another operator of its kind.
    Swap,
    /// The condition of an `if`, or what is assigned, is its contrary.
    Negate,
    /// A constant bit is the other one.
    Flip,
    /// A term of a conjunction is gone.
    DropTerm,
    /// The arms of a choice change places.
    SwapArms,
    /// An `else` and what stands in it is gone.
    DropElse,
    /// A number is one more or one less.
    OffByOne,
    /// A register does not take what it is given.
    DropAssignment,
}

impl Fault {
    pub fn applied(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.from], self.becomes, &text[self.to..])
    }

    /// The number of the line in which it is, from 1.
    pub fn line(&self, text: &str) -> usize {
        text[..self.from].matches('\n').count() + 1
    }
}

/// Every fault that can be put into the text.
pub fn faults(text: &str) -> Vec<Fault> {
    let tokens = tokens(text);
    let source = Source { text, tokens: &tokens };
    (0..tokens.len()).filter(|at| tokens[*at].is_logic).flat_map(|at| source.faults_at(at)).collect()
}

/// A file while faults are sought in it.
struct Source<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
}

impl Source<'_> {
    fn faults_at(&self, at: usize) -> Vec<Fault> {
        let token = self.tokens[at];
        let mut faults = Vec::new();
        faults.extend(self.swapped(at).map(|becomes| self.replaced(Operator::Swap, at, becomes)));
        match token.text {
            "if" => faults.extend(self.negated_condition(at)),
            "assign" => faults.extend(self.negated_assign(at)),
            "&&" => faults.extend(self.dropped_terms(at)),
            "?" => faults.extend(self.swapped_arms(at)),
            "else" => faults.extend(self.dropped_else(at)),
            "<=" if self.is_assignment(at) => faults.extend(self.dropped_assignment(at)),
            "1'b0" | "'0" => faults.push(self.replaced(Operator::Flip, at, &token.text.replace('0', "1"))),
            "1'b1" => faults.push(self.replaced(Operator::Flip, at, "1'b0")),
            "'1" => faults.push(self.replaced(Operator::Flip, at, "'0")),
            _ if token.kind == Kind::Number => faults.extend(self.off_by_one(at)),
            _ => {}
        }
        faults
    }

    fn replaced(&self, operator: Operator, at: usize, becomes: &str) -> Fault {
        let Token { at: from, text, .. } = self.tokens[at];
        Fault { operator, from, to: from + text.len(), becomes: becomes.to_owned() }
    }

    /// What an operator between two values becomes.
    fn swapped(&self, at: usize) -> Option<&'static str> {
        let before = self.tokens[at.checked_sub(1)?];
        let is_value = before.kind != Kind::Sign && !matches!(before.text, "return" | "if" | "assign")
            || matches!(before.text, ")" | "]" | "}");
        let becomes = match self.tokens[at].text {
            "&&" => "||",
            "||" => "&&",
            "&" => "|",
            "|" | "^" => "&",
            "+" => "-",
            "-" => "+",
            "==" => "!=",
            "!=" => "==",
            "<" => "<=",
            "<=" if !self.is_assignment(at) => "<",
            ">" => ">=",
            ">=" => ">",
            _ => return None,
        };
        is_value.then_some(becomes)
    }

    /// Whether a `<=` is that of a statement: nothing but what is assigned to stands in front of it.
    fn is_assignment(&self, at: usize) -> bool {
        let Some(begin) = self.statement_begin(at) else { return false };
        let depth = self.tokens[at].depth;
        let mut target = self.tokens[begin..at].iter().filter(|token| token.depth == depth);
        begin < at
            && target.all(|token| match token.kind {
                Kind::Word => !matches!(token.text, "assign" | "return"),
                _ => matches!(token.text, "." | "[" | "]" | "{" | "}"),
            })
    }

    /// Where the statement begins of which the token is part, and inside no bracket of which it stands.
    fn statement_begin(&self, at: usize) -> Option<usize> {
        let depth = self.tokens[at].depth;
        for index in (0..at).rev() {
            let token = self.tokens[index];
            // The token stands in brackets, or in an arm of a choice.
            if token.depth < depth || token.depth == depth && token.text == "?" {
                return None;
            }
            let is_edge = token.depth == depth
                && (matches!(token.text, ";" | "begin" | "end" | "else" | "endcase")
                    || self.ends_condition(index));
            let is_label = token.depth == depth && token.text == ":" && !self.is_of_choice(index);
            if is_edge || is_label {
                return Some(index + 1);
            }
        }
        Some(0)
    }

    /// Whether a colon stands between the arms of a choice.
    fn is_of_choice(&self, colon: usize) -> bool {
        let depth = self.tokens[colon].depth;
        let mut before = self.tokens[..colon].iter().rev().filter(|token| token.depth <= depth);
        let edge = |token: &&Token<'_>| {
            token.depth < depth
                || matches!(token.text, "?" | ":" | ";" | "begin" | "end" | "else" | "endcase")
        };
        before.find(edge).is_some_and(|token| token.depth == depth && token.text == "?")
    }

    fn negated_condition(&self, at: usize) -> Option<Fault> {
        let close = closing(self.tokens, at + 1)?;
        let (from, to) = (self.tokens[at + 1].end(), self.tokens[close].at);
        Some(Fault { operator: Operator::Negate, from, to, becomes: format!("!({})", &self.text[from..to]) })
    }

    fn negated_assign(&self, at: usize) -> Option<Fault> {
        let depth = self.tokens[at].depth;
        let found = |text: &str| {
            self.tokens[at..]
                .iter()
                .position(|token| token.text == text && token.depth == depth)
                .map(|n| at + n)
        };
        let (from, to) = (self.tokens[found("=")?].end(), self.tokens[found(";")?].at);
        let value = self.text.get(from..to)?.trim();
        Some(Fault { operator: Operator::Negate, from, to, becomes: format!(" ~({value})") })
    }

    /// The terms on both sides of a `&&`.
    fn dropped_terms(&self, at: usize) -> Vec<Fault> {
        let depth = self.tokens[at].depth;
        let is_edge = |index: usize| {
            let token = self.tokens[index];
            token.depth < depth
                || token.depth == depth
                    && (matches!(
                        token.text,
                        "&&" | "||" | "?" | ":" | "," | ";" | "=" | "(" | "[" | "{" | "'{" | ")" | "]" | "}"
                    ) && !self.opens_inside(index, at)
                        || token.text == "<=" && self.is_assignment(index))
        };
        let mut faults = Vec::new();
        if let Some(edge) = (at + 1..self.tokens.len()).find(|index| is_edge(*index)) {
            let (from, to) = (self.tokens[at - 1].end(), self.tokens[edge - 1].end());
            faults.push(Fault { operator: Operator::DropTerm, from, to, becomes: String::new() });
        }
        if let Some(edge) = (0..at).rev().find(|index| is_edge(*index)) {
            let (from, to) = (self.tokens[edge + 1].at, self.tokens[at + 1].at);
            faults.push(Fault { operator: Operator::DropTerm, from, to, becomes: String::new() });
        }
        faults
    }

    /// Whether a bracket belongs to a term beside the operator at `at`, and does not stand around it.
    fn opens_inside(&self, bracket: usize, at: usize) -> bool {
        let token = self.tokens[bracket];
        match token.text {
            "(" | "[" | "{" | "'{" => {
                closing(self.tokens, bracket).is_some_and(|close| close < at || bracket > at)
            }
            // One that closes at the operator's depth was opened at it.
            ")" | "]" | "}" => token.depth == self.tokens[at].depth,
            _ => false,
        }
    }

    fn swapped_arms(&self, at: usize) -> Option<Fault> {
        let depth = self.tokens[at].depth;
        let (mut colon, mut open) = (None, 1_usize);
        let mut end = None;
        for index in at + 1..self.tokens.len() {
            let token = self.tokens[index];
            let closes = token.depth < depth || token.depth == depth && matches!(token.text, ";" | ",");
            if closes {
                end = Some(index);
                break;
            }
            if token.depth != depth {
                continue;
            }
            match token.text {
                "?" => open += 1,
                ":" if open == 0 => {
                    end = Some(index);
                    break;
                }
                ":" => {
                    open -= 1;
                    if open == 0 && colon.is_none() {
                        colon = Some(index);
                    }
                }
                _ => {}
            }
        }
        let (colon, end) = (colon?, end?);
        let (from, to) = (self.tokens[at].end(), self.tokens[end - 1].end());
        let first = self.text[from..self.tokens[colon].at].trim();
        let second = self.text[self.tokens[colon].end()..to].trim();
        let becomes = format!(" ({second}) : ({first})");
        (first != second).then_some(Fault { operator: Operator::SwapArms, from, to, becomes })
    }

    fn dropped_else(&self, at: usize) -> Option<Fault> {
        // What a generate block makes belongs to the shape of the module.
        if self.tokens.get(at + 2)?.text == ":" && self.tokens.get(at + 3)?.text.starts_with("g_") {
            return None;
        }
        let end = statement_end(self.tokens, at + 1)?;
        let (from, to) = (self.tokens[at].at, self.tokens[end].end());
        let is_generate = self.text[from..to].contains(": g_");
        (!is_generate).then_some(Fault { operator: Operator::DropElse, from, to, becomes: String::new() })
    }

    fn dropped_assignment(&self, at: usize) -> Option<Fault> {
        let (begin, depth) = (self.statement_begin(at)?, self.tokens[at].depth);
        let end = (at..self.tokens.len())
            .find(|index| self.tokens[*index].text == ";" && self.tokens[*index].depth == depth)?;
        let (from, to) = (self.tokens[begin].at, self.tokens[end].at);
        Some(Fault { operator: Operator::DropAssignment, from, to, becomes: String::new() })
    }

    /// Whether a bracket closes the condition of an `if`, or what stands for one.
    fn ends_condition(&self, at: usize) -> bool {
        let token = self.tokens[at];
        let open = (0..at)
            .rev()
            .find(|index| self.tokens[*index].text == "(" && self.tokens[*index].depth == token.depth);
        token.text == ")"
            && open
                .and_then(|open| open.checked_sub(1))
                .is_some_and(|word| matches!(self.tokens[word].text, "if" | "for" | "case" | "@"))
    }

    /// One more, and one less where that is no less than nothing; a size in front of a cast is no value.
    fn off_by_one(&self, at: usize) -> Vec<Fault> {
        let token = self.tokens[at];
        let is_size = self.text[token.end()..].starts_with('\'');
        let (head, digits, radix) = match token.text.split_once('\'') {
            None => ("", token.text, 10),
            Some((size, based)) => match based.split_at_checked(1) {
                Some(("d", digits)) => (&token.text[..=size.len() + 1], digits, 10),
                Some(("h", digits)) => (&token.text[..=size.len() + 1], digits, 16),
                _ => return Vec::new(),
            },
        };
        let Ok(value) = u64::from_str_radix(&digits.replace('_', ""), radix) else { return Vec::new() };
        if is_size {
            return Vec::new();
        }
        let bits = token.text.split_once('\'').and_then(|(size, _)| size.parse::<u32>().ok());
        let limit = bits.filter(|bits| *bits < 64).map_or(u64::MAX, |bits| (1 << bits) - 1);
        let more = value.checked_add(1).filter(|value| *value <= limit);
        let shown =
            |value: u64| if radix == 16 { format!("{head}{value:x}") } else { format!("{head}{value}") };
        let values = [more, value.checked_sub(1)].into_iter().flatten();
        values.map(|value| self.replaced(Operator::OffByOne, at, &shown(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each fault of an operator makes of the text.
    fn made(operator: Operator, text: &str) -> Vec<String> {
        faults(text)
            .iter()
            .filter(|fault| fault.operator == operator)
            .map(|fault| fault.applied(text))
            .collect()
    }

    #[test]
    fn operators_between_values_are_swapped() {
        assert_eq!(made(Operator::Swap, "assign a = b && c;"), ["assign a = b || c;"]);
        assert_eq!(made(Operator::Swap, "assign a = (b) | c[1];"), ["assign a = (b) & c[1];"]);
        assert_eq!(made(Operator::Swap, "assign a = b + 1'b1;"), ["assign a = b - 1'b1;"]);
        assert_eq!(made(Operator::Swap, "assign a = b >= c;"), ["assign a = b > c;"]);
        assert_eq!(made(Operator::Swap, "if (b <= c) a <= d;"), ["if (b < c) a <= d;"]);
        // Reductions over all bits of a value have no second operand to swap with.
        assert_eq!(made(Operator::Swap, "assign a = |b; assign c = (&d);"), Vec::<String>::new());
        assert_eq!(made(Operator::Swap, "a <= b << c;"), Vec::<String>::new());
    }

    #[test]
    fn conditions_and_what_is_assigned_are_negated() {
        assert_eq!(made(Operator::Negate, "if (a && b) c <= d;"), ["if (!(a && b)) c <= d;"]);
        assert_eq!(made(Operator::Negate, "assign a = b == c;"), ["assign a = ~(b == c);"]);
        assert_eq!(
            made(Operator::Negate, "if (Has) begin : g_has assign a = b; end"),
            ["if (Has) begin : g_has assign a = ~(b); end"]
        );
    }

    #[test]
    fn constants_flip_and_numbers_are_off_by_one() {
        assert_eq!(
            made(Operator::Flip, "a <= 1'b0; b <= '1;"),
            ["a <= 1'b1; b <= '1;", "a <= 1'b0; b <= '0;"]
        );
        assert_eq!(made(Operator::OffByOne, "a <= 3'd7;"), ["a <= 3'd6;"]);
        assert_eq!(made(Operator::OffByOne, "a <= 8'h0f;"), ["a <= 8'h10;", "a <= 8'he;"]);
        assert_eq!(
            made(Operator::OffByOne, "a <= b[N-1] == 4'(c);"),
            ["a <= b[N-2] == 4'(c);", "a <= b[N-0] == 4'(c);"]
        );
        assert_eq!(made(Operator::OffByOne, "a <= 2'b10;"), Vec::<String>::new());
    }

    #[test]
    fn a_term_of_a_conjunction_is_dropped() {
        assert_eq!(
            made(Operator::DropTerm, "assign a = b && c(d) || e;"),
            ["assign a = b || e;", "assign a = c(d) || e;"]
        );
        assert_eq!(
            made(Operator::DropTerm, "if (a == (b && c)) d <= e[1] && f;"),
            [
                "if (a == (b)) d <= e[1] && f;",
                "if (a == (c)) d <= e[1] && f;",
                "if (a == (b && c)) d <= e[1];",
                "if (a == (b && c)) d <= f;"
            ]
        );
        assert_eq!(
            made(Operator::DropTerm, "x(.a_i(b && c), .d_i(e));"),
            ["x(.a_i(b), .d_i(e));", "x(.a_i(c), .d_i(e));"]
        );
    }

    #[test]
    fn the_arms_of_a_choice_are_swapped() {
        assert_eq!(made(Operator::SwapArms, "assign a = b ? c : d;"), ["assign a = b ? (d) : (c);"]);
        assert_eq!(
            made(Operator::SwapArms, "a <= b ? c : d ? e : f;"),
            ["a <= b ? (d ? e : f) : (c);", "a <= b ? c : d ? (f) : (e);"]
        );
        assert_eq!(
            made(Operator::SwapArms, "a <= b ? c ? d : e : f;"),
            ["a <= b ? (f) : (c ? d : e);", "a <= b ? c ? (e) : (d) : f;"]
        );
        assert_eq!(made(Operator::SwapArms, "x(.a(b ? c : d), .e(f));"), ["x(.a(b ? (d) : (c)), .e(f));"]);
    }

    #[test]
    fn an_else_is_dropped_with_what_stands_in_it() {
        assert_eq!(
            made(Operator::DropElse, "if (a) b <= c; else d <= e; f <= g;"),
            ["if (a) b <= c;  f <= g;"]
        );
        assert_eq!(
            made(Operator::DropElse, "if (a) begin b; end else begin c; end"),
            ["if (a) begin b; end "]
        );
        assert_eq!(
            made(Operator::DropElse, "if (A) begin : g_a x; end else begin : g_b y; end"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_register_is_not_written() {
        assert_eq!(made(Operator::DropAssignment, "begin a_q <= b <= c; end"), ["begin ; end"]);
        assert_eq!(made(Operator::DropAssignment, "if (x) a[i].b <= c;"), ["if (x) ;"]);
        assert_eq!(
            made(Operator::DropAssignment, "if (x) {a, b} <= c; else d <= e;"),
            ["if (x) ; else d <= e;", "if (x) {a, b} <= c; else ;"]
        );
        assert_eq!(made(Operator::DropAssignment, "assign a = b <= c;"), Vec::<String>::new());
        assert_eq!(made(Operator::DropAssignment, "assign a = b ? c : d <= e;"), Vec::<String>::new());
        assert_eq!(made(Operator::DropAssignment, "case (a) B: c <= d; endcase"), ["case (a) B: ; endcase"]);
    }

    #[test]
    fn no_fault_is_put_where_no_logic_is() {
        let text = "// a && b\nmodule m #(parameter int N = 1 + 2) (input logic [N-1:0] a);\n\
                    `ifndef SYNTHESIS\nalways_ff @(posedge clk_i) if (a && b) assert (c == 1'b0);\n`endif\nendmodule\n";
        assert_eq!(faults(text), []);
    }

    #[test]
    fn a_fault_knows_its_line() {
        let text = "x\ny\nassign a = 1'b0;\n";
        let fault = faults(text).into_iter().find(|fault| fault.operator == Operator::Flip).unwrap();
        assert_eq!((fault.line(text), fault.applied(text).as_str()), (3, "x\ny\nassign a = 1'b1;\n"));
    }
}
