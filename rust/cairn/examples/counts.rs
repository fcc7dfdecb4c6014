// SPDX-License-Identifier: MIT
//! Each call of the crate: an arena with a name, events, marks, counts and a peak.
//!
//! `cargo build --example counts && cairn target/debug/examples/counts`
//!
//! TRUTH: allocations=3 frees=2 allocated_bytes=272 freed_bytes=176 live_bytes=96 live_blocks=1
use std::cell::UnsafeCell;

static TABLE: cairn::Pool = cairn::Pool::new("table");

struct Memory(UnsafeCell<[u8; 512]>);

// SAFETY: the bytes are never read, and only their addresses are used.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; 512]));

#[inline(never)]
fn take(offset: usize, bytes: usize) -> *const u8 {
    let block = MEMORY.0.get().cast::<u8>().wrapping_add(offset);
    TABLE.alloc(block, bytes);
    cairn::event("taken", bytes as u64);
    block
}

#[inline(never)]
fn grow(block: *const u8, bytes: usize) {
    TABLE.realloc(block, block, bytes);
}

#[inline(never)]
fn make_buffer(bytes: usize) -> Vec<u8> {
    Vec::with_capacity(bytes)
}

/// With an argument it waits until cairn attaches to it.
fn main() {
    while std::env::args().count() > 1 && !cairn::is_recording() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    cairn::phase("filling");
    let first = take(0, 48);
    take(48, 96); // stays
    grow(first, 128);
    TABLE.free(first);
    cairn::mark("freed one");

    let scope = cairn::Scope::thread();
    drop(make_buffer(1000));
    let spent = scope.spent();
    let counts = spent.map(|spent| (spent.allocations, spent.allocated_bytes, spent.live_bytes));

    let peak = cairn::Peak::begin();
    drop(make_buffer(1000));
    drop(make_buffer(1500));
    let bytes = peak.end();

    // None without a recorder, and with --sample.
    assert!(matches!(counts, None | Some((1, 1000, 0))), "{:?}", counts);
    assert!(matches!(bytes, None | Some(1500)), "{:?}", bytes);
    assert!(cairn::process_stats() >= cairn::thread_stats());
}
