//! Files of the shared data: each reads, with the shape and nnz of the catalog.

use std::fs;
use std::path::{Path, PathBuf};
use tamis_tensor::io::{Content, FileData, FileKind, ReadOptions, read_data};

/// `shared/data` beside the workspace, or beside a directory that holds it.
fn data_directory() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace");
    let candidates: Vec<PathBuf> = workspace.ancestors().skip(1).map(|a| a.join("shared/data")).collect();
    candidates.iter().find(|c| c.is_dir()).unwrap_or(&candidates[0]).clone()
}

/// One row of the catalog.
struct Row {
    path: PathBuf,
    shape: Vec<u64>,
    entries: u64,
}

fn number(text: &str) -> u64 {
    text.replace(',', "").trim().parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

fn rows(catalog: &str, directory: &Path) -> Vec<Row> {
    let mut section = String::new();
    let mut rows = Vec::new();
    for line in catalog.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.split('/').next().unwrap_or("").to_string();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.len() < 6 || ["name", "file"].contains(&cells[1]) || cells[1].starts_with("--") {
            continue;
        }
        let (sizes, entries) = if section == "tensors" { (cells[3], cells[4]) } else { (cells[2], cells[3]) };
        rows.push(Row {
            path: directory.join(&section).join(cells[1]),
            shape: sizes.split('x').map(number).collect(),
            entries: number(entries),
        });
    }
    rows
}

/// The number of entries as in `tamis info`: stored ones; of images, nonzero ones.
fn entries(data: &FileData) -> u64 {
    match &data.content {
        Content::Dense { shape, values } if shape.len() > 1 => {
            (0..values.len()).filter(|k| values.get(*k).is_truthy()).count() as u64
        }
        content => content.values().len() as u64,
    }
}

#[test]
fn every_file_of_the_catalog_reads_as_stated() {
    let directory = data_directory();
    let Ok(catalog) = fs::read_to_string(directory.join("CATALOG.md")) else {
        // Not `eprintln!`, which is only shown for failing tests.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("NOT TESTED: there is no shared data at {}\n", directory.display()),
        );
        return;
    };
    let rows = rows(&catalog, &directory);
    assert!(rows.len() > 200, "only {} rows in the catalog", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let shown = row.path.display();
        let mut expected = row.shape.clone();
        let tensor = FileKind::of(&row.path) == Ok(FileKind::Frostt);
        // The catalog writes vectors as matrices of one column.
        if !tensor && expected.len() == 2 && expected[1] == 1 && FileKind::of(&row.path) != Ok(FileKind::MatrixMarket) {
            expected.pop();
        }
        let options = ReadOptions { shape: tensor.then(|| expected.clone()), ..ReadOptions::default() };
        match read_data(&row.path, &options) {
            Ok(data) if data.content.shape() != expected => {
                wrong.push(format!("{shown}: shape {:?}, not {expected:?}", data.content.shape()));
            }
            Ok(data) if entries(&data) != row.entries => {
                wrong.push(format!("{shown}: {} entries, not {}", entries(&data), row.entries));
            }
            Ok(_) => {}
            Err(diagnostic) => wrong.push(format!("{shown}: {}", diagnostic.render(false))),
        }
    }
    assert!(wrong.is_empty(), "{} files:\n{}", wrong.len(), wrong.join("\n"));
    println!("{} files read as the catalog states", rows.len());
}

#[test]
fn every_file_of_a_known_kind_is_in_the_catalog() {
    let directory = data_directory();
    let Ok(catalog) = fs::read_to_string(directory.join("CATALOG.md")) else {
        // Not `eprintln!`, which is only shown for failing tests.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("NOT TESTED: there is no shared data at {}\n", directory.display()),
        );
        return;
    };
    let listed: Vec<PathBuf> = rows(&catalog, &directory).into_iter().map(|r| r.path).collect();
    let mut queue = vec![directory];
    while let Some(next) = queue.pop() {
        for entry in fs::read_dir(&next).expect("readable").flatten() {
            let path = entry.path();
            if path.is_dir() {
                queue.push(path);
            } else if FileKind::of(&path).is_ok() {
                assert!(listed.contains(&path), "{} is not in the catalog", path.display());
            }
        }
    }
}
