#!/bin/sh
# SPDX-License-Identifier: MIT
# build_tarball: builds cairn for other systems than this one: any Linux with glibc 2.31 or newer, as
# an archive that runs from each folder.
#
#   tools/build_tarball.sh BUILD [MACHINE]        writes BUILD/cairn-VERSION-linux-MACHINE.tar.gz
#
# MACHINE is x86_64, which it is without, or aarch64, whose compiler is a cross compiler.
#
# How: this system's compiler builds against the headers and libraries of Debian 11, which mmdebstrap
# fetches from Debian's archive (BUILD/sysroot, kept for the next build). What Debian 11 lacks is
# taken from Debian 12: SQLite, linked statically, and Zydis, whose library needs no newer glibc and
# which decodes x86-64 only.
# All libraries except glibc's are packed beside libcairn_preload.so in lib/cairn, where no other
# program looks; the executable finds them by its own place (RPATH). The build fails if any file needs
# a symbol of a newer glibc.
set -eu

top=$(realpath "$(dirname "$0")/..")
mkdir -p "$1"
build=$(realpath "$1")
machine=${2:-x86_64}
sysroot=$build/sysroot
triplet=$machine-linux-gnu
multiarch=usr/lib/$triplet
newest_glibc=2.31         # for what runs in cairn's own processes
newest_glibc_preload=2.17 # for what is loaded into programs
of_glibc=' libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libresolv.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 '
packages="libc6-dev libdw-dev libelf-dev libiberty-dev libcurl4-gnutls-dev libzstd-dev zlib1g-dev libxxhash-dev
    libjansson-dev libmicrohttpd-dev libncurses-dev libpcre2-dev libbz2-dev libdebuginfod1"
loaded_by_name="libmicrohttpd.so.12 libdebuginfod.so.1 libcurl-gnutls.so.4"

fail() {
    echo "build_tarball: $1" >&2
    exit 1
}

case $machine in
x86_64) debian=amd64 objdump=objdump toolchain= archives= headers= ;;
aarch64) # the archive of Debian 11's security updates lists packages for arm64 that it lacks
    debian=arm64 objdump=$triplet-objdump toolchain="--toolchain $top/cmake/aarch64-linux-gnu.cmake"
    archives=http://deb.debian.org/debian
    headers="-isystem $sysroot/usr/include/$triplet -isystem $sysroot/usr/include" # else those of the compiler's libc
    ;;
*) fail "there is no archive for $machine" ;;
esac

make_sysroot() {
    rm -rf "$sysroot" "$sysroot.new"
    mmdebstrap --quiet --variant=extract --architectures="$debian" --include="$(echo $packages | tr ' ' ,)" \
        bullseye "$sysroot.new" $archives
    newer=
    if [ "$machine" = aarch64 ]; then
        newer=$build/newer
        "$top/tools/aarch64/unpack_debian.sh" "$newer" libsqlite3-dev
    else
        dpkg -L libzydis-dev libzydis4.0 libzycore-dev libzycore1.4 | grep -E '^/usr/(include|lib|share/doc)/' |
            tar -c --no-recursion -C / -T - 2>/dev/null | tar -x -C "$sysroot.new"
    fi
    cp "$newer/$multiarch/libsqlite3.a" "$sysroot.new/$multiarch"
    cp "$newer/usr/include/sqlite3.h" "$sysroot.new/usr/include"
    cp -r "$newer/usr/share/doc/libsqlite3-0" "$sysroot.new/usr/share/doc"
    # Links to absolute paths would lead out of it.
    find "$sysroot.new/usr" "$sysroot.new"/lib* -type l -lname '/*' | while read -r link; do
        ln -snfr "$sysroot.new$(readlink "$link")" "$link"
    done
    echo $packages >"$sysroot.new/packages"
    mv "$sysroot.new" "$sysroot"
}

# The compiler looks into the folders of this system before those of the other one, unless they are
# named. The library that is loaded into programs needs libpthread: before glibc 2.34 it has the
# functions for keys.
configure() {
    folders="-L$sysroot/$multiarch -L$sysroot/lib/$triplet -B$sysroot/$multiarch -static-libgcc"
    cmake $toolchain -S "$top" -B "$build/tarball" -G Ninja -Wno-dev -DBUILD_TESTING=OFF -DCAIRN_WERROR=OFF \
        -DCMAKE_SYSROOT="$sysroot" -DCMAKE_SKIP_RPATH=ON \
        -DCMAKE_C_FLAGS="-include $top/cmake/older_system.h $headers" \
        -DCMAKE_C_STANDARD_LIBRARIES="-lpthread -ldl" \
        -DCMAKE_EXE_LINKER_FLAGS="$folders -Wl,--disable-new-dtags -Wl,-rpath,'\$ORIGIN/../lib/cairn'" \
        -DCMAKE_SHARED_LINKER_FLAGS="$folders" >/dev/null
}

needed_by() {
    readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# bundle NAME: copies a library of the sysroot and what it needs.
bundle() {
    case $of_glibc in *" $1 "*) return ;; esac
    ! [ -e "$tree/lib/cairn/$1" ] || return 0
    file=$(find "$sysroot/$multiarch" "$sysroot/lib/$triplet" -maxdepth 1 -name "$1" | head -1)
    [ -n "$file" ] || fail "no $1 in $sysroot"
    cp -L "$file" "$tree/lib/cairn/$1"
    chmod 644 "$tree/lib/cairn/$1"
    for name in $(needed_by "$file"); do
        bundle "$name"
    done
}

# The licences of the libraries, and the versions of their sources.
describe_bundle() {
    licences=$tree/share/doc/cairn/libraries
    mkdir -p "$licences"
    for folder in "$sysroot"/usr/share/doc/lib* "$sysroot/usr/share/doc/zlib1g"; do
        case $(basename "$folder") in libiberty-dev) ;; *-dev) continue ;; esac
        cp -L "$folder/copyright" "$licences/$(basename "$folder").copyright"
        zcat -f "$folder"/changelog.Debian*gz | head -1 | sed 's/) .*/)/'
    done | sort -u >"$licences/SOURCES"
}

# check_glibc NEWEST FILE
check_glibc() {
    needs=$($objdump -T "$2" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
    [ "$(printf 'GLIBC_%s\n%s\n' "$1" "$needs" | sort -V | tail -1)" = "GLIBC_$1" ] ||
        fail "$2 needs $needs, and only GLIBC_$1 may be needed"
}

[ "$(cat "$sysroot/packages" 2>/dev/null)" = "$(echo $packages)" ] || make_sysroot
configure
cmake --build "$build/tarball"
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:.*=//p' "$build/tarball/CMakeCache.txt")
archive=cairn-$version-linux-$machine
tree=$build/$archive
rm -rf "$tree"
cmake --install "$build/tarball" --prefix "$tree" --strip >/dev/null
for library in $(needed_by "$tree/bin/cairn") $loaded_by_name; do
    bundle "$library"
done
ln -s libcurl-gnutls.so.4 "$tree/lib/cairn/libcurl.so.4"
describe_bundle
for file in "$tree/bin/cairn" "$tree"/lib/cairn/*; do
    check_glibc $newest_glibc "$file"
done
check_glibc $newest_glibc_preload "$tree/lib/cairn/libcairn_preload.so"
tar -c -z -f "$tree.tar.gz" -C "$build" --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@${SOURCE_DATE_EPOCH:-$(git -c safe.directory="$top" -C "$top" log -1 --format=%ct)}" "$archive"
echo "$tree.tar.gz"
