// SPDX-License-Identifier: MIT
// How a program's allocations are spread over the time of its recording. A machine that stops the program or the
// recorder for a part of a second makes another history than the program's source states, and other findings with it.

/** From the slice of the first allocation to the end. */
export function timeOfWork(points, end = points.end_ms.at(-1)) {
  return { begin: points.start_ms[points.allocations.findIndex((count) => count > 0)], end };
}

/** Gives the share of all allocations between two parts of a time: (0.5, 1) is its last half. */
function sharesOf(points, { begin, end }) {
  const all = points.allocations.reduce((sum, count) => sum + count, 0);
  const partOf = (ms) => (ms - begin) / (end - begin);
  return (from, to) => points.allocations.reduce((sum, count, i) => (
    partOf(points.start_ms[i]) >= from && partOf(points.start_ms[i]) < to ? sum + count / all : sum), 0);
}

const eighths = [4, 5, 6, 7].map((i) => i / 8);

/** workload.cpp: its cache was seen between its allocation and its end, and each third of the run has some of its rounds. */
export function isPacedWorkload({ points }) {
  const share = sharesOf(points, timeOfWork(points));
  return points.live_bytes.some((live) => live >= 3_500_000) && [0, 1 / 3, 2 / 3].every((from) => share(from, from + 1 / 3) >= 0.15);
}

/**
 * leaky.c: it served requests all the time. What they leak grows (growth_shape.h) unless they pause for a tenth of the
 * run, are fewer in some parts of it, or come in one step.
 */
export function isPacedServer({ points, processes }) {
  const time = timeOfWork(points, processes.end_ms[0]);
  const share = sharesOf(points, time);
  const works = points.start_ms.filter((_start, i) => points.allocations[i] > 0);
  const pauses = works.map((ms, i) => (works[i + 1] ?? time.end) - ms);
  const steps = works.map((ms) => (ms - time.begin) / (time.end - time.begin)).filter((from) => from >= 0.5).map((from) => share(from, from + 1 / 16));
  return Math.max(...pauses) < (time.end - time.begin) / 10 && share(0.25, 0.5) > 0.12 && share(0.9, 1.1) > 0.04 &&
    eighths.map((from) => share(from, from + 1 / 8)).every((part) => part > 0.07 && part < 0.18) && Math.max(...steps) < share(0.5, 1.1) * 0.45;
}
