# Sourced by the other tools: finds or installs what a fresh machine may lack, and sets `python`.

say() { printf '%s\n' "$*" >&2; }

# Installs Debian packages when this machine lets us; fails quietly otherwise.
try_apt_install() {
  command -v apt-get >/dev/null || return 1
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || return 1
    as_root=(sudo -n)
  fi
  say "installing $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}

compiles_cxx20() {
  command -v "${CXX:-c++}" >/dev/null &&
    printf '#include <span>\n#include <thread>\nint main() { std::jthread t([] {}); }\n' |
    "${CXX:-c++}" -std=c++20 -pthread -x c++ -o /dev/null - 2>/dev/null
}

need_compiler() {
  compiles_cxx20 && return
  try_apt_install g++ && compiles_cxx20 && return
  say "a C++20 compiler is needed (g++ 11 or later, clang++ 16 or later): install one, or name it in CXX"
  exit 1
}

need_python() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      python=$candidate
      return
    fi
  done
  if [ "${1:-}" != again ] && try_apt_install python3 python3-venv; then
    need_python again
    return
  fi
  say "Python 3.10 or later with venv is needed: install python3 and python3-venv"
  exit 1
}

# Makes .venv and installs the package with the extras given.
install_package() {
  need_compiler
  need_python
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --upgrade pip
  .venv/bin/python -m pip install --quiet ".${1:-}"
}
