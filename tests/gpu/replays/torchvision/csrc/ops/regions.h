// Regions of feature maps, as RoIAlign samples them: the arithmetic that kernels for CPUs and GPUs share.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define REPLAY_BOTH __host__ __device__ inline
#else
#define REPLAY_BOTH inline
#endif

namespace replay {

// What a call is about: the feature maps, and how regions of them are sampled.
struct Maps {
  int64_t images, channels, height, width;
  int64_t pooled_height, pooled_width;
  int64_t sampling;  // points a side of each cell, 0 or less: one for each pixel that it covers
  double scale;      // from the regions' pixels to those of the maps
  bool aligned;      // whether the centre of the first pixel lies at a half, and not at nothing
};

// The four pixels around a point, and how much of each is in the interpolated value.
template <typename T>
struct Corners {
  int64_t place[4];
  T weight[4];
};

template <typename T>
REPLAY_BOTH Corners<T> corners(T y, T x, const Maps& maps) {
  Corners<T> found = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  if (y < -1 || y > maps.height || x < -1 || x > maps.width) return found;
  y = y > 0 ? y : 0;
  x = x > 0 ? x : 0;
  int64_t top = (int64_t)y, left = (int64_t)x;
  if (top >= maps.height - 1) y = top = maps.height - 1;
  if (left >= maps.width - 1) x = left = maps.width - 1;
  const int64_t bottom = top + (top < maps.height - 1), right = left + (left < maps.width - 1);
  const T down = y - top, across = x - left;
  const int64_t rows[2] = {top, bottom}, columns[2] = {left, right};
  const T of_rows[2] = {1 - down, down}, of_columns[2] = {1 - across, across};
  for (int corner = 0; corner < 4; ++corner) {
    found.place[corner] = rows[corner / 2] * maps.width + columns[corner % 2];
    found.weight[corner] = of_rows[corner / 2] * of_columns[corner % 2];
  }
  return found;
}

// One cell of the result: which map it samples, and where.
template <typename T>
struct Cell {
  int64_t map;  // image and channel, counted through
  T top, left, height, width;
  int64_t rows, columns;  // points in it
};

// The cell of an element of the result, whose shape is (regions, channels, pooled_height, pooled_width).
template <typename T>
REPLAY_BOTH Cell<T> cell(const T* regions, int64_t element, const Maps& maps) {
  const int64_t column = element % maps.pooled_width, row = element / maps.pooled_width % maps.pooled_height;
  const int64_t plane = element / maps.pooled_width / maps.pooled_height;
  const T* region = regions + plane / maps.channels * 5;  // image, x1, y1, x2, y2
  const T scale = (T)maps.scale, offset = maps.aligned ? (T)0.5 : (T)0;
  const T left = region[1] * scale - offset, top = region[2] * scale - offset;
  T width = region[3] * scale - offset - left, height = region[4] * scale - offset - top;
  if (!maps.aligned) {
    width = width > 1 ? width : 1;
    height = height > 1 ? height : 1;
  }
  Cell<T> found;
  found.map = (int64_t)region[0] * maps.channels + plane % maps.channels;
  found.height = height / maps.pooled_height;
  found.width = width / maps.pooled_width;
  found.top = top + row * found.height;
  found.left = left + column * found.width;
  found.rows = maps.sampling > 0 ? maps.sampling : (int64_t)std::ceil(found.height);
  found.columns = maps.sampling > 0 ? maps.sampling : (int64_t)std::ceil(found.width);
  return found;
}

// Call `visit(place, weight)` for each pixel of the map that is in the element, with its share.
template <typename T, typename Visit>
REPLAY_BOTH void each_pixel(const Cell<T>& of, const Maps& maps, Visit visit) {
  const int64_t points = of.rows * of.columns;
  const T share = (T)1 / (T)(points > 1 ? points : 1);
  for (int64_t point = 0; point < points; ++point) {
    const T y = of.top + (point / of.columns + (T)0.5) * of.height / of.rows;
    const T x = of.left + (point % of.columns + (T)0.5) * of.width / of.columns;
    const Corners<T> around = corners(y, x, maps);
    for (int corner = 0; corner < 4; ++corner) visit(around.place[corner], around.weight[corner] * share);
  }
}

// Whether two boxes (x1, y1, x2, y2) have more of their union in common than `threshold`.
template <typename T>
REPLAY_BOTH bool overlap(const T* one, const T* other, double threshold) {
  const T width = (one[2] < other[2] ? one[2] : other[2]) - (one[0] > other[0] ? one[0] : other[0]);
  const T height = (one[3] < other[3] ? one[3] : other[3]) - (one[1] > other[1] ? one[1] : other[1]);
  const T common = width > 0 && height > 0 ? width * height : 0;
  const T both = (one[2] - one[0]) * (one[3] - one[1]) + (other[2] - other[0]) * (other[3] - other[1]);
  return common > threshold * (both - common);
}

}  // namespace replay
