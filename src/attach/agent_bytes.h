// SPDX-License-Identifier: MIT
// agent_bytes: the agent (target/agent) as a part of this executable.
//
// Context: H; pure.
#pragma once

#include "base/bytes.h"

// Return the shared object.
struct bytes agent_bytes(void);
