// SPDX-License-Identifier: MIT
// format: numbers as text for people, spelled alike in every report.
//
// The viewer spells them alike, too (web/src/base/format.ts). The tests of both read one table of
// cases, web/src/base/format-cases.txt. Everything is rounded to the nearest, a half away from 0.
//
// Each function returns its text by value, for use within one expression:
//   printf("%s in %s\n", format_bytes(n).text, format_duration(ns).text);
// Pure; independent of the locale. Context: H.
#pragma once

#include <stdint.h>

struct human {
    char text[80];
};

// Format three significant digits in binary units: "812 B", "64.0 KiB", "1.25 MiB", "1023 MiB".
struct human format_bytes(uint64_t bytes);

// Format a number with separators: "1,234,567".
struct human format_count(uint64_t count);

// Format a count of things: "1 block", "1,234 blocks". `one` and `many` may be longer phrases, such
// as "process was" and "processes were".
struct human format_things(uint64_t count, const char *one, const char *many);

// Format a duration: "812 ns", "1.23 us", "45.6 ms", "1.23 s", "59.9 s", "4 min 05 s", "2 h 03
// min", "3 d 04 h".
struct human format_duration(uint64_t duration_ns);

// Format a percentage: "12.3%", "100%", "0%". A part that rounds to 0 is "<0.1%", one that rounds
// to 100 without being the whole is ">99.9%". "-" if `whole` is 0.
struct human format_percent(uint64_t part, uint64_t whole);

// Format a change as a share of the old value, with its sign: "+11.9%", "-100.0%", "-0.0%".
struct human format_percent_change(double change, double old);

// Format the error of a figure as its share: "±12%", at most "±999%". "" if either is 0.
struct human format_percent_error(double figure, double error);

// Format what happens in a second: "148,933" or "1.25 MiB". A rate that rounds to 0 is "<1".
struct human format_rate(double per_s);
struct human format_byte_rate(double bytes_per_s);
