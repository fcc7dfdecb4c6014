// SPDX-License-Identifier: MIT
/* cairn.hpp: cairn.h for C++: scopes that end by themselves, and budgets for test libraries.
 *
 *   cairn::scope scope;                 counts the allocations of this thread from here on
 *   scope.spent().allocations           ... how many so far
 *   cairn::peak peak;                   how much this thread holds at most from here on
 *   peak.end()                          ... in bytes
 *
 *   using namespace cairn::literals;
 *   const auto budget = cairn::budget().peak(10_MiB).allocations(100).live_bytes(0);
 *
 * GoogleTest                            Catch2 and doctest
 *   CAIRN_EXPECT(budget, parse(file));    CAIRN_CHECK(budget, parse(file));
 *   CAIRN_ASSERT(budget, parse(file));    CAIRN_REQUIRE(budget, parse(file));
 *   CAIRN_EXPECT_HERE(budget);            CAIRN_CHECK_HERE(budget);     the rest of the block
 *
 * Other libraries: cairn::measurement, and the text of the verdict that its end() returns.
 *
 * This header needs C++11, with gcc or clang, and cairn.h beside it. It includes no test library:
 * its macros use those of the library that the file has included. Nothing has to be linked. Without
 * a recorder every budget is kept, and verdict::is_measured() is false.
 *
 * All figures are those of cairn_stats and cairn_peak_end, with their rules. What these classes
 * allocate themselves is not counted. Objects belong to the thread that made them. */
#ifndef CAIRN_HPP
#define CAIRN_HPP

/* A program's warning options concern the program, not this header. */
#ifndef CAIRN_SHOW_WARNINGS
#    pragma GCC system_header
#endif

#include <cairn.h>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace cairn
{

/* Sizes: 10_MiB. */
namespace literals
{
constexpr std::uint64_t operator""_KiB(unsigned long long count)
{
    return count << 10;
}

constexpr std::uint64_t operator""_MiB(unsigned long long count)
{
    return count << 20;
}

constexpr std::uint64_t operator""_GiB(unsigned long long count)
{
    return count << 30;
}
} // namespace literals

inline bool is_recording() noexcept
{
    return cairn_is_recording() != 0;
}

/* The figures of cairn_stats. */
using counts = struct ::cairn_stats;

/* Counts allocations and frees from its beginning on: of the calling thread, or of the process. */
class scope
{
  public:
    explicit scope(cairn_whose whose = CAIRN_THREAD) noexcept
    {
        (void)cairn_scope_begin(&scope_, whose); /* the scope remembers a failure */
    }

    /* Return the counts so far; all are 0 if nothing records. */
    counts spent() const noexcept
    {
        counts found;
        (void)read(found);
        return found;
    }

    /* Fill `found`. Returns whether anything was counted. */
    bool read(counts &found) const noexcept
    {
        return cairn_scope_end(&scope_, &found) != 0;
    }

  private:
    cairn_scope scope_;
};

/* Follows the live bytes of the calling thread from its beginning to end() or its destructor. */
class peak
{
  public:
    peak() noexcept : is_open_(cairn_peak_begin(&peak_) != 0)
    {
    }

    peak(const peak &) = delete;
    peak &operator=(const peak &) = delete;

    ~peak()
    {
        end();
    }

    /* Return the peak in bytes; 0 if nothing records. Later calls return the same. */
    std::uint64_t end() noexcept
    {
        if (is_open_) {
            is_open_ = false;
            is_measured_ = cairn_peak_end(&peak_, &bytes_) != 0;
        }
        return bytes_;
    }

    /* Whether end() has measured it. */
    bool is_measured() const noexcept
    {
        return is_measured_;
    }

  private:
    cairn_peak peak_;
    std::uint64_t bytes_ = 0;
    bool is_open_;
    bool is_measured_ = false;
};

/* The limits of a piece of work. A figure without a limit may have any value. */
class budget
{
  public:
    /* The most bytes that the thread may hold at once, above what it held at the beginning. */
    budget &peak(std::uint64_t bytes)
    {
        return limit(peak_bytes, bytes);
    }

    budget &allocations(std::uint64_t count)
    {
        return limit(allocation_count, count);
    }

    budget &allocated_bytes(std::uint64_t bytes)
    {
        return limit(allocated, bytes);
    }

    budget &temporary(std::uint64_t count)
    {
        return limit(temporary_count, count);
    }

    /* What may remain at the end of what was allocated, less what was freed. */
    budget &live_blocks(std::uint64_t count)
    {
        return limit(live_block_count, count);
    }

    budget &live_bytes(std::uint64_t bytes)
    {
        return limit(live, bytes);
    }

    /* Count all threads, not the calling one alone. The peak stays that of the calling thread. */
    budget &of_process()
    {
        whose_ = CAIRN_PROCESS;
        return *this;
    }

  private:
    friend class measurement;

    enum figure {
        peak_bytes,
        allocation_count,
        allocated,
        temporary_count,
        live_block_count,
        live,
        figure_count
    };

    budget &limit(figure of, std::uint64_t most)
    {
        most_[of] = most;
        has_[of] = true;
        return *this;
    }

    std::uint64_t most_[figure_count] = {};
    bool has_[figure_count] = {};
    cairn_whose whose_ = CAIRN_THREAD;
};

/* Whether a piece of work kept its budget. */
class verdict
{
  public:
    bool holds() const noexcept
    {
        return text_.empty();
    }

    /* Whether cairn recorded the work. Else no limit was compared. */
    bool is_measured() const noexcept
    {
        return is_measured_;
    }

    /* A line for each limit that was exceeded; empty if the budget was kept. */
    const std::string &text() const noexcept
    {
        return text_;
    }

  private:
    friend class measurement;

    std::string text_;
    bool is_measured_ = false;
};

/* Measures from its beginning to end(). The peak begins first and ends last, and texts are made
 * after both, so that only the work between counts. */
class measurement
{
  public:
    explicit measurement(const budget &limits)
        : budget_(limits), has_peak_(limits.has_[budget::peak_bytes]),
          begun_(has_peak_ && cairn_peak_begin(&peak_) != 0)
    {
        (void)cairn_scope_begin(&scope_, limits.whose_); /* the scope remembers a failure */
    }

    measurement(const measurement &) = delete;
    measurement &operator=(const measurement &) = delete;

    ~measurement()
    {
        std::uint64_t bytes;
        (void)end_peak(bytes); /* an exception ended the work */
    }

    /* End the work. To be called once. */
    verdict end()
    {
        counts spent;
        const bool is_counted = cairn_scope_end(&scope_, &spent) != 0;
        std::uint64_t bytes;
        const bool is_followed = end_peak(bytes);
        verdict found;
        found.is_measured_ = is_counted && (is_followed || !has_peak_);
        if (is_followed) {
            judge(found, budget::peak_bytes, static_cast<std::int64_t>(bytes), "byte", " at once");
        }
        if (is_counted) {
            judge(found, budget::allocation_count, as_signed(spent.allocations), "allocation", "");
            judge(found, budget::allocated, as_signed(spent.allocated_bytes), "byte", " allocated");
            judge(found, budget::temporary_count, as_signed(spent.temporary),
                  "temporary allocation", "");
            judge(found, budget::live_block_count, spent.live_blocks, "block", " not freed");
            judge(found, budget::live, spent.live_bytes, "byte", " not freed");
        }
        return found;
    }

  private:
    static std::int64_t as_signed(std::uint64_t count)
    {
        return static_cast<std::int64_t>(count);
    }

    bool end_peak(std::uint64_t &bytes)
    {
        const bool was_begun = begun_;
        begun_ = false;
        bytes = 0;
        return was_begun && cairn_peak_end(&peak_, &bytes) != 0;
    }

    void judge(verdict &found,
               budget::figure figure,
               std::int64_t value,
               const char *unit,
               const char *which) const
    {
        const std::uint64_t most = budget_.most_[figure];
        if (!budget_.has_[figure] || value < 0 || static_cast<std::uint64_t>(value) <= most) {
            return;
        }
        found.text_ += found.text_.empty() ? "" : "\n";
        found.text_ += std::to_string(value) + " " + unit + (value == 1 ? "" : "s") + which +
                       "; at most " + std::to_string(most) + " allowed";
    }

    budget budget_;
    cairn_peak peak_ = {};
    cairn_scope scope_;
    bool has_peak_;
    bool begun_;
};

/* Measures to the end of its block, and gives the text of an exceeded budget to `report`. If an
 * exception ends the block, the test has failed, and the budget is not judged. */
template <typename Report> class guard
{
  public:
    guard(const budget &limits, Report report) : report_(std::move(report)), measurement_(limits)
    {
    }

    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;

    ~guard() noexcept(false)
    {
        const verdict found = measurement_.end();
        if (!found.holds() && exceptions() == exceptions_) {
            report_(found.text());
        }
    }

  private:
    static int exceptions() noexcept
    {
#ifdef __cpp_lib_uncaught_exceptions
        return std::uncaught_exceptions();
#else
        return std::uncaught_exception() ? 1 : 0;
#endif
    }

    Report report_;
    int exceptions_ = exceptions();
    measurement measurement_; /* last: it begins when all else has been made */
};

} // namespace cairn

#define CAIRN_JOIN_(one, other)  one##other
#define CAIRN_NAMED_(name, line) CAIRN_JOIN_(name, line)

/* Measure the statement, then run `report`, which uses cairn_verdict_. */
#define CAIRN_MEASURE_(limits, report, ...)                             \
    do {                                                                \
        cairn::measurement cairn_measurement_(limits);                  \
        __VA_ARGS__;                                                    \
        const cairn::verdict cairn_verdict_ = cairn_measurement_.end(); \
        report;                                                         \
    } while (false)

/* Measure the rest of the block, then run `report`, which uses cairn_text_. */
#define CAIRN_HERE_(limits, report)                                                         \
    const auto CAIRN_NAMED_(cairn_report_, __LINE__) = [](const std::string &cairn_text_) { \
        report;                                                                             \
    };                                                                                      \
    const cairn::guard<decltype(CAIRN_NAMED_(cairn_report_, __LINE__))> CAIRN_NAMED_(       \
        cairn_guard_, __LINE__)(limits, CAIRN_NAMED_(cairn_report_, __LINE__))

/* Report with one of GoogleTest's macros for failures. */
#define CAIRN_FAIL_(fail)                \
    if (!cairn_verdict_.holds()) {       \
        fail() << cairn_verdict_.text(); \
    }

/* GoogleTest: the statement, and a failure that is fatal (ASSERT) or is not (EXPECT). */
#define CAIRN_EXPECT(limits, ...) CAIRN_MEASURE_(limits, CAIRN_FAIL_(ADD_FAILURE), __VA_ARGS__)
#define CAIRN_ASSERT(limits, ...) CAIRN_MEASURE_(limits, CAIRN_FAIL_(GTEST_FAIL), __VA_ARGS__)
#define CAIRN_EXPECT_HERE(limits) CAIRN_HERE_(limits, ADD_FAILURE() << cairn_text_)

/* Catch2 and doctest. */
#define CAIRN_CHECK(limits, ...) \
    CAIRN_MEASURE_(limits, INFO(cairn_verdict_.text()); CHECK(cairn_verdict_.holds()), __VA_ARGS__)
#define CAIRN_REQUIRE(limits, ...)                      \
    CAIRN_MEASURE_(limits, INFO(cairn_verdict_.text()); \
                   REQUIRE(cairn_verdict_.holds()), __VA_ARGS__)
#define CAIRN_CHECK_HERE(limits) CAIRN_HERE_(limits, FAIL_CHECK(cairn_text_))

#endif
