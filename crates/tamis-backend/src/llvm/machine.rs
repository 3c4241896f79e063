//! From text to an object file: parsing, passes and code generation for a processor.

use super::emit::Emitted;
use super::{OptLevel, Timings};
use crate::failure::bug;
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::llvm_sys::core::LLVMContextSetDiagnosticHandler;
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};
use std::ffi::CStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tamis_ir::Diagnostic;

/// The processor that code is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct TargetCpu {
    pub triple: String,
    pub cpu: String,
    pub features: String,
}

impl TargetCpu {
    /// This machine's processor, or the one that `TAMIS_CPU` names (`x86-64-v3`, `znver3`, `x86-64-v4,-avx512vl`).
    pub fn host() -> Result<Arc<TargetCpu>, Diagnostic> {
        static HOST: OnceLock<Result<Arc<TargetCpu>, Diagnostic>> = OnceLock::new();
        HOST.get_or_init(|| TargetCpu::named(std::env::var("TAMIS_CPU").ok().as_deref()).map(Arc::new)).clone()
    }

    /// A processor of this machine's kind by name, with features after commas; without a name, this machine's.
    pub fn named(name: Option<&str>) -> Result<TargetCpu, Diagnostic> {
        let triple = initialise()?;
        let named = name.map(|name| super::names::read(name, &triple)).transpose()?.flatten();
        let (cpu, features) = named.unwrap_or_else(|| {
            (
                TargetMachine::get_host_cpu_name().to_string_lossy().into_owned(),
                TargetMachine::get_host_cpu_features().to_string_lossy().into_owned(),
            )
        });
        Ok(TargetCpu { triple, cpu, features })
    }
}

/// What can be said to LLVM in no other way, after the name of a program. Where values that live long are kept takes a third of the time of
/// code generation for kernels with many loops, unless the search ends early; machine code is no slower, and shorter.
const OPTIONS: [&CStr; 2] = [c"tamis", c"-grow-region-complexity-budget=100"];

/// Gets LLVM ready, once; gives the triple of this machine.
fn initialise() -> Result<String, Diagnostic> {
    static READY: OnceLock<Result<String, String>> = OnceLock::new();
    let ready = READY.get_or_init(|| {
        LlvmTarget::initialize_native(&InitializationConfig::default())?;
        let options = OPTIONS.map(CStr::as_ptr);
        // SAFETY: the strings live as long as the program, and there are as many as said. LLVM of this version knows the options, and this
        // happens once.
        unsafe { LLVMParseCommandLineOptions(options.len() as i32, options.as_ptr(), std::ptr::null()) };
        Ok(TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned())
    });
    ready.clone().map_err(|reason| bug(format!("LLVM does not know this processor: {reason}")))
}

/// The machines that were compiled for last, each while no thread compiles for it: making one takes longer than compiling a small kernel.
static MACHINES: Mutex<Vec<(TargetCpu, OptimizationLevel, Machine)>> = Mutex::new(Vec::new());

/// How many machines are kept.
const KEPT: usize = 6;

/// A machine that threads hand on to each other.
struct Machine(TargetMachine);

// SAFETY: a machine knows nothing of the thread that made it, and one thread has it at a time.
unsafe impl Send for Machine {}

/// How hard code generation tries. Large kernels are mostly code that runs once, which need not be the best.
fn effort(ir: &Emitted, level: OptLevel) -> OptimizationLevel {
    match level {
        OptLevel::None => OptimizationLevel::None,
        OptLevel::Tuned if ir.large => OptimizationLevel::Less,
        OptLevel::Tuned | OptLevel::O2 => OptimizationLevel::Default,
    }
}

fn with_machine<T>(
    target: &TargetCpu,
    effort: OptimizationLevel,
    work: impl FnOnce(&TargetMachine) -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    initialise()?;
    let machines = || MACHINES.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = {
        let mut machines = machines();
        let at = machines.iter().position(|(known, at, _)| known == target && *at == effort);
        at.map(|at| machines.remove(at).2)
    };
    let machine = match kept {
        Some(machine) => machine,
        None => {
            let triple = TargetTriple::create(&target.triple);
            let llvm = LlvmTarget::from_triple(&triple).map_err(|reason| bug(reason.to_string_lossy()))?;
            let (cpu, features) = (&target.cpu, &target.features);
            let machine =
                llvm.create_target_machine(&triple, cpu, features, effort, RelocMode::PIC, CodeModel::Default);
            Machine(machine.ok_or_else(|| bug(format!("LLVM has no machine for {}", target.triple)))?)
        }
    };
    let result = work(&machine.0);
    let mut machines = machines();
    machines.insert(0, (target.clone(), effort, machine));
    machines.truncate(KEPT);
    result
}

/// The first passes of the short pipeline: slots go into registers, and loops get their form.
const SHORT: &str = "function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>,loop-mssa(loop-rotate,licm<allowspeculation>),simplifycfg)";

/// The passes that follow for loops with a hint. Tiles become registers when the loops over them are gone, which is
/// why slots are looked at again after unrolling; what is invariant in vectors shows only then, too.
const LOOPS: &str = "function(loop(indvars),loop-vectorize,\
    loop-unroll<O2;full-unroll-max=256;no-runtime;no-partial>,early-cse,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>,sroa<modify-cfg>,early-cse<memssa>,\
    loop-mssa(licm<allowspeculation>),instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg)";

extern "C" fn ignore(_: LLVMDiagnosticInfoRef, _: *mut libc::c_void) {}

/// Parses IR and runs the passes.
fn optimised<'c>(
    context: &'c Context,
    ir: &Emitted,
    level: OptLevel,
    machine: &TargetMachine,
    timings: &mut Timings,
) -> Result<Module<'c>, Diagnostic> {
    // SAFETY: the handler is a function that ignores its arguments, so that LLVM's remarks do not reach the terminal.
    unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(ignore), std::ptr::null_mut()) };
    let start = Instant::now();
    let buffer = MemoryBuffer::create_from_memory_range_copy(ir.text.as_bytes(), "kernel");
    let module = context.create_module_from_ir(buffer).map_err(|reason| bug(reason.to_string_lossy()))?;
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    if cfg!(debug_assertions) {
        module.verify().map_err(|reason| bug(reason.to_string_lossy()))?;
    }
    timings.parse = start.elapsed();
    let start = Instant::now();
    let both = format!("{SHORT},{LOOPS}");
    let passes = match level {
        OptLevel::None => "always-inline",
        OptLevel::Tuned if ir.hinted => &both,
        OptLevel::Tuned => SHORT,
        OptLevel::O2 => "default<O2>",
    };
    let options = PassBuilderOptions::create();
    module.run_passes(passes, machine, options).map_err(|reason| bug(reason.to_string_lossy()))?;
    timings.optimise = start.elapsed();
    Ok(module)
}

/// The object file of a kernel.
pub(super) fn object(
    ir: &Emitted,
    target: &TargetCpu,
    level: OptLevel,
    timings: &mut Timings,
) -> Result<Vec<u8>, Diagnostic> {
    with_machine(target, effort(ir, level), |machine| {
        let context = Context::create();
        let module = optimised(&context, ir, level, machine, timings)?;
        let start = Instant::now();
        let object = machine
            .write_to_memory_buffer(&module, FileType::Object)
            .map_err(|reason| bug(reason.to_string_lossy()))?;
        timings.generate = start.elapsed();
        Ok(object.as_slice().to_vec())
    })
}

/// What passes and code generation made of a kernel, to be read: IR and assembly.
pub(super) fn texts(ir: &Emitted, target: &TargetCpu, level: OptLevel) -> Result<(String, String), Diagnostic> {
    with_machine(target, effort(ir, level), |machine| {
        let context = Context::create();
        let module = optimised(&context, ir, level, machine, &mut Timings::default())?;
        let llvm = module.print_to_string().to_string_lossy().into_owned();
        let assembly = machine
            .write_to_memory_buffer(&module, FileType::Assembly)
            .map_err(|reason| bug(reason.to_string_lossy()))?;
        Ok((llvm, String::from_utf8_lossy(assembly.as_slice()).trim_end_matches('\0').to_string()))
    })
}
