#include "trace/instructions/control.h"

#include <string>

#include "common/error.h"

namespace warpstack::trace {

void Control::validate() const {
  const auto up_to = [](const char* field, std::uint32_t value, std::uint32_t most) {
    if (value > most) {
      throw InputError(std::string(field) + " = " + std::to_string(value) + " is not from 0 to " +
                       std::to_string(most));
    }
  };
  const auto barrier = [](const char* field, std::uint32_t value) {
    if (value >= num_control_barriers && value != no_control_barrier) {
      throw InputError(std::string(field) + " = " + std::to_string(value) +
                       " is neither a barrier (0 to 5) nor none (7)");
    }
  };
  up_to("stall", stall, 15);
  up_to("wait_mask", wait_mask, 63);
  up_to("reuse", reuse, 15);
  up_to("counted_most", counted_most, 63);
  barrier("write_barrier", write_barrier);
  barrier("read_barrier", read_barrier);
  barrier("counted_barrier", counted_barrier);
}

}  // namespace warpstack::trace
