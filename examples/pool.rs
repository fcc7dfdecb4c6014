// SPDX-License-Identifier: MIT
// pool: the same from Rust, without a crate. cairn.h is C; its table is found by name.
//
//   rustc examples/pool.rs && cairn ./pool
//
// TRUTH: allocations=2 frees=1 allocated_bytes=144 freed_bytes=48 live_bytes=96 live_blocks=1
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};

/// cairn.h's `struct cairn_stats`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct CairnStats {
    allocations: u64,
    allocated_bytes: u64,
    frees: u64,
    freed_bytes: u64,
    temporary: u64,
    live_blocks: i64,
    live_bytes: i64,
}

/// cairn.h's `struct cairn_peak`.
#[repr(C)]
#[derive(Default)]
struct CairnPeak {
    scope: u32,
    reserved: u32,
}

/// cairn.h's `struct cairn_api`, version 1.
#[repr(C)]
struct CairnApi {
    version: u32,
    bytes: u32,
    report_alloc: extern "C" fn(*const c_void, usize),
    report_realloc: extern "C" fn(*const c_void, *const c_void, usize),
    report_free: extern "C" fn(*const c_void),
    mark: extern "C" fn(*const c_char, u32),
    pool_alloc: extern "C" fn(*const c_char, *const c_void, usize),
    pool_realloc: extern "C" fn(*const c_char, *const c_void, *const c_void, usize),
    event: extern "C" fn(*const c_char, u64),
    stats: extern "C" fn(u32, *mut CairnStats) -> i32,
    peak_begin: extern "C" fn(*mut CairnPeak) -> i32,
    peak_end: extern "C" fn(*mut CairnPeak, *mut u64) -> i32,
}

const THREAD: u32 = 1;

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// None if nobody records, or an older cairn does. The handle is RTLD_DEFAULT. Asked each time, so
/// that a recorder that comes later is found.
fn cairn() -> Option<&'static CairnApi> {
    let name = CStr::from_bytes_with_nul(b"cairn_api_v1\0").unwrap();
    unsafe { (dlsym(std::ptr::null_mut(), name.as_ptr()) as *const CairnApi).as_ref() }
        .filter(|api| api.bytes as usize >= std::mem::size_of::<CairnApi>())
}

fn text(text: &'static [u8]) -> *const c_char {
    CStr::from_bytes_with_nul(text).unwrap().as_ptr()
}

static mut MEMORY: [u8; 256] = [0; 256];

#[inline(never)]
fn take(offset: usize, bytes: usize) -> *const c_void {
    let block = unsafe { raw_memory().add(offset) } as *const c_void;
    if let Some(api) = cairn() {
        (api.pool_alloc)(text(b"table\0"), block, bytes);
        (api.event)(text(b"taken\0"), bytes as u64);
    }
    block
}

fn raw_memory() -> *const u8 {
    unsafe { std::ptr::addr_of!(MEMORY) as *const u8 }
}

/// What the calling thread allocates in `work`; None if nobody records.
fn allocations_in(work: impl FnOnce()) -> Option<(u64, u64)> {
    let api = cairn()?;
    let (mut before, mut after) = (CairnStats::default(), CairnStats::default());
    let was_recorded = (api.stats)(THREAD, &mut before) != 0;
    work();
    if !was_recorded || (api.stats)(THREAD, &mut after) == 0 {
        return None;
    }
    Some((after.allocations - before.allocations, after.allocated_bytes - before.allocated_bytes))
}

/// The most bytes that the calling thread holds in `work`; None if nobody records.
fn peak_in(work: impl FnOnce()) -> Option<u64> {
    let api = cairn()?;
    let (mut peak, mut bytes) = (CairnPeak::default(), 0);
    let was_recorded = (api.peak_begin)(&mut peak) != 0;
    work();
    (was_recorded && (api.peak_end)(&mut peak, &mut bytes) != 0).then_some(bytes)
}

#[inline(never)]
fn make_buffer(bytes: usize) -> Vec<u8> {
    Vec::with_capacity(bytes)
}

fn main() {
    let first = take(0, 48);
    take(48, 96); // stays
    if let Some(api) = cairn() {
        (api.report_free)(first);
        (api.mark)(text(b"freed one\0"), 0);
    }
    let counted = allocations_in(|| drop(make_buffer(1000)));
    assert!(matches!(counted, None | Some((1, 1000))), "{:?}", counted);
    let held = peak_in(|| {
        drop(make_buffer(1000));
        drop(make_buffer(1500));
    });
    assert!(matches!(held, None | Some(1500)), "{:?}", held);
}
