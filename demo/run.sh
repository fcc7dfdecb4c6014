#!/bin/sh
# SPDX-License-Identifier: MIT
# run: build the demo program, record it, print the report, explain it, and write it as a page.
#
#   demo/run.sh BUILD
set -eu

build=$1
source=$(dirname "$0")
out=$build/demo
mkdir -p "$out"

say() {
    printf '\n\033[1m%s\033[0m\n' "$*"
}
[ -t 1 ] || say() {
    printf '\n%s\n' "$*"
}

say "\$ g++ -O2 -g -pthread -o $out/shop $source/shop.cpp"
[ "$out/shop" -nt "$source/shop.cpp" ] || g++ -O2 -g -pthread -o "$out/shop" "$source/shop.cpp"

say "\$ $build/bin/cairn -o $out/shop.cairn $out/shop"
"$build/bin/cairn" -o "$out/shop.cairn" "$out/shop"

say "\$ $build/bin/cairn report $out/shop.cairn"
"$build/bin/cairn" report "$out/shop.cairn"

say "What to see"
cat <<'TEXT'
  Peak       session_cache::visit holds most of it: the cache keeps every visitor until the end.
             copy_all comes next: nightly_report copies the whole cache at the worst moment.
  Calls      page::cell and page::render make a string for each +. Reserving one string and
             appending to it would remove nearly all of these allocations.
  Temporary  spam::is_suspicious calls mentions(), which takes its text by value: ten copies of
             each page, only to be read. A single & would remove all of them.
  Leaked     payments::charge forgets 800 receipts and their texts, one for each declined payment,
             where it returns false (demo/shop.cpp). Blocks that libstdc++ never frees are
             counted as suppressed.
  Stacks     A call site is a line of the shop, not of std::vector or std::regex. 'cairn report -p'
             prints its callers.
TEXT
say "\$ $build/bin/cairn export --html -o $out/shop.html $out/shop.cairn"
"$build/bin/cairn" export --html -o "$out/shop.html" "$out/shop.cairn"
cat <<TEXT

All of this as a page for any browser:     $out/shop.html
The viewer, with filters and comparison:   $build/bin/cairn analyze $out/shop.cairn
TEXT
