//! Printer of formats, in the text form that [`super::FormatSpec::parse`] reads back.

use super::{DimExpr, Format, FormatSpec, Ism, Leaf, LevelSpec, ShortName};
use std::fmt;

/// The name of dimension `d` in a printed map: i, j, k, …, then d9, d10, ….
pub(super) fn dim_name(d: usize) -> String {
    match "ijklmnopq".chars().nth(d) {
        Some(c) => c.to_string(),
        None => format!("d{d}"),
    }
}

impl fmt::Display for LevelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if self.nonunique {
            f.write_str("(nonunique)")?;
        }
        if self.nonordered {
            f.write_str("(nonordered)")?;
        }
        match (self.pos, self.crd) {
            (Some(pos), Some(crd)) => write!(f, "[{},{}]", pos.name(), crd.name()),
            (None, Some(crd)) if !self.kind.has_positions() => write!(f, "[{}]", crd.name()),
            (None, Some(crd)) => write!(f, "[_,{}]", crd.name()),
            (Some(pos), None) => write!(f, "[{},_]", pos.name()),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for Ism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ism({}", self.policy)?;
        if let Some(capacity) = self.capacity {
            write!(f, ", {capacity}")?;
        }
        if self.pipelined {
            f.write_str(", pipelined")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leaf::Element(None) => f.write_str("element(0)"),
            Leaf::Element(Some(fill)) => write!(f, "element({fill})"),
            Leaf::Pattern => f.write_str("pattern"),
        }
    }
}

impl fmt::Display for DimExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DimExpr::Dim(d) => f.write_str(&dim_name(*d)),
            DimExpr::Div(d, n) => write!(f, "{}/{n}", dim_name(*d)),
            DimExpr::Mod(d, n) => write!(f, "{}%{n}", dim_name(*d)),
            DimExpr::Diff(a, b) => write!(f, "{}-{}", dim_name(*a), dim_name(*b)),
        }
    }
}

impl Format {
    /// The short name of these levels (without the leaf), if they have one.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::parse("dense, sparse", 2)?.short_name().as_deref(), Some("csr"));
    /// assert_eq!(Format::parse("dense, band", 2)?.short_name(), None);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn short_name(&self) -> Option<String> {
        if self.ism.is_some() {
            return None;
        }
        let bare = self.clone().with_leaf(Leaf::Element(None));
        for text in ["csr", "csc", "dcsr", "dcsc"] {
            if FormatSpec::parse(text) == Ok(FormatSpec::Fixed(bare.clone())) {
                return Some(text.to_string());
            }
        }
        match self.map[..] {
            [DimExpr::Div(0, r), DimExpr::Div(1, c), DimExpr::Mod(0, _), DimExpr::Mod(1, _)] => {
                let text = format!("bsr({r},{c})");
                (FormatSpec::parse(&text) == Ok(FormatSpec::Fixed(bare))).then_some(text)
            }
            _ => [ShortName::Dense, ShortName::Coo, ShortName::Csf]
                .into_iter()
                .find(|name| name.levels(self.rank) == bare && (self.rank != 1 || *name == ShortName::Dense))
                .map(|name| name.name().to_string()),
        }
    }

    /// The levels and the leaf in long form.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::parse("dcsr", 2)?.long_name(), "sparse, sparse");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn long_name(&self) -> String {
        let mut out = String::new();
        if self.map.iter().enumerate().any(|(k, e)| *e != DimExpr::Dim(k)) {
            let dims: Vec<String> = (0..self.rank).map(dim_name).collect();
            let map: Vec<String> = self.map.iter().map(DimExpr::to_string).collect();
            out += &format!("({}) -> ({}): ", dims.join(","), map.join(","));
        }
        let levels: Vec<String> = match &self.ism {
            Some(ism) => vec![ism.to_string()],
            None => self.levels.iter().map(LevelSpec::to_string).collect(),
        };
        out += if levels.is_empty() { "dense".to_string() } else { levels.join(", ") }.as_str();
        out + &leaf_suffix(self.leaf)
    }
}

fn leaf_suffix(leaf: Leaf) -> String {
    match leaf {
        Leaf::Element(None) => String::new(),
        leaf => format!("; {leaf}"),
    }
}

/// The short name if it has the same meaning for every rank, else the levels.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.short_name() {
            Some(name) if name != "coo" && name != "csf" && (name != "dense" || self.rank <= 1) => {
                write!(f, "{name}{}", leaf_suffix(self.leaf))
            }
            _ => f.write_str(&self.long_name()),
        }
    }
}

impl fmt::Display for FormatSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatSpec::AnyRank(name, leaf) => write!(f, "{}{}", name.name(), leaf_suffix(*leaf)),
            FormatSpec::Ism(ism, leaf) => write!(f, "{ism}{}", leaf_suffix(*leaf)),
            FormatSpec::Fixed(format) => format.fmt(f),
        }
    }
}
