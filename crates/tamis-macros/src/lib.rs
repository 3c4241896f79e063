//! The procedural macro `einsum!`: index notation in Rust, parsed and checked at compile time.
//!
//! The expansion is a call of `tamis::einsum`; use the macro as `tamis::einsum!`.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use tamis_ir::Notation;

/// Computes index notation on tensors: `einsum!("y[i] = A[i,j] * x[j]", A = &a, x = &x)?`.
///
/// The text is parsed at compile time, and its errors are compile errors: syntax, an ambiguous
/// reduction, an index without an extent, tensors that are missing or unknown. `NAME` alone stands
/// for `NAME = &NAME`. NumPy's spelling takes tensors in order: `einsum!("ij,j->i", a, x)?`.
///
/// The value is that of `tamis::einsum`: the results, or the diagnostics of tensors that do not
/// fit.
///
/// ```
/// use tamis::prelude::*;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let s = tamis::einsum!("s = x[i] * x[i]", x)?.into_tensor()?;
/// assert_eq!(s.get(&[]), Some(Value::F64(34.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
#[proc_macro]
pub fn einsum(input: TokenStream) -> TokenStream {
    expand(input).unwrap_or_else(|(message, span)| error(&message, span))
}

/// A compile error and its span.
type ExpansionError = (String, Span);

/// An operand: its name, and the tokens of its expression.
type NamedOperand = (String, Vec<TokenTree>, Span);

fn expand(input: TokenStream) -> Result<TokenStream, ExpansionError> {
    let mut parts = split(input).into_iter();
    let form = "write `einsum!(\"y[i] = A[i,j] * x[j]\", A = &a, x = &x)`";
    let first = parts.next().unwrap_or_default();
    let [TokenTree::Literal(literal)] = &first[..] else {
        let span = first.first().map_or_else(Span::call_site, TokenTree::span);
        return Err((format!("expected a string with index notation\nhelp: {form}"), span));
    };
    let span = literal.span();
    let text = unquoted(&literal.to_string()).ok_or_else(|| (format!("expected a string\nhelp: {form}"), span))?;
    let operands: Vec<NamedOperand> = parts.map(operand).collect::<Result<_, _>>()?;
    check(&text, &operands, span)?;
    Ok(call(literal.clone(), operands))
}

/// Splits tokens at commas.
fn split(input: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut parts: Vec<Vec<TokenTree>> = vec![Vec::new()];
    for token in input {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => parts.push(Vec::new()),
            _ => {
                if let Some(part) = parts.last_mut() {
                    part.push(token);
                }
            }
        }
    }
    if parts.last().is_some_and(Vec::is_empty) {
        parts.pop();
    }
    parts
}

/// `NAME = EXPRESSION`, or `NAME`.
fn operand(tokens: Vec<TokenTree>) -> Result<NamedOperand, ExpansionError> {
    let span = tokens.first().map_or_else(Span::call_site, TokenTree::span);
    match &tokens[..] {
        [TokenTree::Ident(name)] => {
            let reference = vec![TokenTree::Punct(Punct::new('&', Spacing::Alone)), TokenTree::Ident(name.clone())];
            Ok((name.to_string(), reference, span))
        }
        [TokenTree::Ident(name), TokenTree::Punct(equals), value @ ..]
            if equals.as_char() == '=' && !value.is_empty() =>
        {
            Ok((name.to_string(), value.to_vec(), span))
        }
        _ => Err(("expected `NAME = TENSOR`, or the name of a tensor".to_string(), span)),
    }
}

/// The text of a string literal. Notation needs no escapes but those of line ends.
fn unquoted(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('r') {
        let hashes = raw.chars().take_while(|c| *c == '#').count();
        let inner = raw.get(hashes + 1..raw.len().checked_sub(hashes + 1)?)?;
        return Some(inner.to_string());
    }
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                '\n' => {
                    let rest = chars.as_str().trim_start().to_string();
                    return Some(text + &unquoted(&format!("\"{rest}\""))?);
                }
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
    Some(text)
}

/// Checks that the text is valid, and reads exactly the given tensors.
fn check(text: &str, operands: &[NamedOperand], span: Span) -> Result<(), ExpansionError> {
    let names: Vec<&str> = operands.iter().map(|(name, ..)| name.as_str()).collect();
    let parsed = match Notation::is_einsum(text) {
        true => Notation::einsum(text, &names, "out"),
        false => Notation::parse_given(&tamis_ir::Source::new("notation", text), &[], &names),
    };
    let notation = parsed.and_then(|notation| notation.plain().map(|_| notation));
    let notation = notation.map_err(|errors| (errors.render(false), span))?;
    let params = notation.params();
    if let Some((name, _, span)) = operands.iter().find(|(name, ..)| !params.contains(&name.as_str())) {
        return Err((format!("the notation does not read `{name}`: it reads {}", params.join(", ")), *span));
    }
    match params.iter().find(|param| !names.contains(*param)) {
        Some(missing) => Err((format!("`{missing}` is given no tensor\nhelp: add `{missing} = &{missing}`"), span)),
        None => Ok(()),
    }
}

/// `::tamis::einsum(TEXT, &[("A", EXPRESSION), ...], &::tamis::notation::EinsumOptions::default())`
fn call(text: Literal, operands: Vec<NamedOperand>) -> TokenStream {
    let mut pairs = TokenStream::new();
    for (name, value, _) in operands {
        let mut pair = TokenStream::from(TokenTree::Literal(Literal::string(&name)));
        pair.extend([TokenTree::Punct(Punct::new(',', Spacing::Alone))]);
        pair.extend(value);
        pairs.extend([
            TokenTree::Group(Group::new(Delimiter::Parenthesis, pair)),
            TokenTree::Punct(Punct::new(',', Spacing::Alone)),
        ]);
    }
    let mut arguments = TokenStream::from(TokenTree::Literal(text));
    arguments.extend([
        TokenTree::Punct(Punct::new(',', Spacing::Alone)),
        TokenTree::Punct(Punct::new('&', Spacing::Alone)),
        TokenTree::Group(Group::new(Delimiter::Bracket, pairs)),
        TokenTree::Punct(Punct::new(',', Spacing::Alone)),
        TokenTree::Punct(Punct::new('&', Spacing::Alone)),
    ]);
    arguments.extend(path(&["tamis", "notation", "EinsumOptions", "default"]));
    arguments.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, TokenStream::new()))]);
    let mut call = path(&["tamis", "einsum"]);
    call.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, arguments))]);
    call
}

/// `::a::b`
fn path(names: &[&str]) -> TokenStream {
    let colon = |spacing| TokenTree::Punct(Punct::new(':', spacing));
    let mut tokens = TokenStream::new();
    for name in names {
        tokens.extend([colon(Spacing::Joint), colon(Spacing::Alone)]);
        tokens.extend([TokenTree::Ident(Ident::new(name, Span::call_site()))]);
    }
    tokens
}

/// `compile_error!(MESSAGE)` at a span.
fn error(message: &str, span: Span) -> TokenStream {
    let mut text = Literal::string(message);
    text.set_span(span);
    let mut bang = Punct::new('!', Spacing::Alone);
    bang.set_span(span);
    let mut group = Group::new(Delimiter::Brace, TokenStream::from(TokenTree::Literal(text)));
    group.set_span(span);
    TokenStream::from_iter([
        TokenTree::Ident(Ident::new("compile_error", span)),
        TokenTree::Punct(bang),
        TokenTree::Group(group),
    ])
}
