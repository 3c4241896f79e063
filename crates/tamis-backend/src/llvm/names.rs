//! Names of processors, and of what they may do without. LLVM goes on with a name that it does not know as if it were that of a processor of forty
//! years ago, and ends the process when that one cannot do what is asked.

use tamis_ir::diag::did_you_mean;
use tamis_ir::{Code, Diagnostic};

/// The processors of 64 bits that LLVM knows.
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

/// What makes a difference to the code of kernels, and can be done without.
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

/// What `TAMIS_CPU` says: a processor and its features, none of them for this machine's own.
pub(super) fn read(text: &str, triple: &str) -> Result<Option<(String, String)>, Diagnostic> {
    let (cpu, features) = text.split_once(',').unwrap_or((text, ""));
    let known = triple.starts_with("x86_64");
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-+_.,".contains(c);
    if !text.chars().all(allowed) || known && !X86_64.contains(&cpu) && !is_own(cpu) {
        let message = format!("TAMIS_CPU is `{text}`, and `{cpu}` is not the name of a processor");
        let mut problem = Diagnostic::new(Code::E0906, message);
        if let Some(meant) = did_you_mean(cpu, X86_64).filter(|_| known) {
            problem = problem.help(format!("did you mean `{meant}`?"));
        }
        return Err(problem
            .help("unset TAMIS_CPU to compile for this machine")
            .help("name a processor as `llc -mcpu=help` lists them, such as TAMIS_CPU=x86-64-v3"));
    }
    for feature in features.split(',').filter(|feature| !feature.is_empty()) {
        let name = feature.strip_prefix(['+', '-']).filter(|name| !known || X86_64_FEATURES.contains(name));
        if is_own(cpu) {
            let message = format!("TAMIS_CPU is `{text}`, but this machine's processor is taken as it is");
            return Err(Diagnostic::new(Code::E0906, message)
                .help("name a processor to say what it lacks, as in TAMIS_CPU=x86-64-v4,-avx512vl"));
        }
        if name.is_none() {
            let message = format!("TAMIS_CPU is `{text}`, and `{feature}` does not say what a processor can do");
            let mut problem = Diagnostic::new(Code::E0906, message);
            if let Some(meant) = did_you_mean(feature.trim_start_matches(['+', '-']), X86_64_FEATURES) {
                problem = problem.help(format!("after the name of a processor write `+{meant}` or `-{meant}`"));
            }
            return Err(problem.help("such as TAMIS_CPU=x86-64-v4,-avx512vl"));
        }
    }
    Ok((!is_own(cpu)).then(|| (cpu.to_string(), features.to_string())))
}

/// Whether this means the processor of this machine, whatever its name.
fn is_own(cpu: &str) -> bool {
    matches!(cpu, "" | "native" | "host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_or_refused() {
        let read = |text: &str| read(text, "x86_64-unknown-linux-gnu");
        assert_eq!(read("znver3").unwrap(), Some(("znver3".into(), String::new())));
        let without = Some(("x86-64-v4".to_string(), "-avx512vl,+f16c".to_string()));
        assert_eq!(read("x86-64-v4,-avx512vl,+f16c").unwrap(), without);
        assert!(["native", "host", ""].iter().all(|text| read(text).unwrap().is_none()));
        for text in ["no such thing", "i386", "pentium4", "x86-64-v5", "znver3,avx2", "x86-64,-64bit", "native,+avx"] {
            assert_eq!(read(text).unwrap_err().code, Code::E0906, "{text}");
        }
        let told = format!("{:?}", read("x86_64-v3").unwrap_err());
        assert!(told.contains("did you mean `x86-64-v3`?"), "{told}");
    }

    #[test]
    fn other_kinds_of_processors_are_left_to_llvm() {
        let read = |text: &str| read(text, "aarch64-unknown-linux-gnu");
        assert_eq!(read("neoverse-v2,+sve").unwrap(), Some(("neoverse-v2".into(), "+sve".into())));
        assert_eq!(read("a b").unwrap_err().code, Code::E0906);
    }
}
