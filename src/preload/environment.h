// SPDX-License-Identifier: MIT
// environment: what the recorder put into the program's environment, and taking it out again.
//
// Works on the strings in place, without getenv, setenv or putenv: these allocate, lock, or are
// replaced by the program. Context: T, at the process's start. Failure: none.
#pragma once

#include <stdbool.h>

// False in the short time in which libc has not been given its environment.
bool environment_is_there(void);

// The value of CAIRN_SESSION, borrowed from the environment; NULL if there is none.
const char *environment_session(void);

// Takes CAIRN_SESSION and our own entry of LD_PRELOAD out, so that programs started from here run
// without us. Other entries of LD_PRELOAD stay; without any it is removed.
void environment_strip(void);
