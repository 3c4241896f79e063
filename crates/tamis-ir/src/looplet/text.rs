//! Text form of looplets: the printer and its inverse, the parser.
//!
//! Names are those of a kernel, and expressions are written as in kernel text. Reading a printed
//! looplet gives an equal one. Properties that a looplet does not have are left out:
//!
//! ```text
//! thunk(start = pos[i], stop = pos[i + 1]; stepper(crd[start..stop]))
//! sequence[run(fill) to n, lookup]
//! segments(run starts to ends[p..q] * 4 + 1, windows 2*i + 0 to 3, sought x)
//! ```

use super::{Below, Edge, Extents, Looplet, Payload, Phase, Segments, Spike, Stepper, Window};
use crate::DType;
use crate::diag::{Diagnostic, Source};
use crate::kernel::text::{KernelParser, KernelTokenKind, MAX_DEPTH, TokenCursor, spelled, wrong};
use crate::kernel::{BufferId, ExprId, Kernel, Stmt, VarId};

impl Looplet {
    /// A looplet as text, with the names of a kernel.
    ///
    /// ```
    /// use tamis_ir::kernel::Builder;
    /// use tamis_ir::looplet::{Looplet, Payload};
    /// assert_eq!(Looplet::Run(Payload::Fill).show(Builder::new("f").kernel()), "run(fill)");
    /// ```
    pub fn show(&self, kernel: &Kernel) -> String {
        Shown(kernel).looplet(self)
    }

    /// The looplet of a text, whose names are those of a kernel.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// use tamis_ir::looplet::Looplet;
    /// let text = "kernel f
    ///     in crd: index u32[]
    ///     in n: i64
    /// begin
    /// ";
    /// let mut kernel = Kernel::parse(text)?;
    /// let looplet = Looplet::parse(&mut kernel, "stepper(crd[0..n] + 1)")?;
    /// assert_eq!(looplet.show(&kernel), "stepper(crd[0..n] + 1)");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn parse(kernel: &mut Kernel, text: &str) -> Result<Looplet, Diagnostic> {
        let source = Source::new("looplet", text);
        let (mut parser, mut c) = KernelParser::within(kernel, text).map_err(|d| d.with_source(&source))?;
        let parsed = LoopletParser { parser: &mut parser, depth: 0 }.looplet(&mut c).and_then(|looplet| {
            c.finish()?;
            Ok(looplet)
        });
        *kernel = parser.kernel;
        parsed.map_err(|d| d.with_source(&source))
    }
}

struct Shown<'a>(&'a Kernel);

impl Shown<'_> {
    fn expr(&self, id: ExprId) -> String {
        self.0.show(id)
    }

    fn name(&self, buffer: BufferId) -> String {
        spelled(&self.0.buffer(buffer).name).into_owned()
    }

    fn var(&self, var: VarId) -> String {
        spelled(&self.0.var(var).name).into_owned()
    }

    /// `, WORD EXPRESSION`, if there is one.
    fn clause(&self, word: &str, expr: Option<ExprId>) -> String {
        expr.map(|expr| format!(", {word} {}", self.expr(expr))).unwrap_or_default()
    }

    fn payload(&self, payload: &Payload) -> String {
        match payload {
            Payload::Fill => "fill".to_string(),
            Payload::Child(position) => format!("child({})", self.expr(*position)),
            Payload::Truth(value) => value.to_string(),
            Payload::Missing => "missing".to_string(),
            Payload::Outside => "outside".to_string(),
            Payload::Window(Some(Edge::From(at))) => format!("window(from {})", self.expr(*at)),
            Payload::Window(Some(Edge::To(at))) => format!("window(to {})", self.expr(*at)),
            Payload::Window(None) => "window".to_string(),
        }
    }

    fn looplet(&self, looplet: &Looplet) -> String {
        match looplet {
            Looplet::Run(payload) => format!("run({})", self.payload(payload)),
            Looplet::Lookup => "lookup".to_string(),
            Looplet::Spike(Spike { body, tail, at }) => {
                format!("spike({}, {} at {})", self.payload(body), self.payload(tail), self.expr(*at))
            }
            Looplet::Segments(segments) => self.segments(segments),
            Looplet::Fibers { level, window, mirrored } => {
                let sign = if *mirrored { "mirrored " } else { "" };
                format!("fibers({sign}level {level}, {})", self.window(window))
            }
            Looplet::Block { base, stride: 1 } => format!("block({})", self.expr(*base)),
            Looplet::Block { base, stride } => format!("block({} by {stride})", self.expr(*base)),
            Looplet::Sequence { phases, inside } => {
                let phases = phases.iter().map(|phase| match phase.stop {
                    Some(stop) => format!("{} to {}", self.looplet(&phase.body), self.expr(stop)),
                    None => self.looplet(&phase.body),
                });
                let inside = if *inside { " inside" } else { "" };
                format!("sequence{inside}[{}]", phases.collect::<Vec<_>>().join(", "))
            }
            Looplet::Stepper(stepper) => self.stepper("stepper", stepper),
            Looplet::Jumper(stepper) => self.stepper("jumper", stepper),
            Looplet::Switch { cond, then, guarded } => {
                let guarded = match then == guarded {
                    true => String::new(),
                    false => format!(", guarded {}", self.looplet(guarded)),
                };
                format!("switch({} -> {}{guarded})", self.expr(*cond), self.looplet(then))
            }
            Looplet::Thunk { preamble, body } => {
                let named = preamble.iter().filter_map(|stmt| match stmt {
                    Stmt::Let { var, value } => Some(format!("{} = {}", self.var(*var), self.expr(*value))),
                    _ => None,
                });
                format!("thunk({}; {})", named.collect::<Vec<_>>().join(", "), self.looplet(body))
            }
        }
    }

    fn stepper(&self, kind: &str, s: &Stepper) -> String {
        let sign = if s.mirrored { "-" } else { "" };
        let shift = s.shift.map(|by| format!(" + {}", self.expr(by))).unwrap_or_default();
        let flags = [(s.descending, ", descending"), (s.grouped, ", grouped")];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
        let within = s.within.map(|(from, to)| format!(", within {}..{}", self.expr(from), self.expr(to)));
        let clauses = [
            self.below(s.below),
            within.unwrap_or_default(),
            self.clause("sought", s.sought),
            self.clause("ended", s.ended),
            self.clause("until", s.until),
        ];
        let range = format!("{}..{}", self.expr(s.start), self.expr(s.stop));
        format!("{kind}({sign}{}[{range}]{shift}{flags}{})", self.name(s.coordinates), clauses.concat())
    }

    fn below(&self, below: Below) -> String {
        match below {
            Below::Position => String::new(),
            Below::Coordinate(base) => self.clause("below", Some(base)),
        }
    }

    fn segments(&self, p: &Segments) -> String {
        let (arrays, after) = match p.extents {
            Extents::Ends(ends) => (format!("run {}", self.name(ends)), String::new()),
            Extents::Runs { starts, ends } => {
                (format!("run {} to {}", self.name(starts), self.name(ends)), String::new())
            }
            Extents::Blocks { lasts, offsets } => {
                (format!("block {} from {}", self.name(lasts), self.name(offsets)), String::new())
            }
            Extents::Points(coordinates, below) => (format!("point {}", self.name(coordinates)), self.below(below)),
            Extents::Fibers { set, first, end } => {
                let end = end.map(|end| format!(" to {}", self.var(end))).unwrap_or_default();
                (format!("fibers {set} from {}{end}", self.var(first)), String::new())
            }
        };
        let range = format!("{}..{}", self.expr(p.start), self.expr(p.stop));
        let scale = if p.scale == 1 { String::new() } else { format!(" * {}", p.scale) };
        let shift = p.shift.map(|by| format!(" + {}", self.expr(by))).unwrap_or_default();
        let flags = [(p.leads, "leading "), (p.mirrored, "mirrored ")];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
        let window = p.window.map(|window| format!(", {}", self.window(&window))).unwrap_or_default();
        let covers = if p.covers { ", covers" } else { "" };
        let (sought, ended) = (self.clause("sought", p.sought), self.clause("ended", p.ended));
        format!("{flags}segments({arrays}[{range}]{scale}{shift}{window}{covers}{after}{sought}{ended})")
    }

    fn window(&self, window: &Window) -> String {
        let stride = if window.stride == 1 { String::new() } else { format!("{}*", window.stride) };
        let (low, last) = (self.expr(window.low), self.expr(window.last));
        match window.open {
            true => format!("windows {stride}i + {low} to {last}"),
            false if window.low == window.last => format!("at {stride}i + {low}"),
            false => format!("at {stride}i + {low} to {last}"),
        }
    }
}

/// A parser of looplets; the parser of kernel text reads their expressions.
struct LoopletParser<'a> {
    parser: &'a mut KernelParser,
    depth: usize,
}

impl LoopletParser<'_> {
    fn looplet(&mut self, c: &mut TokenCursor) -> Result<Looplet, Diagnostic> {
        if self.depth >= MAX_DEPTH {
            let message = format!("looplets are nested more than {MAX_DEPTH} deep");
            return Err(wrong(message, c.span(), "write a simpler looplet"));
        }
        self.depth += 1;
        let looplet = self.looplet_within(c);
        self.depth -= 1;
        looplet
    }

    fn looplet_within(&mut self, c: &mut TokenCursor) -> Result<Looplet, Diagnostic> {
        let word = match c.peek() {
            Some(KernelTokenKind::Word(word)) => word.clone(),
            _ => return Err(c.expected("a looplet")),
        };
        if matches!(&*word, "leading" | "mirrored" | "segments") {
            return self.segments(c);
        }
        c.at += 1;
        match &*word {
            "lookup" => return Ok(Looplet::Lookup),
            "sequence" => return self.sequence(c),
            _ => c.expect("(")?,
        }
        let looplet = match &*word {
            "run" => Looplet::Run(self.payload(c)?),
            "spike" => {
                let body = self.payload(c)?;
                c.expect(",")?;
                let tail = self.payload(c)?;
                c.expect_word("at")?;
                Looplet::Spike(Spike { body, tail, at: self.index(c)? })
            }
            "block" => {
                let base = self.index(c)?;
                let stride = if c.eat_word("by") { signed(c)? } else { 1 };
                Looplet::Block { base, stride }
            }
            "fibers" => {
                let mirrored = c.eat_word("mirrored");
                c.expect_word("level")?;
                let level = c.number()?;
                c.expect(",")?;
                Looplet::Fibers { level, window: self.window(c)?, mirrored }
            }
            "stepper" => Looplet::Stepper(self.stepper(c)?),
            "jumper" => Looplet::Jumper(self.stepper(c)?),
            "switch" => {
                let cond = self.typed(c, DType::Bool)?;
                c.expect("->")?;
                let then = Box::new(self.looplet(c)?);
                let guarded = match c.eat(",") {
                    true => {
                        c.expect_word("guarded")?;
                        Box::new(self.looplet(c)?)
                    }
                    false => then.clone(),
                };
                Looplet::Switch { cond, then, guarded }
            }
            "thunk" => {
                let mut preamble = Vec::new();
                while !c.is_punct(";") {
                    let var = self.parser.var(c)?;
                    c.expect("=")?;
                    let dtype = self.parser.kernel.var(var).dtype;
                    preamble.push(Stmt::Let { var, value: self.typed(c, dtype)? });
                    if !c.eat(",") {
                        break;
                    }
                }
                c.expect(";")?;
                Looplet::Thunk { preamble, body: Box::new(self.looplet(c)?) }
            }
            _ => {
                c.at -= 2;
                return Err(c.expected("a looplet"));
            }
        };
        c.expect(")")?;
        Ok(looplet)
    }

    /// An expression of a type.
    fn typed(&mut self, c: &mut TokenCursor, expected: DType) -> Result<ExprId, Diagnostic> {
        let span = c.span();
        let expr = self.parser.expr(c)?;
        let found = self.parser.kernel.exprs.dtype(expr);
        if found != expected {
            return Err(wrong(format!("this is {found}, not {expected}"), span, "convert it to the type"));
        }
        Ok(expr)
    }

    /// A position, a coordinate or a size.
    fn index(&mut self, c: &mut TokenCursor) -> Result<ExprId, Diagnostic> {
        self.typed(c, DType::I64)
    }

    /// `[START..STOP]`
    fn range(&mut self, c: &mut TokenCursor) -> Result<(ExprId, ExprId), Diagnostic> {
        c.expect("[")?;
        let start = self.index(c)?;
        c.expect("..")?;
        let stop = self.index(c)?;
        c.expect("]")?;
        Ok((start, stop))
    }

    fn payload(&mut self, c: &mut TokenCursor) -> Result<Payload, Diagnostic> {
        let word = match c.peek() {
            Some(KernelTokenKind::Word(word)) => word.clone(),
            _ => return Err(c.expected("what a coordinate holds")),
        };
        c.at += 1;
        Ok(match &*word {
            "fill" => Payload::Fill,
            "true" => Payload::Truth(true),
            "false" => Payload::Truth(false),
            "missing" => Payload::Missing,
            "outside" => Payload::Outside,
            "child" => {
                c.expect("(")?;
                let position = self.index(c)?;
                c.expect(")")?;
                Payload::Child(position)
            }
            "window" if c.eat("(") => {
                let from = c.eat_word("from");
                if !from {
                    c.expect_word("to")?;
                }
                let at = self.index(c)?;
                c.expect(")")?;
                Payload::Window(Some(if from { Edge::From(at) } else { Edge::To(at) }))
            }
            "window" => Payload::Window(None),
            _ => {
                c.at -= 1;
                return Err(c.expected("what a coordinate holds"));
            }
        })
    }

    fn sequence(&mut self, c: &mut TokenCursor) -> Result<Looplet, Diagnostic> {
        let inside = c.eat_word("inside");
        c.expect("[")?;
        let mut phases = Vec::new();
        while !c.is_punct("]") {
            let body = self.looplet(c)?;
            let stop = if c.eat_word("to") { Some(self.index(c)?) } else { None };
            phases.push(Phase { stop, body });
            if !c.eat(",") {
                break;
            }
        }
        c.expect("]")?;
        Ok(Looplet::Sequence { phases, inside })
    }

    fn stepper(&mut self, c: &mut TokenCursor) -> Result<Stepper, Diagnostic> {
        let mirrored = c.eat("-");
        let coordinates = self.coordinates(c)?;
        let (start, stop) = self.range(c)?;
        let shift = if c.eat("+") { Some(self.index(c)?) } else { None };
        let below = Below::Position;
        let (grouped, descending, within, sought, ended, until) = (false, false, None, None, None, None);
        let mut stepper = Stepper {
            coordinates,
            start,
            stop,
            below,
            grouped,
            shift,
            mirrored,
            descending,
            within,
            sought,
            ended,
            until,
        };
        while c.eat(",") {
            if c.eat_word("descending") {
                stepper.descending = true;
            } else if c.eat_word("grouped") {
                stepper.grouped = true;
            } else if c.eat_word("below") {
                stepper.below = Below::Coordinate(self.index(c)?);
            } else if c.eat_word("within") {
                let from = self.index(c)?;
                c.expect("..")?;
                stepper.within = Some((from, self.index(c)?));
            } else if c.eat_word("sought") {
                stepper.sought = Some(self.index(c)?);
            } else if c.eat_word("ended") {
                stepper.ended = Some(self.index(c)?);
            } else if c.eat_word("until") {
                stepper.until = Some(self.index(c)?);
            } else {
                return Err(c.expected("a property of a stepper"));
            }
        }
        Ok(stepper)
    }

    /// A buffer of coordinates or positions.
    fn coordinates(&mut self, c: &mut TokenCursor) -> Result<BufferId, Diagnostic> {
        let span = c.span();
        let buffer = self.parser.buffer(c)?;
        let info = self.parser.kernel.buffer(buffer);
        if !info.elem.is_index() {
            let message = format!("`{}` holds no coordinates", info.name);
            return Err(wrong(message, span, "write the name of an `index` buffer"));
        }
        Ok(buffer)
    }

    fn segments(&mut self, c: &mut TokenCursor) -> Result<Looplet, Diagnostic> {
        let leads = c.eat_word("leading");
        let mirrored = c.eat_word("mirrored");
        c.expect_word("segments")?;
        c.expect("(")?;
        let extents = if c.eat_word("run") {
            let first = self.coordinates(c)?;
            match c.eat_word("to") {
                true => Extents::Runs { starts: first, ends: self.coordinates(c)? },
                false => Extents::Ends(first),
            }
        } else if c.eat_word("block") {
            let lasts = self.coordinates(c)?;
            c.expect_word("from")?;
            Extents::Blocks { lasts, offsets: self.coordinates(c)? }
        } else if c.eat_word("point") {
            Extents::Points(self.coordinates(c)?, Below::Position)
        } else {
            c.expect_word("fibers")?;
            let set = c.number()?;
            c.expect_word("from")?;
            let first = self.parser.var(c)?;
            let end = if c.eat_word("to") { Some(self.parser.var(c)?) } else { None };
            Extents::Fibers { set, first, end }
        };
        let (start, stop) = self.range(c)?;
        let scale = if c.eat("*") { c.number()? } else { 1 };
        let shift = if c.eat("+") { Some(self.index(c)?) } else { None };
        let (covers, window, sought, ended) = (false, None, None, None);
        let mut segments =
            Segments { start, stop, extents, covers, scale, shift, leads, window, mirrored, sought, ended };
        while c.eat(",") {
            if c.is_word("windows") || c.is_word("at") {
                segments.window = Some(self.window(c)?);
            } else if c.eat_word("covers") {
                segments.covers = true;
            } else if let (true, Extents::Points(coordinates, _)) = (c.is_word("below"), segments.extents) {
                c.at += 1;
                segments.extents = Extents::Points(coordinates, Below::Coordinate(self.index(c)?));
            } else if c.eat_word("sought") {
                segments.sought = Some(self.index(c)?);
            } else if c.eat_word("ended") {
                segments.ended = Some(self.index(c)?);
            } else {
                return Err(c.expected("a property of segments"));
            }
        }
        c.expect(")")?;
        Ok(Looplet::Segments(segments))
    }

    fn window(&mut self, c: &mut TokenCursor) -> Result<Window, Diagnostic> {
        let open = c.eat_word("windows");
        if !open {
            c.expect_word("at")?;
        }
        let stride = if matches!(c.peek(), Some(KernelTokenKind::Number(_))) {
            let stride = c.number()?;
            c.expect("*")?;
            stride
        } else {
            1
        };
        c.expect_word("i")?;
        c.expect("+")?;
        let low = self.index(c)?;
        let last = if c.eat_word("to") { self.index(c)? } else { low };
        Ok(Window { stride, low, last, open })
    }
}

/// An integer with its sign.
fn signed(c: &mut TokenCursor) -> Result<i64, Diagnostic> {
    let (negative, span) = (c.eat("-"), c.span());
    let magnitude: u64 = c.number()?;
    let value = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
    i64::try_from(value).map_err(|_| wrong("the number does not fit", span, "write a smaller integer"))
}
