// SPDX-License-Identifier: MIT
// machine_arch (AArch64): how files and filters name the machine. Context: H.
#pragma once

#include <elf.h>
#include <linux/audit.h>

#define MACHINE_ELF   EM_AARCH64
#define MACHINE_AUDIT AUDIT_ARCH_AARCH64
#define MACHINE_NAME  "64-bit ARM"
