//! Emission of loop programs from scheduled statements: declarations, loops, tiles, and bodies. In:
//! loop nests, each with its loop order and result format. Out: program nodes and the commands that
//! tile its loops.

use super::nest::Nest;
use crate::schedule::Schedule;
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::Op;
use tamis_ir::format::{Format, Leaf};
use tamis_ir::notation::{Assignment, IndexRange, ProgramNode, same_all};
use tamis_ir::text::syntax::{Expr, ExprKind};
use tamis_ir::{DType, Value};

/// The tiling commands. Loops of the same name are distinguished by their ordinal.
pub(super) fn tiles(nests: &[Nest]) -> Schedule {
    let mut schedule = Schedule::new();
    for nest in nests {
        // If several loops share a name, the ordinal selects the tiled one.
        if let Some((index, length)) = &nest.tile
            && nest.inner.is_empty()
            && nests.iter().map(|n| n.order.iter().filter(|name| *name == index).count()).sum::<usize>() == 1
        {
            let (outer, inner) = (format!("{index}_tile"), format!("{index}_in"));
            schedule = schedule.split(index, &outer, &inner, *length);
            let mut order = vec![outer];
            order.extend(nest.order.iter().filter(|name| *name != index).cloned());
            order.push(inner);
            schedule = schedule.reorder(order);
        }
    }
    schedule
}

/// A format without its fill, which a declaration states separately.
pub(super) fn plain(format: &Format) -> Format {
    match format.leaf() {
        Leaf::Element(Some(_)) => format.clone().with_leaf(Leaf::Element(None)),
        _ => format.clone(),
    }
}

pub(super) fn declaration(nest: &Nest) -> ProgramNode {
    let name = nest.item.assignment.target.text.clone();
    match &nest.format {
        Some(format) => {
            let natural = format.dim_order().is_some_and(|order| order.is_sorted());
            let text = if format.is_all_dense() && natural { "dense".to_string() } else { format.to_string() };
            ProgramNode::Declare { name, format: Some(text), fill: nest.fill }
        }
        None => {
            let zero = match nest.item.dtype {
                DType::Bool => Value::Bool(false),
                DType::F32 | DType::F64 => Value::F64(0.0),
                _ => Value::I64(0),
            };
            ProgramNode::Declare { name, format: None, fill: Some(nest.fill.unwrap_or(zero)) }
        }
    }
}

/// The ranges of the indices of a nest, nested computations included.
pub(super) fn ranges(nest: &Nest) -> Vec<IndexRange> {
    let mut all = nest.item.assignment.ranges.clone();
    nest.inner.iter().for_each(|(_, inner)| all.extend(ranges(inner)));
    all
}

/// The loops of a nest from a given depth inwards.
pub(super) fn loops(nest: &Nest, depth: usize) -> Vec<ProgramNode> {
    let mut nodes = Vec::new();
    for (at, inner) in &nest.inner {
        if *at == depth {
            nodes.push(declaration(inner));
            nodes.extend(loops(inner, depth));
        }
    }
    match nest.order.get(depth) {
        Some(index) => nodes.push(ProgramNode::over(index, &ranges(nest), loops(nest, depth + 1))),
        None => {
            let Assignment { target, subscripts, op, .. } = &nest.item.assignment;
            let subscripts = if nest.format.is_none() { Vec::new() } else { subscripts.clone() };
            let masks = nest.item.assignment.masks(&nest.body);
            let assign =
                ProgramNode::Assign { target: target.text.clone(), subscripts, op: *op, value: nest.body.clone() };
            nodes.push(ProgramNode::under(&masks, assign));
        }
    }
    nodes
}

/// The extent of a target subscript: for an affine subscript, the weighted sum of its index
/// extents.
pub(super) fn reach(subscript: &Expr, extents: &FxHashMap<String, f64>) -> f64 {
    match &subscript.kind {
        ExprKind::Name(index) => extents.get(index).copied().unwrap_or(1.0),
        ExprKind::Number(value) => value.as_c128().re.abs(),
        ExprKind::Operator(Op::Mul, operands) => operands.iter().map(|e| reach(e, extents)).product(),
        ExprKind::Operator(_, operands) => operands.iter().map(|e| reach(e, extents)).sum(),
        _ => 1.0,
    }
}

pub(super) fn operations(expr: &Expr) -> f64 {
    match &expr.kind {
        ExprKind::Operator(_, operands) => 1.0 + operands.iter().map(operations).sum::<f64>(),
        ExprKind::Call { args, .. } => 4.0 + args.iter().map(operations).sum::<f64>(),
        _ => 0.0,
    }
}

/// Redirects accesses with these subscripts to another tensor.
pub(super) fn rename(expr: &mut Expr, tensor: &str, with: &[Expr], name: &str) {
    match &mut expr.kind {
        ExprKind::Index { base, subscripts } => {
            if base.text == tensor && same_all(subscripts, with) {
                base.text = name.to_string();
            } else {
                subscripts.iter_mut().for_each(|s| rename(s, tensor, with, name));
            }
        }
        ExprKind::Operator(_, operands) => operands.iter_mut().for_each(|e| rename(e, tensor, with, name)),
        ExprKind::Call { args, .. } => args.iter_mut().for_each(|e| rename(e, tensor, with, name)),
        _ => {}
    }
}

pub(super) fn names_in(expr: &Expr, found: &mut FxHashSet<String>) {
    match &expr.kind {
        ExprKind::Name(text) => {
            found.insert(text.clone());
        }
        ExprKind::Index { base, subscripts } => {
            found.insert(base.text.clone());
            subscripts.iter().for_each(|s| names_in(s, found));
        }
        ExprKind::Size { base, .. } => {
            found.insert(base.text.clone());
        }
        ExprKind::Entry { base, at, .. } => {
            found.insert(base.text.clone());
            at.iter().for_each(|s| names_in(s, found));
        }
        ExprKind::Operator(_, operands) => operands.iter().for_each(|e| names_in(e, found)),
        ExprKind::Call { args, .. } => args.iter().for_each(|e| names_in(e, found)),
        _ => {}
    }
}
