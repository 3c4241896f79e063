//! State-space search: formats of operands and orders of loops, and for the fastest of those widths of arrays and schedules; each
//! compiled, run and verified.

mod space;

use crate::calibrate::costs;
use crate::compile::{CompileOptions, compile};
use crate::notation::{EinsumOptions, operands_of, schedule};
use crate::signature::Signature;
use rustc_hash::FxHashMap;
use space::Seen;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};
use tamis_compiler::auto::{self, Pins, Plan};
use tamis_compiler::schedule::Schedule;
use tamis_ir::notation::Notation;
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Format, Value};
use tamis_tensor::Tensor;

/// How to search.
pub struct SearchOptions<'a> {
    /// No other state is tried after so long.
    pub limit: Duration,
    /// Each state runs up to so many times, and the least time counts.
    pub repeats: usize,
    /// Told how many states were tried, of how many.
    pub progress: Option<&'a dyn Fn(u64, u64)>,
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        SearchOptions { limit: Duration::from_secs(30), repeats: 5, progress: None }
    }
}

/// One way to compute it.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// How operands are stored, in the order of the parameters.
    pub formats: Vec<Format>,
    /// The order of loops.
    pub order: Vec<String>,
    /// Commands that change the loops; empty if there are none.
    pub schedule: String,
    /// How results are stored.
    pub results: Vec<(String, String)>,
    /// The least time of the kernel.
    pub kernel: Duration,
    /// How long it took to compile.
    pub compile: Duration,
    /// Whether this is what Tamis chooses.
    pub chosen: bool,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Searched {
    /// All that were tried, fastest first.
    pub states: Vec<State>,
    /// How many there are in all.
    pub total: usize,
    /// States that compute the same as another one with its operands converted, or that cannot be compiled.
    pub skipped: usize,
    /// What converting operands takes where Tamis chooses to.
    pub conversion: Duration,
    /// Whether time was up before all were tried.
    pub ended: bool,
}

/// Tries formats and orders for index notation of one statement, on tensors in the order of its parameters.
pub fn search(notation: &Notation, tensors: &[&Tensor], options: &SearchOptions) -> Result<Searched, Diagnostics> {
    let start = Instant::now();
    let [assignment] = &notation.assignments[..] else {
        let d = Diagnostic::new(Code::E0111, "only one statement is searched at a time");
        return Err(d.help("search its statements one by one").into());
    };
    let indices = assignment.indices();
    let orders = if indices.len() > MOST { vec![indices.clone()] } else { space::permutations(&indices) };
    // What Tamis does on its own: the reference.
    let scheduled = schedule(notation, tensors, &EinsumOptions::default())?;
    let plan: &Plan = &scheduled.plan;
    let before = Instant::now();
    let made = operands_of(plan, notation, tensors)?;
    let mut found = Searched { conversion: before.elapsed(), ..Searched::default() };
    let own: Vec<&Tensor> = made.iter().map(|tensor| tensor.as_ref()).collect();
    let (reference, kernel) = timed(&scheduled.executable, &own, options.repeats)?;
    let chosen = State {
        formats: notation
            .params()
            .iter()
            .zip(tensors)
            .map(|(name, tensor)| {
                let conversion = plan.conversions.iter().find(|c| c.source == *name);
                conversion.map_or(tensor.format(), |c| &c.format).clone()
            })
            .collect(),
        order: loops(&plan.program),
        schedule: String::new(),
        results: formats_of(&reference),
        kernel,
        compile: scheduled.executable.build().total(),
        chosen: true,
    };
    let choices =
        tensors.iter().map(|tensor| space::formats(tensor)).collect::<Result<Vec<Vec<Format>>, Diagnostic>>()?;
    let combinations = product(&choices);
    found.total = combinations.len() * orders.len();
    let mut seen = Seen::default();
    let mut made: FxHashMap<(usize, String), Tensor> = FxHashMap::default();
    let mut planned = Vec::new();
    for combination in &combinations {
        // Planning takes time, too.
        if start.elapsed() > options.limit / 2 && !planned.is_empty() {
            found.ended = true;
            break;
        }
        for (k, format) in combination.iter().enumerate() {
            if let Entry::Vacant(place) = made.entry((k, format.to_string())) {
                place.insert(tensors[k].convert(format)?);
            }
        }
        let inputs = stored(&made, combination);
        for order in &orders {
            match planned_for(notation, &inputs, order) {
                Some(plan) => planned.push((plan, combination, order)),
                None => found.skipped += 1,
            }
        }
    }
    // What is expected to be fast is tried first, so that what time is too short for is slow.
    planned.sort_by(|(a, ..), (b, ..)| a.cost.total_cmp(&b.cost));
    let total = planned.len() as u64;
    for (done, (plan, combination, order)) in planned.iter().enumerate() {
        if start.elapsed() > options.limit {
            found.ended = true;
            break;
        }
        if let Some(progress) = options.progress {
            progress(done as u64, total);
        }
        let none = Schedule::new();
        seen.add(combination, order, &none);
        match try_one(notation, plan, &stored(&made, combination), (order, &none), &reference, options)? {
            Some(state) => {
                let same = state.order == chosen.order && state.formats == chosen.formats;
                found.states.push(State { chosen: same, ..state });
            }
            None => found.skipped += 1,
        }
    }
    let mut refine = Refine { notation, tensors, reference: &reference, options, start, seen };
    refine.run(&mut found, |state| {
        space::widths(&state.formats, tensors).into_iter().map(|formats| (formats, Schedule::new())).collect()
    })?;
    refine.run(&mut found, |state| {
        let schedules = space::schedules(&state.order, &state.formats, tensors);
        schedules.into_iter().map(|schedule| (state.formats.clone(), schedule)).collect()
    })?;
    match found.states.iter_mut().find(|state| state.chosen) {
        Some(state) => state.kernel = state.kernel.min(chosen.kernel),
        None => found.states.push(chosen),
    }
    found.states.sort_by_key(|state| state.kernel);
    Ok(found)
}

/// Operands in their formats.
fn stored<'a>(made: &'a FxHashMap<(usize, String), Tensor>, combination: &[Format]) -> Vec<&'a Tensor> {
    combination.iter().enumerate().filter_map(|(k, format)| made.get(&(k, format.to_string()))).collect()
}

/// The program for an order of loops, if nothing has to be converted for it.
fn planned_for(notation: &Notation, inputs: &[&Tensor], order: &[String]) -> Option<Plan> {
    let (types, operands) = auto::describe(inputs);
    let pins = Pins { order: order.to_vec(), separate: true, ..Pins::default() };
    let plan = auto::schedule(notation, &types, &operands, &costs().ok()?, &pins).ok()?;
    plan.conversions.is_empty().then_some(plan)
}

fn try_one(
    notation: &Notation,
    plan: &Plan,
    inputs: &[&Tensor],
    (order, schedule): (&[String], &Schedule),
    reference: &[(String, Tensor)],
    options: &SearchOptions,
) -> Result<Option<State>, Diagnostics> {
    let own = operands_of(plan, notation, inputs)?;
    let own: Vec<&Tensor> = own.iter().map(|tensor| tensor.as_ref()).collect();
    let scheduled = CompileOptions { schedule: schedule.clone(), ..CompileOptions::default() };
    let Ok(executable) = compile(&plan.program, &Signature::of(&own), &scheduled) else {
        return Ok(None);
    };
    let (results, kernel) = timed(&executable, &own, options.repeats)?;
    for ((name, mine), (_, theirs)) in results.iter().zip(reference) {
        let scale = largest(theirs) * if matches!(mine.dtype(), DType::F32 | DType::C64) { 1e-4 } else { 1e-9 };
        let close = |a: Value, b: Value| {
            let (a, b) = (a.as_c128(), b.as_c128());
            a == b || (a - b).norm() <= scale || (a.is_nan() && b.is_nan())
        };
        if let Some((at, a, b)) = mine.first_difference(theirs, &close)? {
            let message = format!("`{name}` is {a} at {at:?} in one schedule and {b} in another");
            return Err(Diagnostic::new(Code::E1004, message)
                .note(format!("the first one is\n{}", plan.program))
                .note("this is a bug in Tamis")
                .help("please report it")
                .into());
        }
    }
    Ok(Some(State {
        formats: inputs.iter().map(|tensor| tensor.format().clone()).collect(),
        order: order.to_vec(),
        schedule: schedule.to_string(),
        results: formats_of(&results),
        kernel,
        compile: executable.build().total(),
        chosen: false,
    }))
}

/// The results of the first run, and the least time of some.
fn timed(
    executable: &crate::Executable,
    tensors: &[&Tensor],
    repeats: usize,
) -> Result<(Vec<(String, Tensor)>, Duration), Diagnostics> {
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

fn formats_of(results: &[(String, Tensor)]) -> Vec<(String, String)> {
    results.iter().map(|(name, tensor)| (name.clone(), tensor.format().to_string())).collect()
}

/// The loops of a program, outermost first, each name once.
fn loops(program: &crate::Program) -> Vec<String> {
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

fn product(choices: &[Vec<Format>]) -> Vec<Vec<Format>> {
    choices.iter().fold(vec![Vec::new()], |before, formats| {
        before.iter().flat_map(|start| formats.iter().map(|f| [start.clone(), vec![f.clone()]].concat())).collect()
    })
}

/// So many of the fastest states are tried with other widths and schedules.
const REFINED: usize = 3;

/// So many loops are put in every order.
const MOST: usize = 5;

/// Trying the fastest states so far in other ways.
struct Refine<'a> {
    notation: &'a Notation,
    tensors: &'a [&'a Tensor],
    reference: &'a [(String, Tensor)],
    options: &'a SearchOptions<'a>,
    start: Instant,
    seen: Seen,
}

impl Refine<'_> {
    fn run(
        &mut self,
        found: &mut Searched,
        ways: impl Fn(&State) -> Vec<(Vec<Format>, Schedule)>,
    ) -> Result<(), Diagnostics> {
        found.states.sort_by_key(|state| state.kernel);
        let mut wanted: Vec<(Vec<String>, Vec<Format>, Schedule)> = Vec::new();
        for state in found.states.iter().take(REFINED) {
            for (formats, schedule) in ways(state) {
                if self.seen.add(&formats, &state.order, &schedule) {
                    wanted.push((state.order.clone(), formats, schedule));
                }
            }
        }
        let before = found.states.len() as u64;
        found.total += wanted.len();
        for (done, (order, formats, schedule)) in wanted.iter().enumerate() {
            if self.start.elapsed() > self.options.limit {
                found.ended = true;
                break;
            }
            if let Some(progress) = self.options.progress {
                progress(before + done as u64, before + wanted.len() as u64);
            }
            match self.one(order, formats, schedule)? {
                Some(state) => found.states.push(state),
                None => found.skipped += 1,
            }
        }
        Ok(())
    }

    /// What a width does not hold, or a command does not take, is not a state.
    fn one(&self, order: &[String], formats: &[Format], schedule: &Schedule) -> Result<Option<State>, Diagnostics> {
        let stored: Result<Vec<Tensor>, Diagnostic> =
            self.tensors.iter().zip(formats).map(|(tensor, format)| tensor.convert(format)).collect();
        let Ok(stored) = stored else { return Ok(None) };
        let inputs: Vec<&Tensor> = stored.iter().collect();
        match planned_for(self.notation, &inputs, order) {
            Some(plan) => try_one(self.notation, &plan, &inputs, (order, schedule), self.reference, self.options),
            None => Ok(None),
        }
    }
}
