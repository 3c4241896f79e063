//! State-space search: measures every format and loop order for one statement of index notation.
//!
//! A state is a format for each operand, an order of loops, and scheduling commands. States are
//! planned, sorted by predicted cost, compiled, verified against the scheduler's own choice, and
//! timed on one thread. The fastest ones are then refined: tried with other widths of positions and
//! coordinates, and with other schedules. Without a time limit the search is exhaustive.

mod space;

use crate::calibrate::costs;
use crate::compile::{CompileOptions, Executable, Signature, compile};
use crate::notation::{self, EinsumOptions, converted_operands};
use crate::results::Results;
use rustc_hash::FxHashMap;
use space::VisitedStates;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};
use tamis_compiler::auto::{self, NotationPlan, Pins};
use tamis_compiler::schedule::Schedule;
use tamis_ir::notation::Notation;
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Format, Value};
use tamis_tensor::Tensor;

/// The number of fastest states that are refined.
const REFINED: usize = 3;

/// The most indices of which every order is tried.
const MAX_INDICES: usize = 5;

/// The options of a search.
///
/// ```
/// use std::time::Duration;
/// use tamis::search::SearchOptions;
/// let options = SearchOptions::new().time_limit(Duration::from_secs(5)).repeats(3);
/// assert!(options.progress.is_none());
/// ```
pub struct SearchOptions<'a> {
    /// No further state is tried after this time.
    pub time_limit: Duration,
    /// Each state is run up to this many times; the least time counts.
    pub repeats: usize,
    /// Receives the number of states that were tried, and of all.
    pub progress: Option<&'a dyn Fn(u64, u64)>,
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        SearchOptions { time_limit: Duration::from_secs(30), repeats: 5, progress: None }
    }
}

/// Setters that chain: `SearchOptions::new().repeats(3)`.
impl<'a> SearchOptions<'a> {
    /// The default options: at most 30 seconds, five runs of each state.
    ///
    /// ```
    /// use tamis::search::SearchOptions;
    /// assert_eq!(SearchOptions::new().repeats, 5);
    /// ```
    pub fn new() -> SearchOptions<'a> {
        SearchOptions::default()
    }

    /// Sets [`time_limit`](SearchOptions::time_limit).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::search::SearchOptions;
    /// let brief = SearchOptions::new().time_limit(Duration::from_secs(1));
    /// assert!(brief.time_limit < SearchOptions::new().time_limit);
    /// ```
    pub fn time_limit(self, time_limit: Duration) -> SearchOptions<'a> {
        SearchOptions { time_limit, ..self }
    }

    /// Sets [`repeats`](SearchOptions::repeats).
    ///
    /// ```
    /// use tamis::search::SearchOptions;
    /// assert_eq!(SearchOptions::new().repeats(1).repeats, 1);
    /// ```
    pub fn repeats(self, repeats: usize) -> SearchOptions<'a> {
        SearchOptions { repeats, ..self }
    }

    /// Sets [`progress`](SearchOptions::progress).
    ///
    /// ```
    /// use tamis::search::SearchOptions;
    /// let bar = |tried, all| eprintln!("{tried} of {all} states");
    /// assert!(SearchOptions::new().progress(&bar).progress.is_some());
    /// ```
    pub fn progress(self, progress: &'a dyn Fn(u64, u64)) -> SearchOptions<'a> {
        SearchOptions { progress: Some(progress), ..self }
    }
}

/// A state of the search: one way to compute the notation, and its time.
///
/// ```
/// # use tamis::prelude::*;
/// use tamis::search::SearchOptions;
/// # let a = tamis::gallery::generate("banded(50, 1)")?;
/// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let notation = Notation::parse("s = A[i,j]")?;
/// let report = tamis::search(&notation, &[&a], &SearchOptions::new().repeats(1))?;
/// let chosen = report.states.iter().find(|state| state.chosen).expect("it is measured, too");
/// assert_eq!((chosen.formats.len(), chosen.order.len()), (1, 2));
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SearchState {
    /// The formats of the operands, in the order of the parameters.
    pub formats: Vec<Format>,
    /// The order of loops, outermost first.
    pub order: Vec<String>,
    /// The scheduling commands; empty if there are none.
    pub schedule: String,
    /// Names and formats of the results.
    pub results: Vec<(String, String)>,
    /// The least time of the kernel.
    pub kernel: Duration,
    /// The time of compilation.
    pub compile: Duration,
    /// True if this is the choice of the scheduler.
    pub chosen: bool,
}

/// The outcome of a search.
///
/// ```
/// use tamis::prelude::*;
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let report = tamis::search(&Notation::parse("s = A[i,j]")?, &[&a], &tamis::search::SearchOptions::new().repeats(1))?;
/// if let Some(fastest) = report.states.first() {
///     println!("{:?}: {} with the loops {}", fastest.kernel, fastest.formats[0], fastest.order.join(", "));
/// }
/// assert!(report.total >= report.states.len());
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SearchReport {
    /// The measured states, fastest first.
    pub states: Vec<SearchState>,
    /// The number of states, measured or not.
    pub total: usize,
    /// States that need a conversion, and so equal another state, or that do not compile.
    pub skipped: usize,
    /// The time of the conversions that the scheduler chooses.
    pub conversion: Duration,
    /// True if the time limit ended the search early.
    pub ended: bool,
}

/// Searches formats and loop orders for index notation of one statement, on tensors in the order of
/// its parameters.
///
/// ```
/// use tamis::prelude::*;
/// use tamis::search::SearchOptions;
/// let a = tamis::gallery::generate("banded(50, 1)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let notation = Notation::parse("s = A[i,j]")?;
/// let report = tamis::search(&notation, &[&a], &SearchOptions::new().repeats(1))?;
/// assert!(report.states.iter().any(|state| state.chosen));
/// assert!(report.states.windows(2).all(|pair| pair[0].kernel <= pair[1].kernel));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn search(notation: &Notation, tensors: &[&Tensor], options: &SearchOptions) -> Result<SearchReport, Diagnostics> {
    let start = Instant::now();
    let [assignment] = &notation.assignments[..] else {
        let d = Diagnostic::new(Code::E0111, "only one statement is searched at a time");
        return Err(d.help("search its statements one by one").into());
    };
    let indices = assignment.indices();
    let orders = if indices.len() > MAX_INDICES { vec![indices] } else { space::permutations(&indices) };
    let choices = tensors.iter().map(|tensor| space::formats(tensor)).collect::<Result<Vec<Vec<Format>>, _>>()?;
    let combinations = product(&choices);
    let (chosen, reference, conversion) = chosen_state(notation, tensors, options)?;
    let report = SearchReport { conversion, total: combinations.len() * orders.len(), ..SearchReport::default() };
    let visited = VisitedStates::default();
    let mut search = ScheduleSearch { notation, tensors, reference: &reference, options, start, visited, report };
    search.measure_all(&combinations, &orders, &chosen)?;
    search.refine(|state| {
        space::widths(&state.formats, tensors).into_iter().map(|formats| (formats, Schedule::new())).collect()
    })?;
    search.refine(|state| {
        let schedules = space::schedules(&state.order, &state.formats, tensors);
        schedules.into_iter().map(|schedule| (state.formats.clone(), schedule)).collect()
    })?;
    let mut report = search.report;
    match report.states.iter_mut().find(|state| state.chosen) {
        Some(state) => state.kernel = state.kernel.min(chosen.kernel),
        None => report.states.push(chosen),
    }
    report.states.sort_by_key(|state| state.kernel);
    Ok(report)
}

/// The scheduler's choice, its results, which verify those of other states, and the time of its
/// conversions.
fn chosen_state(
    notation: &Notation,
    tensors: &[&Tensor],
    options: &SearchOptions,
) -> Result<(SearchState, Results, Duration), Diagnostics> {
    let compiled = notation::compile(notation, tensors, &EinsumOptions::default())?;
    let plan: &NotationPlan = &compiled.plan;
    let start = Instant::now();
    let operands = converted_operands(plan, notation, tensors)?;
    let conversion = start.elapsed();
    let operands: Vec<&Tensor> = operands.iter().map(|tensor| tensor.as_ref()).collect();
    let (results, kernel) = timed(&compiled.executable, &operands, options.repeats)?;
    let format = |(name, tensor): (&&str, &&Tensor)| {
        let conversion = plan.conversions.iter().find(|c| c.source == **name);
        conversion.map_or(tensor.format(), |c| &c.format).clone()
    };
    let state = SearchState {
        formats: notation.params().iter().zip(tensors).map(format).collect(),
        order: loops(&plan.program),
        schedule: String::new(),
        results: formats_of(&results),
        kernel,
        compile: compiled.executable.build().total(),
        chosen: true,
    };
    Ok((state, results, conversion))
}

/// A search in progress.
struct ScheduleSearch<'a> {
    notation: &'a Notation,
    tensors: &'a [&'a Tensor],
    /// The results of the scheduler's choice.
    reference: &'a Results,
    options: &'a SearchOptions<'a>,
    start: Instant,
    visited: VisitedStates,
    report: SearchReport,
}

impl ScheduleSearch<'_> {
    /// True if time is up, which the report then says.
    fn is_over(&mut self, limit: Duration) -> bool {
        let over = self.start.elapsed() > limit;
        self.report.ended |= over;
        over
    }

    fn tell(&self, done: u64, total: u64) {
        if let Some(progress) = self.options.progress {
            progress(done, total);
        }
    }

    /// Measures every combination of formats in every order of loops.
    fn measure_all(
        &mut self,
        combinations: &[Vec<Format>],
        orders: &[Vec<String>],
        chosen: &SearchState,
    ) -> Result<(), Diagnostics> {
        let mut converted: FxHashMap<(usize, String), Tensor> = FxHashMap::default();
        let mut planned = Vec::new();
        for combination in combinations {
            // Planning takes half of the time at most.
            if !planned.is_empty() && self.is_over(self.options.time_limit / 2) {
                break;
            }
            for (k, format) in combination.iter().enumerate() {
                if let Entry::Vacant(entry) = converted.entry((k, format.to_string())) {
                    entry.insert(self.tensors[k].convert(format)?);
                }
            }
            let operands = operands(&converted, combination);
            for order in orders {
                match plan_for_order(self.notation, &operands, order) {
                    Some(plan) => planned.push((plan, combination, order)),
                    None => self.report.skipped += 1,
                }
            }
        }
        // In the order of predicted cost, so that the time limit cuts off slow states.
        planned.sort_by(|(a, ..), (b, ..)| a.cost.total_cmp(&b.cost));
        let none = Schedule::new();
        for (done, (plan, combination, order)) in planned.iter().enumerate() {
            if self.is_over(self.options.time_limit) {
                break;
            }
            self.tell(done as u64, planned.len() as u64);
            self.visited.insert(combination, order, &none);
            match self.measure(plan, &operands(&converted, combination), order, &none)? {
                Some(state) => {
                    let same = state.order == chosen.order && state.formats == chosen.formats;
                    self.report.states.push(SearchState { chosen: same, ..state });
                }
                None => self.report.skipped += 1,
            }
        }
        Ok(())
    }

    /// Measures variations of the fastest states.
    fn refine(&mut self, variations: impl Fn(&SearchState) -> Vec<(Vec<Format>, Schedule)>) -> Result<(), Diagnostics> {
        self.report.states.sort_by_key(|state| state.kernel);
        let mut wanted: Vec<(Vec<String>, Vec<Format>, Schedule)> = Vec::new();
        for state in self.report.states.iter().take(REFINED) {
            for (formats, schedule) in variations(state) {
                if self.visited.insert(&formats, &state.order, &schedule) {
                    wanted.push((state.order.clone(), formats, schedule));
                }
            }
        }
        let before = self.report.states.len() as u64;
        self.report.total += wanted.len();
        for (done, (order, formats, schedule)) in wanted.iter().enumerate() {
            if self.is_over(self.options.time_limit) {
                break;
            }
            self.tell(before + done as u64, before + wanted.len() as u64);
            match self.measure_variation(order, formats, schedule)? {
                Some(state) => self.report.states.push(state),
                None => self.report.skipped += 1,
            }
        }
        Ok(())
    }

    /// Measures a state; none if a width is too narrow for a tensor, or a command does not apply.
    fn measure_variation(
        &self,
        order: &[String],
        formats: &[Format],
        schedule: &Schedule,
    ) -> Result<Option<SearchState>, Diagnostics> {
        let converted: Result<Vec<Tensor>, Diagnostic> =
            self.tensors.iter().zip(formats).map(|(tensor, format)| tensor.convert(format)).collect();
        let Ok(converted) = converted else { return Ok(None) };
        let operands: Vec<&Tensor> = converted.iter().collect();
        match plan_for_order(self.notation, &operands, order) {
            Some(plan) => self.measure(&plan, &operands, order, schedule),
            None => Ok(None),
        }
    }

    /// Compiles, times and verifies a plan; none if it does not compile.
    fn measure(
        &self,
        plan: &NotationPlan,
        operands: &[&Tensor],
        order: &[String],
        schedule: &Schedule,
    ) -> Result<Option<SearchState>, Diagnostics> {
        let parameters = converted_operands(plan, self.notation, operands)?;
        let parameters: Vec<&Tensor> = parameters.iter().map(|tensor| tensor.as_ref()).collect();
        let options = CompileOptions::new().schedule(schedule.clone());
        let Ok(executable) = compile(&plan.program, &Signature::of(&parameters), &options) else {
            return Ok(None);
        };
        let (results, kernel) = timed(&executable, &parameters, self.options.repeats)?;
        verify(&results, self.reference, plan)?;
        Ok(Some(SearchState {
            formats: operands.iter().map(|tensor| tensor.format().clone()).collect(),
            order: order.to_vec(),
            schedule: schedule.to_string(),
            results: formats_of(&results),
            kernel,
            compile: executable.build().total(),
            chosen: false,
        }))
    }
}

/// Checks that a plan computes the reference results, up to the rounding of reassociated sums.
fn verify(results: &Results, reference: &Results, plan: &NotationPlan) -> Result<(), Diagnostics> {
    for ((name, found), expected) in results.iter().zip(reference.tensors()) {
        let single = matches!(found.dtype(), DType::F32 | DType::C64);
        let tolerance = largest(expected) * if single { 1e-4 } else { 1e-9 };
        let close = |a: Value, b: Value| {
            let (a, b) = (a.as_c128(), b.as_c128());
            a == b || (a - b).norm() <= tolerance || (a.is_nan() && b.is_nan())
        };
        if let Some((at, a, b)) = found.first_difference(expected, &close)? {
            let message = format!("`{name}` is {a} at {at:?} in one schedule and {b} in another");
            return Err(Diagnostic::new(Code::E1004, message)
                .note(format!("the first one is\n{}", plan.program))
                .note("this is a bug in Tamis")
                .help("please report it")
                .into());
        }
    }
    Ok(())
}

/// The operands in the formats of a combination.
fn operands<'a>(converted: &'a FxHashMap<(usize, String), Tensor>, combination: &[Format]) -> Vec<&'a Tensor> {
    combination.iter().enumerate().filter_map(|(k, format)| converted.get(&(k, format.to_string()))).collect()
}

/// The plan for an order of loops, without conversions; none if it needs one.
fn plan_for_order(notation: &Notation, operands: &[&Tensor], order: &[String]) -> Option<NotationPlan> {
    let (types, operands) = auto::describe(operands);
    let pins = Pins { order: order.to_vec(), separate: true, keep: true, ..Pins::default() };
    let plan = auto::schedule(notation, &types, &operands, &costs().ok()?, &pins).ok()?;
    plan.conversions.is_empty().then_some(plan)
}

/// The results of the first run, and the least time of several.
fn timed(executable: &Executable, tensors: &[&Tensor], repeats: usize) -> Result<(Results, Duration), Diagnostics> {
    let start = Instant::now();
    let first = tamis_tensor::with_threads(1, || executable.call_timed(tensors))?;
    let mut least = first.kernel;
    for _ in 1..repeats.max(1) {
        if start.elapsed() > Duration::from_millis(500) {
            break;
        }
        least = least.min(tamis_tensor::with_threads(1, || executable.call_timed(tensors))?.kernel);
    }
    Ok((first.results, least))
}

/// The largest finite magnitude of the stored values.
fn largest(tensor: &Tensor) -> f64 {
    let mut largest: f64 = 0.0;
    tensor.for_each(&mut |_, value| {
        let size = value.as_c128().norm();
        if size.is_finite() {
            largest = largest.max(size);
        }
    });
    largest
}

fn formats_of(results: &Results) -> Vec<(String, String)> {
    results.iter().map(|(name, tensor)| (name.to_string(), tensor.format().to_string())).collect()
}

/// The loops of a program, outermost first, each name once.
fn loops(program: &tamis_ir::Program) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    program.visit(&mut |stmt| {
        if let tamis_ir::program::StmtKind::For { index, .. } = &stmt.kind {
            let name = &program.indices[index.index()];
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    });
    names
}

/// The Cartesian product of the formats of each operand.
fn product(choices: &[Vec<Format>]) -> Vec<Vec<Format>> {
    choices.iter().fold(vec![Vec::new()], |before, formats| {
        before.iter().flat_map(|start| formats.iter().map(|f| [start.clone(), vec![f.clone()]].concat())).collect()
    })
}
