#!/bin/sh
# envmedic with a Python of its own, for @MACHINE@. The first start unpacks what follows this script, once for all who share
# the directory: ENVMEDIC_NODE_ROOT, else envmedic/node in the user's cache.
root=${ENVMEDIC_NODE_ROOT:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/envmedic/node}
home=$root/@DIGEST@
python=$home/python/bin/python3

refuse() {
    printf 'error: %s; no environment was touched\n' "$1" >&2
    exit 1
}

# It is whole and starts before it gets its name. Where locks do not work, several unpack, and the first one wins.
unpack() {
    part=$(mktemp -d "$home.part.XXXXXX") || return
    chmod 755 "$part"
    if tail -n "+@LINE@" "$0" | tar -xzof - -C "$part" && "$part/python/bin/python3" -I -c ''; then
        mv -T "$part" "$home"
    fi
    rm -rf "$part"
    [ -x "$python" ]
}

if [ ! -x "$python" ]; then
    [ "$(uname -m)" = @MACHINE@ ] || refuse "this file is for @MACHINE@, and this machine is $(uname -m)"
    [ -n "${ENVMEDIC_NODE_ROOT:-}${XDG_CACHE_HOME:-}${HOME:-}" ] ||
        refuse "HOME is not set: name a directory for its Python in ENVMEDIC_NODE_ROOT"
    said=$(
        exec 2>&1
        umask 022
        { mkdir -p "$root" && exec 9>"$home.lock"; } || exit
        flock 9 2>/dev/null # or without locks, where the file system has none
        # what a start left that was cut off
        find "$root" -maxdepth 1 -name '*.part.*' -mmin +60 -exec rm -rf {} + 2>/dev/null
        [ -x "$python" ] || unpack
    ) || {
        why=$(printf '%s' "$said" | tr -s '\n' ' ' | cut -c 1-300)
        refuse "its Python cannot be unpacked into $root (${why# }): name another directory in ENVMEDIC_NODE_ROOT"
    }
fi
exec "$python" -I -m envmedic "$@"
