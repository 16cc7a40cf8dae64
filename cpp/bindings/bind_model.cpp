#include <optional>

#include "bindings/bindings.h"
#include "common/threads.h"
#include "model/batch.h"
#include "model/model.h"

namespace warpstack::bindings {
namespace {

std::string key_of(StackComponent component) { return std::string(name_of(component)); }

}  // namespace

void bind_model(py::module_& module) {
  py::list components;
  for (const StackComponent c : values_of<StackComponent>) components.append(key_of(c));
  module.attr("STACK_COMPONENTS") = py::tuple(components);
  py::dict details;
  for (const StackDetail d : values_of<StackDetail>) {
    details[py::str(std::string(name_of(d)))] = key_of(component_of(d));
  }
  module.attr("STACK_DETAILS") = details;
  py::class_<model::ModelInput>(module, "ModelInput")
      .def(
          py::init([](const interval::IntervalColumns& intervals, std::vector<interval::Wave> waves,
                      const std::optional<interval::PhaseList>& phases,
                      std::optional<interval::ResourceDemands> demands) {
            return model::ModelInput{&intervals, std::move(waves),
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
      [](const std::string& model) {
        std::vector<std::string_view> names;
        for (const gpu::FieldName field : model::fields_of(model::find_model(model))) {
          names.push_back(gpu::name_of(field));
        }
        return names;
      },
      py::arg("model"));
  module.def(
      "evaluate",
      [](const std::string& model, const model::ModelInput& kernel, const gpu::Gpu& gpu) {
        const auto parameters = model::ModelParameters::of(gpu);
        const model::ModelResult result = evaluate(model::find_model(model), kernel, parameters);
        py::dict stack;
        for (const StackComponent c : values_of<StackComponent>) {
          stack[py::str(key_of(c))] = result.stack[c];
        }
        py::dict answer;
        answer["cycles"] = result.cycles;
        answer["warp_instructions"] = result.warp_instructions;
        answer["sm_instructions"] = result.sm_instructions;
        answer["cpi"] = result.cpi;
        answer["cpi_stack"] = stack;
        py::dict in_detail;
        for (const StackDetail d : values_of<StackDetail>) {
          if (result.details) in_detail[py::str(std::string(name_of(d)))] = (*result.details)[d];
        }
        answer["cpi_details"] = in_detail;
        return answer;
      },
      py::arg("model"), py::arg("kernel"), py::arg("gpu"));
  module.def(
      "evaluate_all",
      [](const std::string& name, const py::list& list, const std::vector<const gpu::Gpu*>& gpus,
         unsigned num_threads) {
        const py::tuple alive(list);  // the intervals that the kernels point to
        const auto kernels = alive.cast<std::vector<model::ModelInput>>();
        const model::Model& model = model::find_model(name);
        std::vector<model::ModelParameters> configurations;
        configurations.reserve(gpus.size());
        for (const gpu::Gpu* gpu : gpus) {
          configurations.push_back(model::ModelParameters::of(*gpu));
        }
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
        for (const StackComponent c : values_of<StackComponent>) {
          answer[py::str("cpi_" + key_of(c))] = array_of(std::move(results.stack[c]));
        }
        return answer;
      },
      py::arg("model"), py::arg("kernels"), py::arg("gpus"), py::arg("num_threads") = 1);
  module.def("markov_all_suspended", &model::markov_all_suspended, py::arg("warps"),
             py::arg("suspend"), py::arg("wake"));
}

}  // namespace warpstack::bindings
