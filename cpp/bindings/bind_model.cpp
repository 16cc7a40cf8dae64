#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "common/error.h"
#include "common/threads.h"
#include "gpu/sm_limits.h"
#include "memory/order/occupancy.h"
#include "model/batch.h"
#include "model/concurrent_grids.h"
#include "model/kernel_speeds.h"
#include "model/model.h"

namespace warpstack::bindings {
namespace {

std::string key_of(StackComponent component) { return std::string(name_of(component)); }

using Visits = decltype(model::CustomerClass::visits);

/// Room that no limit of an SM bounds.
constexpr double without_limit = 1e18;

model::SmRoom need_of(const trace::KernelHeader& kernel, const gpu::SmLimits& sm) {
  return {1, static_cast<double>(kernel.warps_per_block()),
          static_cast<double>(kernel.threads_per_block()),
          static_cast<double>(memory::registers_per_block(kernel, sm)),
          static_cast<double>(memory::shared_memory_per_block(kernel, sm))};
}

model::CustomerClass customers_of(const gpu::Gpu& gpu, const trace::KernelTrace& kernel,
                                  const model::ModelInput& input) {
  const auto parameters = model::ModelParameters::of(gpu);
  const auto places = memory::occupancy(kernel.header(), gpu::SmLimits::of(gpu)).blocks_per_sm;
  return model::customers_of(
      model::phases_of(input, parameters), model::demands_of(input, parameters),
      static_cast<double>(kernel.header().warps_per_block()), places, parameters);
}

/// A machine of classes that are no kernels: duration, ends, blocks, instructions, what a block
/// takes, and the network.
model::ConcurrentGrids grids_of_classes(
    const std::vector<std::tuple<double, double, double, double, std::array<double, 5>,
                                 std::optional<model::CustomerClass>>>& classes,
    double sms, const std::array<double, 5>& room, double most_grids, double mshrs,
    double replacement, double interval) {
  const auto room_of = [](const std::array<double, 5>& of) {
    return model::SmRoom{of[0], of[1], of[2], of[3], of[4]};
  };
  std::vector<model::GridClass> made;
  for (const auto& [duration, ends, blocks, instructions, need, customers] : classes) {
    made.push_back({duration, ends, blocks, instructions, room_of(need), customers});
  }
  return {std::move(made), {sms, room_of(room), most_grids, mshrs, replacement, interval}};
}

model::ConcurrentGrids concurrent_grids(
    const gpu::Gpu& gpu, const std::vector<const trace::KernelTrace*>& kernels,
    const std::vector<double>& durations, const std::vector<double>& instructions,
    const std::vector<std::optional<model::ModelInput>>& inputs) {
  const gpu::SmLimits sm = gpu::SmLimits::of(gpu);
  const auto parameters = model::ModelParameters::of(gpu);
  const model::Model& closed_network = model::find_model("closed_network");
  std::vector<model::GridClass> classes;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const trace::KernelHeader& header = kernels[k]->header();
    model::GridClass one{
        durations.at(k),     0, static_cast<double>(header.num_blocks()), instructions.at(k),
        need_of(header, sm), {}};
    if (const auto& input = inputs.at(k)) {
      one.customers = customers_of(gpu, *kernels[k], *input);
      one.ends = std::min(evaluate(closed_network, *input, parameters).ends, one.duration);
    }
    classes.push_back(std::move(one));
  }
  model::SmRoom room{static_cast<double>(sm.blocks), static_cast<double>(sm.warps),
                     static_cast<double>(sm.threads), without_limit, without_limit};
  if (sm.registers) room.registers = static_cast<double>(*sm.registers);
  if (sm.shared_memory_bytes) {
    room.shared_memory = static_cast<double>(*sm.shared_memory_bytes);
    // All launches share one split of an adaptive L1.
    const auto& splits = gpu.shared_memory_carve_outs_kib;
    if (splits.size() == 1) {
      room.shared_memory = std::min(room.shared_memory, splits.front() * 1024);
      for (const model::GridClass& one : classes) {
        room.shared_memory = std::max(room.shared_memory, one.need.shared_memory);
      }
    }
  }
  return {std::move(classes),
          {static_cast<double>(gpu.num_sms), room, static_cast<double>(gpu.concurrent_grids),
           parameters.l1_mshrs, parameters.block_replacement_cycles, gpu.block_interval_cycles}};
}

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
  py::class_<model::Visit>(module, "Visit")
      .def(py::init<double, double, double, double, double, double, double>(), py::arg("demand"),
           py::arg("early"), py::arg("busy"), py::arg("count"), py::arg("service"),
           py::arg("sharers"), py::arg("in_step"))
      .def_readonly("demand", &model::Visit::demand)
      .def_readonly("early", &model::Visit::early)
      .def_readonly("busy", &model::Visit::busy)
      .def_readonly("count", &model::Visit::count)
      .def_readonly("service", &model::Visit::service)
      .def_readonly("sharers", &model::Visit::sharers)
      .def_readonly("in_step", &model::Visit::in_step)
      .def(py::pickle(
          [](const model::Visit& v) {
            return py::make_tuple(v.demand, v.early, v.busy, v.count, v.service, v.sharers,
                                  v.in_step);
          },
          [](const py::tuple& of) {
            const auto value = [&of](std::size_t i) { return of[i].cast<double>(); };
            return model::Visit{value(0), value(1), value(2), value(3),
                                value(4), value(5), value(6)};
          }));
  py::class_<model::CustomerClass>(module, "CustomerClass")
      .def(
          py::init([](double warps_per_block, double think, const std::vector<model::Visit>& visits,
                      double held_misses, double waiting_loads, double trip, double posted) {
            model::CustomerClass made{warps_per_block, think, {},    held_misses,
                                      waiting_loads,   trip,  posted};
            if (visits.size() > made.visits.size()) throw InputError("too many stations");
            std::ranges::copy(visits, made.visits.begin());
            return made;
          }),
          py::arg("warps_per_block"), py::arg("think"), py::arg("visits"), py::arg("held_misses"),
          py::arg("waiting_loads"), py::arg("trip"), py::arg("posted"))
      .def_readonly("warps_per_block", &model::CustomerClass::warps_per_block)
      .def_readonly("think", &model::CustomerClass::think)
      .def_property_readonly("visits",
                             [](const model::CustomerClass& one) {
                               return std::vector(one.visits.begin(), one.visits.end());
                             })
      .def_readonly("held_misses", &model::CustomerClass::held_misses)
      .def_readonly("waiting_loads", &model::CustomerClass::waiting_loads)
      .def_readonly("trip", &model::CustomerClass::trip)
      .def_readonly("posted", &model::CustomerClass::posted)
      .def(py::pickle(
          [](const model::CustomerClass& one) {
            return py::make_tuple(one.warps_per_block, one.think, one.visits, one.held_misses,
                                  one.waiting_loads, one.trip, one.posted);
          },
          [](const py::tuple& of) {
            const auto value = [&of](std::size_t i) { return of[i].cast<double>(); };
            return model::CustomerClass{
                value(0), value(1), of[2].cast<Visits>(), value(3), value(4), value(5), value(6)};
          }));
  py::class_<model::KernelSpeeds>(module, "KernelSpeeds")
      .def(py::init([](std::vector<std::optional<std::pair<model::CustomerClass, double>>> classes,
                       const gpu::Gpu& gpu) {
             return std::make_unique<model::KernelSpeeds>(std::move(classes), gpu.num_sms,
                                                          model::ModelParameters::of(gpu).l1_mshrs);
           }),
           py::arg("classes"), py::arg("gpu"))
      .def(
          "of",
          [](model::KernelSpeeds& speeds,
             const std::vector<std::tuple<std::int32_t, double, double>>& launches) {
            std::vector<model::RunningBlocks> running;
            for (const auto& [of_class, blocks, alone] : launches) {
              running.push_back({of_class, blocks, alone});
            }
            return speeds.of(running);
          },
          py::arg("launches"));
  module.def(
      "network_share",
      [](const gpu::Gpu& gpu, const model::CustomerClass& customers, double blocks, double places,
         double instructions, double cycles) {
        return model::network_share(customers, {blocks, places, instructions, cycles}, gpu.num_sms,
                                    model::ModelParameters::of(gpu).l1_mshrs);
      },
      py::arg("gpu"), py::arg("customers"), py::arg("blocks"), py::arg("places"),
      py::arg("instructions"), py::arg("cycles"));
  module.def("customers_of", &customers_of, py::arg("gpu"), py::arg("kernel"), py::arg("input"));
  module.def(
      "mixed_network_times",
      [](const std::vector<model::CustomerClass>& classes,
         const std::vector<std::pair<double, std::vector<double>>>& groups, double mshrs) {
        std::vector<model::SmGroup> made;
        for (const auto& [sms, blocks] : groups) {
          if (blocks.size() != classes.size()) {
            throw InputError("blocks: a group has " + std::to_string(blocks.size()) + " for " +
                             std::to_string(classes.size()) + " classes; give one for each");
          }
          made.push_back({sms, blocks});
        }
        return model::mixed_network_times(classes, made, mshrs);
      },
      py::arg("classes"), py::arg("groups"), py::arg("mshrs"));
  py::class_<model::ConcurrentGrids>(module, "ConcurrentGrids")
      .def(py::init(&concurrent_grids), py::arg("gpu"), py::arg("kernels"), py::arg("durations"),
           py::arg("instructions"), py::arg("inputs"))
      .def_static("of_classes", &grids_of_classes, py::arg("classes"), py::arg("sms"),
                  py::arg("room"), py::arg("most_grids"), py::arg("mshrs"), py::arg("replacement"),
                  py::arg("interval"))
      .def(
          "pace_of",
          [](const model::ConcurrentGrids& grids, std::size_t of_class) {
            const auto& pace = grids.pace_of(of_class);
            return std::tuple(pace.beside, pace.scale, pace.ends);
          },
          py::arg("kernel"))
      .def("add", &model::ConcurrentGrids::add, py::arg("kernel"), py::arg("priority") = 0)
      .def("next", &model::ConcurrentGrids::next)
      .def("advance", &model::ConcurrentGrids::advance, py::arg("time"))
      .def("take_ended", &model::ConcurrentGrids::take_ended)
      .def("start_of", &model::ConcurrentGrids::start_of, py::arg("grid"))
      .def("end_of", &model::ConcurrentGrids::end_of, py::arg("grid"));
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
