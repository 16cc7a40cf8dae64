#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "stand_ins/library/numbers.h"

/// Factorisations of sparse matrices, row by row, in f64. T is double or a complex number of
/// doubles.
namespace warpstack::cusolver::sparse {

using library::Complex;

template <typename T>
struct Element {
  int column;
  T value;
};

/// Elements of rows, in any order within one.
template <typename T>
struct Rows {
  int columns = 0;
  std::vector<std::vector<Element<T>>> of;

  [[nodiscard]] int rows() const { return static_cast<int>(of.size()); }
};

inline double conjugate(double value) { return value; }
inline Complex conjugate(const Complex& value) { return std::conj(value); }
inline double real_part(double value) { return value; }
inline double real_part(const Complex& value) { return value.real(); }

inline std::size_t place(int index) { return static_cast<std::size_t>(index); }

/// A row that is being computed: any column is at hand, and those that were touched come in
/// ascending order, also those that are touched meanwhile.
template <typename T>
class Gathered {
 public:
  explicit Gathered(int columns) : values_(place(columns)), touched_(place(columns)) {}

  T& at(int column) {
    if (!touched_[place(column)]) {
      touched_[place(column)] = true;
      waiting_.push(column);
    }
    return values_[place(column)];
  }
  [[nodiscard]] bool is_touched(int column) const { return touched_[place(column)]; }
  [[nodiscard]] bool is_empty() const { return waiting_.empty(); }
  /// The first column of those left, which leaves with its value.
  Element<T> take() {
    const int column = waiting_.top();
    waiting_.pop();
    touched_[place(column)] = false;
    return {column, std::exchange(values_[place(column)], T{})};
  }

 private:
  std::vector<T> values_;
  std::vector<char> touched_;
  std::priority_queue<int, std::vector<int>, std::greater<>> waiting_;
};

/// A = L L^H, of the lower triangle of A.
template <typename T>
class Cholesky {
 public:
  /// Stops at the first row whose pivot is not positive.
  explicit Cholesky(const Rows<T>& a);
  /// From 0, or -1 if all pivots are larger than a tolerance.
  [[nodiscard]] int zero_pivot(double tolerance) const;
  void solve(std::vector<T>& x) const;
  [[nodiscard]] double multiply_adds() const { return multiply_adds_; }
  /// Stored elements of L.
  [[nodiscard]] double elements() const { return elements_; }
  [[nodiscard]] const std::vector<double>& diagonal() const { return diagonal_; }

 private:
  int size_;
  std::vector<double> diagonal_;                  ///< of L, of the rows that are done
  std::vector<std::vector<Element<T>>> columns_;  ///< of L below it; `column` is the row
  double multiply_adds_ = 0, elements_ = 0;
};

/// A(:, Q) = L U: rows stay where they are, columns are exchanged. L has ones on its diagonal,
/// which are not stored.
template <typename T>
class Lu {
 public:
  /// The pivot of a row is the element of its own column if that is at least `threshold` times its
  /// largest one, else the largest.
  Lu(const Rows<T>& a, double threshold);
  /// From 0, or -1 if all pivots are larger than a tolerance.
  [[nodiscard]] int zero_pivot(double tolerance) const;
  void solve(std::vector<T>& x) const;
  [[nodiscard]] double multiply_adds() const { return multiply_adds_; }
  /// Element j is the column of A that is column j of the factors.
  [[nodiscard]] const std::vector<int>& order() const { return order_; }
  /// The factors with the columns that they have after the exchanges, which ascend.
  [[nodiscard]] Rows<T> lower() const { return lower_; }
  [[nodiscard]] Rows<T> upper() const;

 private:
  int size_;
  std::vector<int> order_, position_;
  Rows<T> lower_, upper_;  ///< of U the columns of A, the pivot first
  double multiply_adds_ = 0;
};

/// A = Q R by rotations of rows, of at least as many rows as columns.
template <typename T>
class Qr {
 public:
  explicit Qr(const Rows<T>& a);
  [[nodiscard]] int zero_pivot(double tolerance) const;
  /// The x that minimises |b - A x|.
  [[nodiscard]] std::vector<T> solve(const std::vector<T>& b) const;
  [[nodiscard]] double multiply_adds() const { return multiply_adds_; }
  /// Stored elements of R.
  [[nodiscard]] double elements() const;

 private:
  /// Row k of R and another one become (conj(a) R + conj(b) x, -b R + a x).
  struct Rotation {
    int k;
    T a, b;
  };
  /// What a row of A has gone through, and the row of R that it became, or -1.
  struct Path {
    std::vector<Rotation> rotations;
    int becomes = -1;
  };

  int columns_;
  std::vector<std::vector<Element<T>>> r_;  ///< the diagonal first; empty: a row of zeros
  std::vector<Path> paths_;
  double multiply_adds_ = 0;
};

/// A with other rows and columns: B(i, j) = A(p[i], p[j]).
template <typename T>
Rows<T> permuted(const Rows<T>& a, const std::vector<int>& p) {
  std::vector<int> inverse(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) inverse[place(p[i])] = static_cast<int>(i);
  Rows<T> b{a.columns, {}};
  for (const int row : p) {
    b.of.push_back(a.of[place(row)]);
    for (Element<T>& element : b.of.back()) element.column = inverse[place(element.column)];
  }
  return b;
}

/// The rows beside each row in the graph of A + A^T, without itself; they ascend.
using Neighbours = std::vector<std::vector<int>>;

/// The order of Cuthill and McKee from a node at the rim of each part of the graph (A. George and
/// J. Liu's), backwards: neighbours get numbers near each other.
std::vector<int> reverse_cuthill_mckee(const Neighbours& graph);
/// Always a node of the fewest neighbours, whose neighbours then become those of each other.
std::vector<int> minimum_degree(const Neighbours& graph);

// --- templates ----------------------------------------------------------------------------------

template <typename T>
Cholesky<T>::Cholesky(const Rows<T>& a) : size_(a.rows()), columns_(a.of.size()) {
  Gathered<T> row(size_);
  for (int k = 0; k < size_; ++k) {
    double pivot = 0;
    for (const auto& [column, value] : a.of[place(k)]) {
      if (column < k) row.at(column) += value;
      if (column == k) pivot += real_part(value);
    }
    while (!row.is_empty()) {
      const auto [j, value] = row.take();
      const T factor = value / diagonal_[place(j)];
      for (const auto& [i, below] : columns_[place(j)]) row.at(i) -= factor * conjugate(below);
      multiply_adds_ += static_cast<double>(columns_[place(j)].size()) + 2;
      pivot -= std::norm(factor);
      columns_[place(j)].push_back({k, factor});
      ++elements_;
    }
    if (!(pivot > 0)) return;
    diagonal_.push_back(std::sqrt(pivot));
    ++elements_;
  }
}

template <typename T>
int Cholesky<T>::zero_pivot(double tolerance) const {
  for (std::size_t i = 0; i < diagonal_.size(); ++i) {
    if (!(diagonal_[i] > tolerance)) return static_cast<int>(i);
  }
  return static_cast<int>(diagonal_.size()) < size_ ? static_cast<int>(diagonal_.size()) : -1;
}

template <typename T>
void Cholesky<T>::solve(std::vector<T>& x) const {
  for (std::size_t j = 0; j < x.size(); ++j) {
    x[j] /= diagonal_[j];
    for (const auto& [i, value] : columns_[j]) x[place(i)] -= value * x[j];
  }
  for (std::size_t j = x.size(); j-- > 0;) {
    for (const auto& [i, value] : columns_[j]) x[j] -= conjugate(value) * x[place(i)];
    x[j] /= diagonal_[j];
  }
}

template <typename T>
Lu<T>::Lu(const Rows<T>& a, double threshold)
    : size_(a.rows()), position_(place(size_), -1), lower_{size_, {}}, upper_{size_, {}} {
  // Columns that are pivots already are in the order of their pivots; the others are candidates.
  Gathered<T> done(size_), open(size_);
  const auto add = [&](int column, const T& value) {
    const int k = position_[place(column)];
    (k >= 0 ? done.at(k) : open.at(column)) += value;
  };
  for (int row = 0; row < size_; ++row) {
    for (const auto& [column, value] : a.of[place(row)]) add(column, value);
    lower_.of.emplace_back();
    while (!done.is_empty()) {
      const auto [k, value] = done.take();
      const auto& above = upper_.of[place(k)];
      const T factor = above.front().value == T{} ? T{} : value / above.front().value;
      lower_.of.back().push_back({k, factor});
      for (std::size_t i = 1; i < above.size(); ++i) {
        add(above[i].column, -factor * above[i].value);
      }
      multiply_adds_ += static_cast<double>(above.size());
    }
    std::vector<Element<T>> rest;
    double largest = 0;
    while (!open.is_empty()) {
      rest.push_back(open.take());
      largest = std::max(largest, std::abs(rest.back().value));
    }
    std::size_t pivot = rest.size();
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const double size = std::abs(rest[i].value);
      if (rest[i].column == row && size > 0 && size >= threshold * largest) {
        pivot = i;
        break;
      }
      if (pivot == rest.size() && size == largest && largest > 0) pivot = i;
    }
    if (pivot == rest.size()) {  // a pivot of zero, in the first free column
      const auto free = std::ranges::find(position_, -1);
      const int column = static_cast<int>(free - position_.begin());
      std::erase_if(rest, [&](const Element<T>& element) { return element.column == column; });
      rest.push_back({column, T{}});
      pivot = rest.size() - 1;
    }
    std::swap(rest.front(), rest[pivot]);
    position_[place(rest.front().column)] = row;
    order_.push_back(rest.front().column);
    upper_.of.push_back(std::move(rest));
  }
}

template <typename T>
int Lu<T>::zero_pivot(double tolerance) const {
  for (int i = 0; i < size_; ++i) {
    if (!(std::abs(upper_.of[place(i)].front().value) > tolerance)) return i;
  }
  return -1;
}

template <typename T>
void Lu<T>::solve(std::vector<T>& x) const {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (const auto& [k, value] : lower_.of[i]) x[i] -= value * x[place(k)];
  }
  std::vector<T> found(x.size());
  for (std::size_t i = x.size(); i-- > 0;) {
    const auto& row = upper_.of[i];
    for (std::size_t k = 1; k < row.size(); ++k) x[i] -= row[k].value * found[place(row[k].column)];
    found[place(row.front().column)] = x[i] / row.front().value;
  }
  x = std::move(found);
}

template <typename T>
Rows<T> Lu<T>::upper() const {
  Rows<T> found{size_, upper_.of};
  for (auto& row : found.of) {
    for (Element<T>& element : row) element.column = position_[place(element.column)];
    std::ranges::sort(row, {}, &Element<T>::column);
  }
  return found;
}

template <typename T>
Qr<T>::Qr(const Rows<T>& a) : columns_(a.columns), r_(place(a.columns)), paths_(a.of.size()) {
  Gathered<T> row(columns_);
  std::vector<Element<T>> rest, turned;
  for (std::size_t i = 0; i < a.of.size(); ++i) {
    for (const auto& [column, value] : a.of[i]) row.at(column) += value;
    while (!row.is_empty()) {
      const Element<T> first = row.take();
      auto& above = r_[place(first.column)];
      if (first.value == T{}) continue;
      if (above.empty()) {
        above.push_back(first);
        while (!row.is_empty()) above.push_back(row.take());
        paths_[i].becomes = first.column;
        break;
      }
      const T diagonal = above.front().value;
      const double size = std::hypot(std::abs(diagonal), std::abs(first.value));
      const Rotation turn{first.column, diagonal / size, first.value / size};
      // Both rows get the columns of both.
      for (std::size_t k = 1; k < above.size(); ++k) row.at(above[k].column);
      rest.clear();
      while (!row.is_empty()) rest.push_back(row.take());
      turned.assign(1,
                    {first.column, conjugate(turn.a) * diagonal + conjugate(turn.b) * first.value});
      // The other columns of R ascend, too.
      std::size_t k = 1;
      for (const auto& [column, value] : rest) {
        T upper{};
        if (k < above.size() && above[k].column == column) upper = above[k++].value;
        turned.push_back({column, conjugate(turn.a) * upper + conjugate(turn.b) * value});
        row.at(column) = turn.a * value - turn.b * upper;
      }
      multiply_adds_ += 4 * static_cast<double>(turned.size());
      std::swap(above, turned);
      paths_[i].rotations.push_back(turn);
    }
  }
}

template <typename T>
int Qr<T>::zero_pivot(double tolerance) const {
  for (int i = 0; i < columns_; ++i) {
    const auto& row = r_[place(i)];
    if (row.empty() || !(std::abs(row.front().value) > tolerance)) return i;
  }
  return -1;
}

template <typename T>
std::vector<T> Qr<T>::solve(const std::vector<T>& b) const {
  std::vector<T> x(place(columns_));
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    T value = b[i];
    for (const auto& [k, by, across] : paths_[i].rotations) {
      const T upper = x[place(k)];
      x[place(k)] = conjugate(by) * upper + conjugate(across) * value;
      value = by * value - across * upper;
    }
    if (paths_[i].becomes >= 0) x[place(paths_[i].becomes)] = value;
  }
  for (std::size_t i = x.size(); i-- > 0;) {
    const auto& row = r_[i];
    if (row.empty()) continue;
    for (std::size_t k = 1; k < row.size(); ++k) x[i] -= row[k].value * x[place(row[k].column)];
    x[i] /= row.front().value;
  }
  return x;
}

template <typename T>
double Qr<T>::elements() const {
  double count = 0;
  for (const auto& row : r_) count += static_cast<double>(row.size());
  return count;
}

}  // namespace warpstack::cusolver::sparse
