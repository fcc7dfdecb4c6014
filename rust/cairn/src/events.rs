// SPDX-License-Identifier: MIT
//! Events, which have a stack and a weight, and marks on the time line.

use crate::name::Name;
use crate::table::member;

/// `enum cairn_mark_kind` of cairn.h.
#[derive(Clone, Copy)]
enum MarkKind {
    Moment = 0,
    Phase = 3,
}

/// Records an event that is not an allocation. `weight` has a unit of the program's choice. Events
/// are counted and weights are summed for each name and stack, apart from the heap. Names are cut to
/// 47 bytes.
///
/// ```
/// cairn::event("bytes sent", 512);
/// ```
#[inline(always)]
pub fn event(name: &str, weight: u64) {
    if let Some(record) = member!(event) {
        let name = Name::<48>::new(name);
        record(name.as_ptr(), weight);
    }
}

#[inline(never)]
fn set_mark(set: extern "C" fn(*const u8, u32), text: &str, kind: MarkKind) {
    let text = Name::<1025>::new(text);
    set(text.as_ptr(), kind as u32);
}

/// Marks a moment on the time line. The text is cut to 1024 bytes.
#[inline(always)]
pub fn mark(text: &str) {
    if let Some(set) = member!(mark) {
        set_mark(set, text, MarkKind::Moment);
    }
}

/// Begins a phase of the program, which lasts until the next one.
#[inline(always)]
pub fn phase(name: &str) {
    if let Some(set) = member!(mark) {
        set_mark(set, name, MarkKind::Phase);
    }
}
