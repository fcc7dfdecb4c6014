// SPDX-License-Identifier: MIT
// TRUTH: allocations=7 frees=6 allocated_bytes=2050 temporary=1 peak_bytes=1316
// TRUTH: live_bytes=100 live_blocks=1
//
// Rust's own ways to the heap: a box, a vector that grows (realloc), zeroed memory (calloc) and an
// over-aligned layout (posix_memalign). Built without optimization, which keeps them.
use std::alloc::{alloc, dealloc, Layout};

fn main() {
    let leaked = Box::new([7u8; 100]); // 100
    Box::leak(leaked);

    let mut grown: Vec<u8> = Vec::with_capacity(64); // 64, temporary: the next event is its realloc
    grown.resize(64, 1);
    grown.reserve_exact(128); // 64 become 192

    let zeroed = vec![0u8; 1024]; // calloc 1024
    drop(grown);
    drop(zeroed);

    let layout = Layout::from_size_align(640, 256).unwrap();
    let aligned = unsafe { alloc(layout) }; // 640
    let text = String::from("0123456789").repeat(2); // 10, then 20
    drop(text);
    unsafe { dealloc(aligned, layout) };
}
