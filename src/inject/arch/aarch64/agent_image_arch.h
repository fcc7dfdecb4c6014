// SPDX-License-Identifier: MIT
// agent_image_arch (AArch64): what the agent's file says of its machine.
#pragma once

#include <elf.h>

#define AGENT_IMAGE_MACHINE  EM_AARCH64
#define AGENT_IMAGE_RELATIVE R_AARCH64_RELATIVE // an address in the image, moved by the image's
#define AGENT_IMAGE_NAME     "AArch64"
