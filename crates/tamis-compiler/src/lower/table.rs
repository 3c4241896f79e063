//! Tables: elements that are written in any order, found by a number that increases in storage order. Freezing sorts the
//! numbers and appends the elements to the tensor's levels, whatever these are.
//!
//! The table is open-addressed: `slots` holds one more than the number of an entry, or 0; `keys` and `values` hold the
//! entries in the order they came.

use super::Lowerer;
use super::bind::{Stored, chain_head, is_grouped};
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::format::Width;
use tamis_ir::kernel::{BufferId, Builder, Elem, ExprId, Role, Stmt, VarId};
use tamis_ir::program::TensorId;
use tamis_tensor::levels::Placement;

/// The smallest table.
const SLOTS: i64 = 16;

/// Buffers and variables of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    slots: BufferId,
    keys: BufferId,
    sorted: BufferId,
    values: BufferId,
    count: VarId,
    /// One less than the number of slots, which is a power of two.
    mask: VarId,
}

impl Lowerer<'_> {
    pub(super) fn new_table(&mut self, name: &str, dtype: DType) -> Table {
        let wide = Elem::Index(Width::U64);
        let mut buffer = |what: &str, elem| self.b.buffer(format!("{name}_{what}"), elem, Role::Scratch);
        let (slots, keys, sorted) = (buffer("slots", wide), buffer("keys", wide), buffer("sorted", wide));
        let values = buffer("entries", Elem::Value(dtype));
        let count = self.b.new_var(format!("{name}_entries_count"), DType::I64, true);
        let mask = self.b.new_var(format!("{name}_mask"), DType::I64, true);
        let (zero, least) = (self.b.int(0), self.b.int(SLOTS - 1));
        self.prologue.push(Stmt::Let { var: count, value: zero });
        self.prologue.push(Stmt::Let { var: mask, value: least });
        Table { slots, keys, sorted, values, count, mask }
    }

    fn table(&self, tensor: TensorId) -> Option<Table> {
        self.states[tensor.index()].table
    }

    /// Forgets all entries, at the cost of those there are.
    pub(super) fn reset_table(&mut self, tensor: TensorId) {
        let Some(table) = self.table(tensor) else { return };
        // The number of an element must exist.
        let dims = self.bound[tensor.index()].dims.clone();
        let b = &mut self.b;
        let mut cells = b.constant(Value::F64(1.0));
        for n in dims {
            let n = b.call_in(Op::Cast(DType::F64), DType::F64, &[n]);
            cells = b.call_in(Op::Mul, DType::F64, &[cells, n]);
        }
        let limit = b.constant(Value::F64(9.0e18));
        let cond = b.call_in(Op::Lt, DType::F64, &[cells, limit]);
        let name = self.program.tensor(tensor).name.clone();
        let message = format!("`{name}` is written out of order, and has too many elements for that");
        b.emit(Stmt::Require { cond, message });
        let (zero, slots) = (b.int(0), b.int(SLOTS));
        b.emit(Stmt::Grow { buffer: table.slots, len: slots, fill: Some(Value::I64(0)) });
        let count = b.get(table.count);
        b.count("t", zero, count, |b, t| {
            let key = b.load(table.keys, t);
            let at = start(b, &table, key);
            let one = b.int(1);
            let number = b.add(t, one);
            let slot = b.get(at);
            let entry = b.load(table.slots, slot);
            let other = b.call_in(Op::Ne, DType::I64, &[entry, number]);
            let body = b.block(|b| step(b, &table, at));
            b.emit(Stmt::While { cond: other, body });
            b.store(table.slots, slot, zero);
        });
        b.assign(table.count, zero);
    }

    /// The number of an element in storage order.
    fn element_number(&mut self, tensor: TensorId, coordinates: &[ExprId]) -> ExprId {
        let order = self.order(tensor);
        let mut number = self.b.int(0);
        for (dim, coordinate) in order.into_iter().zip(coordinates) {
            let size = self.bound[tensor.index()].dims[dim];
            number = self.b.call_in(Op::Mul, DType::I64, &[number, size]);
            number = self.b.add(number, *coordinate);
        }
        self.b.name("key", number)
    }

    /// The entry of an element, which is made if it is new; gives where its value is.
    pub(super) fn table_entry(&mut self, tensor: TensorId, coordinates: &[ExprId]) -> Option<(BufferId, ExprId)> {
        let zero = self.b.int(0);
        let table = self.table(tensor)?;
        let key = self.element_number(tensor, coordinates);
        let fill = self.b.constant(self.bound[tensor.index()].fill);
        let b = &mut self.b;
        let at = probe(b, &table, key);
        let one = b.int(1);
        let slot = b.get(at);
        let held = b.load(table.slots, slot);
        let entry = b.call_in(Op::Sub, DType::I64, &[held, one]);
        let entry = b.variable_from("entry", entry);
        let number = b.get(entry);
        let absent = b.call_in(Op::Lt, DType::I64, &[number, zero]);
        let count = b.get(table.count);
        let next = b.add(count, one);
        b.branch(
            absent,
            |b| {
                b.assign(entry, count);
                b.emit(Stmt::Grow { buffer: table.keys, len: next, fill: None });
                b.store(table.keys, count, key);
                b.emit(Stmt::Grow { buffer: table.values, len: next, fill: None });
                b.store(table.values, count, fill);
                b.store(table.slots, slot, next);
                b.assign(table.count, next);
                let two = b.int(2);
                let twice = b.call_in(Op::Mul, DType::I64, &[count, two]);
                let mask = b.get(table.mask);
                let crowded = b.call_in(Op::Gt, DType::I64, &[twice, mask]);
                b.branch(crowded, |b| double(b, &table), |_| {});
            },
            |_| {},
        );
        let entry = self.b.name("place", number);
        Some((table.values, entry))
    }

    /// Appends the entries to the levels, in order.
    pub(super) fn append_table(&mut self, tensor: TensorId) {
        let Some(table) = self.table(tensor) else { return };
        let Stored::Levels { format, values, .. } = self.bound[tensor.index()].storage.clone() else { return };
        let (zero, count) = (self.b.int(0), self.b.get(table.count));
        self.b.emit(Stmt::Grow { buffer: table.sorted, len: count, fill: None });
        self.b.count("t", zero, count, |b, t| {
            let key = b.load(table.keys, t);
            b.store(table.sorted, t, key);
        });
        self.b.emit(Stmt::Sort { buffer: table.sorted, start: zero, stop: count, flags: None });
        self.assemble_all(tensor);
        let levels = format.levels().len();
        let last: Vec<VarId> = (0..levels).map(|k| self.b.variable(format!("last{k}"), Value::I64(-1))).collect();
        let var = self.b.new_var("t", DType::I64, false);
        let t = self.b.get(var);
        let body = self.in_block(|this| {
            let key = this.b.load(table.sorted, t);
            let key = this.b.name("key", key);
            let at = probe(&mut this.b, &table, key);
            let (one, slot) = (this.b.int(1), this.b.get(at));
            let held = this.b.load(table.slots, slot);
            let entry = this.b.call_in(Op::Sub, DType::I64, &[held, one]);
            let value = this.b.load(table.values, entry);
            match values {
                Some(_) => this.append_entry(tensor, &last, key, value),
                // Of a pattern, what is true is stored.
                None => {
                    let then = this.in_block(|this| this.append_entry(tensor, &last, key, value));
                    this.b.emit(Stmt::If { cond: value, then, otherwise: Vec::new() });
                }
            }
        });
        self.b.emit(Stmt::For { var, start: zero, stop: count, body, hint: tamis_ir::kernel::Hint::default() });
    }

    /// Appends one entry to the levels; those of its coordinates that the entry before has, too, are there already.
    fn append_entry(&mut self, tensor: TensorId, last: &[VarId], key: ExprId, value: ExprId) {
        let Stored::Levels { format, values, .. } = self.bound[tensor.index()].storage.clone() else { return };
        let levels = format.levels().len();
        let this = self;
        let zero = this.b.int(0);
        let coordinates = this.split(tensor, key);
        let mut parent = zero;
        let yes = this.b.constant(Value::Bool(true));
        // Coordinates before the first are negative.
        let before = this.b.get(last[0]);
        let first = this.b.call_in(Op::Lt, DType::I64, &[before, zero]);
        let mut new = this.b.name("first", first);
        for level in 0..levels {
            let coordinate = coordinates[level];
            // Every entry of a chain at the end has a position of its own.
            let grouped = is_grouped(&format, level);
            let single = |k| this.row(tensor, k).is_some_and(|row| row.capabilities.one_per_fiber);
            if grouped && (level + 1..levels).all(single) {
                new = yes;
                continue;
            }
            let (before, above) = (this.b.get(last[level]), new);
            let other = this.b.call_in(Op::Ne, DType::I64, &[before, coordinate]);
            let changed = this.b.call_in(Op::Select, DType::Bool, &[above, yes, other]);
            new = this.b.name("new", changed);
            if grouped {
                // Entries below one tuple of a chain share its position, which its last level gives.
                this.b.assign(last[level], coordinate);
                continue;
            }
            let head = chain_head(&format, level);
            let in_chain = head != level && format.levels()[head].nonunique;
            let leader = if in_chain { head } else { level };
            let placement = this.row(tensor, leader).map(|row| row.write.placement());
            let child = this.writer(tensor, leader, |row, w| row.write.child(w, parent, coordinate));
            let child = child.unwrap_or(parent);
            // The count moves on when the coordinate is kept.
            let position = if placement == Some(Placement::Appended) {
                let one = this.b.int(1);
                let back = this.b.call_in(Op::Sub, DType::I64, &[child, one]);
                let here = this.b.call_in(Op::Select, DType::I64, &[new, child, back]);
                this.b.name("at", here)
            } else {
                this.b.name("at", child)
            };
            let then = this.in_block(|this| {
                this.b.assign(last[level], coordinate);
                if placement == Some(Placement::Appended) && level + 1 < levels {
                    let one = this.b.int(1);
                    this.assemble(tensor, level + 1, position, one);
                }
                if placement == Some(Placement::Parent) {
                    let name = this.program.tensor(tensor).name.clone();
                    let message =
                        format!("level {level} of `{name}` holds one coordinate per fiber, but several were written");
                    this.b.emit(Stmt::Require { cond: above, message });
                }
                if in_chain {
                    for link in (head + 1..=level).rev() {
                        this.writer(tensor, link, |row, w| row.write.commit(w, position, coordinates[link]));
                    }
                    this.writer(tensor, head, |row, w| row.write.commit(w, parent, coordinates[head]));
                    this.writer(tensor, head, |row, w| row.write.end(w, parent));
                } else {
                    this.writer(tensor, level, |row, w| row.write.commit(w, parent, coordinate));
                    this.writer(tensor, level, |row, w| row.write.end(w, parent));
                }
            });
            if this.commits(tensor, level) {
                this.b.emit(Stmt::If { cond: new, then, otherwise: Vec::new() });
            } else {
                this.b.assign(last[level], coordinate);
            }
            parent = position;
        }
        if let Some(values) = values {
            let one = this.b.int(1);
            let len = this.b.add(parent, one);
            this.b.emit(Stmt::Grow { buffer: values, len, fill: None });
            this.b.store(values, parent, value);
        }
    }

    /// The coordinates of an element with this number, outermost level first.
    fn split(&mut self, tensor: TensorId, key: ExprId) -> Vec<ExprId> {
        let order = self.order(tensor);
        let mut rest = key;
        let mut coordinates = Vec::new();
        for (k, dim) in order.iter().enumerate().rev() {
            if k == 0 {
                coordinates.push(rest);
                break;
            }
            let size = self.bound[tensor.index()].dims[*dim];
            let next = self.b.call_in(Op::FloorDiv, DType::I64, &[rest, size]);
            let next = self.b.name("rest", next);
            let back = self.b.call_in(Op::Mul, DType::I64, &[next, size]);
            let coordinate = self.b.call_in(Op::Sub, DType::I64, &[rest, back]);
            coordinates.push(self.b.name("c", coordinate));
            rest = next;
        }
        coordinates.reverse();
        coordinates
    }
}

/// The slot where the search for a key starts.
fn start(b: &mut Builder, table: &Table, key: ExprId) -> VarId {
    // Multiplying by the golden ratio spreads neighbours; the high bits are the best mixed.
    let (ratio, bits) = (b.int(0x9E37_79B9_7F4A_7C15_u64 as i64), b.int(24));
    let mixed = b.call_in(Op::Mul, DType::I64, &[key, ratio]);
    let high = b.call_in(Op::Shr, DType::I64, &[mixed, bits]);
    let mask = b.get(table.mask);
    let slot = b.call_in(Op::BitAnd, DType::I64, &[high, mask]);
    b.variable_from("slot", slot)
}

fn step(b: &mut Builder, table: &Table, at: VarId) {
    let (slot, one, mask) = (b.get(at), b.int(1), b.get(table.mask));
    let next = b.add(slot, one);
    let next = b.call_in(Op::BitAnd, DType::I64, &[next, mask]);
    b.assign(at, next);
}

/// The slot that holds a key, or the empty one where it belongs.
fn probe(b: &mut Builder, table: &Table, key: ExprId) -> VarId {
    let at = start(b, table, key);
    let (slot, zero, one) = (b.get(at), b.int(0), b.int(1));
    let held = b.load(table.slots, slot);
    let taken = b.call_in(Op::Ne, DType::I64, &[held, zero]);
    let entry = b.call_in(Op::Sub, DType::I64, &[held, one]);
    let there = b.load(table.keys, entry);
    let other = b.call_in(Op::Ne, DType::I64, &[there, key]);
    let cond = b.call_in(Op::And, DType::Bool, &[taken, other]);
    let body = b.block(|b| step(b, table, at));
    b.emit(Stmt::While { cond, body });
    at
}

/// Twice as many slots.
fn double(b: &mut Builder, table: &Table) {
    let (zero, one) = (b.int(0), b.int(1));
    let mask = b.get(table.mask);
    let twice = b.add(mask, mask);
    let twice = b.add(twice, one);
    b.assign(table.mask, twice);
    let len = b.add(mask, one);
    b.emit(Stmt::Grow { buffer: table.slots, len, fill: None });
    b.emit(Stmt::Fill { buffer: table.slots, start: zero, len, value: zero });
    let count = b.get(table.count);
    b.count("t", zero, count, |b, t| {
        let key = b.load(table.keys, t);
        let at = start(b, table, key);
        let slot = b.get(at);
        let held = b.load(table.slots, slot);
        let taken = b.call_in(Op::Ne, DType::I64, &[held, zero]);
        let body = b.block(|b| step(b, table, at));
        b.emit(Stmt::While { cond: taken, body });
        let number = b.add(t, one);
        b.store(table.slots, slot, number);
    });
}
