//! Random nests of sparse loops around a dense loop over a row of the result; often with something
//! about them that forbids to keep the row anywhere else, and with rows, columns and elements that
//! are not there.

use super::random::KernelRng;
use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::{Array, Assumption, BufferId, Builder, Elem, ExprId, Kernel, Memory, Role, Stmt};
use tamis_ir::{DType, Value};

/// Rows of the sparse operand, and coordinates in it, are below this.
const ROWS: usize = 3;

struct Nest {
    random: KernelRng,
    b: Builder,
    pos: BufferId,
    crd: BufferId,
    scale: BufferId,
    dense: BufferId,
    row: BufferId,
    other: BufferId,
    /// The length of a row.
    n: ExprId,
    from: ExprId,
    dtype: DType,
}

/// A kernel, and memory for it.
pub fn kernel(seed: u64) -> (Kernel, Memory) {
    let mut random = KernelRng(seed);
    let mut b = Builder::new("nest");
    let dtype = random.pick(&[DType::F64, DType::F64, DType::F32, DType::I32, DType::U8, DType::C128]);
    let value = Elem::Value(dtype);
    let pos = b.buffer("A_pos", Elem::Index(Width::U32), Role::Input);
    let crd = b.buffer("A_crd", Elem::Index(Width::U32), Role::Input);
    let scale = b.buffer("A_values", value, Role::Input);
    let dense = b.buffer("B", value, Role::Input);
    let row = b.buffer("C", value, Role::Output);
    let other = b.buffer("D", value, Role::Output);
    let (rows, n, from) = (b.param("rows", DType::I64), b.param("n", DType::I64), b.param("from", DType::I64));
    let (rows, n, from) = (b.get(rows), b.get(n), b.get(from));
    let mut pos_values = vec![0u64];
    for _ in 0..ROWS {
        let len = random.pick(&[0, 0, 1, 2, 3]);
        pos_values.push(pos_values[pos_values.len() - 1] + len);
    }
    let stored = pos_values[ROWS] as usize;
    // If all coordinates are 0, loops up to them do not run.
    let most = if random.one_in(4) { 1 } else { ROWS };
    let crd_values: Vec<u64> = (0..stored).map(|_| random.below(most) as u64).collect();
    let length = random.pick(&[-7, 0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70, 130]);
    let n = if random.one_in(6) { b.int(length) } else { n };
    let from = match random.below(5) {
        0 => from,
        1 => b.int(2),
        _ => b.int(0),
    };
    let cells = ROWS * length.max(0) as usize;
    let mut array = |len: usize| {
        let number = |random: &mut KernelRng| Value::F64((random.below(9) as f64 - 2.0) / 2.0).cast(dtype);
        Array::from_values((0..len).map(|_| number(&mut random)))
    };
    let (scale_values, dense_values) = (array(stored), array(cells + 2));
    let (row_values, other_values) = (array(cells + 2), array(4));
    let mut arrays = vec![Array::from_indices(&pos_values), Array::from_indices(&crd_values), scale_values];
    arrays.extend([dense_values, row_values, other_values]);
    let scalars = [ROWS as i64, length, random.pick(&[0, 1, 5, 200])].map(Value::I64).to_vec();
    // Arrays without accesses are not needed.
    if random.one_in(4) {
        let k = random.pick(&[2, 3, 4]);
        let len = random.below(arrays[k].len() + 1);
        arrays[k] = Array::from_values(arrays[k].values()[..len].iter().copied());
    }
    let mut nest = Nest { random, b, pos, crd, scale, dense, row, other, n, from, dtype };
    nest.body(rows);
    (nest.b.finish(), Memory { arrays, scalars })
}

impl Nest {
    fn constant(&mut self, value: f64) -> ExprId {
        self.b.constant(Value::F64(value).cast(self.dtype))
    }

    fn body(&mut self, rows: ExprId) {
        let zero = self.b.int(0);
        let size = self.b.call(Op::Mul, &[rows, self.n]);
        if self.random.one_in(2) {
            let fill = Value::F64(1.0).cast(self.dtype);
            self.b.emit(Stmt::Grow { buffer: self.row, len: size, fill: Some(fill) });
        }
        if self.random.one_in(2) {
            self.b.assume(Assumption::Below { buffer: self.crd, bound: rows });
        }
        let var = self.b.new_var("i", DType::I64, false);
        let i = self.b.get(var);
        let body = self.block(|nest| {
            if nest.random.one_in(2) {
                let start = nest.b.call(Op::Mul, &[i, nest.n]);
                let value = nest.constant(3.0);
                let one = nest.b.int(1);
                let len = if nest.random.one_in(4) { nest.b.call(Op::Sub, &[nest.n, one]) } else { nest.n };
                nest.b.emit(Stmt::Fill { buffer: nest.row, start, len, value });
            }
            nest.sparse(i);
        });
        self.b.emit(Stmt::For { var, start: zero, stop: rows, body, hint: Default::default() });
    }

    /// Lends the builder to itself, so that blocks nest.
    fn block(&mut self, body: impl FnOnce(&mut Nest)) -> Vec<Stmt> {
        let mut builder = std::mem::replace(&mut self.b, Builder::new(""));
        let block = builder.block(|b| {
            std::mem::swap(b, &mut self.b);
            body(self);
            std::mem::swap(b, &mut self.b);
        });
        self.b = builder;
        block
    }

    /// A loop over the stored elements of row `i`.
    fn sparse(&mut self, i: ExprId) {
        let one = self.b.int(1);
        let next = self.b.add(i, one);
        let (start, stop) = (self.b.load(self.pos, i), self.b.load(self.pos, next));
        if self.random.one_in(3) {
            let q = self.b.variable_from("q", start);
            let at = self.b.get(q);
            let cond = self.b.call(Op::Lt, &[at, stop]);
            let body = self.block(|nest| {
                let here = nest.b.name("here", at);
                let here = if nest.random.one_in(2) { here } else { at };
                nest.stored(i, here);
                let next = nest.b.add(at, one);
                nest.b.assign(q, next);
            });
            self.b.emit(Stmt::While { cond, body });
            if self.random.one_in(2) {
                let zero = self.b.int(0);
                let last = self.b.call_in(Op::Cast(self.dtype), DType::I64, &[at]);
                self.b.store(self.other, zero, last);
            }
        } else {
            let var = self.b.new_var("q", DType::I64, false);
            let q = self.b.get(var);
            let body = self.block(|nest| nest.stored(i, q));
            self.b.emit(Stmt::For { var, start, stop, body, hint: Default::default() });
        }
    }

    /// The work for one stored element.
    fn stored(&mut self, i: ExprId, q: ExprId) {
        let j = self.b.load(self.crd, q);
        let j = if self.random.one_in(2) { self.b.name("j", j) } else { j };
        let mut factor = self.b.load(self.scale, q);
        if self.random.one_in(8) {
            let place = self.b.call(Op::Mul, &[i, self.n]);
            factor = self.b.load(self.row, place);
            factor = self.b.name("factor", factor);
        }
        if self.random.one_in(3) {
            let zero = self.b.int(0);
            let var = self.b.new_var("r", DType::I64, false);
            let body = self.block(|nest| nest.dense(i, j, factor));
            self.b.emit(Stmt::For { var, start: zero, stop: j, body, hint: Default::default() });
        } else {
            self.dense(i, j, factor);
        }
        if self.random.one_in(12) {
            let (one, value) = (self.b.int(1), self.constant(2.0));
            self.b.store(self.other, one, value);
        }
    }

    fn dense(&mut self, i: ExprId, j: ExprId, factor: ExprId) {
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let var = self.b.new_var("k", DType::I64, false);
        let k = self.b.get(var);
        let body = self.block(|nest| {
            let mut base = nest.b.call(Op::Mul, &[if nest.random.one_in(12) { j } else { i }, nest.n]);
            if nest.random.one_in(6) {
                base = nest.b.add(base, one);
            }
            let place = if nest.random.one_in(3) { nest.b.add(k, base) } else { nest.b.add(base, k) };
            let place = if nest.random.one_in(2) { nest.b.name("place", place) } else { place };
            let line = nest.b.call(Op::Mul, &[j, nest.n]);
            let at = nest.b.add(line, k);
            let (mut a, b) = (factor, nest.b.load(nest.dense, at));
            if nest.random.one_in(12) {
                a = nest.b.load(nest.row, zero);
            }
            let op = nest.random.pick(&[Op::Mul, Op::Add]);
            let change = nest.b.call(op, &[a, b]);
            let before = nest.b.load(nest.row, place);
            let ops: &[Op] = match nest.dtype {
                DType::C128 => &[Op::Add, Op::Sub],
                _ => &[Op::Add, Op::Add, Op::Sub, Op::Min, Op::Max],
            };
            let op = nest.random.pick(ops);
            let operands = if nest.random.one_in(4) { [change, before] } else { [before, change] };
            let value = nest.b.call(op, &operands);
            let value = if nest.b.dtype(value) == nest.dtype {
                value
            } else {
                nest.b.call_in(Op::Cast(nest.dtype), nest.b.dtype(value), &[value])
            };
            nest.b.store(nest.row, place, value);
        });
        let stop = if self.random.one_in(12) { j } else { self.n };
        let start = self.from;
        self.b.emit(Stmt::For { var, start, stop, body, hint: Default::default() });
    }
}
