#include "stand_ins/curand/context.h"

namespace warpstack::curand {

Context& Library::context_of(Context* handle) {
  require(Handles::has(handle), Status::not_initialized,
          handle == nullptr ? "the generator is null: curandCreateGenerator makes one"
                            : "there is no such generator: it was destroyed, or never created");
  return *handle;
}

Generator& generator_of(Context& context) {
  if (context.generator == nullptr) context.generator = make_generator(context.settings);
  return *context.generator;
}

}  // namespace warpstack::curand
