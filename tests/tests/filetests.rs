//! Runs every file in `filetests/`.

#[test]
fn filetests() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 6, "filetests are missing");
    let failures: Vec<String> = paths.iter().flat_map(|path| tamis_tests::filetest::run_file(path)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
