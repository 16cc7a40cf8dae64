#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The direction numbers of Sobol's sequences.
namespace warpstack::curand {

inline constexpr std::size_t most_dimensions = 20000;

/// curandDirectionVectors32_t and curandDirectionVectors64_t of each dimension.
template <typename Word>
using Directions = std::vector<std::array<Word, sizeof(Word) * 8>>;

/// Of Joe and Kuo's polynomials (Constructing Sobol sequences with better two-dimensional
/// projections, SIAM J. Sci. Comput. 30, 2008), as cuRAND has them.
template <typename Word>
const Directions<Word>& directions();

/// The same times random lower triangular matrices (Owen; Matousek), which are warpstack's own:
/// cuRAND's are not published.
template <typename Word>
const Directions<Word>& scrambled_directions();

/// What is added to each dimension of a scrambled sequence; warpstack's own, too.
template <typename Word>
const std::vector<Word>& scramble_constants();

}  // namespace warpstack::curand
