// SPDX-License-Identifier: MIT
//! Informs the heap profiler cairn that records this program, and queries it.
//!
//! ```
//! cairn::phase("indexing");                  // the phase from here to the next one
//! cairn::mark("loaded 3 files");             // a moment, shown on the time line
//! cairn::event("bytes sent", 512);           // an event of weight 512 happened
//!
//! # fn parse(text: &str) -> Vec<String> { text.split(' ').map(String::from).collect() }
//! let words = cairn::assert_allocations!(100, || parse("two words"));
//! cairn::assert_live_bytes!(0, || drop(parse("two words")));
//! cairn::assert_peak!(10 << 20, || drop(parse("two words")));
//! # drop(words);
//! ```
//!
//! Run the program or its tests with `cairn ./program`, or with `cargo cairn run` and
//! `cargo cairn test`. **Without a recorder** each call is one load and one branch, and each
//! assertion passes. There is nothing to link, and no other crate. The calls work in
//! executables, static ones among them, in libraries that are loaded later, and in programs that
//! cairn attaches to. On systems other than 64-bit Linux on x86-64 and AArch64 they do nothing.
//!
//! | item | use |
//! |---|---|
//! | [`event`], [`mark`], [`phase`] | what happened, and when |
//! | [`Pool`], [`report_alloc`], [`report_realloc`], [`report_free`] | blocks of an own allocator |
//! | [`is_recording`] | whether cairn records this program |
//! | [`thread_stats`], [`process_stats`] | the allocations and frees so far |
//! | [`Scope`], [`Peak`] | the same between two points, and the peak of a thread |
//! | [`Budget`], [`assert_allocations!`], [`assert_live_bytes!`], [`assert_peak!`] | for tests |
//! | `#[cairn::budget(peak = "10MiB", allocations = 100)]` | likewise, with the feature `budget` |
//!
//! Any thread may make these calls, in any order. They allocate nothing, take no lock and report no
//! error. Only queries wait, and only for the recorder.
//!
//! # Features
//!
//! - `std` (default): a library that is loaded late finds the recorder, and a budget is not judged
//!   while a panic unwinds. Without it the crate needs `core` only.
//! - `budget`: the attribute `#[cairn::budget(...)]`.
#![no_std]
#![warn(missing_docs)]

#[cfg(feature = "std")]
extern crate std;

mod blocks;
mod budget;
mod counts;
mod events;
mod name;
mod table;

pub use blocks::{report_alloc, report_free, report_realloc, Pool};
pub use budget::{Budget, BudgetGuard};
pub use counts::{process_stats, thread_stats, Peak, Scope, Stats};
pub use events::{event, mark, phase};
pub use table::is_recording;

/// `#[cairn::budget(peak = "10MiB", allocations = 100)]`: the function panics at its end if the
/// calling thread exceeded a limit in it. Without a recorder it never does.
///
/// | limit | of |
/// |---|---|
/// | `allocations = 100` | allocations |
/// | `allocated = "1MB"` | bytes, all allocations added up |
/// | `live = 0` | bytes that were allocated and not freed; a returned value counts |
/// | `peak = "10MiB"` | bytes at once |
///
/// A size is a number of bytes, or a text with a unit: `"1.5MiB"` (1024), `"64k"` (1024), `"2MB"`
/// (1000).
///
/// ```
/// #[cairn::budget(peak = "10MiB", allocations = 100)]
/// fn parse(text: &str) -> Vec<String> {
///     text.split(' ').map(String::from).collect()
/// }
/// assert_eq!(parse("two words").len(), 2);
/// ```
#[cfg(feature = "budget")]
pub use cairn_macros::budget;
