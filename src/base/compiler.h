// SPDX-License-Identifier: MIT
// compiler: the attributes and the few macros that the rest of the tree may use.
//
// TRY is the only macro that changes control flow. CLEANUP runs a destructor when a local leaves
// its scope; the destructor takes a pointer to the local and must accept its zeroed form. TAKE
// moves what such a local owns to another place.
// Context: T and H; nothing here calls anything.
#pragma once

#define MUST_USE      __attribute__((warn_unused_result))
#define CLEANUP(func) __attribute__((cleanup(func)))
#define EXPORT        __attribute__((visibility("default")))
#define NOINLINE      __attribute__((noinline))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define PRINTF_LIKE(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

// Return the error of `expression` to our caller unless it is ERR_OK.
#define TRY(expression)                      \
    do {                                     \
        enum err try_result_ = (expression); \
        if (UNLIKELY(try_result_ != 0)) {    \
            return try_result_;              \
        }                                    \
    } while (0)

// Return the value of `variable`, which owns it no more: it is zeroed, so that its CLEANUP does
// nothing.
#define TAKE(variable)                            \
    ({                                            \
        __typeof__(variable) taken_ = (variable); \
        (variable) = (__typeof__(variable)){0};   \
        taken_;                                   \
    })
