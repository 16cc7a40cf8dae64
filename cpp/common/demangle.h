#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <string>

namespace warpstack {

/// The readable form of a C++ name, with template arguments and parameters. A name that is not
/// mangled is returned unchanged.
inline std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

}  // namespace warpstack
