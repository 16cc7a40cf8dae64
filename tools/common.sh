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
  say "a C++20 compiler is needed: install g++ (11 or later) or clang++ (16 or later), or name one in CXX"
  exit 1
}

num_cores() { nproc 2>/dev/null || getconf _NPROCESSORS_ONLN; }

# Has CMake compile through ccache if it is there and works: its folder may be unwritable or full. What the environment says
# of launchers and ccache is left as it is. Paths in the checkout are compared without it, so that another clone finds the same.
use_ccache() {
  [ -z "${CMAKE_CXX_COMPILER_LAUNCHER+set}" ] || return 0
  command -v ccache >/dev/null || return 0
  export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR:-1}"
  # Without these ccache compiles what has a precompiled header anew each time, and what was checked out a moment ago.
  export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}"
  # After a change of comments alone ccache's preprocessed mode returns the precompiled header of the old text, which the compiler
  # then takes for another file than the new one. Depend mode compares texts. The namespace leaves out what was stored before.
  export CCACHE_DEPEND="${CCACHE_DEPEND:-1}" CCACHE_NAMESPACE="${CCACHE_NAMESPACE:-warpstack-depend}"
  local try works=0
  try=$(mktemp -d)
  echo 'int main() {}' >"$try/try.cpp"
  ccache "${CXX:-c++}" -c "$try/try.cpp" -o "$try/try.o" >/dev/null 2>&1 && works=1
  rm -rf "$try"
  [ $works -eq 0 ] || export CMAKE_CXX_COMPILER_LAUNCHER=ccache
}

# The first interpreter on PATH that is recent enough, makes virtual environments and has its headers.
find_python() {
  for python in python3 python3.13 python3.12 python3.11 python3.10; do
    command -v "$python" >/dev/null && "$python" - 2>/dev/null <<'CHECK' && return
import ensurepip, os, sys, sysconfig, venv
headers = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(sys.version_info < (3, 10) or not os.path.exists(headers))
CHECK
  done
  return 1
}

need_python() {
  find_python && return
  try_apt_install python3 python3-venv python3-dev && find_python && return
  say "Python 3.10 or later with venv and its headers is needed: install python3, python3-venv and python3-dev"
  exit 1
}

# Makes .venv and installs the package, which is built in build/package unless the last wheel is up to date. Arguments are
# those of tools/build-wheel. What the build needs is in .venv as well, so that a second build has the same paths and
# compiles only what changed.
install_package() {
  need_compiler
  need_python
  if [ ! -x .venv/bin/python ]; then
    say "making .venv, and loading what the build needs"
    "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --upgrade pip
  fi
  # shellcheck disable=SC2046
  .venv/bin/python -m pip install --quiet cmake ninja $(sed -n 's/^requires = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '",')
  use_ccache
  # As a wheel, which .ci/run then installs elsewhere, too. The version need not have changed.
  .venv/bin/python tools/build-wheel "$@"
  say "installing it, and the packages that it needs"
  .venv/bin/python -m pip install --quiet --no-deps --force-reinstall build/wheel/warpstack-*.whl
  .venv/bin/python -m pip install --quiet build/wheel/warpstack-*.whl # what it depends on
}

# Installs what an extra of the installed package asks for; the package is not built again.
install_extra() {
  local requirements
  requirements=$(.venv/bin/python - "$1" <<'LIST'
import importlib.metadata, sys

ending = f'; extra == "{sys.argv[1]}"'
for requirement in importlib.metadata.requires("warpstack"):
    if requirement.endswith(ending):
        print(requirement.removesuffix(ending))
LIST
  )
  # No package name or version holds a blank.
  # shellcheck disable=SC2086
  .venv/bin/python -m pip install --quiet $requirements
}
