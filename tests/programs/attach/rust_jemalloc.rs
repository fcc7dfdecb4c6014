// SPDX-License-Identifier: MIT
// rust_jemalloc: a Rust program whose global allocator is jemalloc, called as the crate jemallocator
// calls it (_rjem_malloc, _rjem_rallocx, _rjem_sdallocx).
//
// It reads commands, one to a line, and answers each with "done": p does nothing, r does a round. It
// ends with q or its input. It allocates nothing outside the rounds.
//
// TRUTH of a round: allocations 53, bytes 6410; each block is freed in its round. The growth of a
// vector is an allocation and a free.
use std::alloc::{GlobalAlloc, Layout};

extern "C" {
    fn _rjem_malloc(size: usize) -> *mut u8;
    fn _rjem_calloc(count: usize, size: usize) -> *mut u8;
    fn _rjem_mallocx(size: usize, flags: i32) -> *mut u8;
    fn _rjem_rallocx(block: *mut u8, size: usize, flags: i32) -> *mut u8;
    fn _rjem_sdallocx(block: *mut u8, size: usize, flags: i32);
    fn read(file: i32, bytes: *mut u8, len: usize) -> isize;
    fn write(file: i32, bytes: *const u8, len: usize) -> isize;
}

struct Jemalloc;

fn flags(layout: Layout) -> i32 {
    if layout.align() <= 16 { 0 } else { layout.align().trailing_zeros() as i32 }
}

unsafe impl GlobalAlloc for Jemalloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match flags(layout) {
            0 => _rjem_malloc(layout.size()),
            flags => _rjem_mallocx(layout.size(), flags),
        }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        _rjem_calloc(1, layout.size())
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        _rjem_rallocx(block, size, flags(layout))
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        _rjem_sdallocx(block, layout.size(), flags(layout))
    }
}

#[global_allocator]
static GLOBAL: Jemalloc = Jemalloc;

#[inline(never)]
fn build_boxes() -> Vec<Box<[u8; 100]>> {
    let mut boxes = Vec::with_capacity(50);
    for i in 0..50 {
        boxes.push(Box::new([i; 100]));
    }
    boxes
}

#[inline(never)]
fn grow_bytes() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(10);
    bytes.push(1);
    bytes.reserve_exact(999);
    bytes
}

fn main() {
    let mut command = 0u8;
    while unsafe { read(0, &mut command, 1) } == 1 && command != b'q' {
        if command == b'\n' {
            continue;
        }
        if command == b'r' {
            drop(build_boxes());
            drop(grow_bytes());
        }
        let answer = b"done\n";
        let written = unsafe { write(1, answer.as_ptr(), answer.len()) };
        assert!(written == answer.len() as isize);
    }
}
