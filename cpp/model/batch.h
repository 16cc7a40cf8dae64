#pragma once

#include <span>
#include <vector>

#include "common/cpi_stack.h"
#include "common/interrupt.h"
#include "model/model.h"

namespace warpstack::model {

/// Results of kernels on configurations, in columns: entry c * kernels + k is kernel k on
/// configuration c. The columns mean what the members of ModelResult do.
struct ModelColumns {
  std::vector<double> cycles;
  std::vector<double> warp_instructions;
  std::vector<double> cpi;
  CpiStack<std::vector<double>> stack;
};

/// Evaluates a model for each kernel on each configuration, as evaluate() does for one: what does
/// not change from configuration to configuration is computed once. The result does not depend on
/// the number of threads. Throws InputError as evaluate() does.
ModelColumns evaluate_all(const Model& model, std::span<const ModelInput> kernels,
                          std::span<const ModelParameters> configurations, unsigned num_threads = 1,
                          const InterruptCheck& interrupt = {});

}  // namespace warpstack::model
