#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stand_ins/curand/distributions.h"
#include "stand_ins/curand/generator.h"

namespace warpstack::curand {

/// Results of `width` lanes in turn, each of which goes on by as many draws as its result takes:
/// XORWOW and MRG32k3a. A pair of normal numbers is one turn. Lanes are made when first needed.
///
/// A Lane has next_bits, next_uniform<T> and next_normal<T>, which gives a pair.
template <typename Lane, typename MakeLane>
class Interleaved : public Generator {
 public:
  /// make(lane, steps) makes the next lane, `steps` draws after its start.
  Interleaved(std::size_t width, std::uint64_t offset, MakeLane make)
      : width_(width),
        steps_(offset / width),
        ahead_(static_cast<std::size_t>(offset % width)),
        make_(std::move(make)),
        current_(ahead_) {}

  void bits(std::uint32_t* out, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) out[i] = turn().next_bits();
  }
  void uniform(float* out, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) out[i] = turn().template next_uniform<float>();
  }
  void uniform(double* out, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) out[i] = turn().template next_uniform<double>();
  }
  void normal(float* out, std::size_t count) override { pairs(out, count); }
  void normal(double* out, std::size_t count) override { pairs(out, count); }
  void open_uniform(double* out, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) out[i] = middle_of(turn().next_bits());
  }

 private:
  template <typename T>
  void pairs(T* out, std::size_t count) {
    for (std::size_t i = 0; i + 1 < count; i += 2) {
      std::tie(out[i], out[i + 1]) = turn().template next_normal<T>();
    }
  }

  Lane& turn() {
    while (lanes_.size() <= current_) {
      lanes_.push_back(make_(lanes_.size(), steps_ + (lanes_.size() < ahead_ ? 1 : 0)));
    }
    Lane& lane = lanes_[current_];
    if (++current_ == width_) current_ = 0;
    return lane;
  }

  std::size_t width_;
  std::uint64_t steps_;
  std::size_t ahead_;  ///< this many lanes are one step further
  MakeLane make_;
  std::size_t current_;
  std::vector<Lane> lanes_;
};

}  // namespace warpstack::curand
