// SPDX-License-Identifier: MIT
// python_stack: the frames of CPython on the calling thread, mixed into its native stack.
//
// A thread's own state (PyThreadState) is found by the key that the interpreter keeps for it. Each
// call of _PyEval_EvalFrameDefault has a variable, the cframe, which leads to the innermost of the
// Python frames that this call runs; the outermost of them is marked as its entry:
//
//   PyThreadState -> cframe -> cframe -> ...       one for each call of the interpreter
//                      |         |
//                    frame     frame               Python calls Python without a native frame
//                    frame (entry)  ...
//
// The cframe is in the native frame of its call, so its address says where these frames belong:
// they replace that native frame. So no function of the interpreter is searched for.
//
// A thread reads only its own state, with or without the interpreter's lock. While the interpreter
// finalizes, only the thread that holds the lock reads: others' states are being freed. Pointers
// are checked as python_memory.h describes; a stack that does not fit stays native from there on.
//
// Owns: which interpreter the process has. Context: T; python_stack_mix under the thread's guard.
#pragma once

#include "session/layout.h"
#include "target/unwind/unwind.h"

// Read the frames of the interpreter whose _PyRuntime and Py_Version are at these addresses (0: it
// has none), and note its version in session->python_version.
void python_stack_begin(struct session_header *session, uint64_t runtime, uint64_t version_place);

// Replace the interpreter's frames of the calling thread's `walk` by the frames of Python.
void python_stack_mix(struct unwind_thread *thread, struct unwind_walk *walk);
