#!/bin/sh
# SPDX-License-Identifier: MIT
# test_machine: runs tests on emulated AArch64 machines with Debian's own kernel.
#
#   tools/aarch64/test_machine.sh BUILD [CYCLES]
#
# BUILD is a cross build with tests (build.sh). There are three machines:
#   max           all that qemu can emulate, with pointer authentication, landing pads, memory tags; Linux 6.1; entries
#   cortex-a72    none of these; entries_old
#   neoverse-n1   Linux 6.12 with pages of 16 KiB; entries_pages
# The entries are in tests/machines/aarch64. With CYCLES only the first machine runs, and only attaches and
# detaches so many times to each program that checks itself. With the variable ENTRIES, regular expressions for
# ctest, one machine runs these: the first, or the one that MACHINE names. With LONG the first runs what
# takes longer (entries_long).
#
# How: qemu-system-aarch64 needs no privilege, no KVM, no network. The root is a file with an ext4 system:
# Debian's packages (unpack_debian.sh), the sources and the build, at the same paths as here. An initramfs loads
# the modules for disks. Results come back as a tar file on a second disk: BUILD/results/PROCESSOR. Prints "N
# passed, N failed"; the status is 0 if all entries have run and passed.
#
# Time: each of the machine's processors has a thread here, and its clock is this machine's. All takes a quarter
# of an hour on two processors. A clock that counts instructions (-icount) has one thread for both processors, and
# takes five times as long.
set -eu

build=$(realpath "$1")
cycles=${2:-2}
top=$(realpath "$(dirname "$0")/../..")
machine=$build/machine
here=$top/tests/machines/aarch64
packages="linux-image-cloud-arm64 libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 libgoogle-perftools4 musl clang-14 ripgrep
    gcc g++ clang musl-tools libc6-dev zstd curl openssl make nodejs busybox-static bash coreutils dash findutils gawk grep gzip hostname mount
    ncurses-base procps sed tar util-linux python3 python3-pytest python3-pyte cmake gdb binutils strace libc-bin libc6-dbg
    libatomic1 libcmocka0 libdw1 libelf1 libcurl4 libmicrohttpd12 libdebuginfod1 libsqlite3-0 libpcre2-8-0 libjansson4 libxxhash0
    libzstd1 zlib1g libstdc++6"

fail() {
    echo "test_machine: $1" >&2
    exit 1
}

# Python's modules, which a package compiles where it is installed. The first start takes 10 s there without.
compile_python() {
    /usr/bin/python3 -m compileall -q -j 2 --invalidation-mode unchecked-hash "$machine/debian/usr/lib/python3" \
        "$machine/debian/usr/lib/python3.11" >/dev/null || fail "Python's modules cannot be compiled"
}

# add_module NAME: copies a module of the kernel in $kernel, after those that it needs. The kernel itself may have it.
add_module() {
    file=$(find "$kernel" -name "$1.ko*" -o -name "$(echo "$1" | tr _ -).ko*" | head -1)
    [ -n "$file" ] && [ ! -e "$folder/modules/$1.ko" ] || return 0
    case $file in
    *.xz) xz -dc "$file" >"$folder/modules/$1.ko" ;;
    *) cp "$file" "$folder/modules/$1.ko" ;;
    esac
    for needed in $(tr '\0' '\n' <"$folder/modules/$1.ko" | sed -n 's/^depends=//p' | tr ',' ' '); do
        add_module "$needed"
    done
    echo "$1" >>"$folder/modules/order"
}

# make_initramfs KERNEL: for the kernel that is unpacked in that folder.
make_initramfs() {
    kernel=$1
    folder=$machine/initramfs
    rm -rf "$folder"
    mkdir -p "$folder/bin" "$folder/dev" "$folder/root" "$folder/modules"
    cp "$machine/debian/bin/busybox" "$folder/bin"
    cp "$here/init" "$folder"
    for module in virtio_pci virtio_blk crc32c_generic ext4; do
        add_module "$module"
    done
    (cd "$folder" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$kernel/initramfs.gz"
}

# The sources, and the build without what only a compiler reads.
copy_trees() {
    mkdir -p "$root$top" "$root$build"
    git -c safe.directory="$top" -C "$top" ls-files -z --cached --others --exclude-standard |
        tar -c -C "$top" --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$root$top"
    tar -c -C "$build" --exclude='*.o' --exclude='*.a' --exclude=CMakeFiles --exclude=./sysroot --exclude=./machine \
        --exclude=./results . | tar -x -C "$root$build"
}

make_root() {
    root=$machine/root
    rm -rf "$root" "$machine/root.img"
    cp -a "$machine/debian" "$root"
    copy_trees
    ln -sf gcc "$root/usr/bin/cc" # a package's script would do so
    mkdir -p "$root/machine"
    cp "$here/run" "$here"/entries* "$here/left_out" "$root/machine"
    printf '%s\n' ${ENTRIES:-} >"$root/machine/entries_chosen"
    printf 'BUILD=%s\nSOURCE=%s\n' "$build" "$top" >"$root/machine/environment"
    printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
    printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
    mke2fs -q -t ext4 -O ^has_journal -d "$root" "$machine/root.img" 4G
    rm -rf "$root"
}

# prepare_pages: the kernel with larger pages.
prepare_pages() {
    DEBIAN_RELEASE=trixie "$top/tools/aarch64/unpack_debian.sh" "$machine/pages" linux-image-arm64-16k
    make_initramfs "$machine/pages"
}

# run_machine PROCESSOR ENTRIES SECONDS: after SECONDS of the machine no entry begins. The limit here is for hangs.
run_machine() {
    case $1 in
    neoverse-n1) kernel=$machine/pages ;;
    *) kernel=$machine/debian ;;
    esac
    case $1 in
    max*) board=virt,mte=on ;; # memory with tags
    *) board=virt ;;
    esac
    name=${1%%,*}
    rm -f "$machine/results.img"
    truncate -s 64M "$machine/results.img"
    timeout $(($3 + 300)) nice qemu-system-aarch64 -M "$board" -cpu "$1" -smp 2 -m 2048 \
        -nographic -no-reboot -nic none \
        -kernel "$kernel"/boot/vmlinuz-* -initrd "$kernel/initramfs.gz" \
        -append "console=ttyAMA0 quiet panic=-1 entries=$2 seconds=$3 cycles=$cycles" \
        -drive "file=$machine/root.img,format=raw,if=virtio,snapshot=on" \
        -drive "file=$machine/results.img,format=raw,if=virtio" </dev/null || fail "$name has not ended by itself"
    mkdir -p "$build/results/$name"
    tar -x -C "$build/results/$name" --strip-components=1 -f "$machine/results.img" || fail "$name has no results"
}

mkdir -p "$machine"
rm -rf "$build/results"
"$top/tools/aarch64/unpack_debian.sh" "$machine/debian" $packages
compile_python
make_initramfs "$machine/debian"
make_root
if [ -n "${ENTRIES:-}" ]; then
    [ "${MACHINE:-}" != neoverse-n1 ] || prepare_pages
    run_machine "${MACHINE:-max,pauth-impdef=on}" entries_chosen 7200
elif [ -n "${LONG:-}" ]; then
    run_machine max,pauth-impdef=on entries_long 14400
elif [ "$cycles" -ne 2 ]; then
    run_machine max,pauth-impdef=on entries_cycles 7200
else
    prepare_pages
    run_machine max,pauth-impdef=on entries 600
    run_machine cortex-a72 entries_old 300
    run_machine neoverse-n1 entries_pages 300
fi
/usr/bin/python3 "$top/tools/count_tests.py" "$build"/results/*/*.xml
! cat "$build"/results/*/bad 2>/dev/null
