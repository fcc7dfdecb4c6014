// SPDX-License-Identifier: MIT
//! Counts that the recorder answers with: of the process, of a thread, and between two points.
//!
//! Each query waits until the recorder has read the events of all threads, usually some
//! milliseconds, and never for a dead recorder.

use crate::table::member;
use core::marker::PhantomData;

/// Sums since the process or the thread began, or over a [`Scope`]. Blocks of pools are included.
/// Over a scope the live sums are the change, and negative if the scope freed more. A free counts
/// for the thread that allocated the block, whichever thread frees it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub struct Stats {
    /// Successful ones; a realloc is one allocation and one free.
    pub allocations: u64,
    /// As requested.
    pub allocated_bytes: u64,
    /// Of recorded blocks.
    pub frees: u64,
    /// The bytes of these.
    pub freed_bytes: u64,
    /// Allocations that the thread freed with its very next event.
    pub temporary: u64,
    /// Allocations less frees.
    pub live_blocks: i64,
    /// Allocated bytes less freed ones.
    pub live_bytes: i64,
}

/// `enum cairn_whose` of cairn.h.
#[derive(Clone, Copy, Debug)]
enum Whose {
    Process = 0,
    Thread = 1,
}

fn query(whose: Whose) -> Option<Stats> {
    let query = member!(stats)?;
    let mut stats = Stats::default();
    (query(whose as u32, &mut stats) != 0).then_some(stats)
}

/// The sums of the process so far. They contain every event of any thread that happened before the
/// call, and possibly some events of other threads that happen during the call.
///
/// `None` if cairn does not record this program or records with `--sample`, if the recorder is
/// dead, or in a signal handler that interrupted an allocation or one of these calls.
#[must_use]
pub fn process_stats() -> Option<Stats> {
    query(Whose::Process)
}

/// The sums of the calling thread so far. `None` as for [`process_stats`].
#[must_use]
pub fn thread_stats() -> Option<Stats> {
    query(Whose::Thread)
}

/// Counts the events from its beginning on. Scopes may nest and overlap, and one that is forgotten
/// costs nothing.
///
/// ```
/// let scope = cairn::Scope::thread();
/// let words: Vec<String> = "two words".split(' ').map(String::from).collect();
/// if let Some(spent) = scope.spent() {
///     assert!(spent.allocations >= 2); // recorded
/// }
/// # drop(words);
/// ```
#[derive(Debug)]
pub struct Scope {
    whose: Whose,
    at_begin: Option<Stats>,
    stays_on_thread: PhantomData<*const ()>,
}

impl Scope {
    /// Begins to count what all threads do.
    #[must_use]
    pub fn process() -> Scope {
        Scope::begin(Whose::Process)
    }

    /// Begins to count what the calling thread does.
    #[must_use]
    pub fn thread() -> Scope {
        Scope::begin(Whose::Thread)
    }

    fn begin(whose: Whose) -> Scope {
        Scope { whose, at_begin: query(whose), stays_on_thread: PhantomData }
    }

    /// The counts since the beginning. `None` if one of the two queries failed.
    #[must_use]
    pub fn spent(&self) -> Option<Stats> {
        let from = self.at_begin?;
        let now = query(self.whose)?;
        Some(Stats {
            allocations: now.allocations.wrapping_sub(from.allocations),
            allocated_bytes: now.allocated_bytes.wrapping_sub(from.allocated_bytes),
            frees: now.frees.wrapping_sub(from.frees),
            freed_bytes: now.freed_bytes.wrapping_sub(from.freed_bytes),
            temporary: now.temporary.wrapping_sub(from.temporary),
            live_blocks: now.live_blocks.wrapping_sub(from.live_blocks),
            live_bytes: now.live_bytes.wrapping_sub(from.live_bytes),
        })
    }
}

/// Follows the live bytes of the calling thread: its allocations, less the frees of these blocks,
/// the blocks of pools included. Until it ends or is dropped the thread sends every event
/// separately, which costs more. At most 8 are open on a thread.
///
/// ```
/// let peak = cairn::Peak::begin();
/// drop(vec![0u8; 1000]);
/// if let Some(bytes) = peak.end() {
///     assert!(bytes >= 1000); // recorded
/// }
/// ```
#[derive(Debug)]
pub struct Peak {
    open: RawPeak,
    stays_on_thread: PhantomData<*const ()>,
}

/// `struct cairn_peak` of cairn.h.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct RawPeak {
    scope: u32, // 0: none
    reserved: u32,
}

impl Peak {
    /// Begins. Waits as [`thread_stats`] does.
    #[must_use]
    pub fn begin() -> Peak {
        let mut open = RawPeak::default();
        if let Some(begin) = member!(peak_begin) {
            begin(&mut open); // on failure there is no scope
        }
        Peak { open, stays_on_thread: PhantomData }
    }

    /// How much the thread's live bytes exceeded at most their value at the beginning; 0 if they
    /// never did. A realloc holds one of its two blocks at a time. The figure is exact if no other
    /// thread frees blocks of this thread or reuses their addresses. Otherwise it is never too low.
    ///
    /// `None` as for [`process_stats`], now or at the beginning, or if 8 were open then.
    #[must_use]
    pub fn end(mut self) -> Option<u64> {
        self.finish()
    }

    fn finish(&mut self) -> Option<u64> {
        let mut open = core::mem::take(&mut self.open);
        let end = if open.scope == 0 { None } else { member!(peak_end) }?;
        let mut bytes = 0;
        (end(&mut open, &mut bytes) != 0).then_some(bytes)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        let _ = self.finish(); // its figure is not asked for
    }
}
