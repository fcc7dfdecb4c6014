// SPDX-License-Identifier: MIT
//
// An empty, writable .eh_frame, as the start files of compiler-rt and some assembly have. It makes
// that of the whole module writable: the linker moves it away from .eh_frame_hdr.
    .section .eh_frame, "aw", @progbits
    .section .note.GNU-stack, "", @progbits
