//! Looplets' text: what is printed is read back, and damaged text is a diagnostic.

use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::{BufferId, Builder, Elem, ExprId, Role, Stmt, VarId};
use tamis_ir::looplet::{Below, Edge, Extents, Looplet, Payload, Phase, Segments, Spike, Stepper, Window};
use tamis_ir::{Code, DType};

/// A random looplet over a few arrays.
struct Random {
    state: u64,
    b: Builder,
    arrays: Vec<BufferId>,
    vars: Vec<VarId>,
}

impl Random {
    fn new(seed: u64) -> Random {
        let mut b = Builder::new("f");
        let elem = Elem::Index(Width::U32);
        let arrays = ["pos", "crd", "for"].map(|name| b.buffer(name, elem, Role::Input)).to_vec();
        let vars = ["n", "m", "i"].map(|name| b.param(name, DType::I64)).to_vec();
        Random { state: seed, b, arrays, vars }
    }

    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 33) as usize % n
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    fn array(&mut self) -> BufferId {
        let k = self.below(self.arrays.len());
        self.arrays[k]
    }

    fn var(&mut self) -> VarId {
        let k = self.below(self.vars.len());
        self.vars[k]
    }

    fn expr(&mut self) -> ExprId {
        let var = self.var();
        let var = self.b.get(var);
        match self.below(4) {
            0 => {
                let value = self.below(9) as i64 - 4;
                self.b.int(value)
            }
            1 => {
                let array = self.array();
                self.b.load(array, var)
            }
            2 => {
                let other = self.expr();
                self.b.add(var, other)
            }
            _ => var,
        }
    }

    fn maybe(&mut self) -> Option<ExprId> {
        self.flag().then(|| self.expr())
    }

    fn payload(&mut self) -> Payload {
        match self.below(8) {
            0 => Payload::Fill,
            1 => Payload::Child(self.expr()),
            2 => Payload::Truth(self.flag()),
            3 => Payload::Missing,
            4 => Payload::Outside,
            5 => Payload::Window(None),
            6 => Payload::Window(Some(Edge::From(self.expr()))),
            _ => Payload::Window(Some(Edge::To(self.expr()))),
        }
    }

    fn window(&mut self) -> Window {
        Window { stride: 1 + self.below(3) as u64, low: self.expr(), last: self.expr(), open: self.flag() }
    }

    fn below_at(&mut self) -> Below {
        if self.flag() { Below::Position } else { Below::Coordinate(self.expr()) }
    }

    fn stepper(&mut self) -> Stepper {
        Stepper {
            coordinates: self.array(),
            start: self.expr(),
            stop: self.expr(),
            below: self.below_at(),
            grouped: self.flag(),
            shift: self.maybe(),
            mirrored: self.flag(),
            descending: self.flag(),
            within: self.flag().then(|| (self.expr(), self.expr())),
            sought: self.maybe(),
            ended: self.maybe(),
            until: self.maybe(),
        }
    }

    fn segments(&mut self) -> Segments {
        let extents = match self.below(5) {
            0 => Extents::Ends(self.array()),
            1 => Extents::Runs { starts: self.array(), ends: self.array() },
            2 => Extents::Blocks { lasts: self.array(), offsets: self.array() },
            3 => Extents::Points(self.array(), self.below_at()),
            _ => Extents::Fibers { set: self.below(4), first: self.var(), end: self.flag().then(|| self.var()) },
        };
        Segments {
            start: self.expr(),
            stop: self.expr(),
            extents,
            covers: self.flag(),
            scale: 1 + self.below(3) as u64,
            shift: self.maybe(),
            leads: self.flag(),
            window: self.flag().then(|| self.window()),
            mirrored: self.flag(),
            sought: self.maybe(),
            ended: self.maybe(),
        }
    }

    fn looplet(&mut self, depth: usize) -> Looplet {
        match self.below(if depth == 0 { 8 } else { 12 }) {
            0 | 1 => Looplet::Run(self.payload()),
            2 => Looplet::Lookup,
            3 => Looplet::Spike(Spike { body: self.payload(), tail: self.payload(), at: self.expr() }),
            4 => Looplet::Block { base: self.expr(), stride: self.below(5) as i64 - 2 },
            5 => Looplet::Fibers { level: self.below(3), window: self.window(), mirrored: self.flag() },
            6 => Looplet::Stepper(self.stepper()),
            7 => Looplet::Jumper(self.stepper()),
            8 => Looplet::Segments(self.segments()),
            9 => {
                let phases = (0..self.below(4)).map(|_| Phase { stop: self.maybe(), body: self.looplet(depth - 1) });
                Looplet::Sequence { phases: phases.collect(), inside: self.flag() }
            }
            10 => {
                let (a, b) = (self.expr(), self.expr());
                let cond = self.b.call(Op::Lt, &[a, b]);
                let cond = if self.b.as_constant(cond).is_some() { self.b.call(Op::Not, &[cond]) } else { cond };
                let then = Box::new(self.looplet(depth - 1));
                let guarded = if self.flag() { then.clone() } else { Box::new(self.looplet(depth - 1)) };
                Looplet::Switch { cond, then, guarded }
            }
            _ => {
                let preamble = (0..self.below(3)).map(|_| Stmt::Let { var: self.var(), value: self.expr() }).collect();
                Looplet::Thunk { preamble, body: Box::new(self.looplet(depth - 1)) }
            }
        }
    }
}

#[test]
fn random_looplets_read_back() {
    for seed in 0..5000 {
        let mut random = Random::new(seed);
        let looplet = random.looplet(3);
        let mut kernel = random.b.finish();
        let text = looplet.show(&kernel);
        let read = Looplet::parse(&mut kernel, &text).unwrap_or_else(|d| panic!("{}", d.render(false)));
        assert_eq!(read, looplet, "{text}");
        assert_eq!(read.show(&kernel), text);
    }
}

#[test]
fn mistakes_have_a_place() {
    let kernel = Random::new(0).b.finish();
    let table = [
        ("", "one line is expected"),
        ("walk(n)", "expected a looplet, found `walk`"),
        ("run(all)", "expected what a coordinate holds, found `all`"),
        ("stepper(crd[0..k])", "there is no variable or buffer `k`"),
        ("stepper(list[0..n])", "there is no buffer `list`"),
        ("stepper(crd[0..n], sorted)", "expected a property of a stepper, found `sorted`"),
        ("block(1.5)", "this is f64, not i64"),
        ("lookup lookup", "expected the end of the line, found `lookup`"),
        ("run(fill", "expected `)`, found the end of the line"),
    ];
    for (text, message) in table {
        let d = Looplet::parse(&mut kernel.clone(), text).expect_err(text);
        assert_eq!((d.code, d.message.as_str()), (Code::E1301, message), "{text}");
    }
    let deep = "sequence[".repeat(100_000);
    assert!(Looplet::parse(&mut kernel.clone(), &deep).expect_err("deep").message.contains("nested more than"));
}

#[test]
fn damaged_text_does_not_panic() {
    let mut valid = 0;
    for seed in 0..10_000 {
        let mut random = Random::new(seed);
        let looplet = random.looplet(2);
        let mut damaged = looplet.show(random.b.kernel());
        for _ in 0..1 + random.below(2) {
            let at = random.below(damaged.len().max(1));
            match random.below(3) {
                0 if at < damaged.len() => drop(damaged.remove(at)),
                1 => damaged.insert(at, ['(', '9', ',', 'n', '-', '`', ' '][random.below(7)]),
                _ => damaged.truncate(at),
            }
        }
        let mut kernel = random.b.finish();
        if let Ok(looplet) = Looplet::parse(&mut kernel, &damaged) {
            let text = looplet.show(&kernel);
            assert_eq!(Looplet::parse(&mut kernel, &text).unwrap(), looplet);
            valid += 1;
        }
    }
    assert!(valid > 100, "{valid}");
}
