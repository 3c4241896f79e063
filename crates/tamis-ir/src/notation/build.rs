//! Construction of loop programs from assignments, and printing of expressions.

use super::{IndexRange, Notation, indices_in};
use crate::algebra::{Op, Value};
use crate::diag::{Diagnostics, Span};
use crate::program::Program;
use crate::text::syntax::{Expr, ExprKind, Extent, Function, Name, Stmt, StmtKind};
use rustc_hash::FxHashMap;

/// A statement of a program under construction.
///
/// ```
/// use tamis_ir::Notation;
/// use tamis_ir::notation::ProgramNode;
/// let product = Notation::parse("y[i] = A[i,j] * x[j]")?;
/// let (target, op) = ("y".to_string(), product.assignments[0].op);
/// let (subscripts, value) =
///     (product.assignments[0].subscripts.clone(), product.assignments[0].body.clone());
/// let assign = ProgramNode::Assign { target, subscripts, op, value };
/// let (name, format) = ("y".to_string(), Some("dense".to_string()));
/// let declare = ProgramNode::Declare { name, format, fill: None };
/// let mut nodes = vec![declare];
/// nodes.extend(ProgramNode::nest(&["j", "i"], &[], vec![assign]));
/// let program = product.program("f", &["A", "x"], &nodes)?;
/// assert!(program.to_string().contains("for j, i in _:"));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ProgramNode {
    /// `name = tensor("format", fill=..)`, or `name = scalar(fill)` without a format.
    Declare { name: String, format: Option<String>, fill: Option<Value> },
    /// `for index in _:`, or `for index in range(..):`
    Loop { index: String, range: Option<IndexRange>, body: Vec<ProgramNode> },
    /// `if cond:`
    If { cond: Expr, body: Vec<ProgramNode> },
    /// `target[subscripts] op= value`
    Assign { target: String, subscripts: Vec<Expr>, op: Option<Op>, value: Expr },
}

impl ProgramNode {
    /// Loops around nodes, the first outermost.
    ///
    /// ```
    /// use tamis_ir::notation::ProgramNode;
    /// let nodes = ProgramNode::nest(&["i", "j"], &[], Vec::new());
    /// let ProgramNode::Loop { index, body, .. } = &nodes[0] else { panic!() };
    /// assert_eq!((index.as_str(), body.len()), ("i", 1));
    /// ```
    pub fn nest<S: AsRef<str>>(order: &[S], ranges: &[IndexRange], body: Vec<ProgramNode>) -> Vec<ProgramNode> {
        order.iter().rev().fold(body, |body, index| vec![ProgramNode::over(index.as_ref(), ranges, body)])
    }

    /// A node under conditions.
    ///
    /// ```
    /// use tamis_ir::notation::ProgramNode;
    /// let node = ProgramNode::over("i", &[], Vec::new());
    /// assert_eq!(ProgramNode::under(&[], node.clone()), node, "there are no conditions");
    /// ```
    pub fn under(conditions: &[&Expr], node: ProgramNode) -> ProgramNode {
        conditions.iter().rev().fold(node, |node, cond| ProgramNode::If { cond: (*cond).clone(), body: vec![node] })
    }

    /// A loop around nodes, over its range if it has one.
    ///
    /// ```
    /// use tamis_ir::notation::ProgramNode;
    /// let node = ProgramNode::over("i", &[], Vec::new());
    /// assert!(matches!(node, ProgramNode::Loop { range: None, .. }));
    /// ```
    pub fn over(index: &str, ranges: &[IndexRange], body: Vec<ProgramNode>) -> ProgramNode {
        let range = ranges.iter().find(|range| range.index == index).cloned();
        ProgramNode::Loop { index: index.to_string(), range, body }
    }
}

impl Notation {
    /// Plain loops over everything, with dense results that start at 0: sufficient for names, ranks
    /// and sizes.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let program = Notation::parse("y[i] = A[i,j] * x[j]")?.plain()?;
    /// assert!(program.to_string().contains("for i, j in _:"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn plain(&self) -> Result<Program, Diagnostics> {
        self.plain_from(&FxHashMap::default())
    }

    /// Plain loops over everything, with dense results that start at these values, or at 0.
    ///
    /// ```
    /// use tamis_ir::{Notation, Value};
    /// let least = Notation::parse("m = min[i](x[i])")?;
    /// let fills = [("m".to_string(), Value::F64(f64::INFINITY))].into_iter().collect();
    /// assert!(least.plain_from(&fills)?.to_string().contains("inf"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn plain_from(&self, fills: &FxHashMap<String, Value>) -> Result<Program, Diagnostics> {
        let (mut nodes, mut loops) = (Vec::new(), Vec::new());
        for assignment in &self.assignments {
            let name = assignment.target.text.clone();
            if !assignment.again {
                let (format, fill) = (Some("dense".to_string()), fills.get(&name).copied());
                nodes.push(ProgramNode::Declare { name: name.clone(), format, fill });
            }
            let (subscripts, op) = (assignment.subscripts.clone(), assignment.op);
            let assign = ProgramNode::Assign { target: name, subscripts, op, value: assignment.body.clone() };
            let assign = ProgramNode::under(&assignment.masks(&assignment.body), assign);
            loops.extend(ProgramNode::nest(&assignment.indices(), &assignment.ranges, vec![assign]));
        }
        nodes.extend(loops);
        self.program("notation", &self.operands(), &nodes)
    }

    /// [`Notation::plain`] with the interface of callers: parameters keep their original names,
    /// also if a result has the same name.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let program = Notation::parse("y[i] = A[i,j] * x[j]")?.interface()?;
    /// let names = program.params.iter().map(|id| program.tensor(*id).name.as_str());
    /// assert!(names.eq(["A", "x"]));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn interface(&self) -> Result<Program, Diagnostics> {
        let mut program = self.plain()?;
        for (id, name) in program.params.clone().into_iter().zip(&self.params) {
            program.tensors[id.index()].name = name.text.clone();
        }
        Ok(program)
    }

    /// The program of these nodes, with these parameters and the results of the notation.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// use tamis_ir::notation::ProgramNode;
    /// let sum = Notation::parse("s = x[i]")?;
    /// let declare = ProgramNode::Declare { name: "s".into(), format: None, fill: None };
    /// let program = sum.program("f", &["x"], &[declare])?;
    /// assert_eq!((program.params.len(), program.results.len()), (1, 1));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn program(&self, name: &str, params: &[&str], nodes: &[ProgramNode]) -> Result<Program, Diagnostics> {
        let span = Span::new(0..self.source.text.len());
        let spans = Spans::of(self, span);
        let mut body: Vec<Stmt> = nodes.iter().map(|node| spans.stmt(node)).collect();
        body.push(Stmt { kind: StmtKind::Return(self.results.clone()), span });
        let name = Name { text: name.to_string(), span };
        let param = |text: &&str| {
            let known = self.operands.iter().position(|known| known == *text);
            Name { text: text.to_string(), span: known.map_or(span, |at| self.params[at].span) }
        };
        let params = params.iter().map(param).collect();
        let function = Function { name, params, body, span };
        Program::of_syntax(&function, &self.operators, &self.source)
    }
}

/// The places of names in a notation.
struct Spans {
    /// The first assignment of each target, and its target there.
    targets: FxHashMap<String, (Span, Span)>,
    /// The first use of each index.
    indices: FxHashMap<String, Span>,
    /// The whole text.
    whole: Span,
}

impl Spans {
    fn of(notation: &Notation, whole: Span) -> Spans {
        let (mut targets, mut indices) = (FxHashMap::default(), FxHashMap::default());
        for assignment in &notation.assignments {
            let name = &assignment.target;
            targets.entry(name.text.clone()).or_insert((assignment.span, name.span));
            let mut names = Vec::new();
            assignment.subscripts.iter().for_each(|s| indices_in(s, true, &mut names));
            indices_in(&assignment.body, false, &mut names);
            for name in names {
                indices.entry(name.text).or_insert(name.span);
            }
        }
        Spans { targets, indices, whole }
    }

    fn stmt(&self, node: &ProgramNode) -> Stmt {
        let outer = self.whole;
        match node {
            ProgramNode::Declare { name, format, fill } => {
                let span = self.targets.get(name).map_or(outer, |(_, target)| *target);
                let number = |value: &Value| Expr { kind: ExprKind::Number(*value), span };
                let named = |text: &str| Name { text: text.to_string(), span };
                let (function, args, keywords) = match format {
                    Some(format) => {
                        let format = Expr { kind: ExprKind::Str(format.clone()), span };
                        (named("tensor"), vec![format], fill.iter().map(|f| (named("fill"), number(f))).collect())
                    }
                    None => (named("scalar"), fill.iter().map(number).collect(), Vec::new()),
                };
                let value = Expr { kind: ExprKind::Call { function, args, keywords }, span };
                let target = Expr { kind: ExprKind::Name(name.clone()), span };
                Stmt { kind: StmtKind::Assign { target, op: None, value }, span }
            }
            ProgramNode::Loop { index, range, body } => {
                let body: Vec<Stmt> = body.iter().map(|node| self.stmt(node)).collect();
                let span = self.indices.get(index).copied().unwrap_or(outer);
                let indices = vec![Name { text: index.clone(), span }];
                let extent = match range {
                    Some(IndexRange { start, stop, .. }) => Extent::Range(start.clone(), stop.clone()),
                    None => Extent::Infer,
                };
                Stmt { kind: StmtKind::For { indices, attributes: Vec::new(), extent, body }, span }
            }
            ProgramNode::If { cond, body } => {
                let then: Vec<Stmt> = body.iter().map(|node| self.stmt(node)).collect();
                Stmt { kind: StmtKind::If { cond: cond.clone(), then, otherwise: Vec::new() }, span: cond.span }
            }
            ProgramNode::Assign { target, subscripts, op, value } => {
                let (span, name) = self.targets.get(target).copied().unwrap_or((outer, outer));
                let base = Name { text: target.clone(), span: name };
                let kind = match subscripts.is_empty() {
                    true => ExprKind::Name(base.text),
                    false => ExprKind::Index { base, subscripts: subscripts.clone() },
                };
                let target = Expr { kind, span: name };
                Stmt { kind: StmtKind::Assign { target, op: *op, value: value.clone() }, span }
            }
        }
    }
}

/// An access as text.
pub(super) fn access_text(name: &str, subscripts: &[Expr]) -> String {
    match subscripts.is_empty() {
        true => name.to_string(),
        false => format!("{name}[{}]", list(subscripts)),
    }
}

fn list(items: &[Expr]) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// An expression as text, with minimal parentheses around sums and products.
///
/// ```
/// use tamis_ir::Notation;
/// use tamis_ir::notation::text;
/// let notation = Notation::parse("y[i] = (a[i] + b[i]) * 2")?;
/// assert_eq!(text(&notation.assignments[0].body), "(a[i] + b[i]) * 2");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn text(expr: &Expr) -> String {
    let inside = |e: &Expr, op: Op| {
        let loose = |other: Op| matches!(other, Op::Add | Op::Sub);
        match &e.kind {
            ExprKind::Operator(other, operands) if operands.len() == 2 => match (op, *other) {
                (Op::Add, other) if loose(other) || matches!(other, Op::Mul | Op::Div) => text(e),
                (Op::Sub | Op::Mul, Op::Mul | Op::Div) => text(e),
                _ => format!("({})", text(e)),
            },
            _ => text(e),
        }
    };
    match &expr.kind {
        ExprKind::Number(value) => value.to_string(),
        ExprKind::Str(text) => format!("{text:?}"),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Index { base, subscripts } => access_text(&base.text, subscripts),
        ExprKind::Size { base, dim } => format!("{}.shape[{dim}]", base.text),
        ExprKind::Entry { base, part, at } => format!("{}.{}[{}]", base.text, part.name(), list(at)),
        ExprKind::Operator(Op::BitNot, operands) if operands.len() == 1 => {
            format!("~{}", inside(&operands[0], Op::Pow))
        }
        ExprKind::Operator(op, operands) => match (&operands[..], op.info().symbol) {
            ([a], Some(symbol)) => format!("{symbol}{}", inside(a, Op::Pow)),
            ([a, b], Some(symbol)) => {
                let left = if *op == Op::Sub { Op::Add } else { *op };
                format!("{} {symbol} {}", inside(a, left), inside(b, *op))
            }
            _ => format!("{}({})", op.info().name, list(operands)),
        },
        ExprKind::Call { function, args, .. } => format!("{}({})", function.text, list(args)),
        ExprKind::Tuple(items) => format!("({})", list(items)),
        ExprKind::Reduce { op, indices, body } => {
            let word =
                crate::text::parser::expressions::REDUCTIONS.iter().find(|(_, o)| o == op).map_or("sum", |(w, _)| w);
            let names: Vec<&str> = indices.iter().map(|name| name.text.as_str()).collect();
            format!("{word}[{}]({})", names.join(", "), text(body))
        }
        ExprKind::Error => String::new(),
    }
}
