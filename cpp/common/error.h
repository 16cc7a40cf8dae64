#pragma once

#include <stdexcept>
#include <string>

namespace warpstack {

/// Input that its author can correct: a malformed trace, an impossible configuration.
/// The message names the file, line, field and value where they are known, and the remedy.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace warpstack
