// Transforms of the numbers in the program's memory.

#include <algorithm>
#include <array>
#include <map>

#include "stand_ins/cufft/fourier.h"
#include "stand_ins/cufft/plan.h"

namespace warpstack::cufft {
namespace {

/// Lengths or sizes of rows in three dimensions, of which the first may be 1.
std::array<std::int64_t, 3> in_three(const std::vector<std::int64_t>& values) {
  std::array<std::int64_t, 3> result{1, 1, 1};
  for (std::size_t i = 0; i < values.size(); ++i) result[3 - values.size() + i] = values[i];
  return result;
}

/// One side of a transform in memory.
class Side {
 public:
  Side(const std::vector<std::int64_t>& lengths, const Layout& layout, std::int64_t batch,
       bool is_real, Precision precision)
      : lengths_(in_three(lengths)),
        embed_(in_three(layout.embed)),
        layout_(layout),
        precision_(precision),
        parts_(is_real ? 1 : 2) {
    const std::int64_t span = index(batch - 1, lengths_[0] - 1, lengths_[1] - 1, lengths_[2] - 1);
    has_gaps_ = span + 1 != batch * lengths_[0] * lengths_[1] * lengths_[2];
    const auto elements = static_cast<std::size_t>(span + 1);
    bytes_.resize(elements * parts_ * bytes_of(precision));
  }

  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  /// Whether there is memory of others between the elements.
  [[nodiscard]] bool has_gaps() const { return has_gaps_; }
  [[nodiscard]] std::int64_t rows() const { return lengths_[0] * lengths_[1]; }

  void load_row(std::int64_t transform, std::int64_t row, Complex* numbers) const {
    const std::int64_t first = index(transform, row / lengths_[1], row % lengths_[1], 0);
    for (std::int64_t z = 0; z < lengths_[2]; ++z) {
      const std::int64_t at = parts_ * (first + z * layout_.stride);
      const double real = load(precision_, bytes_.data(), at);
      numbers[z] = {real, parts_ == 1 ? 0 : load(precision_, bytes_.data(), at + 1)};
    }
  }

  void store_row(std::int64_t transform, std::int64_t row, const Complex* numbers) {
    const std::int64_t first = index(transform, row / lengths_[1], row % lengths_[1], 0);
    for (std::int64_t z = 0; z < lengths_[2]; ++z) {
      const std::int64_t at = parts_ * (first + z * layout_.stride);
      store(precision_, bytes_.data(), at, numbers[z].real());
      if (parts_ == 2) store(precision_, bytes_.data(), at + 1, numbers[z].imag());
    }
  }

 private:
  [[nodiscard]] std::int64_t index(std::int64_t transform, std::int64_t x, std::int64_t y,
                                   std::int64_t z) const {
    return transform * layout_.distance + ((x * embed_[1] + y) * embed_[2] + z) * layout_.stride;
  }

  std::array<std::int64_t, 3> lengths_;
  std::array<std::int64_t, 3> embed_;
  Layout layout_;
  Precision precision_;
  std::int64_t parts_;  ///< numbers of an element
  std::vector<std::byte> bytes_;
  bool has_gaps_ = false;
};

/// What the transforms of a batch share.
class Engine {
 public:
  Engine(const Transform& transform, bool inverse)
      : kind_(transform.kind),
        inverse_(inverse),
        lengths_(in_three(transform.lengths)),
        kept_(in_three(transform.spectrum())),
        row_(static_cast<std::size_t>(lengths_[2])),
        spectrum_(static_cast<std::size_t>(kept_[0] * kept_[1] * kept_[2])) {
    for (const std::int64_t length : lengths_) fouriers_.try_emplace(length, length);
  }

  void run(std::int64_t transform, const Side& input, Side& output) {
    const bool back = kind_ == Kind::complex_to_real;
    const std::int64_t rows = kept_[0] * kept_[1];
    for (std::int64_t row = 0; row < rows; ++row) {
      Complex* const place = &spectrum_[static_cast<std::size_t>(row * kept_[2])];
      if (back) {
        input.load_row(transform, row, place);
        continue;
      }
      input.load_row(transform, row, row_.data());
      fouriers_.at(lengths_[2]).transform(row_.data(), inverse_);
      std::copy_n(row_.data(), kept_[2], place);
    }
    along(1, kept_[2], kept_[0], kept_[1] * kept_[2]);
    along(0, kept_[1] * kept_[2], 1, 0);
    for (std::int64_t row = 0; row < rows; ++row) {
      Complex* const place = &spectrum_[static_cast<std::size_t>(row * kept_[2])];
      if (!back) {
        output.store_row(transform, row, place);
        continue;
      }
      // The other half of the spectrum of real numbers.
      for (std::int64_t z = 0; z < lengths_[2]; ++z) {
        row_[static_cast<std::size_t>(z)] =
            z < kept_[2] ? place[z] : std::conj(place[lengths_[2] - z]);
      }
      fouriers_.at(lengths_[2]).transform(row_.data(), true);
      output.store_row(transform, row, row_.data());
    }
  }

 private:
  /// Transforms all columns whose elements are `step` apart: `step` beside each other, in each of
  /// `planes`, which are `plane` apart.
  void along(std::size_t axis, std::int64_t step, std::int64_t planes, std::int64_t plane) {
    const std::int64_t length = lengths_[axis];
    if (length == 1) return;
    column_.resize(static_cast<std::size_t>(length));
    for (std::int64_t p = 0; p < planes; ++p) {
      for (std::int64_t c = 0; c < step; ++c) {
        Complex* const first = &spectrum_[static_cast<std::size_t>(p * plane + c)];
        for (std::int64_t k = 0; k < length; ++k) {
          column_[static_cast<std::size_t>(k)] = first[k * step];
        }
        fouriers_.at(length).transform(column_.data(), inverse_);
        for (std::int64_t k = 0; k < length; ++k) {
          first[k * step] = column_[static_cast<std::size_t>(k)];
        }
      }
    }
  }

  Kind kind_;
  bool inverse_;
  std::array<std::int64_t, 3> lengths_;
  std::array<std::int64_t, 3> kept_;
  std::map<std::int64_t, Fourier> fouriers_;
  std::vector<Complex> row_;
  std::vector<Complex> spectrum_;
  std::vector<Complex> column_;
};

void require_success(cudart::Error error) {
  library::require_success<Library>(error, Status::exec_failed);
}

}  // namespace

void execute(const Context& context, const Transform& transform, const void* input, void* output,
             bool inverse) {
  library::reach_device();
  const library::WorkOfTheGpu work(Library::title);
  const bool in_place = input == output;
  Side from(transform.input_is_real() ? transform.lengths : transform.spectrum(),
            transform.input_layout(in_place), transform.batch, transform.input_is_real(),
            transform.precision);
  Side to(transform.output_is_real() ? transform.lengths : transform.spectrum(),
          transform.output_layout(in_place), transform.batch, transform.output_is_real(),
          transform.precision);
  const auto read = [&](Side& side, const void* place) {
    require_success(warpstack_cudart_read(Library::title, side.bytes().data(), place,
                                          side.bytes().size(), context.stream));
  };
  read(from, input);
  if (to.has_gaps()) read(to, output);
  Engine engine(transform, transform.kind == Kind::complex_to_real ||
                               (transform.kind == Kind::complex && inverse));
  for (std::int64_t i = 0; i < transform.batch; ++i) engine.run(i, from, to);
  require_success(warpstack_cudart_write(Library::title, output, to.bytes().data(),
                                         to.bytes().size(), moved_bytes(transform),
                                         computation_of(transform), context.stream));
}

}  // namespace warpstack::cufft
