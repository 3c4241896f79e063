//! Random loops that change a few elements side by side, as register tiles of short rows are made
//! for: several loops over one row, each with its own counter, so that accesses to one element have
//! different indices; often with something that forbids a tile.

use super::random::KernelRng;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Array, BufferId, Builder, Elem, ExprId, Kernel, Memory, Role, Stmt};
use tamis_ir::{DType, Value};

struct Rows {
    random: KernelRng,
    b: Builder,
    input: BufferId,
    row: BufferId,
    dtype: DType,
    /// The start of the row, and its elements.
    first: ExprId,
    length: i64,
    /// Counters of loops over the row, and names for them.
    places: Vec<ExprId>,
    outer: ExprId,
}

/// A kernel, and memory for it.
pub fn kernel(seed: u64) -> (Kernel, Memory) {
    let mut random = KernelRng(seed);
    let mut b = Builder::new("rows");
    let dtype = random.pick(&[DType::F64, DType::F64, DType::F32, DType::I64, DType::U8]);
    let input = b.buffer("x", Elem::Value(dtype), Role::Input);
    let row = b.buffer("y", Elem::Value(dtype), Role::Output);
    let (n, from) = (b.param("n", DType::I64), b.param("from", DType::I64));
    let (n, from) = (b.get(n), b.get(from));
    let length = random.pick(&[2, 2, 3, 4, 5, 8, 16]);
    let zero = b.int(0);
    let (first, start) = if random.one_in(2) { (from, 3) } else { (zero, 0) };
    let mut array = |len: usize| {
        let number = |random: &mut KernelRng| Value::F64((random.below(9) as f64 - 2.0) / 2.0).cast(dtype);
        Array::from_values((0..len).map(|_| number(&mut random)))
    };
    let cells = (start + length + 1) as usize;
    let arrays = vec![array(32), array(cells)];
    let scalars = vec![Value::I64(random.pick(&[0, 1, 2, 3])), Value::I64(3)];
    let mut rows = Rows { random, b, input, row, dtype, first, length, places: Vec::new(), outer: zero };
    if rows.random.one_in(2) {
        let len = rows.b.int(cells as i64);
        let fill = Value::F64(1.0).cast(dtype);
        rows.b.emit(Stmt::Grow { buffer: row, len, fill: Some(fill) });
    }
    let var = rows.b.new_var("t", DType::I64, false);
    rows.outer = rows.b.get(var);
    let body = rows.block(|rows| {
        let deep = 1 + rows.random.below(3);
        rows.over(deep);
        if rows.random.one_in(3) {
            rows.over(1);
        }
    });
    rows.b.emit(Stmt::For { var, start: zero, stop: n, body, hint: Default::default() });
    (rows.b.finish(), Memory { arrays, scalars })
}

impl Rows {
    /// Lends the builder to itself, so that blocks nest.
    fn block(&mut self, body: impl FnOnce(&mut Rows)) -> Vec<Stmt> {
        let mut builder = std::mem::replace(&mut self.b, Builder::new(""));
        let block = builder.block(|b| {
            std::mem::swap(b, &mut self.b);
            body(self);
            std::mem::swap(b, &mut self.b);
        });
        self.b = builder;
        block
    }

    /// Loops over the row, one inside the other, and what they do.
    fn over(&mut self, deep: usize) {
        let var = self.b.new_var("k", DType::I64, false);
        let counter = self.b.get(var);
        let count = self.b.int(self.length - i64::from(self.random.one_in(16)));
        let zero = self.b.int(0);
        // The counter is the place itself, or counts from 0.
        let direct = self.random.one_in(2);
        let (start, stop) = if direct { (self.first, self.b.add(self.first, count)) } else { (zero, count) };
        let body = self.block(|rows| {
            let place = if direct { counter } else { rows.b.add(rows.first, counter) };
            let place = if rows.random.one_in(3) { rows.b.name("place", place) } else { place };
            rows.places.push(place);
            if rows.random.one_in(4) || deep == 0 {
                rows.change();
            }
            match deep {
                0 | 1 => rows.change(),
                _ => rows.over(deep - 1),
            }
            if rows.random.one_in(3) {
                rows.change();
            }
            rows.places.pop();
        });
        self.b.emit(Stmt::For { var, start, stop, body, hint: Default::default() });
    }

    /// An element of the row is changed, often by another one.
    fn change(&mut self) {
        let place = self.place();
        let at = self.random.below(32) as i64;
        let at = self.b.int(at);
        let mut value = self.b.load(self.input, at);
        if self.random.one_in(2) {
            let other = self.place();
            let other = self.b.load(self.row, other);
            let op = self.random.pick(&[Op::Add, Op::Sub, Op::Max]);
            value = self.b.call(op, &[other, value]);
        }
        if !self.random.one_in(5) {
            let before = self.b.load(self.row, place);
            let op = self.random.pick(&[Op::Add, Op::Add, Op::Sub, Op::Min, Op::Max]);
            value = self.b.call(op, &[before, value]);
        }
        let dtype = self.b.dtype(value);
        if dtype != self.dtype {
            value = self.b.call_in(Op::Cast(self.dtype), dtype, &[value]);
        }
        if self.random.one_in(5) {
            let cond = self.b.call(Op::Lt, &[place, self.outer]);
            let row = self.row;
            let then = self.block(|rows| rows.b.store(row, place, value));
            self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
            return;
        }
        self.b.store(self.row, place, value);
    }

    fn place(&mut self) -> ExprId {
        let places = self.places.clone();
        match self.random.below(24) {
            0 => self.outer,
            1 => self.first,
            _ => self.random.pick(&places),
        }
    }
}
