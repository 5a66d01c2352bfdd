#!/usr/bin/env bash
# Make a checkout ready to run: Debian packages (when root), .venv, the locked dependencies.
#
# Safe to run again at any time; when nothing changed it only compares a stamp (about 0.1 s). Needs no network but the
# package registries that pip, uv and apt are configured for. PYTHON=/path/to/python3.x chooses the interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

UV_PIN=0.13.9        # installed into .tools/ when no usable uv is on PATH
UV_OLDEST=0.8.0      # the first version that reads this lock file's revision
NET_LIMIT_S=900      # one package step may take this long, then it counts as failed

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$1" >&2; [ $# -lt 2 ] || printf '  hint: %s\n' "$2" >&2; exit 1; }

# --- Debian packages -------------------------------------------------------------------------------------------------
usable_python() {
    "$1" - >/dev/null 2>&1 <<'PY'
import sys, venv, ensurepip
sys.exit(0 if (3, 11) <= sys.version_info[:2] < (3, 14) else 1)
PY
}

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.11 python3.12 python3.13 /usr/bin/python3; do
        if usable_python "$candidate"; then command -v "$candidate"; return 0; fi
    done
    return 1
}

wanted_packages() {   # prints the Debian packages that are missing here
    find_python >/dev/null || printf 'python3 python3-venv '
    command -v fusermount3 >/dev/null || printf 'fuse3 '     # mounts by an ordinary user
    command -v git >/dev/null || printf 'git '               # tests clone inside a mount
    command -v rsync >/dev/null || printf 'rsync '           # tests copy into a mount
    command -v strace >/dev/null || printf 'strace '         # tests kill at system calls
    command -v zsh >/dev/null || printf 'zsh '               # tests type into shells
    command -v fish >/dev/null || printf 'fish '
}

install_packages() {   # $@: package names
    export DEBIAN_FRONTEND=noninteractive
    local quiet=(-o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 -qq)
    # The lists may be absent (fresh container) or stale: try, refresh, try again.
    timeout "$NET_LIMIT_S" apt-get "${quiet[@]}" install -y --no-install-recommends "$@" </dev/null >/dev/null 2>&1 && return 0
    timeout "$NET_LIMIT_S" apt-get "${quiet[@]}" update </dev/null >/dev/null 2>&1 || true
    timeout "$NET_LIMIT_S" apt-get "${quiet[@]}" install -y --no-install-recommends "$@" </dev/null >&2
}

tests_packages() {   # what single tests are skipped without: real pages to research, a client of NFS, programs to compare with
    local name
    for name in python3.11-doc postgresql-doc-15 libnfs-utils gawk jq patch ripgrep tree; do
        dpkg -s "$name" >/dev/null 2>&1 || ! apt-cache show "$name" >/dev/null 2>&1 || printf '%s ' "$name"
    done
}

missing="$(wanted_packages)"
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    missing+="$(tests_packages)"
fi
if [ -n "$missing" ]; then
    read -ra names <<<"$missing"
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "installing Debian packages: ${names[*]}"
        install_packages "${names[@]}" || say "apt-get failed; going on with what is here"
    else
        say "missing packages: ${names[*]}"
        say "  as root: apt-get install -y ${names[*]}"
    fi
fi

python="$(find_python)" || die "no Python 3.11 to 3.13 with the venv module was found" \
    "apt-get install -y python3 python3-venv, or set PYTHON=/path/to/python3"
for tool in fusermount3 git rsync; do
    command -v "$tool" >/dev/null || say "warning: $tool is missing; some mounts or tests will not work"
done
if [ ! -e /dev/fuse ]; then
    say "warning: /dev/fuse is missing; nothing can be mounted on this machine"
elif [ ! -w /dev/fuse ]; then
    say "warning: /dev/fuse is closed to you; as root: chmod 666 /dev/fuse"
fi

# --- The virtual environment -----------------------------------------------------------------------------------------
stamp_file=.venv/.memdir-setup
stamp_now() {
    { pwd; cat uv.lock pyproject.toml bench/pyproject.toml scripts/setup.sh; .venv/bin/python -VV; } 2>/dev/null | sha256sum | cut -d' ' -f1
}

if [ -x .venv/bin/memdir ] && [ -f "$stamp_file" ] && [ "$(cat "$stamp_file")" = "$(stamp_now)" ]; then
    exit 0
fi

if ! { [ -x .venv/bin/python ] && usable_python .venv/bin/python; }; then
    say "creating .venv with $("$python" -V 2>&1)"
    rm -rf .venv
    "$python" -m venv --without-pip .venv || die "python -m venv failed" "apt-get install -y python3-venv"
fi

usable_uv() {
    local version
    version="$("$1" --version 2>/dev/null | cut -d' ' -f2)" && [ -n "$version" ] &&
        [ "$(printf '%s\n%s\n' "$UV_OLDEST" "$version" | sort -V | head -n1)" = "$UV_OLDEST" ]
}

pinned_uv() {   # uv lives beside .venv and not in it: `uv sync` removes what the lock does not name
    if ! usable_uv .tools/bin/uv; then
        say "installing uv $UV_PIN into .tools"
        rm -rf .tools
        "$python" -m venv .tools
        timeout "$NET_LIMIT_S" .tools/bin/python -m pip install --quiet --disable-pip-version-check --no-input "uv==$UV_PIN" </dev/null >&2 ||
            die "pip could not install uv $UV_PIN" "check the network and pip's index settings"
    fi
}

sync_with() {
    # The system's certificates: the same ones that pip, git and curl trust on this machine.
    env -u VIRTUAL_ENV UV_PROJECT_ENVIRONMENT="$PWD/.venv" UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=true UV_NATIVE_TLS=true \
        UV_HTTP_TIMEOUT=180 UV_NO_PROGRESS=1 \
        timeout "$NET_LIMIT_S" "$1" sync --frozen --quiet --python "$PWD/.venv/bin/python" </dev/null
}

say "installing the locked dependencies into .venv"
if usable_uv uv && sync_with uv; then
    :
else
    pinned_uv
    sync_with .tools/bin/uv || die "uv sync failed" "see the lines above; then run make setup again"
fi

[ -x .venv/bin/memdir ] || die "the memdir command is missing after the installation"
# As pip does and uv does not: otherwise, where PYTHONDONTWRITEBYTECODE is set, each start compiles all of it anew.
env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m compileall -q src bench
env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -c 'import memdir.agents.mcp.serve, memdir.server.lifecycle, onnx, onnxruntime, tokenizers'
stamp_now >"$stamp_file"
say "ready: .venv/bin/memdir $(.venv/bin/memdir --version 2>/dev/null || true)"
