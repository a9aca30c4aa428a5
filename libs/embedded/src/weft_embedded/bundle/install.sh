#!/bin/sh
# Installs Weft from files that were checked before: those beside this script, or those that a mesh's gateway has.
#
#   WEFT_PREFIX   where it comes (default: /opt/weft for root, else ~/.local/share/weft, and a link on the PATH)
#   WEFT_PYTHON   the Python to make its environment with, 3.11 or newer (default: the first on the PATH that fits)
#
# Third parties' packages come from the bundle where it has them for this machine, else from a package index by the
# hashes of the lock; pip's own settings say which.
set -eu
umask 022
# Else Python runs what lies in the folder where this was called.
export PYTHONSAFEPATH=1

say() { printf 'weft: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

if command -v sha256sum >/dev/null 2>&1; then sum() { sha256sum "$1" | cut -c 1-64; }
else sum() { shasum -a 256 "$1" | cut -c 1-64; }; fi

if [ -n "${WEFT_PREFIX:-}" ]; then prefix=$WEFT_PREFIX commands=
elif [ "$(id -u)" = 0 ]; then prefix=/opt/weft commands=/usr/local/bin
else prefix=$HOME/.local/share/weft commands=$HOME/.local/bin; fi

find_python() {
    for python in ${WEFT_PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            "$python" -c 'import venv, ensurepip' 2>/dev/null && return
            fail "$python has no venv module; install it (Debian, Ubuntu: apt install python3-venv), then run this again"
        fi
    done
    fail "Weft needs Python 3.11 or newer${WEFT_PYTHON:+ (WEFT_PYTHON is $WEFT_PYTHON)}: install one, or name it in WEFT_PYTHON"
}

# This machine as a bundle names it.
machine() { "$python" -c 'import platform, sys; print("%s-%s-%d.%d" % (sys.platform, platform.machine(), *sys.version_info[:2]))'; }

# uv doesn't read pip's settings.
hand_settings_to_uv() {
    [ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}"
    [ -z "${PIP_EXTRA_INDEX_URL:-}" ] || export UV_INDEX="${UV_INDEX:-$PIP_EXTRA_INDEX_URL}"
    [ -z "${PIP_FIND_LINKS:-}" ] ||
        export UV_FIND_LINKS="${UV_FIND_LINKS:-$(printf %s "$PIP_FIND_LINKS" | tr -s ' ' ,)}"
    [ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
}

# Install from FOLDER/bundle, whose files were checked, into FOLDER/venv. What is there whole is left as it is.
install_in() {
    [ ! -e "$1/whole" ] || return 0
    say "installing into $1"
    rm -rf "$1/venv"
    if [ -d "$1/bundle/others" ]; then
        "$python" -m venv --without-pip "$1/venv" || no_environment
        # A wheel is an archive, and this one holds a program: no pip is needed to have it.
        "$python" -m zipfile -e "$1"/bundle/others/uv-*.whl "$1/tool"
        chmod 755 "$1"/tool/uv-*.data/scripts/uv
        uv "$1" --no-deps --no-index "$1"/bundle/others/*.whl "$1"/bundle/own/*.whl
        rm -rf "$1/tool"
    else
        "$python" -m venv "$1/venv" || no_environment
        "$1/venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes \
            -r "$1/bundle/requirements-tool.lock" || fail "the installer could not be fetched; pip's words stand above"
        # In a shell of its own: what is handed to uv isn't the worker's.
        (hand_settings_to_uv; uv "$1" --require-hashes -r "$1/bundle/requirements.lock") || exit 1
        uv "$1" --no-deps --no-index "$1"/bundle/own/*.whl
    fi
    : >"$1/whole"
}
no_environment() { fail "no environment could be made with $python -m venv; its words stand above"; }
uv() {
    into=$1
    shift
    for program in "$into/venv/bin/uv" "$into"/tool/uv-*.data/scripts/uv; do [ ! -x "$program" ] || break; done
    UV_PYTHON_DOWNLOADS=never UV_NO_CONFIG=1 "$program" pip install --quiet --no-cache --link-mode copy \
        --python "$into/venv/bin/python" --compile-bytecode "$@" ||
        fail "the installation failed; what went wrong stands above. Run this again to go on"
}

# Let `weft` mean what was installed in FOLDER, and a worker that is reloaded go on from it.
use() {
    was=$(sed -n 's|^exec "\(.*\)/venv/bin/python".*|\1|p' "$prefix/bin/weft" 2>/dev/null) || was=
    mkdir -p "$prefix/bin"
    printf '#!/bin/sh\nexport WEFT_CALLED_AS=weft PYTHONSAFEPATH=1\nexec "%s/venv/bin/python" -m weft_cli "$@"\n' "$1" \
        >"$prefix/bin/weft.new"
    chmod 755 "$prefix/bin/weft.new"
    mv "$prefix/bin/weft.new" "$prefix/bin/weft"
    if [ -n "$commands" ] && { [ ! -e "$commands/weft" ] || [ -L "$commands/weft" ]; }; then
        mkdir -p "$commands"
        ln -sf "$prefix/bin/weft" "$commands/weft"
    fi
    if [ -d "$1/bundle/models" ]; then
        mkdir -p "$prefix/models"
        cp -R "$1/bundle/models/." "$prefix/models/"
    fi
    [ "$1" = "$prefix/versions/${1##*/}" ] || return 0
    ln -sfn "${1##*/}" "$prefix/versions/current"
    [ -z "$was" ] || [ "$was" = "$1" ] || ln -sfn "${was##*/}" "$prefix/versions/before"
    forget_others "$1"
}

# Of releases those stay that are FOLDER, the one before it, what a unit names or something runs from: a worker's
# supervisor may be older than both. One that isn't whole may be somebody's who installs just now; a day later it isn't.
forget_others() {
    if [ -r /proc/self/cmdline ]; then used=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ') || :
    else used=$(ps -A -o args) || return 0; fi
    own_units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
    units=$(cat /etc/systemd/system/weft*.service "$own_units"/weft*.service 2>/dev/null) || :
    before=$(readlink "$prefix/versions/before") || before=
    for each in "$prefix"/versions/*; do
        if [ -L "$each" ] || [ "$each" = "$1" ] || [ "${each##*/}" = "$before" ]; then continue; fi
        [ -e "$each/whole" ] || [ -n "$(find "$each" -prune -mtime +0)" ] || continue
        case $used$units in *"$each/"*) continue ;; esac
        rm -rf "$each"
    done
}
