// SPDX-License-Identifier: MIT
//! Budgets: the work of the calling thread may not exceed them, where cairn records it.

use crate::counts::{Peak, Scope, Stats};
use core::fmt;
use core::panic::Location;

/// Limits for a piece of the calling thread's work. Without a recorder the work just runs, and every
/// budget is kept.
///
/// ```
/// let words = cairn::Budget::new().allocations(100).peak_bytes(10 << 20).run(|| {
///     "two words".split(' ').map(String::from).collect::<Vec<_>>()
/// });
/// assert_eq!(words.len(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Budget {
    allocations: Option<u64>,
    allocated_bytes: Option<u64>,
    live_bytes: Option<u64>,
    peak_bytes: Option<u64>,
}

/// What the work took.
struct Spent {
    stats: Option<Stats>,
    peak_bytes: Option<u64>,
}

impl Budget {
    /// Without any limit.
    pub const fn new() -> Budget {
        Budget { allocations: None, allocated_bytes: None, live_bytes: None, peak_bytes: None }
    }

    /// At most so many allocations.
    pub const fn allocations(mut self, most: u64) -> Budget {
        self.allocations = Some(most);
        self
    }

    /// At most so many bytes, all allocations added up.
    pub const fn allocated_bytes(mut self, most: u64) -> Budget {
        self.allocated_bytes = Some(most);
        self
    }

    /// At most so many bytes that the work allocated and did not free.
    pub const fn live_bytes(mut self, most: u64) -> Budget {
        self.live_bytes = Some(most);
        self
    }

    /// At most so many bytes at once.
    pub const fn peak_bytes(mut self, most: u64) -> Budget {
        self.peak_bytes = Some(most);
        self
    }

    /// Runs the work, and returns its value.
    ///
    /// # Panics
    ///
    /// If the work exceeded a limit.
    #[track_caller]
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let measure = Measure::begin(self);
        let value = work();
        let spent = measure.end();
        self.judge(format_args!(""), &spent);
        value
    }

    /// Judges the budget when the guard is dropped. The attribute `budget` makes this call.
    #[doc(hidden)]
    #[must_use]
    #[track_caller]
    pub fn guard(self, function: &'static str) -> BudgetGuard {
        let place = Location::caller();
        BudgetGuard { budget: self, function, place, measure: Some(Measure::begin(self)) }
    }

    #[track_caller]
    fn judge(self, of: fmt::Arguments, spent: &Spent) {
        let excess = Excess { budget: self, spent };
        if excess.each().iter().any(|line| line.is_broken()) {
            panic!("{}{}", of, excess);
        }
    }
}

/// Asks the recorder only for what the budget limits.
struct Measure {
    scope: Option<Scope>,
    peak: Option<Peak>,
}

impl Measure {
    fn begin(budget: Budget) -> Measure {
        let counts = budget.allocations.or(budget.allocated_bytes).or(budget.live_bytes);
        Measure {
            scope: counts.map(|_| Scope::thread()),
            peak: budget.peak_bytes.map(|_| Peak::begin()),
        }
    }

    fn end(self) -> Spent {
        Spent {
            peak_bytes: self.peak.and_then(Peak::end),
            stats: self.scope.and_then(|scope| scope.spent()),
        }
    }
}

/// A limit, and what was found; no limit or nothing known: `None`. In words it is `4 allocations`,
/// or `4 bytes at once`.
struct Line {
    unit: &'static str,
    which: &'static str,
    found: Option<i128>,
    most: Option<u64>,
}

impl Line {
    fn is_broken(&self) -> bool {
        matches!((self.found, self.most), (Some(found), Some(most)) if found > i128::from(most))
    }
}

struct Excess<'a> {
    budget: Budget,
    spent: &'a Spent,
}

impl Excess<'_> {
    fn each(&self) -> [Line; 4] {
        let stats = |of: fn(&Stats) -> i128| self.spent.stats.as_ref().map(of);
        [
            Line {
                unit: "allocation",
                which: "",
                found: stats(|stats| stats.allocations.into()),
                most: self.budget.allocations,
            },
            Line {
                unit: "byte",
                which: " allocated",
                found: stats(|stats| stats.allocated_bytes.into()),
                most: self.budget.allocated_bytes,
            },
            Line {
                unit: "byte",
                which: " not freed",
                found: stats(|stats| stats.live_bytes.into()),
                most: self.budget.live_bytes,
            },
            Line {
                unit: "byte",
                which: " at once",
                found: self.spent.peak_bytes.map(i128::from),
                most: self.budget.peak_bytes,
            },
        ]
    }
}

impl fmt::Display for Excess<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for line in self.each().iter().filter(|line| line.is_broken()) {
            let (found, most) = (line.found.unwrap_or(0), line.most.unwrap_or(0));
            let (unit, which, plural) = (line.unit, line.which, if found == 1 { "" } else { "s" });
            write!(out, "{separator}{found} {unit}{plural}{which}; at most {most} allowed")?;
            separator = ", and ";
        }
        Ok(())
    }
}

/// Ends with the function that the attribute is on.
#[doc(hidden)]
pub struct BudgetGuard {
    budget: Budget,
    function: &'static str,
    place: &'static Location<'static>, // that of the panic is in this file
    measure: Option<Measure>,
}

/// A second panic would end the process, and hide the first.
fn is_panicking() -> bool {
    #[cfg(feature = "std")]
    return std::thread::panicking();
    #[cfg(not(feature = "std"))]
    return false;
}

impl Drop for BudgetGuard {
    fn drop(&mut self) {
        let spent = self.measure.take().map(Measure::end);
        if let (Some(spent), false) = (spent, is_panicking()) {
            self.budget.judge(format_args!("{}: {}: ", self.place, self.function), &spent);
        }
    }
}

/// `assert_allocations!(most, || work)`: runs the closure, returns its value, and panics if the
/// calling thread made more than `most` allocations in it. Without a recorder it never panics.
///
/// ```
/// let sum = cairn::assert_allocations!(0, || (1..10).sum::<u32>());
/// assert_eq!(sum, 45);
/// ```
#[macro_export]
macro_rules! assert_allocations {
    ($most:expr, $work:expr $(,)?) => {
        $crate::Budget::new().allocations($most).run($work)
    };
}

/// `assert_live_bytes!(most, || work)`: likewise for the bytes that the closure allocated and did
/// not free. A value that it returns counts.
///
/// ```
/// cairn::assert_live_bytes!(0, || drop(vec![0u8; 1000]));
/// ```
#[macro_export]
macro_rules! assert_live_bytes {
    ($most:expr, $work:expr $(,)?) => {
        $crate::Budget::new().live_bytes($most).run($work)
    };
}

/// `assert_peak!(most, || work)`: likewise for the bytes that the closure held at once.
///
/// ```
/// cairn::assert_peak!(1 << 20, || drop(vec![0u8; 1000]));
/// ```
#[macro_export]
macro_rules! assert_peak {
    ($most:expr, $work:expr $(,)?) => {
        $crate::Budget::new().peak_bytes($most).run($work)
    };
}
