#!/usr/bin/env bash
# Runs the same trials again and again under different loads; the store refuses a trial whose bytes differ
# from those it has, so a run that ends well is the proof. Called by `make soak`.
#   setup/soak.sh WHICHFS [RUNS]     RUNS of every candidate [20]
# Images are built anew for each run, by files that the host has never had. Needs WHICHFS_KERNEL (make sets it).
set -euo pipefail
whichfs=$1 runs=${2:-20}
work=$(mktemp -d)
load=()
: "${WHICHFS_KERNEL:?is not set: make soak does}"
export XDG_CACHE_HOME=$work/cache
finish() {
    [ ${#load[@]} -eq 0 ] || kill "${load[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# All candidates take part: no rule excludes one.
all=(--need unix_permissions=any --need symlinks=any --need hard_links=any --need case_sensitive=any
     --need crash_class=any --need mounts_after_cut=any --need in_current_linux=any)
choose() {
    "$whichfs" choose --size 12M --seeds 1 --fresh --json --store "$work/store" --out "$work/report" "${all[@]}" "$@" \
        2>"$work/log" >"$work/verdict" || { tail -n 20 "$work/log" >&2; return 1; }
    # The store keeps a success when a later run fails: that must not pass for "the same".
    if grep -E 'FAILED|left out' "$work/log" >&2; then return 1; fi
    ran=$((ran + $(grep -cE '^\[[0-9]+/[0-9]+\]' "$work/log")))
}
burners() {
    # Two on the core that the first worker is pinned to.
    for _ in 1 2; do taskset -c 0 sh -c 'while :; do :; done' & load+=($!); done
}
disk() {
    sh -c 'while :; do dd if=/dev/zero of="$1/junk" bs=1M count=512 conv=fsync 2>/dev/null; done' sh "$work" &
    load+=($!)
}
quiet() { [ ${#load[@]} -eq 0 ] || kill "${load[@]}" 2>/dev/null || true; wait 2>/dev/null || true; load=(); }

for ((run = 1; run <= runs; run++)); do
    ran=0
    rm -rf "$work/cache"
    case $((run % 4)) in
        1) how='idle, two jobs'; jobs=2 ;;
        2) how='beside two CPU burners on one core'; jobs=2; burners ;;
        3) how='under heavy disk writes'; jobs=2; disk ;;
        0) how='one job'; jobs=1 ;;
    esac
    for clock in cpu device; do
        choose --for rootfs --clock "$clock" --jobs "$jobs"
        choose --for rootfs-readonly --fs squashfs-lzo,squashfs-xz,squashfs-zstd,erofs,erofs-lz4hc \
            --clock "$clock" --jobs "$jobs"
    done
    quiet
    echo "run $run of $runs, $how: $ran trials as in run 1"
done
