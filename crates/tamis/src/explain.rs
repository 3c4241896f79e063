//! The stages of compiling a program, as text.

use crate::compile::{CompileOptions, schedule};
use crate::signature::Signature;
use std::fmt;
use tamis_backend::{c, llvm};
use tamis_compiler::lower::{Mode, Stored};
use tamis_compiler::pipeline::{self, Compilation, Pass};
use tamis_compiler::schedule::classify;
use tamis_ir::kernel::BufferId;
use tamis_ir::kernel::Kernel;
use tamis_ir::program::{Attributes, StmtKind};
use tamis_ir::{Code, Diagnostic, Diagnostics, Program};

/// What becomes of a program on its way to machine code. Texts are made when they are asked for.
pub struct Explanation {
    program: String,
    compilation: Compilation,
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
/// let signature = Signature::assumed(&program, &[("A", tamis::FormatSpec::parse("csr")?)], &[])?;
/// let explanation = tamis::explain(&program, &signature, &CompileOptions::default())?;
/// assert!(explanation.c()?.contains("A1_pos"));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn explain(program: &Program, signature: &Signature, options: &CompileOptions) -> Result<Explanation, Diagnostics> {
    let wish = pipeline::Options { strict: options.strict, ..pipeline::Options::default() };
    let compile = |program: &Program| {
        crate::compile::check_policies(program, &program.check(&signature.types)?)?;
        let mut made = pipeline::compile(program, &signature.types, &signature.layouts, wish)?;
        made.warnings.extend(parallel_loops(program));
        Ok::<Compilation, Diagnostics>(made)
    };
    if options.schedule.is_empty() {
        let compilation = compile(program)?;
        return Ok(Explanation { program: program.to_string(), compilation, options: options.clone() });
    }
    let checked = program.check(&signature.types)?;
    let (scheduled, _) = schedule(program, &checked, signature, &options.schedule)?;
    Ok(Explanation { program: scheduled.to_string(), compilation: compile(&scheduled)?, options: options.clone() })
}

/// Loops that are to run on several threads, and do not yet.
fn parallel_loops(program: &Program) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    program.visit(&mut |stmt| {
        if let StmtKind::For { index, attributes: Attributes { parallel: true, .. }, .. } = &stmt.kind {
            let name = &program.indices[index.index()];
            let message = format!("the loop over `{name}` is parallel, but runs on one thread in this version");
            let d = Diagnostic::warning(Code::E0605, message).label(program.origin.stmt(stmt.id), "on one thread");
            found.push(program.origin.attach(d.help("keep it: what it computes is the same, and it was checked")));
        }
    });
    found
}

impl Explanation {
    /// The program as it was understood, with its schedule applied.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// How the elements of each result and temporary come: in storage order, or scattered, and through which workspace.
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
        lines.extend(self.workspace_memory());
        lines
    }

    /// What each temporary that can be written in any order needs.
    fn workspace_memory(&self) -> Vec<String> {
        let Compilation { program, checked, lowered, .. } = &self.compilation;
        let mut lines = Vec::new();
        for (k, info) in program.tensors.iter().enumerate() {
            let result = program.results.iter().any(|id| id.index() == k);
            let scatters = lowered.plans[k].as_ref().is_some_and(|plan| plan.mode != Mode::Append);
            let Some(format) = checked.formats[k].as_ref().filter(|_| scatters && !result) else { continue };
            let Stored::Levels { arrays, values, .. } = &lowered.bound[k].storage else { continue };
            let size = |buffer: &BufferId| lowered.kernel.buffer(*buffer).elem.size();
            let held = arrays.iter().flatten().filter(|(name, _)| *name != "pos").map(|(_, buffer)| buffer);
            let bytes: usize = held.chain(values).map(size).sum();
            let name = &info.name;
            lines.push(if format.ism().is_some() {
                format!(
                    "{name} takes {bytes} bytes for each entry, collected or merged, and as many again while merging"
                )
            } else if lowered.plans[k].as_ref().is_some_and(|plan| plan.mode == Mode::Insert) {
                let elements: u64 = checked.extents.shapes[k].iter().fold(1, |n, size| n.saturating_mul(*size));
                format!("{name} takes {bytes} bytes for each of its {elements} elements")
            } else {
                format!("{name} takes {bytes} bytes for each entry, and the same again in its workspace")
            });
        }
        lines
    }

    /// What was decided, and the program that it led to, with the workspaces that it needs.
    pub fn schedule(&self) -> String {
        let notes: String = self.productions().iter().map(|line| format!("# {line}\n")).collect();
        format!("{notes}{}", self.compilation.program)
    }

    /// The structure of each access along each loop, as it was lowered.
    pub fn looplets(&self) -> Vec<String> {
        self.compilation.lowered.looplets.clone()
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.compilation.lowered.kernel
    }

    /// The kernel in C, which compiles as it stands.
    pub fn c(&self) -> Result<String, Diagnostic> {
        c::print(self.kernel())
    }

    /// LLVM's code after all passes, and assembly, for this machine's processor.
    pub fn machine(&self) -> Result<llvm::Texts, Diagnostic> {
        let host = llvm::Options::host()?;
        llvm::texts(self.kernel(), &if self.options.check { host.checked() } else { host })
    }

    /// The passes, with their times.
    pub fn passes(&self) -> &[Pass] {
        &self.compilation.passes
    }

    /// What works, but not well.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.compilation.warnings
    }
}

impl fmt::Debug for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explanation").field("program", &self.program).finish_non_exhaustive()
    }
}
