//! File formats, recognised by the file name.

use super::gzip_name;
use std::path::Path;
use tamis_ir::diag::{Result, did_you_mean};
use tamis_ir::{Code, Diagnostic};

/// The format of a file, recognised by its extension.
///
/// ```
/// use tamis_tensor::io::FileKind;
/// assert_eq!(FileKind::of("bcsstk17.mtx.gz")?, FileKind::MatrixMarket);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// `.mtx`: Matrix Market text, one entry per line or a dense array.
    MatrixMarket,
    /// `.tns`: FROSTT text, one entry per line, any rank.
    Frostt,
    /// `.npz`: the archive that `scipy.sparse.save_npz` writes.
    ScipyArchive,
    /// `.bsp.npz`: Binsparse, dense and sparse levels of any rank.
    Binsparse,
    /// `.npy`: one dense NumPy array.
    NumpyArray,
    /// `.smtx`: the compressed rows of the Deep Learning Matrix Collection, without values.
    Dlmc,
    /// `.pbm`, `.pgm` (and `.pnm`): Netpbm images, black-and-white or grey.
    Image,
    /// `.idx3-ubyte` and its like: the arrays of the MNIST files.
    Idx,
    /// `.txt`: a table of numbers, one row per line.
    Table,
}

impl FileKind {
    /// Every kind.
    ///
    /// ```
    /// use tamis_tensor::io::FileKind;
    /// let written = FileKind::ALL.into_iter().filter(|kind| kind.is_writable());
    /// assert_eq!(written.count(), 6);
    /// ```
    pub const ALL: [FileKind; 9] = [
        FileKind::MatrixMarket,
        FileKind::Frostt,
        FileKind::ScipyArchive,
        FileKind::Binsparse,
        FileKind::NumpyArray,
        FileKind::Dlmc,
        FileKind::Image,
        FileKind::Idx,
        FileKind::Table,
    ];

    /// The kind of a file by its name, ignoring a final `.gz` and the case of letters.
    ///
    /// ```
    /// use tamis_tensor::io::FileKind;
    /// assert_eq!(FileKind::of("a/b.MTX.gz").unwrap(), FileKind::MatrixMarket);
    /// assert_eq!(FileKind::of("t10k-images-idx3-ubyte").unwrap(), FileKind::Idx);
    /// assert!(FileKind::of("matrix.xlsx").is_err());
    /// ```
    pub fn of(path: impl AsRef<Path>) -> Result<FileKind> {
        let path = path.as_ref();
        let name = plain_name(path);
        let extension = extension(path);
        Ok(match extension.as_str() {
            "mtx" | "mm" => FileKind::MatrixMarket,
            "tns" => FileKind::Frostt,
            "npz" if name.ends_with(".bsp.npz") => FileKind::Binsparse,
            "npz" => FileKind::ScipyArchive,
            "npy" => FileKind::NumpyArray,
            "smtx" => FileKind::Dlmc,
            "pbm" | "pgm" | "pnm" => FileKind::Image,
            "txt" => FileKind::Table,
            _ if is_idx(&name) => FileKind::Idx,
            _ => return Err(unknown(path, &extension, FileUse::Reading)),
        })
    }

    /// The kind of an output file.
    ///
    /// ```
    /// use tamis_tensor::io::FileKind;
    /// assert_eq!(FileKind::of_output("a.tns.gz").unwrap(), FileKind::Frostt);
    /// assert!(FileKind::of_output("a.smtx").is_err());
    /// ```
    pub fn of_output(path: impl AsRef<Path>) -> Result<FileKind> {
        let path = path.as_ref();
        match FileKind::of(path) {
            Ok(kind) if kind.is_writable() => Ok(kind),
            Ok(kind) => Err(only_read(kind).in_file(path.display().to_string()).help(listed(FileUse::Writing))),
            Err(_) => Err(unknown(path, &extension(path), FileUse::Writing)),
        }
    }

    /// The extension, without a dot.
    ///
    /// ```
    /// use tamis_tensor::io::FileKind;
    /// assert_eq!(FileKind::Frostt.extension(), "tns");
    /// ```
    pub const fn extension(self) -> &'static str {
        match self {
            FileKind::MatrixMarket => "mtx",
            FileKind::Frostt => "tns",
            FileKind::ScipyArchive => "npz",
            FileKind::Binsparse => "bsp.npz",
            FileKind::NumpyArray => "npy",
            FileKind::Dlmc => "smtx",
            FileKind::Image => "pgm",
            FileKind::Idx => "idx",
            FileKind::Table => "txt",
        }
    }

    /// True if Tamis writes this kind as well.
    ///
    /// ```
    /// use tamis_tensor::io::FileKind;
    /// assert!(FileKind::NumpyArray.is_writable() && !FileKind::Idx.is_writable());
    /// ```
    pub const fn is_writable(self) -> bool {
        !matches!(self, FileKind::Dlmc | FileKind::Idx | FileKind::Table)
    }
}

/// `.idx`, `.idx3`, `.idx3-ubyte`, and `-idx3-ubyte`, the original names of the MNIST files.
fn is_idx(name: &str) -> bool {
    let Some(start) = name.rfind("idx") else { return false };
    let led = start == 0 || matches!(name.as_bytes()[start - 1], b'.' | b'-');
    let tail = name[start + 3..].trim_start_matches(|c: char| c.is_ascii_digit());
    let named = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_alphanumeric());
    led && (tail.is_empty() || tail.strip_prefix("-").is_some_and(named))
}

/// The last component of a path, in lower case and without `.gz`.
fn plain_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    gzip_name(&name).unwrap_or(&name).to_string()
}

fn extension(path: &Path) -> String {
    plain_name(path).rsplit_once('.').map_or(String::new(), |(_, e)| e.to_string())
}

/// The use of a file, which decides the kinds that messages offer.
#[derive(Clone, Copy)]
enum FileUse {
    Reading,
    Writing,
}

impl FileUse {
    /// The offered extensions.
    fn extensions(self) -> &'static [&'static str] {
        match self {
            FileUse::Reading => &["mtx", "tns", "npz", "bsp.npz", "npy", "smtx", "pbm", "pgm", "idx", "txt"],
            FileUse::Writing => &["mtx", "tns", "npz", "bsp.npz", "npy", "pbm", "pgm"],
        }
    }
}

/// All extensions for a purpose, as a help text.
fn listed(purpose: FileUse) -> String {
    let dotted: Vec<String> = purpose.extensions().iter().map(|e| format!(".{e}")).collect();
    let (last, others) = dotted.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    format!("name the file {} or {last}, each also with .gz", others.join(", "))
}

/// The diagnostic for a kind that cannot be written.
pub(super) fn only_read(kind: FileKind) -> Diagnostic {
    Diagnostic::new(Code::E0813, format!(".{} files are read, but not written", kind.extension()))
}

fn unknown(path: &Path, extension: &str, purpose: FileUse) -> Diagnostic {
    let shown = path.display();
    let message = match (extension, purpose) {
        ("", _) => format!("`{shown}` has no extension that identifies its file type"),
        (_, FileUse::Reading) => format!("`{shown}` ends in `.{extension}`, which is not a known file type"),
        (_, FileUse::Writing) => {
            format!("`{shown}` ends in `.{extension}`, which is not a file type that Tamis writes")
        }
    };
    let diagnostic = Diagnostic::new(Code::E0802, message);
    let diagnostic = match did_you_mean(extension, purpose.extensions().iter().copied()) {
        Some(close) if !extension.is_empty() => diagnostic.help(format!("did you mean `.{close}`?")),
        _ => diagnostic,
    };
    diagnostic.help(listed(purpose))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, kind) in [
            ("a.mtx", FileKind::MatrixMarket),
            ("a.b.tns.GZ", FileKind::Frostt),
            ("x.npz", FileKind::ScipyArchive),
            ("x.BSP.npz.gz", FileKind::Binsparse),
            ("cora.labels.txt.gz", FileKind::Table),
            ("m.idx1-ubyte", FileKind::Idx),
            ("m.idx3-float.gz", FileKind::Idx),
            ("train-labels-idx1-ubyte.gz", FileKind::Idx),
            ("x.idx", FileKind::Idx),
            ("m.pnm", FileKind::Image),
        ] {
            assert_eq!(FileKind::of(name).unwrap(), kind, "{name}");
        }
        for name in ["", "a", "a.gz", "a.csv", "mtx", "a.midx", "a.idxx", "a.idx-", "..", "/"] {
            assert_eq!(FileKind::of(name).unwrap_err().code, Code::E0802, "{name}");
        }
        assert!(FileKind::of("a.mtz").unwrap_err().help[0].contains(".mtx"));
    }

    #[test]
    fn only_kinds_that_can_be_written_are_offered_for_writing() {
        let offered = |name: &str| FileKind::of_output(name).unwrap_err().help.join(" ");
        for name in ["a", "a.xyz", "a.smtz", "a.smtx", "a.txt.gz", "m.idx1-ubyte"] {
            let help = offered(name);
            assert!(help.contains(".mtx") && help.contains(".pgm"), "{name}: {help}");
            for not_written in [".smtx", ".idx", ".txt"] {
                assert!(!help.contains(not_written), "{name}: {help}");
            }
        }
        for kind in FileKind::ALL {
            let name = format!("a.{}", kind.extension());
            assert_eq!(FileKind::of_output(&name).is_ok(), kind.is_writable(), "{name}");
            assert!(FileUse::Reading.extensions().contains(&kind.extension()));
        }
        assert!(FileUse::Writing.extensions().iter().all(|e| FileKind::of_output(format!("a.{e}")).is_ok()));
    }
}
