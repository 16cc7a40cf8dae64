#include "bindings/bindings.h"
#include "model/model.h"

namespace warpstack::bindings {

void bind_model(py::module_& module) {
  module.def("model_names", &model_names);
  module.def(
      "model_fields", [](const std::string& model) { return fields_of(find_model(model)); },
      py::arg("model"));
  module.def(
      "evaluate",
      [](const std::string& model, const IntervalColumns& intervals, const std::vector<Wave>& waves,
         const py::dict& fields) {
        ModelParameters parameters;
        const auto number = [&fields](const char* name) { return fields[name].cast<double>(); };
        parameters.issue_rate = number("issue_width");
        parameters.scheduler = enum_of<Scheduler>(fields["scheduler"].cast<std::string>(),
                                                  num_schedulers, "scheduler");
        parameters.clock_ghz = number("clock_ghz");
        parameters.l1_mshrs = number("l1_mshrs");
        parameters.l1_request_bytes = number("l1_sector_bytes");
        parameters.l2_request_bytes = number("l2_sector_bytes");
        parameters.l2_latency = number("l2_latency");
        parameters.dram_latency = number("dram_latency");
        parameters.noc_bandwidth_gbs = number("noc_bandwidth_gbs");
        parameters.dram_bandwidth_gbs = number("dram_bandwidth_gbs");
        const ModelResult result = evaluate(find_model(model), intervals, waves, parameters);
        py::dict stack;
        for (std::size_t c = 0; c < num_stack_components; ++c) {
          stack[py::str(std::string(name_of(static_cast<StackComponent>(c))))] = result.stack[c];
        }
        py::dict answer;
        answer["cycles"] = result.cycles;
        answer["warp_instructions"] = result.warp_instructions;
        answer["sm_instructions"] = result.sm_instructions;
        answer["cpi"] = result.cpi;
        answer["cpi_stack"] = stack;
        return answer;
      },
      py::arg("model"), py::arg("intervals"), py::arg("waves"), py::arg("parameters"));
  module.def("markov_all_suspended", &markov_all_suspended, py::arg("warps"), py::arg("suspend"),
             py::arg("wake"));
}

}  // namespace warpstack::bindings
