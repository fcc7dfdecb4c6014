// SPDX-License-Identifier: MIT
//! The recorder's functions, `struct cairn_api` of cairn.h, and how this program finds them.
//!
//! A hidden variable of each executable or library points to them, or is null. An ELF note leads to
//! the variable: cairn's library sets it before `main`, and cairn sets it from outside in static
//! programs and in those that it attaches to. A library that is loaded later looks the table up
//! itself. The names are those of cairn.h, so that C and Rust in one program share the variable.

use crate::counts::{RawPeak, Stats};

/// The members that exist are `bytes` long: an older cairn may record a newer program.
#[repr(C)]
pub(crate) struct Table {
    version: u32,
    pub(crate) bytes: u32,
    pub(crate) report_alloc: extern "C" fn(*const u8, usize),
    pub(crate) report_realloc: extern "C" fn(*const u8, *const u8, usize),
    pub(crate) report_free: extern "C" fn(*const u8),
    pub(crate) mark: extern "C" fn(*const u8, u32),
    pub(crate) pool_alloc: extern "C" fn(*const u8, *const u8, usize),
    pub(crate) pool_realloc: extern "C" fn(*const u8, *const u8, *const u8, usize),
    pub(crate) event: extern "C" fn(*const u8, u64),
    pub(crate) stats: extern "C" fn(u32, *mut Stats) -> i32,
    pub(crate) peak_begin: extern "C" fn(*mut RawPeak) -> i32,
    pub(crate) peak_end: extern "C" fn(*mut RawPeak, *mut u64) -> i32,
}

/// `member!(name)`: the function of that name, or `None` without a recorder that has it.
macro_rules! member {
    ($name:ident) => {{
        let table = $crate::table::find();
        if table.is_null() {
            None
        } else {
            // SAFETY: a table that was found stays, and `bytes` says which members it has. No
            // reference to the whole is made, since its end may not exist.
            unsafe {
                let place = core::ptr::addr_of!((*table).$name);
                let end = place as usize + core::mem::size_of::<usize>() - table as usize;
                if (*table).bytes as usize >= end {
                    Some(*place)
                } else {
                    None
                }
            }
        }
    }};
}
pub(crate) use member;

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
))]
mod place {
    use super::Table;
    use core::sync::atomic::{AtomicPtr, Ordering};

    // The guard is for two versions of this crate in one object.
    core::arch::global_asm!(
        ".ifndef cairn_api_here",
        ".pushsection .bss.cairn_api_here, \"aw\", %nobits",
        ".weak cairn_api_here",
        ".hidden cairn_api_here",
        ".type cairn_api_here, %object",
        ".size cairn_api_here, 8",
        ".balign 8",
        "cairn_api_here:",
        ".zero 8",
        ".popsection",
        ".pushsection .note.cairn, \"a\", %note",
        ".balign 4",
        ".long 6, 8, 1",
        ".asciz \"cairn\"",
        ".balign 4",
        ".quad cairn_api_here - .",
        ".popsection",
        ".endif",
    );

    extern "C" {
        #[allow(improper_ctypes)] // a pointer
        static cairn_api_here: AtomicPtr<Table>;
    }

    #[inline(always)]
    pub(crate) fn find() -> *const Table {
        // SAFETY: the variable is defined above. Acquire: the table is seen whole.
        unsafe { cairn_api_here.load(Ordering::Acquire) }
    }

    /// Not in static programs: theirs is set from outside.
    #[cfg(all(feature = "std", not(target_feature = "crt-static")))]
    mod look_up {
        use super::*;

        extern "C" {
            fn dlsym(handle: *mut u8, name: *const u8) -> *mut u8;
        }

        #[used]
        #[link_section = ".init_array.00102"]
        static LOOK_UP: extern "C" fn() = look_up;

        extern "C" fn look_up() {
            if find().is_null() {
                // SAFETY: the handle is RTLD_DEFAULT, and the object of this name is a table.
                unsafe {
                    let table = dlsym(core::ptr::null_mut(), "cairn_api_v1\0".as_ptr());
                    cairn_api_here.store(table.cast(), Ordering::Release);
                }
            }
        }
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
)))]
mod place {
    #[inline(always)]
    pub(crate) fn find() -> *const super::Table {
        core::ptr::null()
    }
}

pub(crate) use place::find;

/// Whether cairn records this program now.
#[inline(always)]
#[must_use]
pub fn is_recording() -> bool {
    !find().is_null()
}
