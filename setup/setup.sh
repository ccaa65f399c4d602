#!/bin/sh
# Installs what whichfs needs on Debian 12: the missing ones of setup/packages.tsv, nothing else.
#
#   setup/setup.sh            install what is missing
#   setup/setup.sh --check    only tell what is missing
#   setup/setup.sh --dry-run  tell what would be installed and how
#
# Exit status: 0 all essentials are there, 2 bad usage, 3 an essential is missing (the remedy is printed).
# A missing candidate or extra is told with what is lost, and the rest goes on.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
table=$here/packages.tsv
tab=$(printf '\t')
mode=install
case "${1:-}" in
    '') ;;
    --check) mode=check ;;
    --dry-run) mode=dry-run ;;
    *) echo "usage: setup/setup.sh [--check|--dry-run]" >&2; exit 2 ;;
esac

say() { echo "setup: $*" >&2; }

# True if the thing that a check names (bin:, file:, cargo:) is there.
present() {
    case "$1" in
        bin:*) PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v "${1#bin:}" >/dev/null ;;
        file:*) [ -e "${1#file:}" ] ;;
        cargo:*) "$here/cargo" --locate >/dev/null 2>&1 ;;
        *) say "packages.tsv: unknown check '$1' (bin:, file: or cargo: is expected)"; exit 2 ;;
    esac
}

# Prints the rows of the table whose check fails.
missing_rows() {
    while IFS=$tab read -r package check need purpose without; do
        case "$package" in
            ''|'#'*) continue ;;
            # Where services are started it would begin to listen: there the user decides.
            openssh-server) if [ -d /run/systemd/system ]; then continue; fi ;;
        esac
        present "$check" || printf '%s\t%s\t%s\t%s\t%s\n' \
            "$package" "$check" "$need" "$purpose" "$without"
    done < "$table"
}

# Prints the first column of rows, on one line.
names() { printf '%s\n' "$1" | cut -f 1 | tr '\n' ' ' | sed 's/ *$//'; }

# Ends the script after telling what is (still) missing.
conclude() {
    rows=$(missing_rows)
    if [ -z "$rows" ]; then exit 0; fi
    status=0
    printf '%s\n' "$rows" | while IFS=$tab read -r package check need purpose without; do
        case "$need" in
            essential) say "MISSING $package ($check): $purpose. Without it: $without" ;;
            candidate) say "missing $package: $purpose. Not made there: $without" ;;
            *) say "missing $package: $purpose. Lost: $without" ;;
        esac
    done
    if printf '%s\n' "$rows" | cut -f 3 | grep -qx essential; then status=3; fi
    if [ -n "${1:-}" ]; then say "$1"; fi
    case "$rows" in *cargo-web*)
        say "for Rust, rustup serves as well (https://rustup.rs); it needs no root" ;;
    esac
    if [ "$status" -ne 0 ]; then say "cannot go on without the essential packages above"
    else say "going on without these"
    fi
    exit "$status"
}

rows=$(missing_rows)
if [ -z "$rows" ]; then
    say "everything is here, nothing to install"
    exit 0
fi
wanted=$(names "$rows")
by_hand="an administrator can install them with: apt-get update && apt-get install --no-install-recommends $wanted"
if [ "$mode" = check ]; then conclude "$by_hand"; fi
if ! command -v apt-get >/dev/null; then
    conclude "this is no Debian system (no apt-get): install what the lines above name with its own package manager"
fi

# How to become root: not at all, or sudo, which may ask only where somebody can answer.
if [ "$(id -u)" -eq 0 ]; then as_root='env'
elif ! command -v sudo >/dev/null; then as_root=
elif [ -t 0 ]; then as_root='sudo env'
elif sudo -n true 2>/dev/null; then as_root='sudo -n env'
else as_root=
fi

say "missing:"
printf '%s\n' "$rows" | while IFS=$tab read -r package check need purpose without; do
    say "  $package ($need): $purpose"
done
if [ "$mode" = dry-run ]; then
    say "would run: ${as_root:-(as root)} apt-get install --no-install-recommends $wanted"
    exit 0
fi
if [ -z "$as_root" ]; then
    conclude "not root, and sudo cannot be used here; $by_hand"
fi

apt() {
    # RUNLEVEL: none of them starts a service.
    # --no-remove: a package that conflicts with an installed one is not worth losing the latter.
    $as_root DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >&2 </dev/null
}
install() { apt install --no-install-recommends --no-remove "$@"; }

# True if apt knows a version of the package that serves: any, or for cargo-web one that is new enough.
obtainable() {
    candidate=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: //p')
    case "$candidate" in ''|'(none)') return 1 ;; esac
    case "$1" in
        cargo-web)
            needed=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$here/../Cargo.toml")
            dpkg --compare-versions "$candidate" ge "$needed" ;;
    esac
}
# Leaves in $obtainable those of its arguments that apt can give.
select_obtainable() {
    obtainable=; unobtainable=
    for package in "$@"; do
        if obtainable "$package"; then obtainable="$obtainable $package"
        else unobtainable="$unobtainable $package"
        fi
    done
}

# shellcheck disable=SC2086 # package names are words
{
    select_obtainable $wanted
    if [ -n "$unobtainable" ]; then
        say "apt does not know$unobtainable yet: apt-get update"
        apt update || say "apt-get update failed; going on with the lists that are here"
        select_obtainable $wanted
    fi
    if [ -n "$unobtainable" ]; then
        say "apt cannot give$unobtainable (are bookworm and bookworm-security in its sources?)"
    fi
    if [ -n "$obtainable" ]; then
        say "installing$obtainable"
        if ! install $obtainable; then
            say "that failed: apt-get update, then once more"
            apt update || true
            if ! install $obtainable; then
                say "that failed too: one by one"
                for package in $obtainable; do
                    install "$package" || say "$package could not be installed"
                done
            fi
        fi
    fi
}
if [ -z "$(missing_rows)" ]; then say "done: everything is here"; fi
conclude "remedy: read apt's messages above, correct what they name, and run make setup again"
