//! Every example runs by the command in its second line.

use std::path::Path;

#[test]
fn examples_say_how_to_run_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let command = text.lines().nth(1).unwrap_or("");
        assert!(command.starts_with(&format!("#   tamis run examples/{name} ")), "{name}: {command}");
    }
    assert!(count >= 8);
}
