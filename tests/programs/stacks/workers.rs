// SPDX-License-Identifier: MIT
// workers: a Rust program with threads: four of them fill vectors, strings and maps of sizes that do not
// depend on time, and main adds up their results.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;

#[inline(never)]
fn make_boxes(count: u64) -> u64 {
    let boxes: Vec<Box<u64>> = (0..count).map(Box::new).collect();
    boxes.iter().map(|value| **value).sum()
}

#[inline(never)]
fn fill_map(seed: u64) -> BTreeMap<u64, String> {
    (0..1000).map(|i| (i * 7919 % 1000, format!("value {}", i * seed))).collect()
}

fn main() {
    let total = Arc::new(Mutex::new(0u64));
    let threads: Vec<_> = (1..5u64)
        .map(|seed| {
            let total = Arc::clone(&total);
            thread::spawn(move || {
                let map = fill_map(seed);
                let length: usize = map.values().map(|text| text.len()).sum();
                *total.lock().unwrap() += make_boxes(10_000) + length as u64;
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    println!("{}", total.lock().unwrap());
}
