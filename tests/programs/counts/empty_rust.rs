// SPDX-License-Identifier: MIT
// TRUTH: allocations=0 frees=0 allocated_bytes=0 temporary=0 peak_bytes=0
// TRUTH: live_bytes=0 live_blocks=0
//
// Never allocates. Its recording shows the allocations of Rust's run-time around main.
fn main() {}
