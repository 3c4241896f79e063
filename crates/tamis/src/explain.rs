//! Explanation of a compilation: the text form of every stage, from the schedule to assembly.
//!
//! In: a program and a [`Signature`]. Out: an [`Explanation`], which renders a stage when it is
//! requested. Nothing runs.

use crate::compile::{CompileOptions, schedule};
use crate::signature::Signature;
use std::fmt;
use tamis_backend::{c, llvm};
use tamis_compiler::lower::outer_partition::ResultShare;
use tamis_compiler::lower::{BoundStorage, Policy, WriteMode, lower_partition};
use tamis_compiler::pipeline::{self, Compilation, PassReport};
use tamis_compiler::schedule::classify;
use tamis_ir::algebra::Kind;
use tamis_ir::diag::did_you_mean;
use tamis_ir::kernel::{BufferId, Kernel, Stmt};
use tamis_ir::program::{Attributes, StmtId, StmtKind};
use tamis_ir::{Code, Diagnostic, Diagnostics, Program};
use tamis_tensor::levels::{ArrayRole, level_type};

/// The stages of a compilation.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n    return s\n")?;
/// let signature = Signature::assumed(&program, &[], &[])?;
/// let explanation = tamis::explain(&program, &signature, &CompileOptions::default())?;
/// println!("{}\n{}\n{}", explanation.schedule(), explanation.kernel(), explanation.machine()?.assembly);
/// assert!(explanation.looplets()[0].contains("x level 0"));
/// # Ok::<(), Diagnostics>(())
/// ```
pub struct Explanation {
    program: String,
    compilation: Compilation,
    /// Its partition in a parallel call.
    threads: String,
    options: CompileOptions,
}

/// Explains how a program is compiled for tensors of a signature, without running it.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("
/// def spmv(A, x):
///     y = tensor('dense')
///     for i, j in _:
///         y[i] += A[i,j] * x[j]
///     return y
/// ")?;
/// let signature = Signature::assumed(&program, &[("A", tamis::format::FormatSpec::parse("csr")?)], &[])?;
/// let explanation = tamis::explain(&program, &signature, &CompileOptions::default())?;
/// assert!(explanation.c()?.contains("A1_pos"));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn explain(program: &Program, signature: &Signature, options: &CompileOptions) -> Result<Explanation, Diagnostics> {
    let passes = pipeline::Options { strict: options.strict, snapshots: true, ..pipeline::Options::default() };
    let compile = |program: &Program| {
        crate::compile::check_policies(program, &program.check(&signature.types)?, &options.schedule)?;
        let mut compilation = pipeline::compile(program, &signature.types, &signature.layouts, passes)?;
        let partitioned = partitioning(&compilation, signature, options);
        compilation.warnings.extend(parallel_loops(program, partitioned.as_ref().err()));
        Ok::<Explanation, Diagnostics>(Explanation {
            program: program.to_string(),
            compilation,
            threads: partitioned.unwrap_or_else(|why| {
                let reason = why.message.split_once(": ").map_or(&*why.message, |(_, reason)| reason);
                format!("one, because {reason}")
            }),
            options: options.clone(),
        })
    };
    let checked = program.check(&signature.types)?;
    match schedule(program, &checked, signature, options)? {
        Some((scheduled, _)) => compile(&scheduled),
        None => compile(program),
    }
}

/// The diagnostic for a pass that does not exist.
fn unknown_pass(pass: &str, names: impl Iterator<Item = &'static str>) -> Diagnostic {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let d = Diagnostic::new(Code::E0905, format!("there is no pass `{pass}`"));
    let d = match did_you_mean(pass, known.iter().copied()) {
        Some(meant) => d.help(format!("did you mean `{meant}`?")),
        None => d,
    };
    d.help(format!("the passes are, in order: {}", known.join(", ")))
}

/// Warnings for loops that are declared parallel, and run sequentially.
fn parallel_loops(program: &Program, alone: Option<&Diagnostic>) -> Vec<Diagnostic> {
    let outermost = |id: StmtId| program.body.iter().any(|stmt| stmt.id == id);
    let mut found = Vec::new();
    program.visit(&mut |stmt| {
        if let StmtKind::For { index, attributes: Attributes { parallel: true, .. }, .. } = &stmt.kind {
            let name = &program.indices[index.index()];
            let d = match alone {
                _ if !outermost(stmt.id) => {
                    let message = format!("the loop over `{name}` is parallel, but threads share outermost loops only");
                    Diagnostic::warning(Code::E0605, message)
                        .help("put it outermost: `reorder` changes the order of loops")
                }
                Some(why) => {
                    let message = format!("the loop over `{name}` is parallel, but {}", why.message);
                    why.help.iter().fold(Diagnostic::warning(Code::E0605, message), |d, help| d.help(help.clone()))
                }
                None => return,
            };
            found.push(program.origin.attach(d.label(program.origin.stmt(stmt.id), "on one thread")));
        }
    });
    found
}

/// The partition of a program in parallel calls, for people; or the reason why there is none.
fn partitioning(
    compilation: &Compilation,
    signature: &Signature,
    options: &CompileOptions,
) -> Result<String, Diagnostic> {
    let Compilation { program, checked, .. } = compilation;
    let policy = Policy { strict: options.strict };
    let lowered = lower_partition(program, checked, &signature.layouts, policy);
    let partition = match lowered.map(|lowered| lowered.partition) {
        Ok(Some(partition)) => partition,
        Ok(None) => return Ok("one".to_string()),
        Err(Diagnostics(mut why)) => return Err(why.swap_remove(0)),
    };
    let results = program.results.iter().zip(&partition.shares).map(|(id, share)| {
        let name = &program.tensor(*id).name;
        match share {
            ResultShare::Rows(_) => format!("{name} row by row"),
            ResultShare::Positions => format!("{name} entry by entry, each in its place"),
            ResultShare::Private(op) => {
                let symbol = op.info().symbol.unwrap_or(op.info().name);
                let inexact = matches!(checked.types.tensors[id.index()].kind(), Kind::Float | Kind::Complex);
                let rounds = inexact && !op.info().idempotent;
                let rounding = if rounds { ", rounding depends on the number of threads" } else { "" };
                format!("{name} is privatised per chunk, combined by `{symbol}`{rounding}")
            }
        }
    });
    let results: Vec<String> = results.collect();
    let index = &program.indices[partition.index.index()];
    Ok(format!("the loop over {index} is partitioned where that pays: {}", results.join(", ")))
}

impl Explanation {
    /// The program as it was understood, with its schedule applied.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// assert!(explanation.program().contains("y[i] = 2 * x[i]"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The way each result and temporary is written: appended in storage order, or scattered, and
    /// through which workspace.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = A[i,j] * x[j]")?.plain()?;
    /// let signature = Signature::assumed(&program, &[("A", "csc".parse()?)], &[])?;
    /// let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// assert!(explanation.productions()[0].starts_with("y: loops (i,j), storage (i): "));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn productions(&self) -> Vec<String> {
        let Compilation { program, checked, inserted, .. } = &self.compilation;
        let name = |id: tamis_ir::program::TensorId| program.tensor(id).name.clone();
        let found = classify::productions(program, checked);
        let mut lines: Vec<String> =
            found.iter().map(|production| classify::Described(program, production).to_string()).collect();
        for done in inserted {
            let (tensor, workspace) = (name(done.tensor), name(done.workspace));
            lines.push(format!("{tensor} is written through {workspace}, `{}`: {}", done.format, done.why));
        }
        lines.extend(self.shared_patterns());
        lines.extend(self.workspace_memory());
        let mut multiplies = false;
        self.compilation.lowered.kernel.visit(&mut |stmt| multiplies |= matches!(stmt, Stmt::Gemm(_)));
        if multiplies {
            lines.push("dense contractions are matrix multiplications (GEMM) where they are large enough".to_string());
        }
        lines
    }

    /// The results that share the sparsity pattern of an operand.
    fn shared_patterns(&self) -> Vec<String> {
        let Compilation { program, lowered, .. } = &self.compilation;
        let name = |id: tamis_ir::program::TensorId| &program.tensor(id).name;
        let shared =
            program.results.iter().filter_map(|id| Some((id, lowered.plans[id.index()].as_ref()?.shared_sparsity?)));
        shared
            .map(|(id, sharing)| {
                let (result, operand) = (name(*id), name(sharing.of));
                format!(
                    "{result} has the sparsity pattern of {operand} and shares its coordinates: only values are written"
                )
            })
            .collect()
    }

    /// The memory of each temporary that is scattered into.
    fn workspace_memory(&self) -> Vec<String> {
        let Compilation { program, checked, lowered, .. } = &self.compilation;
        let mut lines = Vec::new();
        for (k, info) in program.tensors.iter().enumerate() {
            let result = program.results.iter().any(|id| id.index() == k);
            let scatters = lowered.plans[k].as_ref().is_some_and(|plan| plan.mode != WriteMode::Append);
            let Some(format) = checked.formats[k].as_ref().filter(|_| scatters && !result) else { continue };
            let BoundStorage::Levels { format: stored, arrays, values } = &lowered.bound[k].storage else { continue };
            let size = |buffer: &BufferId| lowered.kernel.buffer(*buffer).elem.size();
            // Fiber offsets do not grow with the number of elements.
            let held = stored.levels().iter().zip(arrays).flat_map(|(level, named)| {
                let is_offsets = |name: &str| {
                    let array = level_type(level.kind).ok().and_then(|row| row.array_named(name));
                    array.is_some_and(|array| array.role == ArrayRole::FiberOffsets)
                };
                named.iter().filter(move |(name, _)| !is_offsets(name)).map(|(_, buffer)| buffer)
            });
            let bytes: usize = held.chain(values).map(size).sum();
            let name = &info.name;
            lines.push(if format.ism().is_some() {
                format!(
                    "{name} takes {bytes} bytes for each entry, collected or merged, and as many again while merging"
                )
            } else if lowered.plans[k].as_ref().is_some_and(|plan| plan.mode == WriteMode::Insert) {
                let elements: u64 = checked.extents.shapes[k].iter().fold(1, |n, size| n.saturating_mul(*size));
                format!("{name} takes {bytes} bytes for each of its {elements} elements")
            } else {
                format!("{name} takes {bytes} bytes for each entry, and the same again in its workspace")
            });
        }
        lines
    }

    /// The decisions, and the scheduled program with inserted workspaces.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// let text = explanation.schedule();
    /// assert!(text.starts_with("# y: loops (i), storage (i): ") && text.contains("# threads: "));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn schedule(&self) -> String {
        let notes: String = self.productions().iter().map(|line| format!("# {line}\n")).collect();
        format!("{notes}# threads: {}\n{}", self.threads, self.compilation.program)
    }

    /// The partition of the program in parallel calls, or the reason why there is none.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// assert!(explanation.threads().starts_with("the loop over i is partitioned"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn threads(&self) -> &str {
        &self.threads
    }

    /// The looplets of each access along each loop.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// assert!(explanation.looplets().iter().any(|line| line.contains("x level 0")));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn looplets(&self) -> Vec<String> {
        self.compilation.lowered.looplets.clone()
    }

    /// The kernel.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// let text = explanation.kernel().to_string();
    /// assert_eq!(tamis::kernel::Kernel::parse(&text)?.to_string(), text);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn kernel(&self) -> &Kernel {
        &self.compilation.lowered.kernel
    }

    /// The kernel after each run of a pass: `lower`, or a pass of the optimiser. Passes that expose
    /// opportunities for others run more than once. An unknown pass is a diagnostic that lists them.
    ///
    /// ```
    /// use tamis::prelude::*;
    /// let program = Program::parse("def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = x[i]\n    return y\n")?;
    /// let signature = Signature::assumed(&program, &[], &[])?;
    /// let explanation = tamis::explain(&program, &signature, &CompileOptions::default())?;
    /// assert_eq!(explanation.after("const_prop")?.len(), 3);
    /// assert!(explanation.after("magic").is_err());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn after(&self, pass: &str) -> Result<Vec<&Kernel>, Diagnostic> {
        let snapshots = &self.compilation.snapshots;
        let kernels: Vec<&Kernel> =
            snapshots.iter().filter(|(name, _)| *name == pass).map(|(_, kernel)| kernel).collect();
        if kernels.is_empty() {
            return Err(unknown_pass(pass, snapshots.iter().map(|(name, _)| *name)));
        }
        Ok(kernels)
    }

    /// The explanation of a compilation that ends after the first run of a pass: later stages show
    /// what the kernel would be without the passes after it.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// let optimised = explanation.kernel().to_string();
    /// let lowered = explanation.stop_after("lower")?;
    /// assert_ne!(lowered.kernel().to_string(), optimised);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn stop_after(mut self, pass: &str) -> Result<Explanation, Diagnostic> {
        self.compilation.lowered.kernel = self.after(pass)?.swap_remove(0).clone();
        Ok(self)
    }

    /// The kernel as a C function that compiles on its own.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// assert!(explanation.c()?.contains("for ("));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn c(&self) -> Result<String, Diagnostic> {
        c::print(self.kernel())
    }

    /// Optimised LLVM IR and assembly, for this machine's processor.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// let listings = explanation.machine()?;
    /// assert!(listings.llvm.contains("define ") && listings.assembly.contains("ret"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn machine(&self) -> Result<llvm::Listings, Diagnostic> {
        let host = llvm::CodegenOptions::host()?;
        llvm::listings(self.kernel(), &if self.options.check { host.checked() } else { host })
    }

    /// The passes, with their times.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// let slowest = explanation.passes().iter().max_by_key(|pass| pass.time);
    /// assert!(slowest.is_some_and(|pass| !pass.name.is_empty()));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn passes(&self) -> &[PassReport] {
        &self.compilation.passes
    }

    /// Performance warnings.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let signature = Signature::assumed(&program, &[], &[])?;
    /// # let explanation = tamis::explain(&program, &signature, &CompileOptions::new())?;
    /// assert!(explanation.warnings().is_empty());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.compilation.warnings
    }
}

impl fmt::Debug for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explanation").field("program", &self.program).finish_non_exhaustive()
    }
}
