// SPDX-License-Identifier: MIT
//! The attribute `#[cairn::budget(...)]` of the crate `cairn`, which documents it: use it by that
//! crate's feature `budget`.
//!
//! The function keeps its tokens. Its body begins with one statement more, a guard that judges the
//! budget when it is dropped, after everything that the body declares.
use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

mod size;

/// A message, and the place that it concerns.
struct Mistake(Span, String);

impl From<Mistake> for TokenStream {
    fn from(Mistake(span, message): Mistake) -> TokenStream {
        let mut tokens: TokenStream = "::core::compile_error!".parse().unwrap_or_default();
        let text = TokenStream::from(TokenTree::from(Literal::string(&message)));
        tokens.extend([TokenTree::from(Group::new(Delimiter::Brace, text))]);
        tokens.into_iter().map(|token| at(span, token)).collect()
    }
}

fn at(span: Span, mut token: TokenTree) -> TokenTree {
    token.set_span(span);
    token
}

/// See the crate `cairn`.
#[proc_macro_attribute]
pub fn budget(limits: TokenStream, function: TokenStream) -> TokenStream {
    let with_budget = methods_of(limits).and_then(|methods| with_guard(&methods, function.clone()));
    with_budget.unwrap_or_else(|mistake| {
        let mut tokens = TokenStream::from(mistake);
        tokens.extend(function); // so that its callers are no mistakes
        tokens
    })
}

/// The calls of `cairn::Budget` that set the limits: `.allocations(100)`.
fn methods_of(limits: TokenStream) -> Result<String, Mistake> {
    let mut methods = String::new();
    let mut tokens = limits.into_iter().peekable();
    while let Some(name) = tokens.next() {
        let span = name.span();
        let method = match name.to_string().as_str() {
            "allocations" => "allocations",
            "allocated" => "allocated_bytes",
            "live" => "live_bytes",
            "peak" => "peak_bytes",
            _ => return Err(unknown(span)),
        };
        match tokens.next() {
            Some(TokenTree::Punct(sign)) if sign.as_char() == '=' => {}
            other => return Err(Mistake(span_of(other, span), "expected `=`".into())),
        }
        let value = tokens.next();
        let value_span = span_of(value.clone(), span);
        let most = value.and_then(|value| number_of(value, method != "allocations"));
        let most = most.ok_or_else(|| wrong_value(value_span, method))?;
        if methods.contains(method) {
            return Err(Mistake(span, "this limit is set twice".into()));
        }
        methods = format!("{methods}.{method}({most})");
        match tokens.next() {
            None => break,
            Some(TokenTree::Punct(sign)) if sign.as_char() == ',' => {}
            other => return Err(Mistake(span_of(other, span), "expected `,`".into())),
        }
    }
    if methods.is_empty() {
        return Err(unknown(Span::call_site()));
    }
    Ok(methods)
}

fn unknown(span: Span) -> Mistake {
    Mistake(span, "expected a limit: allocations, allocated, live or peak".into())
}

fn wrong_value(span: Span, method: &str) -> Mistake {
    let expected = match method {
        "allocations" => "a number",
        _ => "a number of bytes, or a size such as \"10MiB\"",
    };
    Mistake(span, format!("expected {expected}"))
}

fn span_of(token: Option<TokenTree>, otherwise: Span) -> Span {
    token.map_or(otherwise, |token| token.span())
}

/// The value of a literal: a decimal number, or with `has_unit` a size in quotes.
fn number_of(token: TokenTree, has_unit: bool) -> Option<u64> {
    let text = match token {
        TokenTree::Literal(literal) => literal.to_string(),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            // A macro's argument.
            let mut inner = group.stream().into_iter();
            return inner.next().and_then(|token| number_of(token, has_unit));
        }
        _ => return None,
    };
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) if has_unit => size::parse(quoted),
        Some(_) => None,
        None => text.replace('_', "").trim_end_matches("u64").parse().ok(),
    }
}

/// The function with the guard as the first statement of its body.
fn with_guard(methods: &str, function: TokenStream) -> Result<TokenStream, Mistake> {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let name = name_of(&tokens)?;
    let body = match tokens.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
        other => {
            let span = span_of(other, Span::call_site());
            return Err(Mistake(span, "a budget needs a function with a body".into()));
        }
    };
    let mut inside = TokenStream::new();
    let mut rest = body.stream().into_iter().peekable();
    while let Some(attribute) = inner_attribute(&mut rest) {
        inside.extend(attribute);
    }
    inside.extend(guard(methods, &name)?);
    inside.extend(rest);
    let mut with_guard = Group::new(Delimiter::Brace, inside);
    with_guard.set_span(body.span());
    tokens.push(with_guard.into());
    Ok(tokens.into_iter().collect())
}

/// The name after `fn`. A `const fn` cannot ask the recorder, and an `async fn` may change threads.
fn name_of(tokens: &[TokenTree]) -> Result<String, Mistake> {
    let is =
        |token: &TokenTree, word| matches!(token, TokenTree::Ident(i) if i.to_string() == word);
    let at = tokens.iter().position(|token| is(token, "fn"));
    let at = at.ok_or_else(|| Mistake(Span::call_site(), "a budget is for functions".into()))?;
    for word in ["const", "async"] {
        if let Some(token) = tokens[..at].iter().find(|token| is(token, word)) {
            return Err(Mistake(
                token.span(),
                format!("a budget is not for a function with `{word}`"),
            ));
        }
    }
    Ok(tokens.get(at + 1).map_or_else(String::new, ToString::to_string))
}

/// `#![...]`, which only the beginning of a body may have.
fn inner_attribute(
    tokens: &mut std::iter::Peekable<proc_macro::token_stream::IntoIter>,
) -> Option<Vec<TokenTree>> {
    let mut ahead = tokens.clone();
    let parts: Vec<TokenTree> = ahead.by_ref().take(3).collect();
    match parts.as_slice() {
        [TokenTree::Punct(hash), TokenTree::Punct(bang), TokenTree::Group(_)]
            if hash.as_char() == '#' && bang.as_char() == '!' =>
        {
            *tokens = ahead;
            Some(parts)
        }
        _ => None,
    }
}

/// `let guard = ::cairn::Budget::new().allocations(100).guard("NAME");` with a name of its own.
fn guard(methods: &str, function: &str) -> Result<TokenStream, Mistake> {
    let value = format!("::cairn::Budget::new(){methods}.guard(\"{function}\");");
    let value: TokenStream = value
        .parse()
        .map_err(|_| Mistake(Span::call_site(), "this function has no name".into()))?;
    let mut tokens = TokenStream::from_iter([
        TokenTree::from(Ident::new("let", Span::mixed_site())),
        Ident::new("_cairn_budget", Span::mixed_site()).into(),
        Punct::new('=', Spacing::Alone).into(),
    ]);
    tokens.extend(value);
    Ok(tokens)
}
