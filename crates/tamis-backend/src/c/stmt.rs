//! C statements: printing of kernel statements.

use super::expr::Prec;
use super::{Printer, helpers, stored};
use crate::failure::Status;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Elem, Expr, ExprId, Gemm, LabelId, Role, Stmt, VarId};
use tamis_ir::{DType, Kind, Value};

impl Printer<'_> {
    pub(super) fn stmts(&mut self, block: &Block) {
        block.iter().for_each(|stmt| self.stmt(stmt));
    }

    /// Prints a block inside braces.
    fn inside(&mut self, block: &Block) {
        let before = self.names.enter_scope();
        self.depth += 1;
        self.stmts(block);
        self.depth -= 1;
        self.names.exit_scope(before);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { var, value } => {
                let value = self.implicit(*value);
                self.declare(*var, &value);
            }
            Stmt::Assign { var, value } => {
                let target = self.vars[var.index()].clone();
                let dtype = self.kernel.var(*var).dtype;
                let itself = |e: &Expr| matches!(e, Expr::Var(other) if other == var);
                self.update(&target, Elem::Value(dtype), *value, itself);
            }
            Stmt::Store { buffer, index, value } => {
                let target = self.element(*buffer, *index);
                let itself = |e: &Expr| matches!(e, Expr::Load(b, i) if b == buffer && i == index);
                self.update(&target, self.kernel.buffer(*buffer).elem, *value, itself);
            }
            // Legalisation leaves none of these.
            Stmt::MaskedStore { .. } | Stmt::Update { .. } | Stmt::Barrier => {}
            Stmt::Prefetch { buffer, index, distance, locality } => {
                let data = self.buffers[buffer.index()].data.clone();
                let index = self.expr(*index, Prec::Sum);
                // An address outside of the array must not be formed by adding to a pointer.
                let size = self.kernel.buffer(*buffer).elem.size();
                let address = format!("(uintptr_t){data} + (uint64_t)({index} + {distance}) * {size}");
                self.line("#if defined(__GNUC__)");
                self.line(format!("__builtin_prefetch((const void *)({address}), 0, {locality});"));
                self.line("#endif");
            }
            Stmt::For { var, start, stop, body, .. } => self.count(*var, *start, *stop, body, None),
            Stmt::While { cond, body } => self.repeat(*cond, body, None),
            Stmt::If { cond, then, otherwise } => {
                let condition = self.expr(*cond, Prec::Lowest);
                self.line(format!("if ({condition}) {{"));
                self.inside(then);
                self.otherwise(otherwise);
            }
            Stmt::Labelled { label, body } => self.labelled(*label, body),
            Stmt::Break(label) => {
                if self.loops.last() == Some(&Some(*label)) {
                    self.line("break;");
                } else {
                    self.goto_labels.insert(*label);
                    self.line(format!("goto after_{};", label.0));
                }
            }
            Stmt::Grow { buffer, len, fill } => {
                let len = self.implicit(*len);
                self.grow_to(*buffer, &len, *fill);
            }
            Stmt::Fill { buffer, start, len, value } => self.fill(*buffer, *start, *len, *value),
            Stmt::Search { var, buffer, start, stop, key, back } => {
                let helper = self.index_helper(if *back { "search_back" } else { "search" }, *buffer);
                let data = self.buffers[buffer.index()].data.clone();
                let (start, stop, key) = (self.implicit(*start), self.implicit(*stop), self.implicit(*key));
                self.declare(*var, &format!("{helper}({data}, {start}, {stop}, {key})"));
            }
            // Sorting by flags pays only with vector code, which this text does without.
            Stmt::Sort { buffer, start, stop, flags: _ } => {
                let helper = self.index_helper("sort", *buffer);
                let data = self.buffers[buffer.index()].data.clone();
                let (start, stop) = (self.implicit(*start), self.implicit(*stop));
                self.line(format!("{helper}({data}, {start}, {stop});"));
            }
            Stmt::Gemm(gemm) => self.gemm(gemm),
            Stmt::Reset { .. } | Stmt::Insert { .. } | Stmt::Finalize { .. } => self.workspace(stmt),
            Stmt::Require { cond, message } => {
                let condition = self.expr(*cond, Prec::Unary);
                let id = self.facts.message_id(message);
                let comment: String = message.replace("*/", "* /").replace(['\n', '\r', '\\', '?'], " ");
                self.line(format!("if (!{condition}) /* {comment} */"));
                self.fail(Status::Required, id, "0");
            }
        }
    }

    fn otherwise(&mut self, otherwise: &Block) {
        match otherwise.as_slice() {
            [] => self.line("}"),
            [Stmt::If { cond, then, otherwise }] => {
                let condition = self.expr(*cond, Prec::Lowest);
                self.line(format!("}} else if ({condition}) {{"));
                self.inside(then);
                self.otherwise(otherwise);
            }
            _ => {
                self.line("} else {");
                self.inside(otherwise);
                self.line("}");
            }
        }
    }

    /// A matrix multiplication as three loops, the sum in ascending order.
    fn gemm(&mut self, gemm: &Gemm) {
        let [i, j, l] = ["i", "j", "l"].map(|name| self.names.fresh(name));
        let [m, n, k] = gemm.sizes.map(|size| self.implicit(size));
        for (counter, size) in [(&i, m), (&l, k), (&j, n)] {
            self.line(format!("for (int64_t {counter} = 0; {counter} < {size}; {counter}++) {{"));
            self.depth += 1;
        }
        let [c, a, b] = [(gemm.c, &i, &j), (gemm.a, &i, &l), (gemm.b, &l, &j)].map(|(view, row, column)| {
            let data = self.buffers[view.buffer.index()].data.clone();
            let [rows, columns] = view.strides.map(|stride| self.expr(stride, Prec::Unary));
            let offset = self.expr(view.offset, Prec::Unary);
            format!("{data}[{offset} + {row} * {rows} + {column} * {columns}]")
        });
        match self.kernel.expr(gemm.alpha) {
            Expr::Const(alpha) if alpha.as_c128().re == 1.0 => self.line(format!("{c} += {a} * {b};")),
            _ => {
                let alpha = self.expr(gemm.alpha, Prec::Unary);
                self.line(format!("{c} += {alpha} * ({a} * {b});"));
            }
        }
        for _ in 0..3 {
            self.depth -= 1;
            self.line("}");
        }
    }

    /// Declares a variable.
    pub(super) fn declare(&mut self, var: VarId, value: &str) {
        let info = self.kernel.var(var);
        let (dtype, mutable) = (info.dtype, info.mutable);
        let name = self.names.fresh(&info.name);
        self.vars[var.index()] = name.clone();
        let ty = self.ty(dtype);
        let constant = if mutable { "" } else { "const " };
        self.line(format!("{constant}{ty} {name} = {value};"));
        if !self.facts.read[var.index()] {
            self.line(format!("(void){name};"));
        }
    }

    /// Prints `target = value;`, or `target += e;` if the value has that form.
    fn update(&mut self, target: &str, elem: Elem, value: ExprId, itself: impl Fn(&Expr) -> bool) {
        if let Expr::Call(op, operand, operands) = self.kernel.expr(value)
            && let [a, b] = operands.as_slice()
            && itself(self.kernel.expr(*a))
            && elem == Elem::Value(*operand)
            && let Some(symbol) = self.updates(*op, *operand, value)
        {
            if matches!((self.kernel.expr(*b), op), (Expr::Const(Value::I64(1)), Op::Add)) {
                return self.line(format!("{target}++;"));
            }
            let operand = self.converted(*b, *operand, Prec::Lowest);
            return self.line(format!("{target} {symbol}= {operand};"));
        }
        let value = match elem {
            // A narrowing store has an explicit cast, unless the value certainly fits.
            Elem::Index(width) if width.size() < 8 => {
                let constant = matches!(self.kernel.expr(value), Expr::Const(_));
                let narrow = matches!(self.kernel.expr(value), Expr::Load(b, _)
                    if self.kernel.buffer(*b).elem == elem);
                if constant || narrow {
                    self.implicit(value)
                } else {
                    format!("({}){}", stored(elem), self.expr(value, Prec::Unary))
                }
            }
            _ => self.implicit(value),
        };
        self.line(format!("{target} = {value};"));
    }

    /// The C compound assignment operator of this type, if it has the same semantics.
    fn updates(&self, op: Op, dtype: DType, value: ExprId) -> Option<&'static str> {
        let plain = match dtype.kind() {
            Kind::Float => true,
            Kind::Complex => matches!(op, Op::Add | Op::Sub),
            Kind::Int => matches!(dtype, DType::U32 | DType::U64) || self.facts.is_index(value),
            Kind::Bool => false,
        };
        match op {
            Op::Add if plain => Some("+"),
            Op::Sub if plain => Some("-"),
            Op::Mul if plain => Some("*"),
            Op::Div if dtype.kind() == Kind::Float => Some("/"),
            Op::BitAnd if dtype.kind() == Kind::Int => Some("&"),
            Op::BitOr if dtype.kind() == Kind::Int => Some("|"),
            Op::BitXor if dtype.kind() == Kind::Int => Some("^"),
            _ => None,
        }
    }

    fn count(&mut self, var: VarId, start: ExprId, stop: ExprId, body: &Block, label: Option<LabelId>) {
        let info = self.kernel.var(var);
        let (name, mutable) = (info.name.clone(), info.mutable);
        let start = self.implicit(start);
        let stop = self.invariant(stop, &format!("{name}_stop"));
        let before = self.names.enter_scope();
        let counter = self.names.fresh(&name);
        self.line(format!("for (int64_t {counter} = {start}; {counter} < {stop}; {counter}++) {{"));
        self.vars[var.index()] = counter.clone();
        if mutable {
            // The body modifies a copy of the counter.
            let copy = self.names.fresh(&name);
            self.depth += 1;
            self.line(format!("int64_t {copy} = {counter};"));
            if !self.facts.read[var.index()] {
                self.line(format!("(void){copy};"));
            }
            self.depth -= 1;
            self.vars[var.index()] = copy;
        }
        self.loops.push(label);
        self.inside(body);
        self.loops.pop();
        self.names.exit_scope(before);
        self.line("}");
    }

    fn repeat(&mut self, cond: ExprId, body: &Block, label: Option<LabelId>) {
        let condition = self.expr(cond, Prec::Lowest);
        self.line(format!("while ({condition}) {{"));
        self.loops.push(label);
        self.inside(body);
        self.loops.pop();
        self.line("}");
    }

    /// A block that ends in a loop is exited by `break` from that loop; every other exit is a
    /// `goto`.
    fn labelled(&mut self, label: LabelId, body: &Block) {
        let Some((last, first)) = body.split_last() else { return };
        let before = self.names.enter_scope();
        let braces = first.iter().any(|stmt| stmt.declares().is_some() && !matches!(stmt, Stmt::For { .. }));
        if braces {
            self.line("{");
            self.depth += 1;
        }
        first.iter().for_each(|stmt| self.stmt(stmt));
        match last {
            Stmt::For { var, start, stop, body, .. } => self.count(*var, *start, *stop, body, Some(label)),
            Stmt::While { cond, body } => self.repeat(*cond, body, Some(label)),
            other => self.stmt(other),
        }
        if braces {
            self.depth -= 1;
            self.line("}");
            self.names.exit_scope(before);
        }
        if self.goto_labels.contains(&label) {
            self.line(format!("after_{}:;", label.0));
        }
    }

    pub(super) fn grow_to(&mut self, buffer: BufferId, len: &str, fill: Option<Value>) {
        let elem = self.kernel.buffer(buffer).elem;
        let Some(descriptor) = self.buffers[buffer.index()].descriptor.clone() else { return };
        let data = self.buffers[buffer.index()].data.clone();
        let is_output = self.kernel.buffer(buffer).role == Role::Output;
        let (address, dot) = if is_output { (descriptor.clone(), "->") } else { (format!("&{descriptor}"), ".") };
        let helper = self.helper(helpers::grow(elem, fill.is_some()));
        let fill = fill.map_or(String::new(), |fill| format!(", {}", self.constant(fill, Prec::Lowest)));
        self.line(format!("if (!{helper}({address}, {len}{fill}))"));
        self.fail(Status::Memory, buffer.index(), len);
        if self.facts.accessed[buffer.index()] {
            self.line(format!("{data} = {descriptor}{dot}data;"));
        }
    }

    fn fill(&mut self, buffer: BufferId, start: ExprId, len: ExprId, value: ExprId) {
        let before = self.names.enter_scope();
        self.line("{");
        self.depth += 1;
        let value = self.invariant(value, "value");
        let (start, len) = (self.invariant(start, "start"), self.invariant(len, "len"));
        let k = self.names.fresh("k");
        let data = self.buffers[buffer.index()].data.clone();
        let zero = start == "0";
        let stop = if zero { len } else { format!("{start} + {len}") };
        self.line(format!("for (int64_t {k} = {start}; {k} < {stop}; {k}++)"));
        self.line(format!("    {data}[{k}] = {value};"));
        self.depth -= 1;
        self.line("}");
        self.names.exit_scope(before);
    }

    /// Prints a loop-invariant expression: itself if nothing modifies it, else a constant that
    /// holds its value.
    fn invariant(&mut self, id: ExprId, name: &str) -> String {
        if self.is_invariant(id) {
            return self.expr_in_comparison(id);
        }
        let value = self.implicit(id);
        let ty = self.ty(self.kernel.exprs.dtype(id));
        let name = self.names.fresh(name);
        self.line(format!("const {ty} {name} = {value};"));
        name
    }

    fn is_invariant(&self, id: ExprId) -> bool {
        match self.kernel.expr(id) {
            Expr::Const(_) => true,
            Expr::Var(var) => !self.kernel.var(*var).mutable,
            Expr::Load(buffer, index) => self.kernel.buffer(*buffer).role == Role::Input && self.is_invariant(*index),
            // Only cheap operations stay in the loop header.
            Expr::Call(op, DType::I64, operands) => {
                matches!(op, Op::Add | Op::Sub)
                    && self.facts.is_index(id)
                    && operands.iter().all(|e| matches!(self.kernel.expr(*e), Expr::Const(_) | Expr::Var(_)))
                    && operands.iter().all(|e| self.is_invariant(*e))
            }
            Expr::Call(..) | Expr::Vector(_) => false,
        }
    }

    /// Prints the return of a failure, as the statement of an `if`.
    pub(super) fn fail(&mut self, status: Status, id: usize, index: &str) {
        self.fails = true;
        self.helper(helpers::fail());
        let call = format!("tamis_fail(failure, {}, {id}, {index})", status as i32);
        if self.owns_memory() {
            // The function frees its own memory at the end.
            self.line(format!("{{ status = {call}; goto done; }}"));
        } else {
            self.line(format!("    return {call};"));
        }
    }

    fn index_helper(&mut self, name: &str, buffer: BufferId) -> String {
        let Elem::Index(width) = self.kernel.buffer(buffer).elem else { return String::new() };
        self.helper(match name {
            "search" => helpers::search(width),
            "search_back" => helpers::search_back(width),
            _ => helpers::sort(width),
        })
    }
}
