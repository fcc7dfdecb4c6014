// SPDX-License-Identifier: MIT
// huge_pages: estimates how much of a process's huge pages was never written.
//
// A huge page is resident as a whole from the first write on. What the program never wrote is zero,
// so pages of the usual size are looked at, spread over each area by its part of all huge pages,
// and those that hold only zeros are counted. Only pages of aligned ranges of 2 MiB that are
// resident as a whole count: others are no huge pages. A program that writes zeros has such pages,
// too.
// Context: H, any thread; it is read aside (aside/aside.h). Pages that are not resident are not
// read: that would bring them back.
// Cost: at most LOOKS small reads, some milliseconds. Nothing without huge pages.
// Failures: without an answer nothing is estimated.
#pragma once

#include "recorder/memory/memory_areas.h"

// Set `blank_bytes` of the areas that have huge pages.
void huge_pages_estimate(struct memory_areas *map,
                         const struct memory_source *memory,
                         const struct page_source *pages);
