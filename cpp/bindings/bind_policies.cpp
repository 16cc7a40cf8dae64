#include <memory>
#include <string>

#include "bindings/bindings.h"
#include "memory/cache/own_policy.h"

namespace warpstack::bindings {
namespace {

/// A replacement policy whose methods are Python's. It is called, copied and destroyed without the
/// GIL held.
class PythonPolicy final : public memory::OwnPolicy {
 public:
  /// `made` is the policy's object. Needs the GIL.
  PythonPolicy(const std::string& name, const py::object& made, std::uint32_t ways)
      : name_(name),
        ways_(ways),
        object_(made),
        hit_(made.attr("hit")),
        fill_(made.attr("fill")),
        victim_(made.attr("victim")) {}
  PythonPolicy(const PythonPolicy&) = delete;
  PythonPolicy& operator=(const PythonPolicy&) = delete;
  ~PythonPolicy() override {
    const py::gil_scoped_acquire gil;
    for (py::object* one : {&victim_, &fill_, &hit_, &object_}) *one = {};
  }

  /// Calls `call`; an error of Python says in which call it was. Interrupts stay what they are.
  template <typename Text, typename Call>
  static auto guarded(const std::string& name, const Text& text, const Call& call) {
    try {
      return call();
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_Exception)) throw;
      const py::object type = error.type().attr("__name__");
      throw InputError("replacement policy " + name + ": " + text() + " raised " +
                       type.cast<std::string>() + ": " +
                       py::str(error.value()).cast<std::string>());
    }
  }

  void hit(std::uint32_t set, std::uint32_t way) override {
    const py::gil_scoped_acquire gil;
    guarded(
        name_, [&] { return "hit(" + std::to_string(set) + ", " + std::to_string(way) + ")"; },
        [&] { hit_(set, way); });
  }
  void fill(std::uint32_t set, std::uint32_t way, std::uint64_t address) override {
    const py::gil_scoped_acquire gil;
    guarded(
        name_,
        [&] {
          return "fill(" + std::to_string(set) + ", " + std::to_string(way) + ", " +
                 std::to_string(address) + ")";
        },
        [&] { fill_(set, way, address); });
  }
  std::uint32_t victim(std::uint32_t set) override {
    const py::gil_scoped_acquire gil;
    const py::object found = guarded(
        name_, [&] { return "victim(" + std::to_string(set) + ")"; }, [&] { return victim_(set); });
    // What NumPy returns for an index is a whole number, too; True is none.
    PyObject* whole = PyBool_Check(found.ptr()) ? nullptr : PyNumber_Index(found.ptr());
    if (whole == nullptr) PyErr_Clear();
    const py::object number = py::reinterpret_steal<py::object>(whole);
    const long way = whole == nullptr ? -1 : PyLong_AsLong(whole);
    if (PyErr_Occurred()) PyErr_Clear();
    if (way < 0 || way >= static_cast<long>(ways_)) {
      throw InputError("replacement policy " + name_ + ": victim(" + std::to_string(set) +
                       ") returned " + std::string(py::repr(found)) +
                       "; a way is a whole number from 0 to " + std::to_string(ways_ - 1));
    }
    return static_cast<std::uint32_t>(way);
  }
  [[nodiscard]] std::unique_ptr<memory::OwnPolicy> copy() const override {
    const py::gil_scoped_acquire gil;
    return guarded(
        name_, [] { return std::string("copy.deepcopy"); },
        [&] {
          const py::object copied = py::module_::import("copy").attr("deepcopy")(object_);
          return std::make_unique<PythonPolicy>(name_, copied, ways_);
        });
  }

 private:
  std::string name_;
  std::uint32_t ways_;
  py::object object_;
  py::object hit_;
  py::object fill_;
  py::object victim_;
};

}  // namespace

void bind_policies(py::module_& module) {
  module.def(
      "register_policy",
      [](const std::string& name, const std::string& shown, const py::object& make) {
        // Not destroyed: the table of policies outlives the interpreter.
        auto* maker = new py::object(make);
        memory::register_policy(name, [shown, maker](std::uint64_t sets, std::uint32_t ways) {
          const py::gil_scoped_acquire gil;
          const auto call = [&] {
            return "__init__(" + std::to_string(sets) + ", " + std::to_string(ways) + ")";
          };
          return PythonPolicy::guarded(shown, call, [&] {
            return std::unique_ptr<memory::OwnPolicy>(
                new PythonPolicy(shown, (*maker)(sets, ways), ways));
          });
        });
      },
      py::arg("name"), py::arg("shown"), py::arg("make"));
}

}  // namespace warpstack::bindings
