//! Spelling of names in kernel text: identifiers as they are, others between backquotes.

use std::borrow::Cow;

/// Words that begin a statement, literals and operators; a name that is one of them is quoted.
const RESERVED: &[&str] = &[
    "let", "var", "for", "while", "if", "else", "block", "break", "grow", "fill", "sort", "reset", "require", "atomic",
    "barrier", "prefetch", "and", "or", "not", "True", "False", "inf", "nan",
];

/// True if a word can only be the beginning of a statement, a literal or an operator.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// True if a character can begin an identifier.
pub(super) fn begins_identifier(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// True if a character can be in an identifier.
pub(super) fn continues_identifier(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// A name as kernel text spells it.
pub(crate) fn spelled(name: &str) -> Cow<'_, str> {
    let mut chars = name.chars();
    let identifier = chars.next().is_some_and(begins_identifier) && chars.all(continues_identifier);
    if identifier && !is_reserved(name) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(quoted(name, '`'))
}

/// A text between quotes, with escapes for quotes, backslashes and control characters.
pub(crate) fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_odd_names_are_quoted() {
        let table = [("A1_pos", "A1_pos"), ("größe", "größe"), ("for", "`for`"), ("a b", "`a b`"), ("1", "`1`")];
        for (name, text) in table {
            assert_eq!(spelled(name), text);
        }
        assert_eq!(spelled("a`\n\u{7}"), "`a\\`\\n\\u{7}`");
    }
}
