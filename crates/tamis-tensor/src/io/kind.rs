//! Kinds of files, and how a name tells them apart.

use super::gzip_name;
use std::path::Path;
use tamis_ir::diag::{Result, did_you_mean};
use tamis_ir::{Code, Diagnostic};

/// What a file holds, known by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// `.mtx`: Matrix Market text, one entry per line or a dense array.
    MatrixMarket,
    /// `.tns`: FROSTT text, one entry per line, any rank.
    Frostt,
    /// `.npz`: the archive that `scipy.sparse.save_npz` writes.
    ScipyArchive,
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
    pub const ALL: [FileKind; 8] = [
        FileKind::MatrixMarket,
        FileKind::Frostt,
        FileKind::ScipyArchive,
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
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let name = gzip_name(&name).unwrap_or(&name);
        let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
        Ok(match extension {
            "mtx" | "mm" => FileKind::MatrixMarket,
            "tns" => FileKind::Frostt,
            "npz" => FileKind::ScipyArchive,
            "npy" => FileKind::NumpyArray,
            "smtx" => FileKind::Dlmc,
            "pbm" | "pgm" | "pnm" => FileKind::Image,
            "txt" => FileKind::Table,
            _ if is_idx(name) => FileKind::Idx,
            _ => return Err(unknown(path, extension)),
        })
    }

    /// The extension, without a dot.
    pub const fn extension(self) -> &'static str {
        match self {
            FileKind::MatrixMarket => "mtx",
            FileKind::Frostt => "tns",
            FileKind::ScipyArchive => "npz",
            FileKind::NumpyArray => "npy",
            FileKind::Dlmc => "smtx",
            FileKind::Image => "pgm",
            FileKind::Idx => "idx",
            FileKind::Table => "txt",
        }
    }

    /// Whether Tamis writes this kind, too.
    pub const fn is_writable(self) -> bool {
        !matches!(self, FileKind::Dlmc | FileKind::Idx | FileKind::Table)
    }
}

/// `.idx`, `.idx3`, `.idx3-ubyte`, and `-idx3-ubyte` as the MNIST files were first called.
fn is_idx(name: &str) -> bool {
    let Some(start) = name.rfind("idx") else { return false };
    let led = start == 0 || matches!(name.as_bytes()[start - 1], b'.' | b'-');
    let tail = name[start + 3..].trim_start_matches(|c: char| c.is_ascii_digit());
    let named = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_alphanumeric());
    led && (tail.is_empty() || tail.strip_prefix("-").is_some_and(named))
}

fn unknown(path: &Path, extension: &str) -> Diagnostic {
    const KNOWN: [&str; 8] = ["mtx", "tns", "npz", "npy", "smtx", "pbm", "pgm", "txt"];
    let shown = path.display();
    let message = match extension {
        "" => format!("`{shown}` has no extension to tell what kind of file it is"),
        _ => format!("`{shown}` ends in `.{extension}`, which is no kind of file that Tamis knows"),
    };
    let diagnostic = Diagnostic::new(Code::E0802, message);
    let diagnostic = match did_you_mean(extension, KNOWN) {
        Some(close) if !extension.is_empty() => diagnostic.help(format!("did you mean `.{close}`?")),
        _ => diagnostic,
    };
    diagnostic.help("name the file .mtx, .tns, .npz, .npy, .smtx, .pbm, .pgm, .idx or .txt, each also with .gz")
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
}
