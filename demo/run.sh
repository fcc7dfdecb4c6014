#!/bin/sh
# SPDX-License-Identifier: MIT
# run: build the demo program, record it, print the report, say what to see in it, and write the same as a page.
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
  Peak       session_cache::visit holds most of it: the cache keeps every visitor for ever.
             copy_all comes next: nightly_report copies all of it, at the worst moment.
  Calls      page::cell and page::render: a string for each +. Reserving one string and
             appending to it would remove nearly all of these allocations.
  Temporary  spam::is_suspicious calls mentions(), which takes its text by value: ten copies of
             each page, only to be read. A single & would remove every one of them.
  Leaked     payments::charge forgets 800 receipts and their texts, one for each declined payment:
             see demo/shop.cpp, where it returns false. What libstdc++ keeps for itself
             is told as suppressed.
  Stacks     nobody allocates in std::vector or std::regex: each site is the line of the shop that
             asked, with the way there below it.
TEXT
say "\$ $build/bin/cairn export --html -o $out/shop.html $out/shop.cairn"
"$build/bin/cairn" export --html -o "$out/shop.html" "$out/shop.cairn"
cat <<TEXT

All of this as a page for any browser:     $out/shop.html
The viewer, with filters and comparison:   $build/bin/cairn analyze $out/shop.cairn
TEXT
