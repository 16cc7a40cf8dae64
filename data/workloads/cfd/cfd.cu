// Finite-volume solver of the three-dimensional Euler equations on an unstructured mesh of
// tetrahedra: explicit three-stage Runge-Kutta steps, each cell with a time step of its own.
//
// Five conserved variables per cell, stored variable after variable: density, three momenta and
// total energy per volume.

#define VARIABLES 5
#define FACES 4
#define WALL -1
#define FAR_FIELD -2
#define GAMMA 1.4f

// Conserved variables far away.
__constant__ float far_field[VARIABLES];

struct State {
  float density, momentum_x, momentum_y, momentum_z, energy;
  // Derived.
  float velocity_x, velocity_y, velocity_z, pressure, wave_speed;
};

// Velocity, pressure of an ideal gas, and the fastest wave: flow speed plus speed of sound.
__device__ __forceinline__ void derive(State& state) {
  const float volume = 1.0f / state.density;
  state.velocity_x = state.momentum_x * volume;
  state.velocity_y = state.momentum_y * volume;
  state.velocity_z = state.momentum_z * volume;
  const float speed_squared = state.velocity_x * state.velocity_x +
                              state.velocity_y * state.velocity_y +
                              state.velocity_z * state.velocity_z;
  state.pressure = (GAMMA - 1.0f) * (state.energy - 0.5f * state.density * speed_squared);
  state.wave_speed = sqrtf(speed_squared) + sqrtf(GAMMA * state.pressure * volume);
}

__device__ __forceinline__ State state_of(const float* variables, int cells, int cell) {
  State state;
  state.density = variables[cell];
  state.momentum_x = variables[cells + cell];
  state.momentum_y = variables[2 * cells + cell];
  state.momentum_z = variables[3 * cells + cell];
  state.energy = variables[4 * cells + cell];
  derive(state);
  return state;
}

__device__ __forceinline__ State state_far_away() {
  State state;
  state.density = far_field[0];
  state.momentum_x = far_field[1];
  state.momentum_y = far_field[2];
  state.momentum_z = far_field[3];
  state.energy = far_field[4];
  derive(state);
  return state;
}

// The far field everywhere, a little denser or thinner from cell to cell.
extern "C" __global__ void initialize(int cells, const float* disturbance, float* variables) {
  const int cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  const float scale = 1.0f + disturbance[cell];
  for (int variable = 0; variable < VARIABLES; ++variable)
    variables[variable * cells + cell] = scale * far_field[variable];
}

// Keep the variables at the start of a step, and find the step per volume that each cell can take:
// half of the time in which the fastest wave would cross it.
extern "C" __global__ void find_step(int cells, const float* variables, const float* surface,
                                     float* start, float* step) {
  const int cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  for (int variable = 0; variable < VARIABLES; ++variable)
    start[variable * cells + cell] = variables[variable * cells + cell];
  step[cell] = 0.5f / (surface[cell] * state_of(variables, cells, cell).wave_speed);
}

// Sum of the fluxes through the four faces of a cell, out of it: the mean of both sides' fluxes,
// less half the jump times the faster of both sides' waves.
extern "C" __global__ void compute_flux(int cells, const int* neighbours, const float* normals,
                                        const float* variables, float* fluxes) {
  const int cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  const State here = state_of(variables, cells, cell);
  float density = 0.0f, momentum_x = 0.0f, momentum_y = 0.0f, momentum_z = 0.0f, energy = 0.0f;
  for (int face = 0; face < FACES; ++face) {
    const int neighbour = neighbours[face * cells + cell];
    const float normal_x = normals[(3 * face + 0) * cells + cell];
    const float normal_y = normals[(3 * face + 1) * cells + cell];
    const float normal_z = normals[(3 * face + 2) * cells + cell];
    if (neighbour == WALL) {
      momentum_x += normal_x * here.pressure;
      momentum_y += normal_y * here.pressure;
      momentum_z += normal_z * here.pressure;
      continue;
    }
    State there;
    if (neighbour == FAR_FIELD)
      there = state_far_away();
    else
      there = state_of(variables, cells, neighbour);
    const float area = sqrtf(normal_x * normal_x + normal_y * normal_y + normal_z * normal_z);
    const float jump = 0.5f * area * fmaxf(here.wave_speed, there.wave_speed);
    // Half the volume flow through the face on either side.
    const float out_here = 0.5f * (here.velocity_x * normal_x + here.velocity_y * normal_y +
                                   here.velocity_z * normal_z);
    const float out_there = 0.5f * (there.velocity_x * normal_x + there.velocity_y * normal_y +
                                    there.velocity_z * normal_z);
    const float pressure = 0.5f * (here.pressure + there.pressure);
    density +=
        out_here * here.density + out_there * there.density - jump * (there.density - here.density);
    momentum_x += out_here * here.momentum_x + out_there * there.momentum_x + pressure * normal_x -
                  jump * (there.momentum_x - here.momentum_x);
    momentum_y += out_here * here.momentum_y + out_there * there.momentum_y + pressure * normal_y -
                  jump * (there.momentum_y - here.momentum_y);
    momentum_z += out_here * here.momentum_z + out_there * there.momentum_z + pressure * normal_z -
                  jump * (there.momentum_z - here.momentum_z);
    energy += out_here * (here.energy + here.pressure) +
              out_there * (there.energy + there.pressure) - jump * (there.energy - here.energy);
  }
  fluxes[cell] = density;
  fluxes[cells + cell] = momentum_x;
  fluxes[2 * cells + cell] = momentum_y;
  fluxes[3 * cells + cell] = momentum_z;
  fluxes[4 * cells + cell] = energy;
}

// A stage of the step: from its start, by a fraction of the step, along the fluxes.
extern "C" __global__ void advance(int cells, float fraction, const float* start, const float* step,
                                   const float* fluxes, float* variables) {
  const int cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  const float factor = fraction * step[cell];
  for (int variable = 0; variable < VARIABLES; ++variable) {
    const int at = variable * cells + cell;
    variables[at] = start[at] - factor * fluxes[at];
  }
}
