// Ray tracer: mirroring spheres above a chequered floor, one light, shadows; one thread per pixel.
// Products that are added to are written as fmaf, so that no compiler contracts otherwise and every
// one gives the same picture.

#define FAR 1e30f
#define NEAR 1e-3f
#define NOTHING -1
#define FLOOR -2

struct Vector {
  float x, y, z;
};

__device__ __forceinline__ float dot(Vector a, Vector b) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, a.z * b.z));
}

__device__ __forceinline__ Vector minus(Vector a, Vector b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}

// a + s b
__device__ __forceinline__ Vector along(Vector a, float s, Vector b) {
  return {fmaf(s, b.x, a.x), fmaf(s, b.y, a.y), fmaf(s, b.z, a.z)};
}

__device__ __forceinline__ Vector unit(Vector a) {
  const float scale = 1.0f / sqrtf(dot(a, a));
  return {a.x * scale, a.y * scale, a.z * scale};
}

// Distance to the near side of a sphere (centre and radius), or FAR.
__device__ __forceinline__ float meet(float4 sphere, Vector origin, Vector direction) {
  const Vector centre = minus({sphere.x, sphere.y, sphere.z}, origin);
  const float half = dot(centre, direction);
  const float rest = fmaf(-sphere.w, sphere.w, dot(centre, centre));
  const float discriminant = fmaf(half, half, -rest);
  if (discriminant <= 0.0f) return FAR;
  const float distance = half - sqrtf(discriminant);
  return distance > NEAR ? distance : FAR;
}

__device__ __forceinline__ unsigned channel(float value) {
  return (unsigned)fmaf(fminf(fmaxf(value, 0.0f), 1.0f), 255.0f, 0.5f);
}

// `surfaces`: red, green, blue, and the part of the light that is mirrored. Pixels are packed as
// 0xBBGGRR.
extern "C" __global__ void ray_tracing(const float4* __restrict__ spheres,
                                       const float4* __restrict__ surfaces, int count, int width,
                                       int height, int bounces, float light_x, float light_y,
                                       float light_z, unsigned* __restrict__ pixels) {
  const int px = blockIdx.x * blockDim.x + threadIdx.x;
  const int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;

  const Vector light = {light_x, light_y, light_z};
  const float scale = 2.0f / (float)width;
  Vector origin = {0.0f, 3.0f, -9.0f};
  Vector direction = unit({fmaf((float)px + 0.5f, scale, -1.0f),
                           fmaf((float)(height - py) - 0.5f, scale, -1.25f), 1.5f});
  float red = 0.0f;
  float green = 0.0f;
  float blue = 0.0f;
  float share = 1.0f;

  for (int bounce = 0; bounce <= bounces; ++bounce) {
    float distance = FAR;
    int object = NOTHING;
    if (direction.y < 0.0f) {
      distance = -origin.y / direction.y;
      object = FLOOR;
    }
    for (int i = 0; i < count; ++i) {
      const float candidate = meet(spheres[i], origin, direction);
      if (candidate < distance) {
        distance = candidate;
        object = i;
      }
    }
    if (object == NOTHING) {
      const float haze = 1.0f - direction.y;
      red = fmaf(share, 0.7f * haze, red);
      green = fmaf(share, 0.8f * haze, green);
      blue = fmaf(share, 1.0f, blue);
      break;
    }

    const Vector point = along(origin, distance, direction);
    Vector normal = {0.0f, 1.0f, 0.0f};
    float4 surface;
    if (object == FLOOR) {
      const int square = (int)floorf(point.x) + (int)floorf(point.z);
      const float tone = square & 1 ? 0.9f : 0.2f;
      surface = make_float4(tone, tone, tone, 0.2f);
    } else {
      const float4 sphere = spheres[object];
      normal = unit(minus(point, {sphere.x, sphere.y, sphere.z}));
      surface = surfaces[object];
    }

    const Vector start = along(point, NEAR, normal);
    const Vector way = minus(light, start);
    const float way_length = sqrtf(dot(way, way));
    const Vector to_light = unit(way);
    float bright = fmaxf(dot(normal, to_light), 0.0f);
    bool lit = bright > 0.0f;
    for (int i = 0; lit && i < count; ++i) lit = meet(spheres[i], start, to_light) >= way_length;
    const float facing = -2.0f * dot(direction, normal);
    const Vector mirrored = along(direction, facing, normal);
    float gloss = fmaxf(dot(mirrored, to_light), 0.0f);
    for (int i = 0; i < 5; ++i) gloss = gloss * gloss;
    if (!lit) {
      bright = 0.0f;
      gloss = 0.0f;
    }

    const float shade = fmaf(bright, 0.85f, 0.15f);
    const float kept = share * (1.0f - surface.w);
    red = fmaf(kept, fmaf(surface.x, shade, gloss), red);
    green = fmaf(kept, fmaf(surface.y, shade, gloss), green);
    blue = fmaf(kept, fmaf(surface.z, shade, gloss), blue);
    share = share * surface.w;
    origin = start;
    direction = mirrored;
  }
  pixels[py * width + px] = channel(red) | channel(green) << 8 | channel(blue) << 16;
}
