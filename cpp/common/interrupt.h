#pragma once

#include <functional>

namespace warpstack {

/// Called now and then by every long computation; it throws to abandon the computation (Ctrl-C). An
/// empty function means no interruption.
using InterruptCheck = std::function<void()>;

}  // namespace warpstack
