#include <optional>

#include "bindings/bindings.h"
#include "common/threads.h"
#include "model/batch.h"
#include "model/model.h"

namespace warpstack::bindings {
namespace {

using ParameterField = std::pair<const char*, double model::ModelParameters::*>;
constexpr ParameterField parameter_fields[] = {
    {"issue_width", &model::ModelParameters::issue_rate},
    {"clock_ghz", &model::ModelParameters::clock_ghz},
    {"l1_mshrs", &model::ModelParameters::l1_mshrs},
    {"l1_sector_bytes", &model::ModelParameters::l1_request_bytes},
    {"l2_sector_bytes", &model::ModelParameters::l2_request_bytes},
    {"l2_latency", &model::ModelParameters::l2_latency},
    {"dram_latency", &model::ModelParameters::dram_latency},
    {"noc_bandwidth_gbs", &model::ModelParameters::noc_bandwidth_gbs},
    {"dram_bandwidth_gbs", &model::ModelParameters::dram_bandwidth_gbs},
    {"noc_sm_bytes_per_cycle", &model::ModelParameters::noc_sm_bytes_per_cycle},
    {"noc_control_bytes", &model::ModelParameters::noc_control_bytes},
    {"l2_requests_per_cycle", &model::ModelParameters::l2_requests_per_cycle},
};

model::Scheduler scheduler_of(const py::handle& name) {
  return enum_of<model::Scheduler>(name.cast<std::string>(), model::num_schedulers, "scheduler");
}

/// The parameters of several configurations from a column per field.
std::vector<model::ModelParameters> parameters_of(const py::dict& columns) {
  const auto schedulers = columns["scheduler"].cast<std::vector<std::string>>();
  std::vector<model::ModelParameters> configurations(schedulers.size());
  for (std::size_t c = 0; c < schedulers.size(); ++c) {
    configurations[c].scheduler =
        enum_of<model::Scheduler>(schedulers[c], model::num_schedulers, "scheduler");
  }
  for (const auto& [name, member] : parameter_fields) {
    const auto column = columns[name].cast<Contiguous<double>>();
    const std::span<const double> values = span_of(column);
    if (values.size() != configurations.size()) {
      throw InputError(std::string(name) + " has " + std::to_string(values.size()) +
                       " entries where scheduler has " + std::to_string(configurations.size()));
    }
    for (std::size_t c = 0; c < values.size(); ++c) configurations[c].*member = values[c];
  }
  return configurations;
}

std::string key_of(model::StackComponent component) { return std::string(name_of(component)); }

}  // namespace

void bind_model(py::module_& module) {
  py::class_<model::KernelDemand>(module, "KernelDemand")
      .def(
          py::init([](const interval::IntervalColumns& intervals, std::vector<interval::Wave> waves,
                      const std::optional<interval::PhaseList>& phases,
                      std::optional<interval::Demands> demands) {
            return model::KernelDemand{&intervals, std::move(waves),
                                       phases.value_or(interval::PhaseList{}), demands};
          }),
          py::arg("intervals"), py::arg("waves"), py::arg("phases"), py::arg("demands"),
          py::keep_alive<1, 2>());
  module.def(
      "reads_phases",
      [](const std::string& model) { return model::reads_phases(model::find_model(model)); },
      py::arg("model"));
  module.def("model_names", &model::model_names);
  module.def(
      "model_fields",
      [](const std::string& model) { return model::fields_of(model::find_model(model)); },
      py::arg("model"));
  module.def(
      "evaluate",
      [](const std::string& model, const model::KernelDemand& kernel, const py::dict& fields) {
        model::ModelParameters parameters;
        for (const auto& [name, member] : parameter_fields) {
          parameters.*member = fields[name].cast<double>();
        }
        parameters.scheduler = scheduler_of(fields["scheduler"]);
        const model::ModelResult result = evaluate(model::find_model(model), kernel, parameters);
        py::dict stack;
        for (std::size_t c = 0; c < model::num_stack_components; ++c) {
          stack[py::str(key_of(static_cast<model::StackComponent>(c)))] = result.stack[c];
        }
        py::dict answer;
        answer["cycles"] = result.cycles;
        answer["warp_instructions"] = result.warp_instructions;
        answer["sm_instructions"] = result.sm_instructions;
        answer["cpi"] = result.cpi;
        answer["cpi_stack"] = stack;
        return answer;
      },
      py::arg("model"), py::arg("kernel"), py::arg("parameters"));
  module.def(
      "evaluate_all",
      [](const std::string& name, const py::list& list, const py::dict& columns,
         unsigned num_threads) {
        const py::tuple alive(list);  // the intervals that the kernels point to
        const auto kernels = alive.cast<std::vector<model::KernelDemand>>();
        const model::Model& model = model::find_model(name);
        const std::vector<model::ModelParameters> configurations = parameters_of(columns);
        model::ModelColumns results;
        {
          const py::gil_scoped_release unlocked;
          results = evaluate_all(model, kernels, configurations, threads_asked_for(num_threads),
                                 python_interrupt());
        }
        py::dict answer;
        answer["cycles"] = array_of(std::move(results.cycles));
        answer["warp_instructions"] = array_of(std::move(results.warp_instructions));
        answer["cpi"] = array_of(std::move(results.cpi));
        for (std::size_t c = 0; c < model::num_stack_components; ++c) {
          answer[py::str("cpi_" + key_of(static_cast<model::StackComponent>(c)))] =
              array_of(std::move(results.stack[c]));
        }
        return answer;
      },
      py::arg("model"), py::arg("kernels"), py::arg("parameters"), py::arg("num_threads") = 1);
  module.def("markov_all_suspended", &model::markov_all_suspended, py::arg("warps"),
             py::arg("suspend"), py::arg("wake"));
}

}  // namespace warpstack::bindings
