//! The level `bytemap`: a flag for every coordinate, and the sorted list of stored coordinates.
//!
//! Hard invariants, in the order they are checked:
//! - `flags` has width u8 and length `parents * extent` (E0701);
//! - `pos` and `crd` satisfy those of [`Compressed`] (E0701 to E0704);
//! - every flag is 0 or 1 (E0701);
//! - the flag of coordinate i below parent p is 1 exactly when fiber p lists i (E0701).
//!
//! The child position of coordinate i below parent p is `p * extent + i`, as for `dense`, so the
//! levels below have a position for every coordinate; positions whose flag is 0 are not stored.

use super::compressed::Compressed;
use super::{
    Assemble, Assembled, Capabilities, Children, Enumeration, Level, LevelArrays, LevelType, Nodes, Padding, Shape,
    arrays, check, dense, unfurl, write,
};
use crate::memory::{product, reserve, zeroed};
use crate::{Buffer, Index, IndexArray, with_indices};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::format::{LevelKind, LevelSpec, Width};
use tamis_ir::{Code, Diagnostic, diag::Result};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Bytemap,
    arrays: &[arrays::FLAGS, arrays::FIBER_OFFSETS, arrays::COORDINATES],
    children: Children::Cells,
    capabilities: Capabilities {
        full: false,
        padding: Padding::Removes,
        holes: true,
        one_per_fiber: false,
        shared: false,
        random_access: true,
        insert: true,
        append: true,
        gallop: true,
    },
    assemble: Assemble::Coordinates(assemble),
    from_arrays,
    finish,
    unfurl: unfurl::bytemap,
    locate: unfurl::locate_bytemap,
    positions: None,
    write: &write::BytemapWrite,
};

#[derive(Debug)]
struct Bytemap {
    extent: usize,
    flags: Buffer<u8>,
    list: Compressed,
}

fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [flags, pos, crd] = check::take(arrays, &TYPE)?;
    check::width("flags", &flags, Some(Width::U8))?;
    let children = product(shape.parents, shape.extent)?;
    check::length("flags", &flags, Some(children), "one byte for each coordinate below each position above")?;
    let list = Compressed::checked(pos, crd, spec, shape)?;
    let IndexArray::U8(flags) = flags else {
        return Err(Diagnostic::new(Code::E0701, "`flags` are not bytes").help("give `flags` as an array of u8"));
    };
    let level = Bytemap { extent: usize::try_from(shape.extent).unwrap_or(usize::MAX), flags, list };
    level.check_flags()?;
    Ok(Arc::new(level))
}

fn finish(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [flags, pos, crd] = check::take(arrays, &TYPE)?;
    check::width("flags", &flags, Some(Width::U8))?;
    let flags = check::first("flags", flags, Some(product(shape.parents, shape.extent)?))?;
    let IndexArray::U8(flags) = flags else {
        return Err(Diagnostic::new(Code::E0701, "`flags` are not bytes").help("give `flags` as an array of u8"));
    };
    let list = Compressed::cut(pos, crd, spec, shape)?;
    Ok(Arc::new(Bytemap { extent: usize::try_from(shape.extent).unwrap_or(usize::MAX), flags, list }))
}

impl Bytemap {
    fn check_flags(&self) -> Result<()> {
        let wrong = |message: String| {
            Err(Diagnostic::new(Code::E0701, message)
                .help("set the flags of the listed coordinates to 1 and all others to 0")
                .help("build the tensor from coordinates instead, which sets the flags"))
        };
        if let Some(at) = self.flags.iter().position(|flag| *flag > 1) {
            return wrong(format!("flag {at} is {}, not 0 or 1", self.flags[at]));
        }
        let set: usize = self.flags.iter().map(|flag| *flag as usize).sum();
        if set != self.list.crd.len() {
            return wrong(format!("{set} flags are set, but {} coordinates are listed", self.list.crd.len()));
        }
        let unset = with_indices!(&self.list.pos, pos => with_indices!(&self.list.crd, crd => {
            pos.windows(2).enumerate().find_map(|(p, w)| {
                let fiber = &crd[w[0].to_usize()..w[1].to_usize()];
                let unset = |c: &&_| self.flags[p * self.extent + Index::to_usize(**c)] == 0;
                fiber.iter().find(unset).map(|c| (p, c.to_u64()))
            })
        }));
        match unset {
            Some((p, c)) => wrong(format!("fiber {p} lists coordinate {c}, but its flag is not set")),
            None => Ok(()),
        }
    }
}

fn assemble(nodes: Nodes<'_>, spec: &LevelSpec) -> Result<Assembled> {
    let list = Compressed::assemble(nodes, spec)?;
    let mut flags: Vec<u8> = zeroed(product(nodes.parent_count, nodes.extent)?, "the flags of a bytemap")?;
    let extent = usize::try_from(nodes.extent).unwrap_or(usize::MAX);
    let mut positions = reserve(nodes.parents.len(), "the positions of entries")?;
    for (parent, coordinate) in nodes.parents.iter().zip(nodes.coordinates) {
        let position = parent * extent + *coordinate as usize;
        flags[position] = 1;
        positions.push(position);
    }
    Ok(Assembled { level: Arc::new(Bytemap { extent, flags: flags.into(), list }), positions })
}

impl Level for Bytemap {
    fn level_type(&self) -> &'static LevelType {
        &TYPE
    }

    fn children(&self) -> usize {
        self.flags.len()
    }

    fn stored(&self, _: usize) -> Option<usize> {
        Some(self.list.crd.len())
    }

    fn fiber_length(&self, parent: usize) -> usize {
        self.list.fiber(parent).len()
    }

    fn enumerate(&self, parents: &[usize], out: &mut Enumeration) {
        self.list.enumerate(parents, out, |parent, _, coordinate| parent * self.extent + coordinate as usize);
    }

    fn visit(&self, parent: usize, each: &mut dyn FnMut(u64, usize)) {
        self.list.visit(parent, |coordinate, _| each(coordinate, parent * self.extent + coordinate as usize));
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        let stored = dense::position(parents, self.extent, coordinate).filter(|position| self.flags[*position] != 0);
        stored.map_or(0..0, |position| position..position + 1)
    }

    fn arrays(&self) -> LevelArrays {
        let mut arrays = self.list.arrays();
        arrays.arrays.insert(0, ("flags", IndexArray::U8(self.flags.clone())));
        arrays
    }
}
