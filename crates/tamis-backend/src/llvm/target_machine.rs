//! LLVM pipeline: parsing of IR, optimisation passes, and code generation for a target CPU.

use super::emit::{Effort, FunctionIr};
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

/// The CPU that code is generated for.
///
/// ```
/// use tamis_backend::llvm::TargetCpu;
/// assert!(!TargetCpu::host()?.triple.is_empty());
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct TargetCpu {
    pub triple: String,
    pub cpu: String,
    pub features: String,
}

impl TargetCpu {
    /// The host CPU, or the one that `TAMIS_CPU` names (`x86-64-v3`, `znver3`,
    /// `x86-64-v4,-avx512vl`).
    ///
    /// ```
    /// use tamis_backend::llvm::TargetCpu;
    /// assert!(!TargetCpu::host()?.cpu.is_empty());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn host() -> Result<Arc<TargetCpu>, Diagnostic> {
        static HOST: OnceLock<Result<Arc<TargetCpu>, Diagnostic>> = OnceLock::new();
        HOST.get_or_init(|| TargetCpu::named(std::env::var("TAMIS_CPU").ok().as_deref()).map(Arc::new)).clone()
    }

    /// A CPU of the host architecture by name, with comma-separated features; without a name, the
    /// host CPU.
    ///
    /// ```
    /// use tamis_backend::llvm::TargetCpu;
    /// assert_eq!(TargetCpu::named(None)?.triple, TargetCpu::host()?.triple);
    /// assert!(TargetCpu::named(Some("no such processor")).is_err());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn named(name: Option<&str>) -> Result<TargetCpu, Diagnostic> {
        let triple = initialise()?;
        let named = name.map(|name| super::cpu_names::parse(name, &triple)).transpose()?.flatten();
        let (cpu, features) = named.unwrap_or_else(|| {
            (
                TargetMachine::get_host_cpu_name().to_string_lossy().into_owned(),
                TargetMachine::get_host_cpu_features().to_string_lossy().into_owned(),
            )
        });
        Ok(TargetCpu { triple, cpu, features })
    }
}

/// LLVM options without another interface, after the program name. Limiting the region-splitting
/// search of the register allocator saves a third of code generation time for kernels with many
/// loops; the machine code is no slower, and shorter.
const LLVM_ARGUMENTS: [&CStr; 2] = [c"tamis", c"-grow-region-complexity-budget=100"];

/// Initialises LLVM, once; returns the host triple.
fn initialise() -> Result<String, Diagnostic> {
    static READY: OnceLock<Result<String, String>> = OnceLock::new();
    let ready = READY.get_or_init(|| {
        LlvmTarget::initialize_native(&InitializationConfig::default())?;
        let options = LLVM_ARGUMENTS.map(CStr::as_ptr);
        // SAFETY: the strings live as long as the program, and the count is right. This version of
        // LLVM knows the options, and this runs once.
        unsafe { LLVMParseCommandLineOptions(options.len() as i32, options.as_ptr(), std::ptr::null()) };
        Ok(TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned())
    });
    ready.clone().map_err(|reason| bug(format!("LLVM does not support this CPU: {reason}")))
}

/// The idle target machines of recent compilations: creating one takes longer than compiling a
/// small kernel.
static IDLE_MACHINES: Mutex<Vec<(TargetCpu, OptimizationLevel, IdleMachine)>> = Mutex::new(Vec::new());

/// Maximum number of idle target machines.
const MAX_IDLE_MACHINES: usize = 6;

/// A target machine that can move between threads.
struct IdleMachine(TargetMachine);

// SAFETY: a target machine has no thread affinity, and one thread has it at a time.
unsafe impl Send for IdleMachine {}

/// The optimisation level of code generation.
fn codegen_level(ir: &FunctionIr, level: OptLevel) -> OptimizationLevel {
    match (level, ir.effort) {
        (OptLevel::None, _) | (OptLevel::Tuned, Effort::Least) => OptimizationLevel::None,
        (OptLevel::Tuned, Effort::Reduced) => OptimizationLevel::Less,
        (OptLevel::Tuned, Effort::Full) | (OptLevel::O2, _) => OptimizationLevel::Default,
    }
}

fn with_machine<T>(
    target: &TargetCpu,
    codegen_level: OptimizationLevel,
    work: impl FnOnce(&TargetMachine) -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    initialise()?;
    let machines = || IDLE_MACHINES.lock().unwrap_or_else(PoisonError::into_inner);
    let idle = {
        let mut machines = machines();
        let at = machines.iter().position(|(known, at, _)| known == target && *at == codegen_level);
        at.map(|at| machines.remove(at).2)
    };
    let machine = match idle {
        Some(machine) => machine,
        None => {
            let triple = TargetTriple::create(&target.triple);
            let llvm = LlvmTarget::from_triple(&triple).map_err(|reason| bug(reason.to_string_lossy()))?;
            let (cpu, features) = (&target.cpu, &target.features);
            let machine =
                llvm.create_target_machine(&triple, cpu, features, codegen_level, RelocMode::PIC, CodeModel::Default);
            IdleMachine(machine.ok_or_else(|| bug(format!("LLVM has no machine for {}", target.triple)))?)
        }
    };
    let result = work(&machine.0);
    let mut machines = machines();
    machines.insert(0, (target.clone(), codegen_level, machine));
    machines.truncate(MAX_IDLE_MACHINES);
    result
}

/// The tuned pipeline, first part: stack slots become registers, and loops get their canonical
/// form.
const BASE_PASSES: &str = "function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>,loop-mssa(loop-rotate,licm<allowspeculation>),simplifycfg)";

/// The pipeline of huge kernels: stack slots become registers.
const LEAST_PASSES: &str = "function(sroa<modify-cfg>,early-cse,simplifycfg)";

/// The tuned pipeline, second part, for loops with a hint. SROA runs again after unrolling, when
/// tiles become registers; LICM then hoists the invariant vectors that appear.
const LOOP_PASSES: &str = "function(loop(indvars),loop-vectorize,\
    loop-unroll<O2;full-unroll-max=256;no-runtime;no-partial>,early-cse,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>,sroa<modify-cfg>,early-cse<memssa>,\
    loop-mssa(licm<allowspeculation>),instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg)";

extern "C" fn ignore(_: LLVMDiagnosticInfoRef, _: *mut libc::c_void) {}

/// Parses IR and runs the optimisation passes.
fn optimised<'c>(
    context: &'c Context,
    ir: &FunctionIr,
    level: OptLevel,
    machine: &TargetMachine,
    timings: &mut Timings,
) -> Result<Module<'c>, Diagnostic> {
    // SAFETY: the handler ignores its arguments; it keeps LLVM's remarks off the terminal.
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
    let base_and_loops = format!("{BASE_PASSES},{LOOP_PASSES}");
    let passes = match level {
        OptLevel::None => "always-inline",
        OptLevel::Tuned if ir.effort == Effort::Least => LEAST_PASSES,
        OptLevel::Tuned if ir.hinted => &base_and_loops,
        OptLevel::Tuned => BASE_PASSES,
        OptLevel::O2 => "default<O2>",
    };
    let options = PassBuilderOptions::create();
    module.run_passes(passes, machine, options).map_err(|reason| bug(reason.to_string_lossy()))?;
    timings.optimise = start.elapsed();
    Ok(module)
}

/// Compiles a kernel to an object file.
pub(super) fn object(
    ir: &FunctionIr,
    target: &TargetCpu,
    level: OptLevel,
    timings: &mut Timings,
) -> Result<Vec<u8>, Diagnostic> {
    with_machine(target, codegen_level(ir, level), |machine| {
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

/// Compiles a kernel to readable listings: optimised IR and assembly.
pub(super) fn listings(ir: &FunctionIr, target: &TargetCpu, level: OptLevel) -> Result<(String, String), Diagnostic> {
    with_machine(target, codegen_level(ir, level), |machine| {
        let context = Context::create();
        let module = optimised(&context, ir, level, machine, &mut Timings::default())?;
        let llvm = module.print_to_string().to_string_lossy().into_owned();
        let assembly = machine
            .write_to_memory_buffer(&module, FileType::Assembly)
            .map_err(|reason| bug(reason.to_string_lossy()))?;
        Ok((llvm, String::from_utf8_lossy(assembly.as_slice()).trim_end_matches('\0').to_string()))
    })
}
