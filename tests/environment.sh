# Shared by the prepare scripts of the test parts (sourced): installs pinned packages into
# tests/.environment. What is already there with the same pins is left alone, so a second run
# costs nothing.
# shellcheck shell=bash

target=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/.environment

fail() {
    echo "$0: $*" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in python3.11 python3; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer with the venv module is needed (Debian: python3.11 and python3.11-venv)"
}

# fresh NAME PINS...: says whether NAME was installed from exactly these pins.
fresh() {
    local name=$1
    shift
    [[ -f $target/$name/.pins ]] && cat "$@" | cmp -s - "$target/$name/.pins"
}

# install PYTHON WORD...: pip install, quietly and without a question.
install() {
    "$1" -m pip install --quiet --disable-pip-version-check --no-input --retries 5 "${@:2}"
}

# python_environment NAME PINS: a Python environment with the requirements of the file PINS.
python_environment() {
    local name=$1 pins=$2
    fresh "$name" "$pins" && return
    echo "installing $name" >&2
    rm -rf "${target:?}/$name"
    "$python" -m venv "$target/$name"
    install "$target/$name/bin/python" --requirement "$pins"
    cat "$pins" >"$target/$name/.pins"
}

# node_environment NAME PINS: node_modules as the package.json and lock in the folder PINS say.
node_environment() {
    local name=$1 pins=$2
    command -v node >/dev/null 2>&1 || fail "node 20 or newer is needed"
    command -v npm >/dev/null 2>&1 || fail "npm is needed"
    (($(node -p 'process.versions.node.split(".")[0]') >= 20)) || fail "node 20 or newer is needed"
    fresh "$name" "$pins/package.json" "$pins/package-lock.json" && return
    echo "installing $name" >&2
    rm -rf "${target:?}/$name"
    mkdir -p "$target/$name"
    cp "$pins/package.json" "$pins/package-lock.json" "$pins/.npmrc" "$target/$name/"
    (cd "$target/$name" && npm ci --no-audit --no-fund --loglevel=error >&2)
    cat "$pins/package.json" "$pins/package-lock.json" >"$target/$name/.pins"
}

# archives NAME PINS PYTHON: the packages of the file PINS, not installed but unpacked, for the
# documents they carry. Wheels and source archives alike; pip checks the hashes.
archives() {
    local name=$1 pins=$2 python=$3 file
    fresh "$name" "$pins" && return
    echo "installing $name" >&2
    rm -rf "${target:?}/$name"
    mkdir -p "$target/$name"
    "$python" -m pip download --quiet --disable-pip-version-check --no-input --retries 5 --no-deps \
        --dest "$target/$name/archives" --requirement "$pins"
    for file in "$target/$name/archives"/*; do
        case $file in
        *.whl) "$python" -m zipfile -e "$file" "$target/$name" ;;
        *) "$python" -m tarfile -e "$file" "$target/$name" ;;
        esac
    done
    rm -r "$target/$name/archives"
    cat "$pins" >"$target/$name/.pins"
}

python=$(find_python)
mkdir -p "$target"
# One installation at a time, should two runs start together.
exec 9>"$target/.lock"
if command -v flock >/dev/null 2>&1; then
    flock 9
fi
