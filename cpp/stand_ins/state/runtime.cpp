#include "stand_ins/state/runtime.h"

#include <errno.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "common/text.h"
#include "memory/order/occupancy.h"
#include "simt/state/cluster.h"
#include "stand_ins/state/device_runtime.h"
#include "stand_ins/state/graph.h"
#include "stand_ins/state/host_memory.h"
#include "stand_ins/state/memory_operations.h"
#include "stand_ins/state/memory_pool.h"
#include "stand_ins/state/recording.h"

namespace warpstack::cudart {
namespace {

constexpr int wrapper_magic = 0x466243b1;
/// The version of wrappers of code linked by nvlink.
constexpr int linked_wrapper = 2;
/// Rows of arrays begin at multiples of this.
constexpr std::uint64_t array_row_alignment = 128;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// A GPU's error code for a kernel's fault.
Error fault_code(const std::string& what) {
  const auto says = [&what](const char* words) { return what.find(words) != std::string::npos; };
  if (says("): misaligned ")) return Error::misaligned_address;
  if (says("): out-of-bounds ")) return Error::illegal_address;
  if (says("): assertion ")) return Error::assertion;
  if (says("raise step_limit")) return Error::launch_timeout;
  return Error::launch_failure;
}

}  // namespace

ThreadState& thread_state() {
  static thread_local ThreadState state;
  return state;
}

Error note(const char* function, const std::exception& error) {
  if (thread_state().called != nullptr) function = thread_state().called;
  const std::string what = std::string(function) + ": " + error.what();
  Error code = Error::invalid_value;
  if (const auto* failure = dynamic_cast<const Failure*>(&error)) {
    code = failure->code();
    if (failure->incomplete()) {
      report(what);
    } else {
      say("note", what);
    }
  } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    code = Error::memory_allocation;
    say("note", std::string(function) + ": the host has not enough memory");
  } else {
    say("note", what);
  }
  return last_error() = code;
}

Runtime& Runtime::get() {
  static Runtime* const runtime = [] {
    try {
      return new Runtime;
    } catch (const std::exception& error) {
      // The environment is unusable; there is no caller to tell.
      report(error.what());
      std::_Exit(2);
    }
  }();
  return *runtime;
}

Runtime::Runtime()
    : description_(parse_device_description(environment("WARPSTACK_CUDART_DEVICE"))),
      log_(environment("WARPSTACK_CUDART_SPOOL"),
           environment("WARPSTACK_CUDART_NO_HOST_TIME").empty()),
      graphs_(std::make_unique<GraphState>()),
      pools_(std::make_unique<MemoryPools>()) {
  if (const auto target = environment_number("WARPSTACK_CUDART_MACHINE_CODE")) {
    machine_code_ = static_cast<std::uint32_t>(*target);
  }
}

Runtime::~Runtime() = default;

simt::Device& Runtime::device() {
  if (device_ == nullptr) {
    device_ = std::make_unique<simt::Device>(description_.memory_bytes);
    device_->records_gaps = false;
    device_->print = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);  // in order with what the program prints
    };
  }
  return *device_;
}

// --- registration -------------------------------------------------------------------------------

FatModule* Runtime::add_module(const FatBinaryWrapper* wrapper) {
  auto module = std::make_unique<FatModule>();
  module->name = std::string(program_invocation_short_name) +
                 (machine_code_ ? " (machine code" : " (PTX") + " of its fat binary " +
                 std::to_string(modules_.size() + 1) + ")";
  if (wrapper == nullptr || wrapper->magic != wrapper_magic) {
    module->failure = "the program registers a fat binary of an unknown kind";
  } else {
    module->container = wrapper->container;
    // The array of the objects ends in a null pointer.
    const auto* object = static_cast<const std::byte* const*>(wrapper->file_or_prelinked);
    if (wrapper->version == linked_wrapper && object != nullptr) {
      for (; *object != nullptr; ++object) module->objects.push_back(*object);
    }
  }
  return modules_.insert(std::move(module)).first->get();
}

FatModule* Runtime::add_module(FatBinaryImage image, std::string name) {
  auto module = std::make_unique<FatModule>();
  module->image = std::move(image);
  module->name = std::move(name);
  return modules_.insert(std::move(module)).first->get();
}

void Runtime::remove_module(FatModule* module) {
  const auto of_module = [module](const auto& entry) { return entry.second.module == module; };
  std::erase_if(kernels_, of_module);
  std::erase_if(variables_, of_module);
  std::erase_if(texture_references, of_module);
  std::erase_if(inner_kernels_, of_module);
  std::erase_if(modules_, [module](const auto& entry) { return entry.get() == module; });
}

FatBinaryImage Runtime::choose(std::span<const std::byte> container) const {
  if (machine_code_) return image_for(container, *machine_code_);
  return {FatBinaryEntry::Kind::ptx, best_ptx(container, DeviceDescription::newest_target)};
}

std::unique_ptr<ProgramModule> Runtime::read(const FatModule& module) {
  const auto whole = [](const std::byte* container) {
    const std::span<const std::byte, fat_binary_header_bytes> header(container,
                                                                     fat_binary_header_bytes);
    return std::span(container, fat_binary_bytes(header));
  };
  if (!module.objects.empty() && !machine_code_) {
    std::vector<std::span<const std::byte>> objects;
    for (const std::byte* object : module.objects) objects.push_back(whole(object));
    auto images = relocatable_ptx(objects, DeviceDescription::newest_target);
    for (PtxImage& image : images) {
      image.name = std::string(program_invocation_short_name) + " (PTX of " + image.name + ")";
    }
    return load_ptx(images, module.name, device());
  }
  const FatBinaryImage image = module.image ? *module.image : choose(whole(module.container));
  if (image.kind == FatBinaryEntry::Kind::ptx && !machine_code_) {
    return load_ptx({{module.name, image.bytes}}, module.name, device());
  }
  return load_machine_code(spool_.listing(image, module.name), module.name, device());
}

ProgramModule& Runtime::load(FatModule& module) {
  if (module.loaded != nullptr) return *module.loaded;
  if (module.failure.empty()) {
    try {
      std::unique_ptr<ProgramModule> loaded = read(module);
      for (const auto& [pointer, name] : module.managed) {
        if (!unified()) {
          throw InputError("the program has managed variables, which need device memory at " +
                           std::string("its own address in this process; run it without others ") +
                           "that occupy it");
        }
        const ProgramModule::Variable symbol = loaded->variable(name);
        memory().find(symbol.address)->written.reset();  // the host may write it at any time
        *pointer = pointer_to(symbol.address);
      }
      module.loaded = std::move(loaded);
      return *module.loaded;
    } catch (const InputError& error) {
      module.failure = error.what();
    }
  }
  const bool is_ptx = module.image && module.image->kind == FatBinaryEntry::Kind::ptx;
  throw Failure(is_ptx ? Error::invalid_ptx : Error::no_kernel_image_for_device, module.failure,
                !std::exchange(module.reported, true));
}

void Runtime::add_kernel(const void* stub, FatModule* module, std::string name) {
  kernels_[stub] = {module, std::move(name)};
}

void Runtime::add_variable(const void* shadow, FatModule* module, std::string name) {
  variables_[shadow] = {module, std::move(name)};
}

KernelEntry& Runtime::kernel(const void* stub) {
  const auto found = kernels_.find(stub);
  if (found == kernels_.end()) {
    throw Failure(Error::invalid_device_function, "the program has registered no such kernel");
  }
  return found->second;
}

KernelEntry& Runtime::kernel_at(FatModule& module, std::uint64_t address) {
  const std::string name = load(module).kernel_at(address);
  if (name.empty()) {
    throw Failure(Error::invalid_device_function,
                  "there is no kernel at the address " + hexadecimal(address) + " of device code");
  }
  for (auto& [stub, entry] : kernels_) {
    if (entry.module == &module && entry.name == name) return entry;
  }
  return inner_kernels_.try_emplace({&module, name}, KernelEntry{&module, name}).first->second;
}

VariableEntry Runtime::variable(const void* shadow) {
  if (const auto found = variables_.find(shadow); found != variables_.end()) return found->second;
  for (const auto& module : modules_) {
    for (const auto& [pointer, name] : module->managed) {
      if (module->loaded != nullptr && *pointer == shadow) return {module.get(), name};
    }
  }
  throw Failure(Error::invalid_symbol, "the program has registered no such device variable");
}

ProgramModule::Variable Runtime::symbol(const void* shadow) {
  const VariableEntry entry = variable(shadow);
  ProgramModule& module = load(*entry.module);
  try {
    return module.variable(entry.name);
  } catch (const InputError& error) {
    throw Failure(Error::invalid_symbol, error.what());
  }
}

// --- arrays --------------------------------------------------------------------------------------

Array* Runtime::add_array(const ChannelFormat& format, const Extent& extent, unsigned flags) {
  require(extent.width > 0, "an array needs a width");
  const bool layered = (flags & array_layered) != 0;
  const bool cubemap = (flags & array_cubemap) != 0;
  require(extent.depth == 0 || extent.height > 0 || layered,
          "an array with a depth needs a height");
  require(!layered || extent.depth > 0, "a layered array needs layers, which its depth counts");
  require(!cubemap || (extent.width == extent.height &&
                       (layered ? extent.depth % 6 == 0 : extent.depth == 6)),
          "a cubemap has six square faces, which its depth counts");
  auto array = std::make_unique<Array>();
  int bits = 0;
  for (const int channel : {format.x, format.y, format.z, format.w}) {
    require(channel == 0 || channel == format.x, "channels of different sizes",
            Error::invalid_channel_descriptor);
    bits += channel;
  }
  require(format.x == 8 || format.x == 16 || format.x == 32, "channels have 8, 16 or 32 bits",
          Error::invalid_channel_descriptor);
  array->format = format;
  array->extent = extent;
  array->flags = flags;
  array->texel_bytes = static_cast<std::uint32_t>(bits / 8);
  require(extent.width < (std::size_t{1} << 32) && extent.height < (std::size_t{1} << 32) &&
              extent.depth < (std::size_t{1} << 32),
          "the array is too large");
  const std::uint64_t rows = std::max<std::uint64_t>(extent.height, 1);
  const std::uint64_t slices = std::max<std::uint64_t>(extent.depth, 1);
  array->row_bytes = extent.width * array->texel_bytes;
  if (rows > 1) array->row_bytes = round_up(array->row_bytes, array_row_alignment);
  if (array->row_bytes > description_.memory_bytes / rows / slices) {
    throw Failure(Error::memory_allocation, "the array is larger than the device's memory");
  }
  array->slice_bytes = array->row_bytes * rows;
  array->address = allocate(array->slice_bytes * slices);
  record_allocation(*this, array->slice_bytes * slices, false);
  Array* const handle = array.get();
  arrays_[handle] = std::move(array);
  return handle;
}

Array& Runtime::array(const Array* handle) {
  const auto found = arrays_.find(handle);
  if (found == arrays_.end()) {
    throw Failure(Error::invalid_resource_handle, "there is no such array");
  }
  return *found->second;
}

std::uint64_t Runtime::text_on_device(const std::string& text) {
  const auto found = device_texts_.find(text);
  if (found != device_texts_.end()) return found->second;
  const std::uint64_t address = allocate(text.size() + 1);
  memory().write(address, text.c_str(), text.size() + 1);
  return device_texts_[text] = address;
}

void Runtime::remove_array(Array* handle) {
  const std::uint64_t address = array(handle).address;
  record_free(*this, address);
  memory().free(address);
  arrays_.erase(handle);
}

// --- launches -----------------------------------------------------------------------------------

std::vector<std::byte> Runtime::parameter_buffer(const ProgramModule& module,
                                                 const KernelEntry& kernel, void** arguments) {
  const std::vector<ProgramModule::Argument> slots = module.arguments(kernel.name);
  std::uint64_t bytes = 0;
  for (const ProgramModule::Argument& slot : slots)
    bytes = std::max(bytes, slot.offset + slot.bytes);
  std::vector<std::byte> buffer(bytes);
  const auto check = [&](const void* pointer, std::uint64_t size, const std::string& what) {
    if (host_readable(address_of(pointer), size)) return;
    throw Failure(Error::invalid_value, "kernel " + kernel.name + ": " + what + " lie at " +
                                            hexadecimal(address_of(pointer)) +
                                            ", where the program can read nothing");
  };
  check(arguments, slots.size() * sizeof *arguments, "the pointers to its arguments");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].bytes > 0) {
      check(arguments[i], slots[i].bytes, "the bytes of argument " + std::to_string(i + 1));
      std::memcpy(buffer.data() + slots[i].offset, arguments[i], slots[i].bytes);
    }
  }
  return buffer;
}

const simt::KernelProgram& Runtime::program(KernelEntry& kernel) {
  ProgramModule& module = load(*kernel.module);
  try {
    return module.program(kernel.name);
  } catch (const InputError& error) {
    throw Failure(Error::invalid_ptx, error.what(), !std::exchange(kernel.reported, true));
  }
}

void Runtime::check_launch(KernelEntry& kernel, const Call& call) {
  trace::KernelHeader shape;
  shape.name = kernel.name;
  shape.grid = {call.grid.x, call.grid.y, call.grid.z};
  shape.block = {call.block.x, call.block.y, call.block.z};
  try {
    shape.validate();
  } catch (const InputError& error) {
    throw Failure(Error::invalid_configuration, "kernel " + kernel.name + ": " + error.what());
  }
  const std::uint64_t most = program(kernel).max_threads;
  if (shape.threads_per_block() > most) {
    throw Failure(Error::launch_out_of_resources,
                  "kernel " + kernel.name + ": a block of " +
                      std::to_string(shape.threads_per_block()) +
                      " threads is too large: its __launch_bounds__ allow " + std::to_string(most));
  }
  const std::uint64_t fixed = program(kernel).shared_bytes;
  const std::uint64_t shared = fixed + std::min(call.dynamic_shared_bytes, ~fixed);
  const std::uint64_t allowed = kernel.max_dynamic_shared_bytes > 0
                                    ? std::uint64_t{DeviceDescription::shared_bytes_per_block_optin}
                                    : std::uint64_t{DeviceDescription::shared_bytes_per_block};
  if (shared > allowed) {
    throw Failure(Error::invalid_value,
                  "kernel " + kernel.name + " wants " + std::to_string(shared) +
                      " bytes of shared memory per block, " + std::to_string(allowed) +
                      " are allowed (cudaFuncSetAttribute raises the limit)");
  }
  check_clusters(kernel, call);
  simt::LaunchOptions options;
  options.grid = shape.grid;
  options.block = shape.block;
  options.stack_bytes = limits[0];  // cudaLimitStackSize
  options.cooperative = call.cooperative;
  const std::uint64_t local = simt::resident_local_bytes(program(kernel), options);
  if (const std::uint64_t rest = memory().capacity() - memory().used(); local > rest) {
    throw Failure(Error::memory_allocation,
                  "kernel " + kernel.name + ": the threads that run at once need " +
                      std::to_string(local) + " bytes of local memory, the device has " +
                      std::to_string(rest) + " free (--device-memory gives it more)");
  }
}

void Runtime::check_clusters(KernelEntry& kernel, const Call& call) {
  const simt::KernelProgram& program = this->program(kernel);
  simt::LaunchOptions options;
  options.cluster = {call.cluster.x, call.cluster.y, call.cluster.z};
  const auto fail = [&](const std::string& what) {
    throw Failure(Error::invalid_cluster_size, "kernel " + kernel.name + ": " + what);
  };
  const auto& required = program.required_cluster;
  if (options.cluster[0] != 0 && required[0] != 0 && options.cluster != required) {
    fail("it is compiled for clusters of " + std::to_string(required[0]) + " x " +
         std::to_string(required[1]) + " x " + std::to_string(required[2]) +
         " blocks (__cluster_dims__), and launched with others");
  }
  const simt::Dim3 cluster = simt::cluster_of(program, options);
  try {
    simt::check_cluster({call.grid.x, call.grid.y, call.grid.z}, cluster);
  } catch (const InputError& error) {
    fail(error.what());
  }
  const std::uint64_t blocks = simt::cluster_blocks(cluster);
  if (blocks > portable_cluster_blocks && !kernel.allows_large_clusters) {
    fail("a cluster of " + std::to_string(blocks) + " blocks is larger than " +
         std::to_string(portable_cluster_blocks) +
         " (cudaFuncAttributeNonPortableClusterSizeAllowed allows it)");
  }
}

/// Registers per thread in blocks of `threads`. For PTX they are an estimate, which may exceed
/// ptxas's number for a kernel that programs launch with such blocks; so one block always fits.
static std::uint64_t registers_of(const simt::KernelProgram& program, std::uint64_t threads,
                                  const DeviceDescription& device) {
  if (program.source != "ptx") return program.registers_per_thread;
  constexpr std::uint64_t unit = 8;  // of a thread: a warp gets multiples of 256
  const std::uint64_t lanes =
      (threads + trace::warp_size - 1) / trace::warp_size * trace::warp_size;
  const std::uint64_t most = device.registers_per_sm / lanes / unit * unit;
  return std::min<std::uint64_t>(program.registers_per_thread, std::max(most, unit));
}

int Runtime::blocks_per_sm(KernelEntry& entry, int threads, std::size_t dynamic_bytes) {
  const DeviceDescription& device = description();
  const simt::KernelProgram& program = this->program(entry);
  if (threads <= 0 || static_cast<std::uint32_t>(threads) > program.max_threads) return 0;
  trace::KernelHeader header;
  header.name = entry.name;
  header.block = {static_cast<std::uint64_t>(threads), 1, 1};
  if (dynamic_bytes > DeviceDescription::shared_bytes_per_block_optin) return 0;
  header.shared_memory_bytes = program.shared_bytes + dynamic_bytes;
  header.registers_per_thread = registers_of(program, header.threads_per_block(), device);
  gpu::SmLimits limits;
  limits.warps = device.warps_per_sm;
  limits.threads = device.threads_per_sm;
  limits.blocks = device.blocks_per_sm;
  limits.registers = device.registers_per_sm;
  limits.shared_memory_bytes = std::max<std::uint64_t>(
      device.shared_bytes_per_sm,
      entry.max_dynamic_shared_bytes > 0 ? DeviceDescription::shared_bytes_per_block_optin : 0);
  if (header.shared_memory_bytes > *limits.shared_memory_bytes) return 0;
  return static_cast<int>(memory::occupancy(header, limits).blocks_per_sm);
}

Runtime::Launch Runtime::prepare(const void* stub, const Call& call, void** arguments) {
  KernelEntry& entry = kernel(stub);
  const ProgramModule& module = load(*entry.module);
  check_launch(entry, call);
  return {stub, call, parameter_buffer(module, entry, arguments)};
}

void Runtime::launch(const void* stub, const Call& call, void** arguments) {
  Launch prepared = prepare(stub, call, arguments);
  if (call.event != 0) event(call.event);
  if (!capture(*this, call.stream, KernelWork{prepared, {}, {}})) run(prepared);
  // Whoever waits for it waits for the end of the kernel, though it may be there before.
  if (call.event != 0) record(call.event, call.stream, 0);
}

void Runtime::launch_cooperative(const void* stub, Call call, void** arguments) {
  const std::uint64_t threads = std::uint64_t{call.block.x} * call.block.y * call.block.z;
  const std::uint64_t blocks = std::uint64_t{call.grid.x} * call.grid.y * call.grid.z;
  const int resident =
      blocks_per_sm(kernel(stub), static_cast<int>(std::min<std::uint64_t>(threads, INT_MAX)),
                    call.dynamic_shared_bytes);
  const std::uint64_t held = static_cast<std::uint64_t>(resident) * description().num_sms;
  const std::uint64_t most = std::min(held, simt::max_resident_blocks);
  if (resident > 0 && blocks > most) {
    throw Failure(Error::cooperative_launch_too_large,
                  "kernel " + kernel(stub).name + ": a cooperative launch of " +
                      std::to_string(blocks) + " blocks is too large: the GPU holds " +
                      std::to_string(most) + " at once");
  }
  call.cooperative = true;
  launch(stub, call, arguments);
}

void Runtime::run(const Launch& launch) {
  std::vector<DeviceWork> waiting;  // the last comes next
  const auto add = [&waiting](std::vector<DeviceWork> work) {
    std::move(work.rbegin(), work.rend(), std::back_inserter(waiting));
  };
  add(execute(kernel(launch.stub), launch.call, launch.parameters, 0, 0));
  while (!waiting.empty()) {
    const DeviceWork next = std::move(waiting.back());
    waiting.pop_back();
    add(perform(next));
  }
  log_thread().call.parent = 0;
}

std::vector<DeviceWork> Runtime::perform(const DeviceWork& work) {
  if (const auto* kernel = std::get_if<DeviceWork::Kernel>(&work.what)) {
    return execute(*kernel->entry, kernel->call, kernel->parameters, kernel->parent, kernel->depth);
  }
  log_thread().call.parent = work.parent;
  try {
    if (const auto* copy = std::get_if<DeviceWork::Copy>(&work.what)) {
      copy_2d(*this, pointer_to(copy->target), copy->target_pitch, pointer_to(copy->source),
              copy->source_pitch, copy->width, copy->height, MemcpyKind::device_to_device);
    } else if (const auto* fill = std::get_if<DeviceWork::Fill>(&work.what)) {
      set_2d(*this, pointer_to(fill->target), fill->pitch, fill->value, fill->width, fill->height);
    }
  } catch (const std::runtime_error& error) {
    sticky_ = Error::illegal_address;
    throw Failure(sticky_, std::string("a copy or fill of a kernel: ") + error.what(), true);
  }
  pass_time(call_time);
  return {};
}

simt::LaunchOptions Runtime::options_for(KernelEntry& entry, const Call& call) {
  simt::LaunchOptions options;
  options.grid = {call.grid.x, call.grid.y, call.grid.z};
  options.block = {call.block.x, call.block.y, call.block.z};
  options.dynamic_shared_bytes = call.dynamic_shared_bytes;
  options.cooperative = call.cooperative;
  options.cluster = {call.cluster.x, call.cluster.y, call.cluster.z};
  const std::uint64_t threads = std::uint64_t{call.block.x} * call.block.y * call.block.z;
  options.resident_blocks =
      static_cast<std::uint64_t>(
          std::max(blocks_per_sm(entry, static_cast<int>(threads), call.dynamic_shared_bytes), 1)) *
      description().num_sms;
  options.num_sms = description().num_sms;
  const std::string order = environment("WARPSTACK_CUDART_ORDER");
  if (order == "blocks") options.order = simt::BlockOrder::blocks;
  if (order == "time") options.order = simt::BlockOrder::time;
  options.registers_per_thread = registers_of(program(entry), threads, description());
  options.without_check = "trace with --allow-uninitialized";
  options.check_uninitialized = environment("WARPSTACK_CUDART_ALLOW_UNINITIALIZED").empty();
  if (environment("WARPSTACK_CUDART_ON_FAULT") == "continue") {
    options.on_fault = simt::OnFault::proceed;
  }
  options.check_races = !environment("WARPSTACK_CUDART_CHECK_RACES").empty();
  options.sample_blocks = environment_number("WARPSTACK_CUDART_SAMPLE_BLOCKS").value_or(1);
  options.run_others = environment("WARPSTACK_CUDART_SKIP_OTHERS").empty();
  if (const auto limit = environment_number("WARPSTACK_CUDART_STEP_LIMIT")) {
    options.step_limit = *limit;
  }
  // By default, as many as the machine runs at once.
  options.num_threads =
      static_cast<unsigned>(environment_number("WARPSTACK_CUDART_THREADS").value_or(0));
  options.storage = spool_.storage();
  options.note = [](const simt::Note& found) { say("note", found.text()); };
  return options;
}

std::vector<DeviceWork> Runtime::execute(KernelEntry& entry, const Call& call,
                                         const std::vector<std::byte>& parameters,
                                         std::uint64_t parent, std::uint32_t depth) {
  ProgramModule& module = load(*entry.module);
  const Spool::Ticket ticket = spool_.next_launch(entry.name);
  simt::LaunchOptions options = options_for(entry, call);
  options.trace = ticket.traced;
  log_thread().call.parent = parent;
  options.stream = record_launch(*this, entry.name, call, ticket.launch);
  if (!options.run_others) {
    options.check_uninitialized = false;  // earlier launches may have left out blocks
    options.run_others = !ticket.traced || !simt::why_others_run(program(entry), options).empty() ||
                         simt::polls_memory(program(entry));
  }
  options.launch_id = ticket.launch;
  options.parent = parent;
  options.begin_time = now_;
  KernelRuntime kernel_runtime(*this, entry, call.stream, ticket.launch, depth);
  options.runtime = &kernel_runtime;
  std::uint64_t done = 0;
  const auto show = [&](std::uint64_t blocks_done, std::uint64_t) {
    done = blocks_done;
    const std::uint64_t blocks = std::uint64_t{call.grid.x} * call.grid.y * call.grid.z;
    spool_.show_progress(ticket.launch, entry.name, done, blocks);
  };
  options.progress = show;
  options.interrupt = [&] { show(done, 0); };  // within a long block, too
  simt::LaunchResult result;
  try {
    result = module.launch(entry.name, parameters, options);
  } catch (const InputError& error) {
    spool_.end_progress();
    sticky_ = fault_code(error.what());
    const std::string launched =
        parent == 0 ? "" : " (launched by the kernel of launch " + std::to_string(parent) + ")";
    throw Failure(sticky_, error.what() + launched, true);
  }
  spool_.end_progress();
  pass_time(std::max(result.time, call_time));
  if (result.trace) {
    try {
      spool_.write(*result.trace);
    } catch (const InputError& error) {
      report(error.what());  // the kernel ran; only its trace is lost
    }
  }
  if (spool_.is_enough()) {
    std::fflush(nullptr);
    std::_Exit(0);  // skips the program's exit handlers: it has not ended
  }
  return kernel_runtime.take();
}

// --- streams and events -------------------------------------------------------------------------

StreamHandle Runtime::add_stream(unsigned flags, int priority) {
  const StreamHandle handle = next_handle_ += 16;
  streams_[handle] = {next_stream_++, flags,
                      std::clamp(priority, greatest_priority, least_priority)};
  record_stream(*this, OperationKind::stream_create, handle);
  return handle;
}

Runtime::Stream Runtime::stream(StreamHandle handle) {
  if (handle <= 2) return {};
  const auto found = streams_.find(handle);
  if (found == streams_.end()) {
    throw Failure(Error::invalid_resource_handle, "there is no such stream");
  }
  return found->second;
}

void Runtime::remove_stream(StreamHandle handle) {
  const auto found = streams_.find(handle);
  if (found == streams_.end()) {
    throw Failure(Error::invalid_resource_handle, "there is no such stream");
  }
  record_stream(*this, OperationKind::stream_destroy, handle);
  streams_.erase(found);
}

EventHandle Runtime::add_event(bool is_timed) {
  const EventHandle handle = next_handle_ += 16;
  events_[handle].is_timed = is_timed;
  events_[handle].number = next_event_++;
  return handle;
}

Runtime::Event& Runtime::event(EventHandle handle) {
  const auto found = events_.find(handle);
  if (found == events_.end()) {
    throw Failure(Error::invalid_resource_handle, "there is no such event");
  }
  return found->second;
}

void Runtime::record(EventHandle handle, StreamHandle stream, unsigned flags) {
  if (record_in_capture(*this, handle, stream, flags)) return;
  Event& found = event(handle);
  found = {now(), true, 0, {}, found.is_timed, found.number};
  record_event(*this, OperationKind::event_record, handle, stream);
}

void Runtime::remove_event(EventHandle handle) {
  event(handle);
  events_.erase(handle);
}

void Runtime::reset() {
  for (const auto& module : modules_) {
    module->loaded.reset();
    if (module->container != nullptr || module->image) module->failure.clear();
  }
  graphs_ = std::make_unique<GraphState>();
  pools_ = std::make_unique<MemoryPools>();
  shared_allocations_.clear();
  registered_.clear();
  arrays_.clear();
  streams_.clear();
  events_.clear();
  device_texts_.clear();
  limits = usual_limits;
  device_.reset();
  sticky_ = Error::success;
}

}  // namespace warpstack::cudart
