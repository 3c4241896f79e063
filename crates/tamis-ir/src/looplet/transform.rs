//! Affine maps of looplets: the structure of a level that stores `(i + c) / k`, along `i`.

use super::{Extents, Looplet, Phase, Segments, Spike, Stepper};
use crate::DType;
use crate::algebra::Op;
use crate::kernel::{Builder, ExprId};

impl Looplet {
    /// The structure along an index `i`, for a structure along `(i - shift) / scale`, rounded down;
    /// `None` if no looplet describes it.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in crd: index u32[]
    ///     in n: i64
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..n])")?;
    /// let (mut b, _) = Builder::resume(kernel);
    /// let one = b.int(1);
    /// let moved = looplet.affine_map(&mut b, 1, Some(one)).unwrap();
    /// assert_eq!(moved.show(b.kernel()), "stepper(crd[0..n] + 1)");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn affine_map(self, b: &mut Builder, scale: u64, shift: Option<ExprId>) -> Option<Looplet> {
        if scale == 1 && shift.is_none() {
            return Some(self);
        }
        Some(match self {
            // Each coordinate is located after the map.
            Looplet::Lookup | Looplet::Run(_) => self,
            Looplet::Fibers { .. } => return None,
            Looplet::Block { base, stride } => {
                let shift = shift.filter(|_| scale == 1)?;
                let by = b.int(stride);
                let moved = b.call_in(Op::Mul, DType::I64, &[shift, by]);
                Looplet::Block { base: b.sub(base, moved), stride }
            }
            Looplet::Stepper(s) if scale == 1 => Looplet::Stepper(moved(b, s, shift)),
            Looplet::Jumper(s) if scale == 1 => Looplet::Jumper(moved(b, s, shift)),
            Looplet::Stepper(s) => Looplet::Segments(scaled_segments(s, scale, shift, false)?),
            Looplet::Jumper(s) => Looplet::Segments(scaled_segments(s, scale, shift, true)?),
            Looplet::Segments(p) => {
                let blocks = matches!(p.extents, Extents::Blocks { .. });
                if p.scale != 1 || p.shift.is_some() || p.window.is_some() || p.mirrored || (blocks && scale != 1) {
                    return None;
                }
                Looplet::Segments(Segments { scale, shift, ..p })
            }
            Looplet::Spike(Spike { body, tail, at }) => {
                let at = placed(b, at, scale, shift);
                if scale == 1 {
                    return Some(Looplet::Spike(Spike { body, tail, at }));
                }
                let phases = vec![
                    Phase { stop: Some(at), body: Looplet::Run(body) },
                    Phase { stop: None, body: Looplet::Run(tail) },
                ];
                Looplet::Sequence { phases, inside: false }
            }
            Looplet::Sequence { phases, .. } => {
                let mut moved = Vec::new();
                for Phase { stop, body } in phases {
                    let stop = stop.map(|at| placed(b, at, scale, shift));
                    moved.push(Phase { stop, body: body.affine_map(b, scale, shift)? });
                }
                Looplet::Sequence { phases: moved, inside: false }
            }
            Looplet::Switch { cond, then, guarded } => Looplet::Switch {
                cond,
                then: Box::new(then.affine_map(b, scale, shift)?),
                guarded: Box::new(guarded.affine_map(b, scale, shift)?),
            },
            Looplet::Thunk { preamble, body } => {
                Looplet::Thunk { preamble, body: Box::new(body.affine_map(b, scale, shift)?) }
            }
        })
    }
}

fn placed(b: &mut Builder, at: ExprId, scale: u64, shift: Option<ExprId>) -> ExprId {
    let at = b.end_of_block(at, scale);
    match shift {
        Some(shift) => b.add(at, shift),
        None => at,
    }
}

fn moved(b: &mut Builder, stepper: Stepper, shift: Option<ExprId>) -> Stepper {
    let shift = match (stepper.shift, shift) {
        (Some(a), Some(c)) => Some(b.add(a, c)),
        (a, c) => a.or(c),
    };
    Stepper { shift, ..stepper }
}

/// Each coordinate of a list becomes a segment of `scale` loop coordinates.
fn scaled_segments(stepper: Stepper, scale: u64, shift: Option<ExprId>, leads: bool) -> Option<Segments> {
    if stepper.grouped || stepper.shift.is_some() || stepper.mirrored {
        return None;
    }
    Some(Segments {
        start: stepper.start,
        stop: stepper.stop,
        extents: Extents::Points(stepper.coordinates, stepper.below),
        covers: false,
        scale,
        shift,
        leads,
        window: None,
        mirrored: false,
        sought: stepper.sought,
        ended: stepper.ended,
    })
}
