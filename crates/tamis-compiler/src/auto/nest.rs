//! Construction of loop nests: chooses each assignment's loop order and result format, and fuses
//! nests.

use super::emit::{declaration, loops, names_in, operations, plain, reach, rename, tiles};
use super::formats::{self, Expected};
use super::operand::OperandStatistics;
use super::order::{Choice, Problem};
use super::path::{bare, uses};
use super::sets::{OperandAccess, Set, differs};
use super::tile;
use super::{Conversion, Costs, Decision, NotationPlan, Pins};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use tamis_ir::algebra::{Kind, Op};
use tamis_ir::format::Format;
use tamis_ir::notation::{Assignment, Notation, ProgramNode, text};
use tamis_ir::program::{Checked, LoopExtent, ParamType, Program, StmtKind};
use tamis_ir::text::syntax::{Expr, ExprKind, Name};
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Value};

/// An assignment with its inferred properties.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) assignment: Assignment,
    /// The extents of its indices.
    pub(super) extents: FxHashMap<String, f64>,
    /// The type of its target.
    pub(super) dtype: DType,
}

/// A scheduled assignment: its loops and the computations nested in them.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    pub(super) item: Item,
    pub(super) order: Vec<String>,
    pub(super) cost: f64,
    /// Computations fused at a loop depth: scalars that the assignment uses.
    pub(super) inner: Vec<(usize, Nest)>,
    /// The format and the fill of the target; none for a scalar.
    pub(super) format: Option<Format>,
    pub(super) fill: Option<Value>,
    /// The body, with converted tensors renamed.
    pub(super) body: Expr,
    /// Temporaries that are transposed first.
    pub(super) copies: Vec<(String, String, Format)>,
    /// The tiled loop and its tile length.
    pub(super) tile: Option<(String, i64)>,
}

/// The naive program with the same meaning: dense loops and dense results.
pub(super) fn plainest(notation: &Notation, types: &[ParamType]) -> Result<Program, Diagnostics> {
    let first = notation.plain()?;
    let types = first.infer_types(types)?;
    let mut fills = FxHashMap::default();
    for assignment in notation.assignments.iter().filter(|a| !a.again) {
        let name = &assignment.target.text;
        let dtype = first.tensors.iter().position(|t| t.name == *name).map_or(DType::F64, |k| types.tensors[k]);
        if let Some(start) = assignment.op.and_then(|op| start(op, dtype)) {
            fills.insert(name.clone(), start);
        }
    }
    if fills.is_empty() { Ok(first) } else { notation.plain_from(&fills) }
}

/// The identity of a reduction, as a weakly typed literal; none if it is 0, the default fill.
fn start(op: Op, dtype: DType) -> Option<Value> {
    let value = op.start(dtype).filter(|value| value.is_truthy())?;
    Some(match dtype.kind() {
        Kind::Bool => value,
        // Literals beyond i64 are u64.
        Kind::Int => value.as_i64().map_or(value, Value::I64),
        Kind::Float => Value::F64(value.as_c128().re),
        // Complex types adapt real literals, too.
        Kind::Complex if value.as_c128().im == 0.0 => Value::F64(value.as_c128().re),
        Kind::Complex => Value::C128(value.as_c128()),
    })
}

/// The maximum number of loops of a statement: sets of loops are bit masks.
const MOST_LOOPS: usize = u32::BITS as usize;

/// Programs with more statements are scheduled once, without comparing substitution strategies.
const MOST_COMPARED: usize = 48;

/// The number of searches for loop orders after which a program is scheduled by cheaper means: one
/// takes 10 to 100 microseconds.
const MOST_SEARCHES: usize = 20_000;

/// The substitution strategy for temporaries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Inlining {
    /// Elementwise temporaries, and sums of products into sums of products.
    All,
    /// Temporaries without reductions.
    Elementwise,
    /// None: statements stay as written.
    None,
}

/// The scheduler state.
#[derive(Clone)]
pub(super) struct Scheduler<'a> {
    notation: &'a Notation,
    pub(super) costs: &'a Costs,
    pins: &'a Pins,
    pub(super) operands: FxHashMap<String, OperandStatistics>,
    items: Vec<Item>,
    taken: FxHashSet<String>,
    /// The number of temporaries with final names.
    temporaries: usize,
    results: FxHashSet<String>,
    decisions: Vec<Decision>,
    /// The hashes of the decisions, each of which is reported once.
    decided: FxHashSet<u64>,
    /// The number of searches for a loop order so far.
    searches: Cell<usize>,
    conversions: Vec<Conversion>,
}

impl<'a> Scheduler<'a> {
    pub(super) fn new(
        notation: &'a Notation,
        meaning: &Program,
        checked: &Checked,
        operands: &[OperandStatistics],
        costs: &'a Costs,
        pins: &'a Pins,
    ) -> Scheduler<'a> {
        // The naive loops, statement by statement.
        let mut nests: Vec<FxHashMap<String, f64>> = Vec::new();
        for stmt in meaning.body.iter() {
            if matches!(stmt.kind, StmtKind::Declare(_)) {
                continue;
            }
            let mut extents = FxHashMap::default();
            let mut open = vec![stmt];
            while let Some(stmt) = open.pop() {
                if let StmtKind::For { index, body, .. } = &stmt.kind {
                    let length = match checked.extents.loops[index.index()] {
                        LoopExtent::Static { start, stop } => (stop - start) as f64,
                        LoopExtent::Dynamic => 1.0,
                    };
                    extents.insert(meaning.indices[index.index()].clone(), length);
                    open.extend(body);
                }
            }
            nests.push(extents);
        }
        let dtype = |name: &str| {
            meaning.tensors.iter().position(|t| t.name == name).map_or(DType::F64, |k| checked.types.tensors[k])
        };
        let items: Vec<Item> = notation
            .assignments
            .iter()
            .zip(nests)
            .map(|(a, extents)| Item { assignment: a.clone(), extents, dtype: dtype(&a.target.text) })
            .collect();
        let names = notation.operands();
        let mut taken: FxHashSet<String> = names.iter().map(|name| name.to_string()).collect();
        for item in &items {
            taken.insert(item.assignment.target.text.clone());
            taken.extend(item.extents.keys().cloned());
        }
        let operands = names.iter().map(|name| name.to_string()).zip(operands.iter().cloned()).collect();
        let results = notation.results().into_iter().map(String::from).collect();
        let (decisions, decided, conversions) = (Vec::new(), FxHashSet::default(), Vec::new());
        let temporaries = 0;
        Scheduler {
            notation,
            costs,
            pins,
            operands,
            items,
            taken,
            temporaries,
            results,
            decisions,
            decided,
            searches: Cell::new(0),
            conversions,
        }
    }

    pub(super) fn is_result(&self, name: &str) -> bool {
        self.results.contains(name) || self.pins.formats.iter().any(|(pinned, _)| pinned == name)
    }

    pub(super) fn decide(&mut self, about: &str, choice: &str, why: &str, alternatives: Vec<String>) {
        let decision = Decision { about: about.into(), choice: choice.into(), why: why.into(), alternatives };
        let mut hasher = FxHasher::default();
        (&decision.about, &decision.choice, &decision.why, &decision.alternatives).hash(&mut hasher);
        if self.decided.insert(hasher.finish()) {
            self.decisions.push(decision);
        }
    }

    pub(super) fn note(&mut self, about: &str, choice: &str, why: &str) {
        self.decide(about, choice, why, Vec::new());
    }

    /// An unused name for a temporary.
    pub(super) fn next_name(&self) -> String {
        (self.temporaries..)
            .map(|number| format!("t{number}"))
            .find(|name| !self.taken.contains(name))
            .unwrap_or_default()
    }

    /// Commits the name of a temporary.
    pub(super) fn taken_name(&mut self, item: &Item) {
        self.taken.insert(item.assignment.target.text.clone());
    }

    /// True if a name is in use.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// Discards a tentative temporary.
    pub(super) fn forget(&mut self, name: &str) {
        self.taken.remove(name);
        self.operands.remove(name);
    }

    pub(super) fn plan(mut self, meaning: Program, types: &[ParamType]) -> Result<NotationPlan, Diagnostics> {
        self.check_pins()?;
        let items = std::mem::take(&mut self.items);
        let mut found: Option<(f64, Scheduler, Vec<Nest>)> = None;
        let mut failed = None;
        for inlining in self.inlinings(&items) {
            if found.is_some() && self.is_exhausted() {
                break;
            }
            let mut this = self.clone();
            let outcome = this.nests(items.clone(), inlining);
            self.searches.set(this.searches.get());
            match outcome {
                Ok(nests) => {
                    let cost = this.cost_of(&nests);
                    if found.as_ref().is_none_or(|(best, ..)| cost < *best) {
                        found = Some((cost, this, nests));
                    }
                }
                Err(errors) => failed = failed.or(Some(errors)),
            }
        }
        let nests = match (found, failed) {
            (Some((_, this, nests)), _) => {
                self = this;
                nests
            }
            (None, Some(errors)) => return Err(errors),
            (None, None) => Vec::new(),
        };
        let cost = nests.iter().map(|nest| nest.cost).sum();
        let nodes = self.nodes(&nests);
        let params = self.params(&nests);
        let params: Vec<&str> = params.iter().map(String::as_str).collect();
        let mut program = self.notation.program("notation", &params, &nodes)?;
        let schedule = tiles(&nests);
        if !schedule.is_empty() {
            let typed = |name: &&str| {
                let source = self.conversions.iter().find(|c| c.name == **name).map_or(*name, |c| c.source.as_str());
                self.notation.operands().iter().position(|p| *p == source).and_then(|at| types.get(at).cloned())
            };
            let types: Vec<ParamType> = params.iter().filter_map(typed).collect();
            program = schedule.apply(&program, &program.check(&types)?)?;
        }
        Ok(NotationPlan { program, meaning, conversions: self.conversions, decisions: self.decisions, cost })
    }

    /// The substitution strategies to compare; the statements as written are always one of them.
    fn inlinings(&self, items: &[Item]) -> Vec<Inlining> {
        match items {
            _ if self.pins.separate => vec![Inlining::None],
            [] | [_] => vec![Inlining::All],
            _ if items.len() > MOST_COMPARED => vec![Inlining::Elementwise],
            _ => vec![Inlining::All, Inlining::Elementwise, Inlining::None],
        }
    }

    /// Builds the loop nests of statements: substitutes temporaries, contracts products, fuses
    /// loops.
    fn nests(&mut self, mut items: Vec<Item>, inlining: Inlining) -> Result<Vec<Nest>, Diagnostics> {
        self.inline(&mut items, inlining);
        let mut whole = Vec::new();
        for item in items {
            let steps = if self.pins.separate { vec![item] } else { self.split(item) };
            for step in steps {
                self.taken.insert(step.assignment.target.text.clone());
                // Later statements see the statistics of its result.
                self.price_temporary(&step);
                whole.push(step);
            }
        }
        let mut nests = whole.into_iter().map(|item| self.nest(item)).collect::<Result<Vec<Nest>, _>>()?;
        if !self.pins.separate {
            self.fuse(&mut nests);
        }
        Ok(nests)
    }

    /// The cost of loop nests, including temporaries stored between them.
    fn cost_of(&self, nests: &[Nest]) -> f64 {
        let stored = |nest: &Nest| {
            let name = &nest.item.assignment.target.text;
            let operand = self.operands.get(name).filter(|_| !self.is_result(name));
            operand.map_or(0.0, |operand| operand.entries * self.costs.dense_step)
        };
        nests.iter().map(|nest| nest.cost + stored(nest)).sum()
    }

    fn check_pins(&self) -> Result<(), Diagnostics> {
        let known: FxHashSet<&String> = self.items.iter().flat_map(|item| item.extents.keys()).collect();
        for (k, index) in self.pins.order.iter().enumerate() {
            if self.pins.order[..k].contains(index) {
                return Err(Diagnostic::new(Code::E1202, format!("`{index}` is named twice in the order of loops"))
                    .help("name each index once")
                    .into());
            }
            if !known.contains(index) {
                let mut names: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
                names.sort_unstable();
                return Err(Diagnostic::new(
                    Code::E1202,
                    format!("the order of loops names the unknown index `{index}`"),
                )
                .help(format!("indices are {}", names.join(", ")))
                .into());
            }
        }
        for (name, _) in &self.pins.formats {
            if !self.items.iter().any(|item| item.assignment.target.text == *name) {
                let message = format!("`{name}` is not a result, so it cannot have a format");
                return Err(Diagnostic::new(Code::E1202, message)
                    .help(format!("results are {}", self.notation.results().join(", ")))
                    .into());
            }
        }
        Ok(())
    }

    /// The search problem of an assignment, and the constant background of its body.
    fn problem(&self, item: &Item) -> (Problem, Option<Value>) {
        let assignment = &item.assignment;
        let indices = assignment.indices();
        let number = |name: &str| indices.iter().position(|index| index == name);
        let mask = |expr: &Expr| {
            indices.iter().enumerate().filter(|(_, i)| uses(expr, i, true)).fold(0u32, |m, (k, _)| m | 1 << k)
        };
        let mut places: Vec<OperandAccess> = assignment
            .accesses()
            .iter()
            .filter_map(|(tensor, subscripts)| {
                let operand = self.operands.get(*tensor)?.clone();
                (operand.shape.len() == subscripts.len()).then(|| OperandAccess {
                    tensor: tensor.to_string(),
                    subscripts: subscripts.to_vec(),
                    dims: subscripts.iter().map(mask).collect(),
                    operand,
                    relaid: false,
                    extents: indices.iter().map(|name| item.extents.get(name).copied().unwrap_or(1.0)).collect(),
                    kept: self.pins.keep && self.notation.operands().contains(tensor),
                    mask: false,
                })
            })
            .collect();
        // The set where two indices are equal is the pattern of a diagonal matrix.
        for equal in assignment.masks(&assignment.body) {
            if let ExprKind::Operator(Op::Eq, operands) = &equal.kind
                && bare(operands).is_some()
            {
                let extent = |e: &Expr| match &e.kind {
                    ExprKind::Name(index) => item.extents.get(index).copied().unwrap_or(1.0),
                    _ => 1.0,
                };
                places.push(OperandAccess {
                    tensor: text(equal),
                    subscripts: operands.clone(),
                    dims: operands.iter().map(mask).collect(),
                    operand: OperandStatistics::diagonal(operands.iter().map(extent).collect()),
                    relaid: false,
                    extents: indices.iter().map(|name| item.extents.get(name).copied().unwrap_or(1.0)).collect(),
                    kept: false,
                    mask: true,
                });
            }
        }
        let (set, constant) = differs(&assignment.body, &places);
        let operand = assignment.op.map_or(DType::F64, |op| op.operand_type(item.dtype));
        let identity = assignment.op.map(|op| op.start(operand));
        let constant = constant.map(|value| value.cast(operand));
        // Coordinates where the body is the reduction's identity need no work.
        let idle = matches!(identity, Some(Some(start)) if constant.is_some_and(|c| c.same_number(start)));
        let set = match identity {
            Some(_) if idle => set,
            // Another constant background is one step per run, but makes the target dense.
            Some(_) if constant.is_some() => set,
            Some(_) => Set::All,
            None if constant.is_some() && !assignment.again => set,
            None => Set::All,
        };
        let target: Vec<Option<usize>> = assignment
            .subscripts
            .iter()
            .map(|s| match &s.kind {
                ExprKind::Name(text) => number(text),
                _ => None,
            })
            .collect();
        let free = target.iter().flatten().fold(0u32, |m, k| m | 1 << k);
        let extents = indices.iter().map(|name| item.extents.get(name).copied().unwrap_or(1.0)).collect();
        let problem = Problem {
            indices,
            extents,
            free,
            places,
            set,
            everywhere: identity.is_some() && constant.is_some() && !idle,
            operations: operations(&assignment.body).max(1.0),
            target,
            dense: true,
            expected: 1.0,
            stored: None,
        };
        (problem, constant.filter(|_| idle || assignment.op.is_none()))
    }

    /// Completes the problem with the target's format, as far as it is independent of the loop
    /// order.
    pub(super) fn formatted(&self, item: &Item) -> (Problem, Expected, Option<Value>, bool) {
        let (mut problem, constant) = self.problem(item);
        let name = &item.assignment.target.text;
        let rank = problem.target.len();
        let natural: Vec<usize> = (0..rank).collect();
        let distinct = bare(&item.assignment.subscripts).is_some();
        let listed = constant.is_some() && problem.set != Set::All && distinct && rank > 0;
        let mut expected = formats::choose(&problem, &natural, listed, self.costs);
        if !distinct && constant.is_some() {
            let sizes: Vec<f64> = item.assignment.subscripts.iter().map(|s| reach(s, &item.extents)).collect();
            if let Some(scattered) = formats::scattered(&sizes, problem.points(problem.all())) {
                expected = scattered;
            }
        }
        let pinned = self.pins.formats.iter().find(|(pinned, _)| pinned == name).map(|(_, format)| format);
        if let Some(format) = pinned {
            problem.stored = format.dim_order();
            expected.format = format.clone();
        }
        problem.dense = expected.format.is_all_dense();
        problem.expected = expected.entries();
        let fill = match item.assignment.op {
            Some(op) => start(op, item.dtype),
            // A fill printed as a float would make the result a float tensor.
            None if !problem.dense => constant.map(|c| c.cast(item.dtype)).filter(|c| c.is_truthy()),
            None => None,
        };
        (problem, expected, fill, pinned.is_some())
    }

    pub(super) fn pinned_loops(&self, problem: &Problem) -> Vec<usize> {
        let place = |index: &String| problem.indices.iter().position(|name| name == index);
        self.pins.order.iter().filter_map(place).collect()
    }

    /// Whether the budget of searches is spent: what is left is decided greedily.
    pub(super) fn is_exhausted(&self) -> bool {
        self.searches.get() > MOST_SEARCHES
    }

    /// The cost of an assignment.
    pub(super) fn price(&self, item: &Item) -> f64 {
        if item.assignment.indices().len() > MOST_LOOPS {
            return f64::INFINITY;
        }
        self.searches.set(self.searches.get() + 1);
        let (problem, ..) = self.formatted(item);
        let pinned = self.pinned_loops(&problem);
        let (_, found) = problem.search_formats(self.costs, &pinned);
        found.first().map_or(f64::INFINITY, |choice| choice.cost.total())
    }

    /// The cost of an assignment whose target is read later; records the target's statistics.
    pub(super) fn price_temporary(&mut self, item: &Item) -> f64 {
        if item.assignment.indices().len() > MOST_LOOPS {
            return f64::INFINITY;
        }
        self.searches.set(self.searches.get() + 1);
        let (problem, expected, fill, pinned) = self.formatted(item);
        let loops = self.pinned_loops(&problem);
        let (problem, found) = problem.search_formats(self.costs, &loops);
        let Some(choice) = found.first() else { return f64::INFINITY };
        let expected = if pinned { expected } else { self.in_order(&problem, choice, expected) };
        let cells = expected.positions.last().copied().unwrap_or(1.0);
        let shape: Vec<f64> = problem.target.iter().map(|t| t.map_or(cells, |k| problem.extents[k])).collect();
        let dtype = item.dtype;
        let fill = fill.map_or(Value::zero(dtype), |fill| fill.cast(dtype));
        let entries = problem.expected;
        let mut operand = OperandStatistics {
            format: expected.format,
            dtype,
            fill,
            shape,
            entries,
            prefixes: Vec::new(),
            measured: false,
        };
        operand.spread();
        self.operands.insert(item.assignment.target.text.clone(), operand);
        choice.cost.total() + if problem.dense { cells * self.costs.dense_step } else { 0.0 }
    }

    /// The format of a target in its loop order.
    fn in_order(&self, problem: &Problem, choice: &Choice, natural: Expected) -> Expected {
        if problem.dense || problem.target.iter().any(Option::is_none) {
            return natural;
        }
        let mut dims: Vec<usize> = (0..problem.target.len()).collect();
        let when = |d: &usize| choice.order.iter().position(|index| Some(*index) == problem.target[*d]);
        dims.sort_by_key(|d| when(d));
        formats::choose(problem, &dims, true, self.costs)
    }

    fn nest(&mut self, item: Item) -> Result<Nest, Diagnostics> {
        let count = item.assignment.indices().len();
        if count > MOST_LOOPS {
            let message = format!("a statement has {count} indices; loops are nested at most {MOST_LOOPS} deep");
            return Err(Diagnostic::new(Code::E0105, message)
                .label(item.assignment.span, "too many indices")
                .help("split the statement into several with temporaries")
                .with_source(&self.notation.source)
                .into());
        }
        let (problem, expected, fill, pinned) = self.formatted(&item);
        let loops = self.pinned_loops(&problem);
        let (problem, found) = problem.search_formats(self.costs, &loops);
        let Some(choice) = found.first() else {
            let d = Diagnostic::new(Code::E1101, "no loop order exists").note("this is a bug in Tamis");
            return Err(d.help("please report the statement").into());
        };
        if choice.cost.convert.is_infinite() {
            return Err(self.forbidden(&item, &problem, &loops).with_source(&self.notation.source).into());
        }
        let about = item.assignment.to_string();
        let shown = |choice: &Choice| {
            let names: Vec<&str> = choice.order.iter().map(|k| problem.indices[*k].as_str()).collect();
            names.join(", ")
        };
        if problem.indices.len() > 1 {
            let others: Vec<String> =
                found.iter().skip(1).take(5).map(|choice| format!("{}: {}", shown(choice), choice.cost)).collect();
            let mut why = format!("it costs {}", choice.cost);
            if !loops.is_empty() {
                let (_, best) = problem.search_formats(self.costs, &[]);
                if let Some(best) = best.first() {
                    let ratio = choice.cost.total() / best.cost.total().max(1e-9);
                    why += &format!("; pinned, {ratio:.2} times the cost of {}", shown(best));
                }
            }
            self.decide(&about, &format!("loops {}", shown(choice)), &why, others);
        }
        let format = match (pinned, problem.target.is_empty()) {
            (_, true) => None,
            (true, _) => Some(expected.format.clone()),
            (false, _) => Some(self.in_order(&problem, choice, expected.clone()).format),
        };
        if let Some(format) = &format {
            let cells: f64 = problem.target.iter().flatten().map(|k| problem.extents[*k]).product();
            let why = match (pinned, problem.dense) {
                (true, _) => "pinned".to_string(),
                (_, dense) => {
                    let share = if cells > 0.0 { 100.0 * problem.expected.min(cells) / cells } else { 0.0 };
                    let what = if dense { "cheaper than a coordinate list of these" } else { "the rest is not stored" };
                    let expected = problem.expected.min(cells);
                    format!("{expected:.4e} of {cells:.4e} elements are expected ({share:.3} %): {what}")
                }
            };
            if !(item.assignment.temporary && problem.dense) {
                self.note(&item.assignment.target.text, &format!("format {format}"), &why);
            }
        }
        let (body, copies) = self.convert(&item, &problem, choice);
        let cut = tile::tileable(&problem).into_iter();
        let mut cut = cut.filter_map(|k| Some((k, tile::length(&problem, &choice.order, k, self.costs)?)));
        let tile = cut.next().map(|(k, length)| (problem.indices[k].clone(), length));
        if let Some((index, length)) = &tile {
            let why = "parts of rows that are used many times stay in the cache";
            self.note(&about, &format!("{index} in tiles of {length}"), why);
        }
        Ok(Nest {
            tile,
            order: choice.order.iter().map(|k| problem.indices[*k].clone()).collect(),
            cost: choice.cost.total(),
            inner: Vec::new(),
            format,
            fill,
            body,
            copies,
            item,
        })
    }

    /// Reports the tensors that forbid a loop order when conversions are disabled.
    fn forbidden(&self, item: &Item, problem: &Problem, loops: &[usize]) -> Diagnostic {
        let shown = |order: &[usize]| order.iter().map(|k| problem.indices[*k].as_str()).collect::<Vec<_>>().join(", ");
        let mut free = problem.clone();
        free.places.iter_mut().for_each(|place| place.kept = false);
        let (free, found) = free.search_formats(self.costs, loops);
        let wanted = if loops.is_empty() { "any order".to_string() } else { format!("the order {}", shown(loops)) };
        let statement = &item.assignment;
        let message = format!("the loops of `{statement}` cannot run in {wanted} without a conversion");
        let mut d = Diagnostic::new(Code::E1211, message);
        let Some(choice) = found.first() else { return d.help("allow conversions") };
        for (k, order) in choice.conversions.iter().filter(|(k, _)| problem.places[*k].kept) {
            let OperandAccess { tensor, subscripts, operand, .. } = &free.places[*k];
            if let (Some(first), Some(last)) = (subscripts.first(), subscripts.last()) {
                let stored = operand.order().iter().map(|d| text(&subscripts[*d])).collect::<Vec<_>>();
                let text = format!("stored as {}, by {}", operand.format, stored.join(", then "));
                d = d.label(first.span.to(last.span), text);
            }
            if let Some(other) = operand.reordered(order) {
                let cost = self.costs.convert * operand.entries;
                let share = 100.0 * cost / choice.cost.total().max(1e-9);
                d = d.note(format!(
                    "converting `{tensor}` to {} is expected to cost {cost:.3e} steps, {share:.0} % of {:.3e} in all",
                    other.format,
                    choice.cost.total()
                ));
            }
        }
        let (_, kept) = problem.search_formats(self.costs, &[]);
        match kept.first().filter(|kept| !loops.is_empty() && kept.cost.convert.is_finite()) {
            Some(kept) => d.help(format!("allow conversions, or the order {}", shown(&kept.order))),
            None => d.help("allow conversions, or give the tensors in formats of one order"),
        }
    }

    /// The body with accesses to converted operands and transposed temporaries.
    pub(super) fn convert(
        &mut self,
        item: &Item,
        problem: &Problem,
        choice: &Choice,
    ) -> (Expr, Vec<(String, String, Format)>) {
        let mut body = item.assignment.body.clone();
        let mut copies = Vec::new();
        for (place, order) in &choice.conversions {
            let OperandAccess { tensor, subscripts, operand, .. } = &problem.places[*place];
            let Some(other) = operand.reordered(order) else { continue };
            let given = self.notation.operands().contains(&tensor.as_str());
            let known = self.conversions.iter().find(|c| c.source == *tensor && c.format == other.format);
            let name = match known {
                Some(conversion) => conversion.name.clone(),
                None => {
                    let short: String =
                        other.format.to_string().chars().filter(|c| c.is_ascii_alphanumeric()).take(12).collect();
                    let mut name = format!("{tensor}_{short}");
                    while !self.taken.insert(name.clone()) {
                        name.push('_');
                    }
                    self.note(
                        tensor,
                        &format!("converted to {}", other.format),
                        &format!("the loops iterate over it in that order; nnz {:.3e}", operand.entries),
                    );
                    let conversion =
                        Conversion { source: tensor.clone(), name: name.clone(), format: other.format.clone() };
                    if given {
                        self.conversions.push(conversion);
                    } else {
                        copies.push((tensor.clone(), name.clone(), other.format.clone()));
                    }
                    self.operands.insert(name.clone(), other);
                    name
                }
            };
            rename(&mut body, tensor, subscripts, &name);
        }
        (body, copies)
    }

    /// The parameters of the program: operands used unchanged and results of conversions.
    fn params(&self, nests: &[Nest]) -> Vec<String> {
        let mut used = FxHashSet::default();
        fn collect(nest: &Nest, used: &mut FxHashSet<String>) {
            names_in(&nest.body, used);
            nest.item.assignment.subscripts.iter().for_each(|s| names_in(s, used));
            for range in &nest.item.assignment.ranges {
                range.start.iter().chain([&range.stop]).for_each(|bound| names_in(bound, used));
            }
            nest.inner.iter().for_each(|(_, nest)| collect(nest, used));
        }
        nests.iter().for_each(|nest| collect(nest, &mut used));
        let given = self.notation.operands().into_iter().map(String::from);
        let made = self.conversions.iter().map(|conversion| conversion.name.clone());
        given.chain(made).filter(|name| used.contains(name)).collect()
    }

    fn nodes(&self, nests: &[Nest]) -> Vec<ProgramNode> {
        let mut nodes = Vec::new();
        for nest in nests {
            for (tensor, name, format) in &nest.copies {
                nodes.extend(self.copy(tensor, name, format));
            }
            if !nest.item.assignment.again {
                nodes.push(declaration(nest));
            }
            nodes.extend(loops(nest, 0));
        }
        nodes
    }

    /// A transposed temporary.
    fn copy(&self, tensor: &str, name: &str, format: &Format) -> Vec<ProgramNode> {
        let Some(operand) = self.operands.get(tensor) else { return Vec::new() };
        let span = tamis_ir::Span::default();
        let index = |d: usize| format!("{name}{d}");
        let subscripts: Vec<Expr> =
            (0..operand.shape.len()).map(|d| Expr { kind: ExprKind::Name(index(d)), span }).collect();
        let base = Name { text: tensor.to_string(), span };
        let value = Expr { kind: ExprKind::Index { base, subscripts: subscripts.clone() }, span };
        let fill = Some(operand.fill).filter(|fill| fill.is_truthy());
        let declare = ProgramNode::Declare { name: name.to_string(), format: Some(plain(format).to_string()), fill };
        let assign = ProgramNode::Assign { target: name.to_string(), subscripts, op: None, value };
        let order: Vec<String> = operand.order().into_iter().map(index).collect();
        let mut nodes = vec![declare];
        nodes.extend(ProgramNode::nest(&order, &[], vec![assign]));
        nodes
    }
}
