//! A bounded run of the fuzzer; `./dev fuzz SECONDS` runs it for longer.

use tamis_tests::fuzz;
use tamis_tests::random::Random;

#[test]
fn mutated_inputs_do_not_panic() {
    let targets = fuzz::targets();
    assert!(targets.len() >= 10, "{}", targets.len());
    for (k, target) in targets.iter().enumerate() {
        let mut random = Random(k as u64);
        for _ in 0..2000 {
            if let Err((bytes, message)) = fuzz::try_one(target, &mut random) {
                panic!("{}: {message}\n{}", target.name, String::from_utf8_lossy(&bytes));
            }
        }
    }
}
