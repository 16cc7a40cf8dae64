#include "bindings/bindings.h"
#include "model/model.h"

namespace warpstack::bindings {

void bind_model(py::module_& module) {
  py::class_<Wave>(module, "Wave")
      .def(py::init<double, double, double, double>(), py::arg("count"), py::arg("warps"),
           py::arg("active_sms"), py::arg("total_warps"))
      .def_readonly("count", &Wave::count)
      .def_readonly("warps", &Wave::warps)
      .def_readonly("active_sms", &Wave::active_sms)
      .def_readonly("total_warps", &Wave::total_warps);

  module.def("waves_of", &waves_of, py::arg("num_blocks"), py::arg("warps_per_block"),
             py::arg("blocks_per_sm"), py::arg("num_sms"));
  module.def("model_names", &model_names);
  module.def(
      "evaluate",
      [](const std::string& model, const IntervalColumns& intervals, const std::vector<Wave>& waves,
         const py::dict& fields) {
        ModelParameters parameters;
        const auto number = [&fields](const char* name) { return fields[name].cast<double>(); };
        parameters.issue_rate = number("issue_width");
        parameters.scheduler =
            fields["scheduler"].cast<std::string>() == "lrr" ? Scheduler::lrr : Scheduler::gto;
        parameters.clock_ghz = number("clock_ghz");
        parameters.l1_mshrs = number("l1_mshrs");
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
