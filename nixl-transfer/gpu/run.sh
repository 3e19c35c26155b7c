#!/usr/bin/env bash
# Measures NIXL's transfers of GPU memory on a machine with an NVIDIA GPU. What it needs and prints: README.md beside it.
#
#   nixl-transfer/gpu/run.sh [OUT]         measures; the lines go to the folder OUT too (default: ./gpu-results)
#   nixl-transfer/gpu/run.sh --needs       only says what this machine has and lacks
#   nixl-transfer/gpu/run.sh --pack FILE   packs Java, NIXL, the classes and this script for a bare machine (.tgz)
#   nixl-transfer/gpu/run.sh --check       checks this script itself; works on any machine
#
#   KVASIR_JAVA           a Java 25 home; default: jre/ beside the script, then what ../../kvasir takes
#   KVASIR_NIXL_VENV      the Python prefix where a NIXL wheel is installed; default: nixl/ beside the script
#   KVASIR_GPU_CLASSES    class path with GpuBench; default: lib/ beside the script, then what Maven built
#   KVASIR_CUDA_LIBRARY   the driver's libcuda.so.1, where the loader does not find it
#   KVASIR_GPU_LIMIT_S    longest time of one measurement in seconds; default 100
#
# Exit codes: 0 measured, 1 a measurement failed, 2 wrong arguments, 3 something needed is missing.
set -euo pipefail

script=$(readlink -f "$0")
here=$(dirname "$script")
main=io.kvasir.bench.gpu.GpuBench
main_file=io/kvasir/bench/gpu/GpuBench.class
lacking=0
children=()

say() { printf 'gpu: %s\n' "$*"; }

fail() {
    printf 'gpu: %s\n' "$2" >&2
    exit "$1"
}

lacks() {
    printf 'gpu: needs %s\n' "$*" >&2
    lacking=1
}

find_java() {
    local home
    if [ -n "${KVASIR_JAVA:-}" ]; then
        home=$KVASIR_JAVA
    elif [ -x "$here/jre/bin/java" ]; then
        home=$here/jre
    elif [ -x "$here/../../kvasir" ]; then
        # the Java that the launcher would take
        home=$(KVASIR_DRY_RUN=yes "$here/../../kvasir" 2>/dev/null | head -n 1 || true)
        home=${home%/bin/java}
    else
        home=${JAVA_HOME:-}
    fi
    java=$home/bin/java
    if [ ! -x "$java" ] || ! grep -qs '^JAVA_VERSION="25' "$home/release"; then
        lacks "Java 25: ${home:-none found} is not one; set KVASIR_JAVA to its home"
        java=
    else
        say "has Java 25: $home"
    fi
}

# Sets driver to the first libcuda.so.1 that the loader or the usual container mounts have, and driver_path to its
# folder where the loader, and with it UCX, does not find it by itself.
find_driver() {
    local folder path=${LD_LIBRARY_PATH:-}
    driver=${KVASIR_CUDA_LIBRARY:-}
    driver_path=
    if [ -z "$driver" ]; then
        driver=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n '/libcuda\.so\.1 .*x86-64/{s/.*=> //p;q}' || true)
        [ -z "$driver" ] || return 0
    fi
    for folder in ${path//:/ } /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/local/cuda/compat; do
        if [ -z "$driver" ] && [ -e "$folder/libcuda.so.1" ]; then
            driver=$folder/libcuda.so.1
        fi
    done
    [ -e "$driver" ] || driver=
    driver_path=${driver:+$(dirname "$driver")}
}

find_gpu() {
    find_driver
    if [ -z "$driver" ]; then
        lacks "an NVIDIA GPU: there is no ${KVASIR_CUDA_LIBRARY:-libcuda.so.1} here; install the driver or set KVASIR_CUDA_LIBRARY"
        return
    fi
    if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
        lacks "an NVIDIA GPU: $driver is here, but no /dev/nvidia0"
        return
    fi
    say "has a GPU: $driver, $(compgen -G '/dev/nvidia[0-9]*' | tr '\n' ' ')"
}

# Sets capi to the library of the CUDA 13 wheel, else of the CUDA 12 wheel, under a Python prefix.
find_nixl() {
    local prefix=${KVASIR_NIXL_VENV:-$here/nixl} wheel found
    capi=
    for wheel in cu13 cu12; do
        for found in "$prefix"/lib*/python*/site-packages "$prefix"; do
            if [ -z "$capi" ] && [ -e "$found/.nixl_$wheel.mesonpy.libs/libnixl_capi.so" ]; then
                capi=$found/.nixl_$wheel.mesonpy.libs/libnixl_capi.so
                site=$found
                cuda=$wheel
            fi
        done
    done
    if [ -z "$capi" ]; then
        lacks "NIXL: no libnixl_capi.so under $prefix; pip install --no-deps nixl-cu13 and set KVASIR_NIXL_VENV to the Python prefix"
        return
    fi
    say "has NIXL: $capi"
    # UCX finds GPU memory by itself with libcudart; without it the memory kind comes from the descriptor
    cudart=$(find "$prefix" -name "libcudart.so.${cuda#cu}" -print -quit 2>/dev/null || true)
    [ -n "$cudart" ] || say "has no libcudart.so.${cuda#cu} there: UCX leaves its allocation hooks out"
}

has_main() {
    local part parts
    IFS=: read -ra parts <<<"$1"
    for part in ${parts[@]+"${parts[@]}"}; do
        if [ -e "$part/$main_file" ]; then
            return 0
        fi
        # names in a jar are not compressed
        if [ -f "$part" ] && grep -qaF "$main_file" "$part"; then
            return 0
        fi
    done
    return 1
}

find_classes() {
    local root=$here/../.. jar
    classes=${KVASIR_GPU_CLASSES:-}
    if [ -z "$classes" ] && [ -d "$here/lib" ]; then
        for jar in "$here"/lib/*.jar; do
            classes=${classes:+$classes:}$jar
        done
    fi
    if [ -z "$classes" ]; then
        classes=$(readlink -m "$root/bench/target/classes"):$(readlink -m "$root/panama-bindings/target/classes")
    fi
    if ! has_main "$classes"; then
        lacks "kvasir-bench with GpuBench: no $main in $classes; build it (mvn -pl bench -am package) or set KVASIR_GPU_CLASSES"
        return
    fi
    say "has $main: $classes"
}

find_all() {
    [ "$(uname -sm)" = 'Linux x86_64' ] || lacks "Linux on x86-64, this is $(uname -sm)"
    find_gpu
    find_nixl
    find_java
    find_classes
}

stop_children() {
    local child
    for child in ${children[@]+"${children[@]}"}; do
        kill "$child" 2>/dev/null || true
    done
}

# become_bench TRANSPORTS ARGUMENT...: turns the calling shell into one process of the measurement, so that ending that
# shell's process ends the measurement.
become_bench() {
    local tls=$1
    shift
    exec env UCX_TLS="$tls" UCX_PROTO_INFO=y NIXL_LOG_LEVEL="${NIXL_LOG_LEVEL:-WARN}" \
        KVASIR_NIXL_LIBRARY="$capi" KVASIR_CUDA_LIBRARY="$driver" LD_LIBRARY_PATH="$library_path" \
        KVASIR_GPU_LIMIT_S="$limit" \
        timeout --kill-after=5 "$limit" \
        "$java" --enable-native-access=ALL-UNNAMED -Xmx512m -XX:+UseSerialGC -cp "$classes" "$main" "$@"
}

# alone NAME TRANSPORTS ARGUMENT...: a measurement in one process.
alone() {
    local name=$1 status=0
    shift
    say "== $name"
    become_bench "$@" 2>&1 | tee "$out/$name.txt" || status=1
    [ $status = 0 ] || failed="$failed $name"
}

# pair NAME TRANSPORTS ARGUMENT...: a target that serves in the background, and an initiator that measures against it.
pair() {
    local name=$1 tls=$2 exchange status=0
    shift 2
    say "== $name"
    exchange=$(mktemp -d "$out/exchange.XXXXXX")
    become_bench "$tls" target --exchange "$exchange" "$@" >"$out/$name.target.txt" 2>&1 &
    local target=$!
    children+=("$target")
    become_bench "$tls" initiator --exchange "$exchange" "$@" 2>&1 | tee "$out/$name.txt" || status=1
    kill "$target" 2>/dev/null || true
    wait "$target" 2>/dev/null || true
    rm -rf "$exchange"
    [ $status = 0 ] || failed="$failed $name"
}

measure() {
    out=$1
    failed=
    limit=${KVASIR_GPU_LIMIT_S:-100}
    library_path=${LD_LIBRARY_PATH:-}
    [ -z "$cudart" ] || library_path=$(dirname "$cudart")${library_path:+:$library_path}
    [ -z "$driver_path" ] || library_path=$driver_path${library_path:+:$library_path}
    mkdir -p "$out"
    out=$(readlink -f "$out")
    trap stop_children EXIT
    {
        date -u +'date %Y-%m-%dT%H:%M:%SZ'
        uname -srm
        nvidia-smi --query-gpu=name,driver_version,memory.total,pci.bus_id --format=csv,noheader 2>/dev/null || echo 'nvidia-smi: none'
        "$java" -version 2>&1 | tail -n 1
        echo "nixl $capi"
    } | tee "$out/machine.txt"
    alone copy all copy
    pair dram-dram cma,tcp,self --kinds dram-dram
    alone one-agent cuda_copy,tcp,self agent --kinds vram-vram,vram-dram,dram-vram
    pair vram-vram cuda_ipc,cuda_copy,tcp,self --kinds vram-vram
    pair vram-dram cuda_ipc,cuda_copy,cma,tcp,self --kinds vram-dram,dram-vram
    if ! grep -qs 'cuda_ipc/' "$out/vram-vram.txt" "$out/vram-vram.target.txt"; then
        failed="$failed lane"
        say "vram-vram: UCX names no lane over cuda_ipc; the numbers are of another transport"
    fi
    [ -z "$failed" ] || fail 1 "failed:$failed; see $out"
    say "done: $out"
}

# Prints the library and, one after another, what it needs out of the wheel; $1 is the wheel's real folder.
closure() {
    local site=$1 file
    shift
    for file in "$@"; do
        printf '%s\n' "$file"
        ldd "$file" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
    done | while read -r file; do
        case $(readlink -f "$file") in
            "$site"/*) readlink -f "$file" ;;
        esac
    done | sort -u
}

pack() {
    local file=$1 site_real libs
    find_nixl
    find_java
    find_classes
    [ $lacking = 0 ] || exit 3
    local jlink=${java%/java}/jlink
    [ -x "$jlink" ] || fail 3 "needs jlink: $jlink is not there; set KVASIR_JAVA to a JDK"
    kit=$(mktemp -d)
    trap 'rm -rf "$kit"' EXIT
    mkdir "$kit/gpu" "$kit/gpu/lib" "$kit/gpu/nixl"
    "$jlink" --add-modules java.base --strip-debug --no-header-files --no-man-pages --compress zip-9 --output "$kit/gpu/jre"
    site_real=$(readlink -f "$site")
    libs=$site_real/.nixl_$cuda.mesonpy.libs
    # UCX loads its modules by name from beside itself: they are no one's dependency
    closure "$site_real" "$libs/libnixl_capi.so" "$libs"/plugins/libplugin_{UCX,POSIX}.so \
        "$site_real/nixl_$cuda.libs"/ucx/lib{uct_cma,uct_cuda,ucm_cuda}*.so* | sed "s|^$site_real/||" |
        tar -C "$site_real" -cf - -T - | tar -C "$kit/gpu/nixl" -xf -
    [ -z "$cudart" ] || cp "$(readlink -f "$cudart")" "$kit/gpu/nixl/nixl_$cuda.libs/$(basename "$cudart")"
    copy_classes "$kit/gpu/lib"
    cp "$script" "$kit/gpu/run.sh"
    cp "$here/README.md" "$kit/gpu/"
    tar -C "$kit" -czf "$file" gpu
    say "packed $file: $(du -h "$file" | cut -f1), $(du -sh "$kit/gpu" | cut -f1) unpacked"
}

copy_classes() {
    local part parts number=0
    IFS=: read -ra parts <<<"$classes"
    for part in "${parts[@]}"; do
        number=$((number + 1))
        if [ -d "$part" ]; then
            "${java%/java}/jar" --create --file "$1/$number.jar" -C "$part" .
        else
            cp "$part" "$1/"
        fi
    done
}

# What can be known of this script without a GPU: its syntax, and that it refuses and says why.
check() {
    local text status=0 word
    bash -n "$script"
    text=$(env -i PATH="$PATH" KVASIR_CUDA_LIBRARY=/nonexistent/libcuda.so.1 KVASIR_NIXL_VENV=/nonexistent \
        KVASIR_JAVA=/nonexistent KVASIR_GPU_CLASSES=/nonexistent "$script" /nonexistent/out 2>&1) || status=$?
    [ $status = 3 ] || fail 1 "check: exit code $status where nothing is, not 3: $text"
    for word in 'an NVIDIA GPU' NIXL 'Java 25' 'kvasir-bench with GpuBench'; do
        grep -qF "gpu: needs $word: " <<<"$text" || fail 1 "check: does not say that it needs $word: $text"
    done
    if grep -qv '^gpu: ' <<<"$text"; then
        fail 1 "check: says more than it means to: $text"
    fi
    status=0
    "$script" --no-such-option >/dev/null 2>&1 || status=$?
    [ $status = 2 ] || fail 1 "check: exit code $status for a wrong option, not 2"
    say "check: syntax, refusals and exit codes are right"
}

case ${1:-} in
    --check) check ;;
    --needs)
        find_all
        exit $((lacking * 3))
        ;;
    --pack)
        [ $# = 2 ] || fail 2 "--pack wants the file to write"
        pack "$2"
        ;;
    -*) fail 2 "unknown option $1; the head of $script lists them" ;;
    *)
        find_all
        [ $lacking = 0 ] || exit 3
        measure "${1:-gpu-results}"
        ;;
esac
