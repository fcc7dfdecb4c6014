// SPDX-License-Identifier: MIT
//! Budgets: those that are kept, those that are broken where cairn records, and those whose function
//! leaves early. Each test holds with a recorder and without one.
use std::panic::{catch_unwind, AssertUnwindSafe};

#[inline(never)]
fn buffers(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| Vec::with_capacity(bytes)).collect()
}

/// Where cairn records, the work panics with this message; else it does not.
#[track_caller]
fn breaks(message: &str, work: impl FnOnce()) {
    let wanted = if cairn::is_recording() { message } else { "" };
    let panicked = catch_unwind(AssertUnwindSafe(work)).err();
    let found = panicked.map(|text| *text.downcast::<String>().unwrap()).unwrap_or_default();
    assert!(found.ends_with(wanted) && found.is_empty() == wanted.is_empty(), "{found}");
}

#[test]
fn the_closures_value_is_returned() {
    assert_eq!(cairn::assert_allocations!(2, || buffers(1, 10)).len(), 1);
    cairn::assert_allocations!(0, || ());
    cairn::assert_live_bytes!(0, || drop(buffers(3, 1000)));
    cairn::assert_peak!(4000, || drop(buffers(3, 1000)));
}

#[test]
fn what_exceeds_a_limit_is_named() {
    breaks("4 allocations; at most 3 allowed", || {
        cairn::assert_allocations!(3, || drop(buffers(3, 1000)))
    });
    breaks("1024 bytes not freed; at most 1023 allowed", || {
        drop(cairn::assert_live_bytes!(1023, || buffers(1, 1000)))
    });
    breaks("3072 bytes at once; at most 3071 allowed", || {
        cairn::assert_peak!(3071, || drop(buffers(3, 1000)));
    });
    breaks(
        "2024 bytes allocated; at most 1 allowed, and 1024 bytes at once; at most 2 allowed",
        || {
            let budget = cairn::Budget::new().allocated_bytes(1).peak_bytes(2).allocations(3);
            budget.run(|| {
                drop(buffers(1, 1000));
                drop(Vec::<u8>::with_capacity(1000));
            })
        },
    );
}

#[test]
#[cairn::budget(peak = "10MiB", allocations = 100, live = 0, allocated = "1.5MB")]
fn a_test_keeps_its_budget() {
    drop(buffers(3, 1000));
}

#[cairn::budget(allocations = 1)]
fn generic<T>(from: &[T]) -> Result<Vec<T>, String>
where
    T: Clone + Default,
{
    #![allow(clippy::needless_return)]
    if from.is_empty() {
        return Err(String::from("empty")); // one allocation
    }
    let first = from.get(1..).ok_or("never")?;
    Ok([first, &[T::default()]].concat())
}

struct Parser(Vec<Vec<u8>>);

impl Parser {
    #[cairn::budget(live = 5000, peak = 5_000)]
    fn fill(&mut self, count: usize) -> usize {
        self.0 = buffers(count, 1000);
        self.0.len()
    }
}

#[test]
fn functions_of_all_forms_have_budgets() {
    assert_eq!(generic(&[1, 2, 3]), Ok(vec![2, 3, 0]));
    assert_eq!(generic::<u8>(&[]), Err(String::from("empty")));
    let mut parser = Parser(Vec::new());
    assert_eq!(parser.fill(4), 4);
    drop(std::mem::take(&mut parser.0));
    let live = "tests/budget.rs:73:5: fill: 5120 bytes not freed; at most 5000 allowed, and ";
    let both = live.to_string() + "5120 bytes at once; at most 5000 allowed";
    breaks(&both, || assert_eq!(parser.fill(5), 5));
}

#[test]
fn a_panic_in_the_function_stays_the_only_one() {
    #[cairn::budget(allocations = 0)]
    fn fails() {
        drop(buffers(2, 10));
        panic!("{}", "mine");
    }
    let panicked = catch_unwind(fails).unwrap_err();
    assert_eq!(*panicked.downcast::<String>().unwrap(), "mine");
}

/// The caller of the tests says whether it records them.
#[test]
fn the_recorder_is_seen() {
    let is_wanted = std::env::var_os("IS_RECORDED").is_some();
    assert_eq!(cairn::is_recording(), is_wanted);
    assert_eq!(cairn::thread_stats().is_some(), is_wanted);
    assert_eq!(cairn::process_stats().is_some(), is_wanted);
}
