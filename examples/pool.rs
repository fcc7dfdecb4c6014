// SPDX-License-Identifier: MIT
// pool: the same from Rust, without a crate. cairn.h is C; its table is found by name.
//
//   rustc examples/pool.rs && cairn ./pool
//
// TRUTH: allocations=2 frees=1 allocated_bytes=144 freed_bytes=48 leaked_bytes=96 leaked_allocations=1
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};

/// The beginning of cairn.h's `struct cairn_api`, version 1.
#[repr(C)]
struct CairnApi {
    version: u32,
    bytes: u32,
    report_alloc: extern "C" fn(*const c_void, usize),
    report_realloc: extern "C" fn(*const c_void, *const c_void, usize),
    report_free: extern "C" fn(*const c_void),
    mark: extern "C" fn(*const c_char, u32),
}

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// None if nobody records. The handle is RTLD_DEFAULT.
fn cairn() -> Option<&'static CairnApi> {
    let name = CStr::from_bytes_with_nul(b"cairn_api_v1\0").unwrap();
    unsafe { (dlsym(std::ptr::null_mut(), name.as_ptr()) as *const CairnApi).as_ref() }
}

static mut MEMORY: [u8; 256] = [0; 256];

#[inline(never)]
fn take(offset: usize, bytes: usize) -> *const c_void {
    let block = unsafe { raw_memory().add(offset) } as *const c_void;
    if let Some(api) = cairn() {
        (api.report_alloc)(block, bytes);
    }
    block
}

fn raw_memory() -> *const u8 {
    unsafe { std::ptr::addr_of!(MEMORY) as *const u8 }
}

fn main() {
    let first = take(0, 48);
    take(48, 96); // stays
    if let Some(api) = cairn() {
        (api.report_free)(first);
        (api.mark)(b"freed one\0".as_ptr() as *const c_char, 0);
    }
}
