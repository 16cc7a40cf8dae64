#pragma once

#include <functional>

namespace warpstack {

/// Called now and then by every long computation; it throws to abandon the computation (Ctrl-C).
/// An empty function means that nobody can interrupt.
using InterruptCheck = std::function<void()>;

}  // namespace warpstack
