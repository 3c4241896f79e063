//! Parser of formats: `[ (i,j) -> (expr, ...) : ] level {, level} [; leaf]`, or a short name.

use super::{DimExpr, Format, FormatSpec, Ism, Leaf, LevelKind, LevelSpec, ShortName, Width};
use crate::algebra::Value;
use crate::diag::{Code, Diagnostic, Result, Source, Span, did_you_mean};
use crate::text::lexer::{Tok, Token, lex_line};

pub(super) fn parse(text: &str) -> Result<FormatSpec> {
    let in_text = |d: Diagnostic| d.with_source(&Source::new("format", text));
    let (tokens, errors) = lex_line(text);
    if let Some(error) = errors.into_iter().next() {
        return Err(in_text(error));
    }
    let mut parser = FormatParser { tokens, at: 0 };
    let end = Span::new(0..text.len());
    parser.format().map_err(|mut d| {
        if d.labels.is_empty() {
            d = d.label(end, "in this format");
        }
        in_text(d)
    })
}

struct FormatParser {
    tokens: Vec<Token>,
    at: usize,
}

impl FormatParser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn eat(&mut self, op: &str) -> bool {
        let found = matches!(&self.peek().tok, Tok::Op(o) if *o == op);
        self.at += usize::from(found);
        found
    }

    fn expected(&self, what: &str) -> Diagnostic {
        let token = self.peek();
        Diagnostic::new(Code::E0601, format!("expected {what}, found {}", token.tok.describe()))
            .label(token.span, format!("expected {what}"))
            .help("for example `dense, sparse`, `(i,j) -> (j,i): dense, sparse; element(0)`, or `csr`")
    }

    fn expect(&mut self, op: &str) -> Result<()> {
        if self.eat(op) { Ok(()) } else { Err(self.expected(&format!("`{op}`"))) }
    }

    fn ident(&mut self, what: &str) -> Result<(String, Span)> {
        match self.next() {
            Token { tok: Tok::Ident(name), span } => Ok((name, span)),
            _ => {
                self.at -= 1;
                Err(self.expected(what))
            }
        }
    }

    fn int(&mut self, what: &str) -> Result<u64> {
        match self.next().tok {
            Tok::Int(x) => Ok(x),
            _ => {
                self.at -= 1;
                Err(self.expected(what))
            }
        }
    }

    fn format(&mut self) -> Result<FormatSpec> {
        let map = if matches!(self.peek().tok, Tok::Op("(")) { Some(self.map()?) } else { None };
        let mut levels = Vec::new();
        loop {
            let (name, span) = self.ident("a level")?;
            if map.is_none() && levels.is_empty() {
                let only = matches!(self.peek().tok, Tok::Eof | Tok::Op(";"));
                match name.as_str() {
                    "dense" if only => return self.any_rank(ShortName::Dense),
                    "coo" => return self.any_rank(ShortName::Coo),
                    "csf" => return self.any_rank(ShortName::Csf),
                    "csr" | "csc" | "dcsr" | "dcsc" => return self.matrix(&name),
                    "bsr" => return self.bsr(),
                    _ => {}
                }
            }
            if levels.is_empty() && name == "ism" {
                return self.ism(map);
            }
            levels.push(self.level(&name, span)?);
            if !self.eat(",") {
                break;
            }
        }
        let leaf = self.leaf_and_end()?;
        let (rank, map) = map.unwrap_or((levels.len(), (0..levels.len()).map(DimExpr::Dim).collect()));
        Ok(FormatSpec::Fixed(Format::new(rank, map, levels, leaf)?))
    }

    /// `(policy[, capacity][, pipelined])`, of any rank, or with the dimensions in another order.
    fn ism(&mut self, map: Option<(usize, Vec<DimExpr>)>) -> Result<FormatSpec> {
        self.expect("(")?;
        let (policy, _) = self.ident("a policy: coord hash bucket map vector")?;
        let mut ism = Ism { policy, capacity: None, pipelined: false };
        while self.eat(",") {
            if let Tok::Int(_) = self.peek().tok {
                let span = self.peek().span;
                let capacity = self.int("a capacity")?;
                if capacity == 0 {
                    return Err(Diagnostic::new(Code::E0601, "the capacity of a workspace cannot be 0")
                        .label(span, "at least 1")
                        .help("leave the capacity out, or write `ism(coord, 1024)`"));
                }
                ism.capacity = Some(capacity);
                continue;
            }
            let (word, span) = self.ident("a capacity or `pipelined`")?;
            if word != "pipelined" {
                return Err(Diagnostic::new(Code::E0602, format!("`{word}` is not a property of a workspace"))
                    .label(span, "unknown property")
                    .help("write `ism(coord)`, `ism(coord, 1024)` or `ism(coord, 1024, pipelined)`"));
            }
            ism.pipelined = true;
        }
        self.expect(")")?;
        let leaf = self.leaf_and_end()?;
        let Some((rank, map)) = map else { return Ok(FormatSpec::Ism(ism, leaf)) };
        let levels = ShortName::Coo.levels(rank).levels;
        Ok(FormatSpec::Fixed(Format { ism: Some(ism), ..Format::new(rank, map, levels, leaf)? }))
    }

    fn any_rank(&mut self, name: ShortName) -> Result<FormatSpec> {
        Ok(FormatSpec::AnyRank(name, self.leaf_and_end()?))
    }

    fn matrix(&mut self, name: &str) -> Result<FormatSpec> {
        let outer = if name.starts_with('d') { LevelKind::Sparse } else { LevelKind::Dense };
        let map = if name.ends_with('r') { [0, 1] } else { [1, 0] }.map(DimExpr::Dim).to_vec();
        let levels = vec![LevelSpec::new(outer), LevelSpec::new(LevelKind::Sparse)];
        Ok(FormatSpec::Fixed(Format::new(2, map, levels, self.leaf_and_end()?)?))
    }

    fn bsr(&mut self) -> Result<FormatSpec> {
        self.expect("(")?;
        let rows = self.int("the rows of a block")?;
        self.expect(",")?;
        let columns = self.int("the columns of a block")?;
        self.expect(")")?;
        let map =
            vec![DimExpr::Div(0, rows), DimExpr::Div(1, columns), DimExpr::Mod(0, rows), DimExpr::Mod(1, columns)];
        use LevelKind::{Dense, Sparse};
        let levels = [Dense, Sparse, Dense, Dense].map(LevelSpec::new).to_vec();
        Ok(FormatSpec::Fixed(Format::new(2, map, levels, self.leaf_and_end()?)?))
    }

    fn map(&mut self) -> Result<(usize, Vec<DimExpr>)> {
        self.expect("(")?;
        let mut names: Vec<String> = Vec::new();
        while !self.eat(")") {
            let (name, span) = self.ident("the name of a dimension")?;
            if names.contains(&name) {
                return Err(Diagnostic::new(Code::E0606, format!("dimension `{name}` is named twice"))
                    .label(span, "named before")
                    .help("give each dimension its own name"));
            }
            names.push(name);
            if !self.eat(",") && !matches!(self.peek().tok, Tok::Op(")")) {
                return Err(self.expected("`,` or `)`"));
            }
        }
        self.expect("->")?;
        self.expect("(")?;
        let mut map = Vec::new();
        while !self.eat(")") {
            map.push(self.dim_expr(&names)?);
            if !self.eat(",") && !matches!(self.peek().tok, Tok::Op(")")) {
                return Err(self.expected("`,` or `)`"));
            }
        }
        self.expect(":")?;
        Ok((names.len(), map))
    }

    fn dim(&mut self, names: &[String]) -> Result<usize> {
        let (name, span) = self.ident("a dimension")?;
        names.iter().position(|n| *n == name).ok_or_else(|| {
            Diagnostic::new(Code::E0606, format!("`{name}` is not a dimension"))
                .label(span, "not named on the left of `->`")
                .help(format!("the dimensions are {}", names.join(", ")))
        })
    }

    fn dim_expr(&mut self, names: &[String]) -> Result<DimExpr> {
        let d = self.dim(names)?;
        if self.eat("/") || self.eat("//") {
            Ok(DimExpr::Div(d, self.int("a block size")?))
        } else if self.eat("%") {
            Ok(DimExpr::Mod(d, self.int("a block size")?))
        } else if self.eat("-") {
            Ok(DimExpr::Diff(d, self.dim(names)?))
        } else {
            Ok(DimExpr::Dim(d))
        }
    }

    fn level(&mut self, name: &str, span: Span) -> Result<LevelSpec> {
        let Some(kind) = LevelKind::ALL.into_iter().find(|k| k.name() == name) else {
            let names = LevelKind::ALL.map(LevelKind::name);
            let mut d = Diagnostic::new(Code::E0602, format!("`{name}` is not a level")).label(span, "unknown level");
            if let Some(meant) = did_you_mean(name, names.into_iter().chain(["csr", "csc", "coo", "csf"])) {
                d = d.help(format!("did you mean `{meant}`?"));
            }
            return Err(d.help(format!("levels are {}", names.join(" "))));
        };
        let mut level = LevelSpec::new(kind);
        if self.eat("(") {
            loop {
                let (word, span) = self.ident("`nonunique` or `nonordered`")?;
                match word.as_str() {
                    "nonunique" => level.nonunique = true,
                    "nonordered" => level.nonordered = true,
                    _ => {
                        return Err(Diagnostic::new(Code::E0602, format!("`{word}` is not a property of a level"))
                            .label(span, "unknown property")
                            .help("write `sparse(nonunique)` (COO), or `sparse(nonordered)` (any order)"));
                    }
                }
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        if self.eat("[") {
            let first = self.width()?;
            if self.eat(",") {
                (level.pos, level.crd) = (first, self.width()?);
            } else if !kind.has_positions() {
                level.crd = first;
            } else {
                (level.pos, level.crd) = (first, first);
            }
            self.expect("]")?;
        }
        Ok(level)
    }

    fn width(&mut self) -> Result<Option<Width>> {
        let (name, span) = self.ident("a width: u8 u16 u32 u64")?;
        match Width::ALL.into_iter().find(|w| w.name() == name) {
            Some(width) => Ok(Some(width)),
            None if name == "_" => Ok(None),
            None => Err(Diagnostic::new(Code::E0601, format!("`{name}` is not a width"))
                .label(span, "expected u8, u16, u32 or u64")
                .help("write `sparse[u64,u32]` (positions, coordinates), or leave the widths out")),
        }
    }

    fn leaf_and_end(&mut self) -> Result<Leaf> {
        let leaf = if self.eat(";") { self.leaf()? } else { Leaf::Element(None) };
        match self.peek().tok {
            Tok::Eof => Ok(leaf),
            _ => Err(self.expected("`,`, `;` or the end of the format")),
        }
    }

    fn leaf(&mut self) -> Result<Leaf> {
        let (name, span) = self.ident("a leaf: element(FILL) or pattern")?;
        match name.as_str() {
            "pattern" => Ok(Leaf::Pattern),
            "element" => {
                if !self.eat("(") {
                    return Ok(Leaf::Element(None));
                }
                let fill = self.number()?;
                self.expect(")")?;
                // The default prints as nothing, so that equal formats are equal.
                Ok(Leaf::Element(Some(fill).filter(|f| *f != Value::I64(0))))
            }
            _ => Err(Diagnostic::new(Code::E0602, format!("`{name}` is not a leaf"))
                .label(span, "unknown leaf")
                .help("write `element(0)` or `pattern`")),
        }
    }

    fn number(&mut self) -> Result<Value> {
        let first = self.real()?;
        let (plus, minus) = (self.eat("+"), self.eat("-"));
        if !plus && !minus {
            return Ok(first);
        }
        let (re, im) = (first.as_c128().re, self.real()?.as_c128().im);
        Ok(Value::C128(num_complex::Complex::new(re, if minus { -im } else { im })))
    }

    fn real(&mut self) -> Result<Value> {
        let negative = self.eat("-");
        let sign = if negative { -1.0 } else { 1.0 };
        let token = self.next();
        Ok(match &token.tok {
            Tok::Int(x) if *x <= i64::MAX as u64 => Value::I64(if negative { -(*x as i64) } else { *x as i64 }),
            Tok::Int(x) if negative && *x == i64::MAX as u64 + 1 => Value::I64(i64::MIN),
            Tok::Int(x) if !negative => Value::U64(*x),
            Tok::Float(x) => Value::F64(sign * x),
            Tok::Imag(x) => Value::C128(num_complex::Complex::new(0.0, sign * x)),
            Tok::Ident(name) if name == "inf" => Value::F64(sign * f64::INFINITY),
            Tok::Ident(name) if name == "nan" => Value::F64(f64::NAN),
            Tok::Ident(name) if !negative && (name == "True" || name == "true") => Value::Bool(true),
            Tok::Ident(name) if !negative && (name == "False" || name == "false") => Value::Bool(false),
            _ => {
                self.at -= 1;
                return Err(self.expected("a number"));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_back() {
        let table = [
            ("dense, sparse", "csr"),
            ("(i,j) -> (j,i): dense, sparse", "csc"),
            ("(a,b)->(b,a):sparse,sparse", "dcsc"),
            ("sparse , sparse", "dcsr"),
            ("coo", "coo"),
            ("dense", "dense"),
            ("csf; pattern", "csf; pattern"),
            ("sparse(nonunique), singleton", "sparse(nonunique), singleton"),
            ("sparse( nonordered )", "sparse(nonordered)"),
            ("dense, sparse(nonordered)[u32]", "dense, sparse(nonordered)[u32,u32]"),
            ("(i,j) -> (j,i): dense, sparse(nonordered)", "(i,j) -> (j,i): dense, sparse(nonordered)"),
            ("bsr(4,2)", "bsr(4,2)"),
            ("(i,j) -> (i/4, j/4, i%4, j%4): dense, sparse, dense, dense", "bsr(4,4)"),
            ("(i,j) -> (j-i, i): sparse, dense", "(i,j) -> (j-i,i): sparse, dense"),
            ("dense, sparse[u64,u32]; element(-inf)", "dense, sparse[u64,u32]; element(-inf)"),
            ("dense, sparse[u8]", "dense, sparse[u8,u8]"),
            ("dense, singleton[u16]", "dense, singleton[u16]"),
            ("sparse[_,u16]", "sparse[_,u16]"),
            ("dense, interval[u16]", "dense, interval[u16]"),
            ("blocks[u8,u64], band[u32]", "blocks[u8,u64], band[u32,u32]"),
            ("(i,j) -> (i%4, j, i/4): dense, sparse, runs", "(i,j) -> (i%4,j,i/4): dense, sparse, runs"),
            (
                "(i,j) -> (i/4, j/4, j%4, i%4): dense, sparse, dense, dense",
                "(i,j) -> (i/4,j/4,j%4,i%4): dense, sparse, dense, dense",
            ),
            ("dense, sparse_runs; pattern", "dense, sparse_runs; pattern"),
            ("ism(coord)", "ism(coord)"),
            ("ism(hash, 64); pattern", "ism(hash, 64); pattern"),
            ("(i,j) -> (j,i): ism(bucket,6,pipelined)", "(i,j) -> (j,i): ism(bucket, 6, pipelined)"),
            ("dense, sparse; element(0)", "csr"),
            ("sparse; element(1.0+2.0j)", "sparse; element(1.0+2.0j)"),
            ("(i,j,k) -> (k,i,j): dense, hash, bytemap", "(i,j,k) -> (k,i,j): dense, hash, bytemap"),
        ];
        for (text, printed) in table {
            let format = parse(text).unwrap_or_else(|d| panic!("{text}: {d}"));
            assert_eq!(format.to_string(), printed, "{text}");
            assert_eq!(parse(&format.to_string()).unwrap(), format, "{text}");
        }
    }

    #[test]
    fn mistakes() {
        let table = [
            ("", Code::E0601),
            ("dense,", Code::E0601),
            ("sparce", Code::E0602),
            ("dense; elements(0)", Code::E0602),
            ("sparse(unique)", Code::E0602),
            ("sparse[u12]", Code::E0601),
            ("(i,j) -> (i): dense", Code::E0606),
            ("(i,j) -> (i,i): dense, dense", Code::E0606),
            ("(i,i) -> (i): dense", Code::E0606),
            ("(i,j) -> (i,k): dense, dense", Code::E0606),
            ("(i,j) -> (i/4,j,i%3): dense, dense, dense", Code::E0606),
            ("bsr(0,4)", Code::E0606),
            ("(i,j) -> (i,j): dense", Code::E0603),
            ("sparse(nonunique), dense", Code::E0604),
            ("sparse(nonordered), dense", Code::E0604),
            ("sparse(nonordered), singleton", Code::E0604),
            ("dense(nonordered)", Code::E0604),
            ("dense, hash(nonordered)", Code::E0604),
            ("dense, sparse(nonunique, nonordered)", Code::E0604),
            ("dense, sparse(nonordered, nonunique)", Code::E0604),
            ("dense, sparse(nonordered,)", Code::E0601),
            ("dense, sparse(unordered)", Code::E0602),
            ("dense(nonunique), dense", Code::E0604),
            ("dense[u32], sparse", Code::E0604),
            ("dense, interval[u32,u32]", Code::E0604),
            ("(i,j) -> (i%3,j,i/4): dense, dense, dense", Code::E0606),
            ("(i,j) -> (i%4,j,i%4): dense, dense, dense", Code::E0606),
            ("(i,j) -> (j-i,i/2,i%2): sparse, dense, dense", Code::E0606),
            ("dense sparse", Code::E0601),
            ("dense, sparse; element(x)", Code::E0601),
            ("csr extra", Code::E0601),
            ("ism", Code::E0601),
            ("ism(coord, 0)", Code::E0601),
            ("ism(coord, fast)", Code::E0602),
            ("ism(coord), dense", Code::E0601),
            ("(i,j) -> (i): ism(coord)", Code::E0603),
        ];
        for (text, code) in table {
            let d = parse(text).expect_err(text);
            assert_eq!(d.code, code, "{text}: {d}");
            assert!(!d.help.is_empty(), "{text}");
            assert!(d.source.is_some(), "{text}");
        }
    }
}
