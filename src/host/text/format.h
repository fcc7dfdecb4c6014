// SPDX-License-Identifier: MIT
// format: numbers as people read them. The one place, so that every report spells them alike.
//
// Each function returns its text by value, for use within one expression:
//   printf("%s in %s\n", format_bytes(n).text, format_duration(ns).text);
// Pure; independent of the locale. Context: H.
#pragma once

#include <stdint.h>

struct human {
    char text[48];
};

// Three significant digits in binary units: "812 B", "64.0 KiB", "1.25 MiB", "1023 MiB".
struct human format_bytes(uint64_t bytes);

// As format_bytes, with a sign for what differs from zero: "+1.25 MiB", "-812 B", "0 B".
struct human format_bytes_change(int64_t bytes);

// "1,234,567".
struct human format_count(uint64_t count);
struct human format_count_change(int64_t count);

// "812 ns", "1.23 us", "45.6 ms", "1.23 s", "59.9 s", "4 min 05 s", "2 h 03 min", "3 d 04 h".
struct human format_duration(uint64_t duration_ns);

// "12.3%", "100%", "0%"; what is there but rounds to nothing is "<0.1%", what is almost all
// ">99.9%".
// "-" if `whole` is 0.
struct human format_percent(uint64_t part, uint64_t whole);
