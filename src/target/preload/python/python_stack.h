// SPDX-License-Identifier: MIT
// python_stack: the frames of CPython on the calling thread, mixed into its native stack.
//
//   caller --> python_stack_again: walks the frames of Python ............ name, if nothing changed
//          \-> unwind_thread_walk, python_stack_mix: what changed of both . walk
//
// A thread's own state (PyThreadState) is found by the key that the interpreter keeps for it;
// python_chain.h says how its frames hang on it. Each call of _PyEval_EvalFrameDefault has a
// variable that the chain names. It is in the native frame of its call, so its address says where
// these frames belong: they replace that native frame. So no function of the interpreter is
// searched for.
//
// A thread reads only its own state, with or without the interpreter's lock. While the interpreter
// finalizes, only the thread that does so reads: others' states are being freed. Pointers are
// checked as python_memory.h describes; a stack that does not fit stays native from there on.
//
// Owns: which interpreter the process has, and the memory of its threads' frames. Context: T; under
// the thread's guard.
#pragma once

#include "session/layout.h"
#include "target/preload/python/python_frames.h"
#include "target/unwind/unwind.h"

// Read the frames of the interpreter whose _PyRuntime and Py_Version are at these addresses (0: it
// has none), and note its version in session->python_version. Without Py_Version the version
// is `older` (python_versions.h). An `older` of 0 says that there is no interpreter.
void python_stack_begin(struct session_header *session,
                        uint64_t runtime,
                        uint64_t version_place,
                        uint32_t older);

// Read the calling thread's frames into its `own` memory, which is made if needed. Returns the name
// of its last mixed stack if the stack that begins with `caller` is the same again, else 0.
uint64_t python_stack_again(struct python_frames **own,
                            const struct unwind_thread *thread,
                            const struct unwind_regs *caller);

// After python_stack_again() has returned 0: replace the interpreter's frames of the thread's
// `walk` by the frames of Python.
void python_stack_mix(struct python_frames *own,
                      struct unwind_thread *thread,
                      struct unwind_walk *walk);

// Give back the memory: the thread ends.
void python_stack_release(struct python_frames **own);
