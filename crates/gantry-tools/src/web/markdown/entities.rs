//! Characters that HTML writes by name or number.

use std::borrow::Cow;

/// Bytes within which an entity ends.
const ENTITY_BYTES: usize = 12;

/// The names that pages use, each before its character. What is not here stays as it is written.
const NAMED: &str = "\
    amp &  lt <  gt >  quot \"  apos '  copy ©  reg ®  trade ™  hellip …  mdash —  ndash –  \
    minus −  lsquo ‘  rsquo ’  sbquo ‚  ldquo “  rdquo ”  bdquo „  laquo «  raquo »  lsaquo ‹  \
    rsaquo ›  bull •  middot ·  sect §  para ¶  dagger †  deg °  plusmn ±  times ×  divide ÷  \
    frac12 ½  frac14 ¼  frac34 ¾  sup1 ¹  sup2 ²  sup3 ³  micro µ  permil ‰  euro €  pound £  \
    yen ¥  cent ¢  curren ¤  larr ←  rarr →  uarr ↑  darr ↓  harr ↔  rArr ⇒  lArr ⇐  hArr ⇔  ne ≠  \
    le ≤  ge ≥  asymp ≈  equiv ≡  infin ∞  sum ∑  prod ∏  radic √  int ∫  part ∂  isin ∈  forall ∀  \
    exist ∃  empty ∅  and ∧  or ∨  not ¬  cap ∩  cup ∪  sub ⊂  sup ⊃  check ✓  alpha α  beta β  \
    gamma γ  delta δ  epsilon ε  theta θ  lambda λ  mu μ  pi π  sigma σ  phi φ  omega ω  Delta Δ  \
    Sigma Σ  Omega Ω  iexcl ¡  iquest ¿  ordf ª  ordm º  szlig ß  agrave à  aacute á  acirc â  \
    atilde ã  auml ä  aring å  aelig æ  ccedil ç  egrave è  eacute é  ecirc ê  euml ë  igrave ì  \
    iacute í  icirc î  iuml ï  ntilde ñ  ograve ò  oacute ó  ocirc ô  otilde õ  ouml ö  oslash ø  \
    ugrave ù  uacute ú  ucirc û  uuml ü  yacute ý  Agrave À  Aacute Á  Auml Ä  Aring Å  AElig Æ  \
    Ccedil Ç  Egrave È  Eacute É  Ntilde Ñ  Ouml Ö  Oslash Ø  Uuml Ü  oelig œ  OElig Œ  scaron š  \
    Scaron Š  lbrack [  rbrack ]  lbrace {  rbrace }  num #  colon :  comma ,  period .  excl !  \
    quest ?  sol /  bsol \\  lowbar _  grave `  vert |  ast *  plus +  equals =  percnt %  \
    dollar $  commat @  lpar (  rpar )  semi ;";

/// A text with its entities replaced.
pub(in super::super) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let window = after.get(..floor(after, ENTITY_BYTES)).unwrap_or(after);
        let entity = window.split_once(';').and_then(|(name, _)| Some((character(name)?, name.len() + 1)));
        match entity {
            Some((text, length)) => {
                out.push_str(&text);
                rest = after.get(length..).unwrap_or_default();
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out.into()
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn named(name: &str) -> Option<&'static str> {
    match name {
        "nbsp" | "ensp" | "emsp" | "thinsp" | "Tab" | "NewLine" => return Some(" "),
        "shy" | "zwj" | "zwnj" | "lrm" | "rlm" => return Some(""),
        _ => {}
    }
    let mut words = NAMED.split_whitespace();
    while let (Some(known), Some(character)) = (words.next(), words.next()) {
        if known == name {
            return Some(character);
        }
    }
    None
}

fn character(name: &str) -> Option<Cow<'static, str>> {
    let Some(number) = name.strip_prefix('#') else {
        return named(name).map(Cow::Borrowed);
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    // What is no character, or moves the cursor of a terminal, is left out.
    let c = char::from_u32(code).filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    Some(c.map_or_else(|| "\u{fffd}".into(), |c| c.to_string().into()))
}
