//! `tamis info` agrees with the catalogue of the shared data, file by file. The data lies beside
//! the project; where it is absent, the test says so and checks nothing.

use crate::common::tamis;
use std::path::Path;

/// A row of the catalogue: file, shape, entries.
struct Row {
    path: String,
    shape: Vec<u64>,
    entries: u64,
}

fn number(text: &str) -> Option<u64> {
    text.trim().replace(',', "").parse().ok()
}

fn rows(catalogue: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut folder = String::new();
    for line in catalogue.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            folder = heading.split('/').next().unwrap_or("").to_string();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        // A tensor's row has its order before its dimensions.
        let (shape, entries) = if folder == "tensors" { (3, 4) } else { (2, 3) };
        let (Some(shape), Some(entries)) = (cells.get(shape), cells.get(entries)) else { continue };
        let shape: Option<Vec<u64>> = shape.split('x').map(number).collect();
        if let (Some(shape), Some(entries)) = (shape, number(entries)) {
            rows.push(Row { path: format!("{folder}/{}", cells[1]), shape, entries });
        }
    }
    rows
}

#[test]
fn info_agrees_with_the_catalogue() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("TAMIS_DATA").map_or(beside, std::path::PathBuf::from);
    let Ok(catalogue) = std::fs::read_to_string(data.join("CATALOG.md")) else {
        // Not `eprintln!`, which is only shown for tests that fail.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!(
                "SKIPPED: {} is not there, so `tamis info` was not compared with its catalogue\n",
                data.display()
            ),
        );
        return;
    };
    let rows = rows(&catalogue);
    assert!(rows.len() > 200, "only {} rows were understood", rows.len());
    let mut differences = Vec::new();
    for row in &rows {
        let path = data.join(&row.path);
        let path = path.to_str().unwrap();
        // A list of entries does not say how large the tensor is; the catalogue does.
        let shape: Vec<String> = row.shape.iter().map(u64::to_string).collect();
        let shape = shape.join(",");
        let mut arguments = vec!["info", path, "--json"];
        if row.path.contains(".tns") {
            arguments.extend(["--shape", &shape]);
        }
        let output = tamis(&arguments).output().unwrap();
        let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let shown: Vec<u64> = facts["shape"].as_array().into_iter().flatten().filter_map(|n| n.as_u64()).collect();
        // The catalogue counts labels as a column.
        let same_shape = shown == row.shape || [&shown[..], &[1]].concat() == row.shape;
        let stored = facts["stored"].as_u64().unwrap_or(0);
        let zeros = facts["explicit_zeros"].as_u64().unwrap_or(0);
        // Images store every pixel, and the catalogue counts those that are not zero.
        let recognised = facts["structure"]["entries"].as_u64().is_some_and(|entries| entries <= stored);
        if !recognised || !same_shape || (stored != row.entries && stored - zeros != row.entries) {
            differences.push(format!("{}: {shown:?}, {stored} stored, {zeros} zeros", row.path));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
