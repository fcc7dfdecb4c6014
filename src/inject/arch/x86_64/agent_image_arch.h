// SPDX-License-Identifier: MIT
// agent_image_arch (x86-64): what the agent's file says of its machine.
#pragma once

#include <elf.h>

#define AGENT_IMAGE_MACHINE  EM_X86_64
#define AGENT_IMAGE_RELATIVE R_X86_64_RELATIVE // an address in the image, moved by the image's
#define AGENT_IMAGE_NAME     "x86-64"
