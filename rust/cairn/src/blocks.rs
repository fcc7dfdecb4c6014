// SPDX-License-Identifier: MIT
//! Blocks of a program's own allocator. Inlined in debug builds too, so that a recorded stack begins
//! with the allocator's own frame.

use crate::name::Name;
use crate::table::member;

/// Reports that `block` of `bytes` is in use from now on. A null pointer is ignored.
#[inline(always)]
pub fn report_alloc<T>(block: *const T, bytes: usize) {
    if let Some(report) = member!(report_alloc) {
        report(block.cast(), bytes);
    }
}

/// Reports that `old_block` became `block`; they may be equal. Counts as an allocation and a free.
#[inline(always)]
pub fn report_realloc<T>(old_block: *const T, block: *const T, bytes: usize) {
    if let Some(report) = member!(report_realloc) {
        report(old_block.cast(), block.cast(), bytes);
    }
}

/// Reports that `block` is about to be taken back. Call this before the allocator can hand the block
/// out again. Also for blocks of a [`Pool`].
#[inline(always)]
pub fn report_free<T>(block: *const T) {
    if let Some(report) = member!(report_free) {
        report(block.cast());
    }
}

/// An allocator with a name: the stacks of its blocks begin with a frame `[pool NAME]`.
///
/// A block of a pool counts as a block of its own. It may overlap a block from `malloc`, and even
/// have the same address. If the pool's memory comes from `malloc`, both blocks count. If it comes
/// from `mmap`, only the pool's blocks count.
///
/// ```
/// static NODES: cairn::Pool = cairn::Pool::new("nodes");
///
/// struct Node([u8; 64]);
/// struct Arena { memory: Vec<Node> } // never grows
///
/// impl Arena {
///     fn take(&mut self) -> *mut Node {
///         self.memory.push(Node([0; 64]));
///         let node: *mut Node = self.memory.last_mut().unwrap();
///         NODES.alloc(node, std::mem::size_of::<Node>());
///         node
///     }
/// }
///
/// let mut arena = Arena { memory: Vec::with_capacity(16) };
/// let node = arena.take();
/// NODES.free(node); // before the arena can hand it out again
/// ```
pub struct Pool {
    name: Name<48>,
}

impl Pool {
    /// Names are compared as texts and cut to 47 bytes. A process has at most 254 names, those of
    /// events included; all further names share `[pool ...]`.
    #[must_use]
    pub const fn new(name: &str) -> Pool {
        Pool { name: Name::new(name) }
    }

    /// As [`report_alloc`], for this pool.
    #[inline(always)]
    pub fn alloc<T>(&self, block: *const T, bytes: usize) {
        if let Some(report) = member!(pool_alloc) {
            report(self.name.as_ptr(), block.cast(), bytes);
        }
    }

    /// As [`report_realloc`], for this pool.
    #[inline(always)]
    pub fn realloc<T>(&self, old_block: *const T, block: *const T, bytes: usize) {
        if let Some(report) = member!(pool_realloc) {
            report(self.name.as_ptr(), old_block.cast(), block.cast(), bytes);
        }
    }

    /// As [`report_free`].
    #[inline(always)]
    pub fn free<T>(&self, block: *const T) {
        report_free(block);
    }
}
