//! Runs every filetest in `filetests/`.

#[test]
fn filetests() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Folders hold tests of other kinds: `opt`, those of passes.
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    assert!(paths.len() >= 6, "filetests are missing");
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = paths.iter().map(|path| scope.spawn(|| tamis_tests::filetest::run_file(path))).collect();
        running.into_iter().flat_map(|file| file.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
