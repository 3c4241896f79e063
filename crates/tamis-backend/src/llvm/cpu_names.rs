//! CPU names and features for `TAMIS_CPU`. They are validated here: for an unknown name LLVM falls
//! back to a baseline 32-bit CPU, and aborts the process when code generation needs more.

use tamis_ir::diag::did_you_mean;
use tamis_ir::{Code, Diagnostic};

/// The x86-64 CPUs that LLVM knows.
const X86_64: [&str; 77] = [
    "alderlake",
    "amdfam10",
    "arrowlake",
    "arrowlake-s",
    "athlon-fx",
    "athlon64",
    "athlon64-sse3",
    "atom",
    "barcelona",
    "bdver1",
    "bdver2",
    "bdver3",
    "bdver4",
    "bonnell",
    "broadwell",
    "btver1",
    "btver2",
    "cannonlake",
    "cascadelake",
    "clearwaterforest",
    "cooperlake",
    "core-avx-i",
    "core-avx2",
    "core2",
    "corei7",
    "corei7-avx",
    "emeraldrapids",
    "generic",
    "goldmont",
    "goldmont-plus",
    "gracemont",
    "grandridge",
    "graniterapids",
    "graniterapids-d",
    "haswell",
    "icelake-client",
    "icelake-server",
    "ivybridge",
    "k8",
    "k8-sse3",
    "knl",
    "knm",
    "lunarlake",
    "meteorlake",
    "nehalem",
    "nocona",
    "opteron",
    "opteron-sse3",
    "pantherlake",
    "penryn",
    "raptorlake",
    "rocketlake",
    "sandybridge",
    "sapphirerapids",
    "sierraforest",
    "silvermont",
    "skx",
    "skylake",
    "skylake-avx512",
    "slm",
    "tigerlake",
    "tremont",
    "westmere",
    "x86-64",
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v4",
    "znver1",
    "znver2",
    "znver3",
    "znver4",
    "znver5",
    "core_2_duo_ssse3",
    "core_2_duo_sse4_1",
    "core_i7_sse4_2",
    "core_2nd_gen_avx",
    "core_4th_gen_avx",
];

/// Those without fused multiply-adds.
pub(super) const WITHOUT_FMA: [&str; 36] = [
    "amdfam10",
    "athlon-fx",
    "athlon64",
    "athlon64-sse3",
    "atom",
    "barcelona",
    "bdver1",
    "bonnell",
    "btver1",
    "btver2",
    "core-avx-i",
    "core2",
    "corei7",
    "corei7-avx",
    "core_2_duo_ssse3",
    "core_2_duo_sse4_1",
    "core_i7_sse4_2",
    "core_2nd_gen_avx",
    "generic",
    "goldmont",
    "goldmont-plus",
    "ivybridge",
    "k8",
    "k8-sse3",
    "nehalem",
    "nocona",
    "opteron",
    "opteron-sse3",
    "penryn",
    "sandybridge",
    "silvermont",
    "slm",
    "tremont",
    "westmere",
    "x86-64",
    "x86-64-v2",
];

/// The features that affect the code of kernels and can be disabled.
const X86_64_FEATURES: [&str; 35] = [
    "adx",
    "avx",
    "avx2",
    "avx512bf16",
    "avx512bitalg",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512f",
    "avx512fp16",
    "avx512ifma",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512vl",
    "avx512vnni",
    "avx512vpopcntdq",
    "bmi",
    "bmi2",
    "evex512",
    "f16c",
    "fma",
    "fma4",
    "gfni",
    "lzcnt",
    "movbe",
    "popcnt",
    "prefer-128-bit",
    "prefer-256-bit",
    "prefer-no-gather",
    "prefer-no-scatter",
    "sse3",
    "sse4.1",
    "sse4.2",
    "ssse3",
    "xop",
];

/// Parses `TAMIS_CPU`: a CPU and its features; `None` for the host CPU.
pub(super) fn parse(text: &str, triple: &str) -> Result<Option<(String, String)>, Diagnostic> {
    let (cpu, features) = text.split_once(',').unwrap_or((text, ""));
    let known = triple.starts_with("x86_64");
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-+_.,".contains(c);
    if !text.chars().all(allowed) || known && !X86_64.contains(&cpu) && !is_host(cpu) {
        let message = format!("TAMIS_CPU is `{text}`, but `{cpu}` is not a known CPU");
        let mut problem = Diagnostic::new(Code::E0906, message);
        if let Some(meant) = did_you_mean(cpu, X86_64).filter(|_| known) {
            problem = problem.help(format!("did you mean `{meant}`?"));
        }
        return Err(problem
            .help("unset TAMIS_CPU to compile for the host CPU")
            .help("use a CPU name that `llc -mcpu=help` lists, as in TAMIS_CPU=x86-64-v3"));
    }
    for feature in features.split(',').filter(|feature| !feature.is_empty()) {
        let name = feature.strip_prefix(['+', '-']).filter(|name| !known || X86_64_FEATURES.contains(name));
        if is_host(cpu) {
            let message = format!("TAMIS_CPU is `{text}`, but features of the host CPU cannot be changed");
            return Err(Diagnostic::new(Code::E0906, message)
                .help("name a CPU before its features, as in TAMIS_CPU=x86-64-v4,-avx512vl"));
        }
        if name.is_none() {
            let message = format!("TAMIS_CPU is `{text}`, but `{feature}` is not a known CPU feature");
            let mut problem = Diagnostic::new(Code::E0906, message);
            if let Some(meant) = did_you_mean(feature.trim_start_matches(['+', '-']), X86_64_FEATURES) {
                problem = problem.help(format!("after the CPU name write `+{meant}` or `-{meant}`"));
            }
            return Err(problem.help("such as TAMIS_CPU=x86-64-v4,-avx512vl"));
        }
    }
    Ok((!is_host(cpu)).then(|| (cpu.to_string(), features.to_string())))
}

/// True if the name means the host CPU.
fn is_host(cpu: &str) -> bool {
    matches!(cpu, "" | "native" | "host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_rejected() {
        let parse = |text: &str| parse(text, "x86_64-unknown-linux-gnu");
        assert_eq!(parse("znver3").unwrap(), Some(("znver3".into(), String::new())));
        let without = Some(("x86-64-v4".to_string(), "-avx512vl,+f16c".to_string()));
        assert_eq!(parse("x86-64-v4,-avx512vl,+f16c").unwrap(), without);
        assert!(["native", "host", ""].iter().all(|text| parse(text).unwrap().is_none()));
        for text in ["no such thing", "i386", "pentium4", "x86-64-v5", "znver3,avx2", "x86-64,-64bit", "native,+avx"] {
            assert_eq!(parse(text).unwrap_err().code, Code::E0906, "{text}");
        }
        let reported = format!("{:?}", parse("x86_64-v3").unwrap_err());
        assert!(reported.contains("did you mean `x86-64-v3`?"), "{reported}");
    }

    #[test]
    fn other_kinds_of_processors_are_left_to_llvm() {
        let parse = |text: &str| parse(text, "aarch64-unknown-linux-gnu");
        assert_eq!(parse("neoverse-v2,+sve").unwrap(), Some(("neoverse-v2".into(), "+sve".into())));
        assert_eq!(parse("a b").unwrap_err().code, Code::E0906);
    }
}
