# SPDX-License-Identifier: MIT
# The package for Nix. docs/packages.md says what was tried.
#
#   nix-build -E 'with import <nixpkgs> { }; callPackage ./contrib/packages/cairn.nix { }'
{
  lib,
  stdenv,
  cmake,
  ninja,
  pkg-config,
  elfutils,
  libiberty,
  curl,
  zstd,
  zlib,
  xxHash,
  jansson,
  libmicrohttpd,
  ncurses,
  pcre2,
  sqlite,
  zydis,
}:
let
  staticNcurses = ncurses.override { enableStatic = true; };
in
stdenv.mkDerivation {
  pname = "cairn";
  version = "1.0.0";
  src = lib.cleanSource ../..;

  nativeBuildInputs = [
    cmake
    ninja
    pkg-config
  ];
  buildInputs = [
    elfutils
    libiberty
    curl
    zstd
    zlib
    xxHash
    jansson
    libmicrohttpd
    staticNcurses
    pcre2
    sqlite
    zydis
  ];
  cmakeFlags = [ "-DBUILD_TESTING=OFF" ];
  dontStrip = true; # cairn finds the allocator of a static program, which self-test records, by its symbols

  # Libraries that are loaded by name are found by the path in the executable.
  postFixup = ''
    patchelf --add-rpath ${
      lib.makeLibraryPath [
        libmicrohttpd
        curl
        elfutils
      ]
    } $out/bin/cairn
  '';

  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/cairn version
  '';

  meta = {
    description = "Heap profiler that shows where the memory of a program went";
    license = lib.licenses.mit;
    platforms = [ "x86_64-linux" ];
    mainProgram = "cairn";
  };
}
