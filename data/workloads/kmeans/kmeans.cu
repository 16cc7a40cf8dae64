// Assignment step of k-means clustering: turn the points around once, then find the nearest centre
// of each. The host program moves the centres.

// Centres of the clusters, feature after feature of one cluster after the other.
__constant__ float centres[8192];

// One thread per point: from the features of a point side by side to the points of a feature side
// by side. The reads of a warp are a whole point apart, its writes are adjacent.
extern "C" __global__ void turn_around(int points, int features, const float* by_point,
                                       float* by_feature) {
  const int point = blockIdx.x * blockDim.x + threadIdx.x;
  if (point >= points) return;
  for (int feature = 0; feature < features; ++feature)
    by_feature[feature * points + point] = by_point[point * features + feature];
}

// One thread per point: the nearest centre by squared distance, the first one among equals.
extern "C" __global__ void assign(int points, int features, int clusters, const float* by_feature,
                                  int* membership) {
  const int point = blockIdx.x * blockDim.x + threadIdx.x;
  if (point >= points) return;
  int nearest = 0;
  float least = 0.0f;
  for (int cluster = 0; cluster < clusters; ++cluster) {
    float distance = 0.0f;
    for (int feature = 0; feature < features; ++feature) {
      const float difference =
          by_feature[feature * points + point] - centres[cluster * features + feature];
      distance += difference * difference;
    }
    if (cluster == 0 || distance < least) {
      least = distance;
      nearest = cluster;
    }
  }
  membership[point] = nearest;
}
