# typed: true
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# The formula for Homebrew on Linux. docs/packages.md says what was tried.
#
#   git archive --prefix=cairn-1.0.0/ -o /tmp/cairn-1.0.0.tar.gz HEAD
#   brew install --build-from-source ./contrib/packages/cairn.rb
class Cairn < Formula
  desc "Heap profiler that shows where the memory of a program went"
  homepage "https://cairn.invalid/"
  url "file:///tmp/cairn-1.0.0.tar.gz"
  license "MIT"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "xxhash" => :build
  depends_on "binutils"
  depends_on "curl"
  depends_on "elfutils"
  depends_on "jansson"
  depends_on "libmicrohttpd"
  depends_on :linux
  depends_on "ncurses"
  depends_on "pcre2"
  depends_on "sqlite"
  depends_on "zlib"
  depends_on "zstd"
  depends_on "zydis"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DBUILD_TESTING=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    system bin/"cairn", "record", "-q", "-o", "ls.cairn", "ls"
    assert_match "peak heap", shell_output("#{bin}/cairn report ls.cairn")
  end
end
